"""The quiet line and the bundle that is saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from larik_nb.agent.session import Spent
from larik_nb.notebook import display, render
from larik_nb.types import Message, Usage, assistant, notice

ANSWER = replace(
    assistant("Because of **refunds**."),
    provider="anthropic",
    model="claude-sonnet-5-5",
    usage=Usage(input=1300, output=412, cache_read=6900),
    cost_usd=0.0131,
    stop_reason="end_turn",
)


ESTIMATED = replace(ANSWER, usage=Usage(input=12, output=412, estimated=True), stop_reason="interrupted")


def line(message: Message = ANSWER, spent: Spent | None = None, how_to: str = "") -> str:
    return display.quiet_line(message, took_s=4.12, spent=spent or Spent(usd=0.213), how_to=how_to)


def test_the_line_names_model_tokens_money_time_and_the_sum():
    assert line() == (
        "anthropic/claude-sonnet-5-5 · 8.2k in (6.9k cached) · 412 out · $0.013 · 4.1 s     session $0.21"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cost_usd": None}, " · cost unknown · 4.1 s"),
        ({"cost_usd": 0.0, "provider": "local"}, " · free (local) · "),
        ({"cost_usd": 0.0, "provider": "chatgpt"}, " · free (plan) · "),
        ({"usage": None, "cost_usd": None}, "tokens unknown · cost unknown · 4.1 s"),
        ({"stop_reason": "max_tokens"}, "cut off at the token limit"),
        ({"stop_reason": "interrupted"}, "8.2k in (6.9k cached) · 412 out · $0.013 · 4.1 s · interrupted     session"),
    ],
)
def test_the_line_says_what_is_out_of_the_ordinary(changes: dict[str, object], says: str):
    assert says in line(replace(ANSWER, **changes))


def test_a_sum_with_an_unknown_part_is_a_lower_bound_and_a_free_one_is_left_out():
    assert line(spent=Spent(usd=0.213, at_least=True)).endswith("session ≥ $0.21")
    assert "session" not in line(spent=Spent())
    assert line(spent=Spent(at_least=True)).endswith("session cost unknown")


def test_an_estimate_is_marked_wherever_it_stands():
    """Tokens, money and the sums they go into."""
    assert line(ESTIMATED, spent=Spent(usd=0.2, estimated=True)) == (
        "anthropic/claude-sonnet-5-5 · ~12 in · ~412 out · ~$0.013 · 4.1 s · interrupted     session ~$0.20"
    )
    assert display.total(Spent(usd=0.2, estimated=True, at_least=True)) == "≥ ~$0.20"
    assert display.used(ESTIMATED) == ["~12 in", "~412 out"]


def test_how_to_make_a_price_known_names_the_file(monkeypatch: pytest.MonkeyPatch):
    how_to = display.how_to_price(ANSWER, str(Path.home() / ".config" / "config.json"))

    assert how_to == (
        ' (no price for anthropic/claude-sonnet-5-5: set pricing."anthropic/claude-sonnet-5-5" in ~/.config/config.json)'
    )
    assert f"cost unknown{how_to} · 4.1 s" in line(replace(ANSWER, cost_usd=None), how_to=how_to)
    assert "no price" not in line(how_to=how_to)
    assert "no price" not in line(replace(ANSWER, usage=None, cost_usd=None), how_to=how_to)


def test_a_replayed_line_has_nothing_that_differs_from_run_to_run():
    assert display.replayed_line(ANSWER) == "anthropic/claude-sonnet-5-5 · 8.2k in (6.9k cached) · 412 out · replayed"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (999, "999"), (1000, "1k"), (8249, "8.2k"), (131_072, "131k"), (999_600, "1M"), (1_250_000, "1.2M")],
)
def test_tokens_have_three_figures_at_most(count: int, text: str):
    assert display.tokens(count) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (0.000001, "< $0.00001"),
        (0.00042, "$0.00042"),
        (0.013, "$0.013"),
        (0.05, "$0.05"),
        (0.2149, "$0.21"),
        (1.6, "$1.60"),
        (123.456, "$123.46"),
    ],
)
def test_money_is_to_the_cent_and_to_two_figures_below(amount: float, text: str):
    assert display.usd(amount) == text


def test_both_forms_are_saved_and_the_plain_one_is_real():
    bundle = display.Shown(
        text=ANSWER.text, line=line(), above=["⟳ switched"], thinking="hm", thought="thought for 6 s"
    ).bundle()

    assert list(bundle) == ["text/plain", "text/markdown"]
    assert bundle["text/plain"] == f"⟳ switched\n\nthought for 6 s\n\nBecause of **refunds**.\n\n{line()}"
    assert bundle["text/markdown"].startswith("<small>*⟳ switched*</small>\n\n<details><summary>")
    assert bundle["text/markdown"].endswith(r"*session <span>\$</span>0.21*</small>")


def test_the_line_is_not_swallowed_by_an_open_fence():
    markdown = display.Shown(text="```python\nx = 1", line="who").bundle()["text/markdown"]

    assert markdown == "```python\nx = 1\n```\n\n<small>*who*</small>"


def test_a_message_shows_as_its_text():
    bundle = display.message_bundle(ANSWER)

    assert bundle["text/plain"].startswith("Because of **refunds**.\n\nanthropic/claude-sonnet-5-5 · ")


def test_what_a_server_calls_its_model_stays_one_line_of_what_prints():
    named = replace(ANSWER, model="m\n\n# big\x1b[31m</small><b>\u202e" + "x" * 5_000, cost_usd=None)

    assert "\n" not in line(named)
    assert "\x1b" not in line(named)
    assert "\u202e" not in line(named)
    assert line(named).startswith("anthropic/m # big</small><b>xxx")
    assert len(line(named)) < 500


def test_a_notice_is_one_line_of_what_prints():
    answer = render.Answer("m")
    answer.take(notice("declined:\n\n# all\x1b[2J" + "x" * 5_000))

    assert answer.above[0].startswith("declined: # allxxx")
    assert len(answer.above[0]) == 500
