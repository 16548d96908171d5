"""How many tokens a text or request is likely to be, where nobody has counted.

Bytes ÷ 4 for Latin text and ÷ 3 for other scripts; no tokenizer is right for every vendor. `Ratio` corrects the guess
by what the provider last reported for a prompt that was guessed too.
"""

from __future__ import annotations

import json

from larik_nb.types import Block, Request

_LATIN_ENDS = 0x250
_IMAGE_TOKENS = 1_500
"""About what the vendors count for a picture of a million pixels."""

_BOUNDS = 0.25, 4.0
"""A reported count further off than this is not about the text (a cached or hidden prompt), and is cut to it."""


def text_tokens(text: str) -> int:
    """Return the guess for `text`."""
    size = len(text.encode("utf-8", "replace"))
    foreign = sum(ord(char) >= _LATIN_ENDS for char in text)
    return -(-size // (3 if foreign * 2 > len(text) else 4))


def request_tokens(request: Request) -> int:
    """Return the guess for everything that `request` sends."""
    tools = sum(text_tokens(tool.to_json()) for tool in request.tools)
    blocks = sum(block_tokens(block) for message in request.messages for block in message.blocks)
    return text_tokens(request.system or "") + tools + blocks


def block_tokens(block: Block) -> int:
    """Return the guess for one block."""
    if block.type == "image":
        return _IMAGE_TOKENS
    arguments = json.dumps(block.input) if block.input else block.input_raw or ""
    inner = sum(block_tokens(image) for image in block.images)
    return text_tokens((block.text or "") + (block.content or "") + arguments + (block.data or "")) + inner


class Ratio:
    """Reported tokens by guessed tokens, of the last answer that had both."""

    def __init__(self) -> None:
        self._value = 1.0

    def learn(self, guessed: int, reported: int) -> None:
        """Take in one pair."""
        if guessed > 0 and reported > 0:
            self._value = min(max(reported / guessed, _BOUNDS[0]), _BOUNDS[1])

    def __call__(self, guessed: int) -> int:
        """Return the corrected guess."""
        return round(guessed * self._value)
