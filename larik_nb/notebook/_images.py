"""Pictures on their way to a model: figures are drawn, images made as large as models look at, and no larger."""

from __future__ import annotations

import base64
import io
import sys
from typing import Any

from larik_nb import estimate
from larik_nb.errors import ConfigError
from larik_nb.notebook import _bounded
from larik_nb.types import Block

LONGEST_SIDE = 1_568
"""Pixels; vendors shrink what is larger to about this. Source: Claude guide "Vision", read 2026-11-30."""

_MOST_BYTES = 3_700_000
"""Of an image, whose base64 then stays below the 5 MB that the strictest vendor takes. Same source."""

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_PLAIN_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")
_DRAWN_ELSEWHERE = {
    "plotly": 'png = fig.to_image("png"), then {png}',
    "altair": "save it as a PNG, then --attach it",
    "bokeh": "save it as a PNG, then --attach it",
}


def media_type(data: bytes) -> str | None:
    """Return what kind of image `data` is; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def is_picture(value: Any) -> bool:
    """Return whether a value can be sent as an image."""
    return _drawable(value) is not None or _has(value, "PIL", "Image") or _stored(value) is not None


def _has(value: Any, root: str, name: str) -> bool:
    return (root, name) in _bounded.lineage(value)


def _drawable(value: Any) -> Any:
    """Return the figure that a value is, or is a part of; None where it has none."""
    if _has(value, "matplotlib", "Figure"):
        return value
    root, _ = _bounded.lineage(value)[0]
    if root in ("matplotlib", "seaborn", "mpl_toolkits"):
        figure = getattr(value, "figure", None)
        figure = getattr(figure, "figure", figure)  # of a figure within a figure, the outer one
        return figure if _has(figure, "matplotlib", "Figure") else None
    if root == "numpy" and getattr(getattr(value, "dtype", None), "kind", "") == "O" and value.size:
        first = value.flat[0]
        return _drawable(first) if _bounded.lineage(first)[0][0] == "matplotlib" else None
    return None


def _stored(value: Any) -> bytes | None:
    """Return the bytes of an image that a value already holds."""
    data: Any = getattr(value, "data", None) if _has(value, "IPython", "Image") else value
    if _bounded.is_a(data, (bytes, bytearray)) and media_type(bytes(data[:16])):
        return bytes(data)
    return None


def cannot_see(value: Any) -> str:
    """Return how a picture that only its own library can draw gets into a prompt; empty for anything else."""
    root, _ = _bounded.lineage(value)[0]
    how = _DRAWN_ELSEWHERE.get(root)
    if how is None or not (hasattr(type(value), "to_image") or hasattr(type(value), "_repr_mimebundle_")):
        return ""
    return f"a {root} figure was sent as words only; for its picture: {how}"


def block(value: Any) -> tuple[Block, tuple[str, ...]]:
    """Return a picture as a block, and what the user should know of it.

    Raises:
        ConfigError: It is too large, and nothing here can make it smaller.
    """
    figure = _drawable(value)
    if figure is not None:
        return _block(_drawn(figure))
    if _has(value, "PIL", "Image"):
        return _block(_saved(value))
    return from_bytes(_stored(value) or b"")


def from_bytes(data: bytes) -> tuple[Block, tuple[str, ...]]:
    """Return an image file as a block, made smaller where it is larger than models look at.

    Raises:
        ConfigError: It is too large, and nothing here can make it smaller.
    """
    size = estimate.image_size(data)
    if size is not None and max(size) <= LONGEST_SIDE and len(data) <= _MOST_BYTES:
        return _block(data)
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None:
        try:
            with pillow.open(io.BytesIO(data)) as image:
                small = _saved(image)
        except Exception as error:  # a damaged file, or one that would fill the memory, in any of Pillow's ways
            what = f"the image cannot be read ({type(error).__name__})"
            raise ConfigError(what, remedy="Save it anew, smaller") from error
        return _block(small)
    if len(data) > _MOST_BYTES:
        what = f"the image has {len(data) / 1e6:.1f} MB, more than models take"
        raise ConfigError(what, remedy="import PIL.Image first, and it is made smaller")
    return _block(data)[0], ("the image is sent larger than models look at; import PIL.Image, and it is made smaller",)


def _block(data: bytes) -> tuple[Block, tuple[str, ...]]:
    return Block(type="image", media_type=media_type(data), data=base64.b64encode(data).decode()), ()


def _drawn(figure: Any) -> bytes:
    """Return the figure as PNG, as large as models look at and no larger than it is shown."""
    width, height = figure.get_size_inches()
    dpi = min(float(figure.dpi), LONGEST_SIDE / max(width, height))
    data = _png(figure, dpi)
    size = estimate.image_size(data)
    if size is not None and max(size) > LONGEST_SIDE:  # what stands beyond the figure's edge is drawn too
        data = _png(figure, dpi * LONGEST_SIDE / max(size) * 0.99)
    return data


def _png(figure: Any, dpi: float) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=dpi, bbox_inches="tight")
    return out.getvalue()


def _saved(image: Any) -> bytes:
    """Return an image of Pillow's as PNG, or as JPEG where that would be too much."""
    small = image.copy()
    small.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    if small.mode not in _PLAIN_MODES:
        small = small.convert("RGB")
    out = io.BytesIO()
    small.save(out, format="PNG")
    if out.tell() > _MOST_BYTES:
        out = io.BytesIO()
        small.convert("RGB").save(out, format="JPEG", quality=85)
    return out.getvalue()


def size_words(image: Block) -> str:
    """Return an image's size: "640×480 px"."""
    size = estimate.image_size(base64.b64decode(image.data or ""))
    return f"{size[0]}×{size[1]} px" if size else "image"
