"""Providers asked for their models while the kernel does other things: each answer comes back on the kernel's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from larik_nb import portal
from larik_nb.errors import ConfigError
from larik_nb.providers import _listing

if TYPE_CHECKING:
    from larik_nb.config import Config
    from larik_nb.notebook.picker import Shelf
    from larik_nb.providers._listing import Listing


class Filling:
    """A shelf on its way to be full.

    Args:
        shelf: Filled.
        config: Says whom to ask.
        changed: Called on the caller's loop after each answer; on the portal's thread where the caller has no loop.
    """

    def __init__(self, shelf: Shelf, config: Config, changed: Callable[[], None]) -> None:
        self._shelf = shelf
        self._config = config
        self._changed = changed
        self._work: Future[None] | None = None
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    def start(self) -> None:
        """Ask; returns at once."""
        try:
            chosen, _ = _listing.asked_of(self._config)
        except ConfigError:  # what is wrong with a provider is on the shelf already
            return
        self._shelf.ask(here.name for here in chosen)
        self._work = asyncio.run_coroutine_threadsafe(self._ask(), portal.loop())

    def stop(self) -> None:
        """Wait for nobody any more."""
        if self._work is not None:
            self._work.cancel()

    async def _ask(self) -> None:
        async for listing in _listing.arriving(self._config):
            if self._loop is None:
                self._heard(listing)
            elif not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._heard, listing)

    def _heard(self, listing: Listing) -> None:
        if self._work is not None and self._work.cancelled():
            return
        self._shelf.heard(listing)
        self._changed()
