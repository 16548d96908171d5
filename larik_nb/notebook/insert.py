"""Code of an answer as cells below the one that asked: through the page where it can, else as the next cell to be.

Nothing that the user wrote is written over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from larik_nb.notebook.magics import LarikMagics

_RUNS = ("", "python", "py", "python3", "ipython", "ipython3")
_CELL_MAGICS = {
    "bash": "%%bash",
    "sh": "%%bash",
    "shell": "%%bash",
    "html": "%%html",
    "latex": "%%latex",
    "javascript": "%%javascript",
}


def code_blocks(text: str) -> list[str]:
    """Return the answer's code as cells, what is not Python under the magic that runs it; what runs nowhere is left out."""
    from larik_nb.notebook.formats import blocks

    cells = []
    for kind, code in blocks(text):
        if kind in _RUNS:
            cells.append(code)
        elif kind in _CELL_MAGICS and not code.lstrip().startswith("%%"):
            cells.append(f"{_CELL_MAGICS[kind]}\n{code}")
    return [cell for cell in cells if cell.strip()]


def below(magics: LarikMagics, cells: list[str]) -> None:
    """Put code into cells below the one that runs; where no page can, the front end is left one cell to make of it."""
    from larik_nb.notebook.status import NewCell
    from larik_nb.notebook.verbs import say

    if not cells:
        say(magics, "the answer holds no code to insert")
    elif magics.status.front.insert([NewCell(source=cell) for cell in cells]) is None:
        # One payload is all that a front end takes: more cells become one. The code stands in the answer as well.
        magics.ip.set_next_input("\n\n".join(cells), replace=False)
