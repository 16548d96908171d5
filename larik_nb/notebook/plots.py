"""Pictures for a page without widgets, drawn with matplotlib where that is installed."""

from __future__ import annotations

import base64
import io
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING

from larik_nb.notebook import display, meter

if TYPE_CHECKING:
    from larik_nb.notebook.meter import Report

_INCHES = (7.0, 1.9)
_DPI = 110


def available() -> bool:
    """Return whether pictures can be drawn; imports nothing."""
    return find_spec("matplotlib") is not None


def worth_it(report: Report) -> bool:
    """Return whether there is something to see: more than one turn, and money."""
    return len(report.turns) > 1 and report.total.spent.usd > 0


def words(report: Report) -> str:
    """Return in words what the picture shows."""
    return f"spend over {len(report.turns)} turns, up to {display.total(report.total.spent)}"


def spend(report: Report) -> str:
    """Return the spend over the conversation as steps, turns with a notice marked: a PNG in base64.

    It is drawn aside from the user's own figures, style and backend.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sums = [0.0, *accumulate(turn.cost_usd or 0.0 for turn in report.turns)]
    figure = Figure(figsize=_INCHES, dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.fill_between(range(len(sums)), sums, step="pre", alpha=0.15)
    axes.step(range(len(sums)), sums, where="pre")
    marked = [number for number, turn in enumerate(report.turns, 1) if turn.notices]
    axes.plot(marked, [sums[number] for number in marked], "kv", label="a notice")
    limit = report.budget.session_usd
    if limit is not None and limit <= 2 * sums[-1]:
        axes.axhline(limit, linestyle="--", color="0.4", label="budget")
    axes.set(xlim=(0, len(sums) - 1), ylim=(0, None), ylabel="USD")
    places = range(0, len(report.turns), -(-len(report.turns) // 12))
    axes.set_xticks([place + 0.5 for place in places], [meter.cell(report.turns[place]) for place in places])
    axes.spines[["top", "right"]].set_visible(False)
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return base64.b64encode(out.getvalue()).decode("ascii")
