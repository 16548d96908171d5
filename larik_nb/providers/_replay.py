"""What of a conversation may go to whom."""

from __future__ import annotations

from larik_nb.types import Block, Message

MEDIA = ("image", "document")
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What every model that sees takes."""

Piece = tuple[Message, Block]
"""A block with the message it came in, which says whose it is."""


def own(message: Message, block: Block, provider: str, model: str) -> bool:
    """Return whether a sealed block (thinking, opaque) may go back: this route made it, with this model.

    Both the model that was asked for and the one that served count, for one may be an alias of the other.
    """
    return block.provider == provider and model in (message.model, message.requested_model)


def data_url(block: Block) -> str:
    """Return an image or document as a data URL."""
    return f"data:{block.media_type};base64,{block.data}"
