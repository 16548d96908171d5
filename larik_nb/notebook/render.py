"""An answer on the screen while it arrives, and the one output that stays.

`watch` drives, step by step: it takes the events off a reader and asks a view to draw now and then. What a view draws depends on
where the cell runs:

- `Live`, a `%%larik` cell in a notebook someone looks at: finished blocks are outputs of their own that are not sent
  again, only the tail grows; at the end one output takes the place of all.
- `Nested`, inside a loop, a function or another magic: one output, redrawn in growing steps.
- `Once`, headless, captured or replayed: the finished answer, for some tools ignore updates and others keep them all.
- `Terminal`: plain text as it comes.

Text is never sent as often as it grows: a delta costs no message, and the bytes stay within a few times the text.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from larik_nb.notebook import display, markdown, steps
from larik_nb.types import Message

if TYPE_CHECKING:
    from larik_nb.notebook.display import Bundle
    from larik_nb.portal import _Reader
    from larik_nb.types import StreamEvent

FRAME_S = 0.125
"""Seconds between two messages at least: with the last frame that is at most ten in any second."""

REST_S = 0.04
"""Seconds between two looks at the answer. With the drawing it keeps the last frame within 50 ms of the end."""

HOLD_S = 0.3
"""Seconds that what has come may wait, late in an answer, to be decoded together: frames are further apart by then."""

_SLOWER = ((3.0, FRAME_S), (12.0, 0.25))
_SLOWEST_S = 0.4
"""Seconds since the first text, and the time between frames until then: a long answer may come in larger steps."""

_LONG, _OF_LONG = 8_000, 0.15
_REDRAWN, _AHEAD = 3_000, 2_000
_READ_A_SECOND = 90
"""Characters that may be sent while an answer comes: what has arrived, less of it behind `_LONG`; what redraws unfinished
blocks, as much again as the first `_REDRAWN` characters and some in advance; but always what anybody can have read by then.
The finished answer is sent twice, as markdown and as text: with this a long one stays under three times its size."""

_BEHIND = 1_000
"""Characters that wait to be drawn before a line says so."""

_LEAP = 1.5
"""Growth from one drawing to the next of a long block for which there is no room: together they are thrice the block."""

_STEP = 1.3
"""Growth of a redrawn output from one frame to the next, which keeps the sum of all under 1 / (1 - 1 / 1.3) times it."""


class Answer:
    """What has arrived of one answer."""

    def __init__(self, model: str, *, clock: Callable[[], float] = time.monotonic, timed: bool = True) -> None:
        self.model = model
        self.above: list[str] = []
        self.below: list[str] = []
        self.clock = clock
        self.started = clock()
        self.has_text = False
        self.message = Message(role="assistant")
        self.size = 0
        self._timed = timed
        self._fresh: list[str] = []
        self._pieces: list[str] = []
        self._thinking: list[str] = []
        self._thought_from: float | None = None
        self._thought_s = 0.0

    def take(self, event: StreamEvent) -> None:
        """Take an event in."""
        match event.type:
            case "text_delta":
                self._stop_thinking()
                self.has_text = True
                self._fresh.append(event.text)
                self.size += len(event.text)
            case "thinking_delta":
                self._thinking.append(event.text)
                self._thought_from = self._thought_from or self.clock()
            case "notice":
                (self.below if self.has_text else self.above).append(display.one_line(event.text))
            case "done":
                self._stop_thinking()
                self.message = event.message or self.message

    def _stop_thinking(self) -> None:
        if self._thought_from is not None:
            self._thought_s += self.clock() - self._thought_from
            self._thought_from = None

    def fresh(self) -> str:
        """Return the text that arrived since the last call."""
        text = "".join(self._fresh)
        self._fresh.clear()
        self._pieces.append(text)
        return text

    @property
    def text(self) -> str:
        """All the text so far."""
        return "".join([*self._pieces, *self._fresh])

    @property
    def thought(self) -> str:
        """The line that stands for the thinking; without figures where each run must look the same."""
        if not self._thinking:
            return ""
        return f"thought for {self._thought_s:.0f} s" if self._timed else "thought"

    @property
    def phase(self) -> Literal["waiting", "thinking", "answering"]:
        """What the model is doing."""
        if self._thought_from is not None:
            return "thinking"
        return "answering" if self.has_text else "waiting"

    @property
    def waiting(self) -> str:
        """The line that stands where the text will be."""
        since = self.started if self._thought_from is None else self._thought_from
        word = "" if self._thought_from is None else "thinking · "
        return f"{self.model} · {word}{self.clock() - since:.0f} s"

    def shown(self, line: str) -> display.Shown:
        """Return the whole, `line` under it."""
        thinking = "".join(self._thinking)
        return display.Shown(
            text=self.text, line=line, thinking=thinking, thought=self.thought, above=self.above, below=self.below
        )


class Screen(Protocol):
    """Where a view draws."""

    def show(self, bundle: Mapping[str, Any], id: str | None = None) -> None:  # what Jupyter calls it
        """Add an output; `id` lets `update` find it."""

    def update(self, bundle: Mapping[str, Any], id: str) -> None:
        """Draw the output anew."""

    def clear(self) -> None:
        """Take the cell's outputs away as soon as the next one comes."""

    def write(self, text: str) -> None:
        """Add plain text, for terminals."""


class ShellScreen:
    """A running shell's outputs."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def show(self, bundle: Mapping[str, Any], id: str | None = None) -> None:
        """Publish an output."""
        transient = {"display_id": id} if id else {}
        self._shell.display_pub.publish(data=bundle, metadata=_marks(bundle, id), transient=transient)

    def update(self, bundle: Mapping[str, Any], id: str) -> None:
        """Publish it anew."""
        transient = {"display_id": id}
        self._shell.display_pub.publish(data=bundle, metadata=_marks(bundle, id), transient=transient, update=True)

    def clear(self) -> None:
        """Clear when the next output comes, so that nothing flickers."""
        self._shell.display_pub.clear_output(wait=True)

    def write(self, text: str) -> None:
        """Write to standard output at once."""
        sys.stdout.write(text)
        sys.stdout.flush()


def _marks(bundle: Mapping[str, Any], id: str | None) -> dict[str, Any]:
    """Return the mark by which the page finds a widget's output again; a saved notebook keeps no display id."""
    return {"larik": {"panel": id}} if id and display.VIEW in bundle else {}


class View(Protocol):
    """Draws an answer."""

    def start(self) -> None:
        """Draw before anything has arrived."""

    def tick(self) -> None:
        """Draw what is new, if it is time."""

    def finish(self, bundle: Bundle | None) -> None:
        """Draw what stays; None leaves nothing."""

    def pause(self) -> float:
        """Return the seconds until it may be time."""


class Once:
    """Publishes the finished answer and nothing before."""

    def __init__(self, answer: Answer, screen: Screen) -> None:
        self.answer = answer
        self.screen = screen

    def start(self) -> None:
        """Draw nothing yet."""

    def tick(self) -> None:
        """Draw nothing yet."""

    def pause(self) -> float:
        """Return one frame."""
        return FRAME_S

    def finish(self, bundle: Bundle | None) -> None:
        """Publish what stays."""
        if bundle is not None:
            self.screen.show(bundle)


class Terminal(Once):
    """Writes plain text as it comes."""

    def start(self) -> None:
        """Begin with no notice written."""
        self._notices = 0

    def tick(self) -> None:
        """Write what is new."""
        for line in self.answer.above[self._notices :]:
            self.screen.write(f"{line}\n\n")
            self._notices += 1
        if fresh := self.answer.fresh():
            self.screen.write(markdown.plain(fresh))

    def finish(self, bundle: Bundle | None) -> None:
        """Write what stands under the text."""
        self.tick()
        if bundle is not None:
            _, _, under = bundle["text/plain"].rpartition("\n\n")
            lines = [*self.answer.below, under]
            ends = 2 - self.answer.text.endswith("\n") if self.answer.has_text else 0
            self.screen.write("\n" * ends + "\n".join(lines) + "\n")


_ids = itertools.count(1)


def new_id() -> str:
    """Return a name for an output, of which there is no other in this notebook."""
    return f"larik-{time.time_ns():x}-{next(_ids)}"


class _Paced(Once):
    """What the two growing views share: when the next frame may be drawn."""

    def __init__(self, answer: Answer, screen: Screen) -> None:
        super().__init__(answer, screen)
        self._next = 0.0
        self._first_text = 0.0

    def pause(self) -> float:
        """Return the seconds until the next frame."""
        return min(max(self._next - self.answer.clock(), 0.005), _SLOWEST_S)

    def _drawn(self, messages: int) -> None:
        now = self.answer.clock()
        self._first_text = self._first_text or (now if self.answer.has_text else 0.0)
        since = now - self._first_text if self._first_text else 0.0
        frame_s = next((frame for until, frame in _SLOWER if since < until), _SLOWEST_S)
        self._next = now + frame_s * max(messages, 1)

    def tick(self) -> None:
        """Draw a frame if it is time."""
        if self.answer.clock() >= self._next:
            self._drawn(self._draw())

    def _draw(self) -> int:
        """Draw, and return how many messages that took."""
        raise NotImplementedError


class Gauge(Protocol):
    """What tells of an answer under way above its text, and can stop it."""

    def follow(self, screen: Screen, id: str) -> int:
        """Tell what is new, in the output `id`, and return how many messages that took."""

    @property
    def is_shown(self) -> bool:
        """Whether it has taken the output over."""

    @property
    def is_stopped(self) -> bool:
        """Whether the user wants no more."""

    def drop(self) -> None:
        """Go, once the output is another's."""


class Live(_Paced):
    """Freezes finished blocks; only the tail moves.

    Args:
        answer: What is drawn.
        screen: Where.
        gauge: Takes the waiting line's place; None leaves the first text to do so.
    """

    def __init__(self, answer: Answer, screen: Screen, gauge: Gauge | None = None) -> None:
        super().__init__(answer, screen)
        self._gauge = gauge

    def start(self) -> None:
        """Show who was asked."""
        self._head = new_id()
        self._head_shown = ""
        self._tail = ""
        self._sent = 0
        self._begin_tail("")
        self._drawn(self._draw())

    def tick(self) -> None:
        """Draw a frame if it is time.

        Raises:
            KeyboardInterrupt: The user pressed Stop.
        """
        if self._gauge is not None and self._gauge.is_stopped:
            raise KeyboardInterrupt
        super().tick()

    def _draw(self) -> int:
        messages = self._gauge.follow(self.screen, self._head) if self._gauge is not None else 0
        if self.answer.has_text:
            return messages + self._draw_text()
        if self._has_gauge:
            return messages
        return messages + self._draw_head([*self.answer.above, self.answer.waiting])

    @property
    def _has_gauge(self) -> bool:
        return self._gauge is not None and self._gauge.is_shown

    def _draw_head(self, lines: list[str]) -> int:
        """Draw the lines above the text; nothing when they are there already."""
        text = "\n\n".join(map(display.small, lines))
        if text == self._head_shown:
            return 0
        draw = self.screen.update if self._head_shown else self.screen.show
        draw({"text/markdown": text}, self._head)
        self._head_shown = text
        return 1

    def _draw_text(self) -> int:
        messages = 0
        if not self._tail_id and not self._has_gauge:
            lines = [*self.answer.above, *filter(None, [self.answer.thought])]
            if lines:
                messages += self._draw_head(lines)
        fresh = self.answer.fresh()
        if not fresh:
            return messages
        self._tail += fresh
        return messages + self._draw_tail()

    def _draw_tail(self) -> int:
        room = self._room()
        cut = markdown.finished(self._tail[:room]) if room > 0 else 0
        messages = 0
        if cut:
            messages += self._put(markdown.safe(self._tail[:cut]))
            self._tail = self._tail[cut:]
            self._begin_tail(new_id())
        if (cut < room and len(self._tail) * 2 <= self._room()) or self._has_grown():
            self._drawn_size = len(self._tail)
            return messages + self._put(markdown.safe(markdown.closed(self._tail)))
        return messages + self._draw_behind()

    def _begin_tail(self, id: str) -> None:
        self._tail_id = id
        self._tail_shown = False
        self._behind = self._drawn_size = 0

    def _has_grown(self) -> bool:
        """Return whether one long block, code mostly, has grown by a good step: it must not seem to stand still."""
        size = len(self._tail)
        return (
            self.answer.size <= _LONG
            and size >= max(_BEHIND, self._drawn_size * _LEAP)
            and not markdown.finished(self._tail)
        )

    def _room(self) -> int:
        """Return how many more characters may be sent for what has arrived by now."""
        size, now = self.answer.size, self.answer.clock()
        whole = min(size, _LONG) + _OF_LONG * max(size - _LONG, 0) + min(size, _REDRAWN) + _AHEAD
        return int(max(whole, _READ_A_SECOND * (now - (self._first_text or now)))) - self._sent

    def _draw_behind(self) -> int:
        """Say how much is not drawn yet, now and then, where no part of it stands on the screen."""
        size = len(self._tail)
        if size < _BEHIND or size < self._behind * _STEP or (self._tail_shown and not self._behind):
            return 0
        self._behind = size
        return self._put(display.small(f"… {display.tokens(size)} characters more; all of it shows at the end"))

    def _put(self, text: str) -> int:
        """Draw the tail's output: markdown that is ours, or made safe."""
        if not text.strip():
            return 0
        bundle = {"text/markdown": text}
        self._sent += len(text)
        if not self._tail_id:
            self._first(bundle)
        elif self._tail_shown:
            self.screen.update(bundle, self._tail_id)
        else:
            self.screen.show(bundle, self._tail_id)
        self._tail_shown = True
        return 1

    def _first(self, bundle: Bundle) -> None:
        """Let the first text take the waiting line's place, or follow the lines that stay above it."""
        if self._gauge is not None or self.answer.above or self.answer.thought:
            self._tail_id = new_id()
            self.screen.show(bundle, self._tail_id)
        else:
            self._tail_id = self._head
            self.screen.update(bundle, self._tail_id)

    def finish(self, bundle: Bundle | None) -> None:
        """Put one output in the place of all."""
        self.screen.clear()
        if bundle is not None:
            self.screen.show(bundle)
        if self._gauge is not None:
            self._gauge.drop()


class Nested(_Paced):
    """Redraws one output in growing steps; draws nothing before there is text."""

    def start(self) -> None:
        """Draw nothing before there is text."""
        self._id = ""
        self._text = ""
        self._size = 0

    def _draw(self) -> int:
        self._text += self.answer.fresh()
        if len(self._text) <= self._size * _STEP:
            return 0
        self._size = len(self._text)
        return self._put({"text/markdown": markdown.safe(markdown.closed(self._text))})

    def _put(self, bundle: Bundle) -> int:
        if self._id:
            self.screen.update(bundle, self._id)
        else:
            self._id = new_id()
            self.screen.show(bundle, self._id)
        return 1

    def finish(self, bundle: Bundle | None) -> None:
        """Draw the output for the last time."""
        if bundle is not None:
            self._put(bundle)


class Wait:
    """A wait for what a reader brings: its first item, or with `until_end` its end, `seconds` at most.

    Blocking and awaiting bring the same answer, whether it is there. An interrupt that does not wake the loop, and
    Stop, are heard when the wait is over: each wake costs more than what there is to do in it.
    """

    def __init__(self, reader: _Reader[StreamEvent], seconds: float, *, until_end: bool) -> None:
        self._reader = reader
        self._seconds = seconds
        self._until_end = until_end

    def block(self) -> bool:
        """Wait, and let nobody else run."""
        return self._reader.ended(self._seconds) if self._until_end else self._reader.ready(self._seconds)

    async def rest(self) -> bool:
        """Wait, and let the loop run meanwhile."""
        if not self._is_there():
            await self._reader.stirred(self._seconds)
        return self._is_there()

    def _is_there(self) -> bool:
        return self._reader.has_ended if self._until_end else self._reader.ready(0.0)


def watch(reader: _Reader[StreamEvent], answer: Answer, view: View) -> steps.Steps[None]:
    """Draw what `reader` brings until its end, on the caller's thread, which an interrupt reaches within a tick.

    Raises:
        BaseException: What the source raised.
    """
    view.start()
    while not (yield Wait(reader, FRAME_S, until_end=False)):
        view.tick()
    while True:
        _take(reader, answer)
        view.tick()
        if (yield Wait(reader, view.pause(), until_end=True)):
            break
    _take(reader, answer)


def _take(reader: _Reader[StreamEvent], answer: Answer) -> None:
    for event in reader.arrived():
        answer.take(event)
