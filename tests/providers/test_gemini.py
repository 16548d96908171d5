"""The Gemini API: signatures in their places, thoughts for display only, calls whole or in pieces."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from larik_nb import errors
from larik_nb.catalog import Model
from larik_nb.providers._replay import IMAGES_NOTE, OPENING
from larik_nb.providers.gemini import DISPLAY, NO_SIGNATURE, Gemini, usage
from larik_nb.types import Block, Message, Request, StreamEvent, ToolSpec, Usage, assistant, tool_result, user
from tests.providers._decode import ASKED, OFFERED, decode, encoded, joined, mutated, outcome, own, sse, values

PNG = Block(type="image", media_type="image/png", data="iVBORw0KGgo=")
INLINE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
LEVEL: dict[str, Any] = {"thinking": ("level",), "efforts": ("low", "high"), "sampling": "no", "signed_calls": True}
MODELS: dict[str, dict[str, Any]] = {
    "level": {**LEVEL, "tool_images": True},
    "budget": {"thinking": ("budget",), "efforts": (), "sampling": "yes"},
    "plain": {"thinking": (), "efforts": (), "sampling": "yes"},
}


def abilities(model: str) -> Model | None:
    return Model(provider="gemini", id=model, **MODELS[model]) if model in MODELS else None


ADAPTER = Gemini(abilities=abilities)


def encode(*messages: Message, model: str = "m", **fields: Any) -> dict[str, Any]:
    return encoded(ADAPTER, Request(model=model, messages=messages or (user("Hi"),), **fields)).body


def contents(*messages: Message, model: str = "m") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = encode(*messages, model=model)["contents"]
    return found


def call(id_: str = "c1", **fields: Any) -> Block:
    return Block(type="tool_use", id=id_, name="read", input={"path": "a"}, **fields)


def mine(*blocks: Block, model: str = "m") -> Message:
    """Return an answer of this route and model."""
    return replace(assistant(*(replace(block, provider="gemini") for block in blocks)), model=model)


# -- requests ---------------------------------------------------------------------------------------------------
def test_a_plain_question() -> None:
    """The smallest request."""
    wire = encoded(ADAPTER, Request(model="gemini-x", messages=(user("Hi"),)))
    assert wire.path == "/v1beta/models/gemini-x:streamGenerateContent?alt=sse"
    assert wire.body == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    assert ADAPTER.credential("k") == {"x-goog-api-key": "k"}


def test_a_model_with_its_own_collection() -> None:
    """Such as a tuned one."""
    path = encoded(ADAPTER, Request(model="tunedModels/a b", messages=())).path
    assert path == "/v1beta/tunedModels/a%20b:streamGenerateContent?alt=sse"


def test_everything_a_request_can_say() -> None:
    """Settings and tools."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    body = encode(
        model="budget",
        system="Be brief.",
        tools=(ToolSpec(name="read", description="Read.", parameters=schema), ToolSpec(name="now")),
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        seed=3,
        stop=("END",),
        thinking_budget=256,
    )
    assert body == {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "read", "description": "Read.", "parametersJsonSchema": schema},
                    {"name": "now", "description": ""},
                ]
            }
        ],
        "generationConfig": {
            "maxOutputTokens": 9,
            "temperature": 0.5,
            "topP": 0.9,
            "seed": 3,
            "stopSequences": ["END"],
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 256},
        },
    }


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"model": "level", "effort": "max"}, {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        (
            {"model": "level", "effort": "minimal", "thinking_budget": 99},
            {"includeThoughts": True, "thinkingLevel": "LOW"},
        ),
        ({"model": "level"}, {"includeThoughts": True}),
        ({"model": "level", "thinking_budget": 99}, {"includeThoughts": True}),
        ({"model": "budget", "effort": "medium"}, {"includeThoughts": True, "thinkingBudget": 8192}),
        ({"model": "budget", "effort": "low", "thinking_budget": 0}, {"includeThoughts": False, "thinkingBudget": 0}),
        ({"model": "budget"}, {"includeThoughts": True}),
        ({"model": "plain", "effort": "high", "thinking_budget": 9}, None),
        ({"effort": "high"}, {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        ({"thinking_budget": 9}, {"includeThoughts": True, "thinkingBudget": 9}),
        ({}, None),
    ],
)
def test_thinking_by_what_the_model_takes(fields: dict[str, Any], wanted: dict[str, Any] | None) -> None:
    """A level or a budget, never both; an unknown model gets what was asked for and nothing else."""
    assert encode(**fields).get("generationConfig", {}).get("thinkingConfig") == wanted


def test_sampling_only_where_it_is_taken() -> None:
    """Elsewhere it is ignored or refused."""
    assert "temperature" not in encode(model="level", temperature=0.5)["generationConfig"]


def test_a_call_and_its_result_repeat_id_and_name() -> None:
    """Images stand inside the result where the model takes them there, else behind it."""
    history = (user("x"), mine(call(signature="sig"), call("c2"), model="level"))
    answers = user(tool_result("c2", "B", is_error=True), tool_result("c1", "A", images=[PNG]))
    found = contents(*history, answers, model="level")
    said = {"id": "c1", "name": "read", "response": {"output": "A"}}
    failed = {"functionResponse": {"id": "c2", "name": "read", "response": {"error": "B"}}}
    assert found[1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "c1", "name": "read", "args": {"path": "a"}}, "thoughtSignature": "sig"},
                {"functionCall": {"id": "c2", "name": "read", "args": {"path": "a"}}},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {**said, "parts": [INLINE]}}, failed]},
    ]
    assert contents(*history, answers, model="budget")[2]["parts"] == [
        {"functionResponse": said},
        failed,
        {"text": IMAGES_NOTE},
        INLINE,
    ]


def test_another_models_call_gets_the_placeholder() -> None:
    """Where signatures are demanded or nothing is known; another's signature is never sent."""
    foreign = replace(assistant(call(provider="other", signature="theirs")), model="n")
    signatures = [
        contents(user("x"), foreign, model=model)[1]["parts"][0].get("thoughtSignature")
        for model in ("level", "m", "budget")
    ]
    assert signatures == [NO_SIGNATURE, NO_SIGNATURE, None]


def test_what_is_sealed_goes_to_its_own_model_only() -> None:
    """Signed text (empty, too), signed images and parts of the server's; thoughts never."""
    code = {"executableCode": {"code": "1"}, "thoughtSignature": "s0"}
    blocks = (
        Block(type="thinking", text="hm", provider=DISPLAY),
        Block(type="opaque", raw=code, signature="s0", provider="gemini"),
        Block(type="text", text="hi", signature="s1", provider="gemini"),
        replace(PNG, signature="s2", provider="gemini"),
        Block(type="text", text="", signature="s3", provider="gemini"),
    )
    message = Message(role="assistant", blocks=blocks, model="m")
    assert contents(user("x"), message)[1]["parts"] == [
        code,
        {"text": "hi", "thoughtSignature": "s1"},
        {**INLINE, "thoughtSignature": "s2"},
        {"text": "", "thoughtSignature": "s3"},
    ]
    assert contents(user("x"), message, model="budget")[1]["parts"] == [{"text": "hi"}, INLINE]


def test_only_thoughts_is_no_message() -> None:
    """Neighbours merge over it."""
    thought = Block(type="thinking", text="hm", provider=DISPLAY)
    assert contents(user("a"), mine(thought), user("b")) == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]


def test_a_conversation_without_its_beginning_gets_one() -> None:
    """A user's turn has to come first."""
    assert contents(mine(Block(type="text", text="a")), user("b"))[0] == {"role": "user", "parts": [{"text": OPENING}]}


# -- answers ----------------------------------------------------------------------------------------------------
def part(*parts: dict[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {
        "candidates": [candidate | ({"finishReason": finish} if finish else {})],
        "modelVersion": "served",
        **fields,
    }


def read(*events: Any, request: Request = ASKED) -> tuple[list[StreamEvent], Message]:
    return decode(ADAPTER, sse(*events, end=""), request=request)


def test_signed_parts_stay_apart_and_unsigned_ones_merge() -> None:
    """In their places, an empty one at the end too."""
    message = read(
        part({"text": "th", "thought": True}),
        part({"text": "ought", "thought": True}),
        part({"text": "a"}),
        part({"text": "b"}),
        part({"text": "c", "thoughtSignature": "s1"}),
        part({"text": "d"}),
        part({"text": "", "thoughtSignature": "s2"}, finish="STOP"),
    )[1]
    assert message.blocks == (
        Block(type="thinking", text="thought", provider=DISPLAY),
        Block(type="text", text="ab", provider="gemini"),
        Block(type="text", text="c", signature="s1", provider="gemini"),
        Block(type="text", text="d", provider="gemini"),
        Block(type="text", text="", signature="s2", provider="gemini"),
    )
    assert contents(user("x"), message)[1]["parts"] == [
        {"text": "ab"},
        {"text": "c", "thoughtSignature": "s1"},
        {"text": "d"},
        {"text": "", "thoughtSignature": "s2"},
    ]


def test_calls_keep_ids_and_signatures() -> None:
    """A missing or doubled id is made; the reason is a call for tools."""
    events, message = read(
        part({"functionCall": {"name": "read", "args": {"path": "a"}, "id": "f1"}, "thoughtSignature": "s"}),
        part({"functionCall": {"name": "read"}}, {"functionCall": {"name": "read", "args": {}, "id": "f1"}}),
        part({"text": ""}, finish="STOP"),
    )
    assert [(block.id, block.input, block.signature) for block in message.tool_calls] == [
        ("f1", {"path": "a"}, "s"),
        ("call_2", {}, None),
        ("call_3", {}, None),
    ]
    assert message.stop_reason == "tool_use"
    assert [event.type for event in events] == ["tool_use_start", "tool_input_delta"] * 3
    assert json.loads(events[1].text) == {"path": "a"}


def partial(*pieces: dict[str, Any], more: bool = True) -> dict[str, Any]:
    return {"functionCall": {"partialArgs": list(pieces), **({"willContinue": True} if more else {})}}


def test_arguments_at_paths_are_put_together() -> None:
    """Strings grow while they continue; keys may be quoted."""
    message = read(
        part({"functionCall": {"name": "read", "willContinue": True}, "thoughtSignature": "s"}),
        part(partial({"jsonPath": "$.a[0].b", "stringValue": "x", "willContinue": True})),
        part(partial({"jsonPath": "$.a[0].b", "stringValue": "y", "willContinue": True})),
        part(partial({"jsonPath": "$.a[0].b", "stringValue": ""}, {"jsonPath": "$.a[1]", "numberValue": 0})),
        part(partial({"jsonPath": "$['c d']", "boolValue": False}, {"jsonPath": "$.e", "nullValue": None}, more=False)),
        part({"text": "!"}, finish="STOP"),
    )[1]
    assert message.tool_calls[0].input == {"a": [{"b": "xy"}, 0], "c d": False, "e": None}
    assert message.tool_calls[0].signature == "s"
    assert message.text == "!"


@pytest.mark.parametrize("path", ["a", "$", "$.a[9]", "$.a..b", "$[0]", "$.*", "$.a['b"])
def test_a_path_that_leads_nowhere_is_bad_wire(path: str) -> None:
    """The arguments would not be what the model said."""
    with pytest.raises(errors.BadWire):
        read(part({"functionCall": {"name": "read", "willContinue": True}}), part(partial({"jsonPath": path})))


def test_a_call_that_was_cut_is_never_run() -> None:
    """What came of it is kept."""
    begun = part({"functionCall": {"name": "read", "willContinue": True}})
    message = read(begun, part(partial({"jsonPath": "$.path", "stringValue": "a"}), finish="MAX_TOKENS"))[1]
    assert message.tool_calls[0].invalid
    assert '"stringValue": "a"' in (message.tool_calls[0].input_raw or "")
    assert message.stop_reason == "max_tokens"


def test_what_the_server_ran_and_drew_is_kept() -> None:
    """Code as it came, images as images."""
    code, result = {"executableCode": {"code": "1"}, "thoughtSignature": "s"}, {"codeExecutionResult": {"output": "1"}}
    sound = {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}}
    message = read(part(code), part(result), part(INLINE, sound, finish="STOP"))[1]
    assert message.blocks == (
        Block(type="opaque", raw=code, signature="s", provider="gemini"),
        Block(type="opaque", raw=result, provider="gemini"),
        replace(PNG, provider="gemini"),
        Block(type="opaque", raw=sound, provider="gemini"),
    )


@pytest.mark.parametrize(
    ("reason", "wanted", "told"),
    [
        ("STOP", "end_turn", ""),
        ("MAX_TOKENS", "max_tokens", ""),
        ("SAFETY", "refusal", "the answer was ended: SAFETY"),
        ("MODEL_ARMOR", "refusal", "the answer was ended: MODEL_ARMOR"),
        ("MALFORMED_FUNCTION_CALL", "other", "the answer was ended: MALFORMED_FUNCTION_CALL"),
        ("UNEXPECTED_TOOL_CALL", "other", "the answer was ended: UNEXPECTED_TOOL_CALL"),
        ("A_REASON_OF_TOMORROW", "other", "the answer was ended: A_REASON_OF_TOMORROW"),
        ("CONTINUATION", "pause", "the answer reached the limit of one request and is not finished"),
    ],
)
def test_why_it_ended(reason: str, wanted: str, told: str) -> None:
    """What is no usual end is told."""
    events, message = read(part({"text": "a"}, finish=reason))
    assert (message.stop_reason, joined(events, "notice")) == (wanted, told)


def test_the_vendors_own_words_are_told() -> None:
    """Where there are some."""
    data = part(finish="MALFORMED_FUNCTION_CALL")
    data["candidates"][0]["finishMessage"] = "Malformed function call: print("
    assert joined(read(data)[0], "notice") == "Malformed function call: print("


def test_a_blocked_prompt_is_a_refusal() -> None:
    """It has no candidate and is no error."""
    events, message = read({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}})
    assert (message.stop_reason, message.blocks, message.usage) == ("refusal", (), Usage(input=3, output=0))
    assert joined(events, "notice") == "the prompt was blocked (SAFETY)"


def test_only_the_first_candidate_is_read() -> None:
    """And the reason may stand in every event."""
    second = {"candidates": [{"index": 1, "content": {"parts": [{"text": "b"}]}, "finishReason": "SAFETY"}]}
    message = read(part({"text": "a"}, finish="STOP"), second, part({"text": "c"}, finish="STOP"))[1]
    assert (message.text, message.stop_reason) == ("ac", "end_turn")


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ({"promptTokenCount": 10, "candidatesTokenCount": 4}, Usage(input=10, output=4)),
        ({"promptTokenCount": 10, "thoughtsTokenCount": 4}, Usage(input=10, output=4)),
        (
            {"promptTokenCount": 10, "cachedContentTokenCount": 8, "toolUsePromptTokenCount": 5},
            Usage(input=7, output=0, cache_read=8),
        ),
    ],
)
def test_counts(counts: dict[str, int], wanted: Usage) -> None:
    """Cached tokens are part of the prompt, tool results come on top, thoughts beside the answer."""
    assert usage(counts) == wanted


def test_the_last_usage_counts_and_none_is_unknown() -> None:
    """They are cumulative."""
    grow = [part({"text": "a"}, usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": n}) for n in (1, 5)]
    assert read(*grow, part(finish="STOP"))[1].usage == Usage(input=9, output=5)
    assert read(part({"text": "a"}, finish="STOP"))[1].usage is None


ERROR = {"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"}}


@pytest.mark.parametrize(
    "body",
    [
        sse(ERROR, end=""),
        sse(part({"text": "a"}), ERROR, end=""),
        sse(part({"text": "a"}), end=json.dumps(ERROR, indent=2)),
        json.dumps(ERROR, indent=2).encode(),
        json.dumps([ERROR]).encode(),
        json.dumps([part({"text": "a"}), ERROR]).encode(),
        b'{"detail": "not here"}',
        b"[]",
        b"[1]",
        b"<html></html>",
    ],
)
def test_an_error_after_200_is_raised(body: bytes) -> None:
    """As an event, bare over several lines, in a list."""
    with pytest.raises(errors.APIError):
        decode(ADAPTER, body)


def test_a_list_or_an_object_instead_of_a_stream() -> None:
    """Is read all the same."""
    whole = [part({"text": "a"}), part({"text": "b"}, finish="STOP")]
    assert decode(ADAPTER, json.dumps(whole, indent=1).encode())[1].text == "ab"
    assert decode(ADAPTER, json.dumps(whole[1]).encode())[1].text == "b"


def test_a_cut_stream_is_an_error_that_may_be_retried() -> None:
    """Between frames or within one."""
    whole = sse(part({"text": "a"}), part({"text": "b"}, finish="STOP"), end="")
    for end in (whole.index(b"\n\n") + 2, len(whole) - 20):
        with pytest.raises(errors.ServerError):
            decode(ADAPTER, whole[:end])


def test_a_frame_that_is_no_json_is_bad_wire() -> None:
    """Skipping it could lose a piece of the answer."""
    with pytest.raises(errors.BadWire):
        read("data: {broken\n\n", part({"text": "a"}, finish="STOP"))


# -- any answer -------------------------------------------------------------------------------------------------
BODIES = own("gemini.generate")


@given(st.sampled_from(BODIES), st.lists(st.integers(0, 2000), max_size=20))
def test_any_cut_reads_the_same(body: bytes, cuts: list[int]) -> None:
    """However the network cuts the body."""
    assert outcome(ADAPTER, body, cuts, ASKED) == outcome(ADAPTER, body, (), ASKED)


@settings(max_examples=300)
@given(st.data())
def test_whatever_the_server_sends_raises_nothing_else(data: st.DataObject) -> None:
    """A value of another type is read past or a BadWire, and the partial answer can be had."""
    body = data.draw(st.sampled_from([body for body in BODIES if body.startswith(b"data")]))
    decoder, got = ADAPTER.decoder(OFFERED), list[StreamEvent]()
    try:
        for event in data.draw(mutated(values(body, "sse"))):
            got += decoder.event("", event)
        message = decoder.finish()
    except errors.APIError:
        decoder.draft.message().to_json()
    else:
        assert joined(got, "text_delta") == message.text
        assert Message.from_json(message.to_json()) == message
