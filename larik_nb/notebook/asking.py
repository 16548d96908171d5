"""The one way to ask the user something, as good as the place allows, and never a wait for nobody.

In an async cell that somebody watches a card with buttons is shown. It counts once the page has said that it drew it,
for then its clicks arrive; where that takes too long, and where no widgets can be, the question is typed at
(`input`, `getpass`). Where nobody is there, the answer is the question's default.
"""

from __future__ import annotations

import asyncio
import getpass
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from larik_nb.notebook import display
from larik_nb.notebook.interrupts import at_once
from larik_nb.notebook.steps import Steps

if TYPE_CHECKING:
    from larik_nb.notebook.widgets.question import Card

T = TypeVar("T")

READY_S = 1.5
"""How long the page may take to draw a card before the question is typed at instead."""

_LOOK_S = 0.05
"""Seconds between two looks for an answer: an interrupt reaches a loop that sleeps only when it next wakes."""

_TRIES = 3


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer: its value, the words on its button, and the key that picks it."""

    value: str
    label: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """Something to ask.

    Attributes:
        text: One line, a question or what to fill in.
        choices: The answers there are. Of a secret: the first sends what was typed, the others are answers as usual.
        default: The answer where nobody is there, and of an empty line.
        detail: What to know before answering, as markdown of our own; of a secret, a few words.
        secret: Something is typed that must not be seen; what was typed is the answer.
    """

    text: str
    choices: Sequence[Choice] = ()
    default: str = ""
    detail: str = ""
    secret: bool = False

    @property
    def prompt(self) -> str:
        """The question as it is typed at."""
        keys = "/".join(c.key.upper() if c.value == self.default else c.key for c in self.choices if c.key)
        if self.secret and self.detail:
            return f"{self.text} ({self.detail}): "
        if self.secret or not keys:
            return f"{self.text}: "
        if len(self.choices) > 2:
            keys = ", ".join(f"{choice.key} {choice.label}" for choice in self.choices if choice.key)
        return f"{self.text} [{keys}] "

    def meant(self, typed: str) -> str | None:
        """Return the answer that was typed: a key, or the beginning of a value or label; None for anything else."""
        word = typed.strip().casefold()
        if self.secret:
            return typed.strip()
        if not word:
            return self.default
        for choice in self.choices:
            if word == choice.key.casefold():
                return choice.value
        near = (c for c in self.choices if c.value.casefold().startswith(word) or c.label.casefold().startswith(word))
        return next((choice.value for choice in near), None) if self.choices else typed.strip()

    def told(self, answer: str) -> str:
        """Return the line that stays: what was asked and how it was answered, never a secret."""
        label = next((choice.label for choice in self.choices if choice.value == answer), answer)
        if self.secret:
            label = "given, not shown" if answer else "left"
        return f"{self.text.rstrip(' ?:')}: {label}"


YES, NO = Choice("yes", "Yes", "y"), Choice("no", "No", "n")

Talk = Generator[Question, str, T]
"""Work that asks on its way."""


def put(shell: Any, talk: Talk[T]) -> Steps[T]:
    """Return the steps of `talk`, its questions put to whoever watches the cell."""
    try:
        question = next(talk)
        while True:
            question = talk.send((yield Ask(shell, question)))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # what the generator's type says it returns


def drive(talk: Talk[T], answer: Callable[[Question], str]) -> T:
    """Do what `talk` does, with answers from a function."""
    try:
        question = next(talk)
        while True:
            question = talk.send(answer(question))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # as above


class Ask:
    """A question on its way, as something that a cell's work waits for."""

    def __init__(self, shell: Any, question: Question) -> None:
        self._shell = shell
        self._question = question

    def block(self) -> str:
        """Ask, and let nobody else run."""
        return ask_blocking(self._shell, self._question)

    async def rest(self) -> str:
        """Ask, and let the loop run meanwhile."""
        return await ask(self._shell, self._question)


async def ask(shell: Any, question: Question) -> str:
    """Ask from an async cell: with a card, else by typing, else the default.

    Raises:
        KeyboardInterrupt: The user stopped the cell instead.
        asyncio.CancelledError: The same, while a card was waiting.
    """
    if not _somebody_is_there(shell):
        return question.default
    card = await _card(question)
    if card is None:
        with at_once():
            return _typed(shell, question)
    from larik_nb.notebook import render

    screen, place = render.ShellScreen(shell), render.new_id()
    card.show(screen, place)
    if await _is_answered(card):
        return card.answer
    with at_once():
        answer = _typed(shell, question)
    screen.update(one_line(question, answer), place)
    return answer


def ask_blocking(shell: Any, question: Question) -> str:
    """Ask from a cell that blocks, where no click would be heard: by typing, else the default.

    Raises:
        KeyboardInterrupt: The user stopped the cell instead.
    """
    return _typed(shell, question) if _somebody_is_there(shell) else question.default


def _somebody_is_there(shell: Any) -> bool:
    from larik_nb.notebook.place import Place

    return Place.of(shell).can_ask


# -- by typing --------------------------------------------------------------------------------------------------------
def _typed(shell: Any, question: Question) -> str:
    from IPython.core.error import StdinNotImplementedError

    if question.detail and not question.secret:
        shell.display_pub.publish(data={"text/plain": question.detail, "text/markdown": question.detail}, metadata={})
    read = getpass.getpass if question.secret else input
    try:
        for _ in range(_TRIES):
            answer = question.meant(read(question.prompt))
            if answer is not None:
                return answer
    except (StdinNotImplementedError, EOFError):  # nobody is there after all
        pass
    return question.default


# -- with a card ------------------------------------------------------------------------------------------------------
async def _is_answered(card: Card) -> bool:
    """Wait for the card's answer; False where the page does not draw it."""
    try:
        if not await _until(card.became_live.is_set, READY_S):
            return False
        return await _until(card.answered.is_set)
    except asyncio.CancelledError:
        card.stop()
        raise
    finally:
        card.close()


async def _card(question: Question) -> Card | None:
    from larik_nb.notebook import widgets

    if not widgets.available():
        return None
    try:
        module = await asyncio.to_thread(widgets.load, "question")
    except ImportError:
        return None
    card: Card = module.Card.of(question)
    return card


async def _until(is_so: Callable[[], bool], limit_s: float | None = None) -> bool:
    """Wait, at most `limit_s` seconds, in steps short enough for an interrupt to be heard."""
    until = None if limit_s is None else time.monotonic() + limit_s
    while not is_so():
        if until is not None and time.monotonic() >= until:
            return False
        await asyncio.sleep(_LOOK_S)
    return True


def one_line(question: Question, answer: str) -> display.Bundle:
    """Return what a question leaves in the notebook once it is answered."""
    told = question.told(answer)
    return {"text/plain": told, "text/markdown": display.small(told)}
