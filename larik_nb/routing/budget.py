"""What a session may spend: reserved before each request, written down after it, and no request beyond it.

The ledger is one file for all kernels of this machine: a line of JSON for each sum, only ever added to. A budget
counts the lines of its session, whoever wrote them, so two kernels on one session share it. A reservation is a line
too, made while the file is locked, so that two kernels at the same instant see each other's. It counts until it is
settled, its process has ended, or an hour is over.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal, Protocol

from larik_nb import _sending
from larik_nb.errors import APIError, BudgetExceeded, ConfigError, LarikError
from larik_nb.routing._around import Around
from larik_nb.routing.ledger import Ledger, Spending, Sum, Tally, holder
from larik_nb.types import Message, Request, StreamEvent, done, notice

if TYPE_CHECKING:
    from larik_nb.providers import Provider


Level = Literal["ok", "warn", "stop"]

_NOTHING = 1e-9
"""USD that sums of binary fractions may be off."""


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

    def level(self, usd: float) -> Level:
        """Return how near the limit a session is that has spent `usd`."""
        cap = self.session_usd
        if cap is None:
            return "ok"
        if usd >= cap - _NOTHING:
            return "stop"
        return "warn" if usd >= self.warn_at * cap - _NOTHING else "ok"

    @property
    def remedy(self) -> str:
        """What raises the limit, as a half-sentence."""
        return f"%routing budget={max(2 * (self.session_usd or 0.0), 1):g} raises it"


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
        self._tally = Tally(clock)
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
        with self._lock, self.ledger.alone() as page:
            spent = self._counted(*page.read(self._read_to, self.session)).usd
            if spent >= limits.session_usd - _NOTHING or spent + expected_usd > limits.session_usd + _NOTHING:
                raise BudgetExceeded(spent, limits.session_usd, expected_usd)
            number = f"{os.getpid()}-{id(self):x}-{next(self._numbers)}"
            held = Sum(session=self.session, usd=expected_usd, spec=spec, at=self._clock(), holds=number, by=holder())
            page.write(held)
        return Reservation(self, number)

    def warning(self) -> str | None:
        """Return the line that warns of the limit, the first time it is due; a raised limit is a new one."""
        if self._trouble:
            trouble, self._trouble = self._trouble, None
            return f"⚠ {trouble}"
        limits = self.limits
        cap = limits.session_usd
        with self._lock:
            if not cap or self._warned_of == cap or limits.level(spent := self._spent().usd) == "ok":
                return None
            self._warned_of = cap
            if not self._is_first_to_warn(cap):
                return None
        share = min(round(100 * spent / cap), 100)
        return f"⚠ {share} % of the session budget used (${spent:.2f} of ${cap:.2f}); {limits.remedy}"

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

    def _is_first_to_warn(self, cap: float) -> bool:
        """Note that the user is warned of a limit; False where another kernel, or an earlier one, has done it."""
        try:
            with self.ledger.alone() as page:
                self._counted(*page.read(self._read_to, self.session))
                if self._tally.has_warned(cap):
                    return False
                page.write(Sum(session=self.session, usd=0.0, at=self._clock(), warned=cap))
        except ConfigError:  # it cannot be noted, and the user is to hear of it all the same
            return True
        return True

    def _spent(self) -> Spending:
        return self._counted(*self.ledger.read(self._read_to, self.session))

    def _counted(self, sums: list[Sum], read_to: int) -> Spending:
        self._read_to = read_to
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
        aside: Runs what waits for the disk; in another thread by default.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        budget: Budget,
        prices: Prices,
        spec: str,
        aside: Callable[[Callable[[], None]], Awaitable[None]] = asyncio.to_thread,
    ) -> None:
        super().__init__(provider)
        self._aside = aside
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
        with _sending.watched() as sending:
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
                cost = 0.0 if sending.is_unsent else self._prices.cut_off(request, "".join(heard))
                reserved.settle(cost, self._spec, durable=False)

    async def _settled(self, message: Message, reserved: Reservation) -> StreamEvent:
        cost = self._prices.of(message) if message.cost_usd is None else message.cost_usd
        spec = f"{message.provider}/{message.model}" if message.provider else self._spec
        if self._budget.limits.session_usd is None:
            reserved.settle(cost, spec, durable=False)
        else:
            # What a limit depends on must survive a loss of power; the disk is waited for elsewhere.
            await self._aside(partial(reserved.settle, cost, spec))
        return done(replace(message, cost_usd=cost))

    def _failed(self, error: APIError, request: Request) -> float | None:
        """Return what a failed request cost: nothing before it had begun to answer."""
        came = error.partial
        if came is None or not came.blocks:
            return 0.0
        return self._prices.of(came) if came.usage else self._prices.cut_off(request, came.text + came.thinking)
