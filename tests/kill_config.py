"""Two kernels save the settings at once and are killed in the middle of it.

    python tests/kill_config.py [--kills 200] [--seed N]

Each saves one of two versions, again and again. The first kills itself at a random one of its system calls, the other
is killed from outside at a random moment. After each pair of kills the file must be exactly one of the two versions,
private, and a save must still work. Ends with `violations V of N`; exit status 1 when V is not 0.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from larik_nb.config import edit  # noqa: E402  # run by itself, it first finds the package

SAVER = """
import json, os, random, sys
from larik_nb.config import edit
path, steps = sys.argv[1], int(sys.argv[2])
versions = [json.loads(text) for text in sys.argv[3:]]
def watch(event, args):
    global steps
    if event.startswith(("open", "os.", "fcntl.", "tempfile.")):
        steps -= 1
        if steps == 0:
            os._exit(9)
def change(settings):
    settings.clear()
    settings.update(random.choice(versions))
edit(change, path=path)
print(flush=True)
if steps:
    sys.addaudithook(watch)
while True:
    edit(change, path=path)
"""
LONGEST_S = 0.05
MOST_CALLS = 120
PAIR = 2


def version(name: str) -> dict[str, object]:
    """Return settings of some size that name one version throughout, so that a mixture shows."""
    return {"model": f"{name}/m", "roles": {f"r{n}": f"{name}/{n}" for n in range(200)}, "last": name}


def saved(settings: dict[str, object]) -> bytes:
    """Return the file for settings, as a save writes it."""
    return (json.dumps(settings, indent=2) + "\n").encode()


def kill_two(path: pathlib.Path, versions: list[dict[str, object]], chance: random.Random) -> None:
    """Let two processes save, and kill both."""
    texts = [json.dumps(settings) for settings in versions]
    steps = chance.randint(1, MOST_CALLS)
    commands = [[sys.executable, "-c", SAVER, str(path), str(number), *texts] for number in (steps, 0)]
    savers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for command in commands]
    for saver in savers:
        assert saver.stdout is not None
        saver.stdout.readline()
    time.sleep(chance.uniform(0, LONGEST_S))
    savers[1].kill()
    for saver in savers:
        saver.wait(timeout=30)
        assert saver.stdout is not None
        saver.stdout.close()


def violation(path: pathlib.Path, versions: list[dict[str, object]]) -> str | None:
    """Return what is wrong with the file; None when nothing is."""
    found = path.read_bytes()
    if found not in map(saved, versions):
        return f"neither version: {found[:60]!r}… of {len(found)} bytes"
    if path.stat().st_mode & 0o077:
        return "open to others"
    for settings in versions:
        edit(lambda now, whole=settings: (now.clear(), now.update(whole)), path=path)  # type: ignore[misc]
        if path.read_bytes() != saved(settings):
            return "a save after the kills did not arrive"
    return None


def main() -> int:
    """Kill, look, and count."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=200, help="two a round")
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    asked = options.parse_args()
    chance, versions = random.Random(asked.seed), [version("a"), version("b")]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "config.json")
        for number in range(0, asked.kills, PAIR):
            kill_two(path, versions, chance)
            if said := violation(path, versions):
                wrong += 1
                print(f"kills {number} and {number + 1}: {said}")
        left = sorted(item.name for item in pathlib.Path(folder).iterdir())
    if left != [".config.json.lock", "config.json"]:
        wrong += 1
        print(f"left behind: {left}")
    print(f"violations {wrong} of {asked.kills} kills, seed {asked.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
