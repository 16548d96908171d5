"""`%%larik` as an async cell: the code that IPython makes of it, turned into an `await`.

While a cell awaits, the kernel hears what the page sends: a Stop button works, a question can be answered with a
click. While a cell blocks, it hears nothing. So a cell that is wholly ours awaits where a front end watches, and
everything else stays the magic that blocks.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from larik_nb.notebook.place import may_await

if TYPE_CHECKING:
    from larik_nb.notebook.magics import LarikMagics

_KINDS = {"run_cell_magic": "cell", "run_line_magic": "line"}


def number(shell: Any) -> int:
    """Return the number of the cell that runs, as its prompt shows it.

    Versions of IPython count on at a cell's beginning or at its end; its input is there in all of them.
    """
    return len(shell.history_manager.input_hist_raw) - 1


def awaited(magics: LarikMagics, lines: list[str]) -> list[str]:
    """Return the code of a cell, with an `await` where it is one `%larik` that may be awaited."""
    source, shell = "".join(lines), magics.ip
    call = _call(source)
    if call is None or magics.is_awaiting or not may_await(shell, source):
        return lines
    kind, arguments = call
    found = shell.magics_manager.magics[kind].get("larik")
    if found != magics.larik:
        return lines
    code = f"await get_ipython().find_{kind}_magic('larik').__self__.awaited({', '.join(map(repr, arguments))})\n"
    magics.blocking_form = (code, source)
    return [code]


def _call(source: str) -> tuple[str, list[str]] | None:
    """Return the kind of magic and its arguments, where the code is one call of `larik` and nothing else."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return None
    match body:
        case [ast.Expr(value=ast.Call(func=ast.Attribute(attr=name), args=[ast.Constant(value="larik"), *rest]))]:
            texts = [a.value for a in rest if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            return (_KINDS[name], texts) if name in _KINDS else None
    return None


def keep_history(shell: Any, blocking_form: tuple[str, str] | None) -> None:
    """Let `In` and the history have the form that blocks: a macro or `%rerun` made of it is run by other code."""
    if blocking_form is None:
        return
    code, source = (text.rstrip("\n") for text in blocking_form)
    history = shell.history_manager
    if history.input_hist_parsed[-1] == code:
        history.input_hist_parsed[-1] = source
    with history.db_input_cache_lock:
        cache = history.db_input_cache
        if cache and cache[-1][1] == code:
            cache[-1] = (cache[-1][0], source, cache[-1][2])
