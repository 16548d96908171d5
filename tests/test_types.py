"""The neutral model: one line of JSON, and back equal."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb.types import Block, Message, Request, StreamEvent, ToolSpec, Usage, text_delta, thinking_delta, user

words = st.text() | st.sampled_from(["", "\u2028", "\ud800", "a\x00b", "🙂", "\r\n"])
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
kinds = st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image", "document", "opaque"])
leaves = st.builds(
    Block,
    type=kinds,
    text=st.none() | words,
    signature=st.none() | words,
    redacted=st.booleans(),
    id=st.none() | words,
    name=st.none() | words,
    input=st.none() | st.dictionaries(words, values, max_size=3),
    input_raw=st.none() | words,
    content=st.none() | words,
    is_error=st.booleans(),
    media_type=st.none() | words,
    data=st.none() | words,
    provider=st.none() | words,
    raw=values,
)
blocks = st.builds(
    lambda block, images: dataclasses.replace(block, images=tuple(images)), leaves, st.lists(leaves, max_size=2)
)
usages = st.builds(Usage, input=st.integers(0), output=st.integers(0), cache_read=st.integers(0))
messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant"]),
    blocks=st.lists(blocks, max_size=4).map(tuple),
    model=st.none() | words,
    usage=st.none() | usages,
    stop_reason=st.sampled_from([None, "end_turn", "tool_use"]),
    cost_usd=st.none() | st.floats(0, 100),
)


@given(messages)
def test_a_message_is_one_ascii_line_and_comes_back_equal(message: Message) -> None:
    line = message.to_json()

    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert Message.from_json(line) == message
    assert Message.from_json(line).to_json() == line


@given(values)
def test_what_a_vendor_needs_back_keeps_its_bytes(raw: Any) -> None:
    sent = json.dumps(raw)
    message = Message(role="assistant", blocks=[Block(type="opaque", provider="x", raw=json.loads(sent))])  # type: ignore[arg-type]

    assert json.dumps(Message.from_json(message.to_json()).blocks[0].raw) == sent


def test_records_are_frozen_and_take_lists_and_dicts() -> None:
    message = Message(role="user", blocks=[{"type": "text", "text": "hi"}])  # type: ignore[arg-type]
    request = Request(model="m", messages=[message], tools=[ToolSpec(name="f")])  # type: ignore[arg-type]

    assert message == user("hi")
    assert request.messages == (message,)
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.role = "assistant"  # type: ignore[misc]


def test_fields_of_a_later_version_are_ignored() -> None:
    assert Message.from_json('{"role":"user","blocks":[{"type":"text","text":"a","new":1}],"later":2}') == user("a")


@pytest.mark.parametrize("line", ["[]", "3", "{}", "{"])
def test_a_line_that_is_no_message_is_refused(line: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        Message.from_json(line)


def test_usage_adds_up_and_counts_the_whole_prompt() -> None:
    total = Usage(input=1, output=2, cache_read=3, cache_write=4) + Usage(input=10, output=20, estimated=True)

    assert total == Usage(input=11, output=22, cache_read=3, cache_write=4, estimated=True)
    assert total.prompt == 18


def test_a_call_whose_arguments_could_not_be_read_is_invalid() -> None:
    assert Block(type="tool_use", id="1", name="f", input_raw='{"a":').invalid
    assert not Block(type="tool_use", id="1", name="f", input={}).invalid


def test_quick_events_equal_the_constructor() -> None:
    assert text_delta("a") == StreamEvent(type="text_delta", text="a")
    assert thinking_delta("a") == StreamEvent(type="thinking_delta", text="a")
    assert type(text_delta("a")) is StreamEvent
