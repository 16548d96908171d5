"""Ollama's own wire: the window is always said, calls keep their ids, lines are read as they come."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from larik_nb import errors
from larik_nb.catalog import Model
from larik_nb.providers._replay import IMAGES_NOTE
from larik_nb.providers.ollama import NUM_CTX, Ollama
from larik_nb.types import Block, Message, Request, StreamEvent, Usage, assistant, tool_result, user
from tests.providers._decode import ASKED, OFFERED, READ, decode, encoded, joined, lines, mutated, outcome, own, values

PNG = Block(type="image", media_type="image/png", data="iVBORw0KGgo=")
NOTE = Block(type="document", media_type="text/csv", data=base64.b64encode(b"a,b").decode(), name="t.csv")
MODELS: dict[str, dict[str, Any]] = {
    "small": {"window": 2048, "sampling": "no"},
    "levels": {"efforts": ("low", "medium", "high")},
    "plain": {"thinking": (), "efforts": ()},
}


def abilities(model: str) -> Model | None:
    return Model(provider="ollama", id=model, **MODELS[model]) if model in MODELS else None


ADAPTER = Ollama(abilities=abilities)
CALL = Block(type="tool_use", id="c1", name="read", input={"path": "a"})


def encode(*messages: Message, model: str = "m", **fields: Any) -> dict[str, Any]:
    return encoded(ADAPTER, Request(model=model, messages=messages or (user("Hi"),), **fields)).body


# -- requests ---------------------------------------------------------------------------------------------------
def test_a_plain_question() -> None:
    """The window is set, and a prompt that does not fit is to be an error."""
    wire = encoded(ADAPTER, Request(model="m", messages=(user("Hi"),)))
    assert (wire.path, wire.headers) == ("/api/chat", {})
    assert wire.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": {"num_ctx": NUM_CTX},
    }
    assert ADAPTER.credential(None) == {}
    assert ADAPTER.credential("k") == {"Authorization": "Bearer k"}


def test_everything_a_request_can_say() -> None:
    """Settings and tools."""
    body = encode(
        system="Be brief.",
        tools=(READ,),
        max_tokens=9,
        effort="high",
        temperature=0.5,
        top_p=0.9,
        seed=3,
        stop=("END",),
    )
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": {
            "num_ctx": NUM_CTX,
            "num_predict": 9,
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 3,
            "stop": ["END"],
        },
        "think": "high",
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Read a file.", "parameters": READ.parameters},
            }
        ],
    }


def test_the_window_is_the_users_within_the_models() -> None:
    """A model cannot be loaded with more than it has."""
    assert encode(model="small", temperature=1.0)["options"] == {"num_ctx": 2048}
    adapter = Ollama(num_ctx=99_000)
    assert encoded(adapter, Request(model="m", messages=())).body["options"] == {"num_ctx": 99_000}


@pytest.mark.parametrize(
    ("model", "effort", "wanted"),
    [
        ("m", None, None),
        ("m", "minimal", "low"),
        ("m", "xhigh", "max"),
        ("m", "max", "max"),
        ("levels", "max", "high"),
        ("plain", "high", None),
    ],
)
def test_efforts(model: str, effort: Any, wanted: str | None) -> None:
    """A word this wire has; none for a model that does not think, since it would be refused."""
    assert encode(model=model, effort=effort).get("think") == wanted


def test_a_conversation_with_tools_and_images() -> None:
    """Results carry name and id; what tools showed follows in a user message; roles alternate."""
    thought = Block(type="thinking", text="hm", provider="ollama")
    messages = encode(
        user("Look", PNG, NOTE),
        replace(assistant(thought, "On it", CALL), model="m"),
        user(tool_result("c1", "A", images=[PNG]), "Go on"),
        replace(assistant(replace(thought, text="other"), "Done", PNG), model="n"),
        user("Nice"),
    )["messages"]
    assert messages == [
        {"role": "user", "content": 'Look\n\n<document name="t.csv">\na,b\n</document>', "images": ["iVBORw0KGgo="]},
        {
            "role": "assistant",
            "content": "On it",
            "thinking": "hm",
            "tool_calls": [{"id": "c1", "function": {"index": 0, "name": "read", "arguments": {"path": "a"}}}],
        },
        {"role": "tool", "content": "A", "tool_name": "read", "tool_call_id": "c1"},
        {"role": "user", "content": f"{IMAGES_NOTE}\n\nGo on", "images": ["iVBORw0KGgo="]},
        {"role": "assistant", "content": "Done"},
        {"role": "user", "content": "Nice", "images": ["iVBORw0KGgo="]},
    ]


# -- answers ----------------------------------------------------------------------------------------------------
def line(done: bool = False, **fields: Any) -> dict[str, Any]:
    message = {key: fields.pop(key) for key in ("content", "thinking", "tool_calls") if key in fields}
    return {"model": "served", "message": {"role": "assistant", **message}, "done": done, **fields}


def function(name: Any = "read", arguments: Any = None, **fields: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **fields}


LAST = line(True, done_reason="stop", prompt_eval_count=5, eval_count=3)


def test_thinking_text_and_counts() -> None:
    """In one message."""
    events, message = decode(
        ADAPTER, lines(line(thinking="h"), line(thinking="m"), line(content="o"), line(content="k"), LAST)
    )
    assert message == Message(
        role="assistant",
        blocks=(
            Block(type="thinking", text="hm", provider="ollama"),
            Block(type="text", text="ok", provider="ollama"),
        ),
        model="served",
        provider="ollama",
        requested_model="m",
        usage=Usage(input=5, output=3),
        stop_reason="end_turn",
    )
    assert [event.text for event in events] == ["h", "m", "o", "k"]


def test_calls_keep_their_ids_and_stop_for_tools() -> None:
    """Though the server says stop; a missing or doubled id is made."""
    asked = [function(arguments={"path": "a"}, id="x"), function(arguments={}), function(arguments='{"a":1}', id="x")]
    events, message = decode(ADAPTER, lines(line(content="So", tool_calls=asked), LAST))
    assert [(block.id, block.name, block.input) for block in message.tool_calls] == [
        ("x", "read", {"path": "a"}),
        ("call_2", "read", {}),
        ("call_3", "read", {"a": 1}),
    ]
    assert message.stop_reason == "tool_use"
    assert message.text == joined(events, "text_delta") == "So"


@pytest.mark.parametrize(
    ("reason", "wanted"), [("stop", "end_turn"), ("length", "max_tokens"), ("load", "other"), (None, None)]
)
def test_why_it_ended(reason: str | None, wanted: str | None) -> None:
    """None where the server does not say."""
    last = {key: value for key, value in {**LAST, "done_reason": reason}.items() if value is not None}
    assert decode(ADAPTER, lines(line(content="a"), last))[1].stop_reason == wanted


def test_a_missing_count_is_unknown() -> None:
    """Not zero."""
    last = {key: value for key, value in LAST.items() if key != "prompt_eval_count"}
    assert decode(ADAPTER, lines(last))[1].usage is None


@pytest.mark.parametrize(
    "body",
    [
        lines({"error": "model 'x' not found"}),
        lines(line(content="a"), {"error": "out of memory"}),
        b'{\n "error": "over several lines"\n}',
        b"<html></html>",
        lines(line(content="a")),
        lines(line(content="a")) + b'{"model": "served", "mess',
        b"",
    ],
)
def test_what_is_no_answer_is_an_error(body: bytes) -> None:
    """An error line, another document, an end before the end."""
    with pytest.raises(errors.APIError):
        decode(ADAPTER, body)


def test_an_answer_over_several_lines_is_read() -> None:
    """A proxy may print it so."""
    body = lines({**LAST, "message": {"content": "ok"}}).replace(b",", b",\n")
    assert decode(ADAPTER, body)[1].text == "ok"


def test_text_calls_are_salvaged() -> None:
    """Small models write them."""
    body = lines(line(content='{"name": "read", "args": '), line(content='{"file_path": "a"}}'), LAST)
    message = decode(ADAPTER, body, request=OFFERED)[1]
    assert [(block.name, block.input) for block in message.tool_calls] == [("read", {"path": "a"})]
    assert (message.text, message.stop_reason) == ("", "tool_use")


# -- any answer -------------------------------------------------------------------------------------------------
BODIES = own("ollama.chat")


@given(st.sampled_from(BODIES), st.lists(st.integers(0, 2000), max_size=20), st.sampled_from([ASKED, OFFERED]))
def test_any_cut_reads_the_same(body: bytes, cuts: list[int], request: Request) -> None:
    """However the network cuts the body."""
    assert outcome(ADAPTER, body, cuts, request) == outcome(ADAPTER, body, (), request)


@settings(max_examples=300)
@given(st.data())
def test_whatever_the_server_sends_raises_nothing_else(data: st.DataObject) -> None:
    """A value of another type is read past or a BadWire, and the partial answer can be had."""
    decoder, got = ADAPTER.decoder(OFFERED), list[StreamEvent]()
    try:
        for event in data.draw(mutated(values(data.draw(st.sampled_from(BODIES)), "ndjson"))):
            got += decoder.event("", event)
        message = decoder.finish()
    except errors.APIError:
        decoder.draft.message().to_json()
    else:
        assert joined(got, "text_delta") == message.text
        assert Message.from_json(message.to_json()) == message
