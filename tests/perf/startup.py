"""What starting costs: import, the extension, the first answer of a process, memory, a warm call. In one run.

    python tests/perf/startup.py [--runs N]

The reference is a script with httpx, `iter_lines` and `json.loads`. Every figure is the median of fresh processes,
taken in turn with the reference. Exits 1 where one is over its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fake_provider import in_child

IMPORT = "import time; t = time.process_time(); import {module}; print((time.process_time() - t) * 1e3)"
EXTENSION = """
import sys, time
import ipykernel.ipkernel
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
t = time.process_time(); shell.run_line_magic("load_ext", "larik_nb"); print((time.process_time() - t) * 1e3)
"""
LOADED = """
import sys, os
before = set(sys.modules)
import larik_nb
stdlib = sys.stdlib_module_names
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(name for name in new if name not in stdlib and name != "larik_nb"))
"""
FIRST_REFERENCE = """
import sys, json, os, httpx
with httpx.Client() as client:
    body = {"model": "fake:n=20:d=5", "stream": True}
    with client.stream("POST", sys.argv[1] + "/v1/messages", json=body) as response:
        for line in response.iter_lines():
            if line.startswith("data:") and json.loads(line[5:])["type"] == "content_block_delta":
                os.write(1, b"text"); os._exit(0)
"""
FIRST_OURS = """
import sys, os, larik_nb
provider = larik_nb.connect("anthropic/fake:n=20:d=5", base_url=sys.argv[1], api_key="k")
request = larik_nb.Request(model="fake:n=20:d=5", messages=[{"role": "user", "blocks": [{"type": "text", "text": "hi"}]}])
for event in larik_nb.stream(provider, request):
    if event.type == "text_delta":
        os.write(1, b"text"); os._exit(0)
"""
MEMORY = """
import sys, resource, larik_nb
provider = larik_nb.connect("anthropic/fake:n=20", base_url=sys.argv[1], api_key="k")
request = larik_nb.Request(model="fake:n=20", messages=[{"role": "user", "blocks": [{"type": "text", "text": "hi"}]}])
for event in larik_nb.stream(provider, request): pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
WARM = """
import sys, json, time, statistics, httpx, larik_nb
url, model = sys.argv[1], "fake:n=20:d=1"
provider = larik_nb.connect("anthropic/" + model, base_url=url, api_key="k")
request = larik_nb.Request(model=model, messages=[{"role": "user", "blocks": [{"type": "text", "text": "hi"}]}])
def ours():
    begun = time.perf_counter()
    for event in larik_nb.stream(provider, request):
        if event.type == "text_delta":
            first = first if "first" in locals() else time.perf_counter() - begun
    return first
client = httpx.Client()
def reference():
    begun, first = time.perf_counter(), None
    with client.stream("POST", url + "/v1/messages", json={"model": model, "stream": True}) as response:
        for line in response.iter_lines():
            if line.startswith("data:") and json.loads(line[5:])["type"] == "content_block_delta" and first is None:
                first = time.perf_counter() - begun
    return first
pairs = [(ours(), reference()) for _ in range(60)][10:]
print(json.dumps([statistics.median(a for a, _ in pairs) * 1e3, statistics.median(b for _, b in pairs) * 1e3]))
"""
LIMITS = {
    "import larik_nb, ms CPU": 50.0,
    "import, x httpx": 0.7,
    "%load_ext, ms CPU": 30.0,
    "first text of a process, x reference": 1.3,
    "memory after the first answer, MB": 40.0,
    "warm call to first text, x reference": 1.1,
}


def run(code: str, *arguments: str) -> str:
    """Return what a fresh interpreter prints for `code`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=60).stdout


def median(code: str, runs: int, *arguments: str) -> float:
    """Return the median of the number that `code` prints."""
    return statistics.median(float(run(code, *arguments)) for _ in range(runs))


def ratio(ours: str, reference: str, runs: int, *arguments: str) -> float:
    """Return the median ratio of two processes' whole times, taken in turn."""

    def seconds(code: str) -> float:
        begun = time.perf_counter()
        assert run(code, *arguments) == "text"
        return time.perf_counter() - begun

    seconds(ours), seconds(reference)
    return statistics.median(seconds(ours) / seconds(reference) for _ in range(runs))


def measure(url: str, runs: int) -> dict[str, float]:
    """Return every figure."""
    own, theirs = median(IMPORT.format(module="larik_nb"), runs), median(IMPORT.format(module="httpx"), runs)
    warm: list[Any] = json.loads(run(WARM, url))
    return {
        "import larik_nb, ms CPU": own,
        "import, x httpx": own / theirs,
        "%load_ext, ms CPU": median(EXTENSION, runs),
        "first text of a process, x reference": ratio(FIRST_OURS, FIRST_REFERENCE, runs, url),
        "memory after the first answer, MB": median(MEMORY, runs, url),
        "warm call to first text, x reference": warm[0] / warm[1],
    }


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=11, help="fresh processes a figure")
    runs = options.parse_args().runs
    foreign = run(LOADED).strip()
    with in_child() as url:
        figures = measure(url, runs)
    for name, value in figures.items():
        print(f"{name:<40} {value:8.2f}   limit {LIMITS[name]:g}")
    print(f"{'modules outside the standard library':<40} {foreign}")
    over = [name for name, value in figures.items() if value > LIMITS[name]]
    return 1 if over or foreign != "[]" else 0


if __name__ == "__main__":
    raise SystemExit(main())
