"""The vendors' own SDKs read the same bytes from the same server, and read the same out of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from larik_nb import errors
from larik_nb.types import Message
from tests import corpus
from tests._serve import Server

anthropic = pytest.importorskip("anthropic", reason="the test extra has the vendors' SDKs")
openai = pytest.importorskip("openai", reason="the test extra has the vendors' SDKs")
genai = pytest.importorskip("google.genai", reason="the test extra has the vendors' SDKs")

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / "shared" / "wire"
EXPLAINED: Mapping[str, str] = json.loads((HERE / "sdk_differences.json").read_bytes())

# What the SDKs warn of (models that end, their own pydantic) is not ours.
pytestmark = pytest.mark.filterwarnings("ignore")

Reading = dict[str, Any]
"""What a client made of an answer: text, thinking, calls, input, output, model."""


def squeezed(text: str | None) -> str:
    """Return text without white space: SDKs join their parts with some, without, or not at all."""
    return "".join((text or "").split())


def ours(message: Message) -> Reading:
    usage = message.usage
    return {
        "text": message.text,
        "thinking": squeezed(message.thinking),
        "calls": [(call.name, call.input) for call in message.tool_calls],
        "input": usage.prompt if usage else None,
        "output": usage.output if usage else None,
        "model": message.model,
    }


# -- anthropic --------------------------------------------------------------------------------------------------
def by_anthropic(url: str, case: corpus.Case) -> Reading:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        asked = {"model": "m", "max_tokens": 1000, "messages": [{"role": "user", "content": "hi"}]}
        if not case.data["stream"]:
            return _anthropic(client.beta.messages.create(**asked))
        with client.beta.messages.stream(**asked) as stream:
            return _anthropic(stream.get_final_message())


def _anthropic(message: Any) -> Reading:
    counts = message.usage
    cached = (counts.cache_read_input_tokens or 0) + (counts.cache_creation_input_tokens or 0)
    return {
        "text": "".join(block.text for block in message.content if block.type == "text"),
        "thinking": squeezed("".join(block.thinking for block in message.content if block.type == "thinking")),
        "calls": [(block.name, block.input) for block in message.content if block.type == "tool_use"],
        "input": counts.input_tokens + cached,
        "output": counts.output_tokens,
        "model": message.model,
    }


# -- openai -----------------------------------------------------------------------------------------------------
def by_openai(url: str, case: corpus.Case) -> Reading:
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        if not case.data["stream"]:
            return _openai(client.responses.create(model="m", input="hi"))
        last: Any = None
        for event in client.responses.create(model="m", input="hi", stream=True):
            if event.type == "error":
                raise openai.OpenAIError(event.message)
            last = getattr(event, "response", None) if event.type in TERMINAL else last
        if last is None or last.status == "failed":
            raise openai.OpenAIError("no end, or a failed one")
        return _openai(last)


TERMINAL = ("response.completed", "response.incomplete", "response.failed")


def _openai(response: Any) -> Reading:
    counts = response.usage
    return {
        "text": response.output_text,
        "thinking": squeezed("".join(_thought(item) for item in response.output if item.type == "reasoning")),
        "calls": [(item.name, _parsed(item.arguments)) for item in response.output if item.type == "function_call"],
        "input": counts.input_tokens if counts else None,
        "output": counts.output_tokens if counts else None,
        "model": response.model,
    }


def _thought(item: Any) -> str:
    return "".join(part.text for part in item.summary or item.content or ())


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return None


# -- google -----------------------------------------------------------------------------------------------------
def by_google(url: str, case: corpus.Case) -> Reading:
    client = genai.Client(api_key="k", http_options={"base_url": url, "retry_options": {"attempts": 1}})
    if not case.data["stream"]:
        return _google([client.models.generate_content(model="m", contents="hi")])
    return _google(list(client.models.generate_content_stream(model="m", contents="hi")))


def _google(chunks: list[Any]) -> Reading:
    parts = [part for chunk in chunks for part in _parts(chunk)]
    counts = next((chunk.usage_metadata for chunk in reversed(chunks) if chunk.usage_metadata), None)
    return {
        "text": "".join(part.text for part in parts if part.text and not part.thought),
        "thinking": squeezed("".join(part.text for part in parts if part.text and part.thought)),
        "calls": [(part.function_call.name, part.function_call.args or {}) for part in parts if part.function_call],
        "input": (counts.prompt_token_count or 0) + (counts.tool_use_prompt_token_count or 0) if counts else None,
        "output": (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0) if counts else None,
        "model": next((chunk.model_version for chunk in reversed(chunks) if chunk.model_version), None),
    }


def _parts(chunk: Any) -> list[Any]:
    content = chunk.candidates[0].content if chunk.candidates else None
    return (content.parts if content else None) or []


SDKS: Mapping[str, tuple[Callable[[str, corpus.Case], Reading], type[Exception] | tuple[type[Exception], ...]]] = {
    "anthropic.messages": (by_anthropic, (anthropic.AnthropicError, ValueError)),
    "openai.responses": (by_openai, openai.OpenAIError),
    "gemini.generate": (by_google, (genai.errors.APIError, ValueError)),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def cases() -> list[corpus.Case]:
    found = corpus.load(HERE / "wire") + (corpus.load(SHARED) if SHARED.is_dir() else [])
    return [case for case in found if case.api in SDKS]


def differences(case: corpus.Case, server: Server) -> dict[str, tuple[Any, Any]]:
    """Return in what the vendor's SDK and ours differ: field → (SDK's, ours)."""
    read, failure = SDKS[case.api]
    outcome = asyncio.run(corpus.ask(case, server.url(case.answer(None))))
    try:
        theirs = read(server.url(case.answer(None)), case)
    except failure as exc:
        failed = isinstance(outcome.error, errors.APIError)
        return {} if failed else {"error": (repr(exc), outcome.message)}
    if outcome.error is not None or outcome.message is None:
        return {"error": (None, repr(outcome.error))}
    mine = ours(outcome.message)
    # A model that no response names is the one asked for, here.
    return {name: (value, mine[name]) for name, value in theirs.items() if value != mine[name] and value is not None}


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_the_sdk_reads_the_same(case: corpus.Case, server: Server) -> None:
    """Our answer equals the SDK's, or the difference is on the list with its reason."""
    found = differences(case, server)
    if case.id in EXPLAINED:
        assert found, "no longer differs: take it off sdk_differences.json"
        pytest.skip(EXPLAINED[case.id])
    assert found == {}
