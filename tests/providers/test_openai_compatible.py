"""Chat Completions: what a host gets, and what is read whatever a host does."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from larik_nb import errors
from larik_nb.catalog import Model
from larik_nb.providers import _tool_fragments
from larik_nb.providers._presets import Quirks
from larik_nb.providers._replay import IMAGES_NOTE, INTERRUPTED
from larik_nb.providers._wire import Draft, arguments
from larik_nb.providers.openai_compatible import OpenAICompatible, usage
from larik_nb.types import (
    Block,
    Message,
    Request,
    StreamEvent,
    ToolSpec,
    Usage,
    assistant,
    text_block,
    tool_result,
    user,
)
from tests.providers._decode import ASKED, OFFERED, decode, encoded, joined, mutated, outcome, own, sse, values

HOST = OpenAICompatible(provider="host")
PNG = Block(type="image", media_type="image/png", data="iVBORw0KGgo=")
NOTE = Block(type="document", media_type="text/plain", data=base64.b64encode("Ebb: é".encode()).decode(), name="n.txt")
PDF = Block(type="document", media_type="application/pdf", data="JVBERi0=", name="tides.pdf")
READ = ToolSpec(name="read", description="Read a file.", parameters={"type": "object"})
MODELS: dict[str, dict[str, Any]] = {
    "levels": {"efforts": ("low", "high"), "sampling": "effort_none"},
    "plain": {"efforts": (), "sampling": "yes", "vision": False},
    "off": {"efforts": ("none", "high"), "sampling": "effort_none"},
    "cold": {"sampling": "no"},
}


def call(id_: str, path: str = "a", **fields: Any) -> Block:
    return Block(type="tool_use", id=id_, name="read", input={"path": path}, **fields)


def abilities(model: str) -> Model | None:
    return Model(provider="host", id=model, **MODELS[model]) if model in MODELS else None


def encode(*messages: Message, model: str = "m", quirks: Quirks = Quirks(), **fields: Any) -> dict[str, Any]:  # noqa: B008  # frozen
    adapter = OpenAICompatible(provider="host", quirks=quirks, abilities=abilities)
    return encoded(adapter, Request(model=model, messages=messages or (user("Hi"),), **fields)).body


def sent(*messages: Message, **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = encode(*messages, **fields)["messages"]
    return found


def setting(**fields: Any) -> dict[str, Any]:
    body = encode(**fields)
    return {key: value for key, value in body.items() if key not in ("model", "messages", "stream", "stream_options")}


# -- requests ---------------------------------------------------------------------------------------------------
def test_a_plain_question() -> None:
    """The smallest request."""
    wire = encoded(HOST, Request(model="org/name", messages=(user("Hi"),)))
    assert (wire.path, wire.headers) == ("/chat/completions", {})
    assert wire.body == {
        "model": "org/name",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_key_is_a_bearer() -> None:
    """A local server may want none."""
    assert HOST.credential("k") == {"Authorization": "Bearer k"}
    assert HOST.credential(None) == {}


def test_everything_a_request_can_say() -> None:
    """Settings and tools."""
    body = encode(
        tools=(READ, ToolSpec(name="now")),
        system="Be brief.",
        max_tokens=9,
        effort="medium",
        temperature=0.5,
        top_p=0.9,
        seed=3,
        stop=("END",),
    )
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Read a file.", "parameters": {"type": "object"}},
            },
            {
                "type": "function",
                "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
            },
        ],
        "max_tokens": 9,
        "reasoning_effort": "medium",
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 3,
        "stop": ["END"],
    }


def test_a_conversation_with_tools_and_images() -> None:
    """Results are tool messages; what tools showed follows in one user message, introduced; roles alternate."""
    messages = sent(
        user("Look", PNG),
        user("and read", NOTE, PDF),
        assistant("On it", call("call_a"), call("call_b", "b")),
        user(tool_result("call_b", "B", is_error=True), tool_result("call_a", "A", images=[PNG]), "Go on"),
    )
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert messages == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look"},
                image,
                {"type": "text", "text": "and read"},
                {"type": "text", "text": '<document name="n.txt">\nEbb: é\n</document>'},
                {
                    "type": "text",
                    "text": "[document tides.pdf left out: m takes no PDFs]",
                },
            ],
        },
        {
            "role": "assistant",
            "content": "On it",
            "tool_calls": [
                {"id": "call_a", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}},
                {"id": "call_b", "type": "function", "function": {"name": "read", "arguments": '{"path": "b"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_a", "content": "A"},
        {"role": "tool", "tool_call_id": "call_b", "content": "Error: B"},
        {"role": "user", "content": [{"type": "text", "text": IMAGES_NOTE}, image, {"type": "text", "text": "Go on"}]},
    ]


def test_only_text_is_one_string() -> None:
    """Not every host takes a list."""
    assert sent(user("a", "b"), user("c")) == [{"role": "user", "content": "a\n\nb\n\nc"}]


def test_orphans_are_settled() -> None:
    """A result without its call goes, a call without its result is told so, empty messages go."""
    messages = sent(
        user(tool_result("gone", "?"), "Hi"),
        assistant(call("call_a"), ""),
        assistant(Block(type="thinking", text="hm", provider="other")),
        user("never mind"),
        assistant(""),
        user("go"),
        assistant(call("call_b")),
    )
    assert [(m["role"], m["content"]) for m in messages] == [
        ("user", "Hi"),
        ("assistant", None),
        ("tool", f"Error: {INTERRUPTED}"),
        ("user", "never mind\n\ngo"),
        ("assistant", None),
        ("tool", f"Error: {INTERRUPTED}"),
    ]


def test_an_image_of_the_models_own_moves_to_the_user() -> None:
    """No host takes it from an assistant."""
    messages = sent(user("Draw"), assistant("There", PNG), user("Nice"))
    assert messages[1] == {"role": "assistant", "content": "There"}
    assert [part["type"] for part in messages[2]["content"]] == ["text", "image_url"]


def test_a_model_that_sees_nothing_is_told_of_images() -> None:
    """A picture would be refused."""
    assert sent(user("Look", PNG), model="plain")[0]["content"] == ("Look\n\n[image left out: plain takes no images]")


def test_arguments_that_were_no_json_go_back_as_json() -> None:
    """Hosts parse them."""
    block = Block(type="tool_use", id="c", name="read", input_raw='{"path": "a')
    function = sent(user("x"), assistant(block))[1]["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"INVALID_JSON": '{"path": "a'}


@pytest.mark.parametrize(
    ("quirks", "fields", "wanted"),
    [
        (Quirks(max_tokens="max_completion_tokens"), {"max_tokens": 5}, {"max_completion_tokens": 5}),
        (Quirks(seed="random_seed"), {"seed": 5}, {"random_seed": 5}),
        (Quirks(effort="reasoning"), {"effort": "high"}, {"reasoning": {"effort": "high"}}),
        (Quirks(effort="reasoning"), {"thinking_budget": 99}, {"reasoning": {"max_tokens": 99}}),
        (Quirks(effort="reasoning"), {}, {}),
        (Quirks(tools=False), {"tools": (READ,)}, {}),
        (Quirks(), {"model": "levels", "effort": "max"}, {"reasoning_effort": "high"}),
        (Quirks(), {"model": "plain", "effort": "max", "temperature": 1.0}, {"temperature": 1.0}),
        (Quirks(), {"model": "cold", "temperature": 1.0, "top_p": 0.5}, {}),
        (Quirks(), {"model": "levels", "temperature": 1.0}, {}),
    ],
)
def test_settings_follow_host_and_model(quirks: Quirks, fields: dict[str, Any], wanted: dict[str, Any]) -> None:
    """What differs is data."""
    assert setting(quirks=quirks, **fields) == wanted


def test_a_host_that_refuses_stream_options_gets_none() -> None:
    """The rest stays."""
    assert "stream_options" not in encode(quirks=Quirks(stream_options=False))


def test_ids_in_the_hosts_alphabet() -> None:
    """Nine letters and digits: call and result agree, every time, and what fits stays."""
    history = [user("x"), assistant(call("call_of_another"), call("abcdEF123")), user("y")]
    first, again = (sent(*history, quirks=Quirks(tool_ids="alphanumeric-9")) for _ in range(2))
    ids = [item["id"] for item in first[1]["tool_calls"]]
    assert first == again
    assert ids == [message["tool_call_id"] for message in first if message["role"] == "tool"]
    assert ids[1] == "abcdEF123"
    assert len(ids[0]) == 9
    assert ids[0].isalnum()


def test_ids_that_no_host_takes_are_changed_unless_they_are_its_own() -> None:
    """A host's own id goes back as it came."""
    foreign, mine = call("functions.read:0"), call("functions.read:0", provider="host")
    assert sent(user("x"), assistant(foreign))[1]["tool_calls"][0]["id"].isalnum()
    message = replace(assistant(mine), model="m")
    assert sent(user("x"), message)[1]["tool_calls"][0]["id"] == "functions.read:0"


def test_reasoning_goes_back_where_it_is_demanded_and_only_its_own() -> None:
    """The field is the host's; another model's thinking never goes."""
    thought = Block(type="thinking", text="hm", provider="host")
    quirks = Quirks(reasoning_back="reasoning_content")
    mine, other = (replace(assistant(thought, call("c")), model=model) for model in ("m", "n"))
    assert sent(user("x"), mine, quirks=quirks)[1]["reasoning_content"] == "hm"
    assert sent(user("x"), other, quirks=quirks)[1]["reasoning_content"] == ""
    assert "reasoning_content" not in sent(user("x"), mine)[1]
    assert "reasoning_content" not in sent(user("x"), assistant("hi"), quirks=quirks)[1]


def test_sealed_reasoning_goes_back_as_it_came() -> None:
    """To the model that wrote it."""
    details = [
        {"type": "reasoning.text", "text": "Hm", "index": 0},
        {"type": "reasoning.text", "signature": "s", "index": 0},
        {"type": "reasoning.encrypted", "data": "d", "index": 1},
    ]
    body = sse(*(chunk({"reasoning_details": [detail]}) for detail in details), chunk({"content": "ok"}, "stop"))
    message = decode(HOST, body)[1]
    assert sent(user("x"), message)[1] == {
        "role": "assistant",
        "content": "ok",
        "reasoning_details": [{"type": "reasoning.text", "text": "Hm", "index": 0, "signature": "s"}, details[2]],
    }
    assert sent(user("x"), message, model="n")[1] == {"role": "assistant", "content": "ok"}


def test_a_call_keeps_what_its_host_wants_back() -> None:
    """A signature beside a call."""
    fragment = {"id": "c", "function": {"name": "read", "arguments": "{}"}, "extra_content": {"sealed": "s"}}
    message = decode(HOST, sse(chunk({"tool_calls": [fragment]}, "tool_calls")))[1]
    assert sent(user("x"), message)[1]["tool_calls"][0]["extra_content"] == {"sealed": "s"}
    assert "extra_content" not in sent(user("x"), message, model="n")[1]["tool_calls"][0]


def test_a_host_without_tools_reads_of_them() -> None:
    """Calls and results become text."""
    messages = sent(user("x"), assistant(call("c")), user(tool_result("c", "A")), quirks=Quirks(tools=False))
    assert messages[1:] == [
        {"role": "assistant", "content": '[called read with {"path": "a"}]'},
        {"role": "user", "content": "[result: A]"},
    ]


# -- answers ----------------------------------------------------------------------------------------------------
def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"model": "served", "choices": choices, **fields}


def fragment(index: Any = None, id_: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": id_, "function": {key: item for key, item in function.items() if item is not None}}


def calls(*fragments: Any, finish: str | None = "tool_calls") -> list[tuple[Any, ...]]:
    """Return the calls made of fragments, each in its own delta or several in a list."""
    deltas = [chunk({"tool_calls": item if isinstance(item, list) else [item]}) for item in fragments]
    events, message = decode(HOST, sse(*deltas, chunk({}, finish)))
    started = [(event.id, event.name) for event in events if event.type == "tool_use_start"]
    assert started == [(block.id, block.name) for block in message.tool_calls]
    assert message.stop_reason == "tool_use"
    return [(block.id, block.name, block.input) for block in message.tool_calls]


A, B = ("read", {"path": "a"}), ("read", {"path": "b"})
SAID_A, SAID_B = '{"path":"a"}', '{"path":"b"}'


@pytest.mark.parametrize(
    ("fragments", "wanted"),
    [
        pytest.param(
            [fragment(0, "x", "read", SAID_A), fragment(1, "y", "read", SAID_B)],
            [("x", *A), ("y", *B)],
            id="by index",
        ),
        pytest.param(
            [
                fragment(0, "x", "read", ""),
                fragment(1, "y", "read", ""),
                fragment(0, None, None, SAID_A),
                fragment(1, None, None, SAID_B),
            ],
            [("x", *A), ("y", *B)],
            id="interleaved by index",
        ),
        pytest.param(
            [
                fragment(0, "x", "read", '{"path"'),
                fragment(0, "y", "read", '{"path"'),
                fragment(0, "x", None, ':"a"}'),
                fragment(0, "y", None, ':"b"}'),
            ],
            [("x", *A), ("y", *B)],
            id="index 0 for all, interleaved by id",
        ),
        pytest.param(
            [fragment(None, "x", "read", ""), fragment(None, "y", "read", SAID_B), fragment(None, "x", None, SAID_A)],
            [("x", *A), ("y", *B)],
            id="no index, by id",
        ),
        pytest.param(
            [fragment(0, None, "read", SAID_A), fragment(0, None, "read", SAID_B)],
            [("call_1", *A), ("call_2", *B)],
            id="index 0 for all, no ids",
        ),
        pytest.param(
            [fragment(0, "", "read", SAID_A), fragment(0, "", "read", SAID_A)],
            [("call_1", *A), ("call_2", *A)],
            id="the same call twice, no ids",
        ),
        pytest.param(
            [[fragment(None, None, "read", ""), fragment(None, None, "read", "")]],
            [("call_1", "read", {}), ("call_2", "read", {})],
            id="two without arguments in one list",
        ),
        pytest.param(
            [fragment(0, None, "read", SAID_A[:4]), fragment(0, "late", None, SAID_A[4:])],
            [("late", *A)],
            id="late id",
        ),
        pytest.param(
            [
                fragment(0, None, "read", SAID_A),
                fragment(1, None, "read", SAID_B),
                fragment(0, "x"),
                fragment(1, "y"),
            ],
            [("x", *A), ("y", *B)],
            id="late ids of two",
        ),
        pytest.param([fragment(0, "x"), fragment(0, None, "read", SAID_A)], [("x", *A)], id="late name"),
        pytest.param(
            [fragment(0, "x", "read", SAID_A), fragment(1, "x", "read", SAID_B)],
            [("x", *A), ("call_2", *B)],
            id="one id for two calls",
        ),
        pytest.param(
            [fragment(0, "0", "read", ""), fragment(0, "0", "read", SAID_A[:5]), fragment(0, "0", "read", SAID_A[5:])],
            [("0", *A)],
            id="id and name in every delta",
        ),
        pytest.param(
            [fragment(0, "x", "read", SAID_A), fragment(0, "x", "read", SAID_A)], [("x", *A)], id="all of it said twice"
        ),
        pytest.param(
            [fragment(0, "x", "read", SAID_A), fragment(0, None, None, SAID_A)], [("x", *A)], id="arguments said twice"
        ),
        pytest.param(
            [fragment(0, "x", "read", "{}"), fragment(0, None, None, SAID_A)],
            [("x", *A)],
            id="an empty object, then the arguments",
        ),
        pytest.param([fragment(3, "x", "read", {"path": "a"})], [("x", *A)], id="an object, first index 3"),
        pytest.param([fragment(0, "x", "read", None)], [("x", "read", {})], id="no arguments"),
        pytest.param([fragment(0, "x", "read", ""), fragment(7)], [("x", "read", {})], id="an empty fragment"),
        pytest.param([fragment(0, "x", "read", '{"a":1}}')], [("x", "read", None)], id="invalid"),
    ],
)
def test_fragments_of_calls(fragments: list[Any], wanted: list[Any]) -> None:
    """Index first, id second; a new id or a new name after complete JSON is a new call."""
    assert calls(*fragments) == wanted


@pytest.mark.parametrize("first", ["", '{"a":"', '{"a":1}'])
@pytest.mark.parametrize("piece", ["}", "{", "{}", " ", '"', "\\"])
def test_hostile_fragments_are_each_looked_at_once(first: str, piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing what came so far with every fragment took seconds of twenty thousand."""
    parsed = []
    real = _tool_fragments.arguments
    monkeypatch.setattr(_tool_fragments, "arguments", lambda text: parsed.append(len(text)) or real(text))
    fragments = _tool_fragments.ToolFragments(Draft(ASKED, "p"))

    for text in [first, *[piece] * 2_000]:
        fragments.add({"index": 0, "function": {"name": "read", "arguments": text}})

    assert sum(parsed) <= len(first) + 2_000 * len(piece)


@given(st.text(alphabet='{}[]"\\a:, ', max_size=40), st.integers(1, 5))
@settings(max_examples=500)
def test_a_whole_object_is_known_however_it_is_cut(text: str, width: int) -> None:
    whole = _tool_fragments._Object()
    for at in range(0, len(text), width):
        whole.add(text[at : at + width])

    assert (whole.text is not None) == (bool(text.strip()) and arguments(text)[0] is not None)


def test_events_of_a_call_carry_the_id_it_ends_with() -> None:
    """What comes before the id is known waits for it."""
    body = sse(
        chunk({"tool_calls": [fragment(0, None, "read", '{"pa')]}),
        chunk({"tool_calls": [fragment(0, "x", None, 'th":1}')]}),
    )
    events, message = decode(HOST, body)
    assert [(event.type, event.id, event.text) for event in events] == [
        ("tool_use_start", "x", ""),
        ("tool_input_delta", "x", '{"path":1}'),
    ]
    assert message.stop_reason == "tool_use"


def test_the_legacy_function_call() -> None:
    """One call, in fragments."""
    deltas = [{"function_call": {"name": "read", "arguments": ""}}, {"function_call": {"arguments": SAID_A}}]
    message = decode(HOST, sse(*map(chunk, deltas), chunk({}, "function_call")))[1]
    assert [(block.name, block.input) for block in message.tool_calls] == [A]
    assert message.stop_reason == "tool_use"


def test_a_custom_call_is_kept_but_is_no_function() -> None:
    """Nobody here offered it."""
    item = {"id": "c", "type": "custom", "custom": {"name": "math", "input": "1"}}
    message = decode(HOST, sse(chunk({"tool_calls": [item]}, "stop")))[1]
    assert message.blocks == (Block(type="opaque", provider="host", raw={"tool_call": item}),)


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "Hm."}],
        [{"reasoning": "Hm."}],
        [{"reasoning": "Hm.", "reasoning_content": "Hm."}],
        [{"reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]}],
        [{"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}]}],
        [{"reasoning": "H"}, {"reasoning": "m."}],
        [{"content": [{"type": "thinking", "thinking": "Hm."}]}],
        [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}],
    ],
)
def test_reasoning_counts_once(deltas: list[dict[str, Any]]) -> None:
    """In whatever field it comes, and in however many."""
    events, message = decode(HOST, sse(*map(chunk, deltas), chunk({"content": "ok"}, "stop")))
    assert (message.thinking, message.text) == ("Hm.", "ok")
    assert joined(events, "thinking_delta") == "Hm."
    assert not any(block.signature or block.type == "opaque" for block in message.blocks)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        pytest.param(sse(chunk({"content": "a"}, "stop"), chunk({}, "stop")), "end_turn", id="twice"),
        pytest.param(sse(chunk({"content": "a"}, "length"), chunk({}, None)), "max_tokens", id="then null"),
        pytest.param(sse(chunk({"content": "a"})), None, id="missing"),
        pytest.param(sse(chunk({"content": "a"}, "stop"), end=""), "end_turn", id="no end mark"),
        pytest.param(sse(chunk({"content": "a"}, "content_filter")), "refusal", id="filter"),
        pytest.param(sse(chunk({"content": "a"}, "eos_of_tomorrow")), "other", id="unknown"),
        pytest.param(
            sse(chunk(), chunk({"role": "assistant"}), chunk({"content": "a"}, "stop")), "end_turn", id="late"
        ),
        pytest.param(sse(chunk({"content": "a", "refusal": None}, "stop")), "end_turn", id="null refusal"),
    ],
)
def test_why_it_ended(body: bytes, wanted: str | None) -> None:
    """The last word said counts, none is None."""
    message = decode(HOST, body)[1]
    assert (message.text, message.stop_reason) == ("a", wanted)


def test_a_refusal_is_a_notice_and_no_text() -> None:
    """Its words are kept for the host."""
    events, message = decode(HOST, sse(chunk({"refusal": "No"}), chunk({"refusal": "."}), chunk({}, "stop")))
    assert message.text == ""
    assert joined(events, "notice") == "No."
    assert message.stop_reason == "refusal"
    assert message.blocks == (Block(type="opaque", provider="host", raw={"refusal": "No."}),)


def test_a_message_beside_the_delta_is_not_read_twice() -> None:
    """It repeats what came."""
    choice = {"index": 0, "delta": {"content": "a"}, "message": {"content": "a"}, "finish_reason": None}
    last = {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}
    assert decode(HOST, sse({"choices": [choice]}, {"choices": [last]}))[1].text == "a"


def test_only_the_first_choice_is_read() -> None:
    """Another answer to the same question is no part of this one."""
    other = {"index": 1, "delta": {"content": "b"}, "finish_reason": "length"}
    body = sse(chunk({"content": "a"}), {"choices": [other]}, chunk({}, "stop"))
    message = decode(HOST, body)[1]
    assert (message.text, message.stop_reason) == ("a", "end_turn")


P = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        (P, Usage(input=10, output=4)),
        ({**P, "prompt_tokens_details": {"cached_tokens": 8}}, Usage(input=2, output=4, cache_read=8)),
        ({**P, "prompt_tokens_details": None}, Usage(input=10, output=4)),
        ({**P, "prompt_cache_hit_tokens": 8}, Usage(input=2, output=4, cache_read=8)),
        ({**P, "cached_tokens": 8}, Usage(input=2, output=4, cache_read=8)),
        (
            {**P, "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2}},
            Usage(input=7, output=4, cache_read=1, cache_write=2),
        ),
        (
            {**P, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 6},
            Usage(input=10, output=4, cache_read=50, cache_write=6),
        ),
        ({**P, "total_tokens": 19, "cache_read_input_tokens": 5}, Usage(input=10, output=4, cache_read=5)),
        ({**P, "completion_tokens_details": {"reasoning_tokens": 3}}, Usage(input=10, output=4)),
        ({**P, "total_tokens": 34, "completion_tokens_details": {"reasoning_tokens": 20}}, Usage(input=10, output=24)),
        ({**P, "total_tokens": 34, "reasoning_tokens": 20}, Usage(input=10, output=24)),
        ({**P, "total_tokens": 34}, Usage(input=10, output=24)),
        ({**P, "completion_tokens": None}, None),
        ({"total_tokens": 5}, None),
        ({**P, "prompt_tokens": True}, None),
    ],
)
def test_the_ways_of_hosts_to_count(counts: dict[str, Any], wanted: Usage | None) -> None:
    """Cached tokens apart from the rest, reasoning in the answer; told apart by the total, never by the host."""
    assert usage(counts) == wanted


@pytest.mark.parametrize(
    "body",
    [
        sse(chunk({"content": "a"}, "stop", usage=P)),
        sse(chunk({"content": "a"}, "stop"), chunk(usage=P)),
        sse(chunk({"content": "a"}, "stop"), end="data: [DONE]\n\n") + sse(chunk(usage=P), end=""),
        sse(chunk({"content": "a"}, usage={**P, "completion_tokens": None}), chunk({}, "stop", usage=P)),
        sse(chunk({"content": "a"}, usage={**P, "completion_tokens": 1}), chunk({}, "stop", usage=P)),
        sse(chunk({"content": "a"}, "stop", x_groq={"usage": P})),
        sse(chunk({"content": "a"}, "stop", usage=P), chunk(usage=None)),
    ],
)
def test_the_last_usage_counts_wherever_it_comes(body: bytes) -> None:
    """Beside content, alone, after the end mark, in several chunks."""
    assert decode(HOST, body)[1].usage == Usage(input=10, output=4)


def test_no_usage_is_unknown() -> None:
    """Not zero."""
    assert decode(HOST, sse(chunk({"content": "a"}, "stop")))[1].usage is None


@pytest.mark.parametrize(
    "last",
    [
        {"error": {"message": "Overloaded", "code": 503}},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}], "error": {"message": "Overloaded"}},
        {"object": "error", "message": "Overloaded", "code": 503},
        'event: error\ndata: {"message": "Overloaded"}\n\n',
        "event: error\ndata: Overloaded\n\n",
        "event: error\n\n",
    ],
)
def test_an_error_inside_the_stream_is_raised(last: Any) -> None:
    """With or without data; what came before stays with the decoder."""
    decoder = HOST.decoder(ASKED)
    decoder.event("", chunk({"content": "so far"}))
    with pytest.raises(errors.APIError):
        decode(HOST, sse(chunk({"content": "so far"}), last))
    assert decoder.draft.message().text == "so far"


@pytest.mark.parametrize("text", ['{"error": {"message": "no"}}', '{"detail": "no"}', "[1]", "<html>no</html>"])
def test_what_is_no_answer_is_an_error(text: str) -> None:
    """Though the status was 200."""
    with pytest.raises(errors.APIError):
        decode(HOST, text.encode())


def test_a_cut_stream_is_an_error_that_may_be_retried() -> None:
    """Between frames or within one."""
    whole = sse(chunk({"content": "a"}), chunk({"content": "b"}, "stop"), end="")
    for end in (whole.index(b"\n\n") + 2, len(whole) - 20):
        with pytest.raises(errors.ServerError):
            decode(HOST, whole[:end])


def test_a_frame_that_is_no_json_is_bad_wire() -> None:
    """Skipping it could lose a piece of the answer."""
    with pytest.raises(errors.BadWire):
        decode(HOST, sse("data: {broken\n\n", chunk({"content": "a"}, "stop")))


def test_text_calls_are_salvaged() -> None:
    """Only names that were offered, and the stop reason follows."""
    text = '{"name": "read", "arguments": {"path": "a"}}'
    body = sse(chunk({"content": text[:10]}), chunk({"content": text[10:]}), chunk({}, "stop"))
    message = decode(HOST, body, request=OFFERED)[1]
    assert [(block.name, block.input) for block in message.tool_calls] == [A]
    assert (message.text, message.stop_reason) == ("", "tool_use")
    assert decode(HOST, body)[1].text == text


def test_an_answer_carries_who_made_it() -> None:
    """The model that served, the one asked for, the route."""
    message = decode(HOST, sse(chunk({"content": "a"}, "stop")))[1]
    assert message == Message(
        role="assistant",
        blocks=(replace(text_block("a"), provider="host"),),
        model="served",
        provider="host",
        requested_model="m",
        stop_reason="end_turn",
    )


# -- any answer -------------------------------------------------------------------------------------------------
BODIES = own("openai.chat")


@given(st.sampled_from(BODIES), st.lists(st.integers(0, 2000), max_size=20), st.sampled_from([ASKED, OFFERED]))
def test_any_cut_reads_the_same(body: bytes, cuts: list[int], request: Request) -> None:
    """However the network cuts the body."""
    assert outcome(HOST, body, cuts, request) == outcome(HOST, body, (), request)


@settings(max_examples=300)
@given(st.data())
def test_whatever_a_host_sends_raises_nothing_else(data: st.DataObject) -> None:
    """A value of another type is read past or a BadWire, and the partial answer can be had."""
    body = data.draw(st.sampled_from([body for body in BODIES if body.startswith((b"data", b":"))]))
    decoder, events = HOST.decoder(OFFERED), data.draw(mutated(values(body, "sse")))
    got: list[StreamEvent] = []
    try:
        for event in events:
            got += decoder.event("", event)
        got += decoder.event("", "[DONE]")
        message = decoder.finish()
    except errors.APIError:
        decoder.draft.message().to_json()
    else:
        assert joined(got, "text_delta") == message.text
        assert Message.from_json(message.to_json()) == message
