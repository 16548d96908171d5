"""The cost meter in the page: drawn anew when a turn begins or ends, at most twice a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from traitlets import Dict

from larik_nb.notebook import meter
from larik_nb.notebook.widgets._assets import css, esm
from larik_nb.notebook.widgets._base import Panel

if TYPE_CHECKING:
    from larik_nb.notebook.display import Bundle
    from larik_nb.notebook.meter import Report

PAUSE_S = 0.5
"""Between two drawings."""


class MeterPanel(Panel):
    """The cost meter.

    Args:
        report: Returns what the conversation has cost by now.
        clock: Seconds that never go back.
        closed: Called once it is closed.
    """

    _esm = esm("meter")
    _css = css("meter")
    view = Dict().tag(sync=True)

    def __init__(
        self,
        report: Callable[[], Report],
        *,
        clock: Callable[[], float] = time.monotonic,
        closed: Callable[[MeterPanel], None] = lambda _: None,
    ) -> None:
        self._report = report
        self._clock = clock
        self._closed = closed
        self._running = False
        self._drawn = clock()
        self._waiting: asyncio.TimerHandle | None = None
        super().__init__(view=meter.view(report(), running=False))

    def twin(self) -> Bundle:
        """Return the tables."""
        report = self._report()
        return {"text/plain": meter.text(report), "text/markdown": meter.rich(report)}

    def heard(self, message: dict[str, Any]) -> None:
        """Close when asked to."""
        if message.get("type") == "leave":
            self.close()

    def close(self) -> None:
        """Leave the tables as markdown."""
        self._stop()
        super().close()

    def drop(self) -> None:
        """Take it away and leave its output as it is."""
        self._stop()
        super().drop()

    def changed(self, *, running: bool) -> None:
        """A turn has begun or ended: draw, now or when it is time."""
        if not self.is_open or self._waiting is not None:
            self._running = running
            return
        self._running = running
        left_s = self._drawn + PAUSE_S - self._clock()
        if left_s <= 0:
            self._draw()
            return
        try:
            self._waiting = asyncio.get_running_loop().call_later(left_s, self._draw)
        except RuntimeError:  # no loop to come back on
            self._draw()

    def _draw(self) -> None:
        self._waiting = None
        if self.is_open:
            self._drawn = self._clock()
            self.view = meter.view(self._report(), running=self._running)

    def _stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        self._closed(self)
