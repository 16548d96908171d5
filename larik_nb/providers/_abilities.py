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


def samples(model: Model | None, level: str | None) -> bool:
    """Return whether the model takes temperature and top_p at this effort; an unknown one is asked to."""
    sampling = model.sampling if model else None
    return sampling in (None, "yes") or (sampling == "effort_none" and level == "none")
