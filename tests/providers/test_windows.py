"""The window that a server of the user's really has: asked for, shown, and what an overflow is judged by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from larik_nb import Session, errors
from larik_nb.config import Config
from larik_nb.notebook import display, routing
from larik_nb.providers import _probe, resolve
from larik_nb.routing.roles import role
from tests.providers.test_probe import REAL_SERVERS, SERVERS, Fake

KINDS = ("ollama", "lmstudio", "llamacpp", "vllm")
LIMITS = {"ollama": 16_384, "lmstudio": 8_192, "llamacpp": 16_384, "vllm": 1_234}


@pytest.fixture
def fake() -> Iterator[Fake]:
    _probe.forget()
    made = Fake()
    made.thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    _probe.forget()


def chat(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 2, "completion_tokens": 1}
    return b"data: " + json.dumps({"choices": [choice], "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n"


def lines(text: str) -> bytes:
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 2, "eval_count": 1}
    return json.dumps({"model": "m", "message": {"content": text}, **end}).encode() + b"\n"


def running(fake: Fake, kind: str, text: str = "well") -> Config:
    """Return settings without any key in which only that server runs."""
    fake.answers |= SERVERS[kind][0]
    fake.answers |= {
        "/api/chat": lines(text),
        "/v1/chat/completions": chat(text),
        "/api/tags": {"models": [{"name": "m"}]},
    }
    if kind == "lmstudio":
        fake.answers["/v1/models"] = {"data": [{"id": "m"}]}
    if kind == "llamacpp":
        fake.answers["/v1/models"] = {"data": [{"id": "m", "meta": {"n_ctx_train": 40_960}}]}
    nowhere: dict[str, Any] = {name: {"base_url": "http://127.0.0.1:1/v1"} for name in KINDS}
    own = {kind: {"base_url": fake.url if kind == "ollama" else f"{fake.url}/v1"}}
    return Config.load({"providers": nowhere | own, "max_retries": 0}, env={})


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_runs_answers_without_a_key_and_its_window_is_known(
    fake: Fake, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_probe, "_servers", REAL_SERVERS)
    config = running(fake, kind)
    assert resolve(None, config).spec == f"{kind}/m"

    answer = Session(config=config).ask("hi")

    assert (answer.text, answer.provider, answer.cost_usd) == ("well", kind, 0.0)
    assert role("main", config).window == LIMITS[kind]
    shown = {row[0]: row for row in routing.table(config, {})}
    assert shown["main"][1:3] == (f"{kind}/m", display.tokens(LIMITS[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_answer_is_judged_by_the_window_that_is_loaded(fake: Fake, kind: str) -> None:
    """Without the probe nobody would know: these models are in no catalog."""
    config = running(fake, kind, text="")
    long = "word " * LIMITS[kind]

    with pytest.raises(errors.ContextOverflow) as caught:
        Session(f"{kind}/m", config=config).ask(long)

    assert caught.value.max_tokens == LIMITS[kind]


def test_ollama_is_asked_for_no_more_than_the_model_has_and_no_less_than_is_loaded() -> None:
    assert _probe.num_ctx(None, None) == 16_384
    assert _probe.num_ctx(4_096, 131_072) == 16_384
    assert _probe.num_ctx(65_536, 131_072) == 65_536
    assert _probe.num_ctx(None, 8_192) == 8_192


def test_what_the_window_is_is_asked_once(fake: Fake) -> None:
    session = Session("ollama/m", config=running(fake, "ollama"))
    for _ in range(3):
        session.ask("hi")

    assert fake.asked.count("/api/show") == fake.asked.count("/api/ps") == 1
    assert fake.asked.count("/api/chat") == 3


def test_a_server_with_no_word_of_its_window_is_asked_all_the_same(fake: Fake) -> None:
    config = running(fake, "ollama")
    del fake.answers["/api/show"], fake.answers["/api/ps"]

    assert Session("ollama/m", config=config).ask("hi").text == "well"
    assert role("main", Config.load({**_raw(config), "model": "ollama/m"}, env={})).window is None


def _raw(config: Config) -> dict[str, Any]:
    return {"providers": {name: {"base_url": own.base_url} for name, own in config.providers.items()}}
