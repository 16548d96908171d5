"""How many tokens a text or a request is likely to be, where nobody has counted.

No tokenizer is right for every vendor, so text is counted in bytes: a quarter of them for Latin scripts, a third for
others. What the model itself last reported for this conversation corrects the guess.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from typing import Any

from larik_nb.types import Block, Message, Request, Usage

IMAGE_TOKENS = 1_600
"""Of an image whose size is not known, and the most for any: vendors shrink larger ones to about this.

Source: Claude guide "Vision", section on image costs, read 2026-11-30.
"""

PIXELS_A_TOKEN = 750
"""An image costs its pixels by this number. Same source; the other vendors' rules give no more for the same image."""

PAGE_TOKENS = 3_000
"""Of a page of a PDF, the upper end of 1,500 to 3,000. Source: Claude guide "PDF support", read 2026-11-30."""

_LATIN_ENDS = 0x250
_SHORT, _LONG = 4, 3
"""Bytes a token: Latin text, other scripts."""

_BOUNDS = 0.25, 4.0
"""A reported count further off than this is not about the text (a hidden prompt, say), and is cut to it."""

_HEAD = 65_536
_PAGE = re.compile(rb"/Type\s{0,4}/Page\b(?!s)")


def text_tokens(text: str) -> int:
    """Return the guess for `text`."""
    if text.isascii():
        return -(-len(text) // _SHORT)
    size = len(text.encode("utf-8", "replace"))
    foreign = sum(ord(char) >= _LATIN_ENDS for char in text)
    return -(-size // (_LONG if foreign * 2 > len(text) else _SHORT))


def block_tokens(block: Block) -> int:
    """Return the guess for one block."""
    match block.type:
        case "image":
            return _image_tokens(block.data or "")
        case "document":
            return _document_tokens(block)
        case "opaque":
            return text_tokens(_written(block.raw))
        case "tool_use":
            arguments = _written(block.input) if block.input else block.input_raw or ""
            return text_tokens((block.name or "") + arguments)
        case "tool_result":
            return text_tokens(block.content or "") + sum(map(block_tokens, block.images))
        case _:
            return text_tokens(block.text or "")


def request_tokens(request: Request) -> int:
    """Return the guess for the prompt that `request` makes, corrected by what the model last reported."""
    return round(_guess(request, request.messages) * ratio(request))


def answer_usage(request: Request, answer: Message) -> Usage:
    """Return the likely usage of an answer that broke off before its count came."""
    written = sum(map(block_tokens, answer.blocks))
    return Usage(input=request_tokens(request), output=round(written * ratio(request)), estimated=True)


def ratio(request: Request) -> float:
    """Return tokens reported by tokens guessed, of the last answer that the model asked gave and counted; 1 without."""
    for at in range(len(request.messages) - 1, -1, -1):
        usage = _reported(request.messages[at], request.model)
        if usage is not None and (guess := _guess(request, request.messages[:at])):
            return min(max(usage.prompt / guess, _BOUNDS[0]), _BOUNDS[1])
    return 1.0


def _reported(message: Message, model: str) -> Usage | None:
    usage = message.usage
    if usage is None or usage.estimated or not usage.prompt:
        return None
    return usage if model in (message.model, message.requested_model) else None


def _guess(request: Request, messages: Sequence[Message]) -> int:
    tools = sum(text_tokens(tool.to_json()) for tool in request.tools)
    blocks = sum(block_tokens(block) for message in messages for block in message.blocks)
    return text_tokens(request.system or "") + tools + blocks


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# -- attachments ----------------------------------------------------------------------------------------------------
def _image_tokens(data: str) -> int:
    size = image_size(_bytes(data[:_HEAD]))
    return min(-(-size[0] * size[1] // PIXELS_A_TOKEN), IMAGE_TOKENS) if size else IMAGE_TOKENS


def _document_tokens(block: Block) -> int:
    data = _bytes(block.data or "")
    if data[:5] == b"%PDF-":
        # Pages in compressed objects cannot be counted; there is at least one.
        return max(1, len(_PAGE.findall(data))) * PAGE_TOKENS
    return text_tokens(data.decode("utf-8", "replace"))


def _bytes(data: str) -> bytes:
    """Return what base64 stands for, the whole groups of it where it was cut; empty where it is none."""
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels, read from the head of a PNG, GIF, WebP or JPEG; None for anything else."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if data[:4] == b"GIF8" and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp_size(data)
    return _jpeg_size(data) if data[:2] == b"\xff\xd8" else None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    if len(data) < 30:
        return None
    if data[12:16] == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Return the size in the first frame header; the segments before it say how long they are."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        if 0xC0 <= data[at + 1] <= 0xCF and data[at + 1] not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None
