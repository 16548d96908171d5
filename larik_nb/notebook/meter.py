"""What a conversation has cost: by model, role, cell and turn, beside its budget. Pure; `%larik cost` shows it.

A sum with an unknown part is a lower bound and says so with "≥".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING, Any

from larik_nb import estimate
from larik_nb.agent.session import Spent
from larik_nb.errors import LarikError
from larik_nb.notebook import display, markdown, routing, tables
from larik_nb.routing._config import budget_limits, model_settings
from larik_nb.routing.chain import expected_output
from larik_nb.types import Request, Usage, user

if TYPE_CHECKING:
    from larik_nb.agent.session import Route, Session, Turn
    from larik_nb.config import Config
    from larik_nb.routing.budget import BudgetLimits, Level

MOST_CELLS, MOST_TURNS = 5, 12
"""Rows that the text shows of the dearest cells and of the latest turns."""
BAR = 20
PYTHON = "Python"
"""The cell of a turn that no cell's magic asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """What some turns took together.

    Attributes:
        name: What they have in common.
        turns: How many.
        usage: Their tokens; None when no count is known.
        spent: Their cost.
    """

    name: str
    turns: int
    usage: Usage | None
    spent: Spent

    @classmethod
    def of(cls, name: str, turns: Sequence[Turn]) -> Sum:
        """Return it for `turns`."""
        known = [turn.usage for turn in turns if turn.usage is not None]
        return cls(name=name, turns=len(turns), usage=reduce(add, known) if known else None, spent=Spent.of(turns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """What caches spared.

    Attributes:
        read: Prompt tokens that came from one.
        prompt: All prompt tokens of the same turns.
        saved: USD less than without caches; below 0 where writing to them cost more than reading spared.
    """

    read: int
    prompt: int
    saved: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What the next question is likely to take, before its own words.

    Attributes:
        spec: Who would be asked.
        tokens: Of the prompt: the conversation so far.
        output: Of the answer, as a budget expects it.
        usd: Both; None when unknown.
    """

    spec: str
    tokens: int
    output: int
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that is known of a conversation's cost.

    Attributes:
        turns: One record per question, oldest first.
        total: What they took.
        models: The same by model, the dearest first.
        roles: By role.
        cells: By cell.
        budget: The limit.
        cache: What caches spared; None where nothing came from one.
        next: The next question; None where nobody can be asked.
    """

    turns: tuple[Turn, ...]
    total: Sum
    models: tuple[Sum, ...]
    roles: tuple[Sum, ...]
    cells: tuple[Sum, ...]
    budget: BudgetLimits
    cache: Cache | None
    next: Next | None

    @classmethod
    def of(cls, session: Session, route: Callable[[], Route]) -> Report:
        """Return it for a conversation.

        Args:
            session: The conversation.
            route: Returns who would be asked next; may raise LarikError.
        """
        turns, config = tuple(session.turns), session.config
        return cls(
            turns=turns,
            total=Sum.of("all", turns),
            models=_by(turns, spec),
            roles=_by(turns, lambda turn: turn.role),
            cells=_by(turns, cell),
            budget=budget_limits(config),
            cache=_cache(turns, config),
            next=_next(session, route, config),
        )

    @property
    def share(self) -> float | None:
        """What part of the budget is spent, at least; None without a budget."""
        limit = self.budget.session_usd
        if limit is None:
            return None
        return self.total.spent.usd / limit if limit else 1.0

    @property
    def level(self) -> Level:
        """How near the budget is."""
        return self.budget.level(self.total.spent.usd)


def spec(turn: Turn) -> str:
    """Return who answered a turn."""
    return display.one_line(f"{turn.provider}/{turn.model}")


def cell(turn: Turn) -> str:
    """Return where a turn was asked."""
    return PYTHON if turn.cell is None else f"[{turn.cell}]"


def _by(turns: Sequence[Turn], key: Callable[[Turn], Hashable]) -> tuple[Sum, ...]:
    groups: dict[Any, list[Turn]] = {}
    for turn in turns:
        groups.setdefault(key(turn), []).append(turn)
    sums = [Sum.of(str(name), rows) for name, rows in groups.items()]
    return tuple(sorted(sums, key=lambda row: -row.spent.usd))


def _cache(turns: Sequence[Turn], config: Config) -> Cache | None:
    used = [(turn, turn.usage) for turn in turns if turn.usage and (turn.usage.cache_read or turn.usage.cache_write)]
    if not any(usage.cache_read for _, usage in used):
        return None
    spared = [_spared(turn, usage, config) for turn, usage in used]
    known = [usd for usd in spared if usd is not None]
    return Cache(
        read=sum(usage.cache_read for _, usage in used),
        prompt=sum(usage.prompt for _, usage in used),
        saved=Spent(usd=sum(known), at_least=len(known) < len(spared)),
    )


def _spared(turn: Turn, usage: Usage, config: Config) -> float | None:
    """Return what the turn would have cost more had no cache held its prompt; None when no price is known."""
    known = config.catalog.find(turn.provider, turn.model)
    price = known.price(usage.prompt, datetime.now(UTC)) if known else None
    if price is None:
        return 0.0 if turn.cost_usd == 0 else None
    return price.of(Usage(input=usage.prompt, output=usage.output)) - price.of(usage)


def _next(session: Session, route: Callable[[], Route], config: Config) -> Next | None:
    try:
        asked = route()
    except LarikError:
        return None
    request = Request(model=asked.model, messages=(*session.history, user("")), system=session.system)
    prompt = estimate.request_tokens(request)
    provider, _, model = asked.spec.partition("/")
    output = expected_output(model, model_settings(config))
    usd = config.catalog.cost(Usage(input=prompt, output=output), provider, model)
    return Next(spec=display.one_line(asked.spec), tokens=prompt, output=output, usd=usd)


# -- for the page -----------------------------------------------------------------------------------------------------
def view(report: Report, *, running: bool) -> dict[str, Any]:
    """Return the report as JSON for the page: figures as the page draws them, texts as they are read."""
    return {
        "running": running,
        "total": display.total(report.total.spent) if report.turns else display.usd(0),
        "budget": _budget_view(report),
        "lines": dict(_lines(report)),
        "models": [_sum_view(row) for row in report.models],
        "roles": [_sum_view(row) for row in report.roles],
        "cells": [_sum_view(row) for row in report.cells[:MOST_CELLS]],
        "steps": list(_steps(report.turns)),
    }


def _budget_view(report: Report) -> dict[str, Any] | None:
    if report.budget.session_usd is None:
        return None
    return {
        "usd": report.budget.session_usd,
        "share": round(report.share or 0.0, 4),
        "warn": report.budget.warn_at,
        "level": report.level,
        "words": budget_words(report),
    }


def _sum_view(row: Sum) -> dict[str, Any]:
    return {
        "name": row.name,
        "usd": round(row.spent.usd, 6),
        "cost": display.total(row.spent),
        "turns": row.turns,
        "tokens": " · ".join(display.counted(row.usage)) if row.usage else "tokens unknown",
    }


def _steps(turns: Sequence[Turn]) -> Iterator[dict[str, Any]]:
    sums = accumulate(turn.cost_usd or 0.0 for turn in turns)
    for turn, usd in zip(turns, sums, strict=True):
        yield {
            "usd": round(usd, 6),
            "cell": cell(turn),
            "spec": spec(turn),
            "cost": "unknown" if turn.cost_usd is None else display.usd(turn.cost_usd),
            "notices": [display.one_line(text) for text in turn.notices],
        }


# -- as text ----------------------------------------------------------------------------------------------------------
def text(report: Report, *, cells: bool = False) -> str:
    """Return the report as plain text.

    Args:
        report: What to tell.
        cells: Name the cells. A saved notebook had better not: their numbers are others each time it is run.
    """
    return "\n\n".join(_parts(report, tables.aligned, "\n".join, cells=cells))


def rich(report: Report) -> str:
    """Return the report as markdown."""
    return "\n\n".join(
        _parts(report, tables.marked, lambda lines: "  \n".join(map(markdown.escaped, lines)), cells=False)
    )


def _parts(
    report: Report,
    table: Callable[[Sequence[Sequence[str]]], str],
    paragraph: Callable[[list[str]], str],
    *,
    cells: bool,
) -> Iterator[str]:
    if not report.turns:
        yield paragraph(["nothing was asked yet", *_shown_lines(report)])
        return
    yield table(_table("model", (*report.models, report.total), report))
    if lines := _shown_lines(report):
        yield paragraph(lines)
    if len(report.roles) > 1:
        yield table(_table("role", report.roles, report))
    if cells and len(report.cells) > 1:
        yield table(_table("dearest cells", report.cells[:MOST_CELLS], report))
    if len(report.turns) > 1:
        yield table([("turn", "model", "in", "out", "cost", "session"), *_turn_rows(report.turns, cells=cells)])
    if marks := list(_marks(report.turns)):
        yield paragraph(marks)


def _table(name: str, sums: Sequence[Sum], report: Report) -> list[tuple[str, ...]]:
    """Return a row for each sum under a head, with bars where there is something to compare."""
    rows = [(name, "turns", "in", "cached", "out", "cost"), *((row.name, *_figures(row)) for row in sums)]
    whole = report.total.spent.usd
    parts = [row for row in sums if row is not report.total]
    if not whole or len(parts) < 2:
        return rows
    bars = [tables.bar(row.spent.usd / whole, 10) if row is not report.total else "" for row in sums]
    return [(*row, bar) for row, bar in zip(rows, ["share", *bars], strict=True)]


def _figures(row: Sum) -> tuple[str, ...]:
    usage = row.usage
    if usage is None:
        return (str(row.turns), *[display.UNKNOWN] * 3, display.total(row.spent))
    counts = [usage.prompt, usage.cache_read, usage.output]
    shown = [display.about(usage) * bool(count) + display.tokens(count) for count in counts]
    return (str(row.turns), *shown, display.total(row.spent))


def _turn_rows(turns: Sequence[Turn], *, cells: bool) -> Iterator[tuple[str, ...]]:
    for number in range(max(0, len(turns) - MOST_TURNS), len(turns)):
        turn = turns[number]
        figures = _figures(Sum.of("", [turn]))
        place = [str(number + 1), *([cell(turn)] if cells else []), *(["⚑"] if turn.notices else [])]
        so_far = display.total(Spent.of(turns[: number + 1]))
        yield (" ".join(place), spec(turn), figures[1], figures[3], figures[4], so_far)


def _marks(turns: Sequence[Turn]) -> Iterator[str]:
    for number, turn in list(enumerate(turns, 1))[-MOST_TURNS:]:
        for text in turn.notices:
            yield f"⚑ turn {number}: {display.one_line(text)}"


def _shown_lines(report: Report) -> list[str]:
    return [f"{name.ljust(7)} {line}" for name, line in _lines(report)]


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    if report.budget.session_usd is not None:
        yield "budget", f"{tables.bar(report.share or 0.0, BAR)} {budget_words(report)}"
    if report.cache is not None:
        yield "cache", cache_words(report.cache)
    if report.next is not None:
        yield "next", next_words(report.next)


def budget_words(report: Report) -> str:
    """Return what of the budget is spent: "$0.21 of $2.00, 11 %"."""
    limit, share = report.budget.session_usd or 0.0, report.share or 0.0
    spent = report.total.spent
    figures = (
        f"{display.total(spent) if report.turns else display.usd(0)} of {display.usd(limit)}, {routing.percent(share)}"
    )
    match report.level:
        case "warn":
            return f"{figures}: near the budget"
        case "stop":
            return f"{figures}: nothing more is sent; {report.budget.remedy}"
    return f"{figures}; a warning at {routing.percent(report.budget.warn_at)}"


def cache_words(cache: Cache) -> str:
    """Return what caches spared, or cost."""
    came = f"{display.tokens(cache.read)} of {display.tokens(cache.prompt)} prompt tokens came from a cache"
    if cache.saved.at_least and not cache.saved.usd:
        return f"{came}; what that saved is unknown"
    if cache.saved.usd < 0:
        return f"{came}; writing to it cost {display.usd(-cache.saved.usd)} more than that saved so far"
    return f"{came}, which saved {display.total(cache.saved)}"


def next_words(following: Next) -> str:
    """Return what the next question is likely to cost."""
    provider = following.spec.partition("/")[0]
    price = {None: "at an unknown price", 0.0: display.free(provider)}.get(
        following.usd, f"≈ {display.usd(following.usd or 0.0)} with {display.tokens(following.output)} out"
    )
    return f"≈ {display.tokens(following.tokens)} in to {following.spec}, {price}"
