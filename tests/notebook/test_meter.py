"""What a conversation has cost: sums that say what they lack, caches, the budget, and both forms of showing it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from larik_nb.agent.session import Route, Session, Turn
from larik_nb.errors import ConfigError
from larik_nb.notebook import meter, plots, tables
from larik_nb.providers.scripted import ScriptedProvider
from larik_nb.types import Usage

PRICING = {
    "house/big": {"input": 4, "output": 20, "cache_read": 0.4, "cache_write": 5},
    "house/small": {"input": 1, "output": 2},
}


USED = Usage(input=1_000, output=100)


def turn(model: str = "big", *, cost: float | None = 0.1, usage: Usage | None = USED, **values: Any) -> Turn:
    return Turn(model=model, provider="house", usage=usage, cost_usd=cost, seconds=1.0, **values)


def report(*turns: Turn, **config: Any) -> meter.Report:
    session = Session(config={"pricing": PRICING, **config})
    session.turns.extend(turns)
    return meter.Report.of(session, lambda: Route(provider=ScriptedProvider(name="house"), model="big"))


def test_sums_by_model_role_and_cell_the_dearest_first() -> None:
    told = report(turn("small", cost=0.01, cell=1), turn(cost=0.2, cell=2), turn(cost=0.1, cell=2, role="worker"))
    assert [(row.name, row.turns, round(row.spent.usd, 2)) for row in told.models] == [
        ("house/big", 2, 0.3),
        ("house/small", 1, 0.01),
    ]
    assert [(row.name, row.turns) for row in told.roles] == [("main", 2), ("worker", 1)]
    assert [(row.name, row.turns) for row in told.cells] == [("[2]", 2), ("[1]", 1)]
    assert meter.cell(turn()) == "Python"


def test_a_sum_with_an_unknown_part_is_a_lower_bound_everywhere() -> None:
    told = report(turn(cost=0.2, cell=1), turn("odd", cost=None, usage=None, cell=1))
    for form in (meter.text(told), meter.rich(told)):
        assert "≥ " in form
    view = meter.view(told, running=False)
    assert view["total"] == "≥ $0.20"
    assert view["cells"][0]["cost"] == "≥ $0.20"
    assert view["models"][1] == {
        "name": "house/odd",
        "usd": 0.0,
        "cost": "unknown",
        "turns": 1,
        "tokens": "tokens unknown",
    }


def test_caches_are_credited_with_what_their_tokens_would_have_cost() -> None:
    read = turn(usage=Usage(input=100, output=0, cache_read=900_000))
    told = report(read)
    assert told.cache is not None
    assert told.cache.saved.usd == pytest.approx(0.9 * (4 - 0.4))
    assert meter.cache_words(told.cache) == "900k of 900k prompt tokens came from a cache, which saved $3.24"

    wrote = turn(usage=Usage(input=0, output=0, cache_read=1, cache_write=1_000_000))
    told = report(wrote)
    assert told.cache is not None
    assert "writing to it cost $1.00 more than that saved so far" in meter.cache_words(told.cache)

    told = report(turn("odd", cost=None, usage=Usage(input=1, output=1, cache_read=5)))
    assert told.cache is not None
    assert meter.cache_words(told.cache).endswith("what that saved is unknown")
    assert report(turn()).cache is None


@pytest.mark.parametrize(
    ("spent", "level", "words"),
    [
        (0.5, "ok", "$0.50 of $2.00, 25 %; a warning at 80 %"),
        (1.6, "warn", "$1.60 of $2.00, 80 %: near the budget"),
        (2.5, "stop", "$2.50 of $2.00, 125 %: nothing more is sent; %routing budget=4 raises it"),
    ],
)
def test_the_budget_says_how_near_it_is(spent: float, level: str, words: str) -> None:
    told = report(turn(cost=spent), budget={"session_usd": 2})
    assert (told.level, meter.budget_words(told)) == (level, words)


def test_a_budget_of_nothing_is_used_up() -> None:
    assert report(budget={"session_usd": 0}).level == "stop"
    assert report().share is None


def test_the_next_question_is_estimated_from_the_conversation_so_far() -> None:
    told = report()
    assert told.next is not None
    assert told.next.usd == pytest.approx(1_000 * 20 / 1e6, abs=1e-4)
    assert meter.next_words(told.next).endswith("to house/big, ≈ $0.02 with 1k out")

    def nobody() -> Route:
        raise ConfigError("no model is set up")

    assert meter.Report.of(Session(config={}), nobody).next is None


def test_steps_grow_and_carry_their_notices() -> None:
    told = report(
        turn(cost=0.1, cell=1), turn(cost=None, cell=2, notices=("⟳ big\nis rate limited",)), turn(cost=0.2, cell=3)
    )
    steps = meter.view(told, running=True)["steps"]
    assert [step["usd"] for step in steps] == [0.1, 0.1, 0.3]
    assert steps[1]["notices"] == ["⟳ big is rate limited"]
    assert "⚑ turn 2: ⟳ big is rate limited" in meter.text(told)
    assert "2 [2] ⚑" in meter.text(told, cells=True)
    assert "[2]" not in meter.text(told) + meter.rich(told)


def test_the_text_is_the_same_each_time_and_names_no_time() -> None:
    turns = [turn(cost=0.1 * n, cell=n) for n in range(1, 15)]
    first = meter.text(report(*turns))
    assert first == meter.text(report(*turns))
    assert " s " not in first
    assert "\n14  " in first
    assert "\n2 " not in first  # the latest twelve only


def test_nothing_asked_yet_still_tells_the_budget() -> None:
    assert meter.text(report(budget={"session_usd": 2})).startswith("nothing was asked yet\nbudget  ░░░")


def test_hostile_names_stay_text() -> None:
    told = report(turn("<img src=x>|`*\n"), turn("b"))
    assert "<img" not in meter.rich(told)
    assert json.loads(json.dumps(meter.view(told, running=False)))["models"][0]["name"] == "house/<img src=x>|`*"


def test_bars_are_full_to_their_share() -> None:
    assert [tables.bar(share, 4) for share in (0, 0.01, 0.5, 1, 7, -1)] == [
        "░░░░",
        "█░░░",
        "██░░",
        "████",
        "████",
        "░░░░",
    ]


def test_a_turn_knows_its_role_and_what_was_said_on_the_way() -> None:
    from larik_nb.types import notice, text_delta

    def reply(request: Any) -> Any:
        provider = ScriptedProvider(["hi"])
        return [notice("⟳ on another model"), text_delta("hi"), *provider._events("hi", request)]

    session = Session(ScriptedProvider([reply]), config={})
    session.ask("hi")
    session.ask("hi", model="scripted/demo")
    session.config  # noqa: B018  # read anew at each turn
    roles = Session(config={"model": "scripted/demo", "roles": {"worker": "scripted/demo"}})
    for name in (None, "worker", "compact", "scripted/demo"):
        roles.ask("hi", model=name)
    assert session.turns[0].notices == ("⟳ on another model",)
    assert [turn.role for turn in session.turns] == ["main", "main"]
    assert [turn.role for turn in roles.turns] == ["main", "worker", "compact", "main"]


def test_a_picture_is_drawn_aside_from_the_user_s_figures() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    import sys

    told = report(turn(cost=0.1, cell=1), turn(cost=0.2, cell=2, notices=("x",)), budget={"session_usd": 0.4})
    had_pyplot = "matplotlib.pyplot" in sys.modules
    picture = base64.b64decode(plots.spend(told))
    assert picture.startswith(b"\x89PNG")
    assert ("matplotlib.pyplot" in sys.modules) == had_pyplot
    assert plots.words(told) == "spend over 2 turns, up to $0.30"
    assert not plots.worth_it(report(turn()))


# -- in the page ------------------------------------------------------------------------------------------------------
def test_it_is_drawn_at_most_twice_a_second_and_the_last_word_counts() -> None:
    pytest.importorskip("anywidget", reason="the extra widgets is not installed")
    import asyncio

    from larik_nb.notebook.widgets.meter import MeterPanel

    async def run() -> list[Any]:
        now = 0.0
        turns = [turn()]
        drawn: list[Any] = []
        panel = MeterPanel(lambda: report(*turns), clock=lambda: now)
        panel.observe(lambda change: drawn.append((change["new"]["running"], len(change["new"]["steps"]))), "view")
        now = 1.0
        panel.changed(running=True)
        assert drawn == [(True, 1)]
        for _ in range(5):
            turns.append(turn())
            panel.changed(running=False)
            panel.changed(running=True)
        assert drawn == [(True, 1)]
        assert panel._waiting is not None
        assert 0.4 < panel._waiting.when() - asyncio.get_running_loop().time() <= 0.5
        panel.changed(running=False)
        panel._waiting.cancel()
        panel._draw()
        panel.close()
        panel.changed(running=True)
        return drawn

    assert asyncio.run(run()) == [(True, 1), (False, 6)]


def test_the_next_question_is_expected_to_end_at_the_limit_set_for_its_model():
    free, limited = report(), report(model_settings={"big": {"max_tokens": 100}})

    assert free.next is not None
    assert limited.next is not None
    assert (free.next.output, limited.next.output) == (1_000, 100)
    assert "with 100 out" in meter.next_words(limited.next)
