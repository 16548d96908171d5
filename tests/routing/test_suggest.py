"""Suggestions: what is never chosen, what comes first, and that each choice gives its reason."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb.catalog import Price
from larik_nb.config import Config
from larik_nb.errors import ConfigError
from larik_nb.notebook import routing
from larik_nb.providers._listing import Listed
from larik_nb.routing.suggest import GUESSED_USD, INPUT_SHARE, PRESETS, can_work, rank, size_b, suggest


def listed(spec: str, price: tuple[float, float] | None = None, **values: Any) -> Listed:
    provider, _, name = spec.partition("/")
    found = Price(input=price[0], output=price[1]) if price else None
    return Listed(provider=provider, id=name, price=found, **values)


NAMES = st.sampled_from(["m", "m-mini", "m-70b", "m-3b", "m-opus", "m-lite", "qwen-8x7b", "m-tts", "x-1.5b"])
MODELS = st.lists(
    st.builds(
        Listed,
        provider=st.sampled_from(["a", "b", "c", "ollama"]),
        id=st.tuples(NAMES, st.integers(0, 4)).map(lambda pair: f"{pair[0]}-{pair[1]}"),
        tools=st.sampled_from([True, False, None]),
        price=st.none() | st.builds(Price, input=st.floats(0, 20), output=st.floats(0, 90)),
        free=st.sampled_from(["", "", "local", "plan"]),
        size_b=st.none() | st.floats(0.1, 100),
        ends=st.none() | st.dates(date(2026, 1, 1), date(2027, 12, 31)),
    ),
    max_size=8,
    unique_by=lambda model: model.spec,
)
TODAY = date(2026, 11, 30)


@given(MODELS, st.sampled_from(sorted(PRESETS)), st.sampled_from([(), ("reviewer",)]), st.randoms())
def test_what_is_never_chosen_and_what_comes_first(models: list[Listed], preset: str, roles: Any, chance: Any) -> None:
    main = models[0].spec if models else None
    got = suggest(models, preset, main=main, roles=roles, today=TODAY)
    by_spec = {model.spec: model for model in models}
    chosen = got.settings.get("roles", {})
    stand_ins = {role: specs[0] for role, specs in got.settings.get("fallbacks", {}).items()}
    for role, spec in [*chosen.items(), *stand_ins.items()]:
        model = by_spec[spec]
        assert model.tools is not False
        assert model.ends is None or model.ends > TODAY
        assert spec != main
        if role != "explore" and model.free == "local":
            size = size_b(model)
            assert size is None or size >= 7
    for role, spec in stand_ins.items():
        assert by_spec[spec].provider != by_spec[chosen[role]].provider
    order = {"local": 0, "plan": 1, "": 2}
    ranked = [order[row.model.free] for row in rank(models, today=TODAY)]
    assert ranked == sorted(ranked)
    paid = [row.usd for row in rank(models, today=TODAY) if not row.model.free]
    assert paid == sorted(paid)
    if "explore" in chosen:
        best = next(row for row in rank(models, today=TODAY) if row.model.spec != main)
        assert chosen["explore"] == best.model.spec
    assert set(got.reasons) >= {"worker", "explore"}
    assert all(reason and "\n" not in reason for reason in got.reasons.values())
    shuffled = list(models)
    chance.shuffle(shuffled)
    assert suggest(shuffled, preset, main=main, roles=roles, today=TODAY) == got
    Config.load(dict(got.settings), env={})


@given(MODELS)
def test_the_price_is_weighted_to_input_and_an_unknown_one_guessed_from_the_name(models: list[Listed]) -> None:
    for row in rank(models):
        if row.model.free:
            assert (row.usd, row.is_guess) == (0, False)
        elif row.model.price is None:
            assert (row.usd in GUESSED_USD.values(), row.is_guess) == (True, True)
        else:
            price = row.model.price
            assert row.usd == INPUT_SHARE * price.input + (1 - INPUT_SHARE) * price.output


SHOP = [
    listed("anthropic/claude-opus", (5, 25)),
    listed("anthropic/claude-haiku", (0.1, 0.5)),
    listed("gemini/flash", (0.75, 3.75)),
    listed("perplexity/sonar", (0.01, 0.01), tools=False),
    listed("ollama/qwen3:4b", free="local"),
    listed("ollama/qwen3-coder:30b", free="local"),
    listed("chatgpt/gpt", free="plan"),
]
PAID = [model for model in SHOP if not model.free]


def test_the_presets_choose_as_they_say() -> None:
    main = "anthropic/claude-opus"
    balanced, cheapest = suggest(PAID, "balanced", main=main), suggest(PAID, "cheapest", main=main, roles=["reviewer"])
    assert balanced.settings["roles"] == {"worker": "gemini/flash", "explore": "anthropic/claude-haiku"}
    assert cheapest.settings["roles"] == dict.fromkeys(("worker", "explore", "reviewer"), "anthropic/claude-haiku")
    assert cheapest.settings["fallbacks"]["worker"] == ["gemini/flash"]
    assert cheapest.settings["role_options"] == {
        "worker": {"isolation": "worktree", "max_turns": 40, "context": "minimal"},
        "reviewer": {"isolation": "worktree", "max_turns": 40, "context": "minimal"},
        "explore": {"max_turns": 30, "context": "minimal"},
    }
    local = suggest(SHOP, "local", main=main)
    assert local.settings["roles"] == dict.fromkeys(("worker", "explore"), "ollama/qwen3-coder:30b")
    assert local.settings["fallbacks"] == {"worker": ["chatgpt/gpt"], "explore": ["chatgpt/gpt"]}
    assert local.reasons["worker"] == "ollama/qwen3-coder:30b: the cheapest of 4 that fit, it runs here"
    assert (
        suggest(PAID, "local", main=main)
        .reasons["worker"]
        .startswith("anthropic/claude-haiku: nothing runs here and no plan is signed in to")
    )


def test_a_role_stays_the_main_model_where_nothing_is_better() -> None:
    alone = suggest([listed("a/m", (1, 1))], "cheapest", main="A/M")
    assert (alone.settings, alone.reasons["worker"]) == ({}, "no other model fits, so it stays the main model")
    cheap = suggest([listed("a/m", (0.1, 0.1)), listed("b/n", (1, 1))], "cheapest", main="a/m")
    assert (cheap.settings, cheap.reasons["explore"]) == (
        {},
        "nothing is cheaper than the main model, which it stays",
    )
    assert suggest([], "balanced").settings == {}


def test_no_such_preset() -> None:
    with pytest.raises(ConfigError, match=r'no preset "best"\. One of: balanced, cheapest, local'):
        suggest([], "best")


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("qwen2.5-coder:7b", 7),
        ("llama-3.1-405b-instruct", 405),
        ("mixtral-8x7b", 56),
        ("smollm2-135m", 0.135),
        ("gpt-4", None),
        ("phi-4b2", None),
        ("qwen3-1.7b", 1.7),
    ],
)
def test_a_size_is_read_from_the_name(name: str, size: float | None) -> None:
    assert size_b(listed(f"a/{name}")) == size


def test_a_local_model_of_unknown_size_may_work_a_small_one_may_not() -> None:
    local = {"free": "local"}
    assert can_work(listed("ollama/qwen3-coder", **local))
    assert not can_work(listed("ollama/qwen3:4b", **local))
    assert not can_work(listed("ollama/m", size_b=6.9, **local))
    assert can_work(listed("groq/llama-3b"))


def test_a_slip_in_a_preset_s_name_is_told_before_any_provider_is_asked() -> None:
    for words in (["preset", "cheepest"], ["suggest", "worker", "cheepest"]):
        with pytest.raises(ConfigError, match="Did you mean cheapest") as caught:
            routing.answer(words, Config.load({}, env={}), {})
        assert "no provider" not in str(caught.value)
