"""Settings per model: whose they are, which go before which, and what becomes of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from larik_nb import connect, errors
from larik_nb.config import Config
from larik_nb.providers import Counts, Previews, _refused
from larik_nb.providers.scripted import ScriptedProvider
from larik_nb.routing import settings_report
from larik_nb.routing.chain import Surroundings, chain
from larik_nb.routing.retry import WithRetry
from larik_nb.routing.settings import ModelSettings, WithSettings, by_name
from larik_nb.routing.settings_report import Effect
from larik_nb.types import Effort, Request, user

REQUEST = Request(model="gpt-5", messages=(user("hi"),))


def sent(provider: WithSettings, request: Request = REQUEST) -> Request:
    async def run() -> None:
        async for _ in provider.stream(request):
            pass

    asyncio.run(run())
    inner = provider.inner
    assert isinstance(inner, ScriptedProvider)
    return inner.requests[-1]


def test_the_settings_of_the_model_go_into_what_the_request_leaves_open():
    rows = by_name(
        {"gpt-5": ModelSettings(temperature=0.2, max_tokens=9, reasoning_effort="low"), "x": ModelSettings(seed=1)}
    )
    provider = WithSettings(ScriptedProvider(), settings=lambda: rows)
    request = Request(model="gpt-5", messages=REQUEST.messages, max_tokens=5)

    got = sent(provider, request)

    assert (got.temperature, got.max_tokens, got.effort, got.seed) == (0.2, 5, "low", None)
    assert (request.temperature, request.effort) == (None, None)


def test_a_setting_of_zero_is_a_setting():
    rows = {"gpt-5": ModelSettings(temperature=0.0, seed=0, thinking_budget=0)}

    got = sent(WithSettings(ScriptedProvider(), settings=lambda: rows))

    assert (got.temperature, got.seed, got.thinking_budget) == (0.0, 0, 0)


@pytest.mark.parametrize("order", [1, -1])
def test_the_bare_name_wins_over_one_with_a_provider(order: int):
    rows = {"openai/gpt-5": ModelSettings(seed=1), "gpt-5": ModelSettings(seed=2)}

    assert by_name(dict(list(rows.items())[::order])) == {"gpt-5": ModelSettings(seed=2)}


@pytest.mark.parametrize("model", ["gpt-5", "GPT-5", "openai/gpt-5", "vendors/openai/gpt-5"])
def test_a_model_has_its_settings_under_any_route(model: str):
    provider = WithSettings(ScriptedProvider(), settings=lambda: by_name({"openai/GPT-5": ModelSettings(seed=7)}))

    assert sent(provider, Request(model=model, messages=REQUEST.messages)).seed == 7


def test_a_change_counts_from_the_next_request():
    rows = {"gpt-5": ModelSettings(seed=1)}
    provider = WithSettings(ScriptedProvider(), settings=lambda: rows)

    first = sent(provider).seed
    rows["gpt-5"] = ModelSettings(seed=2)

    assert (first, sent(provider).seed) == (1, 2)


@pytest.mark.parametrize(
    ("own", "session", "request_", "expected"),
    [("low", None, None, "low"), ("low", "high", None, "high"), (None, "high", None, "high"), ("low", "high", "max", "max")],
)  # fmt: skip
def test_the_sessions_effort_goes_before_the_models_and_the_requests_before_both(
    own: Effort | None, session: Effort | None, request_: Effort | None, expected: Effort
):
    rows = {"gpt-5": ModelSettings(reasoning_effort=own)}
    provider = WithSettings(ScriptedProvider(), settings=lambda: rows, effort=lambda: session)

    assert sent(provider, Request(model="gpt-5", messages=REQUEST.messages, effort=request_)).effort == expected
    assert rows == {"gpt-5": ModelSettings(reasoning_effort=own)}


# -- what becomes of them -------------------------------------------------------------------------------------------
ALL = ModelSettings(temperature=0.2, top_p=0.9, max_tokens=2000, seed=3, reasoning_effort="max", thinking_budget=1500)
NO_SAMPLING, NO_FIELD = "the model takes no sampling settings", "this provider has no such setting"


@pytest.fixture(autouse=True)
def _nothing_learned() -> Iterator[None]:
    _refused.forget()
    yield
    _refused.forget()


def report(spec: str, settings: ModelSettings) -> dict[str, Effect]:
    provider = WithRetry(connect(spec, api_key="k", config={}))
    assert isinstance(provider, Previews)
    route, _, model = spec.partition("/")
    known = Config.load({}).catalog.find(route, model)
    return {effect.name: effect for effect in settings_report.report(provider, settings, model, known)}


def test_of_a_provider_without_a_wire_nothing_is_told():
    assert report("scripted/demo", ALL) == {}


@pytest.mark.parametrize(
    ("spec", "dropped"),
    [
        ("anthropic/claude-opus-5", {
            "temperature": NO_SAMPLING, "top_p": NO_SAMPLING, "seed": NO_FIELD,
            "thinking_budget": "the model takes no number of tokens for thinking",
        }),
        ("openai/gpt-5", {
            "temperature": NO_SAMPLING, "top_p": NO_SAMPLING, "seed": NO_FIELD,
            "thinking_budget": "the model takes no number of tokens for thinking",
        }),
        ("gemini/gemini-2.5-pro", {"reasoning_effort": "thinking_budget goes before it"}),
        ("ollama/some-model", {"thinking_budget": NO_FIELD}),
        ("openai/gpt-4o", {
            "seed": NO_FIELD, "reasoning_effort": "the model has no levels of effort", "thinking_budget": "the model does not think",
        }),
    ],
)  # fmt: skip
def test_what_a_model_does_not_take_is_told_with_the_reason(spec: str, dropped: dict[str, str]):
    told = report(spec, ALL)

    assert {name: effect.why for name, effect in told.items() if not effect.sent} == dropped
    assert list(told) == list(ALL.set())


def test_what_is_sent_is_told_as_it_goes_out():
    assert report("openai/gpt-5", ALL)["reasoning_effort"].sent == {"reasoning.effort": "high"}
    assert report("openai/gpt-5", ALL)["max_tokens"].sent == {"max_output_tokens": 2000}
    assert report("gemini/gemini-2.5-pro", ALL)["seed"].sent == {"generationConfig.seed": 3}


def test_it_depends_on_the_value():
    """Sampling is taken at one effort and not at another; a budget of nothing is not a budget."""
    none = ModelSettings(temperature=0.2, thinking_budget=0)

    assert report("openai/gpt-5.1", none)["temperature"].sent == {"temperature": 0.2}
    assert report("openai/gpt-5.1", ModelSettings(temperature=0.2))["temperature"].why == (
        "the model takes it at effort none only"
    )
    assert report("anthropic/claude-opus-5-5", none)["thinking_budget"].why == "the model always thinks"
    assert report("anthropic/claude-sonnet-5", none)["thinking_budget"].sent == {"thinking.type": "disabled"}


def test_of_two_that_exclude_each_other_the_one_that_loses_is_told():
    told = report("anthropic/claude-haiku-4-5", ModelSettings(temperature=0.2, top_p=0.9))

    assert (told["temperature"].sent, told["top_p"].why) == ({"temperature": 0.2}, "temperature goes before it")


def test_what_the_server_turned_down_is_told_so():
    error = errors.classify(400, {}, b'{"error": {"message": "seed is not supported"}}')
    _refused.learn(error, {"seed": 3}, {"seed": ("seed",)}, "groq", "some-model")

    told = report("groq/some-model", ModelSettings(seed=3, temperature=0.2))

    assert (told["seed"].why, told["temperature"].sent) == ("the server does not take it", {"temperature": 0.2})


def test_what_the_model_can_do_the_whole_chain_can():
    """Counting, probing and previewing go through, and settings into what is previewed."""

    class Able(ScriptedProvider):
        async def count(self, request: Request) -> int | None:
            return 7

        async def probe(self, model: str = "") -> str:
            return f"{model} is loaded"

    able = WithSettings(WithRetry(Able(model="m")), settings=dict)
    wired = WithRetry(connect("openai/gpt-5", api_key="k", config={}))
    plain = WithRetry(ScriptedProvider())

    assert isinstance(able, Counts)
    assert asyncio.run(able.count(REQUEST)) == 7
    assert asyncio.run(able.probe("x")) == "x is loaded"
    assert (able.model, wired.model) == ("m", "gpt-5")
    settled = WithSettings(wired, settings=lambda: {"gpt-5": ModelSettings(max_tokens=77)})
    assert isinstance(settled, Previews)
    shown = settled.wire(REQUEST)
    assert shown is not None
    assert shown.body["max_output_tokens"] == 77
    assert (plain.wire(REQUEST), asyncio.run(plain.count(REQUEST)), asyncio.run(plain.probe())) == (None, None, None)


def test_why_a_model_cannot_be_built_is_told_by_its_whole_chain():
    config = Config.load({"model": "openai/gpt-5"}, env={})
    whole = chain(None, config, Surroundings.of("s", config))

    assert isinstance(whole.error, errors.ConfigError)
    assert whole.error.reason == "no key: set OPENAI_API_KEY"
    assert WithRetry(ScriptedProvider()).error is None
