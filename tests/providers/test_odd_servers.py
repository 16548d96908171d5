"""Answers of servers that speak a wire almost: fields doubled, left out, in another type, or marks of another wire."""

from __future__ import annotations

from typing import Any

import pytest

from larik_nb import errors
from larik_nb.providers._wire import Adapter
from larik_nb.providers.anthropic import Anthropic
from larik_nb.providers.gemini import Gemini
from larik_nb.providers.openai import OpenAI
from larik_nb.providers.openai_compatible import OpenAICompatible
from larik_nb.types import Message
from tests.providers._decode import OFFERED, decode, joined, sse

BEGUN = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3, "output_tokens": 1}}}
DELTA = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}
STOP = {"type": "message_stop"}
COMPLETED = {"type": "response.completed", "response": {"status": "completed", "output": []}}


def read(adapter: Adapter, *frames: Any) -> Message:
    """Return the message of a stream, whose deltas show what it keeps."""
    events, message = decode(adapter, sse(*frames), request=OFFERED)
    assert joined(events, "text_delta") == message.text
    assert joined(events, "thinking_delta") == message.thinking
    shown = {call.id: "".join(e.text for e in events if e.type == "tool_input_delta" and e.id == call.id) for call in message.tool_calls}  # fmt: skip
    assert all(shown.values())
    return message


def inputs(message: Message) -> list[Any]:
    return [call.input for call in message.tool_calls]


# -- messages -------------------------------------------------------------------------------------------------------
def begun(given: Any, index: int = 0) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"t{index}", "name": "read", "input": given}
    return {"type": "content_block_start", "index": index, "content_block": block}


def fragment(text: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param(
            [begun({"path": 1}), fragment(""), {"type": "content_block_stop", "index": 0}], id="empty fragment"
        ),
        pytest.param([begun({"path": 1})], id="block never stopped"),
        pytest.param([begun('{"path": 1}'), {"type": "content_block_stop", "index": 0}], id="text"),
        pytest.param([begun({}), fragment(None), fragment('{"path": 1}')], id="null fragment"),
        pytest.param([begun({"path": 2}), fragment('{"path": 1}')], id="fragments win"),
    ],
)
def test_input_that_comes_with_the_start_of_a_call(frames: list[Any]) -> None:
    """The input counts wherever it stands, once."""
    assert inputs(read(Anthropic(provider="p"), BEGUN, *frames, DELTA, STOP)) == [{"path": 1}]


def test_two_calls_that_are_never_stopped() -> None:
    """Each keeps its own input."""
    message = read(Anthropic(provider="p"), BEGUN, begun({"path": 1}), begun({"path": 2}, 1), DELTA, STOP)

    assert inputs(message) == [{"path": 1}, {"path": 2}]


def test_another_wires_end_mark_ends_a_message_that_has_its_reason() -> None:
    """Gateways end every stream alike, as `sse` does here; before the reason to stop it ends nothing."""
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}

    assert read(Anthropic(provider="p"), BEGUN, text, DELTA).text == "hi"
    with pytest.raises(errors.ServerError):
        read(Anthropic(provider="p"), BEGUN, text)


# -- responses ------------------------------------------------------------------------------------------------------
ITEM = {"type": "function_call", "id": "f", "call_id": "c", "name": "read"}


def test_arguments_that_come_as_an_object() -> None:
    """They are read, not refused."""
    done = {"type": "response.output_item.done", "output_index": 0, "item": {**ITEM, "arguments": {"path": 1}}}

    assert inputs(read(OpenAI(provider="p"), done, COMPLETED)) == [{"path": 1}]


def test_pieces_that_come_only_whole() -> None:
    """A server that sends no deltas is read by its `.done` events."""
    message = read(
        OpenAI(provider="p"),
        {"type": "response.reasoning_text.done", "item_id": "r", "output_index": 0, "text": "hm"},
        {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "id": "t"}},
        {"type": "response.output_text.done", "item_id": "t", "output_index": 1, "text": "hi"},
        {"type": "response.output_item.added", "output_index": 2, "item": {**ITEM, "arguments": ""}},
        {
            "type": "response.function_call_arguments.done",
            "item_id": "f",
            "output_index": 2,
            "arguments": '{"path": 1}',
        },
        COMPLETED,
    )

    assert (message.thinking, message.text, inputs(message)) == ("hm", "hi", [{"path": 1}])


def test_pieces_that_came_in_deltas_are_not_said_twice() -> None:
    """A `.done` event repeats what its deltas said."""
    at = {"item_id": "t", "output_index": 0}
    message = read(
        OpenAI(provider="p"),
        {"type": "response.output_text.delta", **at, "delta": "h"},
        {"type": "response.output_text.delta", **at, "delta": "i"},
        {"type": "response.output_text.done", **at, "text": "hi"},
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "id": "t", "content": [{"type": "output_text", "text": "hi"}]}},
        COMPLETED,
    )  # fmt: skip

    assert message.text == "hi"


def test_an_end_that_is_called_done() -> None:
    """The response says how it ended."""
    end = {"type": "response.done", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}}  # fmt: skip

    assert (
        read(OpenAI(provider="p"), {"type": "response.output_text.delta", "delta": "hi"}, end).stop_reason
        == "max_tokens"
    )


# -- generateContent ------------------------------------------------------------------------------------------------
def candidate(*parts: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": "STOP"}]}


def test_parts_of_other_types() -> None:
    """Nothing where a part belongs is nothing; arguments may be text; an image may be empty."""
    call = {"functionCall": {"name": "read", "args": '{"path": 1}'}}
    message = read(Gemini(), candidate(None, {"text": "hi"}, {"inlineData": {"mimeType": "image/png"}}, call))

    assert (message.text, inputs(message)) == ("hi", [{"path": 1}])


# -- chat completions -----------------------------------------------------------------------------------------------
def chunk(delta: dict[str, Any], reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason, **fields}]}


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("STOP", "end_turn"), ("eos_token", "end_turn"), ("end_turn", "end_turn"), ("COMPLETE", "end_turn"),
        ("stop_sequence", "stop_sequence"), ("MAX_TOKENS", "max_tokens"), ("model_length", "max_tokens"),
        ("tool_call", "tool_use"), ("surprise", "other"),
    ],
)  # fmt: skip
def test_other_wires_reasons_to_stop(told: str, meant: str) -> None:
    """Gateways pass on the words of the server behind them."""
    assert read(OpenAICompatible(provider="p"), chunk({"content": "hi"}), chunk({}, told)).stop_reason == meant


def test_an_error_in_a_choice_is_judged_by_itself() -> None:
    """What failed stands beside the reason to stop, which says only that something did."""
    with pytest.raises(errors.RateLimited, match="slow down"):
        read(OpenAICompatible(provider="p"), chunk({}, "error", error={"code": 429, "message": "slow down, please"}))


def test_reasoning_under_another_name() -> None:
    """A host's own name for the thoughts is read as theirs."""
    frames = [chunk({"content": None, "reasoning_text": "hm"}), chunk({"content": "hi"}), chunk({}, "stop")]

    assert read(OpenAICompatible(provider="p"), *frames).thinking == "hm"
