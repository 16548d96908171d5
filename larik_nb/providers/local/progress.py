"""One line of text that shows a download: bar, bytes, speed and time left, in a terminal, a notebook or a log."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable

MIN_INTERVAL_S = 0.2
BAR_CELLS = 24
PLAIN_STEPS = 10
MAX_SOURCE_CHARS = 40


class _Text(Protocol):
    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


class ProgressLine:
    """Draws what `fetch` reports; use it as a context so that the line ends.

    In a terminal and in a cell the line is rewritten in place, five times a second at most; elsewhere (a log, CI) a
    plain line is written at each tenth.
    """

    def __init__(self, name: str, stream: _Text | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._stream: _Text = sys.stderr if stream is None else stream
        self._clock = clock
        self._live = _rewrites(self._stream)
        self._source: str | None = None
        self._began = self._drawn = 0.0
        self._first = self._step = self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live and self._width:
            self._stream.write("\n")
            self._stream.flush()

    def __call__(self, done_bytes: int, total_bytes: int, source: str) -> None:
        """Show that `done_bytes` of `total_bytes` have come from `source`."""
        now = self._clock()
        if source != self._source:
            self._source, self._began, self._first = source, now, done_bytes
            self._drawn, self._step = now - MIN_INTERVAL_S, -1
        if self._is_due(done_bytes, total_bytes, now):
            self._drawn = now
            self._write(self._line(done_bytes, total_bytes, now - self._began))

    def _is_due(self, done_bytes: int, total_bytes: int, now: float) -> bool:
        if self._live:
            return done_bytes >= total_bytes or now - self._drawn >= MIN_INTERVAL_S
        step = done_bytes * PLAIN_STEPS // total_bytes
        is_new = step > self._step
        self._step = max(step, self._step)
        return is_new

    def _line(self, done_bytes: int, total_bytes: int, elapsed_s: float) -> str:
        share = min(1.0, done_bytes / total_bytes)
        parts = [f"{share:4.0%}", f"{done_bytes / 1e6:.1f} of {total_bytes / 1e6:.1f} MB"]
        if elapsed_s > 0 and (rate := (done_bytes - self._first) / elapsed_s) > 0:
            parts.append(f"{rate / 1e6:.1f} MB/s")
            if share < 1:
                parts.append(f"{_duration((total_bytes - done_bytes) / rate)} left")
        parts.append(f"from {_short(self._source or '')}")
        bar = "█" * round(share * BAR_CELLS)
        return f"{self._name} {bar:░<{BAR_CELLS}} {' · '.join(parts)}"

    def _write(self, line: str) -> None:
        line = _writable(line, self._stream)
        if self._live:
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()


def _rewrites(stream: _Text) -> bool:
    """Whether a carriage return takes the line back: terminals, and the output of a notebook cell."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty()) or type(stream).__module__.startswith("ipykernel.")


def _writable(line: str, stream: _Text) -> str:
    """Return the line with ASCII in place of the bar where the stream's encoding has no such signs."""
    try:
        line.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return line.translate({ord("█"): "#", ord("░"): ".", ord("·"): "|", ord("…"): "~"})
    return line


def _short(source: str) -> str:
    return source if len(source) <= MAX_SOURCE_CHARS else source[: MAX_SOURCE_CHARS - 1] + "…"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
