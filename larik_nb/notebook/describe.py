"""Values on their way into a prompt: each type in the words, or the picture, that tell a model most for least.

A table goes as its columns and a few rows, a figure as an image, an exception as its traceback, a function as its
source. Other types say it themselves, by a method `_larik_describe_`, or are told by the notebook's owner::

    @larik_nb.describe(Patient)
    def _(patient):
        return f"patient {patient.id}, {len(patient.visits)} visits"

Either returns a text, a picture (PNG or JPEG bytes, a figure), or a list of these. Libraries are known by the names of
their types: none is imported to ask. Nothing lazy is computed, no iterator consumed.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any, TypeVar

from larik_nb.notebook import _bounded, _images, _tables, redact
from larik_nb.types import Block

_F = TypeVar("_F", bound=Callable[[Any], Any])

LONGEST = 10_000
"""Characters of a value's own words; a text that the notebook holds as one is never cut."""

_HOOK = "_larik_describe_"
_MOST_PARTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A value as it is sent.

    Attributes:
        text: Its words; none for a picture.
        images: Its pictures, which go as blocks of their own.
        notes: What the user should know.
    """

    text: str
    images: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()


_own: dict[type, Callable[[Any], Any]] = {}


def describe(kind: type) -> Callable[[_F], _F]:
    """Register how values of `kind` (and of what is derived from it) go into a prompt; the nearest type counts.

    Args:
        kind: A class.

    Returns:
        A decorator for a function that takes the value and returns a text, a picture or a list of these.
    """

    def register(function: _F) -> _F:
        _own[kind] = function
        return function

    return register


def forms(value: Any) -> tuple[str, ...]:
    """Return what may stand behind the exclamation mark for this value: `{df!schema}`."""
    kind = _kind(value)
    table = _tables.forms(value) if kind == "table" else ()
    own = {"table": table, "array": ("schema",), "picture": ("image",), "code": ("source",)}.get(kind, ())
    shape = ("schema",) if _bounded.is_a(value, (dict, list, tuple)) else ()
    return tuple(dict.fromkeys([*own, *shape, "repr", "type"]))


def value(thing: Any, form: str = "") -> Described:
    """Return what is sent of `thing`.

    Args:
        thing: Any value.
        form: One of its `forms`; empty: the usual one.

    Raises:
        TooSlowError: It took too long to say.
        Exception: What its own code raised.
    """
    if _bounded.is_a(thing, str) and not form:
        return Described(text=str(thing))
    if form == "repr":
        return Described(text=_words(lambda: _repr(thing)))
    if form == "type":
        return Described(text=_type_name(thing))
    said = None if form else _own_words(thing)
    return said if said is not None else _usual(thing, form)


def brief(thing: Any, limit: int = 120) -> str:
    """Return a value in one short line, for a list of variables; a failing `repr` is named, not raised."""
    try:
        if _kind(thing) == "table":
            return redact.cut(_bounded.within(1.0, lambda: _tables.brief(thing)), limit)
        text, whole = _bounded.within(1.0, lambda: _bounded.written(thing, limit * 4))
    except Exception as error:  # noqa: BLE001  # the value's own code, in a list where one line may not spoil the rest
        return f"<{_type_name(thing)}: no repr ({type(error).__name__})>"
    line = " ".join(redact.hidden(text).split())
    return line if len(line) <= limit and whole else line[:limit] + "…"


# -- who says it --------------------------------------------------------------------------------------------------
def _own_words(thing: Any) -> Described | None:
    """Return what the user's function or the type's own method says; None where there is neither."""
    kind = type(thing)
    function = next((_own[base] for base in kind.__mro__ if base in _own), None)
    if function is None and not _bounded.is_a(thing, type):
        function = getattr(kind, _HOOK, None)
    if function is None:
        return None
    return _gathered(_bounded.within(_bounded.LIMIT_S, lambda: function(thing)))


def _gathered(said: Any) -> Described:
    parts = list(said[:_MOST_PARTS]) if isinstance(said, list | tuple) else [said]
    each = [_part(part) for part in parts]
    return Described(
        text="\n\n".join(part.text for part in each),
        images=tuple(image for part in each for image in part.images),
        notes=tuple(note for part in each for note in part.notes),
    )


def _part(part: Any) -> Described:
    if isinstance(part, Block):
        return Described(text="", images=(part,)) if part.type == "image" else Described(text=part.text or "")
    return Described(text=redact.cut(part, LONGEST)) if isinstance(part, str) else _usual(part, "")


def _kind(thing: Any) -> str:
    if _tables.is_table(thing):
        return "table"
    if _images.is_picture(thing):
        return "picture"
    if _bounded.is_a(thing, (FunctionType, MethodType, type)):
        return "code"
    if ("numpy", "ndarray") in _bounded.lineage(thing):
        return "array"
    return "other"


def _usual(thing: Any, form: str) -> Described:
    kind = _kind(thing)
    if kind == "picture":
        image, notes = _images.block(thing)
        return Described(text="", images=(image,), notes=notes)
    if kind == "table":
        return Described(text=_words(lambda: _tables.words(thing, form)))
    if kind == "array":
        return Described(text=_words(lambda: _array(thing, form)))
    if _bounded.is_a(thing, BaseException):
        return Described(text=_bounded.within(_bounded.LIMIT_S, lambda: _traceback(thing)))
    if kind == "code":
        return Described(text=_words(lambda: _source(thing)))
    if form == "schema":
        return Described(text=_words(lambda: _shape(thing, 0)))
    note = _images.cannot_see(thing)
    return Described(text=_words(lambda: _repr(thing)), notes=(note,) if note else ())


def _words(say: Callable[[], str]) -> str:
    text = _bounded.within(_bounded.LIMIT_S, say)
    return redact.cut(text, LONGEST) + ("… (cut)" if len(text) > LONGEST else "")


def _repr(thing: Any) -> str:
    if _bounded.is_a(thing, PurePath):
        return str(thing)
    if hasattr(type(thing), "dtype") and type(thing).__module__.partition(".")[0] == "numpy":
        return str(thing)
    text, whole = _bounded.written(thing, LONGEST + 4_000)
    if whole:
        return text
    size = _bounded.size(thing)
    return redact.cut(text, LONGEST - 100) + (f"… ({size:,} in all)" if size is not None else "… (cut)")


def _type_name(thing: Any) -> str:
    kind = type(thing)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _source(thing: Any) -> str:
    try:
        return inspect.getsource(thing).rstrip()
    except (OSError, TypeError):
        doc = inspect.getdoc(thing)
        return f"{thing!r}\n{doc}" if doc and isinstance(thing, FunctionType) else repr(thing)


def _traceback(error: BaseException) -> str:
    """Return the traceback without secrets; of a very long one the beginning and the end."""
    text = redact.hidden("".join(traceback.format_exception(error, limit=-40)).rstrip())
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n… ({len(text) - LONGEST:,} characters left out)\n{text[-half:]}"


_MOST_NUMBERS = 5_000_000


def _array(array: Any, form: str) -> str:
    """Return an array's shape and type, its range, and its corners; `schema` leaves the values out."""
    numpy = sys.modules["numpy"]
    head = f"array of shape {tuple(array.shape)}, {array.dtype}"
    if form == "schema":
        return head
    if array.dtype.kind in "iuf" and 0 < array.size <= _MOST_NUMBERS and array.size > 1:
        missing = int(numpy.isnan(array).sum()) if array.dtype.kind == "f" else 0
        if missing < array.size:
            head += f", from {numpy.nanmin(array):g} to {numpy.nanmax(array):g}"
        head += f", {missing:,} missing" if missing else ""
    if array.dtype.kind == "O" and array.size > 200:
        return head
    return f"{head}\n{numpy.array2string(array, threshold=200, edgeitems=3, separator=', ')}"


_DEEPEST, _MOST_KEYS = 4, 40


def _shape(thing: Any, depth: int) -> str:
    """Return what a nested value is made of, without its values."""
    if depth >= _DEEPEST:
        return type(thing).__name__
    if _bounded.is_a(thing, dict):
        keys = [f"{str(key)[:60]!r}: {_shape(item, depth + 1)}" for key, item in list(dict.items(thing))[:_MOST_KEYS]]
        more = (_bounded.size(thing) or 0) - len(keys)
        return "{" + ", ".join([*keys, *([f"… {more:,} more keys"] if more > 0 else [])]) + "}"
    if _bounded.is_a(thing, (list, tuple)):
        is_list = _bounded.is_a(thing, list)
        items = list.__iter__(thing) if is_list else tuple.__iter__(thing)
        kinds = list(dict.fromkeys(_shape(item, depth + 1) for item in islice(items, 20)))
        name = "list" if is_list else "tuple"
        return f"{name} of {_bounded.size(thing):,}" + (f": {' | '.join(kinds[:3])}" if kinds else "")
    return type(thing).__name__
