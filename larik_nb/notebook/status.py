"""The line to the pages that show this kernel's notebook, over the comm `larik:status`; quiet where nobody looks.

Every message is a JSON object with a `type`. The kernel says::

    {"type": "state", "version": 2, "model": "provider/model" or None, "session_usd": USD, "at_least": bool,
     "budget_usd": USD or None, "level": "ok" | "warn" | "stop", "running": bool}
    {"type": "insert", "id": text, "cell_id": text or None, "cells": [{"kind": "code" | "markdown", "source": text}]}
    {"type": "replace", "id": text, "cell_id": text, "digest": SHA-256 of the source it is based on, "source": text}
    {"type": "open_picker"}
    {"type": "models", "models": [{…}, …], "problem": text, "asking": bool}    the answers to `models`, as
        `picking.listed` makes them; while `asking`, another follows
    {"type": "chosen", "ok": bool, "text": text}                the answer to `choose`

and a page::

    {"type": "hello", "version": 2, "abilities": ["insert", "replace"]}    answered with the state
    {"type": "cell", "cell_id": text, "source": text}           what stands in a cell now, ahead of a command about it
    {"type": "done", "id": text, "ok": bool, "reason": text}    what became of an `insert` or a `replace`
    {"type": "models"} and {"type": "choose", "spec": text}

Only the page whose cell is running acts on what would change the notebook, so a second window inserts nothing twice.
Messages may arrive on another thread than the one that runs cells, and while that one is blocked.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any, Literal

TARGET = "larik:status"
VERSION = 2

Level = Literal["ok", "warn", "stop"]
Data = dict[str, Any]
Answer = Callable[[Mapping[str, Any]], AsyncIterator[Data]]
"""Makes what is said in reply to a page's message."""

_ANSWER_S = 5.0
_TICK_S = 0.1
"""How long an interrupt may wait: IPython hears of it only when the loop comes round."""
_MOST_SOURCES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the status bar shows.

    Attributes:
        model: Who is asked next, "provider/model"; None while nothing is set up.
        session_usd: What the conversation has cost, as far as that is known.
        at_least: A part of it is unknown.
        budget_usd: What it may cost; None: no limit.
        level: How near that is.
        running: A turn is under way.
    """

    model: str | None = None
    session_usd: float = 0.0
    at_least: bool = False
    budget_usd: float | None = None
    level: Level = "ok"
    running: bool = False

    def message(self) -> Data:
        """Return it as a page reads it."""
        return {"type": "state", "version": VERSION, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCell:
    """A cell to insert."""

    source: str
    kind: Literal["code", "markdown"] = "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an edit: done, or why not."""

    ok: bool
    reason: str = ""


class Edit:
    """A change that a page was asked for. Await it for its outcome; nothing waits for one that is not awaited."""

    def __init__(self, outcome: Future[Outcome], *, limit_s: float = _ANSWER_S) -> None:
        self._outcome = outcome
        self._limit_s = limit_s

    def __await__(self) -> Generator[Any, None, Outcome]:
        """Wait for the page; one that has gone away counts as a refusal after a few seconds."""
        return self._settled().__await__()

    def then(self, tell: Callable[[Outcome], None]) -> None:
        """Have `tell` called with the outcome when there is one, on whichever thread hears of it."""
        self._outcome.add_done_callback(lambda outcome: tell(outcome.result()))

    async def _settled(self) -> Outcome:
        outcome = asyncio.wrap_future(self._outcome)
        for _ in range(round(self._limit_s / _TICK_S)):
            done, _waiting = await asyncio.wait({outcome}, timeout=_TICK_S)
            if done:
                return outcome.result()
        return Outcome(ok=False, reason="the page did not answer")


class Front:
    """The page that shows the running cell: what it can do, and what it is asked to do.

    Any thread may call it; no call waits.

    Args:
        say: Sends a message.
        running_cell: Returns the id of the cell that is running, None where that is not known.
    """

    def __init__(self, say: Callable[[Data], None], running_cell: Callable[[], str | None]) -> None:
        self._say = say
        self._running_cell = running_cell
        self._abilities: frozenset[str] = frozenset()
        self._numbers = itertools.count(1)
        self._open: dict[str, Future[Outcome]] = {}
        self._sources: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def abilities(self) -> frozenset[str]:
        """What the page can do: "insert", "replace". Empty where no page of ours looks on."""
        return self._abilities

    def insert(self, cells: Iterable[NewCell], *, below: str | None = None) -> Edit | None:
        """Put cells below another, which no text of the user's makes way for.

        Args:
            cells: From top to bottom.
            below: The id of the cell above; None: the one that is running.

        Returns:
            The edit; None where no page can. `InteractiveShell.set_next_input` is the way there.
        """
        if "insert" not in self._abilities:
            return None
        rows = [{"kind": cell.kind, "source": cell.source} for cell in cells]
        return self._ask("insert", cell_id=below or self._running_cell(), cells=rows)

    def replace(self, cell_id: str, source: str, *, based_on: str) -> Edit | None:
        """Put `source` into a cell, as long as it still reads `based_on`.

        Returns:
            The edit; None where no page can.
        """
        if "replace" not in self._abilities:
            return None
        return self._ask("replace", cell_id=cell_id, digest=digest(based_on), source=source)

    def source_of(self, cell_id: str) -> str | None:
        """Return what the page last said stands in a cell; None where it said nothing of late."""
        with self._lock:
            return self._sources.get(cell_id)

    def heard(self, data: Mapping[str, Any]) -> None:
        """Take in a page's message about itself, a cell or an edit."""
        match data:
            case {"type": "hello", "abilities": [*abilities]}:
                self._abilities = frozenset(map(str, abilities))
            case {"type": "cell", "cell_id": str(cell_id), "source": str(source)}:
                self._keep(cell_id, source)
            case {"type": "done", "id": str(number), "ok": bool(ok)}:
                self._settle(number, Outcome(ok=ok, reason=str(data.get("reason", ""))))

    def gone(self) -> None:
        """Forget the page."""
        self._abilities = frozenset()
        for number in list(self._open):
            self._settle(number, Outcome(ok=False, reason="the page has gone"))

    def _ask(self, kind: str, **fields: Any) -> Edit:
        number = str(next(self._numbers))
        outcome: Future[Outcome] = Future()
        outcome.set_running_or_notify_cancel()  # whoever stops waiting for it does not unmake it
        with self._lock:
            self._open[number] = outcome
        self._say({"type": kind, "id": number, **fields})
        return Edit(outcome)

    def _settle(self, number: str, outcome: Outcome) -> None:
        with self._lock:
            asked = self._open.pop(number, None)
        if asked is not None:
            asked.set_result(outcome)

    def _keep(self, cell_id: str, source: str) -> None:
        with self._lock:
            self._sources[cell_id] = source
            self._sources.move_to_end(cell_id)
            while len(self._sources) > _MOST_SOURCES:
                self._sources.popitem(last=False)


def digest(source: str) -> str:
    """Return the mark of a cell's text: SHA-256 of its UTF-8, in hex."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()


class Status:
    """One kernel's line to its pages.

    Args:
        shell: Runs the cells.
        answers: For a page's questions, by their type, what is said in reply.
        first: Returns the state for a page that asks before there was anything to say; loading waits for nothing.

    Attributes:
        front: The page as the commands see it.
        state: What was said last, or would have been.
    """

    def __init__(
        self, shell: Any, answers: Mapping[str, Answer] | None = None, first: Callable[[], State] = State
    ) -> None:
        self._shell = shell
        self._first = first
        self._answers = answers or {}
        self._comm: Any = None
        self.state = State()
        self._said: State | None = None
        self._is_closed = False
        self._lock = threading.RLock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: list[Mapping[str, Any]] = []
        self.front = Front(self._send, self._running_cell)

    def say(self, state: State) -> None:
        """Send the state, if it changed."""
        with self._lock:
            self.state = state
            if self._is_closed or state == self._said or (self._comm is None and not self._is_watched()):
                return
            self._said = state
            if self._comm is None:
                self._open(state.message())
            else:
                self._send(state.message())

    def open_picker(self) -> bool:
        """Have the page open its list of models; return whether there is a page to do so."""
        if not self.front.abilities:
            return False
        self._send({"type": "open_picker"})
        return True

    def close(self) -> None:
        """Say that there is nothing more to show, nor will there be: a turn under way may end after this."""
        with self._lock:
            self._is_closed = True
            comm, self._comm, self._said = self._comm, None, None
        if comm is not None:
            comm.close()
        self.front.gone()

    def _is_watched(self) -> bool:
        """Whether a front end asked for this cell: a tool that runs notebooks would warn of a comm it does not know."""
        return bool(self._parent().get("content", {}).get("allow_stdin"))

    def _running_cell(self) -> str | None:
        cell_id = self._parent().get("metadata", {}).get("cellId")
        return cell_id if isinstance(cell_id, str) else None

    def _parent(self) -> Mapping[str, Any]:
        if getattr(self._shell, "kernel", None) is None:
            return {}
        parent: Mapping[str, Any] = self._shell.get_parent() or {}
        return parent

    def _open(self, first: Data) -> None:
        from comm import create_comm

        self._comm = create_comm(target_name=TARGET, data=first)
        self._comm.on_msg(lambda message: self._heard(message["content"].get("data")))

    def _send(self, data: Data) -> None:
        with self._lock:
            if self._comm is not None:
                self._comm.send(data)

    def _heard(self, data: Any) -> None:
        if not isinstance(data, Mapping):
            return
        self.front.heard(data)
        kind = str(data.get("type"))
        if kind == "hello":
            if self.state == State():
                self.state = self._said = self._first()
            self._send(self.state.message())
        elif kind in self._answers and data not in self._asked:  # the answer that is on its way goes to every page
            self._asked.append(data)
            task = asyncio.get_running_loop().create_task(self._reply(self._answers[kind], data))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _reply(self, answer: Answer, data: Mapping[str, Any]) -> None:
        try:
            async for said in answer(data):
                self._send(said)
        finally:
            self._asked.remove(data)
