"""Which models are left alone for a while because they failed: one table for the process.

A model is known by its route and id, "provider/model". What one chain learned counts for all, since each subagent has
a chain of its own. Nothing here waits: the table only answers who is ready.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from larik_nb.errors import APIError, Cools

ANSWERED = "answered"
ASKED_AT_MOST_S = 3_600.0
"""What a provider asks for beyond this is cut to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CooldownPolicy:
    """How long a failed model is left alone (specification F4).

    Attributes:
        policy: fixed: as long as the failure is likely to last. breaker: short at first and twice as long after each
            trial that fails.
        short_s: Of the fixed policy, after what passes by itself.
        long_s: Of the fixed policy, after what needs somebody to act.
        first_s: Of the breaker, after the first failure.
        longest_s: Of the breaker, at most.
    """

    policy: Literal["fixed", "breaker"] = "fixed"
    short_s: float = 60.0
    long_s: float = 600.0
    first_s: float = 15.0
    longest_s: float = 300.0

    def seconds(self, cools: Cools, failures: int) -> float:
        """Return the time after the `failures`th failure in a row, counted from 1."""
        if self.policy == "breaker":
            return float(min(self.first_s * 2 ** min(failures - 1, 32), self.longest_s))
        return self.long_s if cools == "long" else self.short_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooling:
    """A model that is left alone, for people to read.

    Attributes:
        spec: "provider/model".
        left_s: Seconds until it is asked again; 0 while one request tries whether it answers.
        reason: Why, in a few words.
    """

    spec: str
    left_s: float
    reason: str

    @property
    def words(self) -> str:
        """All of it but the name, in a few words."""
        how = f"cooling {max(1, round(self.left_s))} s" if self.left_s else "being tried again"
        return f"{how} ({self.reason})"


@dataclass(slots=True)
class _Entry:
    """A model that failed. It stays after its time is up until an answer comes, so that a breaker can count."""

    until: float
    failures: int
    since: int
    reason: str
    breaker: bool
    trial: Attempt | None = None


class Cooldowns:
    """The table. Any thread may use it.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._last: dict[str, str] = {}
        self._numbers = count()

    def is_ready(self, spec: str) -> bool:
        """Return whether the model may be asked now."""
        with self._lock:
            return self._is_ready(spec)

    def left_s(self, spec: str) -> float:
        """Return the seconds until it may be asked; 0 when it may be now."""
        with self._lock:
            entry = self._entries.get(spec)
            return max(0.0, entry.until - self._clock()) if entry else 0.0

    def begin(self, spec: str, policy: CooldownPolicy, *, anyway: bool = False) -> Attempt | None:
        """Return the attempt to ask the model, whose end is to be told; None when it is to be left alone.

        Args:
            spec: "provider/model".
            policy: How long it is left alone should it fail.
            anyway: Ask even so: nobody else is left.
        """
        with self._lock:
            ready = self._is_ready(spec)
            if not (ready or anyway):
                return None
            attempt = Attempt(self, spec, policy, next(self._numbers))
            entry = self._entries.get(spec)
            if entry is not None and ready and entry.breaker:
                entry.trial = attempt
            return attempt

    def snapshot(self) -> tuple[Cooling, ...]:
        """Return the models that are left alone now, the longest wait last."""
        with self._lock:
            now = self._clock()
            waiting = [
                Cooling(spec=spec, left_s=max(0.0, entry.until - now), reason=entry.reason)
                for spec, entry in self._entries.items()
                if entry.until > now or entry.trial is not None
            ]
        return tuple(sorted(waiting, key=lambda cooling: cooling.left_s))

    def cooling(self) -> dict[str, str]:
        """Return each model that is left alone now, in a few words: "cooling 38 s (rate limited)"."""
        return {one.spec: one.words for one in self.snapshot()}

    def health(self) -> dict[str, str]:
        """Return what is known of each model that was asked, in a few words: as `cooling`, or "answered"."""
        cooling = self.cooling()
        with self._lock:
            return {**self._last, **cooling}

    def forget(self) -> None:
        """Leave nobody alone any more: what the user asks for after repairing something."""
        with self._lock:
            self._entries.clear()

    # -- what an attempt tells, all under its lock ------------------------------------------------------------
    def _is_ready(self, spec: str) -> bool:
        entry = self._entries.get(spec)
        return entry is None or (entry.until <= self._clock() and entry.trial is None)

    def _succeeded(self, attempt: Attempt) -> None:
        self._last[attempt.spec] = ANSWERED
        entry = self._released(attempt)
        # An answer that was asked for before the failure says nothing of what came after it.
        if entry is not None and attempt.number > entry.since:
            del self._entries[attempt.spec]

    def _failed(self, attempt: Attempt, error: APIError) -> None:
        entry = self._released(attempt)
        reason = self._last[attempt.spec] = error.why
        if error.cools is None:
            return
        policy, now = attempt.policy, self._clock()
        # Callers who fail at the same time tell of one failure, not of many.
        failures = 1 if entry is None else entry.failures + (attempt.number > entry.since)
        seconds = max(policy.seconds(error.cools, failures), min(error.wait_s, ASKED_AT_MOST_S))
        until = max(now + seconds, entry.until if entry else 0.0)
        trial = entry.trial if entry else None
        since = next(self._numbers)
        self._entries[attempt.spec] = _Entry(until, failures, since, reason, policy.policy == "breaker", trial)

    def _released(self, attempt: Attempt) -> _Entry | None:
        entry = self._entries.get(attempt.spec)
        if entry is not None and entry.trial is attempt:
            entry.trial = None
        return entry


class Attempt:
    """One request to one model under way. The first end told counts, later ones are ignored."""

    __slots__ = ("_open", "_table", "number", "policy", "spec")

    def __init__(self, table: Cooldowns, spec: str, policy: CooldownPolicy, number: int) -> None:
        self._table = table
        self._open = True
        self.spec = spec
        self.policy = policy
        self.number = number

    def succeeded(self) -> None:
        """It answers: nobody leaves it alone any more."""
        with self._table._lock:
            if self._closed():
                self._table._succeeded(self)

    def failed(self, error: APIError) -> None:
        """It failed: it is left alone for as long as the error, the policy and the provider say, whichever is longest."""
        with self._table._lock:
            if self._closed():
                self._table._failed(self, error)

    def given_back(self) -> None:
        """It was not seen to the end: the same as if it had not been made."""
        with self._table._lock:
            if self._closed():
                self._table._released(self)

    def _closed(self) -> bool:
        was, self._open = self._open, False
        return was


COOLDOWNS = Cooldowns()
"""The process's own."""


def health() -> dict[str, str]:
    """Return what this process knows of each model it asked, by "provider/model" (`Cooldowns.health`)."""
    return COOLDOWNS.health()
