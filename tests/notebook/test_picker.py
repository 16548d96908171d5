"""The shelf of models: at once from the catalog, then from what providers tell; each line says if it can be asked."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from larik_nb import errors
from larik_nb.catalog import Price
from larik_nb.config import Config
from larik_nb.notebook import keys
from larik_nb.notebook.picker import Offer, Shelf
from larik_nb.providers._listing import Listed, Listing
from larik_nb.routing.cooldown import CooldownPolicy, Cooldowns

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUSE = {"type": "openai-compatible", "base_url": "http://127.0.0.1:1/v1"}


def shelf(env: dict[str, str] | None = None, cooldowns: Cooldowns | None = None, **settings: Any) -> Shelf:
    config = Config.load({"providers": {"house": HOUSE}, **settings}, env=env or {})
    return Shelf(config, cooldowns=cooldowns or Cooldowns(), now=lambda: NOON)


def one(shelf: Shelf, spec: str) -> Offer:
    return next(offer for offer in shelf.offers() if offer.spec == spec)


def test_the_catalog_is_there_at_once_and_what_cannot_be_asked_comes_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LARIK_CACHE_DIR", str(tmp_path))
    states = [offer.state for offer in shelf({"GEMINI_API_KEY": "k" * 20}).offers()]
    ready = states.count("ok")
    assert set(states[:ready]) == {"ok"}
    assert set(states[ready:]) == {"no key", "not fetched"}


def test_a_line_has_window_price_abilities_and_state() -> None:
    house = shelf(models={"house/m": {"vision": True, "thinking": ["effort"]}})
    price = Price(input=2, output=10)
    told = Listed(provider="house", id="m", window=1_000_000, price=price, tools=True, ends=date(2027, 1, 31))
    house.heard(Listing(provider="house", models=(told,)))

    offer = one(house, "house/m")

    assert offer.line == "house/m · 1M · $2/$10 · vision tools thinking · until 2027-01-31 · ok"
    assert offer.to_json()["ready"] is True


def test_what_is_unknown_is_said_or_left_out_never_made_up() -> None:
    house = shelf()
    house.heard(Listing(provider="house", models=(Listed(provider="house", id="m", tools=False),)))
    assert one(house, "house/m").line == "house/m · price unknown · ok"
    assert set(one(house, "house/m").to_json()) == {"spec", "price", "state", "ready"}


def test_a_provider_s_own_list_goes_before_the_catalog_s() -> None:
    mine = shelf({"GEMINI_API_KEY": "k" * 20})
    assert len([offer for offer in mine.offers() if offer.spec.startswith("gemini/")]) > 1
    mine.heard(Listing(provider="gemini", models=(Listed(provider="gemini", id="only-one"),)))
    assert [offer.spec for offer in mine.offers() if offer.spec.startswith("gemini/")] == ["gemini/only-one"]


def test_who_did_not_answer_is_named_and_not_chosen_from() -> None:
    mine = shelf({"GEMINI_API_KEY": "k" * 20})
    mine.ask(["gemini", "house"])
    assert [(row["name"], row["state"]) for row in mine.providers()] == [("house", "asking"), ("gemini", "asking")]
    assert {model.provider for model in mine.usable} == {"gemini"}

    mine.heard(Listing(provider="gemini", error="no answer within 20 s"))
    mine.heard(Listing(provider="house", models=(Listed(provider="house", id="m"),)))

    assert [(row["name"], row["text"]) for row in mine.providers()] == [
        ("house", "1 model"),
        ("gemini", "no answer within 20 s"),
    ]
    assert [model.spec for model in mine.usable] == ["house/m"]


def test_one_provider_set_up_wrongly_is_told_and_the_others_are_there() -> None:
    mine = shelf({"GEMINI_API_KEY": "k" * 20}, providers={"house": HOUSE, "odd": {"type": "no-such-thing"}})
    told = {row["name"]: row["state"] for row in mine.providers()}
    assert told == {"house": "ok", "gemini": "ok", "odd": "failed"}


def test_a_model_that_is_left_alone_says_how_long_and_why() -> None:
    cooldowns = Cooldowns(clock=lambda: 100.0)
    attempt = cooldowns.begin("house/m", CooldownPolicy())
    assert attempt is not None
    attempt.failed(errors.classify(429, {}, b"", where="http"))
    house = shelf(cooldowns=cooldowns)
    house.heard(Listing(provider="house", models=(Listed(provider="house", id="m"),)))
    assert one(house, "house/m").state == "cooling 60 s (rate limited)"
    assert not one(house, "house/m").is_ready


def test_a_key_that_cannot_be_one_is_none_and_its_provider_says_so_when_asked() -> None:
    states = {o.state for o in shelf({"GEMINI_API_KEY": "not a key"}).offers() if o.spec.startswith("gemini/")}
    assert states == {"no key"}


# -- in the page ------------------------------------------------------------------------------------------------------
def test_choosing_goes_on_with_the_model_and_a_wrong_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anywidget", reason="the extra widgets is not installed")
    from larik_nb.errors import ConfigError
    from larik_nb.notebook.widgets.picker import PickerPanel

    chosen: list[str] = []

    def choose(spec: str) -> str:
        if spec == "no/such":
            raise ConfigError("there is no such model")
        chosen.append(spec)
        return f"now {spec}"

    panel = PickerPanel(Config.load({}, env={}), "before", choose)
    assert panel.twin() == {"text/plain": "before", "text/markdown": "before"}
    panel.heard({"type": "choose", "spec": "no/such"})
    assert panel.view["note"] == "there is no such model"
    assert panel.is_open

    panel.heard({"type": "choose", "spec": "a/b"})
    assert (chosen, panel.twin()["text/plain"], panel.is_open) == (["a/b"], "now a/b", False)


def test_a_small_model_of_this_machine_says_that_it_was_not_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LARIK_CACHE_DIR", str(tmp_path))

    assert shelf({}).state("local/smollm2-135m") == "not fetched"
    assert shelf({}).state("local/mine.gguf") == "ok"


def test_who_lacks_a_key_is_who_the_list_of_keys_names() -> None:
    config = Config.load({}, env={"OPENAI_API_KEY": "k"})
    named = keys.answer([], config, can_ask=False)[0].splitlines()[0].removeprefix("without a key: ").split(", ")
    assert Shelf(config).without_key() == named
    assert "anthropic" in named
    assert "openai" not in named
