"""What adapters share when they write a conversation for their wire."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator

from larik_nb.types import Block, Message, Role

MEDIA = ("image", "document")
Piece = tuple[Message, Block]
"""A block with the message it came in, which says whose it is."""


def own(message: Message, block: Block, provider: str, model: str) -> bool:
    """Return whether a sealed block (thinking, opaque) may go back: this route made it, with this model.

    Both the model that was asked for and the one that served count, for one may be an alias of the other.
    """
    return block.provider == provider and model in (message.model, message.requested_model)


def turns(messages: Iterable[Message]) -> list[tuple[Role, list[Piece]]]:
    """Return the blocks by turn: neighbours of one role merged, a user's tool results first, empty texts left out.

    Media that a model made moves on to the next user turn, for no wire takes them from an assistant.
    """
    merged: list[tuple[Role, list[Piece]]] = []
    carried: list[Piece] = []
    for message in messages:
        pieces = [(message, block) for block in message.blocks if block.type != "text" or block.text]
        if message.role == "assistant":
            carried += [piece for piece in pieces if piece[1].type in MEDIA]
            pieces = [piece for piece in pieces if piece[1].type not in MEDIA]
        else:
            pieces += carried
            carried = []
        if not pieces:
            continue
        if merged and merged[-1][0] == message.role:
            merged[-1][1].extend(pieces)
        else:
            merged.append((message.role, pieces))
    return [(role, _results_first(pieces) if role == "user" else pieces) for role, pieces in merged]


def _results_first(pieces: list[Piece]) -> list[Piece]:
    return sorted(pieces, key=lambda piece: piece[1].type != "tool_result")


def strings(pieces: Iterable[Piece]) -> Iterator[str]:
    """Yield the texts among pieces."""
    for _, block in pieces:
        if block.type == "text" and block.text:
            yield block.text


def data_url(block: Block) -> str:
    """Return an image or document as a data URL."""
    return f"data:{block.media_type};base64,{block.data}"


def document_text(block: Block) -> str | None:
    """Return the words of a plain-text document; None for any other kind."""
    if not (block.media_type or "").startswith("text/"):
        return None
    return base64.b64decode(block.data or "").decode("utf-8", "replace")
