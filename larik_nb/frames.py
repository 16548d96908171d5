"""Bytes of a streamed body to JSON values: server-sent events and newline-delimited JSON. No I/O.

Lines end at LF, CR LF or CR and nowhere else: `str.splitlines` and most HTTP clients also cut at U+2028, which is
legal inside JSON. A read is decoded once, up to its last complete line, so UTF-8 split between reads is never seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Literal

from larik_nb.errors import BadWire

Framing = Literal["sse", "ndjson"]
Frame = tuple[str, Any]
"""Event name ("" without one) and its data: the parsed JSON, the text itself where it is not JSON, None for none."""

_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]
_one_line_event = re.compile(r"(?:event: ?([^\n]*)\n)?data: ?(?=[{\[])").match
_SPACE = " \t"
_IGNORED = (":", "id:", "retry:", "id\n", "retry\n", "data\n", "event\n")


def parse(text: str, start: int, end: int) -> Any:
    """Return the JSON value in `text[start:end]`, or that text where it is not exactly one value."""
    while start < end and text[start] in _SPACE:
        start += 1
    try:
        value, stop = _scan(text, start)
    except (StopIteration, ValueError, RecursionError):
        return text[start:end]
    if stop == end or (stop < end and not text[stop:end].strip()):
        return value
    return text[start:end]


LONGEST_FRAME = 1 << 27
"""Bytes that may come without completing a frame. Pictures come to tens of millions; without a limit memory is it."""


class _Lines:
    """Complete lines out of arbitrary reads; the shared half of both framings.

    Args:
        longest: Bytes that may come without completing a frame.
    """

    __slots__ = ("_begun", "_longest", "_pending", "_since_frame", "_stray")

    def __init__(self, longest: int = LONGEST_FRAME) -> None:
        self._longest = longest
        self._since_frame = 0
        self._pending: list[bytes] = []
        self._begun = False
        self._stray: list[str] = []

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the frames that `chunk` completed.

        Raises:
            BadWire: Too much has come without completing one.
        """
        text = self._complete(chunk)
        frames = self._read(text) if text else []
        if frames:
            self._since_frame = 0
        else:
            self._since_frame += len(chunk)
            if self._since_frame > self._longest:
                msg = f"the server sent {self._since_frame:,} bytes without an end to any event"
                raise BadWire(msg)
        return frames

    def _read(self, text: str) -> list[Frame]:
        """Return the frames that complete lines hold."""
        raise NotImplementedError

    def _complete(self, chunk: bytes) -> str:
        """Return the text up to the last line end in what has come, line ends being LF; keep the rest."""
        if b"\n" not in chunk and b"\r" not in chunk:
            if chunk:
                pending = self._pending
                if pending and pending[-1].endswith(b"\r"):
                    return self._complete_joined(b"".join(pending) + chunk)
                pending.append(chunk)
            return ""
        return self._complete_joined(b"".join(self._pending) + chunk if self._pending else chunk)

    def _complete_joined(self, data: bytes) -> str:
        held = b""
        if b"\r" in data:
            if data.endswith(b"\r"):
                # The LF of a CR LF may be in the next read.
                data, held = data[:-1], b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = data.rfind(b"\n") + 1
        rest = data[end:] + held
        self._pending = [rest] if rest else []
        if not end:
            return ""
        return self._text(data[:end])

    def _text(self, data: bytes) -> str:
        text = data.decode("utf-8", "replace")
        if not self._begun:
            self._begun = True
            text = text.removeprefix("\ufeff")
        return text

    def _remainder(self) -> str:
        """Return what stands after the last line end, as if a line end followed."""
        data = b"".join(self._pending).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._pending = []
        return self._text(data) + "\n" if data else ""

    def whole(self) -> Any:
        """Return the JSON value that the lines outside any frame make up, None when they make none.

        Servers answer plain or pretty-printed JSON where a stream was asked for, errors after a 200 above all.
        """
        if not self._stray:
            return None
        text = "\n".join(self._stray)
        value = parse(text, 0, len(text)) if (text := text.strip()) else None
        return value if isinstance(value, dict | list) else None

    @property
    def stray(self) -> str:
        """The text outside any frame, for an error message."""
        return "\n".join(self._stray)


class EventStream(_Lines):
    """Server-sent events, read tolerantly: comments, CR LF, several data lines, a last event without a blank line."""

    __slots__ = ("_data", "_name")

    def __init__(self, longest: int = LONGEST_FRAME) -> None:
        super().__init__(longest)
        self._name = ""
        self._data: list[str] = []

    def finish(self) -> list[Frame]:
        """Return the last event where the stream ended without its blank line."""
        frames = self._read(self._remainder())
        if self._data or self._name:
            self._dispatch(frames)
        return frames

    def _dispatch(self, frames: list[Frame]) -> None:
        data = "\n".join(self._data)
        frames.append((self._name, parse(data, 0, len(data)) if self._data else None))
        self._name = ""
        self._data.clear()

    def _read(self, text: str) -> list[Frame]:
        frames: list[Frame] = []
        size, at = len(text), 0
        while at < size:
            # Nearly every event is one JSON value on one data line, complete in one read: parsed where it lies.
            head = None if self._data or self._name else _one_line_event(text, at)
            if head is not None:
                try:
                    value, end = _scan(text, head.end())
                except (StopIteration, ValueError, RecursionError):
                    end = -1
                if end > 0 and text.startswith("\n\n", end):
                    frames.append((head[1] or "", value))
                    at = end + 2
                    continue
            at = self._line(text, at, frames)
        return frames

    def _line(self, text: str, at: int, frames: list[Frame]) -> int:
        """Take the line at `at` in and return where the next one begins."""
        end = text.find("\n", at)
        if text.startswith("data:", at):
            start = at + 6 if text.startswith(" ", at + 5) else at + 5
            self._data.append(text[start:end])
        elif end == at:
            if self._data or self._name:
                self._dispatch(frames)
        elif text.startswith("event:", at):
            self._name = text[at + 6 : end].strip()
        elif not text.startswith(_IGNORED, at):
            self._stray.append(text[at:end])
        return end + 1


class JSONLines(_Lines):
    """Newline-delimited JSON. A `data:` prefix is tolerated, since some gateways add one."""

    __slots__ = ()

    def finish(self) -> list[Frame]:
        """Return the last value where the stream ended without a line end."""
        return self._read(self._remainder())

    def _read(self, text: str) -> list[Frame]:
        frames: list[Frame] = []
        find, size, at = text.find, len(text), 0
        while at < size:
            end = find("\n", at)
            start = at + 5 if text.startswith("data:", at) else at
            value = None if self._stray else parse(text, start, end)
            if isinstance(value, dict):
                frames.append(("", value))
            elif text[at:end].strip():
                self._stray.append(text[at:end])
            at = end + 1
        return frames


def reader(framing: Framing) -> EventStream | JSONLines:
    """Return a new decoder for one body."""
    return EventStream() if framing == "sse" else JSONLines()
