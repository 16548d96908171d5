"""What a model is known to take decides what is sent to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from larik_nb.providers._media import IMAGE_TYPES
from larik_nb.providers._replay import Target

if TYPE_CHECKING:
    from larik_nb.catalog import Model
    from larik_nb.types import Request


def effort_level(request: Request, model: Model | None) -> str | None:
    """Return the model's level nearest to the effort asked for; None: send none."""
    if request.effort is None:
        return None
    return model.effort(request.effort) if model else request.effort


def plain_target(
    provider: str,
    name: str,
    model: Model | None,
    *,
    images: frozenset[str] = IMAGE_TYPES,
    documents: tuple[str, ...] = (),
) -> Target:
    """Return what is known of a model as a target, to which its wire adds its own ways.

    Args:
        provider: The route.
        name: The model's id.
        model: What is known of it.
        images: Media types that the wire takes as images; the model sees none where it is known to see nothing.
        documents: Kinds of file that the wire takes; the model reads none where it is known to read none.
    """
    return Target(
        provider=provider,
        model=name,
        images=frozenset() if model is not None and model.vision is False else images,
        documents=() if model is not None and model.pdf is False else documents,
        window=model.window if model else None,
    )


def sampling(request: Request, model: Model | None, level: str | None) -> dict[str, float]:
    """Return of `temperature` and `top_p` what was asked for, where the model takes them at this effort.

    An unknown model is taken to.
    """
    kind = model.sampling if model else None
    if not (kind in (None, "yes") or (kind == "effort_none" and level == "none")):
        return {}
    values = {"temperature": request.temperature, "top_p": request.top_p}
    return {name: value for name, value in values.items() if value is not None}
