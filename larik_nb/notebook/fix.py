"""`%larik fix` and `%larik explain`: a cell that failed, told to the model with what matters, and its answer as a diff.

What is kept of a failure is text; the exception itself only while the interpreter keeps it as its last, so that no
frame lives on because of us. A cell is changed only on an explicit yes, through the page that shows it, and only while
it reads as it did when it was sent.
"""

from __future__ import annotations

import difflib
import linecache
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from larik_nb.errors import AnswerError, ConfigError, LarikError
from larik_nb.notebook import asking, describe, formats, insert, redact
from larik_nb.notebook.asking import NO, YES, Question
from larik_nb.notebook.interrupts import at_once
from larik_nb.notebook.options import Asked

if TYPE_CHECKING:
    from larik_nb.notebook.magics import LarikMagics
    from larik_nb.notebook.status import Edit, Outcome
    from larik_nb.notebook.steps import Steps

_MOST_KEPT = 32
_LONGEST_SOURCE = 50_000
_LONGEST_TITLE = 2_000
_OWN_FRAMES, _OTHER_FRAMES = 6, 2
_AROUND = 3
_MOST_NAMES = 12
_LAST = ""
"""Where the last failure is kept, of whichever cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A cell that failed.

    Attributes:
        source: Its text as it ran.
        cell_id: Its id; None where the front end does not tell it.
        title: The exception's last line.
        frames: Where it happened, without values.
        key: The exception's identity, by which it is known again while it is the interpreter's last.
    """

    source: str
    cell_id: str | None
    title: str
    frames: str
    key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The cell that is asked about: its text as the user sees it now, and its failure, where it failed."""

    source: str
    cell_id: str | None
    failed: Failed | None


# -- what failed --------------------------------------------------------------------------------------------------
def note(magics: LarikMagics, result: Any) -> None:
    """Keep a failed cell; those of our own magics are no code to fix, and one that was stopped has not failed."""
    error = result.error_in_exec or result.error_before_exec
    if isinstance(error, LarikError) or not isinstance(error, Exception):
        return
    source = str(result.info.raw_cell or "")[:_LONGEST_SOURCE]
    cell_id = getattr(result.info, "cell_id", None)
    told = Failed(
        source=source, cell_id=cell_id, title=_title(error), frames=_frames(error, values=False), key=id(error)
    )
    for key in dict.fromkeys((cell_id or _LAST, _LAST)):
        _keep(magics, key, told)


def _keep(magics: LarikMagics, key: str, failed: Failed) -> None:
    magics.failed[key] = failed
    magics.failed.move_to_end(key)
    while len(magics.failed) > _MOST_KEPT:
        magics.failed.popitem(last=False)


def _title(error: BaseException) -> str:
    """Return the exception in its own words, whatever its `str` does."""
    try:
        said = "".join(traceback.format_exception_only(error)).strip()
    except Exception as broken:  # noqa: BLE001  # the exception's own code: its type is left to tell
        said = f"{type(error).__name__} (cannot be printed: {type(broken).__name__})"
    return redact.cut(said, _LONGEST_TITLE)


# -- where it failed ----------------------------------------------------------------------------------------------
_OTHERS = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _is_own(filename: str) -> bool:
    """Return whether a frame is the user's: a cell, or a file that no package manager put there."""
    return not filename.startswith(_OTHERS) and "site-packages" not in filename and not filename.startswith("<frozen")


def _frames(error: BaseException, *, values: bool) -> str:
    """Return the frames that matter, the user's own first and the innermost of them first."""
    steps = list(traceback.walk_tb(_behind_shell(error.__traceback__)))[::-1]
    own = [step for step in steps if _is_own(step[0].f_code.co_filename)][:_OWN_FRAMES]
    others = [step for step in steps if not _is_own(step[0].f_code.co_filename)][:_OTHER_FRAMES]
    told = [_frame(frame, line, values=values) for frame, line in own]
    told += [_frame(frame, line, values=False, around=0) for frame, line in others]
    return "\n\n".join(told)


def _behind_shell(tb: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the cell on: what runs cells is nobody's fault."""
    at = tb
    while at is not None and "IPython" in Path(at.tb_frame.f_code.co_filename).parts:
        at = at.tb_next
    return at or tb


def _frame(frame: Any, line: int, *, values: bool, around: int = _AROUND) -> str:
    code = frame.f_code
    lines = linecache.getlines(code.co_filename)
    first = max(1, line - around)
    shown = [(number, lines[number - 1].rstrip()) for number in range(first, min(len(lines), line + around) + 1)]
    text = "\n".join(f"{'→' if number == line else ' '} {number:>4}  {source}" for number, source in shown)
    where = _where(code)
    parts = [f"{where}, line {line}", redact.cut(text, 4_000)]
    if values:
        parts += _values(frame, " ".join(source for _, source in shown))
    return "\n".join(filter(None, parts))


def _where(code: Any) -> str:
    name = code.co_qualname if hasattr(code, "co_qualname") else code.co_name
    place = Path(code.co_filename)
    is_cell = "ipykernel" in code.co_filename or code.co_filename.startswith("<")
    return (
        f"in {name}, {'a cell' if is_cell else place.name}"
        if name != "<module>"
        else ("in the cell" if is_cell else place.name)
    )


def _values(frame: Any, source: str) -> Iterator[str]:
    """Yield the variables that the lines shown speak of, each in a few words."""
    there = dict(frame.f_locals)
    names = [name for name in dict.fromkeys(re.findall(r"[^\W\d]\w*", source)) if name in there]
    told = [name for name in names if not isinstance(there[name], ModuleType | FunctionType | type)][:_MOST_NAMES]
    for name in told:
        value = there[name]
        secret = redact.is_telling(name) and isinstance(value, str | bytes)
        yield f"    {name} = {'[redacted: secret]' if secret else describe.brief(value)}"


# -- the commands -------------------------------------------------------------------------------------------------


def fix(magics: LarikMagics, line: str) -> Steps[None]:
    """Ask for the cell set right, show the change, and make it where the user says yes.

    Raises:
        ConfigError: No cell has failed, or the named one is not known.
        LarikError: As a question raises it.
    """
    cell = _cell(magics, line)
    if cell.failed is None:
        raise ConfigError("that cell has not failed", remedy="Run it first, or ask: %larik explain")
    with at_once():
        question = _fix_question(cell)
    message = yield from _asked(magics, question, line)
    if message is None:
        return
    try:
        source = formats.parsed("code", message, {})
    except AnswerError as error:
        raise AnswerError("the answer holds no code; it stands above, and error.raw has it", raw=error.raw) from None
    change = diff(cell.source, source)
    if not change:
        _say(magics, "the answer changes nothing in the cell")
        return
    shown = redact.hidden(change)
    _say(magics, shown, _fenced(shown, "diff"))
    if "--insert" in line.split():
        insert.below(magics, [source])
        return
    yield from _apply(magics, cell, source)


def explain(magics: LarikMagics, line: str) -> Steps[None]:
    """Ask what a cell does, or why it failed.

    Raises:
        ConfigError: There is no cell to explain.
        LarikError: As a question raises it.
    """
    cell = _cell(magics, line)
    with at_once():
        question = _explain_question(cell)
    yield from _asked(magics, question, line)


def _asked(magics: LarikMagics, text: str, line: str) -> Steps[Any]:
    from larik_nb.notebook import turn
    from larik_nb.notebook.place import Place

    place = Place.of(magics.ip, awaited=magics.is_awaiting)
    model = re.search(r"(?:^|\s)(?:-m|--model)[ =](\S+)", line)
    return (yield from turn.run(magics, Asked(raw=True, model=model[1] if model else None), text, place))


def _cell(magics: LarikMagics, line: str) -> Cell:
    named = re.search(r"--cell[ =](\S+)", line)
    cell_id = named[1] if named else None
    failed = magics.failed.get(cell_id or _LAST)
    seen = magics.status.front.source_of(cell_id) if cell_id else None
    if seen is not None:
        return Cell(source=seen, cell_id=cell_id, failed=failed)
    if failed is None:
        what = f"no cell {cell_id} is known" if cell_id else "no cell has failed"
        raise ConfigError(what, remedy="Run the cell first")
    return Cell(source=failed.source, cell_id=failed.cell_id, failed=failed)


# -- what is asked ------------------------------------------------------------------------------------------------
def _fix_question(cell: Cell) -> str:
    ask = (
        "A cell of a Jupyter notebook failed. Say in one or two sentences why, then give the whole cell set right in one "
        "fenced python block. Change only what the failure needs; keep the user's style and comments."
    )
    return "\n\n".join([ask, *_told(cell)])


def _explain_question(cell: Cell) -> str:
    why = "why this cell of a Jupyter notebook failed" if cell.failed else "what this cell of a Jupyter notebook does"
    return "\n\n".join([f"Explain {why}, briefly, for somebody who knows Python.", *_told(cell)])


def _told(cell: Cell) -> Iterator[str]:
    yield f"The cell:\n{_fenced(redact.hidden(cell.source))}"
    if cell.failed is not None:
        yield f"It failed with:\n{_fenced(cell.failed.title)}"
        last = getattr(sys, "last_value", None)
        is_there = last is not None and id(last) == cell.failed.key and _title(last) == cell.failed.title
        frames = _frames(last, values=True) if last is not None and is_there else cell.failed.frames
        if frames:
            yield f"Where it happened, the user's own code first, with the variables of these lines:\n{_fenced(frames)}"


def _fenced(text: str, kind: str = "") -> str:
    ticks = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1
    return f"{'`' * ticks}{kind}\n{text.rstrip()}\n{'`' * ticks}"


# -- what is made of the answer -----------------------------------------------------------------------------------
def diff(before: str, after: str) -> str:
    """Return what changes, as a unified diff without its head; empty where nothing does."""
    lines = difflib.unified_diff(before.rstrip("\n").split("\n"), after.rstrip("\n").split("\n"), lineterm="", n=3)
    return "\n".join(list(lines)[2:])


def _apply(magics: LarikMagics, cell: Cell, source: str) -> Steps[None]:
    """Ask whether to change the cell, and do so through the page; where none can, the new cell goes below."""
    if redact.hidden(cell.source) != cell.source:
        _say(magics, "the cell holds a secret, which was not sent: change it by hand, as the lines above show")
        return
    question = Question("Apply?", choices=(YES, NO), default=NO.value)
    if (yield asking.Ask(magics.ip, question)) != YES.value:
        _say(magics, "not applied")
        return
    edit = None
    if cell.cell_id is not None:
        edit = magics.status.front.replace(cell.cell_id, source, based_on=cell.source)
    if edit is None:
        insert.below(magics, [source])
        return
    outcome = yield Settled(edit)
    if outcome is None:
        _say(magics, "the page was asked to change the cell")
    elif outcome.ok:
        _say(magics, "applied")
    else:
        why = outcome.reason or "the page refused"
        raise ConfigError(
            f"the cell was not changed: {why}", remedy="The change is shown above; make it by hand, or ask again"
        )


class Settled:
    """An edit on its way, as something that a cell's work waits for."""

    def __init__(self, edit: Edit) -> None:
        self._edit = edit

    def block(self) -> Outcome | None:
        """Do not wait: while a cell blocks, no answer of the page is heard."""
        return None

    async def rest(self) -> Outcome | None:
        """Wait for the page."""
        return await self._edit


def _say(magics: LarikMagics, plain: str, rich: str | None = None) -> None:
    from larik_nb.notebook.verbs import say

    say(magics, plain, rich)
