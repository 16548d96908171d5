"""Bytes to frames, cut anywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb.errors import BadWire
from larik_nb.frames import EventStream, Frame, Framing, JSONLines, reader

SSE = {
    "one event": (b'event: a\ndata: {"x":1}\n\n', [("a", {"x": 1})]),
    "no space after the colon": (b'event:a\ndata:{"x":1}\n\n', [("a", {"x": 1})]),
    "no name": (b'data: {"x":1}\n\ndata: [2]\n\n', [("", {"x": 1}), ("", [2])]),
    "CR LF": (b'event: a\r\ndata: {"x":1}\r\n\r\ndata: {"x":2}\r\n\r\n', [("a", {"x": 1}), ("", {"x": 2})]),
    "CR alone": (b'event: a\rdata: {"x":1}\r\rdata: {"x":2}\r\r', [("a", {"x": 1}), ("", {"x": 2})]),
    "a byte order mark": (b'\xef\xbb\xbfdata: {"x":1}\n\n', [("", {"x": 1})]),
    "comments and keep-alives": (b': hi\n\n:\n\ndata: {"x":1}\n\n: bye\n\n', [("", {"x": 1})]),
    "several data lines": (b'data: {"x":\ndata: 1}\n\n', [("", {"x": 1})]),
    "JSON first, then another data line": (b'data: {"x":1}\ndata:  \n\n', [("", {"x": 1})]),
    "no blank line at the end": (b'data: {"x":1}\n\ndata: {"x":2}', [("", {"x": 1}), ("", {"x": 2})]),
    "a name without data": (b"event: error\n\n", [("error", None)]),
    "ids and retry": (b'id: 7\nretry: 10\nevent: a\ndata: {"x":1}\n\n', [("a", {"x": 1})]),
    "no JSON": (b"data: [DONE]\n\n", [("", "[DONE]")]),
    "broken JSON": (b'data: {"x":\n\n', [("", '{"x":')]),
    "JSON and more": (b'data: {"x":1} {"y":2}\n\n', [("", '{"x":1} {"y":2}')]),
    "line separators inside JSON": (
        'data: {"x":"a\u2028b\u2029c\x85d"}\n\n'.encode(),
        [("", {"x": "a\u2028b\u2029c\x85d"})],
    ),
    "many bytes a character": ('data: {"x":"é漢🙂"}\n\n'.encode(), [("", {"x": "é漢🙂"})]),
    "invalid UTF-8": (b'data: {"x":"\xff"}\n\n', [("", {"x": "\ufffd"})]),
    "deep nesting": (b"data: " + b"[" * 100_000 + b"\n\n", [("", "[" * 100_000)]),
    "an empty body": (b"", []),
}
LINES = {
    "two lines": (b'{"x":1}\n{"x":2}\n', [("", {"x": 1}), ("", {"x": 2})]),
    "no line end at the end": (b'{"x":1}\n{"x":2}', [("", {"x": 1}), ("", {"x": 2})]),
    "CR LF and empty lines": (b'{"x":1}\r\n\r\n{"x":2}\r\n', [("", {"x": 1}), ("", {"x": 2})]),
    "a data prefix": (b'data: {"x":1}\n\n', [("", {"x": 1})]),
    "line separators inside JSON": ('{"x":"a\u2028b"}\n'.encode(), [("", {"x": "a\u2028b"})]),
}


def frames(framing: Framing, body: bytes, size: int) -> list[Frame]:
    """Read `body` in pieces of `size` bytes."""
    decoder = reader(framing)
    out = [frame for at in range(0, len(body), size) for frame in decoder.feed(body[at : at + size])]
    return out + decoder.finish()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("case", SSE)
def test_server_sent_events(case: str, size: int) -> None:
    body, expected = SSE[case]

    assert frames("sse", body, size if len(body) < 1000 else max(size, 1000)) == expected


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("case", LINES)
def test_json_lines(case: str, size: int) -> None:
    body, expected = LINES[case]

    assert frames("ndjson", body, size) == expected


@pytest.mark.parametrize("framing", ["sse", "ndjson"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_json_instead_of_a_stream_is_found_whole(framing: Framing, size: int) -> None:
    value: dict[str, Any] = {"error": {"message": "no", "nested": [1, {"a": None}]}}
    body = json.dumps(value, indent=2).encode()
    decoder = reader(framing)
    for at in range(0, len(body), size):
        assert decoder.feed(body[at : at + size]) == []
    decoder.finish()

    assert decoder.whole() == value


def test_text_outside_any_frame_is_kept_for_the_error() -> None:
    decoder = reader("sse")
    decoder.feed(b"<html>\n<title>502</title>")
    decoder.finish()

    assert decoder.whole() is None
    assert "502" in decoder.stray


@given(
    st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(), max_size=3), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.data(),
)
def test_any_cut_gives_the_same_frames(objects: list[dict[str, Any]], end: str, data: st.DataObject) -> None:
    body = "".join(f"event: e{end}data: {json.dumps(value, ensure_ascii=False)}{end}{end}" for value in objects).encode(
        "utf-8", "surrogatepass"
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    decoder = reader("sse")
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    got = [frame for piece in pieces for frame in decoder.feed(piece)] + decoder.finish()

    assert got == frames("sse", body, max(1, len(body)))
    assert [name for name, _ in got] == ["e"] * len(objects)


@given(st.binary(max_size=300), st.integers(1, 9))
def test_no_bytes_raise(body: bytes, size: int) -> None:
    for framing in ("sse", "ndjson"):
        frames(framing, body, size)


def test_a_long_line_in_small_pieces_is_not_copied_again_and_again() -> None:
    decoder = reader("sse")
    body = b'data: "' + b"x" * 3_000_000 + b'"\n\n'
    got = [frame for at in range(0, len(body), 100) for frame in decoder.feed(body[at : at + 100])]

    assert got == [("", "x" * 3_000_000)]


@pytest.mark.parametrize("framing", ["sse", "ndjson"])
@pytest.mark.parametrize("piece", [b"data: a\n", b"a" * 10, b": comment\n", b"<p>\n"])
def test_what_never_makes_a_frame_ends_in_an_error(framing: Framing, piece: bytes) -> None:
    """Else a server that sends no line end takes all memory."""
    frames = EventStream(longest=1_000) if framing == "sse" else JSONLines(longest=1_000)

    with pytest.raises(BadWire, match="without an end"):
        assert [frames.feed(piece) for _ in range(1_000)] == []


def test_each_frame_may_be_as_long() -> None:
    frames = EventStream(longest=100)

    assert [frames.feed(b'data: "%b' % (b"a" * 60)) + frames.feed(b'"\n\n') for _ in range(5)] == [[("", "a" * 60)]] * 5
