"""The line to the page: what it is told, what it is asked to do, and what it answers."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any

import comm
import pytest

from larik_nb.notebook import picking
from larik_nb.notebook.picker import Shelf
from larik_nb.notebook.status import Edit, Front, NewCell, Outcome, State, Status
from larik_nb.providers._listing import Listing
from larik_nb.routing.budget import BudgetLimits

HELLO = {"type": "hello", "version": 2, "abilities": ["insert", "replace"]}


class Page:
    """The other end of a front."""

    def __init__(self, running: str | None = "cell-1") -> None:
        self.told: list[dict[str, Any]] = []
        self.front = Front(self.told.append, lambda: running)

    def does(self, number: str, reason: str = "") -> None:
        self.front.heard({"type": "done", "id": number, "ok": not reason, "reason": reason})


@pytest.fixture
def page() -> Page:
    """A page that can do everything."""
    page = Page()
    page.front.heard(HELLO)
    return page


def settled(edit: Edit | None) -> Outcome:
    assert edit is not None

    async def outcome() -> Outcome:
        return await edit

    return asyncio.run(outcome())


def test_nothing_is_asked_of_a_page_that_said_nothing() -> None:
    page = Page()

    assert page.front.insert([NewCell(source="1")]) is None
    assert page.front.replace("a", "2", based_on="1") is None
    assert page.told == []


def test_a_page_is_asked_only_for_what_it_can() -> None:
    page = Page()
    page.front.heard({**HELLO, "abilities": ["insert"]})

    assert page.front.replace("a", "2", based_on="1") is None
    assert page.front.insert([NewCell(source="1")]) is not None


def test_cells_go_below_the_running_one_unless_told_otherwise(page: Page) -> None:
    page.front.insert([NewCell(source="x = 1"), NewCell(kind="markdown", source="# x")])
    page.front.insert([NewCell(source="y")], below="cell-7")

    first, second = page.told
    assert first == {
        "type": "insert",
        "id": "1",
        "cell_id": "cell-1",
        "cells": [{"kind": "code", "source": "x = 1"}, {"kind": "markdown", "source": "# x"}],
    }
    assert (second["id"], second["cell_id"]) == ("2", "cell-7")


def test_a_replacement_names_the_text_it_was_made_for(page: Page) -> None:
    page.front.replace("cell-2", "new", based_on="alt: ü")

    assert page.told[0]["digest"] == hashlib.sha256("alt: ü".encode()).hexdigest()


def test_an_edit_awaits_the_page_on_whichever_thread_that_answers(page: Page) -> None:
    edit = page.front.replace("cell-2", "new", based_on="old")
    threading.Timer(0.05, page.does, ["1", "the cell was changed meanwhile"]).start()

    assert settled(edit) == Outcome(ok=False, reason="the cell was changed meanwhile")


def test_edits_settle_apart(page: Page) -> None:
    first, second = (page.front.insert([NewCell(source=text)]) for text in "ab")
    page.does("2")
    page.does("1", "the cell is gone")

    assert settled(first) == Outcome(ok=False, reason="the cell is gone")
    assert settled(second) == Outcome(ok=True)


def test_a_page_that_never_answers_is_given_up() -> None:
    from concurrent.futures import Future

    assert settled(Edit(Future(), limit_s=0.2)).reason == "the page did not answer"


def test_an_answer_that_comes_twice_or_too_late_changes_nothing(page: Page) -> None:
    edit = page.front.insert([NewCell(source="a")])
    page.does("1")
    page.does("1", "no")
    page.does("99")

    assert settled(edit).ok


def test_whoever_does_not_wait_is_told(page: Page) -> None:
    edit = page.front.insert([NewCell(source="a")])
    assert edit is not None
    heard: list[Outcome] = []
    edit.then(heard.append)
    page.does("1")

    assert heard == [Outcome(ok=True)]


def test_giving_up_the_wait_leaves_the_edit_to_settle(page: Page) -> None:
    """An interrupted cell no longer waits; the page's answer that comes later finds its place."""
    edit = page.front.insert([NewCell(source="a")])
    assert edit is not None

    async def interrupted() -> None:
        async def wait() -> Outcome:
            return await edit

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(interrupted())
    page.does("1")
    assert settled(edit).ok


def test_a_page_that_goes_settles_what_it_was_asked(page: Page) -> None:
    edit = page.front.insert([NewCell(source="a")])
    page.front.gone()

    assert settled(edit) == Outcome(ok=False, reason="the page has gone")
    assert page.front.abilities == frozenset()


def test_the_live_text_of_a_cell_is_kept_for_a_while(page: Page) -> None:
    for number in range(20):
        page.front.heard({"type": "cell", "cell_id": f"c{number}", "source": f"x = {number}"})

    assert page.front.source_of("c19") == "x = 19"
    assert page.front.source_of("c0") is None
    assert page.front.source_of("never") is None


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"type": "hello"},
        {"type": "hello", "abilities": "insert"},
        {"type": "cell", "cell_id": 3, "source": "x"},
        {"type": "done", "id": "1", "ok": "yes"},
        {"type": "reset"},
    ],
)
def test_what_no_page_says_is_passed_over(data: Mapping[str, Any]) -> None:
    page = Page()
    page.front.heard(data)

    assert page.front.abilities == frozenset()


@pytest.mark.parametrize(
    ("usd", "cap", "level"),
    [(0, None, "ok"), (1.59, 2, "ok"), (1.6, 2, "warn"), (0.1 * 3, 0.3, "stop"), (9, 2, "stop"), (0, 0, "stop")],
)
def test_how_near_the_budget_is(usd: float, cap: float | None, level: str) -> None:
    assert BudgetLimits(session_usd=cap).level(usd) == level


# -- the comm ---------------------------------------------------------------------------------------------------------
class FakeComm:
    made: list[FakeComm]

    def __init__(self, *, data: dict[str, Any], **_: Any) -> None:
        self.sent = [data]
        self.closed = False
        FakeComm.made.append(self)

    def on_msg(self, heard: Any) -> None:
        self._heard = heard

    def says(self, data: dict[str, Any]) -> None:
        self._heard({"content": {"data": data}})

    def send(self, data: dict[str, Any]) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.closed = True


class Shell:
    """A shell in a kernel whose cell was run by a front end, or by a tool."""

    kernel = object()

    def __init__(self, *, watched: bool = True) -> None:
        self._parent = {"content": {"allow_stdin": watched}, "metadata": {"cellId": "cell-9"}}

    def get_parent(self) -> dict[str, Any]:
        return self._parent


@pytest.fixture
def comms(monkeypatch: pytest.MonkeyPatch) -> list[FakeComm]:
    FakeComm.made = []
    monkeypatch.setattr(comm, "create_comm", FakeComm)
    return FakeComm.made


def test_a_state_is_said_once(comms: list[FakeComm]) -> None:
    status = Status(Shell())
    status.say(State(model="a/b"))
    status.say(State(model="a/b"))
    status.say(State(model="a/b", running=True))

    assert [state["running"] for state in comms[0].sent] == [False, True]


def test_a_tool_that_runs_notebooks_hears_of_no_comm(comms: list[FakeComm]) -> None:
    status = Status(Shell(watched=False))
    status.say(State(model="a/b"))

    assert comms == []
    assert not status.open_picker()


def test_an_open_line_carries_what_no_cell_says(comms: list[FakeComm]) -> None:
    """A model chosen in the page's dialog is said at once, although no cell runs then."""
    shell = Shell()
    status = Status(shell)
    status.say(State(model="a/b"))
    shell._parent = {"content": {"comm_id": "x"}}
    status.say(State(model="a/c"))

    assert comms[0].sent[-1]["model"] == "a/c"


def test_a_hello_is_answered_with_the_state_of_now(comms: list[FakeComm]) -> None:
    status = Status(Shell())
    status.say(State(model="a/b"))
    comms[0].says(HELLO)

    assert comms[0].sent[-1] == State(model="a/b").message()
    assert status.front.abilities == {"insert", "replace"}
    assert status.front.insert([NewCell(source="x")]) is not None
    assert comms[0].sent[-1]["cell_id"] == "cell-9"
    assert status.open_picker()
    assert comms[0].sent[-1] == {"type": "open_picker"}


def test_a_question_is_answered_when_its_answer_is_there(comms: list[FakeComm]) -> None:
    async def models(data: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        await asyncio.sleep(0)
        yield {"type": "models", "models": [], "asking": True}
        yield {"type": "models", "models": [data["type"]], "asking": False}

    async def cell() -> None:
        comms[0].says({"type": "models"})
        assert len(comms[0].sent) == 1
        await asyncio.sleep(0.01)

    status = Status(Shell(), {"models": models})
    status.say(State())
    asyncio.run(cell())

    assert [said["models"] for said in comms[0].sent[1:]] == [[], ["models"]]


def test_closing_ends_it_for_good(comms: list[FakeComm]) -> None:
    """A turn that is under way while the extension is taken out has something to say after it."""
    status = Status(Shell())
    status.say(State(model="a/b"))
    status.close()
    status.say(State(model="c/d"))

    assert [made.closed for made in comms] == [True]


@pytest.mark.parametrize("data", [None, [], "hello", 5, {"type": ["hello"]}, {"type": "done", "id": 1, "ok": "yes"}])
def test_what_is_no_message_is_not_heard(comms: list[FakeComm], data: Any) -> None:
    status = Status(Shell())
    status.say(State())
    said = len(comms[0].sent)
    comms[0]._heard({"content": {"data": data}})
    comms[0]._heard({"content": {}})

    assert len(comms[0].sent) == said
    assert not status.front.abilities


def test_a_flood_of_one_question_is_answered_once(comms: list[FakeComm]) -> None:
    asked: list[Mapping[str, Any]] = []

    async def models(data: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        asked.append(data)
        yield {"type": "models", "models": []}

    async def page() -> None:
        for _ in range(50):
            comms[0]._heard({"content": {"data": {"type": "models"}}})
        await asyncio.sleep(0.05)
        comms[0]._heard({"content": {"data": {"type": "models"}}})
        await asyncio.sleep(0.05)

    status = Status(Shell(), {"models": models})
    status.say(State())
    asyncio.run(page())

    assert len(asked) == 2


# -- the list of models -----------------------------------------------------------------------------------------------
def test_a_page_is_told_what_is_known_of_models_and_the_ones_that_can_be_asked_first() -> None:
    from larik_nb.config import Config

    shelf = Shelf(Config.load({"providers": {"anthropic": {"api_key": "sk-ant-test"}}}, env={}))
    shelf.heard(Listing(provider="openai", error="timed out"))
    said = picking.listed(shelf, asking=True)

    assert said["problem"] == "openai: timed out"
    assert said["asking"] is True
    ready = [row["ready"] for row in said["models"]]
    assert True in ready
    assert ready == sorted(ready, reverse=True)
    assert {"spec", "price", "state"} <= said["models"][0].keys()


def test_a_page_learns_what_is_configured_before_any_turn(comms: list[FakeComm]) -> None:
    """Loading waits for no settings; the page's first question is answered by them."""
    asked: list[str] = []

    def first() -> State:
        asked.append("settings")
        return State(model="scripted/demo", budget_usd=2.0)

    status = Status(Shell(), first=first)
    status.say(State())
    assert asked == []
    comms[0].says(HELLO)
    assert comms[0].sent[-1] == State(model="scripted/demo", budget_usd=2.0).message()
    comms[0].says(HELLO)
    assert asked == ["settings"]
