"""What a session may spend: reserved before each request, written down after it, and no request beyond it.

The ledger is one file for all kernels of this machine: a line of JSON for each sum, only ever added to. A budget
counts the lines of its session, whoever wrote them, so two kernels on one session share it. A reservation is a line
too: should the kernel die in the middle of a request, what that was expected to cost stays counted, for it was
probably billed.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from larik_nb.errors import APIError, BudgetExceeded, ConfigError, LarikError
from larik_nb.routing._around import Around
from larik_nb.types import Message, Request, StreamEvent, done, notice

if TYPE_CHECKING:
    from larik_nb.providers import Provider


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """What the user allows.

    Attributes:
        session_usd: USD a session may spend, subagents included; None: no limit.
        warn_at: Share of it from which the user is warned, once.
        allow_unpriced: Models of unknown price may be asked although there is a limit.
    """

    session_usd: float | None = None
    warn_at: float = 0.8
    allow_unpriced: bool = False


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
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, self._whole(file, entry.line()))
                if durable:
                    os.fsync(file)
            finally:
                os.close(file)
        except OSError as exc:
            msg = f"cannot write down what is spent: {exc.strerror}"
            raise ConfigError(msg, source=str(self.path), remedy="Make room there, or make it writable") from exc

    def _whole(self, file: int, line: bytes) -> bytes:
        """Return the line, on a line of its own where the last one was torn by a crash."""
        size = os.fstat(file).st_size
        if size == 0:
            return line
        with self.path.open("rb") as reader:
            reader.seek(size - 1)
            return line if reader.read(1) == b"\n" else b"\n" + line

    def read(self, start: int = 0, session: str | None = None) -> tuple[list[Sum], int]:
        """Return the sums from byte `start` on, and where to go on reading; an unfinished last line is left for then.

        Args:
            start: Where the last reading ended.
            session: Whose sums are wanted; everybody's by default.
        """
        try:
            with self.path.open("rb") as reader:
                reader.seek(start)
                text = reader.read()
        except FileNotFoundError:
            return [], 0
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
    tally = _Tally()
    for entry in sums:
        tally.add(entry)
    return tally.spending


class _Tally:
    """A total that grows."""

    def __init__(self) -> None:
        self._held: dict[str, float] = {}
        self._usd = 0.0
        self._unknown = False

    def add(self, entry: Sum) -> None:
        if entry.holds is not None:
            self._held[entry.holds] = entry.usd or 0.0
            return
        if entry.settles is not None:
            self._held.pop(entry.settles, None)
        self._usd += entry.usd or 0.0
        self._unknown |= entry.usd is None

    @property
    def spending(self) -> Spending:
        return Spending(usd=self._usd + sum(self._held.values()), unknown=self._unknown)


class Budget:
    """What one session spends, all its agents together.

    Args:
        ledger: Where it is written down.
        session: Its id in the ledger.
        limits: What the user allows; may be assigned at any time.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        ledger: Ledger,
        session: str,
        *,
        limits: BudgetLimits = BudgetLimits(),  # frozen
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.ledger = ledger
        self.session = session
        self.limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._tally = _Tally()
        self._read_to = 0
        self._numbers = count(1)
        self._warned_of: float | None = None
        self._trouble: str | None = None

    @property
    def spent(self) -> Spending:
        """What this session has spent, reservations included, whichever kernel wrote it down."""
        with self._lock:
            return self._spent()

    def reserve(self, expected_usd: float | None, spec: str) -> Reservation:
        """Set aside what a request is expected to cost.

        Raises:
            BudgetExceeded: It would go beyond what the session may spend.
            ConfigError: There is a limit and the price is unknown.
        """
        limits = self.limits
        if limits.session_usd is None or expected_usd == 0:
            return Reservation(self, None)
        if expected_usd is None:
            if not limits.allow_unpriced:
                raise unpriced(spec)
            expected_usd = 0.0
        with self._lock:
            spent = self._spent().usd
            if spent >= limits.session_usd or spent + expected_usd > limits.session_usd:
                raise BudgetExceeded(spent, limits.session_usd, expected_usd)
            number = f"{os.getpid()}-{id(self):x}-{next(self._numbers)}"
            held = Sum(session=self.session, usd=expected_usd, spec=spec, at=self._clock(), holds=number)
            self.ledger.add(held, durable=False)
        return Reservation(self, number)

    def warning(self) -> str | None:
        """Return the line that warns of the limit, the first time it is due; a raised limit is a new one."""
        if self._trouble:
            trouble, self._trouble = self._trouble, None
            return f"⚠ {trouble}"
        limits = self.limits
        cap = limits.session_usd
        with self._lock:
            if not cap or self._warned_of == cap or (spent := self._spent().usd) < limits.warn_at * cap:
                return None
            self._warned_of = cap
        share = min(round(100 * spent / cap), 100)
        return (
            f"⚠ {share} % of the session budget used (${spent:.2f} of ${cap:.2f}); "
            f"%routing budget={max(2 * cap, 1):g} raises it"
        )

    def _settle(self, number: str | None, usd: float | None, spec: str, *, durable: bool) -> None:
        """Write down what a request cost in place of what was set aside for it; nothing for what is free."""
        if usd == 0 and number is None:
            return
        with self._lock:
            entry = Sum(session=self.session, usd=usd, spec=spec, at=self._clock(), settles=number)
            try:
                self.ledger.add(entry, durable=durable)
            except ConfigError as error:
                # The answer is there and paid for. It counts in this kernel, and the user hears of the file.
                self._tally.add(entry)
                self._trouble = error.message

    def _spent(self) -> Spending:
        sums, self._read_to = self.ledger.read(self._read_to, self.session)
        for entry in sums:
            self._tally.add(entry)
        return self._tally.spending


class Reservation:
    """What is set aside for one request, until it is settled."""

    def __init__(self, budget: Budget, number: str | None) -> None:
        self._budget = budget
        self._number = number
        self._open = True

    def settle(self, usd: float | None, spec: str = "", *, durable: bool = True) -> None:
        """Put what it cost in its place; later calls do nothing."""
        with self._budget._lock:
            was, self._open = self._open, False
        if was:
            self._budget._settle(self._number, usd, spec, durable=durable)


def unpriced(spec: str) -> ConfigError:
    """Return the error for a model of unknown price under a budget."""
    return ConfigError(
        f"no price is known for {spec}, and there is a budget",
        remedy=f'Set pricing."{spec}", or budget.allow_unpriced to ask it all the same',
    )


class Prices(Protocol):
    """What requests and answers cost, in USD; None where that is unknown."""

    def expected(self, request: Request) -> float | None:
        """Return what a request is likely to cost, its answer included."""

    def of(self, message: Message) -> float | None:
        """Return what an answer cost, by the model that gave it."""

    def cut_off(self, request: Request, heard: str) -> float | None:
        """Return what a request is likely to have cost of which only `heard` was waited for."""


class WithBudget(Around):
    """A provider within a budget: what a request may cost is set aside before it is sent.

    Args:
        provider: Answers.
        budget: Of the session.
        prices: What things cost.
        spec: The model that is asked first, "provider/model".
    """

    def __init__(self, provider: Provider, *, budget: Budget, prices: Prices, spec: str) -> None:
        super().__init__(provider)
        self._budget = budget
        self._prices = prices
        self._spec = spec

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer's events; the `done` is priced. A warning that is due comes before it.

        Raises:
            BudgetExceeded: Nothing was sent, since it would go beyond what the session may spend.
            ConfigError: Nothing was sent, since the price is unknown and there is a limit.
        """
        reserved = self._budget.reserve(self._prices.expected(request), self._spec)
        heard: list[str] = []
        try:
            async with aclosing(self.inner.stream(request)) as events:
                async for event in events:
                    if event.message is not None:
                        event = await self._settled(event.message, reserved)
                        if line := self._budget.warning():
                            yield notice(line)
                    heard.append(event.text)
                    yield event
        except APIError as error:
            reserved.settle(self._failed(error, request), self._spec, durable=False)
            raise
        except LarikError:
            reserved.settle(0.0, durable=False)
            raise
        finally:
            reserved.settle(self._prices.cut_off(request, "".join(heard)), self._spec, durable=False)

    async def _settled(self, message: Message, reserved: Reservation) -> StreamEvent:
        cost = self._prices.of(message) if message.cost_usd is None else message.cost_usd
        spec = f"{message.provider}/{message.model}" if message.provider else self._spec
        # Another thread waits for the disk.
        await asyncio.to_thread(reserved.settle, cost, spec)
        return done(replace(message, cost_usd=cost))

    def _failed(self, error: APIError, request: Request) -> float | None:
        """Return what a failed request cost: nothing before it had begun to answer."""
        partial = error.partial
        if partial is None or not partial.blocks:
            return 0.0
        return (
            self._prices.of(partial)
            if partial.usage
            else self._prices.cut_off(request, partial.text + partial.thinking)
        )
