"""The one file that opens sockets, against a real server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from fake_provider import FakeProvider, expected

from larik_nb import errors, http, portal
from larik_nb.frames import reader
from larik_nb.http import TransportName


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeProvider]:
    with FakeProvider() as server:
        yield server


@pytest.fixture(params=["h11", "aiohttp"])
def transport(request: pytest.FixtureRequest) -> TransportName:
    if request.param == "aiohttp":
        pytest.importorskip("aiohttp", reason="the extra `fast` is not installed")
    name: TransportName = request.param
    return name


async def ask(
    fake: FakeProvider, model: str, transport: TransportName = "h11", stall_timeout_s: float = 5
) -> AsyncGenerator[str, None]:
    """Yield the texts of an answer, read without any adapter."""
    frames = reader("sse")
    url, body = fake.url + "/v1/messages", {"model": model}
    async with http.post(url, headers={}, body=body, stall_timeout_s=stall_timeout_s, transport=transport) as reply:
        async for part in reply:
            for name, data in frames.feed(part):
                if name == "content_block_delta":
                    yield data["delta"]["text"]


async def text(fake: FakeProvider, model: str, *more: Any) -> str:
    return "".join([part async for part in ask(fake, model, *more)])


@pytest.mark.parametrize("model", ["fake:n=3", "fake:n=300:d=1", "fake:n=20000"])
def test_an_answer_arrives_whole(fake: FakeProvider, transport: TransportName, model: str) -> None:
    assert asyncio.run(text(fake, model, transport)) == expected(model)


def test_requests_share_a_connection_and_every_loop_has_its_own(fake: FakeProvider, transport: TransportName) -> None:
    async def three() -> None:
        for _ in range(3):
            await text(fake, "fake:n=2", transport)

    before = fake.opened
    asyncio.run(three())
    asyncio.run(three())

    assert fake.opened - before == 2
    assert fake.wait_until(lambda f: f.open == 0)


def test_a_status_above_299_is_classified(fake: FakeProvider, transport: TransportName) -> None:
    with pytest.raises(errors.RateLimited) as caught:
        asyncio.run(text(fake, "fake:e=429:ra=7", transport))

    assert caught.value.status == 429


def test_a_dropped_connection_is_an_error_after_what_came(fake: FakeProvider, transport: TransportName) -> None:
    got: list[str] = []

    async def collect() -> None:
        async for part in ask(fake, "fake:n=9:cut=4:d=1", transport):
            got.append(part)

    with pytest.raises(errors.APIError) as caught:
        asyncio.run(collect())

    assert caught.value.retryable
    assert len(got) == 4


@pytest.mark.parametrize("model", ["fake:n=9:stall=4", "fake:f=5000"])
def test_silence_is_an_error_that_names_the_limit(fake: FakeProvider, transport: TransportName, model: str) -> None:
    begun = time.monotonic()
    with pytest.raises(errors.StallError, match=r"no data for 0\.3 s .*stall_timeout_s"):
        asyncio.run(text(fake, model, transport, 0.3))

    assert time.monotonic() - begun < 2


def test_every_read_resets_the_stall_limit(fake: FakeProvider, transport: TransportName) -> None:
    model = "fake:n=12:d=100"

    assert asyncio.run(text(fake, model, transport, 0.5)) == expected(model)


@pytest.mark.parametrize("how", ["close", "timeout", "cancel"])
def test_leaving_early_closes_the_socket_at_once(fake: FakeProvider, transport: TransportName, how: str) -> None:
    async def read_all(answer: AsyncGenerator[str, None]) -> None:
        async for _ in answer:
            pass

    async def leave() -> bool:
        answer = ask(fake, "fake:n=9:stall=2:d=1", transport)
        assert await anext(answer)
        if how == "close":
            await answer.aclose()
        elif how == "timeout":
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(read_all(answer), 0.2)
        else:
            task = asyncio.create_task(read_all(answer))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return await asyncio.to_thread(fake.wait_until, lambda f: f.open == before, 1.0)

    before = fake.open
    assert asyncio.run(leave())


def test_an_abandoned_plain_iterator_closes_the_socket(fake: FakeProvider, transport: TransportName) -> None:
    portal.wait(text(fake, "fake:n=1", transport))
    before = fake.open
    for _ in portal.iterate(ask(fake, "fake:n=9:stall=2:d=1", transport)):
        break

    assert fake.wait_until(lambda f: f.open <= before, 2)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://no-such-host.invalid/v1"])
def test_a_server_that_is_not_there(transport: TransportName, url: str) -> None:
    async def knock() -> None:
        async with http.post(url, headers={}, body={}, transport=transport):
            pass

    with pytest.raises(errors.Unreachable) as caught:
        asyncio.run(knock())

    assert url.split("/")[2] in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://host/v1", "host/v1", "http://", "http:///v1"])
def test_an_address_that_is_none(transport: TransportName, url: str) -> None:
    async def knock() -> None:
        async with http.post(url, headers={}, body={}, transport=transport):
            pass

    with pytest.raises(errors.ConfigError, match="https://host/path"):
        asyncio.run(knock())


class _Forgetful:
    """A server that announces keep-alive and closes after each answer; the next request finds the door shut."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/"
        self.answered = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                if b"\r\n\r\n" in connection.recv(65536):
                    self.answered += 1  # before the answer: the client is quick to look
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok")
                threading.Timer(0.002 * (self.answered % 3), connection.close).start()


def test_a_kept_connection_that_had_ended_is_replaced(transport: TransportName) -> None:
    server = _Forgetful()

    async def many() -> list[bytes]:
        out = []
        for _ in range(60):
            async with http.post(server.url, headers={}, body={}, transport=transport) as reply:
                out.append(await reply.read())
        return out

    assert asyncio.run(many()) == [b"ok"] * 60
    assert server.answered == 60
    server.socket.close()


def test_a_server_that_hangs_up_on_a_new_connection_is_not_asked_twice(transport: TransportName) -> None:
    listener, seen = socket.create_server(("127.0.0.1", 0)), []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                seen.append(connection.recv(65536))
                connection.close()

    threading.Thread(target=serve, daemon=True).start()

    async def once() -> None:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with http.post(url, headers={}, body={}, transport=transport):
            pass

    with pytest.raises(errors.APIError) as caught:
        asyncio.run(once())

    assert caught.value.retryable
    assert len(seen) == 1
    listener.close()


@pytest.mark.parametrize(
    "piece", [b"HTTP/1.1 103 Early Hints\r\n\r\n", b"X"], ids=["wait for ever", "a letter at a time"]
)
def test_a_head_that_never_ends_is_a_stall(transport: TransportName, piece: bytes) -> None:
    """Each piece comes within the limit, and the answer never does."""
    listener, gone = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with contextlib.suppress(OSError):
            if piece == b"X":
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not gone.wait(0.05):
                connection.sendall(piece)
        connection.close()

    threading.Thread(target=serve, daemon=True).start()

    async def once() -> None:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with http.post(url, headers={}, body={}, stall_timeout_s=0.4, transport=transport):
            pass

    with pytest.raises(errors.StallError):
        asyncio.run(asyncio.wait_for(once(), 10))
    gone.set()
    listener.close()


@pytest.mark.parametrize("when", ["connecting", "asked"])
def test_whether_anything_was_sent_is_known(fake: FakeProvider, transport: TransportName, when: str) -> None:
    from larik_nb import _sending

    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    full = [socket.create_connection(listener.getsockname(), timeout=1) for _ in range(1)]
    with contextlib.suppress(OSError):  # the queue of connections is full: the next one waits for its handshake
        while len(full) < 8:
            full.append(socket.create_connection(listener.getsockname(), timeout=0.2))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/" if when == "connecting" else f"{fake.url}/v1/messages"

    async def stopped() -> _sending.Sending:
        with _sending.watched() as sending:
            _sending.begin()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.3):
                    body = {"model": "fake:f=60000"}
                    async with http.post(url, headers={}, body=body, transport=transport):
                        pass
            return sending

    assert asyncio.run(stopped()).is_unsent == (when == "connecting")
    for one in full:
        one.close()
    listener.close()


class _Compressed(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = gzip.compress(b"hello " * 100)
        self.send_response(200)
        self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def test_a_body_compressed_unasked_is_read(transport: TransportName) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Compressed)
    threading.Thread(target=server.handle_request, daemon=True).start()

    async def fetch() -> bytes:
        url = f"http://127.0.0.1:{server.server_port}/"
        async with http.post(url, headers={}, body={}, transport=transport) as reply:
            return await reply.read()

    assert asyncio.run(fetch()) == b"hello " * 100
    server.server_close()


def _child(url: str, queue: multiprocessing.Queue[str]) -> None:
    fake = FakeProvider()
    fake.url = url
    queue.put(portal.wait(text(fake, "fake:n=4")))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_opens_connections_of_its_own(fake: FakeProvider) -> None:
    assert portal.wait(text(fake, "fake:n=4")) == expected("fake:n=4")
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[str] = context.Queue()
    child = context.Process(target=_child, args=(fake.url, queue))
    child.start()

    assert queue.get(timeout=10) == expected("fake:n=4")
    child.join(10)
    assert portal.wait(text(fake, "fake:n=5")) == expected("fake:n=5")


def test_no_tls_context_is_made_for_plain_http(fake: FakeProvider) -> None:
    code = (
        "import asyncio, sys; sys.path.insert(0, 'tests')\n"
        "from larik_nb import http\n"
        "async def go():\n"
        f"    async with http.post({fake.url!r} + '/v1/messages', headers={{}}, body={{'model': 'fake'}}) as r:\n"
        "        await r.read()\n"
        "asyncio.run(go())\n"
        "assert http._tls == {}\n"
        "assert not {'httpx', 'httpx2', 'httpcore2', 'anyio', 'aiohttp', 'pydantic'} & set(sys.modules), 'a heavy import'\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=30)


def test_answers_that_come_at_once_stay_apart(transport: TransportName) -> None:
    """Connections lend the same memory to be read into: each still has its own bytes, in their order."""
    bodies = {f"/{letter}": letter.encode() * 300_000 for letter in "abcdefgh"}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = bodies[head.split()[1].decode()]
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body))
        for at in range(0, len(body), 7_000):
            writer.write(body[at : at + 7_000])
            await asyncio.sleep(0)
        writer.close()

    async def read(url: str) -> bytes:
        async with http.post(url, headers={}, body={}, transport=transport) as reply:
            return await reply.read()

    async def all_of_them() -> list[bytes]:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await asyncio.gather(*(read(f"http://127.0.0.1:{port}{path}") for path in bodies))

    assert asyncio.run(all_of_them()) == list(bodies.values())
