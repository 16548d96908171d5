"""What was spent, by all sessions and kernels of this machine: one file, a line of JSON for each sum, only added to."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from larik_nb.errors import ConfigError

HELD_S = 3_600.0
"""A reservation is dropped after this long: no request takes it, and its process may be on a machine that is off."""
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """One line of the ledger.

    Attributes:
        session: Whose it is.
        usd: What it came to, or is expected to; None: unknown.
        spec: The model that answered, "provider/model".
        at: Seconds since 1970.
        holds: Number of the reservation that this line makes; None on a settled sum.
        settles: Number of the reservation that it takes the place of.
        by: Who holds the reservation, "machine:process".
        warned: The limit of which the user was warned; such a line is no sum.
    """

    session: str
    usd: float | None
    spec: str = ""
    at: float = 0.0
    holds: str | None = None
    settles: str | None = None
    by: str | None = None
    warned: float | None = None

    def line(self) -> bytes:
        """Return the line, its end included."""
        values = {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}
        return json.dumps({"usd": None, **values}, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Sum | None:
        """Return the sum in a line; None for one that was torn or is not of this version."""
        try:
            values = json.loads(line)
            entry = cls(**{name: values[name] for name in cls.__slots__ if name in values})
        except (ValueError, TypeError):
            return None
        return entry if all(type(getattr(entry, name)) in kinds for name, kinds in _KINDS.items()) else None


_NUMBER, _TEXT = (int, float, type(None)), (str, type(None))
_KINDS: dict[str, tuple[type, ...]] = {
    "session": (str,),
    "usd": _NUMBER,
    "spec": (str,),
    "at": (int, float),
    "holds": _TEXT,
    "settles": _TEXT,
    "by": _TEXT,
    "warned": _NUMBER,
}


class Page:
    """The open file, while nobody else writes."""

    def __init__(self, file: int) -> None:
        self._file = file

    def read(self, start: int = 0, session: str | None = None) -> tuple[list[Sum], int]:
        """Return the sums from byte `start` on and where to go on reading, as `Ledger.read` does."""
        os.lseek(self._file, start, os.SEEK_SET)
        text = b"".join(iter(lambda: os.read(self._file, _READ_BYTES), b""))
        whole = text[: text.rfind(b"\n") + 1]
        name = (session or "").encode()
        sums = [entry for line in whole.split(b"\n") if name in line and (entry := Sum.read(line)) is not None]
        return [entry for entry in sums if session in (None, entry.session)], start + len(whole)

    def write(self, entry: Sum) -> None:
        """Add a line, on a line of its own where the last one was torn by a crash."""
        line = entry.line()
        if size := os.lseek(self._file, 0, os.SEEK_END):
            os.lseek(self._file, size - 1, os.SEEK_SET)
            line = line if os.read(self._file, 1) == b"\n" else b"\n" + line
        os.write(self._file, line)


class Ledger:
    """The file of all sums. Any thread and any process may use it.

    Args:
        path: Where it is; made, for the user's eyes only, with the first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, entry: Sum, *, durable: bool) -> None:
        """Write one line down, in one write, so that no other process's line gets into it.

        Args:
            entry: The line.
            durable: Wait until it would survive a loss of power.

        Raises:
            ConfigError: It cannot be written.
        """
        with self.alone(durable=durable) as page:
            page.write(entry)

    @contextmanager
    def alone(self, *, durable: bool = False) -> Iterator[Page]:
        """Have the file to oneself: what is read inside is still so when the line that depends on it is written.

        Args:
            durable: Wait at the end until what was written would survive a loss of power.

        Raises:
            ConfigError: The file cannot be opened, read or written.
        """
        try:
            file = self._opened()
            try:
                with _locked(file, alone=True):
                    yield Page(file)
                if durable:
                    os.fsync(file)
            finally:
                os.close(file)
        except OSError as exc:
            msg = f"cannot write down what is spent: {exc.strerror}"
            raise ConfigError(msg, source=str(self.path), remedy="Make room there, or make it writable") from exc

    def _opened(self) -> int:
        how = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        try:
            return os.open(self.path, how, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self.path, how, 0o600)

    def read(self, start: int = 0, session: str | None = None) -> tuple[list[Sum], int]:
        """Return the sums from byte `start` on, and where to go on reading; an unfinished last line is left for then.

        Args:
            start: Where the last reading ended.
            session: Whose sums are wanted; everybody's by default.
        """
        try:
            with self.path.open("rb") as reader, _locked(reader.fileno(), alone=False):
                return Page(reader.fileno()).read(start, session)
        except OSError:
            return [], start

    def of_day(self, day: str) -> Spending:
        """Return what all sessions spent on a day, "2026-11-30" in local time."""
        sums, _ = self.read()
        return total(entry for entry in sums if time.strftime("%Y-%m-%d", time.localtime(entry.at)) == day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A total.

    Attributes:
        usd: What is known of it, reservations included.
        unknown: Some of it has no known price, so that the total is a lower bound.
    """

    usd: float = 0.0
    unknown: bool = False


def total(sums: Iterable[Sum]) -> Spending:
    """Return what the sums come to; a reservation counts until it is settled."""
    tally = Tally()
    for entry in sums:
        tally.add(entry)
    return tally.spending


class Tally:
    """A total that grows.

    Args:
        clock: Seconds since 1970, by which reservations grow old.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._held: dict[str, Sum] = {}
        self._warned: set[float] = set()
        self._usd = 0.0
        self._unknown = False

    def add(self, entry: Sum) -> None:
        """Count one sum."""
        if entry.warned is not None:
            self._warned.add(entry.warned)
            return
        if entry.holds is not None:
            self._held[entry.holds] = entry
            return
        if entry.settles is not None:
            self._held.pop(entry.settles, None)
        self._usd += entry.usd or 0.0
        self._unknown |= entry.usd is None

    def has_warned(self, cap: float) -> bool:
        """Return whether somebody was warned of that limit."""
        return cap in self._warned

    @property
    def spending(self) -> Spending:
        """What it comes to; reservations that nobody will settle any more are dropped."""
        now = self._clock()
        for number in [number for number, entry in self._held.items() if _is_stale(entry, now)]:
            del self._held[number]
        return Spending(usd=self._usd + sum(entry.usd or 0.0 for entry in self._held.values()), unknown=self._unknown)


def holder() -> str:
    """Return who makes reservations here: the machine and the process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _is_stale(entry: Sum, now: float) -> bool:
    """Return whether a reservation's process has ended, as far as can be told here, or it is older than any request."""
    if now - entry.at > HELD_S:
        return True
    machine, _, process = (entry.by or "").rpartition(":")
    if machine != socket.gethostname() or not process.isdecimal():
        return False
    return int(process) != os.getpid() and not _runs(int(process))


if sys.platform == "win32":
    import ctypes
    import msvcrt

    def _runs(process: int) -> bool:
        """Return whether a process runs; signal 0, which asks so elsewhere, would end it here."""
        handle = ctypes.windll.kernel32.OpenProcess(0x1000, 0, process)  # PROCESS_QUERY_LIMITED_INFORMATION
        if not handle:
            return bool(ctypes.windll.kernel32.GetLastError() == 5)  # ERROR_ACCESS_DENIED: it is somebody else's
        code = ctypes.c_ulong()
        ctypes.windll.kernel32.GetExitCodeProcess(handle, ctypes.byref(code))
        ctypes.windll.kernel32.CloseHandle(handle)
        return code.value == 259  # STILL_ACTIVE

    def _lock(file: int, *, alone: bool) -> None:  # there are no shared locks
        os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_LOCK, 1)

    def _unlock(file: int) -> None:
        os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

    _LOCKED_BYTE = 1 << 30  # behind all lines: a lock there keeps nobody from reading
else:
    import fcntl

    def _runs(process: int) -> bool:
        """Return whether a process runs."""
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except (PermissionError, OverflowError):
            return True
        return True

    def _lock(file: int, *, alone: bool) -> None:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def _locked(file: int, *, alone: bool) -> Iterator[None]:
    """Keep other processes from writing, or from reading too: not every system shows an appended line all at once.

    Where there are no locks (some network file systems) the single write has to do.
    """
    try:
        _lock(file, alone=alone)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        _unlock(file)
