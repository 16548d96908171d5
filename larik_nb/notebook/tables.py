"""Rows of text in columns, for a cell and for a shell."""

from __future__ import annotations

from collections.abc import Sequence

from larik_nb.notebook import markdown


def aligned(rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    """Return rows as plain text, columns side by side.

    Args:
        rows: The head first; all of one length.
        numbers: Columns after the first hold numbers, which stand at the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    place = str.rjust if numbers else str.ljust
    lines = (
        [row[0].ljust(widths[0]), *(place(cell, width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        for row in rows
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)


def marked(rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    """Return the same as a markdown table."""
    head, *body = [[markdown.escaped(cell) for cell in row] for row in rows]
    rule = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *body])
