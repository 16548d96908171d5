"""The routing wizard in the page: what is pressed goes to `notebook.wizard`, and what that says comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from traitlets import Dict

from larik_nb import config as settings
from larik_nb.errors import ConfigError
from larik_nb.notebook import display, routing, tables
from larik_nb.notebook.picker import Shelf
from larik_nb.notebook.widgets._assets import css, esm
from larik_nb.notebook.widgets._base import Panel
from larik_nb.notebook.widgets._filling import Filling
from larik_nb.notebook.wizard import COMMANDS, KEYS, Wizard

if TYPE_CHECKING:
    from larik_nb.agent.session import Turn
    from larik_nb.config import Config, Edited
    from larik_nb.notebook.display import Bundle

_OPEN: WeakSet[RoutingPanel] = WeakSet()
_numbers = count(1)


class RoutingPanel(Panel):
    """The routing wizard.

    Args:
        config: The settings.
        table: Returns the text twin's table and the lines under it, as the settings are.
        turns: What was asked in this notebook.

    Raises:
        ConfigError: The settings file cannot be read.
    """

    _esm = esm("wizard", "list")
    _css = css("wizard", "list")
    view = Dict().tag(sync=True)

    def __init__(
        self,
        config: Config,
        table: Callable[[], tuple[str, routing.Rows]],
        turns: Callable[[], Sequence[Turn]] = tuple,
    ) -> None:
        self._config = config
        self._table = table
        self._result: list[str] = []
        self._name = f"{next(_numbers)}"
        self._serial = count(1)
        self.wizard = Wizard.of(config, Shelf(config), turns)
        self._filling = Filling(self.wizard.shelf, config, self._filled)
        super().__init__(view=self._seen())
        _OPEN.add(self)

    def fill(self) -> None:
        """Ask providers for their models, in the background."""
        self._filling.start()
        self._draw()

    def twin(self) -> Bundle:
        """Return the table of roles; once it was saved, what changed and where."""
        if self._result:
            return tables.with_text([], "\n".join(self._result))
        text, rows = self._table()
        return tables.with_text(rows, text)

    def heard(self, message: dict[str, Any]) -> None:
        """Carry out what was pressed."""
        match message:
            case {"type": "do", "command": str(command), "values": dict(values)} if command in COMMANDS:
                self._do(command, values)
            case {"type": "list", "role": str(role)}:
                rows = self.wizard.candidates(role)
                self.send({"type": "choices", "role": role, "about": self.wizard.about(role), "rows": rows})
            case {"type": "save"}:
                self._save()
            case {"type": "leave"}:
                self.close()

    def close(self) -> None:
        """Leave the table, or what was saved, as markdown."""
        self._filling.stop()
        _OPEN.discard(self)
        super().close()

    def drop(self) -> None:
        """Take it away and leave its output as it is."""
        self._filling.stop()
        _OPEN.discard(self)
        super().drop()

    def refresh(self) -> None:
        """Take in what the settings file says now."""
        with self._one_at_a_time:
            try:
                base, _ = settings.current(self._config.env)
            except ConfigError as error:
                self.wizard.note = error.message
            else:
                self.wizard.rebase(base)
            self._draw()

    def _do(self, command: str, values: dict[str, Any]) -> None:
        self.wizard.do(command, **values)
        self._draw()

    def _save(self) -> None:
        edited = self.wizard.save()
        if edited is None:
            self._draw()
            return
        self._result = self._told(edited)
        self.close()
        refresh()

    def _told(self, edited: Edited) -> list[str]:
        """Return what saving changed, and how to say the same as text."""
        words = self.wizard.words
        lines = [display.one_line(line) for line in routing.saved_lines(edited, self.wizard.draft)]
        return [*lines, *([f"the same as text: {words}"] if words else [])]

    def _filled(self) -> None:
        with self._one_at_a_time:
            if self.is_open:
                self._draw()

    def _draw(self) -> None:
        self.view = self._seen()

    def _seen(self) -> dict[str, Any]:
        keys = [list(row) for row in KEYS]
        return {**self.wizard.view(), "keys": keys, "id": self._name, "serial": next(self._serial)}


def refresh() -> None:
    """Let every open wizard take in what the settings file says now."""
    for panel in list(_OPEN):
        panel.refresh()
