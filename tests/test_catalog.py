"""The catalog: which model an id means, what an answer costs, and whether the figures are still true."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb import catalog
from larik_nb.catalog import EFFORTS, OVERRIDABLE, Model, Price
from larik_nb.types import Usage

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MILLION = Usage(input=1_000_000, output=1_000_000)


def cost(provider: str, model: str, at: datetime = NOON, **tokens: int) -> float | None:
    usage = Usage(**{"input": 0, "output": 0, **tokens})
    return catalog.cost(usage, provider, model, at=at)


# -- the data -----------------------------------------------------------------------------------------------------


def test_every_row_is_complete_and_listed_once() -> None:
    """The file names each model once, with fields that exist and abilities that are used."""
    data = json.loads(Path(catalog.__file__).with_name("catalog.json").read_text("utf-8"))
    rows = data["models"]
    names = [(row["provider"], row["id"].lower()) for row in rows]
    known = {field.name for field in fields(Model)} | {"abilities"}
    assert len(rows) >= 60
    assert sorted(set(names)) == sorted(names)
    assert {key for row in [*rows, *data["abilities"].values()] for key in row} <= known
    assert {row["abilities"] for row in rows} == set(data["abilities"])
    assert catalog.shipped().date.isoformat() == data["date"]


@pytest.mark.parametrize("model", catalog.shipped().models, ids=lambda model: model.spec)
def test_figures_of_a_row_make_sense(model: Model) -> None:
    """Prices are ordered as prices are, levels are known words, the first price row holds always."""
    for row in model.prices:
        assert 0 < row.input <= row.output
        assert row.cache_read is None or row.cache_read < row.input
        assert all(0 <= start < end <= 24 for start, end in row.hours)
    assert not model.prices or (model.prices[0].above, model.prices[0].since, model.prices[0].hours) == (0, None, ())
    assert set(model.efforts or ()) <= set(EFFORTS)
    assert model.default_effort is None or model.default_effort in (model.efforts or ())
    assert model.window is None or model.max_output is None or model.max_output <= model.window
    assert catalog.find(model.provider, model.id) == model


# -- which model an id means ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "name", "entry"),
    [
        ("anthropic", "claude-opus-5", "claude-opus-5"),
        ("anthropic", "Claude-Opus-5", "claude-opus-5"),
        ("Anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic", "claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("openai", "gpt-5-2025-08-07", "gpt-5"),
        ("openai", "gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("openai", "gpt-4o-2024-11-20", "gpt-4o"),
        ("gemini", "models/gemini-3.8-flash", "gemini-3.8-flash"),
        ("gemini", "gemini-3.8-flash-latest", "gemini-3.8-flash"),
        ("groq", "openai/gpt-oss-120b", "openai/gpt-oss-120b"),
    ],
)
def test_an_id_with_a_date_is_the_model_without(provider: str, name: str, entry: str) -> None:
    found = catalog.find(provider, name)
    assert found is not None
    assert (found.provider, found.id) == (provider.lower(), entry)
    assert found.prices


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("openai", "gpt-5.1-codex-max"),
        ("openai", "gpt-5-pro"),
        ("openai", "gpt-5-chat-latest"),
        ("openai", "gpt-4o-audio-preview"),
        ("gemini", "gemini-3.8-flash-lite"),
        ("gemini", "gemini-3.8-flash-tts"),
        ("anthropic", "claude-opus"),
        ("anthropic", "claude-opus-5-2026"),
        ("anthropic", "claude-opus-5-1"),
        ("anthropic", ""),
    ],
)
def test_an_id_that_only_begins_like_a_known_one_is_unknown(provider: str, name: str) -> None:
    assert catalog.find(provider, name) is None
    assert catalog.cost(MILLION, provider, name, at=NOON) is None
    assert catalog.window(provider, name) == catalog.UNKNOWN_WINDOW


@pytest.mark.parametrize(
    ("provider", "name", "like"),
    [
        ("openrouter", "anthropic/claude-opus-5", "claude-opus-5"),
        ("openrouter", "anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter", "anthropic/claude-opus-5-20260723", "claude-opus-5"),
        ("openrouter", "moonshotai/kimi-k3:free", "kimi-k3"),
        ("together", "openai/gpt-oss-120b", "openai/gpt-oss-120b"),
        ("my-gateway", "gemini-3.8-flash", "gemini-3.8-flash"),
        ("huggingface", "zai-org/GLM-5.3:novita", "glm-5.3"),
    ],
)
def test_a_router_has_a_models_abilities_and_no_price(provider: str, name: str, like: str) -> None:
    found = catalog.find(provider, name)
    base = next(model for model in catalog.shipped().models if model.id == like)
    assert found is not None
    assert (found.window, found.efforts, found.thinking) == (base.window, base.efforts, base.thinking)
    assert (found.provider, found.id, found.prices) == (provider, name, ())
    assert catalog.cost(MILLION, provider, name, at=NOON) is None


@given(st.sampled_from(catalog.shipped().models), st.text(min_size=1, max_size=12))
def test_no_other_id_gets_a_price(model: Model, more: str) -> None:
    """Whatever follows a known id, a price is given only to ids that are listed, with a date or without."""
    name = model.id + more
    found = catalog.find(model.provider, name)
    if found is not None and found.prices:
        assert any(entry.id == found.id for entry in catalog.shipped().sellers(name))


@given(st.text(max_size=40), st.text(max_size=80))
def test_any_text_can_be_looked_up(provider: str, name: str) -> None:
    catalog.find(provider, name)
    catalog.nearest(name)
    assert catalog.window(provider, name) > 0


# -- cost ---------------------------------------------------------------------------------------------------------


def test_each_kind_of_token_has_its_price() -> None:
    """USD per million: 5 in, 25 out, 0.5 read, 6.25 written."""
    got = cost("anthropic", "claude-opus-5", input=100_000, output=10_000, cache_read=200_000, cache_write=40_000)
    assert got == pytest.approx(0.5 + 0.25 + 0.1 + 0.25)


def test_a_cache_without_a_price_of_its_own_costs_as_input() -> None:
    assert cost("groq", "qwen/qwen3.8-27b", cache_read=500_000, cache_write=500_000) == pytest.approx(0.8)


@pytest.mark.parametrize(("prompt", "usd"), [(100_000, 0.01), (100_001, 0.0500005), (200_000, 0.1)])
def test_a_tier_prices_the_whole_call(prompt: int, usd: float) -> None:
    """The tier counts cached tokens too and begins above its limit."""
    assert cost("anthropic", "claude-haiku-5-5", input=prompt) == pytest.approx(usd)
    read = cost("anthropic", "claude-haiku-5-5", cache_read=prompt)
    assert read == pytest.approx(usd / 10)


def test_a_price_changes_on_its_day_in_utc() -> None:
    east = timezone(timedelta(hours=9))
    assert cost("gemini", "gemini-3.8-flash", datetime(2026, 12, 31, 23, 59, tzinfo=UTC), input=10**6) == 0.75
    assert cost("gemini", "gemini-3.8-flash", datetime(2027, 1, 1, 8, 59, tzinfo=east), input=10**6) == 0.75
    assert cost("gemini", "gemini-3.8-flash", datetime(2027, 1, 1, 9, 0, tzinfo=east), input=10**6) == 1.5


@pytest.mark.parametrize(
    ("hour", "usd"), [(0, 0.66), (1, 1.32), (3, 1.32), (4, 0.66), (6, 1.32), (9, 1.32), (10, 0.66)]
)
def test_a_price_may_depend_on_the_hour(hour: int, usd: float) -> None:
    assert cost("deepseek", "deepseek-v4-pro", NOON.replace(hour=hour), input=10**6) == usd


def test_a_time_without_a_zone_is_utc_and_none_is_now() -> None:
    naive = datetime(2027, 1, 1)  # noqa: DTZ001  # the case under test
    assert cost("gemini", "gemini-3.8-flash", naive, input=10**6) == 1.5
    assert catalog.cost(MILLION, "anthropic", "claude-opus-5") == 30.0


def test_a_fee_for_the_call_is_added() -> None:
    assert cost("perplexity", "sonar", input=1_000_000) == pytest.approx(1.012)


@pytest.mark.parametrize("provider", ["local", "ollama", "lmstudio", "llamacpp", "vllm", "scripted"])
def test_what_runs_here_costs_nothing(provider: str) -> None:
    assert catalog.cost(MILLION, provider, "any-model") == 0.0
    assert catalog.cost(MILLION, provider, "gpt-5") == 0.0


def test_looking_up_names_without_end_keeps_few_of_them() -> None:
    own = catalog.shipped().with_own({"corp/a": {"window": 5}}, {})
    for number in range(2 * catalog.MOST_FOUND):
        assert own.find("corp", f"m{number}") is None

    assert len(own._found) <= catalog.MOST_FOUND
    assert own.find("Corp", "a") is own.find("corp", "a")


def test_what_costs_nothing_need_not_be_counted() -> None:
    priced = catalog.shipped().with_own({}, {"ollama/m": {"input": 1.0, "output": 1.0}})

    assert catalog.cost(None, "ollama", "m") == 0.0
    assert catalog.cost(None, "openai", "gpt-5") is None
    assert priced.cost(None, "ollama", "m") is None


def test_unknown_is_not_zero() -> None:
    assert catalog.cost(None, "anthropic", "claude-opus-5") is None
    assert catalog.cost(MILLION, "openai", "gpt-6.2-sol") is None
    assert catalog.cost(Usage(input=0, output=0), "anthropic", "claude-opus-5") == 0.0


# -- the user's own rows ----------------------------------------------------------------------------------------------


def test_the_users_rows_come_first() -> None:
    own = catalog.shipped().with_own(
        {"corp/big": {"window": 5_000, "efforts": ["low"]}, "claude-opus-5": {"window": 9}},
        {"corp/big": {"input": 1, "output": 2}, "ollama/cloud": [{"input": 3, "output": 4}]},
    )
    big = own.find("corp", "big")
    assert big == Model(provider="corp", id="big", window=5_000, efforts=("low",), prices=(Price(input=1, output=2),))
    assert own.cost(MILLION, "CORP", "Big", at=NOON) == 3.0
    assert own.cost(MILLION, "ollama", "cloud", at=NOON) == 7.0
    assert own.window("anthropic", "claude-opus-5-20260723") == 9
    assert own.cost(MILLION, "anthropic", "claude-opus-5", at=NOON) == 30.0
    assert catalog.window("anthropic", "claude-opus-5") == 1_000_000


def test_what_a_user_may_set_are_fields_of_a_model() -> None:
    assert set(OVERRIDABLE) < {field.name for field in fields(Model)}


# -- abilities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "name", "wanted", "level"),
    [
        ("anthropic", "claude-opus-5", "xhigh", "xhigh"),
        ("anthropic", "claude-opus-4-6", "xhigh", "max"),
        ("anthropic", "claude-opus-4-5", "max", "high"),
        ("anthropic", "claude-opus-5", "minimal", "low"),
        ("anthropic", "claude-haiku-4-5", "high", None),
        ("openai", "gpt-5", "xhigh", "high"),
        ("openai", "gpt-5.1", "minimal", "low"),
        ("openai", "gpt-5.2", "max", "xhigh"),
        ("gemini", "gemini-3.8-flash", "minimal", "low"),
        ("gemini", "gemini-3.8-flash", "max", "high"),
        ("moonshot", "kimi-k3", "medium", "high"),
        ("mistral", "mistral-large-4", "minimal", "none"),
        ("zai", "glm-5.2", "xhigh", "xhigh"),
    ],
)
def test_an_effort_becomes_the_nearest_level(provider: str, name: str, wanted: str, level: str | None) -> None:
    found = catalog.find(provider, name)
    assert found is not None
    assert found.effort(wanted) == level


def test_the_nearest_names_are_offered() -> None:
    assert catalog.nearest("claud-sonnet")[0].startswith("anthropic/claude-sonnet-")
    assert catalog.nearest("anthropic/claude-opus5")[0] == "anthropic/claude-opus-5"
    assert "openai/gpt-5" in catalog.nearest("gpt5")
    assert catalog.nearest("gpt-6")[0] == "openai/gpt-6-sol"  # and not gpt-5, which another model is
    assert catalog.shipped().alike("openai", "gpt-6")[0] == "openai/gpt-6-sol"
    assert catalog.nearest("zzzzzz") == ()


# -- the file is read late --------------------------------------------------------------------------------------------


def test_importing_reads_no_file_and_no_other_library() -> None:
    """Import costs the standard library only; the data wait for the first question."""
    code = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "from larik_nb import catalog\n"
        "assert not any('catalog.json' in path for path in opened), opened\n"
        "catalog.find('anthropic', 'claude-opus-5')\n"
        "assert sum('catalog.json' in path for path in opened) == 1, opened\n"
        "tops = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(tops - set(sys.stdlib_module_names) - set(sys.argv[1:])))"
    )
    site = {name.partition(".")[0] for name in _started_with()}
    done = subprocess.run([sys.executable, "-c", code, *site], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "['larik_nb']"), done.stderr


def _started_with() -> list[str]:
    """Return what an interpreter of this environment holds before any import of ours."""
    done = subprocess.run([sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, check=True)
    return done.stdout.decode().split()


# -- compared with genai-prices ---------------------------------------------------------------------------------------

EXPLAINED: dict[str, str] = {}
"""Differences from genai-prices that are right as they are, each with its reason."""

TOKENS = (
    Usage(input=90_000, output=1_000),
    Usage(input=10_000, output=5_000, cache_read=60_000),
    Usage(input=10_000, output=5_000, cache_read=20_000, cache_write=30_000),
    Usage(input=150_000, output=3_000, cache_read=40_000),
    Usage(input=205_000, output=2_000, cache_read=40_000),
    Usage(input=300_000, output=2_000, cache_read=400_000),
)
MOMENTS = (NOON, NOON.replace(hour=2), datetime(2026, 12, 5, 12, tzinfo=UTC), datetime(2027, 1, 2, 8, tzinfo=UTC))


def test_prices_agree_with_genai_prices() -> None:
    """Every price that both know is the same, at every tier and date, or the difference is explained."""
    pytest.importorskip("genai_prices", reason="genai-prices is not installed: the catalog's prices go unchecked")
    assert len(_shared()) >= 60
    differences = {model.spec: text for model in _shared() if (text := _difference(model))}
    unexplained = {spec: text for spec, text in differences.items() if spec not in EXPLAINED}
    assert unexplained == {}
    assert set(EXPLAINED) <= set(differences), "an explained difference is gone: take it off the list"


def _shared() -> list[Model]:
    return [model for model in catalog.shipped().models if model.prices and _library(model)]


def _library(model: Model) -> str | None:
    from larik_nb.providers._presets import presets

    library: str | None = presets().providers[model.provider].get("prices")
    return library


def _difference(model: Model) -> str:
    for usage, at in product(TOKENS, MOMENTS):
        ours, theirs = catalog.cost(usage, model.provider, model.id, at=at), _theirs(model, usage, at)
        if theirs is None or ours != pytest.approx(theirs, rel=1e-9):
            return f"ours {ours}, theirs {theirs} for {usage} at {at}"
    return ""


def _theirs(model: Model, usage: Usage, at: datetime) -> float | None:
    import genai_prices

    tokens = genai_prices.Usage(
        input_tokens=usage.prompt,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )
    try:
        price = genai_prices.calc_price(tokens, model.id, provider_id=_library(model), genai_request_timestamp=at)
    except LookupError:
        return None
    return float(price.total_price)
