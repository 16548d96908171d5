"""What h11 reads after the rechunker says the same as what it reads without."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

h11 = pytest.importorskip("h11")

from larik_nb._transports import Rechunker  # noqa: E402  # after the skip


def understood(reads: list[bytes]) -> list[Any]:
    """Return what a client makes of the reads: status, body, end, or the word "refused"."""
    client = h11.Connection(our_role=h11.CLIENT)
    client.send(h11.Request(method="POST", target="/", headers=[("host", "h")]))
    client.send(h11.EndOfMessage())
    out: list[Any] = [b""]
    try:
        for data in [*reads, b""]:
            client.receive_data(data)
            while True:
                event = client.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    break
                if isinstance(event, h11.Data):
                    out[0] += bytes(event.data)
                elif isinstance(event, h11.Response | h11.InformationalResponse):
                    out.append(event.status_code)
                else:
                    out.append(type(event).__name__)
                    return out
    except h11.RemoteProtocolError:
        out.append("refused")
    return out


def rechunked(reads: list[bytes]) -> list[bytes]:
    joiner = Rechunker()
    out = [joiner.feed(data) for data in reads]
    return [data for data in [*out, joiner.end()] if data]


def cut(body: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(body) + 1) for place in places} | {len(body)})
    return [piece for a, b in zip([0, *ends], ends, strict=False) if (piece := body[a:b])]


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: Chunked\r\n\r\n"
chunks = st.lists(st.binary(min_size=1, max_size=40), max_size=8).map(
    lambda parts: HEAD + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
)
endings = st.sampled_from(
    [b"0\r\n\r\n", b"0\r\nx-trailer: 1\r\n\r\n", b"0;ext=1\r\n\r\n", b"", b"5\r\nab", b"zz\r\n", b"-1\r\n"]
)
places = st.lists(st.integers(0, 400), max_size=8)


@given(chunks, endings, places)
def test_chunked_answers_say_the_same(body: bytes, ending: bytes, at: list[int]) -> None:
    reads = cut(body + ending, at)

    assert understood(rechunked(reads)) == understood(reads)


@given(st.binary(max_size=120), places)
def test_any_bytes_after_the_head_say_the_same_or_are_refused_the_same(tail: bytes, at: list[int]) -> None:
    reads = cut(HEAD + tail, at)
    ours, theirs = understood(rechunked(reads)), understood(reads)

    assert ours == theirs


@pytest.mark.parametrize(
    "body",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.0 200 OK\r\n\r\nold",
        b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"3\r\nabc\r\n0\r\n\r\n",
        HEAD + b"3;name=value\r\nabc\r\n0\r\n\r\n",
        HEAD + b"0003\r\nabc\r\n0\r\n\r\n",
        HEAD + b"3\r\nabcd\r\n0\r\n\r\n",
        b"garbage that is no response",
        b"",
    ],
)
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_other_answers_pass_through(body: bytes, size: int) -> None:
    reads = [body[at : at + size] for at in range(0, len(body), size)]

    assert understood(rechunked(reads)) == understood(reads)


def test_one_read_of_many_chunks_becomes_one_chunk() -> None:
    body = HEAD + b"3\r\nabc\r\n" * 500

    assert rechunked([body]) == [HEAD + b"5dc\r\n" + b"abc" * 500 + b"\r\n"]


def test_a_new_request_expects_a_new_head() -> None:
    joiner = Rechunker()
    body = HEAD + b"3\r\nabc\r\n" * 2 + b"0\r\n\r\n"
    first = joiner.feed(body)
    joiner.restart()

    assert joiner.feed(body) == first


def test_a_chunk_is_handed_over_before_the_line_end_behind_it() -> None:
    joiner = Rechunker()

    assert joiner.feed(HEAD + b"3\r\nabc") == HEAD + b"3\r\nabc\r\n"
    assert joiner.feed(b"\r") == b""
    assert joiner.feed(b"\n2\r\nde\r\n") == b"2\r\nde\r\n"


def test_an_endless_size_line_is_not_kept() -> None:
    joiner = Rechunker()
    joiner.feed(HEAD)
    line = b"5;" + b"a" * 10_000

    assert joiner.feed(line) == line
    assert joiner.feed(line) == line


def test_any_number_of_interim_answers_comes_before_the_answer() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    body = HEAD + b"3\r\nabc\r\n0\r\n\r\n"

    assert understood(rechunked([interim * 3_000 + body])) == understood([interim * 3_000 + body])


@pytest.mark.parametrize("blank", [b"\n\n", b"\n\r\n"])
def test_a_head_with_bare_line_feeds_is_handed_over_at_once(blank: bytes) -> None:
    head = b"HTTP/1.1 200 OK\ncontent-length: 5" + blank

    assert Rechunker().feed(head) == head
