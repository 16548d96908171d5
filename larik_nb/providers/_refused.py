"""Fields that a server turned down though its dialect has them: left out from then on, as long as the process lives.

Hosts of one dialect differ in the optional fields they take, models of one host too, and neither is written down
anywhere. So a field is sent, and when the server says that it does not know it, it is not sent to that model again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from larik_nb import errors

OptionalFields = Mapping[str, tuple[str, ...]]
"""What of a wire format's body may be left out: its place ("options.seed") → the names under which servers refuse it."""

_COMPLAINT = re.compile(
    r"unsupported|not (?:yet |currently )?(?:be )?(?:supported|permitted|allowed|available|accepted)"
    r"|(?:do|does|did)(?: not|n't) (?:support|accept|take|allow|have)|unrecogni[sz]ed|unknown|unexpected"
    r"|extra (?:input|field)|forbidden|deprecated|cannot be (?:used|set)|no longer"
)
_ELSEWHERE = re.compile(r"\b(?:tools|messages|contents|input|functions?)(?:\[|\.\d|\.\[)")
"""A complaint about something inside the conversation, where a tool may well have a parameter of the same name."""

_left_out: dict[tuple[str, str], frozenset[str]] = {}


def left_out(provider: str, model: str) -> frozenset[str]:
    """Return the places that requests to the model do without."""
    return _left_out.get((provider, model), frozenset())


def learn(error: errors.APIError, body: Mapping[str, Any], optional: OptionalFields, provider: str, model: str) -> str:
    """Return the place that `error` turns down, which is left out from now on; "" where it names none that was sent."""
    if not isinstance(error, errors.BadRequest) or isinstance(error, errors.ContextOverflow):
        return ""
    said = error.said.lower()
    if not _COMPLAINT.search(said) or _ELSEWHERE.search(said):
        return ""
    named = [place for place in optional if _holds(body, place) and _is_named(said, optional[place])]
    if not named:
        return ""
    _left_out[provider, model] = left_out(provider, model) | {named[0]}
    return named[0]


def forget() -> None:
    """Send everything again."""
    _left_out.clear()


def without(body: dict[str, Any], places: frozenset[str]) -> dict[str, Any]:
    """Return the body less what is at `places`, and less the objects that this empties."""
    for place in places:
        body = _less(body, place.split("."))
    return body


def _less(body: dict[str, Any], path: list[str]) -> dict[str, Any]:
    first, *rest = path
    if first not in body:
        return body
    others = {key: value for key, value in body.items() if key != first}
    inner = _less(body[first], rest) if rest else {}
    return {**body, first: inner} if inner else others


def _holds(body: Any, place: str) -> bool:
    first, _, rest = place.partition(".")
    return isinstance(body, Mapping) and first in body and (not rest or _holds(body[first], rest))


def _is_named(said: str, names: tuple[str, ...]) -> bool:
    return re.search(rf"(?<![a-z0-9_])(?:{'|'.join(names)})(?![a-z0-9_])", said) is not None
