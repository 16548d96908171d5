"""Fields of a server's JSON, checked where they are taken: what has the wrong shape is a BadWire, never a TypeError.

A field that is absent or null reads as empty, for servers write both.
"""

from __future__ import annotations

from typing import Any

from larik_nb import errors
from larik_nb.errors import BadWire

_SHOWN = 80

SHAPE_ERRORS = (TypeError, AttributeError, KeyError, ValueError, IndexError, RecursionError)
"""What reading a frame raises when a value in it is of another type than the wire says."""


class Frames:
    """The objects of a stream of server-sent events."""

    __slots__ = ("_unread",)

    def __init__(self) -> None:
        self._unread: str | None = None

    def read(self, name: str, data: Any) -> dict[str, Any] | None:
        """Return the object of one event; None for the frames that mean nothing.

        Text that is no JSON may be the last frame of a body that was cut; it is an error once another one follows.

        Args:
            name: The event's name, "" without one.
            data: Its parsed data, the text where it was no JSON, None without any.

        Raises:
            BadWire: Something else came: skipping it could lose a piece of the answer.
        """
        if self._unread is not None:
            raise _bad("an object", self._unread)
        if isinstance(data, dict):
            return data
        if data is None or name == "ping":
            return None
        if not isinstance(data, str):
            raise _bad("an object", data)
        if data.strip() not in ("", "[DONE]"):
            self._unread = data
        return None


def record(value: Any) -> dict[str, Any]:
    """Return an object."""
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    raise _bad("an object", value)


def records(value: Any) -> list[dict[str, Any]]:
    """Return a list of objects."""
    if value is None:
        return []
    if isinstance(value, list):
        return [record(item) for item in value]
    raise _bad("a list", value)


def string(value: Any) -> str:
    """Return a string."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise _bad("a string", value)


def count(value: Any) -> int | None:
    """Return a number of tokens; None where the server gives none."""
    if value is None:
        return None
    if isinstance(value, int | float) and 0 <= value < float("inf"):
        return int(value)
    raise _bad("a count", value)


def number(value: Any) -> int:
    """Return a number of tokens that was asked for."""
    if (told := count(value)) is None:
        raise _bad("a count", value)
    return told


def bad_shape(error: Exception) -> BadWire:
    """Return the exception for a frame that is JSON of another shape than the wire has."""
    return BadWire(f"the answer is not in the wire's form ({type(error).__name__}: {error})")


def unreadable(text: str) -> BadWire:
    """Return the exception for a frame that is not JSON."""
    return BadWire(f"the answer holds a frame that is not JSON: {errors.shown(text, _SHOWN)!r}")


def _bad(wanted: str, value: Any) -> BadWire:
    shown = errors.shown(repr(value), _SHOWN)
    return BadWire(f"the server sent {shown} where {wanted} belongs; is this the right base_url?")
