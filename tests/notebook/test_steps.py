"""One body of work, waiting by blocking or by awaiting."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from larik_nb.notebook import steps
from larik_nb.notebook.asking import NO, YES, Choice, Question, drive


class Given:
    """A pause that brings what it was given, or raises it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def block(self) -> Any:
        if isinstance(self._value, BaseException):
            raise self._value
        return self._value

    async def rest(self) -> Any:
        await asyncio.sleep(0)
        return self.block()


def work(*pauses: Given) -> steps.Steps[list[Any]]:
    got: list[Any] = []
    for pause in pauses:
        try:
            got.append((yield pause))
        except (ValueError, KeyboardInterrupt) as error:
            got.append(type(error).__name__)
    return got


DRIVERS = [steps.run, lambda work: asyncio.run(steps.arun(work))]


@pytest.mark.parametrize("drive_it", DRIVERS, ids=["blocking", "awaiting"])
def test_what_a_pause_brings_comes_back_where_it_was_yielded(drive_it: Any) -> None:
    assert drive_it(work(Given(1), Given(ValueError("no")), Given(None), Given(KeyboardInterrupt()))) == [
        1,
        "ValueError",
        None,
        "KeyboardInterrupt",
    ]


@pytest.mark.parametrize("drive_it", DRIVERS, ids=["blocking", "awaiting"])
def test_what_the_work_does_not_catch_is_raised(drive_it: Any) -> None:
    with pytest.raises(LookupError):
        drive_it(work(Given(LookupError())))


class Forever:
    async def rest(self) -> None:
        await asyncio.sleep(60)


def test_a_cancel_is_an_interrupt_of_the_work() -> None:
    async def cancelled() -> list[Any]:
        task = asyncio.create_task(steps.arun(work(Forever())))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(cancelled()) == ["KeyboardInterrupt"]


def test_a_cancel_that_comes_while_plain_code_ends_is_not_lost() -> None:
    async def cancelled() -> None:
        def late() -> steps.Steps[None]:
            yield Given(1)
            task.cancel()  # as an interrupt does while the last of it runs

        task = asyncio.create_task(steps.arun(late()))
        await task

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cancelled())


ALLOW = Question(
    "Allow bash",
    choices=(
        Choice("once", "Allow once", "y"),
        Choice("session", "Allow this session", "a"),
        Choice("deny", "Deny", "n"),
    ),
    default="deny",
)


@pytest.mark.parametrize(
    ("question", "prompt"),
    [
        (Question("Go on?", choices=(YES, NO), default="no"), "Go on? [y/N] "),
        (ALLOW, "Allow bash [y Allow once, a Allow this session, n Deny] "),
        (Question("Key", secret=True, detail="not shown"), "Key (not shown): "),
        (Question("Name"), "Name: "),
    ],
)
def test_a_question_says_what_may_be_typed(question: Question, prompt: str) -> None:
    assert question.prompt == prompt


@pytest.mark.parametrize(
    ("typed", "means"),
    [("y", "once"), ("A", "session"), ("", "deny"), (" deny ", "deny"), ("allow this", "session"), ("maybe", None)],
)
def test_an_answer_may_be_a_key_a_value_or_the_beginning_of_words(typed: str, means: str | None) -> None:
    assert ALLOW.meant(typed) == means


def test_what_stays_names_the_answer_and_never_a_secret() -> None:
    assert ALLOW.told("session") == "Allow bash: Allow this session"
    assert Question("Key for x", secret=True).told("sk-1") == "Key for x: given, not shown"
    assert Question("Key for x", secret=True).told("") == "Key for x: left"


def test_a_talk_gets_its_answers_from_a_function() -> None:
    def talk() -> Any:
        first = yield ALLOW
        second = yield Question("Why?")
        return first, second

    assert drive(talk(), lambda question: question.default or "because") == ("deny", "because")
