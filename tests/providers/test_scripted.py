"""The scripted provider: replies in order, requests kept, faults on demand, and a demonstration for anybody."""

from __future__ import annotations

import asyncio

import pytest

from larik_nb import portal
from larik_nb.errors import ConfigError, RateLimited
from larik_nb.providers import connect
from larik_nb.providers.scripted import ScriptedProvider, demo, pieces
from larik_nb.types import Block, Message, Request, StreamEvent, Usage, assistant, text_delta, user


def ask(provider: ScriptedProvider, text: str = "hi") -> list[StreamEvent]:
    return list(portal.stream(provider, Request(model="m", messages=(user(text),))))


def test_replies_come_in_order_and_then_done():
    provider = ScriptedProvider(["one", "two"])

    assert [ask(provider)[-1].message.text for _ in range(4)] == ["one", "two", "Done.", "Done."]


def test_deltas_join_to_the_answer_and_requests_are_kept():
    provider = ScriptedProvider(["a longer\n\nanswer  with   gaps "])

    events = ask(provider, "what?")

    assert len(events) > 3
    assert "".join(e.text for e in events if e.type == "text_delta") == events[-1].message.text
    assert provider.requests[0].messages[0].text == "what?"


def test_a_message_brings_its_own_model_usage_and_stop_reason():
    reply = Message(
        role="assistant",
        blocks=(Block(type="thinking", text="hm", signature="s"), Block(type="text", text="yes")),
        model="served-1",
        provider="elsewhere",
        usage=Usage(input=3, output=2),
        stop_reason="max_tokens",
    )

    done = ask(ScriptedProvider([reply]))[-1]

    assert (done.message.model, done.message.provider, done.message.requested_model) == ("served-1", "elsewhere", "m")
    assert (done.usage, done.stop_reason) == (Usage(input=3, output=2), "max_tokens")
    assert done.message.thinking == "hm"


def test_a_tool_call_streams_its_arguments_and_stops_for_it():
    call = Block(type="tool_use", id="c1", name="add", input={"a": 1, "b": [2, 3]})

    events = ask(ScriptedProvider([assistant("let me see", call)]))

    fragments = "".join(e.text for e in events if e.type == "tool_input_delta")
    assert fragments == '{"a": 1, "b": [2, 3]}'
    assert [e.name for e in events if e.type == "tool_use_start"] == ["add"]
    assert events[-1].stop_reason == "tool_use"


def test_an_error_is_raised_after_what_had_arrived():
    """The error names the route, as a wire's would."""
    error = RateLimited("slow down", partial=assistant("half an"))
    events = portal.stream(ScriptedProvider([error]), Request(model="m", messages=(user("x"),)))

    assert next(events).text + next(events).text == "half an"
    with pytest.raises(RateLimited) as caught:
        next(events)
    assert (caught.value.provider, caught.value.model) == ("scripted", "m")


def test_a_function_sees_the_request_and_events_pass_as_they_are():
    def reply(request: Request) -> list[StreamEvent]:
        text = request.messages[-1].text.upper()
        return [text_delta(text), StreamEvent(type="done", message=assistant(text))]

    assert [e.text for e in ask(ScriptedProvider([reply]), "loud")] == ["LOUD", ""]


def test_delays_wait_on_the_given_clock():
    """Each delta waits, the end does not."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    events = ask(ScriptedProvider(["one two three"], delay_s=0.5, sleep=sleep))

    assert slept == [0.5] * (len(events) - 1)


def test_pieces_lose_nothing():
    text = "  a\tb\n\n c  "

    assert "".join(pieces(text)) == text


def test_demo_answers_by_its_name_without_a_key():
    provider = connect("scripted/demo")

    events = ask(provider, "Why is | the sky `blue`?")
    answer = events[-1].message.text

    assert len(events) > 30
    assert "**Why is the sky blue?**" in answer
    assert "```python" in answer
    assert "|---|" in answer
    assert events[-1].usage.output > 50
    assert (events[-1].message.provider, events[-1].message.model) == ("scripted", "demo")


def test_demo_code_runs_whatever_is_asked():
    """A question with quotes and braces still makes valid Python."""
    for question in ["it's \"so\" {x} \\n ''' end", "", "x" * 500, "многоязычный 问题"]:
        answer = ask(demo(delay_s=0), question)[-1].message.text
        code = answer.split("```python\n")[1].split("```")[0]
        compile(code, "demo", "exec")


def test_another_script_is_not_to_be_had_by_name():
    with pytest.raises(ConfigError, match="scripted/demo"):
        ask(connect("scripted/other"))
