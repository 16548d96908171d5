"""Local models served by child processes: one for each model, started when first asked, gone with this process.

The child (`_serve.py`) is told its model and key through a pipe and ends when that pipe does, so it never outlives a
kernel, not even one that was killed. A forked child of the kernel lets go of the pipe and starts servers of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import math
import os
import secrets
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from larik_nb.errors import Unreachable
from larik_nb.providers.local import cache

if TYPE_CHECKING:
    from larik_nb.providers.local.table import Model

START_LIMIT_S = 60.0
STOP_LIMIT_S = 2.0
WINDOW_TOKENS = 4096  # what a small machine can hold; the models were trained for more
MAX_THREADS = 8  # beyond that a model this small gains nothing and a shared machine suffers
LOG_TAIL_LINES = 3
LOG_KEPT_S = 7 * 24 * 3600

_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_CHILD = Path(__file__).with_name("_serve.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model answers in the chat-completions format.

    Attributes:
        base_url: Ends in `/v1`; loopback.
        api_key: Made for this one child; every path but health asks for it.
        model: The name to put into the request.
    """

    base_url: str
    api_key: str = field(repr=False)
    model: str


async def endpoint(model: Model, path: Path | None = None) -> Endpoint:
    """Return where the model answers, its server started first when it does not run; never blocks the loop.

    Args:
        model: A row of the table.
        path: Its file, when that is not in the user's cache.

    Raises:
        Unreachable: The server did not start; the message has the end of its log.
    """
    server = _server_of(model, path or cache.path_of(model))
    if served := server.running:
        return served
    return await asyncio.to_thread(server.start)


def stop() -> None:
    """End every server of this process; the next `endpoint` starts one again."""
    with _lock:
        servers = list(_servers.values())
        _servers.clear()
    for server in servers:
        server.stop()


def running() -> dict[str, int]:
    """Return the models served by this process, each with its server's process id."""
    return {server.model.name: server.pid for server in list(_servers.values()) if server.pid}


def window(model: Model) -> int:
    """Return how many tokens of prompt and answer the model is served with."""
    return min(WINDOW_TOKENS, model.context_window)


def cores() -> int:
    """Return how many threads to compute with: the cores this process may use, a container's quota included."""
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, min(usable, _quota(), MAX_THREADS))


class _Server:
    """The child process of one model."""

    def __init__(self, model: Model, path: Path) -> None:
        self.model = model
        self._path = path
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._endpoint: Endpoint | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id while it lives."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def running(self) -> Endpoint | None:
        """Where it answers, or None when it was not started or has died."""
        return self._endpoint if self.pid else None

    def start(self) -> Endpoint:
        """Start the child unless it runs; of many callers one starts it and the others wait for that."""
        with self._starting:
            if served := self.running:
                return served
            self._end()
            self._endpoint = served = self._launch()
            return served

    def stop(self) -> None:
        """End the child and wait until it is gone."""
        with self._starting:
            self._end()

    def forget(self) -> None:
        """In a forked child: let go of the parent's server without a word to it."""
        if self._process and self._process.stdin:
            self._process.stdin.close()
            self._process.returncode = 0  # it is not ours to wait for

    def _launch(self) -> Endpoint:
        api_key = secrets.token_urlsafe(32)
        log = _new_log(self.model)
        with log.open("wb") as out:
            self._process = process = _spawn(out.fileno())
        settings = {
            "path": str(self._path),
            "alias": self.model.name,
            "api_key": api_key,
            "window": window(self.model),
            "threads": cores(),
        }
        address = _shake_hands(process, settings)
        if not address:
            self._end()
            raise _not_started(self.model, log)
        return Endpoint(base_url=f"{address}/v1", api_key=api_key, model=self.model.name)

    def _end(self) -> None:
        process, self._process, self._endpoint = self._process, None, None
        if process is None:
            return
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _spawn(log: int) -> subprocess.Popen[bytes]:
    """Start the child in a group of its own: a notebook's interrupt goes to the kernel's whole group."""
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP
    return subprocess.Popen(
        [sys.executable, "-P", str(_CHILD)],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
        creationflags=flags,
    )


def _shake_hands(process: subprocess.Popen[bytes], settings: dict[str, object]) -> str:
    """Tell the child what to serve and return its address; empty when it ended or took too long."""
    assert process.stdin is not None  # both are pipes
    assert process.stdout is not None
    # A pipe has no time limit on every platform; a dead child ends the pipe on all.
    too_long = threading.Timer(START_LIMIT_S, process.kill)
    too_long.daemon = True
    too_long.start()
    try:
        with process.stdout as answer:
            process.stdin.write(json.dumps(settings).encode() + b"\n")
            line = answer.readline()
    except BrokenPipeError:
        line = b""
    finally:
        too_long.cancel()
    return str(json.loads(line)["address"]) if line.endswith(b"\n") else ""


def _new_log(model: Model) -> Path:
    """Return an empty log that only the user can read; old ones are removed."""
    folder = cache.folder("logs")
    for old in folder.glob("*.log"):
        if time.time() - old.stat().st_mtime > LOG_KEPT_S:
            old.unlink(missing_ok=True)
    path = folder / f"{model.name}-{os.getpid()}.log"
    path.touch(mode=0o600)
    return path


def _not_started(model: Model, log: Path) -> Unreachable:
    tail = log.read_text("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:]
    reason = " · ".join(tail) or f"no answer in {START_LIMIT_S:.0f} s"
    msg = f"the server of local/{model.name} did not start: {reason} (log: {log})"
    return Unreachable(msg, provider="local", model=model.name, retryable=False)


def _quota() -> int:
    """Return the cores a container may use, rounded up; with more threads than that they wait for each other."""
    try:
        limit, period = _CGROUP_QUOTA.read_text().split()
    except (OSError, ValueError):
        return MAX_THREADS
    return MAX_THREADS if limit == "max" else math.ceil(int(limit) / int(period))


_lock = threading.Lock()
_servers: dict[tuple[str, Path], _Server] = {}


def _server_of(model: Model, path: Path) -> _Server:
    with _lock:
        return _servers.setdefault((model.name, path), _Server(model, path))


def _forget_all() -> None:
    """In a forked child: the servers, and a lock that another thread may have held, are the parent's."""
    global _lock
    _lock = threading.Lock()
    for server in _servers.values():
        server.forget()
    _servers.clear()


atexit.register(stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
