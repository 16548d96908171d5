"""The Messages API: requests as a whole, and what comes back the next turn."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from larik_nb import errors
from larik_nb.catalog import Model
from larik_nb.frames import reader
from larik_nb.providers.anthropic import Anthropic
from larik_nb.types import Block, Message, Request, StreamEvent, ToolSpec, assistant, text_block, tool_result, user
from tests.providers._decode import encoded

CASES = Path(__file__).parents[1] / "wire" / "anthropic.messages"
EPHEMERAL = {"type": "ephemeral"}
FOREIGN_ID = "Musvh7ExEaFq2up2HD6ebaxz"
"""What `functions.plot:2` is sent as."""
PNG = Block(type="image", media_type="image/png", data="iVBORw0KGgo=")
PDF = Block(type="document", media_type="application/pdf", data="JVBERi0=", name="tides.pdf")
NOTE = Block(type="document", media_type="text/plain", data=base64.b64encode("Ebb: é".encode()).decode())

ADAPTIVE = {
    "thinking": ("adaptive", "disabled"),
    "thinking_on": True,
    "efforts": ("low", "medium", "high", "xhigh", "max"),
    "sampling": "no",
    "max_output": 128_000,
}
MODELS: dict[str, dict[str, Any]] = {
    "on": ADAPTIVE,
    "optional": {**ADAPTIVE, "thinking_on": False},
    "bound": {**ADAPTIVE, "thinking": ("adaptive", "between_tools"), "bound_thinking": True},
    "capped": {**ADAPTIVE, "disable_max_effort": "high"},
    "budget": {
        "thinking": ("enabled", "disabled"),
        "thinking_on": False,
        "efforts": (),
        "sampling": "yes",
        "sampling_api_version": "2023-06-01",
        "max_output": 64_000,
    },
    "small": {"thinking": (), "efforts": (), "max_output": 4_096},
}


def abilities(model: str) -> Model | None:
    return Model(provider="anthropic", id=model, **MODELS[model]) if model in MODELS else None


ADAPTER = Anthropic(provider="anthropic", abilities=abilities)


def encode(*messages: Message, model: str = "unknown", **fields: Any) -> dict[str, Any]:
    return encoded(ADAPTER, Request(model=model, messages=messages or (user("Hi"),), **fields)).body


def settings(**fields: Any) -> dict[str, Any]:
    """Return the body without what every request has."""
    body = encode(**fields)
    return {name: value for name, value in body.items() if name not in ("model", "messages", "stream", "max_tokens")}


def read(name: str, model: str = "m") -> tuple[list[StreamEvent], Message]:
    """Decode a case of our own as the answer to `model`."""
    decoder, frames = ADAPTER.decoder(Request(model=model, messages=())), reader("sse")
    body = json.loads((CASES / f"{name}.json").read_bytes())["response"]["body"].encode()
    events = [e for n, data in [*frames.feed(body), *frames.finish()] for e in decoder.event(n, data)]
    return events, decoder.finish()


def test_a_plain_question() -> None:
    """The smallest request, with the headers that go with it."""
    wire = encoded(ADAPTER, Request(model="unknown", messages=(user("Hi"),)))
    assert wire.path == "/v1/messages"
    assert wire.headers == {"anthropic-version": "2026-10-21"}
    assert wire.body == {
        "model": "unknown",
        "max_tokens": 16_000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": EPHEMERAL}]}],
        "stream": True,
    }
    assert ADAPTER.credential("k") == {"Authorization": "Bearer k"}
    assert ADAPTER.credential(None) == {}


def test_a_conversation_with_tools_and_media() -> None:
    """System, tools, parallel calls, their results with an image and a failure, documents, breakpoints."""
    tool = ToolSpec(
        name="plot", description="Draws.", parameters={"type": "object", "properties": {"n": {"type": "integer"}}}
    )
    body = encode(
        user("Plot both.", PDF, NOTE),
        assistant(
            "Sure.",
            Block(type="tool_use", id="toolu_1", name="plot", input={"n": 1}),
            Block(type="tool_use", id="functions.plot:2", name="plot", input={"n": 2}),
        ),
        user(
            tool_result("toolu_1", "done", images=[PNG, PDF]), tool_result("functions.plot:2", "no data", is_error=True)
        ),
        user("And?"),
        system="Be brief.",
        tools=(tool, ToolSpec(name="stop")),
        stop=("END",),
        max_tokens=99,
    )
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    pdf = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
        "title": "tides.pdf",
    }
    note = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Ebb: é"}}
    assert body == {
        "model": "unknown",
        "max_tokens": 99,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": EPHEMERAL}],
        "tools": [
            {"name": "plot", "description": "Draws.", "input_schema": tool.parameters},
            {"name": "stop", "description": "", "input_schema": {"type": "object", "properties": {}}},
        ],
        "stop_sequences": ["END"],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "Plot both."}, pdf, {**note, "cache_control": EPHEMERAL}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Sure."},
                    {"type": "tool_use", "id": "toolu_1", "name": "plot", "input": {"n": 1}},
                    {"type": "tool_use", "id": FOREIGN_ID, "name": "plot", "input": {"n": 2}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [{"type": "text", "text": "done"}, image, pdf],
                    },
                    {"type": "tool_result", "tool_use_id": FOREIGN_ID, "content": "no data", "is_error": True},
                    {"type": "text", "text": "And?", "cache_control": EPHEMERAL},
                ],
            },
        ],
    }


def test_tools_carry_the_breakpoint_without_a_system() -> None:
    """Without a system prompt the last tool ends the cached prefix."""
    body = encode(tools=(ToolSpec(name="a"), ToolSpec(name="b")))
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, EPHEMERAL]


def test_breakpoints_move_and_stay_few() -> None:
    """However long the conversation, the last two user turns and the system are marked: three of the four allowed."""
    messages = [message for n in range(6) for message in (user(f"q{n}"), assistant(f"a{n}"))]
    body = encode(*messages, user("last"), system="s", tools=(ToolSpec(name="t"),))
    marked = [i for i, message in enumerate(body["messages"]) if "cache_control" in message["content"][-1]]
    assert marked == [10, 12]
    assert json.dumps(body).count("cache_control") == 3


def test_the_conversation_starts_with_the_user() -> None:
    """A transcript that begins with an answer gets an opening, since the API refuses it otherwise."""
    roles = [message["role"] for message in encode(assistant("Hello"), user("Hi"))["messages"]]
    assert roles == ["user", "assistant", "user"]


def test_what_cannot_be_said_is_left_out() -> None:
    """Empty texts, unsigned or foreign thinking and the user's own never go out; nothing empty remains."""
    mine = Block(type="thinking", text="hm", signature="c2ln", provider="anthropic")
    body = encode(
        user("Hi", mine),
        Message(
            role="assistant",
            blocks=(Block(type="thinking", text="hm", provider="anthropic"), text_block("")),
            model="m",
        ),
        Message(
            role="assistant", blocks=(Block(type="thinking", text="h", signature="s", provider="gemini"),), model="m"
        ),
        user("Still there?"),
        model="m",
    )
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Hi"},
                {"type": "text", "text": "Still there?", "cache_control": EPHEMERAL},
            ],
        }
    ]


def test_invalid_arguments_go_back_in_the_vendors_way() -> None:
    """A call that was cut is shown to the model as what it wrote."""
    call = Block(type="tool_use", id="c", name="f", input_raw='{"a":')
    body = encode(user("x"), assistant(call), user(tool_result("c", "not run", is_error=True)))
    assert body["messages"][1]["content"][0]["input"] == {"INVALID_JSON": '{"a":'}


def test_media_of_another_model_move_to_the_user() -> None:
    """An assistant may not send media here, so they stand at the beginning of what the user says next."""
    body = encode(user("Draw"), assistant("Here", PNG), user("Thanks"))
    assert [item["type"] for item in body["messages"][1]["content"]] == ["text"]
    assert [item["type"] for item in body["messages"][2]["content"]] == ["text", "image"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model": "unknown"}, {}),
        ({"model": "unknown", "effort": "high"}, {"output_config": {"effort": "high"}, "thinking": "adaptive"}),
        ({"model": "on"}, {"thinking": "adaptive"}),
        ({"model": "on", "effort": "minimal"}, {"output_config": {"effort": "low"}, "thinking": "adaptive"}),
        ({"model": "on", "effort": "xhigh"}, {"output_config": {"effort": "xhigh"}, "thinking": "adaptive"}),
        ({"model": "on", "thinking_budget": 0}, {"thinking": {"type": "disabled"}}),
        ({"model": "on", "temperature": 0.3, "top_p": 0.5}, {"thinking": "adaptive"}),
        ({"model": "optional"}, {}),
        ({"model": "optional", "thinking_budget": 5_000}, {"thinking": "adaptive"}),
        ({"model": "bound", "thinking_budget": 0}, {"thinking": {"type": "between_tools"}}),
        ({"model": "capped", "thinking_budget": 0, "effort": "max"}, {"output_config": {"effort": "max"}}),
        ({"model": "budget", "temperature": 0.3, "top_p": 0.5}, {"temperature": 0.3}),
        ({"model": "budget", "top_p": 0.5}, {"top_p": 0.5}),
        ({"model": "budget", "effort": "high"}, {"thinking": {"type": "enabled", "budget_tokens": 8_000}}),
        (
            {"model": "budget", "effort": "low", "max_tokens": 2_000},
            {"thinking": {"type": "enabled", "budget_tokens": 1_024}},
        ),
        ({"model": "budget", "effort": "max", "max_tokens": 1_000}, {}),
        (
            {"model": "budget", "thinking_budget": 10**6, "max_tokens": 5_000},
            {"thinking": {"type": "enabled", "budget_tokens": 4_999}},
        ),
        (
            {"model": "budget", "effort": "low", "temperature": 1.0},
            {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
        ),
        ({"model": "small", "effort": "high"}, {}),
    ],
)
def test_settings_follow_the_models_abilities(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """Effort, budget and sampling go out as the model takes them, never by its name."""
    adaptive = {"type": "adaptive", "display": "summarized"}
    assert settings(**fields) == {k: adaptive if v == "adaptive" else v for k, v in expected.items()}


def test_limits_keep_below_the_models() -> None:
    """The default and what was asked for are cut to what the model can write."""
    assert encode(model="small")["max_tokens"] == 4_096
    assert encode(model="budget", max_tokens=10**6)["max_tokens"] == 64_000


def test_sampling_asks_for_the_version_that_takes_it() -> None:
    """Models that sample do so under an older API version; others keep the current one."""
    sampled = encoded(ADAPTER, Request(model="budget", messages=(user("x"),), temperature=0.1))
    assert sampled.headers["anthropic-version"] == "2023-06-01"
    assert encoded(ADAPTER, Request(model="budget", messages=(user("x"),))).headers["anthropic-version"] == "2026-10-21"


def test_bound_thinking_survives_a_changed_prompt() -> None:
    """Models whose thinking is bound to its prefix are told to drop what no longer fits."""
    wire = encoded(ADAPTER, Request(model="bound", messages=(user("x"),)))
    assert wire.body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert wire.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


def test_sealed_blocks_go_back_as_they_came() -> None:
    """Signed and redacted thinking, the server's own blocks and citations return exactly, in order."""
    _, thought = read("thinking")
    _, searched = read("server-tool")
    body = encode(user("a"), thought, user("b"), searched, user("c"), model="m")
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Seven times eight.", "signature": "c2FtcGxlLXNpZw=="},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
        {"type": "text", "text": "56"},
    ]
    search, result, text = body["messages"][3]["content"]
    assert search == {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
    assert result["content"][0]["encrypted_content"] == "c2VhbGVk"
    assert text["citations"][0]["encrypted_index"] == "Eg=="


def test_sealed_blocks_stay_with_their_model() -> None:
    """Another model, or the same one by another route, gets the words only."""
    _, message = read("thinking")
    other_route = Anthropic(provider="gateway", abilities=abilities)
    for body in (
        encode(user("a"), message, user("b"), model="another"),
        encoded(other_route, Request(model="m", messages=(user("a"), message, user("b")))).body,
    ):
        assert body["messages"][1]["content"] == [{"type": "text", "text": "56"}]


def test_a_transcript_survives_its_file() -> None:
    """What was written to disk and read back replays the same."""
    _, message = read("server-tool")
    again = Message.from_json(message.to_json())
    assert again == message
    assert encode(user("a"), again, user("b"), model="m") == encode(user("a"), message, user("b"), model="m")


def test_a_refusal_is_noted_and_kept_but_never_sent() -> None:
    """The user is told why, the details stay in the transcript, the next request has none of it."""
    events, message = read("refusal")
    assert [event.text for event in events if event.type == "notice"] == [
        "The model declined to answer (cyber): Not this."
    ]
    assert message.stop_reason == "refusal"
    assert message.blocks[-1].raw == {"type": "refusal", "category": "cyber", "explanation": "Not this."}
    assert encode(user("a"), message, user("b"), model="m")["messages"][1]["content"] == [
        {"type": "text", "text": "Well"}
    ]


def test_an_empty_answer_is_one_empty_text() -> None:
    """An answer without a block has one, so that nothing downstream meets an empty message."""
    assert read("empty")[1].blocks == (text_block(""),)


def test_a_fallback_stamps_who_answered() -> None:
    """The model that took over is the message's model; the hop itself is kept for its server."""
    _, message = read("fallback")
    assert message.model == "claude-opus-5"
    assert message.blocks[0].raw["type"] == "fallback"


def test_usage_is_a_guess_until_the_end() -> None:
    """The count at the start is a beginning; a broken stream says that its usage is estimated."""
    decoder = ADAPTER.decoder(Request(model="m", messages=()))
    decoder.event("", {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}})
    assert decoder.draft.usage is not None
    assert decoder.draft.usage.estimated
    decoder.event("", {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}})
    assert (decoder.draft.usage.output, decoder.draft.usage.estimated) == (7, False)


def test_a_frame_cut_off_is_a_broken_stream() -> None:
    """JSON that breaks off at the end of the body is a lost connection; one with more behind it is not JSON at all."""
    decoder = ADAPTER.decoder(Request(model="m", messages=()))
    decoder.event("", '{"type":"message_st')
    with pytest.raises(errors.ServerError):
        decoder.finish()
    with pytest.raises(errors.BadWire):
        decoder.event("", {"type": "ping"})


@pytest.mark.parametrize("data", [5, [], {"type": "content_block_delta", "delta": 3}])
def test_strange_frames_are_bad_wire(data: Any) -> None:
    """What is no event of this API is said to be so."""
    with pytest.raises(errors.BadWire):
        list(ADAPTER.decoder(Request(model="m", messages=())).event("", data))
