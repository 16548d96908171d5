"""What holds for every answer, whatever the network cuts and the server garbles."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from larik_nb import errors
from larik_nb.frames import reader
from larik_nb.providers._wire import _rest
from larik_nb.types import Message, StreamEvent
from tests import corpus

CASES = {
    case.id: case
    for case in corpus.load(Path(__file__).parent / "wire")
    if case.api in corpus.ADAPTERS and case.data["response"]["status"] == 200
}
SLOW_START = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
case_ids = st.sampled_from(sorted(CASES))


@cache
def adapter(api: str) -> Any:
    module, name = corpus.ADAPTERS[api]
    return getattr(import_module(module), name)(provider="test")


class Reading:
    """One answer read from bytes: its events, and its message or its error."""

    def __init__(self, case: corpus.Case, pieces: list[bytes]) -> None:
        wire = adapter(case.api)
        decoder, frames = wire.decoder(case.request()), reader(wire.framing)
        self.events: list[StreamEvent] = []
        self.error: errors.APIError | None = None
        try:
            for piece in pieces:
                for name, data in frames.feed(piece):
                    self.events += decoder.event(name, data)
            self.events += _rest(decoder, frames)
            self.message = decoder.finish()
        except errors.APIError as exc:
            self.error = exc
            self.message = decoder.draft.message()

    def joined(self, kind: str) -> str:
        return "".join(event.text for event in self.events if event.type == kind)


def body_of(case: corpus.Case) -> bytes:
    return str(case.data["response"]["body"]).encode()


@pytest.mark.parametrize("case_id", sorted(CASES))
def test_joined_deltas_equal_the_answer(case_id: str) -> None:
    """What the screen showed is what the transcript keeps, in full or broken off."""
    case = CASES[case_id]
    reading = Reading(case, [body_of(case)])
    assert reading.joined("text_delta") == reading.message.text
    assert reading.joined("thinking_delta") == reading.message.thinking


@given(case_ids, st.lists(st.integers(min_value=0), max_size=12))
@SLOW_START
def test_any_cut_between_reads_gives_the_same_answer(case_id: str, cuts: list[int]) -> None:
    """How the network cuts a body makes no difference."""
    case = CASES[case_id]
    body = body_of(case)
    ends = sorted({cut % (len(body) + 1) for cut in cuts} | {len(body)})
    pieces = [body[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    whole, cut = Reading(case, [body]), Reading(case, pieces)
    assert cut.message == whole.message
    assert type(cut.error) is type(whole.error)


@given(case_ids, st.integers(min_value=0))
@SLOW_START
def test_a_body_that_breaks_off_keeps_what_came(case_id: str, at: int) -> None:
    """A shorter body is an error with the beginning of the answer, or the whole answer when only its tail is gone."""
    case = CASES[case_id]
    body = body_of(case)
    whole, short = Reading(case, [body]), Reading(case, [body[: at % len(body)]])
    if short.error is None:
        # Counts may come after the end mark.
        assert replace(short.message, usage=whole.message.usage) == whole.message
    assert whole.message.text.startswith(short.message.text.rstrip("\ufffd"))
    assert Message.from_json(short.message.to_json()) == short.message


def spots(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to every value inside a JSON value, itself included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, item in inner for path in spots(item, (*at, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of a JSON value with another one at `path`."""
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = replaced(value[path[0]], path[1:], new)
    return value


@given(st.data())
@settings(SLOW_START, max_examples=400)
def test_garbled_events_never_crash(data: st.DataObject) -> None:
    """Any value anywhere in an event leads to an answer or to one of our errors, and the partial answer is whole."""
    case = CASES[data.draw(case_ids)]
    wire = adapter(case.api)
    frames = reader(wire.framing)
    body = body_of(case)
    events = [frame for frame in [*frames.feed(body), *frames.finish()] if isinstance(frame[1], dict)]
    decoder = wire.decoder(case.request())
    whole = frames.whole()
    place = data.draw(st.integers(0, max(0, len(events) - 1)))
    target = whole if whole is not None else events[place][1]
    garbled = replaced(target, data.draw(st.sampled_from(spots(target))), data.draw(anything))
    try:
        if whole is not None:
            list(decoder.whole(garbled))
        for number, (name, value) in enumerate(events):
            list(decoder.event(name, garbled if number == place else value))
        decoder.finish()
    except errors.APIError as exc:
        said = exc.message
    else:
        said = "an answer"
    assert said
    message = decoder.draft.message()
    assert json.loads(message.to_json(), parse_constant=str)["role"] == "assistant"


@given(case_ids, st.permutations(range(40)))
@SLOW_START
def test_events_out_of_order_never_crash(case_id: str, order: list[int]) -> None:
    """Events in any order lead to an answer or to one of our errors."""
    case = CASES[case_id]
    wire = adapter(case.api)
    frames = reader(wire.framing)
    body = body_of(case)
    events = [*frames.feed(body), *frames.finish()]
    decoder = wire.decoder(case.request())
    try:
        for place in order:
            if place < len(events):
                list(decoder.event(*events[place]))
        decoder.finish()
    except errors.APIError as exc:
        said = exc.message
    else:
        said = "an answer"
    assert said
