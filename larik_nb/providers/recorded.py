"""Recordings: what a provider streamed, kept in a file and played again without network, key or cost.

A recording is JSON lines, one exchange each, appended in one write::

    {"key": sha256 of the request's content, "occurrence": 1, "request": {…}, "events": [[seconds, event], …]}

An exchange that failed has `"error"` behind its events. The request is found again by its content and by how often it
was asked; of two lines with the same key and occurrence the later one counts, so recording again replaces.
Credentials cannot be in it: they are not part of a request. Images and documents are kept as their hashes.
"""

from __future__ import annotations

import asyncio
import difflib
import errno
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larik_nb import errors
from larik_nb.types import Block, Message, Request, StreamEvent, done, notice

if TYPE_CHECKING:
    from larik_nb.providers import Provider

_DIFF_LINES = 40


class Recorder:
    """Writes finished exchanges to `path`, and counts how often each request was asked.

    Args:
        path: The recording; made when missing, appended to when there.
        clock: Seconds, for the times of the events.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = Path(path).expanduser()
        self.clock = clock
        self._asked: Counter[str] = Counter()

    def around(self, inner: Provider) -> RecordingProvider:
        """Return `inner`, recorded here."""
        return RecordingProvider(inner, self)

    def begin(self, provider: str, request: Request) -> dict[str, Any]:
        """Return the start of a line for this request, and count it.

        Raises:
            ConfigError: The recording cannot be written: better said before the answer is paid for than after.
        """
        try:
            _check_writable(self.path)
        except OSError as error:
            raise errors.ConfigError(
                f"cannot write the recording {self.path}: {error.strerror}", remedy="Name another file"
            ) from error
        content = canonical(request)
        key = _key(content)
        self._asked[key] += 1
        return {"key": key, "occurrence": self._asked[key], "provider": provider, "request": content}

    def write(self, line: dict[str, Any]) -> None:
        """Add a finished line."""
        _append(self.path, line)


class RecordingProvider:
    """Passes `inner` on and records each finished exchange.

    An exchange that is interrupted is not written: it could not be played to its end.

    Args:
        inner: The provider that answers.
        path: The recording, or a `Recorder` that several providers share.
    """

    def __init__(self, inner: Provider, path: str | os.PathLike[str] | Recorder) -> None:
        self.inner = inner
        self.recorder = path if isinstance(path, Recorder) else Recorder(path)

    @property
    def name(self) -> str:
        """The inner provider's name."""
        return self.inner.name

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield what `inner` yields; see `Provider`."""
        clock = self.recorder.clock
        line = self.recorder.begin(self.name, request)
        events: list[list[Any]] = []
        started = clock()
        try:
            async with aclosing(self.inner.stream(request)) as source:
                async for event in source:
                    events.append([round(clock() - started, 4), _kept(event)])
                    if event.type == "done":
                        for word in self._written({**line, "events": events}):
                            yield word
                    yield event
        except errors.APIError as error:
            for word in self._written({**line, "events": events, "error": _plain(error)}):
                yield word
            raise

    def _written(self, line: dict[str, Any]) -> Iterator[StreamEvent]:
        """Write a line; where that fails now, say so: the answer itself is worth more than its recording."""
        try:
            self.recorder.write(line)
        except OSError as error:
            yield notice(f"⚠ not recorded: {self.recorder.path.name} cannot be written ({error.strerror})")


class ReplayProvider:
    """Answers from the recording at `path`; opens no socket and costs nothing.

    Args:
        path: A file that `RecordingProvider` wrote.
        speed: How fast: None at once, 1.0 in the recorded time, 2.0 twice as fast.
        sleep: Waits for the next event; a test passes its own clock.

    Raises:
        ConfigError: The file cannot be read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        speed: float | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.path = Path(path).expanduser()
        self._speed = speed
        self._sleep = sleep
        self._asked: Counter[str] = Counter()
        self._lines, self._torn = _read(self.path)

    @property
    def name(self) -> str:
        """The route that was recorded first; "replay" for an empty recording."""
        return next((line["provider"] for line in self._lines.values()), "replay")

    @property
    def model(self) -> str | None:
        """The model that was asked first, for a session that names none."""
        return next((line["request"]["model"] for line in self._lines.values()), None)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the recorded events of `request`, its errors included.

        Raises:
            ReplayMiss: It was not recorded, or not so often.
        """
        line = self._find(request)
        if self._torn:
            yield notice(f"⚠ {self.path.name}: {self._torn} unreadable line{'s' * (self._torn > 1)} left out")
            self._torn = 0
        passed = 0.0
        for at, data in line["events"]:
            if self._speed:
                await self._sleep(max(0.0, at - passed) / self._speed)
                passed = at
            yield _event(data)
        if "error" in line:
            raise _raised(line["error"])

    def _find(self, request: Request) -> dict[str, Any]:
        content = canonical(request)
        key = _key(content)
        self._asked[key] += 1
        line = self._lines.get((key, self._asked[key]))
        if line is None:
            raise self._miss(content, key)
        return line

    def _miss(self, content: dict[str, Any], key: str) -> errors.ReplayMiss:
        often = max((occurrence for known, occurrence in self._lines if known == key), default=0)
        if often:
            return errors.ReplayMiss(
                f"{self.path.name} has this request {often}×, and it was asked {self._asked[key]}×. Record it again."
            )
        if not self._lines:
            return errors.ReplayMiss(f"{self.path.name} holds no exchange. Record it first.")
        asked = _readable(content)
        nearest = min((_readable(line["request"]) for line in self._lines.values()), key=lambda r: _apart(r, asked))
        diff = difflib.unified_diff(nearest, asked, "recorded", "asked now", lineterm="", n=2)
        return errors.ReplayMiss(
            f"{self.path.name} has no such request. Record it again, or ask what was recorded.",
            diff="\n".join(list(diff)[:_DIFF_LINES]),
        )


# -- the key ------------------------------------------------------------------------------------------------------
def canonical(request: Request) -> dict[str, Any]:
    """Return what of `request` decides the answer, as plain JSON.

    Left out is what changes from one recording to the next without the question changing: usage, cost, served
    models, signatures and thinking of earlier answers, names of images, which no wire has. Tool call ids are numbered in order of appearance, data of
    images and documents is hashed.
    """
    ids: dict[str | None, str] = {}
    messages = [{"role": message.role, "blocks": list(_blocks(message, ids))} for message in request.messages]
    settings = {key: value for key, value in request.to_dict().items() if key != "messages"}
    return {**settings, "messages": messages}


def _blocks(message: Message, ids: dict[str | None, str]) -> Iterator[dict[str, Any]]:
    for block in message.blocks:
        if block.type not in ("thinking", "opaque"):
            yield _block(block, ids)


def _block(block: Block, ids: dict[str | None, str]) -> dict[str, Any]:
    kept = replace(
        block,
        id=ids.setdefault(block.id, f"call_{len(ids) + 1}") if block.id else None,
        data=block.data and hashlib.sha256(block.data.encode()).hexdigest(),
        signature=None,
        provider=None,
        raw=None,
        name=None if block.type == "image" else block.name,
        images=(),
    )
    images = [_block(image, ids) for image in block.images]
    return {**kept.to_dict(), **({"images": images} if images else {})}


def _key(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


# -- the file -----------------------------------------------------------------------------------------------------
def _append(path: Path, line: dict[str, Any]) -> None:
    """Add one line in one write, behind a newline of its own where a torn line lies before it."""
    data = json.dumps(line, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
    descriptor = _opened(path)
    try:
        size = os.fstat(descriptor).st_size
        if size and _last_byte(descriptor, size) != b"\n":
            data = b"\n" + data
        while data:  # one write, unless the disk takes only a part
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def _check_writable(path: Path) -> None:
    """Raise the OSError that writing would raise, as far as can be known; make no file."""
    if path.exists():
        os.close(_opened(path))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _opened(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)


def _last_byte(descriptor: int, size: int) -> bytes:
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1)


def _read(path: Path) -> tuple[dict[tuple[str, int], dict[str, Any]], int]:
    """Return the exchanges by (key, occurrence), and how many lines were torn or not ours."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise errors.ConfigError(
            f"cannot read the recording {path}: {error.strerror}", remedy="Make it with --record"
        ) from error
    lines, torn = {}, 0
    for raw in filter(None, data.split(b"\n")):
        try:
            line = json.loads(raw)
            lines[line["key"], line["occurrence"]] = _playable(line)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            torn += 1
    return lines, torn


def _playable(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line as it came once all that will be read of it could be; what that raises is the line's fault."""
    played = [_event(data) for at, data in line["events"] if float(at) >= 0]
    if "error" in line:
        _raised(line["error"])
    elif not played or played[-1].message is None or not _names(line):
        msg = "an exchange without its end or its names"
        raise ValueError(msg)
    _readable(line["request"])
    return line


def _names(line: dict[str, Any]) -> bool:
    return isinstance(line["provider"], str) and isinstance(line["request"]["model"], str)


def _kept(event: StreamEvent) -> dict[str, Any]:
    if event.message is not None:
        return {"type": event.type, "message": event.message.to_dict()}
    return {name: value for name, value in event._asdict().items() if value}


def _event(data: dict[str, Any]) -> StreamEvent:
    """Return the event; a replayed answer has cost nothing."""
    if "message" in data:
        return done(replace(Message.from_dict(data["message"]), cost_usd=0.0))
    return StreamEvent(**data)


def _plain(error: errors.APIError) -> dict[str, Any]:
    kept = ("kind", "status", "retry_after", "provider", "model")
    facts = {name: getattr(error, name) for name in kept if getattr(error, name) is not None}
    partial = {"partial": error.partial.to_dict()} if isinstance(error.partial, Message) else {}
    return {"class": type(error).__name__, "message": error.message, **facts, **partial}


def _raised(data: dict[str, Any]) -> errors.APIError:
    facts = dict(data)
    kind = getattr(errors, facts.pop("class"), None)
    if not (isinstance(kind, type) and issubclass(kind, errors.APIError)):
        kind = errors.APIError
    partial = facts.pop("partial", None)
    error: errors.APIError = kind(facts.pop("message"), **facts)
    error.partial = None if partial is None else Message.from_dict(partial)
    return error


# -- the difference -----------------------------------------------------------------------------------------------
def _readable(content: dict[str, Any]) -> list[str]:
    """Return the request as lines a person can compare: one per setting, one per line of text."""
    settings = {key: value for key, value in content.items() if key not in ("messages", "system")}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]
    lines += [f"system: {line}" for line in (content.get("system") or "").splitlines()]
    for message in content["messages"]:
        for block in message["blocks"]:
            lines += [f"{message['role']}: {line}" for line in _block_lines(block)]
    return lines


def _block_lines(block: dict[str, Any]) -> list[str]:
    if block["type"] == "text":
        return (block.get("text") or "").splitlines() or [""]
    return [json.dumps(block, ensure_ascii=False)]


def _apart(one: list[str], other: list[str]) -> float:
    return -difflib.SequenceMatcher(a=one, b=other, autojunk=False).ratio()
