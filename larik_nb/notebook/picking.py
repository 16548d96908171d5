"""The list of models in JupyterLab's own dialog: what it is fed, and what choosing there does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from larik_nb.errors import LarikError

if TYPE_CHECKING:
    from larik_nb.notebook.magics import LarikMagics
    from larik_nb.providers._listing import Listed


async def models(magics: LarikMagics, _: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a page that asks for the models: those of every provider that is set up, and who did not tell."""
    config = magics.session(None).config
    try:
        # Elsewhere: on this loop run the cells, and the portal is waited for.
        listed, problems = await asyncio.to_thread(partial(_listed, config))
    except LarikError as error:
        return {"type": "models", "models": [], "problem": error.message}
    known = config.catalog.find
    return {
        "type": "models",
        "models": [row(model, known(model.provider, model.id)) for model in listed],
        "problem": "; ".join(problems),
    }


def _listed(config: Any) -> tuple[list[Listed], list[str]]:
    from larik_nb import portal
    from larik_nb.providers._listing import listings

    told = portal.wait(listings(config))
    problems = [f"{listing.provider}: {listing.error}" for listing in told if listing.error]
    return [model for listing in told for model in listing.models], problems


def row(model: Listed, known: Any) -> dict[str, Any]:
    """Return a model as the dialog shows it.

    Returns:
        `{"spec": "provider/model", "window": tokens or None, "input_usd": USD per million tokens or None,
        "output_usd": likewise, "free": why it costs nothing or "", "abilities": [text, …], "ends": day or ""}`.
    """
    abilities = [word for word in ("vision", "tools", "thinking") if known is not None and getattr(known, word)]
    return {
        "spec": model.spec,
        "window": model.window,
        "input_usd": model.price.input if model.price else None,
        "output_usd": model.price.output if model.price else None,
        "free": model.free,
        "abilities": abilities,
        "ends": str(model.ends or ""),
    }


async def choose(magics: LarikMagics, data: Mapping[str, Any]) -> dict[str, Any]:
    """Go on with the model that was chosen, as `%model` does, and say who is asked now or why not."""
    session = magics.session(None)
    spec = str(data.get("spec", ""))
    try:
        after = session.route(spec).spec
    except LarikError as error:
        return {"type": "chosen", "ok": False, "text": error.message}
    magics.chosen = spec
    magics.say_status(session)
    return {"type": "chosen", "ok": True, "text": after}
