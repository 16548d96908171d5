"""What was spent, by all sessions and kernels of this machine: one file, a line of JSON for each sum, only added to."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from larik_nb.errors import ConfigError


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
    """

    session: str
    usd: float | None
    spec: str = ""
    at: float = 0.0
    holds: str | None = None
    settles: str | None = None

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
        return entry if entry.usd is None or type(entry.usd) in (int, float) else None


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
        try:
            file = self._opened()
            try:
                with _locked(file, alone=True):
                    os.write(file, self._whole(file, entry.line()))
                if durable:
                    os.fsync(file)
            finally:
                os.close(file)
        except OSError as exc:
            msg = f"cannot write down what is spent: {exc.strerror}"
            raise ConfigError(msg, source=str(self.path), remedy="Make room there, or make it writable") from exc

    def _opened(self) -> int:
        how = os.O_RDWR | os.O_APPEND | os.O_CREAT
        try:
            return os.open(self.path, how, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self.path, how, 0o600)

    @staticmethod
    def _whole(file: int, line: bytes) -> bytes:
        """Return the line, on a line of its own where the last one was torn by a crash."""
        if os.fstat(file).st_size == 0:
            return line
        os.lseek(file, -1, os.SEEK_END)
        return line if os.read(file, 1) == b"\n" else b"\n" + line

    def read(self, start: int = 0, session: str | None = None) -> tuple[list[Sum], int]:
        """Return the sums from byte `start` on, and where to go on reading; an unfinished last line is left for then.

        Args:
            start: Where the last reading ended.
            session: Whose sums are wanted; everybody's by default.
        """
        try:
            with self.path.open("rb") as reader, _locked(reader.fileno(), alone=False):
                reader.seek(start)
                text = reader.read()
        except OSError:
            return [], start
        whole = text[: text.rfind(b"\n") + 1]
        name = (session or "").encode()
        sums = [entry for line in whole.split(b"\n") if name in line and (entry := Sum.read(line)) is not None]
        return [entry for entry in sums if session in (None, entry.session)], start + len(whole)

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
    """A total that grows."""

    def __init__(self) -> None:
        self._held: dict[str, float] = {}
        self._usd = 0.0
        self._unknown = False

    def add(self, entry: Sum) -> None:
        """Count one sum."""
        if entry.holds is not None:
            self._held[entry.holds] = entry.usd or 0.0
            return
        if entry.settles is not None:
            self._held.pop(entry.settles, None)
        self._usd += entry.usd or 0.0
        self._unknown |= entry.usd is None

    @property
    def spending(self) -> Spending:
        """What it comes to."""
        return Spending(usd=self._usd + sum(self._held.values()), unknown=self._unknown)


@contextmanager
def _locked(file: int, *, alone: bool) -> Iterator[None]:
    """Keep other processes from writing, or from reading too: not every system shows an appended line all at once.

    Where there are no locks (Windows, some network file systems) the single write has to do.
    """
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    except (ImportError, OSError):
        yield
        return
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
