"""The thin bar over an answer under way: who is asked, for how long, what was spent, and Stop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from traitlets import Float, List, Unicode

from larik_nb.notebook import display
from larik_nb.notebook.widgets._assets import css, esm
from larik_nb.notebook.widgets._base import Panel

if TYPE_CHECKING:
    from larik_nb.notebook.display import Bundle
    from larik_nb.notebook.render import Answer


class Bar(Panel):
    """Follows an `Answer`. The seconds tick in the page: no message is sent for them.

    Attributes:
        stopped: The user pressed Stop.
    """

    _esm = esm("bar")
    _css = css("bar")

    model = Unicode().tag(sync=True)
    phase = Unicode().tag(sync=True)
    elapsed_s = Float(0.0).tag(sync=True)
    spent = Unicode().tag(sync=True)
    lines: List[Any] = List().tag(sync=True)

    def __init__(self, answer: Answer, *, spent: str) -> None:
        self._answer = answer
        self.stopped = threading.Event()
        super().__init__(model=answer.model, spent=spent, **self._state())

    def _state(self) -> dict[str, Any]:
        answer = self._answer
        return {
            "phase": answer.phase,
            "lines": [*answer.above, *filter(None, [answer.thought if answer.has_text else ""])],
            "elapsed_s": round(answer.clock() - answer.started, 1),
        }

    def follow(self) -> int:
        """Tell the page what changed, and return how many messages that took."""
        state = self._state()
        if (state["phase"], state["lines"]) == (self.phase, self.lines):
            return 0
        with self.hold_sync():
            for name, value in state.items():
                setattr(self, name, value)
        return 1

    def twin(self) -> Bundle:
        """Return the line that stands where the bar is."""
        lines = [*self.lines, self._answer.waiting]
        return {"text/plain": "\n\n".join(lines), "text/markdown": "\n\n".join(map(display.small, lines))}

    def greeted(self) -> None:
        """Set the page's clock, also that of a page which was loaded anew."""
        self.elapsed_s = round(self._answer.clock() - self._answer.started, 1)

    def heard(self, message: dict[str, Any]) -> None:
        """Hear the button."""
        if message.get("type") == "stop":
            self.stopped.set()
