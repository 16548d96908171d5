"""A conversation: what it keeps, what it takes back, and what it counts."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from larik_nb import Session, _sending
from larik_nb.agent.session import Spent
from larik_nb.errors import BadWire, ConfigError, RateLimited
from larik_nb.providers.scripted import ScriptedProvider
from larik_nb.types import Block, Request, StreamEvent, Usage, assistant, done, text_delta, tool_result

SETTINGS = {"pricing": {"priced/script": {"input": 10.0, "output": 100.0}}}


def texts(session: Session) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in session.history]


def test_the_history_goes_along_and_the_next_turn_sees_it():
    provider = ScriptedProvider(["one", "two"])
    session = Session(provider, system="Be brief.")

    session.ask("first")
    answer = session.ask("second", effort="high")

    assert answer.text == "two"
    assert texts(session) == [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")]
    last = provider.requests[-1]
    assert [m.text for m in last.messages] == ["first", "one", "second"]
    assert (last.system, last.effort) == ("Be brief.", "high")


def test_another_model_goes_on_with_the_same_history():
    first, second = ScriptedProvider(["one"]), ScriptedProvider(["two"], name="other")
    session = Session(first)
    session.ask("a")

    session.ask("b", model=second)
    session.model = second
    session.ask("c")

    assert [m.text for m in second.requests[0].messages] == ["a", "one", "b"]
    assert [turn.provider for turn in session.turns] == ["scripted", "other", "other"]


def test_plain_and_async_doors_are_the_same():
    async def both() -> tuple[str, list[str]]:
        session = Session(ScriptedProvider(["one", "two three"]))
        answer = await session.aask("a")
        return answer.text, [event.type async for event in session.astream("b")]

    assert asyncio.run(both()) == ("one", ["text_delta", "text_delta", "done"])
    assert [e.type for e in Session(ScriptedProvider(["two three"])).stream("b")] == ["text_delta"] * 2 + ["done"]


def test_usage_and_cost_are_summed_by_the_model_that_answered():
    provider = ScriptedProvider(["x", "y"], name="priced", usage=Usage(input=1000, output=100))
    session = Session(provider, config=SETTINGS)

    answer = session.ask("a")
    session.ask("b")

    assert answer.cost_usd == pytest.approx(0.02)
    assert session.history[-1].cost_usd == pytest.approx(0.02)
    assert session.usage == Usage(input=2000, output=200)
    assert session.cost_usd == pytest.approx(0.04)
    assert session.spent == Spent(usd=pytest.approx(0.04))


def test_an_unknown_price_makes_the_sum_a_lower_bound():
    priced = ScriptedProvider(["x"], name="priced", usage=Usage(input=1000, output=100))
    unknown = ScriptedProvider(["y"], name="mystery", usage=Usage(input=1, output=1))
    session = Session(priced, config=SETTINGS)

    session.ask("a")
    session.ask("b", model=unknown)

    assert session.cost_usd is None
    assert session.spent == Spent(usd=pytest.approx(0.02), at_least=True)


def test_an_answer_without_usage_has_unknown_cost_not_none():
    session = Session(ScriptedProvider(["x"], name="priced"), config=SETTINGS)

    assert session.ask("a").cost_usd is None
    assert session.usage is None


def test_a_failure_before_output_takes_the_question_back():
    """Asking again does not double it, and nothing else is lost."""
    provider = ScriptedProvider(["one", RateLimited("slow down"), "two"])
    session = Session(provider)
    session.ask("a")

    with pytest.raises(RateLimited):
        session.ask("b")

    assert texts(session) == [("user", "a"), ("assistant", "one")]
    assert len(session.turns) == 1
    session.ask("b")
    assert [m.text for m in provider.requests[-1].messages] == ["a", "one", "b"]


def test_a_failure_with_part_of_an_answer_keeps_it():
    partial = replace(assistant("half an"), usage=Usage(input=5, output=2))
    session = Session(
        ScriptedProvider([RateLimited("slow down", partial=partial), "more"], name="priced"), config=SETTINGS
    )

    with pytest.raises(RateLimited):
        session.ask("a")

    assert texts(session) == [("user", "a"), ("assistant", "half an")]
    kept = session.history[-1]
    assert (kept.stop_reason, kept.usage) == ("interrupted", Usage(input=5, output=2))
    assert session.turns[0].cost_usd == pytest.approx((5 * 10 + 2 * 100) / 1e6)
    assert session.ask("go on").text == "more"


def test_a_call_cut_off_is_never_left_open():
    call = Block(type="tool_use", id="c1", name="add", input_raw='{"a": ')
    session = Session(ScriptedProvider([RateLimited("cut", partial=assistant("let me", call))]))

    with pytest.raises(RateLimited):
        session.ask("a")

    assert [block.type for block in session.history[-1].blocks] == ["text"]


def test_a_call_nobody_answered_is_answered_before_the_next_question():
    call = Block(type="tool_use", id="c1", name="add", input={"a": 1})
    provider = ScriptedProvider([assistant(call), "fine", assistant(call), "three"])
    session = Session(provider)
    session.ask("a")

    session.ask("never mind")
    results = [b for b in provider.requests[-1].messages[-1].blocks if b.type == "tool_result"]
    assert [(b.id, b.is_error) for b in results] == [("c1", True)]

    session.ask("again")
    session.ask(tool_result("c1", "3"))
    assert [b.content for b in provider.requests[-1].messages[-1].blocks] == ["3"]


def test_leaving_the_stream_keeps_and_bills_what_was_heard():
    provider = ScriptedProvider(["one two three four", "next"], name="priced", delay_s=0.05)
    session = Session(provider, config=SETTINGS)

    with session.stream("count") as events:
        heard = next(events).text + next(events).text

    kept = session.history[-1]
    assert (kept.text, kept.stop_reason) == (heard, "interrupted")
    assert kept.usage.estimated
    assert kept.usage.output > 0
    assert session.turns[0].cost_usd > 0
    assert session.ask("next").text == "next"


def test_the_estimate_is_corrected_by_the_last_count():
    """One prompt was reported at four times the guess; the next guess follows."""

    async def interrupted(session: Session) -> Usage:
        stream = session.astream("x" * 400)
        await anext(stream)
        await stream.aclose()
        return session.history[-1].usage

    fresh = asyncio.run(interrupted(Session(ScriptedProvider(["a b c"]))))
    reported = replace(assistant("ok"), usage=Usage(input=400, output=1))
    taught = Session(ScriptedProvider([reported, "a b c"]))
    taught.ask("x" * 400)

    assert fresh.input == 100
    assert asyncio.run(interrupted(taught)).input > 2 * 400


def test_stopping_before_any_text_takes_the_question_back_and_bills_the_prompt():
    class Silent:
        name = "priced"
        model = "script"

        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            await asyncio.sleep(3600)
            yield text_delta("never")

    session = Session(Silent(), config=SETTINGS)
    with session.stream("hello there, anybody?") as events:
        assert not events.ready(0.05)

    assert session.history == []
    assert session.turns[0].usage.output == 0
    assert session.turns[0].usage.input > 0


def test_stopping_before_anything_was_sent_bills_nothing():
    class Connecting:
        name = "priced"
        model = "script"

        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            _sending.begin()
            await asyncio.sleep(3600)
            yield text_delta("never")

    session = Session(Connecting(), config=SETTINGS)
    with session.stream("hello there, anybody?") as events:
        assert not events.ready(0.05)

    assert (session.history, session.turns) == ([], [])


def test_the_sessions_effort_goes_to_a_provider_of_ones_own_as_well():
    provider = ScriptedProvider()
    session = Session(provider)
    session.effort = "high"
    session.ask("hi")
    session.ask("hi", effort="low")

    assert [request.effort for request in provider.requests] == ["high", "low"]


def test_a_cancelled_task_leaves_the_session_usable():
    async def scenario() -> Session:
        session = Session(ScriptedProvider(["a b c", "fine"], delay_s=0.2))
        task = asyncio.create_task(session.aask("slow"))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.aask("next")
        return session

    session = asyncio.run(scenario())

    assert texts(session) == [("user", "slow"), ("assistant", "a "), ("user", "next"), ("assistant", "fine")]


def test_closing_after_the_end_changes_nothing():
    session = Session(ScriptedProvider(["one"]))
    with session.stream("a") as events:
        while next(events).type != "done":
            pass

    assert texts(session) == [("user", "a"), ("assistant", "one")]
    assert session.history[-1].stop_reason == "end_turn"


def test_a_second_question_at_once_is_refused():
    session = Session(ScriptedProvider(["a b c d"], delay_s=0.05))
    events = session.stream("first")
    next(events)

    with pytest.raises(RuntimeError, match="still answering"):
        session.ask("second")

    events.close()
    assert threading.active_count() < 10
    assert [m.text for m in session.history if m.role == "user"] == ["first"]


def test_a_bug_elsewhere_takes_the_question_back():
    session = Session(ScriptedProvider([ZeroDivisionError("a bug")]))

    with pytest.raises(ZeroDivisionError):
        session.ask("a")

    assert session.history == []


def test_turns_say_where_they_were_asked_and_how_long_they_took():
    times = iter([10.0, 12.5])
    session = Session(ScriptedProvider(["x"], model="m1"), clock=lambda: next(times))

    session.ask("a", cell=7)

    turn = session.turns[0]
    assert (turn.cell, turn.seconds, turn.model, turn.provider, turn.stop_reason) == (
        7,
        2.5,
        "m1",
        "scripted",
        "end_turn",
    )


def test_a_missing_key_is_said_when_asked_and_nothing_is_kept():
    session = Session("anthropic/claude-sonnet-5-5")

    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        session.ask("a")

    assert (session.history, session.turns) == ([], [])


def test_a_setting_that_does_not_exist_is_named():
    session = Session(ScriptedProvider())

    with pytest.raises(TypeError, match="temprature"):
        session.ask("a", temprature=1)

    assert session.history == []


@pytest.mark.parametrize("content", [{"a": 1}, 5, None, ["text"], b"text"])
def test_what_is_neither_text_nor_block_is_refused_by_its_name(content: object):
    provider = ScriptedProvider()
    session = Session(provider)

    with pytest.raises(TypeError, match=f"not of {type(content).__name__}: put it into words first"):
        session.ask("look at", content)

    assert (session.history, provider.requests) == ([], [])


def test_reset_forgets_the_words_and_keeps_the_bill():
    session = Session(ScriptedProvider(["x"], usage=Usage(input=1, output=1)))
    session.ask("a")

    session.reset()

    assert session.history == []
    assert session.usage == Usage(input=1, output=1)


class _Odd:
    """Streams what it is told, whether or not a provider may."""

    name = "odd"

    def __init__(self, *events: StreamEvent | Exception) -> None:
        self._events = events

    async def stream(self, _request: Request) -> AsyncGenerator[StreamEvent, None]:
        for event in self._events:
            if isinstance(event, Exception):
                raise event
            yield event


@pytest.mark.parametrize("error", [RateLimited("slow down"), ZeroDivisionError()])
def test_the_question_that_failed_goes_and_not_an_earlier_one_in_the_same_words(error: Exception):
    session = Session(ScriptedProvider(["one"]))
    session.ask("same words")

    with pytest.raises(type(error)):
        session.ask("same words", model=_Odd(error))

    assert texts(session) == [("user", "same words"), ("assistant", "one")]


def test_what_comes_behind_the_done_is_not_read():
    session = Session(_Odd(text_delta("a"), done(assistant("a")), text_delta("b"), done(assistant("b"))))

    assert [event.type for event in session.stream("q")] == ["text_delta", "done"]
    assert texts(session) == [("user", "q"), ("assistant", "a")]
    assert len(session.turns) == 1


def test_an_answer_without_its_done_is_an_error_and_keeps_what_came():
    session = Session(_Odd(text_delta("a")))

    with pytest.raises(BadWire, match="no end"):
        list(session.stream("q"))

    assert texts(session) == [("user", "q"), ("assistant", "a")]
    assert session.history[-1].stop_reason == "interrupted"


@pytest.mark.parametrize("ends", [(done(assistant("a")),), (RateLimited("slow down"),)])
def test_a_conversation_that_is_reset_while_it_is_answered_stays_empty(ends: tuple[StreamEvent | Exception, ...]):
    session = Session(_Odd(text_delta("a"), *ends))

    with contextlib.suppress(RateLimited):
        for _ in session.stream("q"):
            session.reset()

    assert session.history == []
    assert len(session.turns) == 1


class _Clumsy:
    """Fails to close, as nested generators do that a loop closes all at once."""

    name = "clumsy"

    async def stream(self, _request: Request) -> AsyncGenerator[StreamEvent, None]:
        try:
            yield text_delta("one ")
        finally:
            raise RuntimeError


def test_what_came_stays_when_the_provider_fails_to_close():
    async def leave(session: Session) -> None:
        events = session.astream("q")
        await anext(events)
        await events.aclose()

    session = Session(_Clumsy())
    with pytest.raises(RuntimeError):
        asyncio.run(leave(session))

    assert texts(session) == [("user", "q"), ("assistant", "one ")]
    assert session.history[-1].stop_reason == "interrupted"
    session.ask("again", model=ScriptedProvider(["two"]))
