"""The model picker in the page: a search over every model there is; choosing one does what `%model NAME` does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from traitlets import Dict, List

from larik_nb.errors import LarikError
from larik_nb.notebook import tables
from larik_nb.notebook.picker import Shelf
from larik_nb.notebook.widgets._assets import css, esm
from larik_nb.notebook.widgets._base import Panel
from larik_nb.notebook.widgets._filling import Filling

if TYPE_CHECKING:
    from larik_nb.config import Config
    from larik_nb.notebook.display import Bundle

_numbers = count(1)


class PickerPanel(Panel):
    """The model picker.

    Args:
        config: The settings.
        now: Says which model is asked, with what is known of it.
        choose: Goes on with another model and says so; raises LarikError.
    """

    _esm = esm("picker", "list")
    _css = css("picker", "list")
    view = Dict().tag(sync=True)
    rows: List[dict[str, Any]] = List().tag(sync=True)

    def __init__(self, config: Config, now: str, choose: Callable[[str], str]) -> None:
        self._text = now
        self._choose = choose
        self._note = ""
        self._name = f"{next(_numbers)}"
        self._serial = count(1)
        self.shelf = Shelf(config)
        self._filling = Filling(self.shelf, config, self._filled)
        super().__init__(view=self._seen(), rows=self.shelf.rows())

    def fill(self) -> None:
        """Ask providers for their models, in the background."""
        self._filling.start()
        self.view = self._seen()

    def twin(self) -> Bundle:
        """Return which model is asked, or what choosing another said."""
        return tables.with_text([], self._text)

    def heard(self, message: dict[str, Any]) -> None:
        """Carry out what was pressed."""
        match message:
            case {"type": "choose", "spec": str(spec)}:
                self._chosen(spec)
            case {"type": "leave"}:
                self.close()

    def close(self) -> None:
        """Leave one line."""
        self._filling.stop()
        super().close()

    def drop(self) -> None:
        """Take it away and leave its output as it is."""
        self._filling.stop()
        super().drop()

    def _chosen(self, spec: str) -> None:
        try:
            self._text = self._choose(spec)
        except LarikError as error:
            self._note = str(error)
            self.view = self._seen()
            return
        self.close()

    def _filled(self) -> None:
        with self._one_at_a_time:
            if self.is_open:
                self.rows = self.shelf.rows()
                self.view = self._seen()

    def _seen(self) -> dict[str, Any]:
        asking = sorted(self.shelf.asking)
        silent = [f"{row['name']}: {row['text']}" for row in self.shelf.providers() if row["state"] == "failed"]
        progress = [f"asking {', '.join(asking)}"] if asking else []
        return {
            "now": self._text,
            "note": self._note,
            "progress": " · ".join([*progress, *silent]),
            "id": self._name,
            "serial": next(self._serial),
        }
