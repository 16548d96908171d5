"""The guess at tokens: by bytes for text, by size for pictures, corrected by what was last reported."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb import estimate
from larik_nb.types import Block, Message, Request, ToolSpec, Usage, assistant, text_block, tool_result, user


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(head)) + chunk + struct.pack(">I", zlib.crc32(chunk))


def jpeg(width: int, height: int, before: bytes = b"") -> bytes:
    frame = struct.pack(">BHHB", 8, height, width, 3)
    segment = b"\xff\xe1" + struct.pack(">H", 2 + len(before)) + before if before else b""
    return b"\xff\xd8" + segment + b"\xff\xc0" + struct.pack(">H", 2 + len(frame)) + frame


PICTURES = {
    "png": png(300, 200),
    "gif": b"GIF89a" + struct.pack("<HH", 300, 200),
    "jpeg": jpeg(300, 200),
    "jpeg behind a thumbnail": jpeg(300, 200, before=b"x" * 9000),
    "webp": b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 10 + struct.pack("<HH", 300, 200),
    "webp lossless": b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 299 | 199 << 14) + b"\0" * 9,
    "webp extended": b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + (299).to_bytes(3, "little") + (199).to_bytes(3, "little"),
}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd" * 10, 10), ("é" * 8, 4), ("漢字" * 6, 12), ("мир" * 4, 8), ("\ud800", 1)],
)
def test_text_by_its_bytes(text: str, tokens: int) -> None:
    """A quarter of them in Latin scripts, a third in others."""
    assert estimate.text_tokens(text) == tokens


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_by_their_pixels(name: str) -> None:
    """Read from the head of each format."""
    assert estimate.image_size(PICTURES[name]) == (300, 200)
    assert estimate.block_tokens(Block(type="image", data=coded(PICTURES[name]))) == 80


@given(st.sampled_from(list(PICTURES)), st.integers(0, 40), st.binary(max_size=40))
def test_a_picture_of_any_bytes_has_some_size(name: str, cut: int, rest: bytes) -> None:
    """Nothing is raised; what cannot be read counts as large as any."""
    tokens = estimate.block_tokens(Block(type="image", data=coded(PICTURES[name][:cut] + rest)))
    assert 0 <= tokens <= estimate.IMAGE_TOKENS


def test_large_and_unknown_pictures_cost_the_most() -> None:
    """Vendors shrink the one; of the other nothing is known."""
    for data in (coded(png(9000, 9000)), "not base64 at all!", ""):
        assert estimate.block_tokens(Block(type="image", data=data)) == estimate.IMAGE_TOKENS


def test_documents_by_pages_or_words() -> None:
    """A PDF by its pages, at least one; text by its bytes."""
    pages = b"%PDF-1.7 /Type /Pages /Type /Page /Type/Page "
    for data, tokens in ((pages, 2 * estimate.PAGE_TOKENS), (b"%PDF-1.7", estimate.PAGE_TOKENS), (b"word" * 9, 9)):
        assert estimate.block_tokens(Block(type="document", data=coded(data))) == tokens


def test_everything_that_goes_out_counts() -> None:
    """System, tools, every kind of block."""
    tool = ToolSpec(name="read", description="x" * 400, parameters={"type": "object"})
    messages = (
        user("a" * 40, Block(type="image", data=coded(png(300, 200)))),
        assistant(
            Block(type="thinking", text="t" * 40),
            Block(type="opaque", raw={"k": "v" * 40}),
            Block(type="tool_use", id="c", name="read", input={"p": "x" * 40}),
            Block(type="tool_use", id="d", name="read", input_raw="x" * 36),
        ),
        user(tool_result("c", "r" * 40, images=[Block(type="image", data=coded(png(300, 200)))])),
    )
    parts: list[Any] = ["s" * 40, tool.to_json(), "a" * 40, "t" * 40, json.dumps({"k": "v" * 40}).replace(" ", "")]
    parts += ['read{"p":"' + "x" * 40 + '"}', "read" + "x" * 36, "r" * 40]
    wanted = sum(estimate.text_tokens(part) for part in parts) + 2 * 80
    assert estimate.request_tokens(Request(model="m", messages=messages, system="s" * 40, tools=(tool,))) == wanted


def told(prompt: int, **fields: Any) -> Message:
    fields = {"model": "m", "usage": Usage(input=prompt // 2, cache_read=prompt - prompt // 2, output=5), **fields}
    return Message(role="assistant", blocks=(text_block("b" * 40),), **fields)


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (told(200), 300),
        (told(200, model="served", requested_model="m"), 300),
        (told(100), 150),
        (told(10**6), 600),
        (told(1), 38),
        (told(200, model="n"), 150),
        (told(200, usage=None), 150),
        (told(200, usage=Usage(input=200, output=1, estimated=True)), 150),
    ],
)
def test_the_last_report_corrects_the_guess(answer: Message, tokens: int) -> None:
    """Of the same model, a real count, within reason; cached tokens are part of the prompt."""
    request = Request(model="m", messages=(user("a" * 400), answer, user("c" * 160)))
    assert estimate.request_tokens(request) == tokens


def test_the_latest_report_wins() -> None:
    """Earlier ones are of a shorter prompt."""
    request = Request(model="m", messages=(user("a" * 400), told(100), user("a" * 400), told(420), user("x")))
    assert estimate.ratio(request) == 2.0


def test_a_broken_answer_has_a_likely_usage() -> None:
    """Marked as our own count."""
    request = Request(model="m", messages=(user("a" * 400), told(200), user("c" * 160)))
    assert estimate.answer_usage(request, assistant("d" * 80)) == Usage(input=300, output=40, estimated=True)
