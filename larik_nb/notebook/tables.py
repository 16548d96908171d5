"""Rows of text in columns, for a cell and for a shell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from larik_nb.notebook import display, markdown

if TYPE_CHECKING:
    from larik_nb.notebook.display import Bundle

_LONGEST_CELL = 160
"""Characters of a cell that are shown: every row is as wide as the widest."""


def aligned(rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    """Return rows as plain text, columns side by side.

    Args:
        rows: The head first; all of one length.
        numbers: Columns after the first hold numbers, which stand at the right.
    """
    rows = _shown(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    place = str.rjust if numbers else str.ljust
    lines = (
        [row[0].ljust(widths[0]), *(place(cell, width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        for row in rows
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)


def marked(rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    """Return the same as a markdown table."""
    head, *body = [[markdown.escaped(cell) for cell in row] for row in _shown(rows)]
    rule = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *body])


def _shown(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the cells as one line each: settings and providers name things, and may name them anything."""
    return [[display.one_line(cell, _LONGEST_CELL) for cell in row] for row in rows]


def bar(share: float, width: int) -> str:
    """Return a bar of text that is full to `share`, at least a little where there is anything."""
    share = min(max(share, 0.0), 1.0)
    full = min(width, max(round(share * width), 1 if share > 0 else 0))
    return "█" * full + "░" * (width - full)


def with_text(rows: Sequence[Sequence[str]], text: str) -> Bundle:
    """Return a table, which may have no rows, over lines of text: plain and as markdown."""
    lines = "  \n".join(markdown.escaped(line) for line in text.splitlines())
    if not rows:
        return {"text/plain": text, "text/markdown": lines}
    plain, rich = aligned(rows, numbers=False), marked(rows, numbers=False)
    return {"text/plain": f"{plain}\n\n{text}".rstrip(), "text/markdown": f"{rich}\n\n{lines}".rstrip()}
