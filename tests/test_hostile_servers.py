"""Servers that lie, linger or break off: a complete answer counts, and everything else is an error of ours."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import socket
import struct
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

import larik_nb
from larik_nb import errors
from larik_nb.config import Config
from larik_nb.http import TransportName

EVENT = b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":%s}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}\n\n'
ANSWER = EVENT % b"null" + EVENT % b'"stop"' + USAGE % (12, 2) + b"data: [DONE]\n\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Server:
    """Sends each connection the same bytes, then hangs up, resets, or waits until the test is over."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.over = threading.Event()
        self.sends = b""
        self.then = "close"
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}/v1"

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # which wakes the thread that accepts
        self.socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=(self.socket.accept()[0],), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            head, _, body = connection.recv(1 << 16).partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            while len(body) < length:
                body += connection.recv(1 << 16)
            connection.sendall(self.sends)
            if self.then == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif self.then == "wait":
                self.over.wait(20)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.over.set()
    made.stop()


@pytest.fixture(params=["h11", "aiohttp"])
def session(request: pytest.FixtureRequest, server: Server) -> larik_nb.Session:
    if request.param == "aiohttp":
        pytest.importorskip("aiohttp", reason="the extra `fast` is not installed")
    transport: TransportName = request.param
    provider = {"type": "openai-compatible", "base_url": server.url, "api_key": "k"}
    network = {"transport": transport, "stall_timeout_seconds": 5}
    return larik_nb.Session("p/m", config=_asked_once(provider, network))


def _asked_once(provider: dict[str, Any], network: dict[str, Any]) -> Config:
    """Return settings without retries: the server says the same each time."""
    return Config.load({"providers": {"p": provider}, "network": network, "max_retries": 0})


@pytest.mark.parametrize(
    ("sends", "then"),
    [
        (CHUNKED + chunk(ANSWER) + b"0\r\n\r\n", "close"),
        (CHUNKED + chunk(ANSWER), "close"),
        (CHUNKED + chunk(ANSWER), "wait"),
        (CHUNKED + chunk(ANSWER) + b"fff\r\n", "close"),
        (CHUNKED + chunk(ANSWER + ANSWER) + b"0\r\n\r\n", "close"),
        (CHUNKED + chunk(ANSWER + b'data: {"error":{"message":"late"}}\n\ndata: x\n\ndata: y\n\n'), "close"),
        (HEAD + b"content-length: 99999\r\n\r\n" + ANSWER, "close"),
        (HEAD + b"content-encoding: identity\r\n\r\n" + ANSWER, "close"),
        (HEAD + b"content-encoding: GZIP\r\n\r\n" + gzip.compress(ANSWER), "close"),
        (HEAD + b"content-encoding: gzip\r\n\r\n" + gzip.compress(ANSWER + b":" * 5_000_000 + b"\n"), "close"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 3_000 + CHUNKED + chunk(ANSWER) + b"0\r\n\r\n", "close"),
        (b"HTTP/1.1 200 OK\ncontent-length: %d\n\n%b" % (len(ANSWER), ANSWER), "wait"),
    ],
)
def test_an_answer_with_its_end_mark_is_complete(
    server: Server, session: larik_nb.Session, sends: bytes, then: str
) -> None:
    """Whatever the server does behind it; and nothing behind it is read twice."""
    server.sends, server.then = sends, then

    answer = session.ask("q")

    assert answer.text == "hellohello"
    assert answer.usage == larik_nb.Usage(input=12, output=2)
    assert session.history[1] == answer


@pytest.mark.parametrize("counts", [(-5, 2), (10**18, 2)])
def test_counts_that_cannot_be_are_unknown(server: Server, session: larik_nb.Session, counts: tuple[int, int]) -> None:
    server.sends = CHUNKED + chunk(EVENT % b'"stop"' + USAGE % counts + b"data: [DONE]\n\n") + b"0\r\n\r\n"

    assert session.ask("q").usage is None


@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize("length", [0, 20, len(CHUNKED), len(CHUNKED) + 4, len(CHUNKED) + 60])
def test_an_answer_cut_anywhere_is_an_error_of_ours(
    server: Server, session: larik_nb.Session, length: int, then: str
) -> None:
    server.sends, server.then = (CHUNKED + chunk(ANSWER))[:length], then

    with pytest.raises(errors.ServerError):
        session.ask("q")

    assert session.history == []


KEYS = ["correcthorsebatterystaple", "hunter2-secret-word", "AbCd/EfGh+IjKl=="]


def _refusal(said: str) -> bytes:
    body = json.dumps({"error": {"message": f"Invalid key {said} given", "code": said, "type": said}}).encode()
    return b"HTTP/1.1 400 Bad\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize("transport", ["h11", "aiohttp"])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "sends",
    [
        _refusal,
        lambda key: _refusal(base64.b64encode(key.encode()).decode()),
        lambda key: _refusal(quote(key, safe="")),
        lambda key: _refusal("x " * 140 + key),
        lambda key: b"HTTP/1.1 200 OK\r\nx-key %b\r\n\r\n" % key.encode(),
        lambda key: b"%b HTTP\r\n\r\n" % key.encode(),
        lambda key: CHUNKED + key.encode() + b"\r\n",
        lambda key: HEAD + b"\r\ndata: " + b"x" * 70 + key.encode() + b"\n\ndata: x\n\ndata: {}\n\n",
        lambda key: HEAD + b"content-encoding: %b\r\n\r\n" % key.encode(),
        lambda key: b"HTTP/1.1 403 No\r\ncontent-type: text/html\r\n\r\n<html><title>%b</title></html>" % key.encode(),
    ],
)
def test_a_key_that_the_server_sends_back_is_in_no_error(
    server: Server, sends: Callable[[str], bytes], key: str, transport: str
) -> None:
    """Not even in the traceback; whatever the key looks like."""
    if transport == "aiohttp":
        pytest.importorskip("aiohttp", reason="the extra `fast` is not installed")
    server.sends = sends(key)
    provider = {"type": "openai-compatible", "base_url": server.url, "api_key": key}
    config = _asked_once(provider, {"transport": transport})

    with pytest.raises(errors.APIError) as caught:
        larik_nb.Session("p/m", config=config).ask("q")

    told = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value)) + repr(caught.value)
    assert not [form for form in (key, quote(key, safe=""), base64.b64encode(key.encode()).decode()) if form in told]
    assert key[: len(key) // 2 + 3] not in told


@pytest.mark.parametrize("key", ["none", "ollama", "lm-studio", "not-needed"])
def test_a_word_that_stands_for_no_key_is_not_hidden(key: str) -> None:
    errors.keep_secret(key)

    assert str(errors.ConfigError(f"{key} it is")) == f"{key} it is"
