"""Failures as a caller of our providers meets them: over real connections, cut anywhere, before and after output."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from larik_nb import errors
from larik_nb.providers._wire import WireProvider
from tests import corpus_errors
from tests._serve import Answer, Server
from tests.corpus_errors import Row
from tests.corpus_transports import ADAPTERS, ASKED, Asking, answer, events_of, framed, main

HERE = Path(__file__).parent
OWN = corpus_errors.read_rows(HERE / "errors_own.jsonl")
DEV = HERE.parent.parent / "shared" / "errors" / "errors_dev.jsonl"
ROWS = corpus_errors.read_rows(DEV) if DEV.exists() else []
SHARED = pytest.mark.skipif(not ROWS, reason="the shared corpus is not here")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


# -- the corpora ----------------------------------------------------------------------------------------------------
@SHARED
def test_shared_corpus_over_real_transports(capsys: pytest.CaptureFixture[str]) -> None:
    """As well as promised, and nearly all of it over connections."""
    main([str(DEV)])
    out = capsys.readouterr().out
    found, wanted, false, kinds, rows, fallback = map(int, re.findall(r"\d+", out.splitlines()[-1])[:6])
    assert found >= 0.97 * wanted, out
    assert false == 0, out
    assert kinds >= 0.96 * rows, out
    assert fallback >= 0.99 * rows, out
    assert sum(int(count) for count in re.findall(r"^ *(\d+) over", out, re.MULTILINE)) >= 0.9 * rows, out


def test_own_corpus_over_real_transports(server: Server) -> None:
    """A caller gets what the classifier says, whatever the way."""
    asking = Asking(server)
    wrong = {score.row["id"]: score.wrong for score in corpus_errors.judge(OWN, asking) if score.wrong}
    assert wrong == {}


# -- cut ------------------------------------------------------------------------------------------------------------
LONGEST = sorted((row for row in ROWS if row.get("api") in ADAPTERS), key=lambda row: -len(framed(row)))[:10]


async def cuts(server: Server, row: Row, at: Sequence[int]) -> list[BaseException]:
    """Return what asking comes to when the connection breaks after so many bytes of the body."""
    limit = asyncio.Semaphore(16)

    async def one(cut: int) -> BaseException:
        async with limit:
            try:
                events = await events_of(ADAPTERS[row["api"]], server.url(answer(row, cut=cut)))
            except errors.APIError as exc:
                return exc
            return AssertionError(f"{events[-1]} at {cut}")

    return list(await asyncio.gather(*map(one, at)))


@SHARED
@pytest.mark.parametrize("row", LONGEST, ids=lambda row: row["id"])
def test_cut_at_every_byte(server: Server, row: Row) -> None:
    """Always one of our errors in one line: its status speaks though its body is cut, an event counts once it is whole."""
    whole, expect = framed(row), row["expect"]
    kinds = {expect["kind"], *(row.get("accept_kinds") or ())}
    found = asyncio.run(cuts(server, row, range(len(whole))))
    for cut, error in enumerate(found):
        assert isinstance(error, errors.APIError), (cut, error)
        assert "\n" not in error.message
        if row["where"] == "http":
            assert error.status is not None, (cut, error)
            assert error.kind not in ("connection", "wire"), (cut, error)
            continue
        at_end = cut >= whole.index(b"\n\n") + 2
        assert error.kind in (kinds if at_end else {*kinds, "connection", "server_error"}), (cut, error.kind)


# -- before and after output ----------------------------------------------------------------------------------------
BEFORE: dict[str, dict[str, list[Any]]] = {
    "messages": {
        "first": [],
        "after a role": [{"type": "message_start", "message": {"role": "assistant", "model": "m", "content": []}}],
        "after text": [
            {"type": "message_start", "message": {"role": "assistant", "model": "m", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        ],
    },
    "responses": {
        "first": [],
        "after a role": [{"type": "response.created", "response": {"model": "m", "status": "in_progress"}}],
        "after text": [{"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "Hi"}],
    },
    "chat_completions": {
        "first": [],
        "after a role": [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}],
        "after text": [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}}]}],
    },
    "ollama_chat": {
        "first": [],
        "after a role": [{"message": {"role": "assistant", "content": ""}, "done": False}],
        "after text": [{"message": {"role": "assistant", "content": "Hi"}, "done": False}],
    },
}
STREAMED = [row for row in ROWS if row["where"] in ("sse", "ndjson") and row["api"] in BEFORE]


@SHARED
@pytest.mark.parametrize("when", ["first", "after a role", "after text"])
@pytest.mark.parametrize("row", STREAMED, ids=lambda row: row["id"])
def test_an_error_inside_a_stream(server: Server, row: Row, when: str) -> None:
    """It is what it is wherever it comes, and what came before it is kept."""
    body = framed(row, BEFORE[row["api"]][when])
    with pytest.raises(errors.APIError) as caught:
        asyncio.run(events_of(ADAPTERS[row["api"]], server.url(answer(row, body=body))))
    assert corpus_errors.score(row, caught.value).wrong == {}
    assert caught.value.partial is not None
    assert caught.value.partial.text == ("Hi" if when == "after text" else "")


# -- what only a connection shows -----------------------------------------------------------------------------------
def test_an_error_whose_body_breaks_off_is_told_by_its_status(server: Server) -> None:
    """The connection is not to blame for a key that is wrong."""
    body = json.dumps({"error": {"message": "Incorrect API key provided: sk-abc"}}).encode()
    for cut in (0, 20, len(body) - 1):
        url = server.url(Answer(status=401, body=body, cut=cut))
        with pytest.raises(errors.AuthError):
            asyncio.run(events_of(ADAPTERS["chat_completions"], url))


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("model_context_window_exceeded", "context_overflow"),
        ("engine_overloaded", "overloaded"),
        ("insufficient_system_resource", "overloaded"),
        ("error", "server_error"),
    ],
)
def test_reasons_to_stop_that_are_failures(server: Server, reason: str, kind: str) -> None:
    """An answer without a word that ended for such a reason is none."""
    chunk = {"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": reason}]}
    url = server.url(Answer(body=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()))
    with pytest.raises(errors.APIError) as caught:
        asyncio.run(events_of(ADAPTERS["chat_completions"], url))
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("sensitive", "refusal"), ("model_context_window_exceeded", "context_overflow"), ("eos", "end_turn")],
)
def test_reasons_to_stop_after_words(server: Server, reason: str, stop: str) -> None:
    """What was said stays an answer, and says why it ended."""
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": reason}]}
    url = server.url(Answer(body=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()))
    last = asyncio.run(events_of(ADAPTERS["chat_completions"], url))[-1]
    assert (last.stop_reason, last.message.text if last.message else None) == (stop, "Hi")


@pytest.mark.parametrize(
    "body",
    [
        {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit exceeded(RPM)"}},
        {"message": "Too many requests, slow down"},
        {"detail": "rate limit exceeded"},
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_without_a_choice_that_complains_is_an_error(server: Server, body: Any, stream: bool) -> None:
    """Hosts that have no field for errors tell of them beside it, with status 200."""
    text = json.dumps(body).encode()
    url = server.url(Answer(body=b"data: " + text + b"\n\ndata: [DONE]\n\n" if stream else text))
    with pytest.raises(errors.RateLimited):
        asyncio.run(events_of(ADAPTERS["chat_completions"], url))


def test_the_provider_is_named(server: Server) -> None:
    """Whoever asks is told whose failure it is."""
    provider = WireProvider(ADAPTERS["messages"], name="host", base_url=server.url(Answer(status=529)))

    async def ask() -> None:
        async for _ in provider.stream(ASKED):
            pass

    with pytest.raises(errors.ServerError, match="host is overloaded"):
        asyncio.run(ask())
