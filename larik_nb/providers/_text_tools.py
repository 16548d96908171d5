"""Tool calls that a model wrote as text: `{"name": …, "arguments": {…}}`, alone in its text part, fenced or not.

Small models do this where the server knows no template for tools. Such a part becomes a call only if the request
offered that name. Text still streams: what is held back is only what could yet become a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from larik_nb.providers._wire import NO_EVENTS, Draft, arguments
from larik_nb.types import StreamEvent, ToolSpec, text_delta

_ARGUMENTS = ("arguments", "args", "parameters")
_KEYS = ("name", "type", *_ARGUMENTS)
_TYPES = ("function",)
_FENCES = ("json",)
_SPACE = " \t\r\n"
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\r?\n?(.*?)```\s*", re.DOTALL | re.IGNORECASE)


class TextTools:
    """Stands between an adapter and its draft for visible text.

    Args:
        draft: Takes the text at once, so that an interrupted answer has it, and the calls.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._tools = {tool.name: tool for tool in draft.request.tools}
        self._may_call = bool(self._tools)
        self._begin()

    def _begin(self) -> None:
        self._part: Any = None
        self._held: list[str] = []
        self._match = _Match(tuple(self._tools)) if self._may_call else None

    def text(self, piece: str) -> tuple[StreamEvent, ...]:
        """Add visible text and return what may be shown of it."""
        if self._match is None:
            return self._draft.text(piece)
        if not piece:
            return NO_EVENTS
        if self._part is None:
            self._part = self._draft.open("text")
        self._held += [event.text for event in self._draft.text(piece)]
        if self._match.feed(piece):
            return NO_EVENTS
        self._match = None
        return self._release()

    def end(self) -> tuple[StreamEvent, ...]:
        """Say that the text part has ended, and return the call it was or the text still held."""
        if self._part is None and self._match is not None:
            return NO_EVENTS
        events = self._call() or self._release() if self._held else NO_EVENTS
        self._begin()
        return events

    def stop(self) -> tuple[StreamEvent, ...]:
        """Say that the answer has ended: as `end`, and text that comes yet is only text."""
        events = self.end()
        self._may_call, self._match = False, None
        return events

    def _release(self) -> tuple[StreamEvent, ...]:
        text, self._held = "".join(self._held), []
        return (text_delta(text),) if text else NO_EVENTS

    def _call(self) -> tuple[StreamEvent, ...]:
        found = find_call("".join(self._held), self._tools)
        if found is None:
            return NO_EVENTS
        name, value = found
        self._part.pieces.clear()
        key = ("text", self._draft.calls)
        return (*self._draft.tool(key, None, name), *self._draft.tool_input(key, json.dumps(value)))


def find_call(text: str, tools: Mapping[str, ToolSpec]) -> tuple[str, dict[str, Any]] | None:
    """Return the name and arguments of the call that `text` is, None where it is not one to an offered tool."""
    fenced = _FENCED.fullmatch(text)
    value, _ = arguments(fenced[1] if fenced else text)
    given = [key for key in _ARGUMENTS if key in (value or ())]
    if not value or len(given) != 1 or value.get("type", "function") != "function":
        return None
    tool = tools.get(name) if isinstance(name := value.get("name"), str) else None
    if tool is None or set(value) - {"name", "type", given[0]}:
        return None
    found = value[given[0]]
    if isinstance(found, str):
        found, _ = arguments(found)
    return (tool.name, _aliased(found, tool)) if isinstance(found, dict) else None


def _aliased(value: dict[str, Any], tool: ToolSpec) -> dict[str, Any]:
    """Return the arguments with `file_path` under `path` where the tool calls it so."""
    known = (tool.parameters or {}).get("properties", {})
    if "file_path" not in value or "path" in value or "file_path" in known or (known and "path" not in known):
        return value
    return {"path" if key == "file_path" else key: item for key, item in value.items()}


class _Match:
    """Whether what has come could yet be a call; reads each character once."""

    def __init__(self, names: Sequence[str]) -> None:
        self._reader = _part(names)
        next(self._reader)

    def feed(self, piece: str) -> bool:
        """Return False as soon as no continuation can make the text a call."""
        send = self._reader.send
        try:
            for char in piece:
                send(char)
        except (StopIteration, _NoCallError):
            return False
        return True


class _NoCallError(Exception):
    """The text cannot be a call any more."""


_Chars = Generator[None, str, str]
"""Takes characters by `send`; returns the first one it does not use."""


def _part(names: Sequence[str]) -> Generator[None, str, None]:
    """Follow a whole text part; raise `_NoCallError` where it cannot be a call."""
    char = yield from _space((yield))
    fenced = char == "`"
    if fenced:
        char = yield from _fence()
    _expect(char, "{")
    yield from _object(names)
    char = yield from _space((yield))
    if fenced:
        for mark in "```":
            _expect(char, mark)
            char = yield
        char = yield from _space(char)
    raise _NoCallError


def _expect(char: str, wanted: str) -> None:
    if char not in wanted:
        raise _NoCallError


def _space(char: str) -> _Chars:
    while char in _SPACE:
        char = yield
    return char


def _fence() -> _Chars:
    """Follow the rest of a fence and its language, to the first character of the code."""
    for mark in "``":
        _expect((yield), mark)
    language = ""
    char = yield
    while char not in _SPACE and char != "{":
        language += char.lower()
        if not any(fence.startswith(language) for fence in _FENCES):
            raise _NoCallError
        char = yield
    if language and language not in _FENCES:
        raise _NoCallError
    return (yield from _space(char))


def _object(names: Sequence[str]) -> Generator[None, str, None]:
    """Follow the call's object behind its brace."""
    char = yield from _space((yield))
    left = list(_KEYS)
    while char != "}":
        _expect(char, '"')
        key = yield from _word(left)
        left = [word for word in left if word not in (_ARGUMENTS if key in _ARGUMENTS else (key,))]
        _expect((yield from _space((yield))), ":")
        char = yield from _space((yield))
        char = yield from _member(key, char, names)
        if char == ",":
            char = yield from _space((yield))
            _expect(char, '"')
        else:
            _expect(char, "}")


def _member(key: str, char: str, names: Sequence[str]) -> _Chars:
    if key in _ARGUMENTS:
        _expect(char, '{"')
        yield from _value(char)
    else:
        _expect(char, '"')
        yield from _word(names if key == "name" else _TYPES)
    return (yield from _space((yield)))


def _word(words: Sequence[str]) -> _Chars:
    """Follow a string that must be one of `words`, and return it."""
    text = ""
    while (char := (yield)) != '"':
        text += char
        if not any(word.startswith(text) for word in words):
            raise _NoCallError
    if text not in words:
        raise _NoCallError
    return text


def _value(char: str) -> Generator[None, str, None]:
    """Follow an object or a string to its end; what is inside is not judged."""
    depth = 0
    while True:
        if char == '"':
            yield from _string()
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
        if depth <= 0:
            return
        char = yield


def _string() -> Generator[None, str, None]:
    while (char := (yield)) != '"':
        if char == "\\":
            yield
