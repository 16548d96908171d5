"""The routing wizard's state: whatever is pressed, the draft can be saved, and can be written as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from larik_nb.agent.session import Turn
from larik_nb.catalog import Price
from larik_nb.config import Config
from larik_nb.notebook.picker import Shelf
from larik_nb.notebook.wizard import COMMANDS, KEYS, Wizard, fewer_turns, more_turns
from larik_nb.providers._listing import Listed, Listing
from larik_nb.routing import edits
from larik_nb.routing.cooldown import CooldownPolicy, Cooldowns
from larik_nb.types import Usage

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOST = {"type": "openai-compatible", "base_url": "http://127.0.0.1:1/v1"}
BASE = {
    "model": "big/m-large",
    "providers": {"big": HOST, "small": HOST},
    "pricing": {"big/m-large": {"input": 4, "output": 20}, "small/m-mini": {"input": 0.5, "output": 2}},
}
PRICES = {"m-large": (4.0, 20.0), "m-mid": (1.0, 5.0), "m-mini": (0.5, 2.0), "m-nano": (0.05, 0.2)}


def listing(provider: str, *ids: str) -> Listing:
    priced = {name: Price(input=PRICES[name][0], output=PRICES[name][1]) for name in ids}
    models = tuple(Listed(provider=provider, id=name, price=price, tools=True) for name, price in priced.items())
    return Listing(provider=provider, models=models)


def shelf_of(config: Config, cooldowns: Cooldowns | None = None) -> Shelf:
    shelf = Shelf(config, cooldowns=cooldowns or Cooldowns(), now=lambda: NOON)
    shelf.heard(listing("big", "m-large", "m-mid"))
    shelf.heard(listing("small", "m-mini", "m-nano"))
    return shelf


def wizard_on(base: Mapping[str, Any] = BASE, **options: Any) -> Wizard:
    config = Config.load(dict(base), env={})
    return Wizard(config, dict(base), Path("/settings/config.json"), shelf_of(config), **options)


def row(wizard: Wizard, role: str) -> dict[str, Any]:
    return next(row for row in wizard.view()["rows"] if row["role"] == role)


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(BASE))
    monkeypatch.setenv("LARIK_CONFIG", str(path))
    return path


def opened(**options: Any) -> Wizard:
    config = Config.load()
    return Wizard.of(config, shelf_of(config), **options)


ROLES = st.sampled_from(["main", "smart", "worker", "explore", "compact", "reviewer"])
SPECS = st.sampled_from(
    [
        "big/m-large",
        "big/m-mid",
        "small/m-mini",
        "small/m-nano",
        "big/m-large",
        "worker",
        "nowhere/at-all",
        "big/x y",
        "",
    ]
)
PLACES = st.integers(-1, 3)
COMMAND = st.one_of(
    st.tuples(st.just("choose"), st.fixed_dictionaries({"role": ROLES, "spec": SPECS})),
    st.tuples(st.just("fallback"), st.fixed_dictionaries({"role": ROLES, "spec": SPECS})),
    st.tuples(st.just("drop"), st.fixed_dictionaries({"role": ROLES, "at": PLACES})),
    st.tuples(st.just("move"), st.fixed_dictionaries({"role": ROLES, "at": PLACES, "by": st.sampled_from([-1, 1])})),
    st.tuples(st.just("worktree"), st.fixed_dictionaries({"role": ROLES})),
    st.tuples(st.just("minimal"), st.fixed_dictionaries({"role": ROLES})),
    st.tuples(st.just("turns"), st.fixed_dictionaries({"role": ROLES, "by": st.sampled_from([-1, 1])})),
    st.tuples(
        st.just("budget"),
        st.fixed_dictionaries({"text": st.sampled_from(["5", "$2.5", "", "-1", "much", "1e999", "nan"])}),
    ),
    st.tuples(
        st.just("warn"), st.fixed_dictionaries({"text": st.sampled_from(["80", "50 %", "0", "", "120", "soon", "inf"])})
    ),
    st.tuples(
        st.just("preset"), st.fixed_dictionaries({"name": st.sampled_from(["balanced", "cheapest", "local", "best"])})
    ),
    st.tuples(st.sampled_from(["discard", "next_preset"]), st.just({})),
)
BASES = st.sampled_from(
    [
        BASE,
        {**BASE, "roles": {"Worker": "small/m-mini", "reviewer": "big/m-mid"}, "budget": {"session_usd": 2}},
        {**BASE, "fallbacks": {"big/m-large": ["small/m-mini"], "worker": ["big/m-mid", "big/m-large"]}},
        {**BASE, "role_options": {"worker": {"max_turns": 1, "isolation": "worktree", "later": 1}}},
    ]
)


@given(BASES, st.lists(COMMAND, max_size=12))
@settings(max_examples=150)
def test_any_commands_leave_settings_that_can_be_used_and_written_as_text(
    base: dict[str, Any], commands: list[tuple[str, dict[str, Any]]]
) -> None:
    wizard = wizard_on(base)
    for name, values in commands:
        before = wizard.data
        if not wizard.do(name, **values):
            assert wizard.note
            assert wizard.data == before
        view = wizard.view()
        assert json.loads(json.dumps(view)) == view
        assert view["diff"] == edits.diff(base, wizard.data)

    Config.load(wizard.data, env={})
    reread = edits.parse(edits.words(wizard.changes), Config.load(base, env={}))
    assert edits.changed(base, reread) == wizard.data


def test_every_command_is_tried_above() -> None:
    assert set(COMMANDS) == {
        "choose", "fallback", "drop", "move", "worktree", "minimal", "turns", "budget", "warn", "preset", "next_preset", "discard"
    }  # fmt: skip
    assert {key for key, _ in KEYS} >= {"Enter", "f", "Shift ↑ ↓", "w", "c", "+ −", "s", "?", "Esc"}


def test_a_role_gets_a_model_and_says_why() -> None:
    wizard = wizard_on()
    assert row(wizard, "worker")["model"] == "main"
    assert row(wizard, "worker")["reason"] == "not set, so it is the main model"

    assert wizard.do("choose", role="worker", spec="small/m-mini")

    assert row(wizard, "worker") == {
        "role": "worker",
        "model": "small/m-mini",
        "price": "$0.5/$2",
        "window": "",
        "leash": "",
        "leashed": True,
        "state": "ok",
        "changed": True,
        "then": [],
        "reason": "small/m-mini: your choice, not saved yet",
    }
    assert wizard.words == "%routing worker=small/m-mini"
    assert wizard.view()["changes"] == "1 role"


def test_what_is_as_it_was_is_no_change() -> None:
    wizard = wizard_on()
    wizard.do("worktree", role="worker")
    wizard.do("worktree", role="worker")
    wizard.do("budget", text="5")
    wizard.do("budget", text="")
    assert (wizard.changes, wizard.words, wizard.view()["changes"]) == ([], "", "")


def test_a_preset_decides_as_the_text_form_does_and_gives_its_reasons() -> None:
    wizard = wizard_on()
    wizard.do("preset", name="cheapest")

    assert row(wizard, "worker")["model"] == "small/m-nano"
    assert row(wizard, "worker")["then"] == [{"spec": "big/m-mid", "price": "$1/$5", "window": "", "state": "ok"}]
    assert row(wizard, "worker")["leash"] == "worktree · 40 turns · minimal"
    assert "the cheapest of 3 that fit" in row(wizard, "worker")["reason"]
    assert [preset["name"] for preset in wizard.view()["presets"] if preset["on"]] == ["cheapest"]
    assert wizard.view()["changes"] == "2 roles"

    wizard.do("preset", name="balanced")
    assert row(wizard, "worker")["model"] == "small/m-mini"
    assert row(wizard, "explore")["model"] == "small/m-nano"


def test_the_list_is_in_the_preset_s_order_and_says_why() -> None:
    wizard = wizard_on()
    choices = wizard.candidates("worker")
    assert [(choice["spec"], choice["suggested"]) for choice in choices] == [
        ("small/m-mini", True),
        ("big/m-mid", False),
        ("big/m-large", False),
        ("small/m-nano", False),
    ]
    assert choices[0]["why"] == "the cheapest of 2 that fit, $0.5/$2 per million tokens"
    assert choices[1]["why"].startswith("suggested to step in")
    assert choices[2]["why"].startswith("the main model")
    assert choices[3]["why"].startswith("so cheap that it is mostly too small")


def test_fallbacks_are_added_ordered_and_taken_away() -> None:
    wizard = wizard_on({**BASE, "fallbacks": {"big/m-large": ["small/m-mini"]}})
    assert [then["spec"] for then in row(wizard, "worker")["then"]] == ["small/m-mini"]

    wizard.do("fallback", role="worker", spec="big/m-mid")
    assert wizard.words == "%routing worker.fallbacks=small/m-mini,big/m-mid"
    wizard.do("move", role="worker", at=1, by=-1)
    assert [then["spec"] for then in row(wizard, "worker")["then"]] == ["big/m-mid", "small/m-mini"]
    assert not wizard.do("fallback", role="worker", spec="big/m-mid")
    assert "already" in wizard.note

    wizard.do("drop", role="worker", at=0)
    wizard.do("drop", role="worker", at=0)
    assert row(wizard, "worker")["then"] == []  # not even those of the main model, which it would have without a list
    assert wizard.words == "%routing worker.fallbacks=none"


def test_who_has_no_subagents_has_no_leash() -> None:
    wizard = wizard_on()
    for command in ("worktree", "minimal"):
        assert not wizard.do(command, role="main")
        assert "no subagents" in wizard.note


def test_turns_go_in_steps_and_the_usual_number_is_no_setting() -> None:
    assert [more_turns(n) for n in (1, 5, 19, 20, 33, 100)] == [5, 10, 20, 30, 40, 110]
    assert [fewer_turns(n) for n in (1, 4, 5, 20, 30, 33, 100)] == [1, 1, 1, 15, 20, 30, 90]
    wizard = wizard_on()
    wizard.do("turns", role="worker", by=-1)
    assert wizard.words == "%routing worker.max_turns=90"
    wizard.do("turns", role="worker", by=1)
    assert wizard.changes == []


def test_saving_writes_plain_settings_and_tells_what_changed(file: Path) -> None:
    wizard = opened()
    wizard.do("choose", role="worker", spec="small/m-mini")
    wizard.do("budget", text="2")

    edited = wizard.save()

    assert edited is not None
    assert json.loads(file.read_text()) == {**BASE, "roles": {"worker": "small/m-mini"}, "budget": {"session_usd": 2}}
    assert edits.diff(edited.before, edited.after) == [
        'roles.worker: (none) → "small/m-mini"',
        "budget.session_usd: (none) → 2",
    ]


def test_what_somebody_else_saved_meanwhile_is_shown_and_never_overwritten(file: Path) -> None:
    wizard = opened()
    wizard.do("choose", role="worker", spec="small/m-mini")
    edits.apply(edits.parse(["explore=big/m-mid", "worker=small/m-nano"], Config.load()))
    theirs = file.read_text()

    assert wizard.save() is None
    assert file.read_text() == theirs
    assert "somebody else" in wizard.note
    assert wizard.theirs == ['roles.explore: (none) → "big/m-mid"', 'roles.worker: (none) → "small/m-nano"']
    assert wizard.diff == ['roles.worker: "small/m-nano" → "small/m-mini"']
    assert row(wizard, "explore")["model"] == "big/m-mid"

    assert wizard.save() is not None
    assert json.loads(file.read_text())["roles"] == {"explore": "big/m-mid", "worker": "small/m-mini"}


def test_a_broken_file_is_told_and_left_alone(file: Path) -> None:
    wizard = opened()
    wizard.do("budget", text="2")
    file.write_text("{")
    assert wizard.save() is None
    assert "not valid JSON" in wizard.note
    assert file.read_text() == "{"


def test_a_key_in_the_settings_is_in_nothing_that_is_shown() -> None:
    secret = "sk-live-0123456789abcdefghij"
    base = {**BASE, "providers": {"big": {**HOST, "api_key": secret}, "small": HOST}}
    wizard = wizard_on(base)
    wizard.do("preset", name="cheapest")
    wizard.rebase({**base, "providers": {"big": {**HOST, "api_key": secret + "k"}, "small": HOST}})
    assert secret not in json.dumps(wizard.view()) + json.dumps(wizard.candidates("worker"))


def test_a_choice_says_what_the_turns_so_far_would_have_cost() -> None:
    turn = Turn(
        model="m-large",
        provider="big",
        usage=Usage(input=1_000_000, output=0),
        cost_usd=4.0,
        seconds=1.0,
        role="worker",
    )
    wizard = wizard_on(turns=lambda: [turn, turn])
    assert wizard.view()["typical"] == ""
    wizard.do("choose", role="worker", spec="small/m-mini")
    assert wizard.view()["typical"] == "typical turn ≈ $4.00 → $0.50 (from your 2 turns)"
    wizard.do("choose", role="worker", spec="big/m-mid")  # no price: no claim
    assert wizard.view()["typical"] == ""


def test_a_model_that_is_left_alone_says_so() -> None:
    from larik_nb import errors

    config = Config.load(BASE, env={})
    cooldowns = Cooldowns(clock=lambda: 0.0)
    attempt = cooldowns.begin("big/m-large", CooldownPolicy())
    assert attempt is not None
    attempt.failed(errors.classify(429, {}, b"", where="http"))
    wizard = Wizard(config, BASE, None, shelf_of(config, cooldowns))
    assert row(wizard, "main")["state"].startswith("cooling 60 s")


def test_a_project_s_word_goes_first_and_is_named(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "larik.json").write_text('{"roles": {"worker": "big/m-mid"}}')
    monkeypatch.chdir(project)
    wizard = opened()
    wizard.do("choose", role="worker", spec="small/m-mini")
    assert row(wizard, "worker")["model"] == "big/m-mid"
    assert "larik.json says so" in row(wizard, "worker")["reason"]
