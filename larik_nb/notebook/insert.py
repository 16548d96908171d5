"""Code of an answer as cells below the one that asked: through the page where it can, else as the next cell to be.

Nothing that the user wrote is written over.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

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
_SHOWN_ONLY = ("output", "text", "console", "diff", "json", "csv")


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
    """Put code into cells below, and say what became of it."""
    from larik_nb.notebook.verbs import say

    if not cells:
        say(magics, "the answer holds no code to insert")
        return
    front: Any = getattr(magics.status, "front", None)
    if front is not None and "insert" in front.abilities:
        made = [{"kind": "code", "source": cell} for cell in cells]
        if front.insert(made, cell_id=cell_id(magics)):
            return
    # One payload is all that a front end takes: more cells become one.
    magics.ip.set_next_input(re.sub(r"\n{3,}", "\n\n", "\n\n".join(cells)), replace=False)


def cell_id(magics: LarikMagics) -> str | None:
    """Return the id of the cell that runs, where the front end tells it."""
    if getattr(magics.ip, "kernel", None) is None:
        return None
    found = magics.ip.get_parent().get("metadata", {}).get("cellId")
    return found if isinstance(found, str) else None
