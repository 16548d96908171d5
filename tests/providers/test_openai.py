"""The Responses API: requests as a whole, and what comes back the next turn."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from larik_nb import errors
from larik_nb.catalog import Model
from larik_nb.frames import reader
from larik_nb.providers.openai import OpenAI
from larik_nb.types import Block, Message, Request, StreamEvent, ToolSpec, assistant, text_block, tool_result, user
from tests.providers._decode import encoded

CASES = Path(__file__).parents[1] / "wire" / "openai.responses"
PNG = Block(type="image", media_type="image/png", data="iVBORw0KGgo=")
PDF = Block(type="document", media_type="application/pdf", data="JVBERi0=", name="tides.pdf")
NOTE = Block(type="document", media_type="text/plain", data=base64.b64encode("Ebb: é".encode()).decode(), name="n.txt")
SEALED = {"include": ["reasoning.encrypted_content"]}

MODELS: dict[str, dict[str, Any]] = {
    "thinks": {"thinking": ("effort",), "efforts": ("low", "medium", "high"), "sampling": "no", "max_output": 128_000},
    "optional": {"thinking": ("effort",), "efforts": ("none", "low", "high"), "sampling": "effort_none"},
    "quiet": {"thinking": ("effort",), "efforts": ("none", "low"), "default_effort": "none", "sampling": "effort_none"},
    "plain": {"thinking": (), "efforts": (), "sampling": "yes", "max_output": 16_384},
}


def abilities(model: str) -> Model | None:
    return Model(provider="openai", id=model, **MODELS[model]) if model in MODELS else None


ADAPTER = OpenAI(provider="openai", abilities=abilities)


def encode(*messages: Message, model: str = "unknown", **fields: Any) -> dict[str, Any]:
    return encoded(ADAPTER, Request(model=model, messages=messages or (user("Hi"),), **fields)).body


def settings(**fields: Any) -> dict[str, Any]:
    """Return the body without what every request has."""
    body = encode(**fields)
    return {name: value for name, value in body.items() if name not in ("model", "input", "stream", "store")}


def decode(events: list[Any], model: str = "m") -> tuple[list[StreamEvent], Message]:
    decoder = ADAPTER.decoder(Request(model=model, messages=()))
    shown = [shown for event in events for shown in decoder.event("", event)]
    return shown, decoder.finish()


def read(name: str, model: str = "m") -> tuple[list[StreamEvent], Message]:
    """Decode a case of our own as the answer to `model`."""
    frames = reader("sse")
    body = json.loads((CASES / f"{name}.json").read_bytes())["response"]["body"].encode()
    return decode([data for _, data in [*frames.feed(body), *frames.finish()]], model)


def test_a_plain_question() -> None:
    """The smallest request: streamed, stored nowhere, its reasoning sealed and handed over."""
    wire = encoded(ADAPTER, Request(model="unknown", messages=(user("Hi"),)))
    assert (wire.path, wire.headers) == ("/responses", {})
    assert wire.body == {
        "model": "unknown",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        "stream": True,
        "store": False,
        **SEALED,
    }
    assert ADAPTER.credential("k") == {"Authorization": "Bearer k"}
    assert ADAPTER.credential(None) == {}


def test_a_conversation_with_tools_and_media() -> None:
    """Instructions, tools, parallel calls, their results with an image and a PDF, documents."""
    tool = ToolSpec(
        name="plot", description="Draws.", parameters={"type": "object", "properties": {"n": {"type": "integer"}}}
    )
    body = encode(
        user("Plot both.", PDF, NOTE),
        assistant(
            "Sure.",
            Block(type="tool_use", id="call_1", name="plot", input={"n": 1, "title": "é"}),
            Block(type="tool_use", id="call_2", name="plot", input_raw='{"n":'),
        ),
        user(tool_result("call_1", "done", images=[PNG, PDF]), tool_result("call_2", "not run", is_error=True)),
        user("And?", PNG),
        system="Be brief.",
        tools=(tool, ToolSpec(name="stop")),
        max_tokens=99,
    )
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}
    pdf = {"type": "input_file", "filename": "tides.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}
    assert body == {
        "model": "unknown",
        "instructions": "Be brief.",
        "stream": True,
        "store": False,
        "max_output_tokens": 99,
        **SEALED,
        "tools": [
            {
                "type": "function",
                "name": "plot",
                "description": "Draws.",
                "parameters": tool.parameters,
                "strict": False,
            },
            {
                "type": "function",
                "name": "stop",
                "description": "",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            },
        ],
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Plot both."},
                    pdf,
                    {"type": "input_text", "text": '<document name="n.txt">\nEbb: é\n</document>'},
                ],
            },
            {"type": "message", "role": "assistant", "content": "Sure."},
            {"type": "function_call", "call_id": "call_1", "name": "plot", "arguments": '{"n":1,"title":"é"}'},
            {"type": "function_call", "call_id": "call_2", "name": "plot", "arguments": '{"INVALID_JSON":"{\\"n\\":"}'},
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_text", "text": "done"}, image, pdf],
            },
            {"type": "function_call_output", "call_id": "call_2", "output": "Error: not run"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And?"}, image]},
        ],
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model": "unknown", "effort": "max"}, {**SEALED, "reasoning": {"summary": "auto", "effort": "max"}}),
        ({"model": "unknown", "temperature": 0.3}, {**SEALED, "temperature": 0.3}),
        ({"model": "thinks"}, {**SEALED, "reasoning": {"summary": "auto"}}),
        ({"model": "thinks", "effort": "minimal"}, {**SEALED, "reasoning": {"summary": "auto", "effort": "low"}}),
        (
            {"model": "thinks", "effort": "max", "temperature": 1.0},
            {**SEALED, "reasoning": {"summary": "auto", "effort": "high"}},
        ),
        ({"model": "thinks", "thinking_budget": 0}, {**SEALED, "reasoning": {"summary": "auto"}}),
        (
            {"model": "optional", "thinking_budget": 0, "temperature": 0.3, "top_p": 0.9},
            {**SEALED, "reasoning": {"summary": "auto", "effort": "none"}, "temperature": 0.3, "top_p": 0.9},
        ),
        ({"model": "optional", "temperature": 0.3}, {**SEALED, "reasoning": {"summary": "auto"}}),
        ({"model": "quiet", "temperature": 0.3}, {**SEALED, "reasoning": {"summary": "auto"}, "temperature": 0.3}),
        ({"model": "plain", "effort": "high", "temperature": 0.3}, {"temperature": 0.3}),
        ({"model": "plain", "max_tokens": 10**6}, {"max_output_tokens": 16_384}),
    ],
)
def test_settings_follow_the_models_abilities(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """Effort and sampling go out as the model takes them, never by its name."""
    assert settings(**fields) == expected


def test_reasoning_goes_back_whole_and_in_order() -> None:
    """The sealed item precedes its calls exactly as it came; its readable summary is for the eye only."""
    _, message = read("thinking-two-tools")
    assert message.thinking == "First this.\n\nThen that."
    items = encode(user("a"), message, user(tool_result("call_a", "1"), tool_result("call_b", "2")), model="m")["input"]
    assert [item["type"] for item in items] == [
        "message",
        "reasoning",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert items[1] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "First this."}, {"type": "summary_text", "text": "Then that."}],
        "encrypted_content": "c2VhbGVk",
    }
    assert Message.from_json(message.to_json()) == message


def test_sealed_items_stay_with_their_model() -> None:
    """Another model, or the same one by another route, gets words and calls only."""
    _, message = read("server-tool")
    for body in (
        encode(user("a"), message, user("b"), model="another"),
        encoded(OpenAI(provider="gateway"), Request(model="m", messages=(user("a"), message, user("b")))).body,
    ):
        assert [item["type"] for item in body["input"]] == ["message", "message", "message"]
    assert [item["type"] for item in encode(user("a"), message, user("b"), model="m")["input"]] == [
        "message",
        "web_search_call",
        "message",
        "message",
    ]


def test_bare_reasoning_is_not_sent() -> None:
    """Nothing is stored, so a reasoning item that is only an id could not be found by the server."""
    item = Block(type="opaque", provider="openai", raw={"type": "reasoning", "id": "rs_1", "summary": []})
    message = Message(role="assistant", blocks=(item, text_block("Hi")), model="m")
    assert [item["type"] for item in encode(user("a"), message, user("b"), model="m")["input"]] == ["message"] * 3


def test_the_phase_of_a_text_goes_back() -> None:
    """Models that label commentary and final answer want the label again, and only they."""
    item = {
        "type": "message",
        "id": "msg_1",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "Looking."}],
    }
    _, message = decode([{"type": "response.completed", "response": {"status": "completed", "output": [item]}}])
    said = {"type": "message", "role": "assistant", "content": "Looking."}
    assert encode(user("a"), message, model="m")["input"][1] == {**said, "phase": "commentary"}
    assert encode(user("a"), message, model="another")["input"][1] == said


def test_a_refusal_is_noted_and_remembered() -> None:
    """The user is told, the answer's text stays empty, and the next turn shows the model that it declined."""
    events, message = read("refusal")
    assert [event.text for event in events if event.type == "notice"] == [
        "The model declined to answer: I would rather not."
    ]
    assert (message.text, message.stop_reason) == ("", "refusal")
    items = encode(user("a"), message, user("b"), model="m")["input"]
    assert items[1] == {"type": "message", "role": "assistant", "content": "I would rather not."}


def test_an_empty_answer_is_one_empty_text() -> None:
    """An answer without a block has one, so that nothing downstream meets an empty message."""
    _, message = read("empty")
    assert (message.blocks, message.usage) == ((text_block(""),), None)


def test_summary_and_thoughts_are_shown_once() -> None:
    """A server that sends both a summary and the thoughts is heard once."""
    key = {"item_id": "rs", "output_index": 0}
    item = {"type": "reasoning", "id": "rs", "summary": [{"text": "Short."}], "content": [{"text": "Long."}]}
    events, message = decode(
        [
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs"}},
            {"type": "response.reasoning_text.delta", **key, "delta": "Long."},
            {"type": "response.reasoning_summary_text.delta", **key, "delta": "Short."},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
        ]
    )
    assert message.thinking == "Long."
    assert "".join(event.text for event in events) == "Long."


def test_items_that_overlap_keep_their_places() -> None:
    """A reasoning item that begins within a text and ends after it stands behind it."""
    text = {"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "Yes."}]}
    sealed = {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "x"}
    _, message = decode(
        [
            {"type": "response.output_item.added", "output_index": 0, "item": {**text, "content": []}},
            {"type": "response.output_text.delta", "output_index": 0, "item_id": "m1", "delta": "Ye"},
            {"type": "response.output_item.added", "output_index": 1, "item": {"type": "reasoning", "id": "r1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": text},
            {"type": "response.output_item.done", "output_index": 1, "item": sealed},
            {"type": "response.completed", "response": {"status": "completed", "output": [text, sealed]}},
        ]
    )
    assert message.text == "Yes."
    assert [block.type for block in message.blocks if block.type == "opaque"] == ["opaque"]


def test_an_id_that_changes_is_the_same_item() -> None:
    """Servers that give an item another id when it is done do not make it two."""
    text = {"type": "message", "id": "first", "content": [{"type": "output_text", "text": "Once."}]}
    _, message = decode(
        [
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "first"}},
            {"type": "response.output_text.delta", "output_index": 0, "item_id": "first", "delta": "Once."},
            {"type": "response.output_item.done", "output_index": 0, "item": {**text, "id": "second"}},
            {"type": "response.completed", "response": {"status": "completed", "output": [{**text, "id": "third"}]}},
        ]
    )
    assert message.text == "Once."


@pytest.mark.parametrize("data", [5, [], {"type": "response.output_text.delta", "delta": 3}])
def test_strange_frames_are_bad_wire(data: Any) -> None:
    """What is no event of this API is said to be so."""
    with pytest.raises(errors.BadWire):
        list(ADAPTER.decoder(Request(model="m", messages=())).event("", data))
