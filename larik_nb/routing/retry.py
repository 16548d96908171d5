"""Asks the same model again after a failure that may pass, while nothing of the answer was shown."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from larik_nb.errors import APIError, QuotaError, RateLimited, ServerError
from larik_nb.routing._around import Around
from larik_nb.routing._visible import is_visible
from larik_nb.types import Block, Message, Request, StreamEvent, passing

if TYPE_CHECKING:
    from larik_nb.providers import Provider

TOLD_FROM_S = 2.0
"""A wait from this long on is told, so that nobody takes it for a hang."""

SPOKEN = frozenset({"refusal", "pause", "context_overflow", "max_tokens", "stop_sequence", "tool_use"})
"""Stop reasons that make an answer without words an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long to wait (specification H3).

    Attributes:
        max_retries: Further attempts for one request.
        first_s: Wait before the first of them; each later one is twice as long.
        longest_s: The longest of these waits. A provider may ask for more.
        total_s: What all waits of one request may take together; a longer one is not begun.
        jitter: Up to this share of a wait is added at random, so that callers who failed together part.
    """

    max_retries: int = 3
    first_s: float = 0.5
    longest_s: float = 8.0
    total_s: float = 60.0
    jitter: float = 0.25


def nobody() -> bool:
    """Say that no other model is ready."""
    return False


class WithRetry(Around):
    """A provider that is asked again.

    Only failures that may pass are retried: see `APIError.retryable`. An answer that ends without a word is one,
    once. After a field was refused that the adapter can leave out, the request goes out again at once without it.

    Args:
        provider: Answers.
        policy: How often and how long to wait.
        alternative: Tells whether another model is ready to answer. Then a rate limit is retried once only, and no
            wait is longer than the policy's own: changing costs less.
        sleep: Waits; a test passes its own clock.
        chance: Returns a number in [0, 1), for the jitter.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        policy: RetryPolicy = RetryPolicy(),  # frozen
        alternative: Callable[[], bool] = nobody,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(provider)
        self._policy = policy
        self._alternative = alternative
        self._sleep = sleep
        self._chance = chance

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the first attempt that shows anything or succeeds.

        Raises:
            APIError: The last attempt failed, or one after output.
        """
        tries = _Tries(self._policy, self._alternative, self._chance)
        while True:
            shown = False
            try:
                async with aclosing(self.inner.stream(request)) as events:
                    async for event in events:
                        if not shown:
                            shown = _is_begun(event, request)
                            if not shown and not tries.is_news(event):
                                continue
                        yield event
                if shown:
                    return
                raise EmptyAnswer().for_provider(provider=self.name, model=request.model)
            except APIError as error:
                if shown or (wait_s := tries.wait_s(error)) is None:
                    raise
                told = _told(error, self.name, wait_s)
            if told:
                yield passing(told)
            await self._sleep(wait_s)


class EmptyAnswer(ServerError):
    """The answer ended without a word, a thought, a call or a reason."""

    def __init__(self) -> None:
        super().__init__(cause="empty")


def _is_begun(event: StreamEvent, request: Request) -> bool:
    return is_visible(event) or (event.message is not None and not _is_empty(event.message, request))


def _is_empty(message: Message, request: Request) -> bool:
    """Return whether nothing was answered.

    A model may fall silent once its tools have answered; its provider then counts what that cost. What nobody counted
    either never was an answer.
    """
    if message.stop_reason in SPOKEN or any(_says(block) for block in message.blocks):
        return False
    results = request.messages and any(block.type == "tool_result" for block in request.messages[-1].blocks)
    return not (results and message.usage is not None and message.usage.output > 0)


def _says(block: Block) -> bool:
    return bool(block.text) if block.type in ("text", "thinking") else True


def _told(error: APIError, name: str, wait_s: float) -> str:
    if error.kind == "connection":
        return f"⟳ {name}: the connection was lost, reconnecting"
    if wait_s < TOLD_FROM_S:
        return ""
    return f"⟳ {error.happened(name).partition(' (retry')[0]}; trying again in {wait_s:.0f} s"


class _Tries:
    """The attempts of one request: how many there were, how long they waited, what they said."""

    def __init__(self, policy: RetryPolicy, alternative: Callable[[], bool], chance: Callable[[], float]) -> None:
        self._policy = policy
        self._alternative = alternative
        self._chance = chance
        self._count = 0
        self._slept_s = 0.0
        self._said: set[StreamEvent] = set()
        self._left_out: set[str] = set()

    def is_news(self, event: StreamEvent) -> bool:
        """Return whether an event that shows nothing is worth passing on: a notice, the first time it is given."""
        if event.type != "notice" or event in self._said:
            return False
        self._said.add(event)
        return True

    def wait_s(self, error: APIError) -> float | None:
        """Return how long to wait before the next attempt; None: there is none."""
        if error.left_out:
            fresh = error.left_out not in self._left_out
            self._left_out.add(error.left_out)
            return 0.0 if fresh else None
        crowded = isinstance(error, RateLimited | QuotaError)
        other = error.retryable and self._count < self._policy.max_retries and self._alternative()
        once = isinstance(error, EmptyAnswer) or (crowded and other)
        limit = min(self._policy.max_retries, 1) if once else self._policy.max_retries
        if not error.retryable or self._count >= limit:
            return None
        return self._paced(error.wait_s, self._policy.longest_s if other else self._policy.total_s)

    def _paced(self, asked_s: float, longest_s: float) -> float | None:
        """Return the wait, at least what the provider asks for; None when that is too long."""
        policy = self._policy
        least = max(asked_s, min(policy.first_s * float(2**self._count), policy.longest_s))
        left = min(longest_s, policy.total_s - self._slept_s)
        if least > left:
            return None
        wait_s = min(least * (1 + policy.jitter * self._chance()), max(left, least))
        self._count += 1
        self._slept_s += wait_s
        return wait_s
