"""Bytes through an adapter's decoder without a socket, and what must hold of any answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from larik_nb import errors
from larik_nb.frames import reader
from larik_nb.providers._replay import prepare
from larik_nb.providers._wire import Adapter, Wire, _rest
from larik_nb.types import Message, Request, StreamEvent, ToolSpec, user

CASES = Path(__file__).parents[1] / "wire"
READ = ToolSpec(name="read", description="Read a file.", parameters={"type": "object", "properties": {"path": {}}})
ASKED = Request(model="m", messages=(user("hi"),))
OFFERED = Request(model="m", messages=(user("hi"),), tools=(READ,))


def encoded(adapter: Adapter, request: Request) -> Wire:
    """Return the HTTP request as the provider sends it."""
    return adapter.encode(prepare(request, adapter.target(request.model)))


def decode(
    adapter: Adapter, body: bytes, *, cuts: Iterable[int] = (), request: Request = ASKED
) -> tuple[list[StreamEvent], Message]:
    """Return the events and the message of a body, read in pieces that end at `cuts`."""
    decoder, frames = adapter.decoder(request), reader(adapter.framing)
    events: list[StreamEvent] = []
    for piece in pieces(body, cuts):
        for name, data in frames.feed(piece):
            events += decoder.event(name, data)
    events += _rest(decoder, frames)
    return events, decoder.finish()


def outcome(adapter: Adapter, body: bytes, cuts: Iterable[int], request: Request) -> tuple[Any, ...]:
    """Return what reading a body comes to, errors included: the same for every way to cut it."""
    try:
        events, message = decode(adapter, body, cuts=cuts, request=request)
    except errors.APIError as exc:
        return type(exc), str(exc)
    assert joined(events, "text_delta") == message.text
    assert joined(events, "thinking_delta") == message.thinking
    return message, [(event.type, event.id, event.name) for event in events if event.type == "tool_use_start"]


def pieces(body: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Return the body cut at the given places."""
    marks = [0, *sorted({cut for cut in cuts if 0 < cut < len(body)}), len(body)]
    return [body[start:end] for start, end in pairwise(marks)]


def joined(events: Iterable[StreamEvent], kind: str) -> str:
    """Return the joined text of a kind of event."""
    return "".join(event.text for event in events if event.type == kind)


def sse(*events: Any, end: str = "data: [DONE]\n\n") -> bytes:
    """Return events as a stream; text stands for itself."""
    lines = [event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n" for event in events]
    return ("".join(lines) + end).encode()


def lines(*events: Any) -> bytes:
    """Return values as newline-delimited JSON."""
    return "".join(f"{json.dumps(event)}\n" for event in events).encode()


def own(folder: str) -> list[bytes]:
    """Return the bodies of our own recorded answers of one wire format."""
    files = sorted((CASES / folder).glob("*.json"))
    found = [json.loads(path.read_bytes())["response"] for path in files]
    return [response["body"].encode() for response in found if response["status"] == 200]


def mutated(events: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    """Return recorded events with one value in them, at any depth, replaced by another or removed."""
    places = [(index, *path) for index, event in enumerate(events) for path in _paths(event)]
    return st.builds(lambda place, value: _with(events, place, value), st.sampled_from(places), _VALUES)


_GONE = object()
_VALUES = st.sampled_from(
    [_GONE, None, True, 0, -1, 1.5, 1e400, "", "x", "\ud83d", [], [1], ["x"], [None], {}, {"x": 1}, [{}]]
)


def _paths(value: Any) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [()] + [(key, *path) for key, item in items for path in _paths(item)]


def _with(value: Any, path: Sequence[Any], new: Any) -> Any:
    if not path:
        return new
    out = dict(value) if isinstance(value, dict) else list(value)
    changed = _with(out[path[0]], path[1:], new)
    if changed is _GONE:
        del out[path[0]]
    else:
        out[path[0]] = changed
    return out


def values(body: bytes, framing: Any) -> list[Any]:
    """Return the parsed events of a body, for changing them."""
    frames = reader(framing)
    return [data for _, data in [*frames.feed(body), *frames.finish()] if isinstance(data, dict)]
