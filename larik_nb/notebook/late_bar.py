"""The bar over an answer, for answers that take long enough to want one, its import paid for while they are awaited."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from larik_nb.notebook import widgets

if TYPE_CHECKING:
    from types import ModuleType

    from larik_nb.notebook.render import Answer, Screen
    from larik_nb.notebook.widgets.bar import Bar

AFTER_S = 0.7
"""Seconds an answer must have taken for a bar to be worth its import and its messages."""


class LateBar:
    """A `Gauge` that is a widget from some time on, and until then nothing."""

    def __init__(self, answer: Answer, *, spent: str) -> None:
        self._answer = answer
        self._spent = spent
        self._loading: threading.Thread | None = None
        self._module: ModuleType | None = None
        self._bar: Bar | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the bar has taken the output over."""
        return self._bar is not None

    @property
    def is_stopped(self) -> bool:
        """Whether its button was pressed."""
        return self._bar is not None and self._bar.stopped.is_set()

    def follow(self, screen: Screen, id: str) -> int:
        """Show the bar in the output `id` once it is time; then tell it what is new."""
        if self._bar is not None:
            return self._bar.follow()
        if self._answer.clock() - self._answer.started < AFTER_S:
            return 0
        if self._loading is None:
            self._loading = threading.Thread(target=self._load, name="larik-bar", daemon=True)
            self._loading.start()
        if self._module is None:
            return 0
        self._bar = self._module.Bar(self._answer, spent=self._spent)
        self._bar.show(screen, id, update=True)
        return 1

    def _load(self) -> None:
        try:
            self._module = widgets.load("bar")
        except ImportError:  # anywidget is there and broken: the waiting line does
            self._module = None

    def drop(self) -> None:
        """Take the bar out of the page."""
        if self._bar is not None:
            self._bar.drop()
