"""Which models to route to: from what providers list to settings, with a reason for each choice. Pure: asks nobody.

Cheapest first means what runs here, then what a plan includes, then the price weighted to input, for an agent reads
far more than it writes. A model without a price is placed by a guess from its name, and said to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from larik_nb.errors import ConfigError
from larik_nb.providers._presets import presets

if TYPE_CHECKING:
    from datetime import date

    from larik_nb.providers._listing import Listed

PRESETS: Mapping[str, str] = {
    "balanced": "your model stays in charge; the cheapest capable models read and do the routine work",
    "cheapest": "the lowest-priced capable model for every subagent",
    "local": "what runs here and what a plan includes before paid APIs",
}

DEFAULT = "balanced"

INPUT_SHARE = 0.85
"""Share of an agent's tokens that are read, not written."""
SMALLEST_WORKER_B = 7.0
"""Billions of parameters below which a local model loses the thread of an edit."""
FLOOR_USD = 0.3
"""Weighted price below which hosted models are mostly too small to be let edit files alone."""
GUESSED_USD = {"tiny": 0.1, "small": 0.5, "usual": 2.0, "large": 8.0}
"""Weighted prices, USD per million tokens, assumed for names that speak of a size."""

LOCAL, PLAN, PAID = range(3)
"""The order of what costs nothing: on this machine, in a plan, and what is paid for."""

_LEASH: Mapping[str, Mapping[str, Any]] = {
    "worker": {"isolation": "worktree", "max_turns": 40, "context": "minimal"},
    "explore": {"max_turns": 30, "context": "minimal"},
}
_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A model in the order of cheapness.

    Attributes:
        model: The model.
        usd: What a million tokens of an agent cost, most of them read; 0 for local and plan.
        why: Its place in a few words.
        is_guess: The price is guessed from the name.
    """

    model: Listed
    usd: float
    why: str
    is_guess: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Settings to route by.

    Attributes:
        preset: Whose.
        settings: What to write into the settings file: roles, fallbacks, role_options. A role left out stays the main
            model.
        reasons: One line for each role that was decided, and for one that was left alone.
    """

    preset: str
    settings: Mapping[str, Any]
    reasons: Mapping[str, str]


def size_b(model: Listed) -> float | None:
    """Return a model's size in billions of parameters, from its list or its name; None when neither tells."""
    if model.size_b is not None:
        return model.size_b
    found = _SIZE.search(model.id.lower())
    if found is None:
        return None
    experts, number, unit = found.groups()
    return float(number) * int(experts or 1) * (1.0 if unit == "b" else 0.001)


def rank(models: Iterable[Listed], *, today: date | None = None) -> list[Ranked]:
    """Return the models an agent can use, cheapest first; of those that cost nothing the largest first.

    Left out are those that take no tools, whose names say that they do not talk, and that are no longer served today.
    """
    return _in_order(model for model in models if not _useless(model, today))


def _in_order(models: Iterable[Listed]) -> list[Ranked]:
    placed = map(_placed, models)
    return sorted(placed, key=lambda row: (_class(row.model), row.usd, -(size_b(row.model) or 0.0), row.model.spec))


def _useless(model: Listed, today: date | None) -> str:
    """Return why no agent can use a model; empty for one that it can."""
    if model.tools is False:
        return "it takes no tools"
    if model.ends is not None and today is not None and model.ends <= today:
        return f"it is no longer served since {model.ends}"
    return "its name says that it does not talk" if re.search(presets().other_trades, model.id.lower()) else ""


def _class(model: Listed) -> int:
    return {"": PAID, "plan": PLAN}.get(model.free, LOCAL)


def _placed(model: Listed) -> Ranked:
    if model.free:
        return Ranked(model=model, usd=0.0, why="it runs here" if _class(model) == LOCAL else f"free ({model.free})")
    if model.price is None:
        sizes = presets().sizes.items()
        word = next((size for size, words in sizes if re.search(words, model.id.lower())), "usual")
        return Ranked(model=model, usd=GUESSED_USD[word], why="no price is known, placed by its name", is_guess=True)
    usd = INPUT_SHARE * model.price.input + (1 - INPUT_SHARE) * model.price.output
    return Ranked(model=model, usd=usd, why=f"${model.price.input:g}/${model.price.output:g} per million tokens")


def can_work(model: Listed) -> bool:
    """Return whether a model may be let edit files: no local one that is known to be small."""
    size = size_b(model)
    return _class(model) != LOCAL or size is None or size >= SMALLEST_WORKER_B


def suggest(
    models: Sequence[Listed],
    preset: str,
    *,
    main: str | None = None,
    roles: Sequence[str] = (),
    today: date | None = None,
) -> Suggestion:
    """Return settings for a preset.

    Args:
        models: What the providers list.
        preset: What matters, a key of `PRESETS`.
        main: The main model, "provider/model". It is chosen for no role: one that is not set already is it.
        roles: Roles of the user's own, which the preset "cheapest" decides as well.
        today: Models that end until then are left out.

    Raises:
        ConfigError: There is no such preset.
    """
    check(preset)
    ranked = rank(models, today=today)
    own = next((row for row in ranked if row.model.spec.lower() == (main or "").lower()), None)
    others = [row for row in ranked if row is not own]
    decided = dict.fromkeys(_decided(preset, roles))
    return _settings({role: _choose(others, role, preset, own) for role in decided}, preset)


def check(preset: str) -> None:
    """Raise `ConfigError` unless there is such a preset; the message names the nearest, and all."""
    from larik_nb._config_checks import nearest

    if preset not in PRESETS:
        close = nearest(preset, PRESETS)
        hint = f"Did you mean {close}? " if close else ""
        raise ConfigError(f'there is no preset "{preset}"', remedy=f"{hint}One of: {', '.join(PRESETS)}")


def decides(preset: str, role: str, roles: Sequence[str] = ()) -> bool:
    """Return whether a preset chooses the model of a role, `roles` being the user's own."""
    return role in _decided(preset, roles)


def _decided(preset: str, roles: Sequence[str]) -> tuple[str, ...]:
    return ("worker", "explore", *roles) if preset == "cheapest" else ("worker", "explore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A model as a choice for a role.

    Attributes:
        model: The model.
        why: Why it is suggested, or why not.
        is_suggested: It is what the preset chooses.
    """

    model: Listed
    why: str
    is_suggested: bool = False


def candidates(
    models: Sequence[Listed],
    preset: str,
    role: str,
    *,
    main: str | None = None,
    roles: Sequence[str] = (),
    today: date | None = None,
) -> list[Candidate]:
    """Return every model as a choice for `role`: first what `suggest` chooses, in the same order, last what cannot work.

    Takes what `suggest` takes.
    """
    ranked = rank(models, today=today)
    own = next((row for row in ranked if row.model.spec.lower() == (main or "").lower()), None)
    others = [row for row in ranked if row is not own]
    choice = _choose(others, role, preset, own) if decides(preset, role, roles) else _Choice("")
    fit = [row for row in ranked if not _unfit(row, role, preset)]
    unfit = [row for row in ranked if _unfit(row, role, preset)]
    useless = _in_order(model for model in models if _useless(model, today))
    return [
        *(_candidate(row, choice, own) for row in sorted(fit, key=lambda row: row is not choice.model)),
        *(Candidate(model=row.model, why=_unfit(row, role, preset)) for row in unfit),
        *(Candidate(model=row.model, why=_useless(row.model, today)) for row in useless),
    ]


def _candidate(row: Ranked, choice: _Choice, main: Ranked | None) -> Candidate:
    if row is choice.model:
        return Candidate(model=row.model, why=choice.why.partition(": ")[2], is_suggested=True)
    if row is main:
        return Candidate(model=row.model, why=f"the main model, {row.why}")
    if row is choice.then:
        return Candidate(model=row.model, why=f"suggested to step in, {row.why}")
    first = choice.model or (main if choice.why else None)
    return Candidate(model=row.model, why=f"{_beside(row, first)}{row.why}")


def _beside(row: Ranked, first: Ranked | None) -> str:
    """Return how a model compares to the first choice."""
    if first is None:
        return ""
    return "as cheap, " if (_class(row.model), row.usd) == (_class(first.model), first.usd) else "dearer, "


def _unfit(row: Ranked, role: str, preset: str) -> str:
    """Return why a model is not for a role; empty for one that is."""
    if role == "explore":
        return ""
    if not can_work(row.model):
        return f"too small to edit files: {size_b(row.model):g}B of {SMALLEST_WORKER_B:g}B"
    if preset == "balanced" and _class(row.model) == PAID and row.usd < FLOOR_USD:
        return f"so cheap that it is mostly too small to edit files alone, {row.why}"
    return ""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What a role gets: a model, another for when that fails, and why; no model leaves it the main one."""

    why: str
    model: Ranked | None = None
    then: Ranked | None = None


def _choose(ranked: Sequence[Ranked], role: str, preset: str, main: Ranked | None) -> _Choice:
    fit = [row for row in ranked if not _unfit(row, role, preset)]
    if not fit:
        return _Choice("no other model fits, so it stays the main model")
    first = fit[0]
    if main is not None and (_class(main.model), main.usd) <= (_class(first.model), first.usd):
        return _Choice("nothing is cheaper than the main model, which it stays")
    then = next((row for row in fit if row.model.provider != first.model.provider), None)
    return _Choice(f"{first.model.spec}: {_place(first, preset, fit)}", first, then)


def _place(row: Ranked, preset: str, fit: Sequence[Ranked]) -> str:
    cheapest = "the only one that fits" if len(fit) == 1 else f"the cheapest of {len(fit)} that fit"
    if preset == "local" and _class(row.model) == PAID:
        return f"nothing runs here and no plan is signed in to; {cheapest}, {row.why}"
    return f"{cheapest}, {row.why}"


def _settings(choices: Mapping[str, _Choice], preset: str) -> Suggestion:
    settings: dict[str, Any] = {"roles": {}, "fallbacks": {}, "role_options": {}}
    for role, choice in choices.items():
        if choice.model is not None:
            settings["roles"][role] = choice.model.model.spec
            settings["role_options"][role] = _LEASH.get(role, _LEASH["worker"])
        if choice.then is not None:
            settings["fallbacks"][role] = [choice.then.model.spec]
    reasons = {role: choice.why for role, choice in choices.items()}
    return Suggestion(preset=preset, settings={key: value for key, value in settings.items() if value}, reasons=reasons)
