"""An HTTP server on loopback that gives canned answers, byte for byte as told. Standard library only."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import cycle


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one address answers.

    Attributes:
        status: HTTP status.
        headers: Beside those that frame the body.
        body: The whole body.
        sizes: Bytes in each piece, repeated as often as needed; none: one piece.
        chunked: Frame the pieces as HTTP chunks, so that each reaches the client's reader by itself.
        cut: Drop the connection after so many bytes, without ending the body.
        pause_s: Wait between pieces.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    sizes: Sequence[int] = ()
    chunked: bool = True
    cut: int | None = None
    pause_s: float = 0.0

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it is to be sent."""
        body = self.body if self.cut is None else self.body[: self.cut]
        at = 0
        for size in cycle(self.sizes or (max(1, len(body)),)):
            if at >= len(body):
                return
            yield body[at : at + size]
            at += size

    def framed(self) -> Iterator[bytes]:
        """Yield the pieces as they go over the wire."""
        if not self.chunked:
            yield from self.pieces()
            return
        for piece in self.pieces():
            yield b"%x\r\n%b\r\n" % (len(piece), piece)
        if self.cut is None:
            yield b"0\r\n\r\n"


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Server:
    """Serves answers, each under its own address, from a thread of its own; over TLS where a context is given."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.received: list[Received] = []
        self._answers: list[list[Answer]] = []
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="canned-server", daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def url(self, *answers: Answer) -> str:
        """Return a base URL under which every path gives the answers in turn, then always the last."""
        self._answers.append(list(answers))
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/{len(self._answers) - 1}"

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=self._tls)
        )
        self._ready.set()
        self._loop.run_forever()
        self._server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; return whether the connection can serve another."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, target, _ = first.split(" ")
        path = "/" + target.split("/", 3)[3] if "://" in target else target  # as through a proxy
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.received.append(Received(method, path, headers, body))
        left = self._answers[int(path.split("/")[1])]
        answer = left.pop(0) if len(left) > 1 else left[0]
        writer.write(_head(answer))
        if answer.pause_s:
            for piece in answer.framed():
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(answer.pause_s)
        else:
            # One write: chunks reach the client's reader one by one however the packets fall.
            writer.write(b"".join(answer.framed()))
        await writer.drain()
        return answer.cut is None


def _head(answer: Answer) -> bytes:
    framing = ("transfer-encoding", "chunked") if answer.chunked else ("content-length", str(len(answer.body)))
    phrase = HTTPStatus(answer.status).phrase if answer.status in set(HTTPStatus) else "Unknown"
    lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{k}: {v}" for k, v in [*answer.headers.items(), framing])]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
