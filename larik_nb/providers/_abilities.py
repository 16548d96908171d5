"""What a model is known to take decides what is sent to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from larik_nb.catalog import Model
    from larik_nb.types import Request


def effort_level(request: Request, model: Model | None) -> str | None:
    """Return the model's level nearest to the effort asked for; None: send none."""
    if request.effort is None:
        return None
    return model.effort(request.effort) if model else request.effort


def images(model: Model | None, taken: frozenset[str]) -> frozenset[str]:
    """Return the media types the model sees: all that its wire takes, none where it is known to see nothing."""
    return frozenset() if model is not None and model.vision is False else taken


def documents(model: Model | None, taken: tuple[str, ...]) -> tuple[str, ...]:
    """Return the kinds of file the model reads, of those that its wire takes."""
    return () if model is not None and model.pdf is False else taken


def samples(model: Model | None, level: str | None) -> bool:
    """Return whether the model takes temperature and top_p at this effort; an unknown one is asked to."""
    sampling = model.sampling if model else None
    return sampling in (None, "yes") or (sampling == "effort_none" and level == "none")
