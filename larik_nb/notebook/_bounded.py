"""Strangers' code on a leash: values are put into words within a time and a size, whatever their `repr` does."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

_T = TypeVar("_T")

LIMIT_S = 3.0
"""Seconds that a value may take to be put into words."""

_TRIES = 4
_DEEPEST = 8
_BITS = 13_000
"""Of a whole number that Python still writes out (it refuses beyond 4,300 digits)."""


class TooSlowError(Exception):
    """It took longer than it may."""


class ExitError(Exception):
    """Code that was only to say what a value is raised what ends a program or a cell: SystemExit, KeyboardInterrupt."""


_MRO = type.__dict__["__mro__"].__get__
_NAME = type.__dict__["__name__"].__get__
_MODULE = type.__dict__["__module__"].__get__


def is_a(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """Return whether a value is of one of `kinds`, by its real type: what `isinstance` asks may run its code, and lie."""
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    return any(base in wanted for base in _MRO(type(value)))


def lineage(value: object) -> list[tuple[str, str]]:
    """Return the package and name of a value's type and of those it is derived from, nearest first; runs none of its code."""
    return [(_module(base).partition(".")[0], _NAME(base)) for base in _MRO(type(value))]


def _module(kind: type) -> str:
    try:
        name = _MODULE(kind)
    except AttributeError:
        return ""
    return name if isinstance(name, str) else ""


def within(limit_s: float, act: Callable[[], _T]) -> _T:
    """Return what `act` returns, which runs beside and is given up after `limit_s` seconds.

    Python code is ended at its next instruction; a call into C that never returns is left behind on its thread.

    Raises:
        TooSlowError: The time was up.
        ExitError: `act` raised what is no Exception, which is no reason to end a cell or a kernel.
        Exception: What `act` raised.
    """
    result: list[_T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            result.append(act())
        except BaseException as error:  # noqa: BLE001  # a stranger's code: it is raised again, on the caller's side
            failure.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: context.run(work), name="larik-describe", daemon=True)
    thread.start()
    try:
        thread.join(limit_s)
    finally:  # also where the user did not want to wait that long
        if is_late := thread.is_alive():
            _end(thread)
    if is_late:
        raise TooSlowError
    if failure:
        raise failure[0] if isinstance(failure[0], Exception) else ExitError(type(failure[0]).__name__)
    return result[0]


def _end(thread: threading.Thread) -> None:
    """Raise in a thread what ends it; code that goes on all the same is left to itself."""
    import ctypes

    for _ in range(_TRIES):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TooSlowError))
        thread.join(0.05)
        if not thread.is_alive():
            return


def written(value: object, limit: int) -> tuple[str, bool]:
    """Return the repr of `value`, at most about `limit` characters of it, and whether that is all.

    Containers are walked only as far as there is room, by their own base type's iterator; iterators are never consumed.
    """
    pieces: list[str] = []
    room = limit
    for piece in _pieces(value, limit, (), 0):
        pieces.append(piece[: room + 1])
        room -= len(piece)
        if room < 0:
            return "".join(pieces)[:limit], False
    return "".join(pieces), True


def _pieces(value: Any, limit: int, inside: tuple[int, ...], depth: int) -> Iterator[str]:
    kind: Any = type(value)
    if is_a(value, str) and kind.__repr__ is str.__repr__:
        yield repr(str.__getitem__(value, slice(limit)))
        if str.__len__(value) > limit:
            yield "…" * limit
    elif is_a(value, bytes) and kind.__repr__ is bytes.__repr__:
        yield repr(bytes.__getitem__(value, slice(limit)))
    elif is_a(value, int) and kind.__repr__ is int.__repr__ and value.bit_length() > _BITS:
        yield f"<whole number of {value.bit_length():,} bits>"
    elif (walk := _walk(value)) is not None:
        if id(value) in inside or depth > _DEEPEST:
            yield "…"
            return
        yield from walk(value, limit, (*inside, id(value)), depth + 1)
    else:
        yield repr(value)


_Walk = Callable[[Any, int, tuple[int, ...], int], Iterator[str]]


def _walk(value: Any) -> _Walk | None:
    """Return how to walk a container that shows itself as its base type does."""
    shows = type(value).__repr__
    for kind, walk in _WALKS.items():
        if is_a(value, kind) and shows is kind.__repr__:
            return walk
    return None


def _mapping(value: Any, limit: int, inside: tuple[int, ...], depth: int) -> Iterator[str]:
    yield "{"
    for number, (key, item) in enumerate(islice(dict.items(value), limit)):
        yield ", " if number else ""
        yield from _pieces(key, limit, inside, depth)
        yield ": "
        yield from _pieces(item, limit, inside, depth)
    yield "}"


def _sequence(items: Iterable[object], limit: int, inside: tuple[int, ...], depth: int) -> Iterator[str]:
    for number, item in enumerate(islice(items, limit)):
        yield ", " if number else ""
        yield from _pieces(item, limit, inside, depth)


def _list(value: Any, limit: int, inside: tuple[int, ...], depth: int) -> Iterator[str]:
    yield "["
    yield from _sequence(list.__iter__(value), limit, inside, depth)
    yield "]"


def _tuple(value: Any, limit: int, inside: tuple[int, ...], depth: int) -> Iterator[str]:
    yield "("
    yield from _sequence(tuple.__iter__(value), limit, inside, depth)
    yield ",)" if tuple.__len__(value) == 1 else ")"


def _set(value: Any, limit: int, inside: tuple[int, ...], depth: int) -> Iterator[str]:
    if not set.__len__(value):
        yield repr(value)
        return
    yield "{"
    yield from _sequence(set.__iter__(value), limit, inside, depth)
    yield "}"


_WALKS: dict[type, _Walk] = {dict: _mapping, list: _list, tuple: _tuple, set: _set}


def size(value: Any) -> int | None:
    """Return how many items a container has, by its base type's own count; None for what is none."""
    counts: dict[type, Callable[[Any], int]] = {kind: kind.__len__ for kind in (dict, list, tuple, set, str, bytes)}
    return next((count(value) for kind, count in counts.items() if is_a(value, kind)), None)
