"""A question as a card: text, what to know, and a button for each answer, or a field for a secret."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from traitlets import Bool, List, Unicode

from larik_nb.notebook import asking, display
from larik_nb.notebook.widgets._assets import css, esm
from larik_nb.notebook.widgets._base import Panel

if TYPE_CHECKING:
    from larik_nb.notebook.asking import Question
    from larik_nb.notebook.display import Bundle


class Card(Panel):
    """Shows a `Question`. Once `answered` is set, `answer` is what was chosen or typed.

    A secret travels in one message and is in no trait, so that no saved notebook can hold it.
    """

    _esm = esm("question")
    _css = css("question")

    text = Unicode().tag(sync=True)
    detail = Unicode().tag(sync=True)
    secret = Bool().tag(sync=True)
    choices: List[Any] = List().tag(sync=True)
    is_done = Bool(default_value=False).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        self.question: Question | None = None
        self.answer: str = ""
        self.answered = threading.Event()
        self._is_stopped = False
        super().__init__(**traits)

    @classmethod
    def of(cls, question: Question) -> Card:
        """Return the card of a question."""
        choices = [
            {"value": c.value, "label": c.label, "key": c.key, "is_default": c.value == question.default}
            for c in question.choices
        ]
        card = cls(text=question.text, detail=question.detail, secret=question.secret, choices=choices)
        card.question, card.answer = question, question.default
        return card

    def twin(self) -> Bundle:
        """Return the question, then the one line that it leaves."""
        if self._is_stopped:
            return {
                "text/plain": f"{self.text}: interrupted",
                "text/markdown": display.small(f"{self.text}: interrupted"),
            }
        if self.answered.is_set() and self.question is not None:
            return asking.one_line(self.question, self.answer)
        return {"text/plain": self.text, "text/markdown": display.small(self.text)}

    def heard(self, message: dict[str, Any]) -> None:
        """Take the first answer; one that is none of the choices is dropped."""
        value = message.get("value")
        if message.get("type") != "answer" or not isinstance(value, str) or self.answered.is_set():
            return
        if self.secret or value in {choice["value"] for choice in self.choices}:
            self.answer = value.strip()
            self.is_done = True
            self.answered.set()

    def stop(self) -> None:
        """End without an answer: the cell was interrupted."""
        self._is_stopped = True
