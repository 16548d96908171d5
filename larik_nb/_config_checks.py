"""How a setting is checked, and what the same says as JSON Schema: one table for both.

Done by hand rather than by a validation library: that costs 200 ms of every start with a settings file, where these
tables cost one, and its messages show the values, which may be keys.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Any, NamedTuple

from larik_nb.errors import ConfigError

HOURS_A_DAY = 24
_HEADER_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class Place(NamedTuple):
    """Where a value stands, to be named when it cannot be used. Values themselves are never shown: they may be keys."""

    source: str
    key: str
    notices: list[str]

    def at(self, name: object) -> Place:
        """Return the place of one of its parts."""
        return Place(self.source, f"{self.key}.{name}" if self.key else str(name), self.notices)

    def wrong(self, wanted: str, value: Any, remedy: str = "") -> ConfigError:
        """Return the error for a value of another kind than `wanted`."""
        return ConfigError(f"must be {wanted}, not {kind(value)}", key=self.key, source=self.source, remedy=remedy)

    def error(self, message: str, remedy: str = "") -> ConfigError:
        """Return the error for this value."""
        return ConfigError(message, key=self.key, source=self.source, remedy=remedy)


def kind(value: Any) -> str:
    """Return what a JSON value is, in words, without showing it."""
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "true or false"),
        (str, "text" if str(value).strip() else "empty text"),
        ((int, float), "a number"),
        (Mapping, "an object"),
        ((list, tuple), "a list"),
        (type(None), "null"),
    )
    return next((word for type_, word in kinds if isinstance(value, type_)), type(value).__name__)


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return what `word` was probably meant to be."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word.lower(), list(words), n=1, cutoff=0.75)), None)


class Check(NamedTuple):
    """What a value must be.

    Attributes:
        read: Returns the value as it is used, or raises ConfigError.
        schema: The same as JSON Schema, as far as that can say it.
    """

    read: Callable[[Any, Place], Any]
    schema: Mapping[str, Any]

    def __call__(self, value: Any, place: Place) -> Any:
        """Return the value as it is used.

        Raises:
            ConfigError: It cannot be.
        """
        return self.read(value, place)


# -- plain values -----------------------------------------------------------------------------------------------------
def _text(value: Any, place: Place) -> str:
    if not isinstance(value, str) or not value.strip():
        raise place.wrong("text", value)
    return value.strip()


def _header(value: Any, place: Place) -> str:
    text = _text(value, place)
    if not text.isascii() or not text.isprintable():
        raise place.error("holds characters that no HTTP header can carry")
    return text


def _headers(value: Any, place: Place) -> Mapping[str, str]:
    for name in _object(value, place):
        if not re.fullmatch(_HEADER_NAME, str(name)):
            raise place.error("holds a name that no HTTP header can have")
    return MappingProxyType({str(name): _header(item, place.at(name)) for name, item in value.items()})


def _flag(value: Any, place: Place) -> bool:
    if not isinstance(value, bool):
        raise place.wrong("true or false", value)
    return value


def _number(value: Any, place: Place) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.wrong("a number", value)
    if abs(value) > sys.maxsize or math.isnan(value):
        raise place.error("must be a finite number")
    return value


def _whole(value: Any, place: Place) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise place.wrong("a whole number", value)
    return value


def _count(value: Any, place: Place) -> int:
    if _whole(value, place) <= 0:
        raise place.error("must be more than 0")
    return int(value)


def _positive_or_0(value: Any, place: Place) -> float:
    if _number(value, place) < 0:
        raise place.error("must not be less than 0")
    return float(value)


def _whole_or_0(value: Any, place: Place) -> int:
    if _whole(value, place) < 0:
        raise place.error("must not be less than 0")
    return int(value)


def _share(value: Any, place: Place) -> float:
    if not 0 < _number(value, place) <= 1:
        raise place.error("must be a share above 0 and up to 1, such as 0.8")
    return float(value)


def _day(value: Any, place: Place) -> str:
    try:
        date.fromisoformat(_text(value, place))
    except ValueError:
        raise place.error('must be a day such as "2027-01-01"') from None
    return str(value).strip()


def _hours(value: Any, place: Place) -> tuple[tuple[int, int], ...]:
    return tuple(_span(pair, place) for pair in _list(value, place))


def _span(value: Any, place: Place) -> tuple[int, int]:
    match [_whole(hour, place) for hour in _list(value, place)]:
        case [start, end] if 0 <= start < end <= HOURS_A_DAY:
            return start, end
    raise place.error("must hold pairs of hours such as [1, 4]")


def _duration(value: Any, place: Place) -> float:
    """Return seconds from a number of them or from "5m", "1h30m", "90s"."""
    if not isinstance(value, str):
        return _positive_or_0(value, place)
    parts = _DURATION.findall(value.strip())
    if "".join(number + unit for number, unit in parts) != value.strip() or not parts:
        raise place.error('must be a time such as "5m", "1h30m" or a number of seconds')
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _list(value: Any, place: Place) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise place.wrong("a list", value)
    return list(value)


def _object(value: Any, place: Place) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise place.wrong("an object", value)
    return value


_PRINTABLE = r"^[ -~]*[!-~][ -~]*$"
TEXT = Check(_text, {"type": "string", "pattern": r"\S"})
HEADERS = Check(
    _headers,
    {
        "type": "object",
        "propertyNames": {"pattern": f"^{_HEADER_NAME}$"},
        "additionalProperties": {"type": "string", "pattern": _PRINTABLE},
    },
)
FLAG = Check(_flag, {"type": "boolean"})
NUMBER = Check(_number, {"type": "number"})
WHOLE = Check(_whole, {"type": "integer"})
COUNT = Check(_count, {"type": "integer", "minimum": 1})
WHOLE_OR_0 = Check(_whole_or_0, {"type": "integer", "minimum": 0})
POSITIVE_OR_0 = Check(_positive_or_0, {"type": "number", "minimum": 0})
SHARE = Check(_share, {"type": "number", "exclusiveMinimum": 0, "maximum": 1})
DAY = Check(_day, {"type": "string", "format": "date", "pattern": r"^\d{4}-\d{2}-\d{2}$"})
HOURS = Check(
    _hours,
    {
        "type": "array",
        "items": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": HOURS_A_DAY},
            "minItems": 2,
            "maxItems": 2,
        },
    },
)
DURATION = Check(
    _duration,
    {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^(\d+(\.\d+)?(ms|h|m|s))+$"}]},
)
OBJECT = Check(_object, {"type": "object"})


# -- made of others ---------------------------------------------------------------------------------------------------
def one_of(*words: str) -> Check:
    """Return the check for one of a few words."""

    def read(value: Any, place: Place) -> str:
        word = _text(value, place)
        if word not in words:
            close = nearest(word, words)
            raise place.error(f"must be one of {', '.join(words)}", f"Did you mean {close}?" if close else "")
        return word

    return Check(read, {"enum": list(words)})


def list_of(check: Check) -> Check:
    """Return the check for a list; what it holds is checked at its index."""

    def read(value: Any, place: Place) -> tuple[Any, ...]:
        return tuple(check(item, place.at(index)) for index, item in enumerate(_list(value, place)))

    return Check(read, {"type": "array", "items": check.schema})


def each(check: Check) -> Check:
    """Return the check for an object whose names are the user's own."""

    def read(value: Any, place: Place) -> Mapping[str, Any]:
        items = _object(value, place).items()
        return MappingProxyType({str(name): check(item, place.at(name)) for name, item in items})

    return Check(read, {"type": "object", "additionalProperties": check.schema})


class Key(NamedTuple):
    """A key that is known: what its value must be, and what it is for."""

    check: Check
    does: str


class Fields:
    """The keys of one object. Others are kept as they are; one that looks like a slip of the pen is noted."""

    def __init__(self, required: Sequence[str] = (), /, **keys: Key) -> None:
        self.keys = keys
        self._required = list(required)

    def read(self, value: Any, place: Place) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Return the known keys checked, null ones left out, and the unknown ones as they are.

        Raises:
            ConfigError: A value cannot be used.
        """
        rows = _object(value, place)
        known = {
            name: key.check(rows[name], place.at(name)) for name, key in self.keys.items() if rows.get(name) is not None
        }
        extra = {str(name): item for name, item in rows.items() if name not in self.keys}
        for name in extra:
            if close := nearest(name, self.keys):
                place.notices.append(
                    f'{place.at(name).key} in {place.source} is not a setting; did you mean "{close}"?'
                )
        return known, MappingProxyType(extra)

    @property
    def schema(self) -> Mapping[str, Any]:
        """The keys as JSON Schema."""
        properties = {name: {**key.check.schema, "description": key.does} for name, key in self.keys.items()}
        required = {"required": self._required} if self._required else {}
        return {"type": "object", "properties": properties, **required}
