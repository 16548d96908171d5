"""Asks the next model when one fails, while nothing of the answer was shown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from larik_nb.errors import AllModelsFailed, APIError, ConfigError
from larik_nb.providers import UnavailableProvider
from larik_nb.routing._around import Around
from larik_nb.routing._visible import is_visible
from larik_nb.routing.cooldown import COOLDOWNS, Attempt, CooldownPolicy, Cooldowns
from larik_nb.types import Request, StreamEvent, done, notice

if TYPE_CHECKING:
    from larik_nb.providers import Provider

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One model of a chain, built when it is first needed.

    Attributes:
        spec: "provider/model", by which it is known to the cooldowns and to people.
        model: Its id within the provider.
        build: Makes its provider; raises ConfigError, or returns an UnavailableProvider, where that cannot be.
    """

    spec: str
    model: str
    build: Callable[[], Provider]

    @cached_property
    def provider(self) -> Provider:
        """The provider, or what stands in for one that cannot be built."""
        try:
            made = self.build()
        except ConfigError as error:
            made = UnavailableProvider(self.spec, error)
        if isinstance(made, UnavailableProvider):
            _log.info("%s is left out: %s", self.spec, made.error.message)
        return made

    @property
    def error(self) -> ConfigError | None:
        """Why it cannot be built; None where it can."""
        return self.provider.error if isinstance(self.provider, UnavailableProvider) else None


def _is_cancelled() -> bool:
    """Return whether it is a cancellation that closes the stream, while whoever reads it was busy with an event."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Told:
    """What the user has been told of who answers, so that it is said once and not at every question.

    One belongs to a conversation and outlives its chains.
    """

    def __init__(self) -> None:
        self._stand_ins: dict[str, str] = {}

    def switch(self, first: str, to: str, failed: str, error: APIError) -> str | None:
        """Return the line that says that `to` is asked now since `failed` could not; None when it is known."""
        if self._stand_ins.get(first) == to:
            return None
        self._stand_ins[first] = to
        return f"⟳ {error.happened(failed)} → answering with {to}"

    def back(self, first: str) -> str | None:
        """Return the line that says that the first choice answers again; None when nobody thought otherwise."""
        return f"✓ back on {first}" if self._stand_ins.pop(first, None) else None


class WithFallback(Around):
    """The first of several models that answers.

    Models that failed lately are passed over without a word, unless all did: then all are asked in order. The last
    that can be built is always asked.

    Args:
        candidates: The first choice first.
        cooldowns: Who failed lately; the process's own table by default.
        policy: How long a model that fails is left alone.
        told: What this conversation has been told already.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        cooldowns: Cooldowns = COOLDOWNS,
        policy: CooldownPolicy = CooldownPolicy(),  # noqa: B008  # frozen
        told: Told | None = None,
    ) -> None:
        self._candidates = tuple(candidates)
        self._first = self._candidates[0]
        self._cooldowns = cooldowns
        self._policy = policy
        self._told = told or Told()

    @property
    def error(self) -> ConfigError | None:
        """Why the model that is asked first cannot be built; None where it can."""
        return self._first.error

    @property
    def name(self) -> str:
        """The first choice's route."""
        return self._first.spec.partition("/")[0]

    @property
    def model(self) -> str:
        """The first choice's model."""
        return self._first.model

    @property
    def inner(self) -> Provider:
        """The first choice's provider."""
        return self._first.provider

    def has_alternative(self, spec: str) -> bool:
        """Return whether a model after `spec` could be asked now."""
        later = iter(self._candidates)
        return any(candidate.spec == spec for candidate in later) and any(map(self._is_ready, later))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the first candidate that shows anything or succeeds; `done` says who that was.

        Raises:
            APIError: The failure of the only candidate, one that would happen anywhere, or one after output.
            AllModelsFailed: No candidate answered.
            ConfigError: No candidate can be built.
        """
        failures: list[APIError] = []
        try:
            for candidate, attempt in self._plan():
                shown = False
                try:
                    if failures and (line := self._switch(candidate, failures[-1])):
                        yield notice(line)
                    asked = replace(request, model=candidate.model)
                    async with aclosing(candidate.provider.stream(asked)) as events:
                        async for event in events:
                            if not shown and (is_visible(event) or event.message is not None):
                                if candidate is self._first and (line := self._told.back(candidate.spec)):
                                    yield notice(line)
                                shown = True
                            if event.message is not None:
                                attempt.succeeded()
                                event = self._stamped(event, candidate)
                            yield event
                    return
                except APIError as error:
                    attempt.failed(error)
                    self._mark(error, candidate)
                    if shown or not error.falls_back:
                        raise
                    failures.append(error)
                except GeneratorExit:
                    if shown and not _is_cancelled():
                        attempt.succeeded()
                    raise
                finally:
                    attempt.given_back()
            raise self._all_failed(failures)
        finally:
            failures.clear()  # each holds this frame

    def _is_ready(self, candidate: Candidate) -> bool:
        return candidate.error is None and self._cooldowns.is_ready(candidate.spec)

    def _plan(self) -> Iterator[tuple[Candidate, Attempt]]:
        """Yield whom to ask, one after the other, each looked up only when it is due."""
        nobody_ready = not any(map(self._is_ready, self._candidates))
        for place, candidate in enumerate(self._candidates):
            if candidate.error is not None:
                continue
            attempt = self._cooldowns.begin(candidate.spec, self._policy, anyway=nobody_ready)
            if attempt is None and all(later.error is not None for later in self._candidates[place + 1 :]):
                attempt = self._cooldowns.begin(candidate.spec, self._policy, anyway=True)
            if attempt is not None:
                yield candidate, attempt

    def _switch(self, candidate: Candidate, error: APIError) -> str | None:
        failed = "/".join(filter(None, (error.provider, error.model)))
        return self._told.switch(self._first.spec, candidate.spec, failed, error)

    def _mark(self, error: APIError, candidate: Candidate) -> None:
        """Say whose failure it is, by the names of the chain, and when it is asked again."""
        error.provider, error.model = candidate.spec.partition("/")[0], candidate.model
        error.again_in_s = self._cooldowns.left_s(candidate.spec) or None
        if error.partial is not None and candidate is not self._first:
            error.partial = replace(error.partial, replaced=self._first.spec)

    def _stamped(self, event: StreamEvent, candidate: Candidate) -> StreamEvent:
        """Return the `done` with who answered and for whom."""
        message = event.message
        if message is None:
            return event
        model, provider = message.model or candidate.model, message.provider or candidate.provider.name
        replaced = self._first.spec if candidate is not self._first else None
        return done(replace(message, model=model, provider=provider, replaced=replaced))

    def _all_failed(self, failures: list[APIError]) -> Exception:
        if not failures:
            return self._first.error or ConfigError("no model can be asked")
        if len(self._candidates) == 1:
            return failures[0]
        asked = {f"{error.provider}/{error.model}" for error in failures}
        others = [candidate for candidate in self._candidates if candidate.spec not in asked]
        return AllModelsFailed(failures, {candidate.spec: self._why_not(candidate) for candidate in others})

    def _why_not(self, candidate: Candidate) -> str:
        if candidate.error is not None:
            return f"cannot be used ({candidate.error.message.rstrip('.')})"
        known = {cooling.spec: cooling for cooling in self._cooldowns.snapshot()}
        cooling = known.get(candidate.spec)
        return f"{cooling.reason}, again in {cooling.left_s:.0f} s" if cooling else "was not asked"
