"""Keys that a command of the user's prints: run when one is needed, kept in memory for a while, never anywhere else.

One command is run once at a time however many models wait for it, and its key is shared by all of them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from larik_nb.errors import ConfigError, keep_secret

TIMEOUT_S = 30.0
MOST_BYTES = 1 << 16
_RUN_IT = "Run it in a terminal to see why"


class KeyCommand:
    """The key that a command prints.

    Args:
        command: For the shell.
        ttl_s: Seconds for which a key is used.
        source: Where the command was read, for messages.
        clock: Seconds that never go back.
    """

    def __init__(self, command: str, ttl_s: float, source: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.source = source
        self._command = command
        self._ttl_s = ttl_s
        self._clock = clock
        self._lock = threading.Lock()
        self._key: str | None = None
        self._until = 0.0
        self._flight: Future[str] | None = None

    def __repr__(self) -> str:
        return f"<KeyCommand {self.source}>"

    async def current(self) -> str:
        """Return the key, from the command where the last one is too old.

        Raises:
            ConfigError: The command failed, took too long, or printed no key.
        """
        while True:
            with self._lock:
                if self._key is not None and self._clock() < self._until:
                    return self._key
                leads = self._flight is None
                flight = self._flight = self._flight or Future()
            if leads:
                return await self._lead(flight)
            waiting = asyncio.wrap_future(flight)
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                return waiting.result()
            # Who ran it was stopped: the next one does.

    async def renewed(self, refused: str) -> bool:
        """Ask the command anew after a key was refused, unless somebody has since.

        Returns:
            Whether there is another key to try.

        Raises:
            ConfigError: As `current`.
        """
        with self._lock:
            if self._key == refused:
                self._key = None
        return await self.current() != refused

    async def _lead(self, flight: Future[str]) -> str:
        try:
            key = self._checked(await _run(self._command, self.source))
        except ConfigError as exc:
            self._land(None)
            flight.set_exception(exc)
            raise
        except BaseException:
            self._land(None)
            flight.cancel()
            raise
        self._land(key)
        flight.set_result(key)
        return key

    def _land(self, key: str | None) -> None:
        with self._lock:
            self._key, self._until, self._flight = key, self._clock() + self._ttl_s, None

    def _checked(self, output: bytes) -> str:
        from larik_nb.providers import credentials

        text = output.decode("utf-8", "replace").strip()
        if not text:
            raise ConfigError("the command printed nothing", source=self.source, remedy=_RUN_IT)
        if len(text.splitlines()) > 1:
            raise ConfigError("the command printed more than one line", source=self.source, remedy=_RUN_IT)
        credentials.check(text, self.source)
        keep_secret(text)
        return text


_commands: dict[tuple[str, float], KeyCommand] = {}
_commands_lock = threading.Lock()


def shared(command: str, ttl_s: float, source: str) -> KeyCommand:
    """Return the process's one key of a command: models that name the same command share it."""
    with _commands_lock:
        return _commands.setdefault((command, ttl_s), KeyCommand(command, ttl_s, source))


async def _run(command: str, source: str) -> bytes:
    """Return what a command prints; whatever it started ends with it."""
    process = await asyncio.create_subprocess_shell(
        command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # it may name the key
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output = await _read(process, source)
            status = await process.wait()
    except TimeoutError:
        msg = f"the command took longer than {TIMEOUT_S:g} s"
        raise ConfigError(msg, source=source, remedy=_RUN_IT) from None
    finally:
        if process.returncode is None:
            _kill(process)
            await process.communicate()  # reads what is left: a pipe nobody reads never ends, and with it the wait
    if status:
        raise ConfigError(f"the command failed with status {status}", source=source, remedy=_RUN_IT)
    return output


async def _read(process: asyncio.subprocess.Process, source: str) -> bytes:
    assert process.stdout is not None
    output = b""
    while part := await process.stdout.read(MOST_BYTES):
        output += part
        if len(output) > MOST_BYTES:
            raise ConfigError("the command prints more than a key", source=source, remedy=_RUN_IT)
    return output


def _kill(process: asyncio.subprocess.Process) -> None:
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
