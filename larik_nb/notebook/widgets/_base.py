"""What the widgets share: the place they are shown in, the handshake with the page, and an end that leaves markdown.

Importing this costs about 0.15 s of CPU, once a process (`anywidget`, `ipywidgets`): import it only for a front end
that watches, and after the first frame.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import anywidget
from traitlets import Bool

from larik_nb.notebook.display import VIEW

if TYPE_CHECKING:
    from larik_nb.notebook.display import Bundle
    from larik_nb.notebook.render import Screen


class Panel(anywidget.AnyWidget):
    """A widget with a text twin.

    A subclass sets `_esm = esm("name")` and `_css = css("name")`, declares its traits, and says with `twin` what it
    reads like as text. Its JavaScript exports `panel(draw)`, see `static/common.js`.

    The page sends `{"type": "ready"}` when it has drawn the widget, and `live` is set in answer: only then is it
    known that a click reaches us now, though a cell may be running. A message may come on another thread than the
    cell's: `heard` is called for one message at a time, and what it changes must bear being read meanwhile.

    Attributes:
        live: The page has drawn the widget and its messages arrive.
    """

    live = Bool(default_value=False).tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        self._place: tuple[Screen, str] | None = None
        self._one_at_a_time = threading.RLock()
        self.became_live = threading.Event()
        super().__init__(**traits)
        self.on_msg(self._take)

    # -- for subclasses ---------------------------------------------------------------------------------------
    def twin(self) -> Bundle:
        """Return what the widget reads like as `text/plain` and `text/markdown`, as it is now."""
        raise NotImplementedError

    def heard(self, message: dict[str, Any]) -> None:
        """Act on what the page sent, `{"type": …}`; "ready" does not come here."""

    def greeted(self) -> None:
        """Act on the page having drawn it; also comes when the page was loaded anew."""

    # -- for those who show one -------------------------------------------------------------------------------
    @property
    def is_open(self) -> bool:
        """Whether the page may still have it."""
        return self.comm is not None

    def show(self, screen: Screen, id: str, *, update: bool = False) -> None:
        """Show it as the output `id`, a new one, or one that is there already and that it takes the place of.

        The twin goes along, for a front end without widgets and for a notebook that is saved meanwhile.
        """
        self._place = (screen, id)
        view = {"version_major": 2, "version_minor": 1, "model_id": self.model_id}
        draw = screen.update if update else screen.show
        draw({**self.twin(), VIEW: view}, id)

    def close(self) -> None:
        """Leave the twin in the widget's output, and take the widget out of the page and the saved notebook."""
        place, self._place = self._place, None
        if place is not None:
            screen, id = place
            screen.update(self.twin(), id)
        self.drop()

    def drop(self) -> None:
        """Take the widget away and leave its output as it is, for one whose output is being replaced anyway."""
        self._place = None
        if self.comm is not None:
            self.layout.close()  # a widget of its own, which nobody else would close
            super().close()

    def __del__(self) -> None:
        """Publish nothing at a time the collector chooses."""

    # -- the handshake ----------------------------------------------------------------------------------------
    def _handle_msg(self, msg: dict[str, Any]) -> None:
        """Take in what is well formed; a traceback would stand in whichever output the page has at hand."""
        data = msg["content"].get("data")
        if isinstance(data, dict) and data.get("method") in ("custom", "request_state"):
            super()._handle_msg(msg)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Leave the state as it is: a page of ours sends messages, and never sets what it is shown."""

    def _take(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if not isinstance(content, dict):
            return
        with self._one_at_a_time:
            if content.get("type") == "ready":
                if self.is_open:
                    with self.hold_sync():
                        self.greeted()
                        self.live = True
                self.became_live.set()
            else:
                self.heard(content)
