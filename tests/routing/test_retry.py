"""Retries: which failures, how often, how long apart, and never once something was shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from larik_nb import errors
from larik_nb.errors import RateLimited, ServerError
from larik_nb.providers.scripted import Reply, ScriptedProvider
from larik_nb.routing.retry import EmptyAnswer, RetryPolicy, WithRetry
from larik_nb.types import (
    Block,
    Message,
    Request,
    StreamEvent,
    Usage,
    assistant,
    done,
    notice,
    text_delta,
    thinking_delta,
    tool_result,
    user,
)

REQUEST = Request(model="m", messages=(user("hi"),))


class Clock:
    """Notes what was slept; nobody waits."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def retried(replies: Sequence[Reply], **options: Any) -> tuple[WithRetry, ScriptedProvider, Clock]:
    inner, clock = ScriptedProvider(replies, name="p"), Clock()
    options.setdefault("chance", lambda: 0.0)
    return WithRetry(inner, sleep=clock.sleep, **options), inner, clock


def events(provider: WithRetry, request: Request = REQUEST) -> list[StreamEvent]:
    async def collect() -> list[StreamEvent]:
        return [event async for event in provider.stream(request)]

    return asyncio.run(collect())


def answer(provider: WithRetry, request: Request = REQUEST) -> str:
    (last,) = [event for event in events(provider, request) if event.message is not None]
    assert last.message is not None
    return last.message.text


def overloaded(**fields: Any) -> ServerError:
    return ServerError(kind="overloaded", status=529, **fields)


def test_what_may_pass_is_asked_again_each_time_after_twice_the_wait():
    provider, inner, clock = retried([overloaded(), overloaded(), overloaded(), "well"])

    assert answer(provider) == "well"
    assert clock.slept == [0.5, 1.0, 2.0]
    assert inner.requests == [REQUEST] * 4


def test_the_last_failure_is_told_after_the_last_retry():
    failures = [overloaded(said=str(number)) for number in range(5)]
    provider, inner, _ = retried(failures)

    with pytest.raises(ServerError) as caught:
        events(provider)

    assert caught.value is failures[3]
    assert len(inner.requests) == 4


def test_waits_stop_growing_at_the_longest():
    provider, _, clock = retried([overloaded()] * 6 + ["well"], policy=RetryPolicy(max_retries=6))

    answer(provider)

    assert clock.slept == [0.5, 1, 2, 4, 8, 8]


def test_all_waits_together_stay_below_the_total():
    provider, _, clock = retried([overloaded()] * 99, policy=RetryPolicy(max_retries=98))

    with pytest.raises(ServerError):
        events(provider)

    assert sum(clock.slept) <= 60
    assert sum(clock.slept) + 8 > 60


@pytest.mark.parametrize(
    "error",
    [
        errors.AuthError(),
        errors.QuotaError(),
        errors.ModelNotFound(),
        errors.BadRequest(),
        errors.ContextOverflow(),
        errors.RefusedError(),
        errors.BadWire(),
        errors.Unreachable(retryable=False),
    ],
)
def test_what_cannot_pass_is_not_asked_again(error: errors.APIError):
    provider, inner, clock = retried([error])

    with pytest.raises(type(error)):
        events(provider)

    assert (len(inner.requests), clock.slept) == (1, [])


@pytest.mark.parametrize(
    "shown",
    [
        text_delta("x"),
        thinking_delta("x"),
        StreamEvent(type="tool_use_start", id="1", name="ls"),
    ],
)
def test_nothing_is_asked_again_once_something_was_shown(shown: StreamEvent):
    class Breaks(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            self.requests.append(request)
            yield shown
            raise overloaded()

    inner = Breaks()
    seen = []

    async def run() -> None:
        async for event in WithRetry(inner, sleep=Clock().sleep).stream(REQUEST):
            seen.append(event)

    with pytest.raises(ServerError):
        asyncio.run(run())

    assert (seen, len(inner.requests)) == ([shown], 1)


@pytest.mark.parametrize("nothing", [text_delta(""), thinking_delta(""), notice("waking up")])
def test_empty_deltas_and_notices_show_nothing_and_are_not_told_twice(nothing: StreamEvent):
    class Breaks(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            self.requests.append(request)
            yield nothing
            if len(self.requests) == 1:
                raise overloaded()
            yield text_delta("well")
            yield done(assistant("well"))

    provider = WithRetry(Breaks(), sleep=Clock().sleep)

    notices = [nothing] if nothing.type == "notice" else []
    assert events(provider)[:-1] == [*notices, text_delta("well")]


def test_the_provider_is_waited_for_at_least_as_long_as_it_asks():
    provider, _, clock = retried([RateLimited(retry_after=7), "well"], chance=lambda: 0.5)

    answer(provider)

    assert clock.slept == [7 * 1.125]


@pytest.mark.parametrize(("asks", "slept"), [(60, [60]), (60.001, None), (3600, None)])
def test_more_than_a_minute_is_not_waited_for(asks: float, slept: list[float] | None):
    """The jitter does not push a minute over the minute."""
    provider, _, clock = retried([RateLimited(retry_after=asks), "well"], chance=lambda: 0.99)

    if slept is None:
        with pytest.raises(RateLimited):
            events(provider)
    else:
        answer(provider)

    assert clock.slept == (slept or [])


def test_jitter_only_adds():
    provider, _, clock = retried([overloaded(), "well"], chance=lambda: 0.8)

    answer(provider)

    assert clock.slept == [pytest.approx(0.6)]


def test_a_rate_limit_is_asked_again_once_when_another_model_is_ready():
    provider, inner, _ = retried([RateLimited()] * 9, alternative=lambda: True)

    with pytest.raises(RateLimited):
        events(provider)

    assert len(inner.requests) == 2


def test_a_long_wait_is_not_begun_when_another_model_is_ready():
    provider, inner, clock = retried([RateLimited(retry_after=9)] * 9, alternative=lambda: True)

    with pytest.raises(RateLimited):
        events(provider)

    assert (len(inner.requests), clock.slept) == (1, [])


def test_other_failures_keep_their_retries_when_another_model_is_ready():
    provider, _, clock = retried([overloaded()] * 3 + ["well"], alternative=lambda: True)

    assert answer(provider) == "well"
    assert len(clock.slept) == 3


def test_no_retries_means_none():
    provider, inner, _ = retried([RateLimited()], policy=RetryPolicy(max_retries=0))

    with pytest.raises(RateLimited):
        events(provider)

    assert len(inner.requests) == 1


def test_a_lost_connection_is_told_in_passing():
    lost = errors.transport(ConnectionResetError("reset by peer"))
    provider, _, _ = retried([lost, "well"])

    first = events(provider)[0]

    assert first == StreamEvent(type="notice", name="passing", text="⟳ p: the connection was lost, reconnecting")


def test_a_long_wait_is_told_and_a_short_one_is_not():
    provider, _, _ = retried([RateLimited(retry_after=1), RateLimited(retry_after=42, status=429), "well"])

    told = [event.text for event in events(provider) if event.type == "notice"]

    assert told == ["⟳ p is rate limited; trying again in 42 s"]


def test_an_answer_without_a_word_is_asked_for_once_more():
    provider, inner, _ = retried([[done(assistant())], "well"])

    assert answer(provider) == "well"

    provider, inner, _ = retried([[done(assistant(""))]] * 9)
    with pytest.raises(EmptyAnswer) as caught:
        events(provider)

    assert len(inner.requests) == 2
    assert (caught.value.kind, caught.value.falls_back, caught.value.cools) == ("server_error", True, "short")
    assert str(caught.value).startswith("p ended its answer without a word")


def test_a_stream_without_an_end_is_an_answer_without_a_word():
    provider, _, _ = retried([[], "well"])

    assert answer(provider) == "well"


@pytest.mark.parametrize(
    "message",
    [
        Message(role="assistant", stop_reason="refusal"),
        Message(role="assistant", stop_reason="max_tokens"),
        assistant(Block(type="tool_use", id="1", name="ls", input={})),
        assistant(Block(type="image", data="AAAA", media_type="image/png")),
        assistant(Block(type="opaque", raw={})),
    ],
)
def test_an_answer_of_something_else_than_words_is_an_answer(message: Message):
    provider, inner, _ = retried([[done(message)]])

    assert events(provider) == [done(message)]
    assert len(inner.requests) == 1


@pytest.mark.parametrize(("usage", "asked"), [(Usage(input=9, output=2), 1), (Usage(input=9, output=0), 2), (None, 2)])
def test_silence_after_tools_is_an_answer_where_it_was_counted(usage: Usage | None, asked: int):
    request = Request(model="m", messages=(user(tool_result("1", "done")),))
    silent = Message(role="assistant", usage=usage, stop_reason="end_turn")
    provider, inner, _ = retried([[done(silent)], "well"])

    events(provider, request)

    assert len(inner.requests) == asked


def test_a_field_that_was_refused_is_left_out_at_once_and_only_once():
    refused = errors.BadRequest(said="unknown field: seed")
    refused.left_out = "seed"
    provider, inner, clock = retried([refused, "well"], policy=RetryPolicy(max_retries=0))

    assert answer(provider) == "well"
    assert clock.slept == [0.0]

    provider, inner, _ = retried([refused] * 9)
    with pytest.raises(errors.BadRequest):
        events(provider)

    assert len(inner.requests) == 2


def test_whoever_goes_away_ends_the_wait_and_the_request():
    closed = []

    class Slow(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            try:
                yield text_delta("x")
                await asyncio.sleep(3600)
            finally:
                closed.append("stream")

    async def stop_after_the_first() -> None:
        async with aclosing(WithRetry(Slow()).stream(REQUEST)) as stream:
            async for _ in stream:
                break

    async def cancel_the_wait() -> None:
        provider = WithRetry(ScriptedProvider([RateLimited(retry_after=50)]))
        task = asyncio.ensure_future(anext(aiter_without_notices(provider)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stop_after_the_first())
    asyncio.run(cancel_the_wait())

    assert closed == ["stream"]


async def aiter_without_notices(provider: WithRetry) -> AsyncGenerator[StreamEvent, None]:
    async for event in provider.stream(REQUEST):
        if event.type != "notice":
            yield event
