"""The child process that serves a model: one, with a key, and never longer than its parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from larik_nb.errors import Unreachable
from larik_nb.providers.local import server
from larik_nb.providers.local.table import Model

RealModel = tuple[Model, Path]
GONE_LIMIT_S = 2.0

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks of POSIX")

PARENT = """
import asyncio, sys
from pathlib import Path
from larik_nb.providers.local import server, table

model = table.models()[-1]
served = asyncio.run(server.endpoint(model, Path(sys.argv[1])))
print(served.base_url, served.api_key, server.running()[model.name], flush=True)
{then}
"""
STAY = "sys.stdin.read()"
FORK = """
import os
child = os.fork()
if child == 0:
    os.write(1, f"{server.running()}\\n".encode())
    if sys.argv[2] == "ends":
        sys.exit(0)
    sys.stdin.read()
if sys.argv[2] == "ends":
    os.waitpid(child, 0)
os.write(1, b"forked\\n")
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _stopped(root: Path) -> Iterator[None]:
    yield
    server.stop()


def _start(real_model: RealModel) -> server.Endpoint:
    return asyncio.run(server.endpoint(*real_model))


def _ask(base_url: str, api_key: str | None) -> httpx2.Response:
    body = {"model": "any", "max_tokens": 4, "messages": [{"role": "user", "content": "Say hello."}]}
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx2.post(f"{base_url}/chat/completions", json=body, headers=headers, timeout=60, trust_env=False)


def _parent(real_model: RealModel, then: str, *args: str) -> tuple[subprocess.Popen[str], str, str, int]:
    """Start a process that starts a server; gives it with the server's address, key and process id."""
    command = [sys.executable, "-c", PARENT.replace("{then}", then), str(real_model[1]), *args]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    base_url, api_key, pid = process.stdout.readline().split()
    return process, base_url, api_key, int(pid)


def _close(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not yet waited for does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def _wait_until_gone(pid: int) -> float:
    began = time.monotonic()
    while _is_alive(pid):
        assert time.monotonic() - began < GONE_LIMIT_S, "the server outlived its parent"
        time.sleep(0.02)
    return time.monotonic() - began


def test_it_answers_with_the_key_and_not_without(real_model: RealModel) -> None:
    """Chat works with the key; without it, and with another, it is 401."""
    served = _start(real_model)
    answer = _ask(served.base_url, served.api_key).json()
    assert answer["choices"][0]["message"]["content"]
    assert answer["model"] == real_model[0].name
    assert [_ask(served.base_url, key).status_code for key in (None, "wrong")] == [401, 401]
    assert served.base_url.startswith("http://127.0.0.1:")
    assert served.api_key not in repr(served)


def test_no_page_of_a_browser_is_let_in(real_model: RealModel) -> None:
    """The answer allows no foreign origin."""
    served = _start(real_model)
    health = served.base_url.removesuffix("/v1") + "/health"
    headers = httpx2.get(health, headers={"Origin": "http://evil.example"}, trust_env=False).headers
    assert headers.get("access-control-allow-origin", "") == ""


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc here")
def test_the_key_is_in_no_place_others_can_read(real_model: RealModel, root: Path) -> None:
    """Neither command line nor environment nor log has it; the log is the user's own."""
    served = _start(real_model)
    pid = server.running()[served.model]
    _ask(served.base_url, served.api_key)
    (log,) = (root / "logs").iterdir()
    places = [Path(f"/proc/{pid}/cmdline"), Path(f"/proc/{pid}/environ"), log]
    assert [served.api_key.encode() in place.read_bytes() for place in places] == [False] * 3
    assert b"Say hello" not in log.read_bytes()
    assert log.stat().st_mode & 0o077 == 0


def test_ten_threads_start_one(real_model: RealModel) -> None:
    """Ten loops in ten threads that ask at once get the same server."""
    with ThreadPoolExecutor(10) as threads:
        served = set(threads.map(lambda _: _start(real_model), range(10)))
    assert len(served) == 1
    assert list(server.running()) == [real_model[0].name]


def test_the_loop_goes_on_while_it_starts(real_model: RealModel) -> None:
    """Other tasks of the loop get their turns during the start."""

    async def run() -> int:
        starting = asyncio.ensure_future(server.endpoint(*real_model))
        turns = 0
        while not starting.done():
            await asyncio.sleep(0.01)
            turns += 1
        await starting
        return turns

    assert asyncio.run(run()) >= 5


@posix
def test_one_that_died_is_started_again(real_model: RealModel) -> None:
    """The next request after a crash gets a new server."""
    first = _start(real_model)
    os.kill(server.running()[first.model], signal.SIGKILL)
    while server.running():  # its threads end one by one
        time.sleep(0.01)
    second = _start(real_model)
    assert second.api_key != first.api_key
    assert _ask(second.base_url, second.api_key).status_code == 200


@posix
def test_stop_ends_it(real_model: RealModel) -> None:
    """After `stop` the process is gone."""
    served = _start(real_model)
    pid = server.running()[served.model]
    server.stop()
    assert server.running() == {}
    assert not _is_alive(pid)


@posix
def test_it_ends_with_a_parent_that_was_killed(real_model: RealModel) -> None:
    """Kill -9 of the kernel takes the server along."""
    process, _, _, pid = _parent(real_model, STAY)
    assert _is_alive(pid)
    _close(process)
    _wait_until_gone(pid)


@posix
def test_it_ends_with_a_parent_that_ends(real_model: RealModel) -> None:
    """A script that reaches its end leaves nothing behind."""
    process, _, _, pid = _parent(real_model, "")
    assert process.wait(5) == 0
    _close(process)
    _wait_until_gone(pid)


@posix
def test_a_forked_child_that_ends_leaves_it_alone(real_model: RealModel) -> None:
    """A forked worker owns no server, and its end is not the server's."""
    process, base_url, api_key, pid = _parent(real_model, FORK, "ends")
    assert process.stdout is not None
    assert [process.stdout.readline().strip() for _ in range(2)] == ["{}", "forked"]
    assert _ask(base_url, api_key).status_code == 200
    _close(process)
    _wait_until_gone(pid)


@posix
def test_a_forked_child_that_lives_on_does_not_keep_it(real_model: RealModel) -> None:
    """The parent is killed, its forked worker lives: the server ends all the same."""
    process, _, _, pid = _parent(real_model, FORK, "lives")
    assert process.stdout is not None
    assert {process.stdout.readline().strip() for _ in range(2)} == {"{}", "forked"}
    process.kill()
    _wait_until_gone(pid)
    _close(process)


@posix
def test_an_interrupt_of_the_kernel_is_not_for_it(real_model: RealModel) -> None:
    """Jupyter interrupts a whole process group; the server is in another, and deaf to it."""
    served = _start(real_model)
    pid = server.running()[served.model]
    assert os.getpgid(pid) != os.getpgid(0)
    os.kill(pid, signal.SIGINT)
    assert _ask(served.base_url, served.api_key).status_code == 200


def test_a_model_that_cannot_be_loaded_says_why(
    real_model: RealModel, make_model: Callable[..., Model], tmp_path: Path
) -> None:
    """The error is one line with the end of the log and where the log is."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(real_model[1].read_bytes()[:500_000])
    with pytest.raises(Unreachable) as caught:
        asyncio.run(server.endpoint(make_model(b""), broken))
    assert "the server of local/tiny did not start: " in caught.value.message
    assert "failed to load model" in caught.value.message
    assert "(log: " in caught.value.message
    assert "Traceback" not in caught.value.message
    assert server.running() == {}
