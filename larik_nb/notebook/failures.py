"""How a failure looks in a cell: one red line and a hint, the traceback kept for `%larik debug`, no key in either."""

from __future__ import annotations

import traceback

from larik_nb._error_text import HIDDEN
from larik_nb._error_text import mask as mask_words
from larik_nb.errors import LarikError, ReplayMiss
from larik_nb.notebook import redact

_RED, _DIM, _OFF = "\x1b[31m", "\x1b[2m", "\x1b[0m"
_HINT = "%larik debug shows the traceback"


class Interrupted(KeyboardInterrupt):
    """The user stopped the cell; what had arrived is in the conversation."""

    def _render_traceback_(self) -> list[str]:
        return [f"{_DIM}interrupted{_OFF}"]


def short(error: LarikError) -> LarikError:
    """Return the error, made to show as one line where a cell raises it."""
    error._render_traceback_ = lambda: lines(error)  # type: ignore[attr-defined]  # IPython looks for it on the value
    return error


def lines(error: LarikError) -> list[str]:
    """Return what a cell shows of an error."""
    first, *more = _spread(mask(error.message))
    shown = [f"{_RED}LarikError: {first}{_OFF}", *(f"  {line}" for line in more)]
    if isinstance(error, ReplayMiss) and error.diff:
        shown += mask(error.diff).splitlines()
    return [*shown, f"{_DIM}{_HINT}{_OFF}"]


def _spread(message: str) -> list[str]:
    """Return the message in one line, or the ways to a first model in one line each."""
    from larik_nb.providers._resolve import THREE_WAYS

    if message != THREE_WAYS:
        return [message]
    first, _, ways = message.partition(": ")
    return [f"{first}:", *ways.split("; ")]


def whole(error: BaseException) -> str:
    """Return the full traceback, keys masked."""
    return mask("".join(traceback.format_exception(error)))


def mask(text: str) -> str:
    """Return `text` without what the environment holds as secrets, and without what looks like one on the wire."""
    for secret in redact.known():
        text = text.replace(secret, HIDDEN)
    return mask_words(text)
