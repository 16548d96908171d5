"""Fields of a server's JSON, checked where they are taken: what has the wrong shape is a BadWire, never a TypeError.

A field that is absent or null reads as empty, for servers write both.
"""

from __future__ import annotations

from typing import Any

from larik_nb.errors import BadWire

_SHOWN = 80

SHAPE_ERRORS = (TypeError, AttributeError, KeyError, ValueError, IndexError, RecursionError)
"""What reading a frame raises when a value in it is of another type than the wire says."""


def frame(name: str, data: Any) -> dict[str, Any] | None:
    """Return the object of one server-sent event; None for the frames that mean nothing.

    Args:
        name: The event's name, "" without one.
        data: Its parsed data, the text where it was no JSON, None without any.

    Raises:
        BadWire: Something else came: skipping it could lose a piece of the answer.
    """
    if isinstance(data, dict):
        return data
    if data is None or name == "ping" or (isinstance(data, str) and data.strip() in ("", "[DONE]")):
        return None
    raise _bad("an object", data)


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


def bad_shape(error: Exception) -> BadWire:
    """Return the exception for a frame that is JSON of another shape than the wire has."""
    return BadWire(f"the answer is not in the wire's form ({type(error).__name__}: {error})")


def unreadable(text: str) -> BadWire:
    """Return the exception for a frame that is not JSON."""
    return BadWire(f"the answer holds a frame that is not JSON: {text[:80]!r}")


def _bad(wanted: str, value: Any) -> BadWire:
    shown = repr(value)
    if len(shown) > _SHOWN:
        shown = shown[:_SHOWN] + "…"
    return BadWire(f"the server sent {shown} where {wanted} belongs; is this the right base_url?")
