"""What the provider does beyond its adapter, over HTTP: one try without reasoning, overflows nobody tells of, counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from larik_nb import errors, providers
from larik_nb.catalog import Model
from larik_nb.providers._wire import Adapter, WireProvider
from larik_nb.providers.anthropic import Anthropic
from larik_nb.providers.gemini import Gemini
from larik_nb.providers.ollama import Ollama
from larik_nb.providers.openai import OpenAI
from larik_nb.providers.openai_compatible import OpenAICompatible
from larik_nb.types import Block, Message, Request, StreamEvent, ToolSpec, Usage, text_block, user
from tests._serve import Answer, Server
from tests.providers._decode import lines, sse

THOUGHT = Block(type="thinking", text="hm", signature="sealed", provider="p")
ANSWERED = Message(role="assistant", blocks=(THOUGHT, text_block("56")), model="m")
ASKED = (user("7 × 8?"), ANSWERED, user("Sure?"))
TOOL = ToolSpec(name="read", description="Reads.", parameters={"type": "object", "properties": {}})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def refused(message: str, status: int = 400, **error: Any) -> Answer:
    return Answer(status=status, body=json.dumps({"error": {"message": message, **error}}).encode(), chunked=False)


def streamed(*events: Any) -> Answer:
    return Answer(body=sse(*events, end=""))


YES = streamed(
    {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Yes"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)
SIGNATURE = refused("messages.1.content.0: Invalid `signature` in `thinking` block", type="invalid_request_error")


def window(tokens: int | None) -> Any:
    return lambda model: Model(provider="p", id=model, window=tokens)


def ask(url: str, adapter: Adapter, *messages: Message, **fields: Any) -> list[StreamEvent]:
    async def events() -> list[StreamEvent]:
        provider = WireProvider(adapter, name="p", base_url=url, **fields)
        return [event async for event in provider.stream(Request(model="m", messages=messages))]

    return asyncio.run(events())


# -- reasoning that is refused --------------------------------------------------------------------------------------
def test_refused_reasoning_is_left_out_once(server: Server) -> None:
    """One notice, one more request without any of it, and the answer."""
    at = len(server.received)
    events = ask(server.url(SIGNATURE, YES), Anthropic(provider="p"), *ASKED)
    assert [event.type for event in events] == ["notice", "text_delta", "done"]
    assert "without" in events[0].text
    first, second = (json.loads(item.body)["messages"] for item in server.received[at:])
    assert [item["type"] for item in first[1]["content"]] == ["thinking", "text"]
    assert second[1]["content"] == [{"type": "text", "text": "56"}]
    assert [first[0], first[2]] == [second[0], second[2]]


def test_refused_again_is_an_error(server: Server) -> None:
    """Not a third time."""
    at = len(server.received)
    with pytest.raises(errors.BadRequest, match="signature"):
        ask(server.url(SIGNATURE), Anthropic(provider="p"), *ASKED)
    assert len(server.received) - at == 2


@pytest.mark.parametrize(
    ("answer", "messages"),
    [
        pytest.param(SIGNATURE, (user("x"),), id="nothing to leave out"),
        pytest.param(refused("messages.1: tool_use ids must be unique"), ASKED, id="another reason"),
        pytest.param(refused("Invalid signature in thinking block", 403), ASKED, id="another status"),
    ],
)
def test_other_refusals_are_not_repeated(server: Server, answer: Answer, messages: tuple[Message, ...]) -> None:
    """Only a refusal of reasoning that was sent is worth a second request."""
    at = len(server.received)
    with pytest.raises(errors.APIError):
        ask(server.url(answer), Anthropic(provider="p"), *messages)
    assert len(server.received) - at == 1


def test_nothing_is_repeated_once_something_was_shown(server: Server) -> None:
    """An error behind text ends the answer; what came is kept."""
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Ye"}}
    error = {"type": "error", "error": {"code": 400, "message": "Invalid signature in thinking block"}}
    at = len(server.received)
    with pytest.raises(errors.BadRequest) as caught:
        ask(server.url(streamed(start, error)), Anthropic(provider="p"), *ASKED)
    assert len(server.received) - at == 1
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Ye"


@pytest.mark.parametrize(
    "said",
    [
        "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        "Function call is missing a thought_signature in functionCall parts.",
        "Thought signature is not valid",
        "The encrypted content for item rs_0a1b2c3d could not be verified.",
        "Item 'rs_6898c8c' of type 'reasoning' was provided without its required following item.",
    ],
)
def test_refusals_of_reasoning_are_known(said: str) -> None:
    """In each vendor's words; a setting that is refused is another matter."""
    assert errors.classify(400, {}, refused(said).body).cause == "reasoning"
    assert errors.classify(400, {}, refused("thinking.budget_tokens: must be at least 1024").body).cause == ""


# -- overflows that nobody tells of ---------------------------------------------------------------------------------
def counted(prompt: int, *, text: str = "", stop: str = "stop", written: int = 1) -> Answer:
    message = {"role": "assistant", "content": text}
    last = {"done": True, "done_reason": stop, "prompt_eval_count": prompt, "eval_count": written}
    return Answer(body=lines({"model": "m", "message": message, **last}))


def test_usage_above_the_window_is_an_overflow_where_nothing_was_answered(server: Server) -> None:
    """What was answered is an answer: the window that is known may be an old one."""
    adapter = Ollama(provider="p", num_ctx=100)
    assert ask(server.url(counted(100)), adapter, user("x"))[-1].type == "done"
    assert ask(server.url(counted(101, text="ok")), adapter, user("x"))[-1].type == "done"
    with pytest.raises(errors.ContextOverflow) as caught:
        ask(server.url(counted(101)), adapter, user("x"))
    error = caught.value
    assert (error.used_tokens, error.max_tokens, error.cause, error.provider) == (101, 100, "", "p")


def test_an_empty_answer_to_a_prompt_above_the_window_is_probably_one(server: Server) -> None:
    """By the window that was probed, before the one of the catalog."""
    adapter, long = OpenAICompatible(provider="p", abilities=window(100_000)), user("word " * 400)
    empty = {"choices": [{"delta": {"role": "assistant"}, "finish_reason": "stop"}]}
    assert ask(server.url(streamed(empty)), adapter, long)[-1].type == "done"
    with pytest.raises(errors.ContextOverflow, match="probably too long") as caught:
        ask(server.url(streamed(empty)), adapter, long, window=lambda _model: 300)
    assert (caught.value.used_tokens, caught.value.max_tokens, caught.value.cause) == (500, 300, "probably")
    assert ask(server.url(streamed(empty)), adapter, user("x"), window=lambda _model: 300)[-1].type == "done"


def test_no_room_for_a_single_token_is_an_overflow(server: Server) -> None:
    """The answer ended at its limit before it began."""
    with pytest.raises(errors.ContextOverflow):
        ask(server.url(counted(99, stop="length", written=0)), Ollama(provider="p", num_ctx=100), user("x"))
    thought = counted(9, stop="length", written=50)
    assert ask(server.url(thought), Ollama(provider="p", num_ctx=100), user("x"))[-1].type == "done"


@pytest.mark.parametrize(
    ("said", "words", "kind"),
    [
        ("Bad Request", 368, "context_overflow"),
        ("Request contains an invalid argument.", 368, "context_overflow"),
        ("Bad Request", 352, "bad_request"),
        ("messages.0.role: unexpected value", 368, "bad_request"),
    ],
)
def test_a_refusal_without_a_reason_near_the_window(server: Server, said: str, words: int, kind: str) -> None:
    """Above nine tenths of it the prompt is the likely reason; not where another one is named."""
    adapter = OpenAICompatible(provider="p", abilities=window(500))
    with pytest.raises(errors.BadRequest) as caught:
        ask(server.url(refused(said)), adapter, user("word " * words))
    assert caught.value.kind == kind
    assert (caught.value.cause == "probably") == (kind == "context_overflow")
    assert caught.value.provider == "p"


def test_an_unknown_window_proves_nothing(server: Server) -> None:
    """Without a number there is no overflow to guess."""
    with pytest.raises(errors.BadRequest) as caught:
        ask(server.url(refused("Bad Request")), OpenAICompatible(provider="p"), user("word " * 10**5))
    assert caught.value.kind == "bad_request"


# -- counts ---------------------------------------------------------------------------------------------------------
COUNTERS: list[tuple[Any, str, dict[str, Any], set[str]]] = [
    (
        Anthropic,
        "/v1/messages/count_tokens",
        {"input_tokens": 42},
        {"model", "messages", "system", "tools", "thinking", "output_config"},
    ),
    (
        OpenAI,
        "/responses/input_tokens",
        {"object": "response.input_tokens", "input_tokens": 42},
        {"model", "input", "instructions", "tools", "reasoning"},
    ),
    (Gemini, "/v1beta/models/m:countTokens", {"totalTokens": 42}, {"generateContentRequest"}),
]


def count(url: str, adapter: Adapter) -> int | None:
    request = Request(model="m", messages=ASKED, system="Be brief.", tools=(TOOL,), effort="high", max_tokens=99)
    return asyncio.run(providers.count(WireProvider(adapter, name="p", base_url=url), request))


@pytest.mark.parametrize(("adapter", "path", "answer", "fields"), COUNTERS)
def test_the_vendor_counts(server: Server, adapter: Any, path: str, answer: Any, fields: set[str]) -> None:
    """It is asked with all that makes the prompt, and nothing that its endpoint does not take."""
    url = server.url(Answer(body=json.dumps(answer).encode(), chunked=False))
    assert count(url, adapter(provider="p")) == 42
    received = server.received[-1]
    body = json.loads(received.body)
    assert received.path.endswith(path)
    assert body.keys() == fields
    sent = body.get("generateContentRequest", body)
    assert "Be brief." in json.dumps(sent)
    assert sent["tools"]
    assert sent["model"].endswith("m")


@pytest.mark.parametrize("body", [b"{}", b'{"input_tokens": "many"}', b"[1]", b"oops"])
def test_a_count_that_is_none_is_bad_wire(server: Server, body: bytes) -> None:
    """Never taken for zero."""
    with pytest.raises(errors.BadWire):
        count(server.url(Answer(body=body, chunked=False)), Anthropic(provider="p"))


def test_a_count_that_fails_names_the_provider(server: Server) -> None:
    """Like any other request."""
    with pytest.raises(errors.AuthError, match="p rejected the key"):
        count(server.url(refused("no", 401)), Gemini(provider="p"))


def test_who_does_not_count_says_so() -> None:
    """Nothing is sent."""
    assert count("http://127.0.0.1:9", Ollama(provider="p")) is None
    assert count("http://127.0.0.1:9", OpenAICompatible(provider="p")) is None


def test_usage_of_the_conversation_corrects_the_estimate(server: Server) -> None:
    """A model that counts twice our guess is believed."""
    told = Message(role="assistant", blocks=(text_block("ok"),), model="m", usage=Usage(input=400, output=1))
    adapter = OpenAICompatible(provider="p", abilities=window(500))
    with pytest.raises(errors.ContextOverflow) as caught:
        ask(server.url(refused("Bad Request")), adapter, user("word " * 160), told, user("word " * 40))
    assert caught.value.used_tokens == 502
