"""Optional fields that a server turns down: recognised, left out from then on, and nothing else with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from larik_nb import errors
from larik_nb.providers import _refused
from larik_nb.providers._wire import Adapter, WireProvider
from larik_nb.providers.anthropic import Anthropic
from larik_nb.providers.gemini import Gemini
from larik_nb.providers.ollama import Ollama
from larik_nb.providers.openai import OpenAI
from larik_nb.providers.openai_compatible import OpenAICompatible
from larik_nb.routing.retry import WithRetry
from larik_nb.types import Request, user
from tests._serve import Answer, Server

EVERYTHING = Request(
    model="m", messages=(user("hi"),), temperature=0.2, top_p=0.9, seed=1, effort="low", max_tokens=100
)  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_learned() -> Iterator[None]:
    _refused.forget()
    yield
    _refused.forget()


def learned(adapter: Adapter, status: int, body: Any, request: Request = EVERYTHING) -> str:
    error = errors.classify(status, {}, json.dumps(body).encode())
    return _refused.learn(error, adapter.encode(request).body, adapter.optional, "p", "m")


def said(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


COMPATIBLE, OLLAMA = OpenAICompatible(provider="p"), Ollama(provider="p")


@pytest.mark.parametrize(
    ("adapter", "body", "place"),
    [
        (COMPATIBLE, said("Unrecognized request argument supplied: stream_options"), "stream_options"),
        (COMPATIBLE, {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}, "stream_options"),
        (COMPATIBLE, {"object": "error", "message": "[{'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]"}, "stream_options"),
        (COMPATIBLE, said("property 'reasoning_effort' is unsupported, did you mean 'reasoning_format'?"), "reasoning_effort"),
        (COMPATIBLE, said("seed is not supported on this endpoint"), "seed"),
        (COMPATIBLE, said("Unsupported value: 'temperature' does not support 0.2 with this model."), "temperature"),
        (OpenAI(), said("Unsupported parameter: 'temperature' is not supported with this model."), "temperature"),
        (OpenAI(), said("Unsupported parameter: 'reasoning.effort' is not supported with this model."), "reasoning"),
        (Anthropic(), said("This model does not support the effort parameter."), "output_config"),
        (Anthropic(), said("adaptive thinking is not supported on this model"), "thinking"),
        (Gemini(), said("Thinking level is not supported for this model."), "generationConfig.thinkingConfig"),
        (Gemini(), said("Unknown name \"thinkingLevel\" at 'generation_config.thinking_config': Cannot find field."), "generationConfig.thinkingConfig"),
        (OLLAMA, {"error": '"llama3" does not support thinking'}, "think"),
    ],
)  # fmt: skip
def test_a_field_that_is_turned_down_is_recognised(adapter: Adapter, body: Any, place: str):
    assert learned(adapter, 400, body) == place
    assert _refused.left_out("p", "m") == {place}
    assert _refused.left_out("p", "other") == frozenset()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("temperature must be between 0 and 2")),
        (400, said("Unsupported parameter: 'max_tokens' is not supported with this model.")),
        (400, said("tools[0].function.parameters: unknown name \"seed\"")),
        (400, said("maximum context length is 8192 tokens, stream_options unknown, you requested 9000 tokens")),
        (401, said("unsupported key: stream_options")),
        (429, said("seed is not supported in this many requests")),
        (400, said("top_k is not supported")),
    ],
)  # fmt: skip
def test_another_failure_turns_nothing_down(status: int, body: Any):
    assert learned(COMPATIBLE, status, body) == ""
    assert _refused.left_out("p", "m") == frozenset()


def test_what_was_not_sent_cannot_be_turned_down():
    bare = Request(model="m", messages=(user("hi"),))

    assert learned(COMPATIBLE, 400, said("seed is not supported"), bare) == ""


def test_leaving_out_touches_nothing_else_and_empties_no_object():
    body = {"a": 1, "options": {"seed": 1, "top_p": 2}, "only": {"seed": 1}}

    assert _refused.without(body, frozenset({"options.seed", "only.seed", "gone"})) == {"a": 1, "options": {"top_p": 2}}
    assert body["options"] == {"seed": 1, "top_p": 2}


def test_the_request_goes_out_again_without_and_so_does_every_later_one():
    refusal = Answer(
        status=400, body=json.dumps(said("Unrecognized request argument supplied: stream_options")).encode()
    )
    chunk = {"choices": [{"index": 0, "delta": {"content": "well"}, "finish_reason": "stop"}]}
    good = Answer(body=b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")

    with Server() as server:
        provider = WireProvider(COMPATIBLE, name="p", base_url=server.url(refusal))

        async def other_server(_seconds: float) -> None:
            provider.base_url = server.url(good)

        async def run() -> list[str]:
            chain = WithRetry(provider, sleep=other_server)
            return ["".join([event.text async for event in chain.stream(EVERYTHING)]) for _ in range(2)]

        answers = asyncio.run(run())
        bodies = [json.loads(received.body) for received in server.received]

    assert answers == ["well", "well"]
    assert ["stream_options" in body for body in bodies] == [True, False, False]
    assert bodies[1] == {key: value for key, value in bodies[0].items() if key != "stream_options"}
