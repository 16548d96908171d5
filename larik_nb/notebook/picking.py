"""The list of models in JupyterLab's own dialog: what it is fed, and what choosing there does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from larik_nb.errors import LarikError
from larik_nb.notebook.picker import Shelf

if TYPE_CHECKING:
    from larik_nb.config import Config
    from larik_nb.notebook.magics import LarikMagics
    from larik_nb.providers._listing import Listing


async def models(magics: LarikMagics, _: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Tell a page the models: at once those of the catalog, then what the providers say that are set up."""
    try:
        config = magics.session(None).config
        shelf = Shelf(config)
        yield listed(shelf, asking=True)
        # On another thread: on this one run the cells, and the portal is waited for.
        for listing in await asyncio.to_thread(_listings, config):
            shelf.heard(listing)
    except LarikError as error:
        yield {"type": "models", "models": [], "problem": error.message, "asking": False}
    else:
        yield listed(shelf, asking=False)


def _listings(config: Config) -> tuple[Listing, ...]:
    from larik_nb import portal
    from larik_nb.errors import ConfigError
    from larik_nb.providers._listing import listings

    try:
        return portal.wait(listings(config))
    except ConfigError:  # no provider is set up: the catalog's models say that their key is missing
        return ()


def listed(shelf: Shelf, *, asking: bool) -> dict[str, Any]:
    """Return the message with a shelf's models (`Shelf.rows`)."""
    problem = "; ".join(f"{provider}: {why}" for provider, why in shelf.problems.items())
    return {"type": "models", "models": shelf.rows(), "problem": problem, "asking": asking}


async def choose(magics: LarikMagics, data: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Go on with the model that was chosen, as `%model` does, and say who is asked now or why not."""
    session = magics.session(None)
    spec = str(data.get("spec", ""))
    try:
        after = session.route(spec).spec
    except LarikError as error:
        yield {"type": "chosen", "ok": False, "text": error.message}
        return
    magics.chosen = spec
    magics.say_status(session)
    yield {"type": "chosen", "ok": True, "text": after}
