"""Images and documents on their way to a model: what they are, and what stands for them where they cannot go."""

from __future__ import annotations

import base64
import binascii

from larik_nb.types import Block

MEDIA = ("image", "document")
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What nearly every model that sees takes."""
PDF = "application/pdf"

_KINDS = {**dict.fromkeys(IMAGE_TYPES, "images"), PDF: "PDFs"}
_TEXTUAL = ("json", "xml", "yaml", "javascript")


def data_url(block: Block) -> str:
    """Return an image or document as a data URL."""
    return f"data:{block.media_type};base64,{block.data}"


def words(block: Block) -> str | None:
    """Return a document's text; None where it holds none that can be read."""
    kind = block.media_type or ""
    return _decoded(block.data or "") if kind.startswith("text/") or kind.endswith(_TEXTUAL) else None


def written_out(name: str | None, text: str) -> str:
    """Return a document's text as a part of the conversation."""
    return f'<document name="{name or "unnamed"}">\n{text}\n</document>'


def left_out(block: Block, model: str) -> str:
    """Return what stands for an attachment that `model` does not take."""
    what = block.type if block.type == "image" or not block.name else f"document {block.name}"
    kind = _KINDS.get(block.media_type or "", block.media_type or "such files")
    reason = f"{model or 'this model'} takes no {kind}" if block.data else "it is empty"
    return f"[{what} left out: {reason}]"


def _decoded(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
