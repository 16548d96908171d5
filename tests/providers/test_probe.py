"""What servers say of their models: lists, loaded windows, tools; and that nobody has to wait or fail for it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from larik_nb import connect, portal
from larik_nb.config import Config
from larik_nb.errors import ConfigError
from larik_nb.providers import _listing, _probe, resolve
from larik_nb.providers._listing import Listing, listings
from larik_nb.providers._probe import ModelProber, Probed

REAL_SERVERS = _probe._servers


class Fake:
    """A server of JSON answers by path, on loopback. A number is a status; a float is slept before a 404."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.keys: list[str | None] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                fake.asked.append(self.path)
                fake.keys.append(self.headers.get("authorization") or self.headers.get("x-goog-api-key"))
                answer = fake.answers.get(self.path, 404)
                if isinstance(answer, float):
                    time.sleep(answer)
                    answer = 404
                body = (
                    answer
                    if isinstance(answer, bytes)
                    else json.dumps(answer if not isinstance(answer, int) else {}).encode()
                )
                self.send_response(answer if isinstance(answer, int) else 200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)


@pytest.fixture
def fake() -> Iterator[Fake]:
    _probe.forget()
    made = Fake()
    made.thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def ask(config: Config, *wanted: str, timeout_s: float = 5.0) -> tuple[Listing, ...]:
    return asyncio.run(listings(config, wanted, timeout_s=timeout_s))


# -- lists ----------------------------------------------------------------------------------------------------------
def test_every_format_is_listed_with_its_key_window_and_price(fake: Fake) -> None:
    fake.answers |= {
        "/a/v1/models?limit=1000": {
            "data": [{"id": "claude-opus-5", "max_input_tokens": 1}],
            "has_more": True,
            "last_id": "x y",
        },
        "/a/v1/models?limit=1000&after_id=x%20y": {
            "data": [
                {"id": "claude-new", "max_input_tokens": 7, "retires_at": "2027-01-02T00:00:00Z"},
                {"id": "old", "lifecycle": "retired"},
            ],
            "has_more": False,
            "last_id": "claude-new",
        },
        "/o/models": {"data": [{"id": "gpt-x"}, {"id": "text-embedding-3"}]},
        "/g/v1beta/models?pageSize=1000": {
            "models": [
                {
                    "name": "models/gemini-y",
                    "inputTokenLimit": 9,
                    "outputTokenLimit": 3,
                    "supportedGenerationMethods": ["generateContent"],
                },
                {"name": "models/image-z", "supportedGenerationMethods": ["predict"]},
            ],
            "nextPageToken": "t",
        },
        "/g/v1beta/models?pageSize=1000&pageToken=t": {"models": []},
        "/l/api/tags": {
            "models": [{"name": "qwen:7b", "details": {"parameter_size": "7.6B"}}, {"name": "nomic-embed-text"}]
        },
        "/r/models": {
            "data": [
                {
                    "id": "vendor/m",
                    "context_length": 5,
                    "pricing": {"prompt": "0.000001", "completion": "0.000002"},
                    "supported_parameters": ["tools"],
                },
                {"id": "odd", "pricing": {"prompt": "-1", "completion": "x"}, "supported_parameters": []},
            ]
        },
        "/t/models": [{"id": "bare"}],
    }
    settings = {
        "providers": {
            "anthropic": {"base_url": f"{fake.url}/a", "api_key": "key-a-0123456789"},
            "openai": {"base_url": f"{fake.url}/o", "api_key": "key-o-0123456789"},
            "gemini": {"base_url": f"{fake.url}/g", "api_key": "key-g-0123456789"},
            "ollama": {"base_url": f"{fake.url}/l"},
            "openrouter": {"base_url": f"{fake.url}/r", "api_key_command": "echo key-r-0123456789"},
            "together": {"base_url": f"{fake.url}/t", "api_key": "key-t-0123456789"},
        }
    }
    told = {listing.provider: listing for listing in ask(Config.load(settings, env={}))}
    assert {name: listing.error for name, listing in told.items() if listing.error} == {}
    rows = {model.spec: model for listing in told.values() for model in listing.models}
    assert list(rows) == [
        "anthropic/claude-opus-5",
        "anthropic/claude-new",
        "openai/gpt-x",
        "gemini/gemini-y",
        "ollama/qwen:7b",
        "openrouter/vendor/m",
        "openrouter/odd",
        "together/bare",
    ]
    opus, new = rows["anthropic/claude-opus-5"], rows["anthropic/claude-new"]
    assert (opus.window, opus.price and opus.price.input, opus.tools) == (1_000_000, 5, True)
    assert (new.window, new.price, str(new.ends)) == (7, None, "2027-01-02")
    assert (rows["gemini/gemini-y"].window, rows["gemini/gemini-y"].max_output) == (9, 3)
    assert (rows["ollama/qwen:7b"].size_b, rows["ollama/qwen:7b"].free) == (7.6, "local")
    routed = rows["openrouter/vendor/m"]
    assert (routed.price and (routed.price.input, routed.price.output), routed.tools, routed.window) == (
        (1, 2),
        True,
        5,
    )
    assert (rows["openrouter/odd"].price, rows["openrouter/odd"].tools) == (None, False)
    assert {key for key in fake.keys if key} == {
        "Bearer key-a-0123456789",
        "Bearer key-o-0123456789",
        "key-g-0123456789",
        "Bearer key-r-0123456789",
        "Bearer key-t-0123456789",
    }


def test_one_that_cannot_answer_says_why_and_holds_nobody_up(fake: Fake) -> None:
    fake.answers |= {
        "/good/models": {"data": [{"id": "m"}]},
        "/slow/models": 2.0,
        "/no/models": 401,
        "/odd/models": b"<html>",
    }
    providers = {
        name: {"type": "openai-compatible", "base_url": f"{fake.url}/{name}"} for name in ("slow", "no", "odd", "good")
    }
    providers["down"] = {"type": "openai-compatible", "base_url": "http://127.0.0.1:1/v1"}
    begun = time.monotonic()
    told = ask(Config.load({"providers": providers}, env={}), timeout_s=0.5)
    assert time.monotonic() - begun < 1.5
    errors = {listing.provider: listing.error for listing in told}
    assert errors["slow"] == "no answer within 0.5 s"
    assert "401" in errors["no"] or "key" in errors["no"]
    assert "not JSON" in errors["odd"]
    assert "127.0.0.1:1" in errors["down"]
    assert [model.id for listing in told for model in listing.models] == ["m"]


def test_nothing_set_up_and_names_nobody_has_are_usage_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_listing, "_is_guest", lambda _here: False)
    with pytest.raises(ConfigError, match="no provider is set up"):
        ask(Config.load({}, env={}))
    with pytest.raises(ConfigError, match=r"no provider is called gropq\. Did you mean groq"):
        ask(Config.load({}, env={}), "gropq")


def test_a_provider_without_a_list_says_so(fake: Fake) -> None:
    settings = {"providers": {"perplexity": {"api_key": "pplx-0123456789abc", "base_url": fake.url}}}
    (told,) = ask(Config.load(settings, env={}), "perplexity")
    assert "has no list of models" in told.error
    assert fake.asked == []


# -- loaded windows -------------------------------------------------------------------------------------------------
SERVERS: dict[str, tuple[dict[str, Any], Probed]] = {
    "ollama": (
        {
            "/api/show": {
                "capabilities": ["completion", "tools"],
                "model_info": {"qwen2.context_length": 32768, "x": True},
            },
            "/api/ps": {"models": [{"name": "m:latest", "context_length": 4096}]},
        },
        Probed(window=4096, max_window=32768, tools=True, asked=16384),
    ),
    "lmstudio": (
        {
            "/api/v1/models": {
                "models": [
                    {"key": "other"},
                    {
                        "key": "m",
                        "max_context_length": 131072,
                        "loaded_instances": [{"id": "m:2", "config": {"context_length": 8192}}],
                        "capabilities": {"trained_for_tool_use": False},
                    },
                ]
            }
        },
        Probed(window=8192, max_window=131072, tools=False),
    ),
    "lmstudio older": (
        {
            "/api/v0/models": {
                "data": [
                    {
                        "id": "m",
                        "loaded_context_length": 2048,
                        "max_context_length": 9,
                        "state": "loaded",
                        "capabilities": ["tool_use"],
                    }
                ]
            }
        },
        Probed(window=2048, max_window=9, tools=True),
    ),
    "llamacpp": (
        {
            "/props": {"default_generation_settings": {"n_ctx": 16384}, "chat_template_caps": {"supports_tools": True}},
            "/v1/models": {"data": [{"id": "whatever.gguf", "meta": {"n_ctx_train": 40960}}]},
        },
        Probed(window=16384, max_window=40960, tools=True),
    ),
    "vllm": (
        {"/v1/models": {"data": [{"id": "m", "max_model_len": 1234}, {"id": "n"}]}},
        Probed(window=1234, max_window=1234),
    ),
    "openai-compatible": ({"/v1/models": {"data": [{"id": "m", "context_length": 77}]}}, Probed(window=77)),
}


def prober(fake: Fake, kind: str) -> Any:
    name = kind.partition(" ")[0]
    base = fake.url if name == "ollama" else f"{fake.url}/v1"
    return connect(f"{name}/m", config=Config.load({}, env={}), base_url=base)


@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_tells_the_window_that_is_loaded(fake: Fake, kind: str) -> None:
    answers, expected = SERVERS[kind]
    fake.answers |= answers
    provider = prober(fake, kind)
    assert isinstance(provider, ModelProber)
    assert portal.wait(provider.probe()) == expected
    count = len(fake.asked)
    assert portal.wait(provider.probe("m")) == expected
    assert len(fake.asked) == count, "kept by its address"


STRANGE = [
    404,
    500,
    b"<html>",
    b"[",
    [],
    {},
    {"data": "x"},
    {"data": [1, None]},
    {"models": {"a": 1}},
    {"models": [{"name": 5}]},
]


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("answer", STRANGE, ids=str)
def test_a_strange_server_says_nothing_and_fails_nobody(fake: Fake, kind: str, answer: Any) -> None:
    fake.answers |= dict.fromkeys(SERVERS[kind][0], answer)
    assert portal.wait(prober(fake, kind).probe()) == Probed()


def test_probing_takes_two_seconds_at_most(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_probe, "TIMEOUT_S", 0.3)
    fake.answers |= {"/api/show": 3.0, "/api/ps": {"models": [{"name": "m", "context_length": 5}]}}
    begun = time.monotonic()
    assert portal.wait(prober(fake, "ollama").probe()) == Probed(window=5, asked=16384)
    assert time.monotonic() - begun < 1.0


def test_a_hosted_service_is_not_probed() -> None:
    provider: Any = connect("deepseek/deepseek-v4-pro", api_key="k", config=Config.load({}, env={}))
    assert portal.wait(provider.probe()) == Probed()


# -- nothing is set up ----------------------------------------------------------------------------------------------
def test_a_server_that_runs_here_answers_when_no_key_is_set(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_probe, "_servers", REAL_SERVERS)
    fake.answers |= {
        "/api/tags": {"models": [{"name": "nomic-embed-text"}, {"name": "newest:7b"}, {"name": "loaded:7b"}]},
        "/api/ps": {"models": [{"name": "loaded:7b"}]},
    }
    closed = {name: {"base_url": "http://127.0.0.1:1/v1"} for name in ("lmstudio", "vllm", "llamacpp")}
    config = Config.load({"providers": closed}, env={"OLLAMA_HOST": fake.url})
    found = resolve(None, config)
    assert (found.spec, found.source) == ("ollama/loaded:7b", "ollama runs here")
    count = len(fake.asked)
    assert resolve("worker", config).spec == "ollama/loaded:7b"
    assert len(fake.asked) == count

    async def inside() -> str:
        return resolve(None, config).spec

    _probe.forget()
    assert portal.wait(inside()) == "ollama/loaded:7b", "also on the portal's own thread"
    keyed = Config.load({"providers": closed}, env={"OLLAMA_HOST": fake.url, "OPENAI_API_KEY": "sk-0123456789abcdef"})
    assert resolve(None, keyed).provider == "openai"
