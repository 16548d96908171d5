"""The two ways to send a request. Imported by `http.py` at the first request, by nothing else.

The stock one drives h11, httpx2's own HTTP/1.1 engine, without the client and the pool above it: importing those took
half of the time that a process needs to its first answer, and each delta passed five of their layers. Cookies,
redirects and authentication flows are things an API call must not do.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import types
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote, urlsplit

import h11

from larik_nb import _sending
from larik_nb.errors import ConfigError
from larik_nb.http import REST, Outgoing, Reply

if TYPE_CHECKING:
    import ssl

    import aiohttp

    from larik_nb._network import Network
    from larik_nb._proxies import Proxy

_KEPT_CONNECTIONS = 20
_KEPT_S = 60.0
_STALE_S = 2.0
"""A kept connection that ends within this time of a request had ended before; later, the server may have worked on it."""

_NEXT_ADDRESS_S = 0.25
"""A name's next address is tried as well when the one before has not answered by then (RFC 8305)."""
_IS_NUMBER = re.compile(r"[0-9.]+|[^:]*:.*").fullmatch

_BUFFER_BYTES = 1 << 18
_READ_BYTES = 1 << 16


_KEEPALIVE = {
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPALIVE": 30,  # macOS spells the idle option so
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 45_000,
}
"""Seconds, probes and milliseconds that find a dead peer in 45 s without touching a slow one."""


def _keepalive() -> list[tuple[int, int, int]]:
    """Return the socket options for it. HTTP/1.1 has no pings, so this is the kernel's work."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in _KEEPALIVE.items():
        if name == "TCP_KEEPALIVE" and hasattr(socket, "TCP_KEEPIDLE"):
            continue
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


_READS_AT_ONCE = 8
"""Reads of an answer without a rest: the first words are not held back."""

_PAUSE_S = 0.005
"""How long nothing may come after a rest until what is held goes on."""

_STEPS = 10
"""What came is held for at most this fraction of the time since the question."""

_LAST_CHUNK = b"0\r\n\r\n"


# -- h11 over plain asyncio -----------------------------------------------------------------------------
class Rechunker:
    """Joins the HTTP chunks of a response as any proxy may, before h11 reads them.

    Providers send a chunk an event, one read brings dozens, and h11 takes most of a delta's CPU to step over each.
    What it gets instead says the same in one chunk a read. Anything unexpected passes through untouched, so that h11
    alone judges it.
    """

    __slots__ = ("_left", "_pending", "_state")

    def __init__(self) -> None:
        self._state: Literal["head", "size", "data", "pass"] = "head"
        self._pending = b""
        self._left = 0

    def restart(self) -> None:
        """Expect a new response: a request has just been written."""
        if self._state != "head" or self._pending:
            self._state, self._pending = "head", b""

    def feed(self, data: bytes) -> bytes:
        """Return what h11 is to read for `data`; nothing when a line is still incomplete."""
        if self._state == "pass":
            return data
        data, self._pending = self._pending + data, b""
        if self._state == "head":
            return self._head(data)
        return self._body(data, 0, b"")

    def end(self) -> bytes:
        """Return what was held back, for the connection has ended."""
        held, self._pending, self._state = self._pending, b"", "pass"
        return held

    def _head(self, data: bytes) -> bytes:
        at = 0
        while (blank := _BLANK(data, at)) and data[at + 9 : at + 10] == b"1":
            # 100 Continue and its like: the real head follows.
            at = blank.end()
        if blank is None:
            if len(data) - at > _HEAD_BYTES or not _RESPONSE.startswith(data[at : at + 5]):
                self._state = "pass"
                return data
            self._pending = data[at:]
            return data[:at]
        if not _CHUNKED(data, at, blank.end() - 2):
            self._state = "pass"
            return data
        self._state = "size"
        return self._body(data, blank.end(), data[: blank.end()])

    def _body(self, data: bytes, at: int, before: bytes) -> bytes:
        """Take the chunks from `at` on; `before` goes out ahead of them."""
        pieces: list[bytes] = []
        size, find = len(data), data.find
        while at < size:
            if self._state == "size":
                line = find(b"\r\n", at)
                if line < 0:
                    if size - at > _SIZE_LINE_BYTES:
                        self._state = "pass"
                        return before + _chunk(pieces) + data[at:]
                    break
                self._left = _chunk_size(data[at:line])
                if self._left <= 0:
                    # The last chunk, or none that we understand: the rest is h11's.
                    self._state = "pass"
                    return before + _chunk(pieces) + data[at:]
                at, self._state = line + 2, "data"
            if size - at < self._left + 2:
                # Not all of this chunk is there: hand over what is, as a chunk, and go on inside it.
                piece = data[at : at + self._left]
                pieces.append(piece)
                self._left -= len(piece)
                at += len(piece)
                break
            end = at + self._left
            if data[end : end + 2] != b"\r\n":
                # Broken framing: with the size still due, or no line where one belongs, for h11 to refuse.
                self._state = "pass"
                due = b"%x" % self._left if self._left else b""
                return before + _chunk(pieces) + due + b"\r\n" + data[at:]
            pieces.append(data[at:end])
            at, self._state = end + 2, "size"
        self._pending = data[at:]
        return before + _chunk(pieces)


_RESPONSE = b"HTTP/"
_HEAD_BYTES = 1 << 16
_SIZE_LINE_BYTES = 1 << 12
_BLANK = re.compile(rb"\n\r?\n").search
"""The end of a head. Some small servers end lines with LF alone, which h11 takes."""
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*chunked", re.IGNORECASE).search


def _chunk_size(line: bytes) -> int:
    """Return the size in a chunk's first line, -1 for a line that is none."""
    digits = line.partition(b";")[0].strip()
    return int(digits, 16) if digits.isalnum() and len(digits) <= _SIZE_DIGITS and not digits.strip(_HEX) else -1


_HEX = b"0123456789abcdefABCDEF"
_SIZE_DIGITS = 15


def _chunk(pieces: list[bytes]) -> bytes:
    data = b"".join(pieces)
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


class TransportError(Exception):
    """A request did not get through. The names are the ones that HTTP clients share; `errors.transport` reads them."""


class ConnectError(TransportError):
    """No connection: refused, no such host, a certificate that does not hold."""


class ConnectTimeout(TransportError):
    """No connection in time."""


class ReadError(TransportError):
    """The connection broke."""


class ReadTimeout(TransportError):
    """No bytes for the stall limit."""


class WriteTimeout(TransportError):
    """The server took no bytes for the stall limit."""


class RemoteProtocolError(TransportError):
    """The server ended the connection where it must not."""


class _StaleError(ReadError):
    """The server had closed a kept connection before it saw the request: sending it again repeats nothing."""


_memory = threading.local()


def _lent() -> memoryview:
    """Return what the loop of this thread reads into."""
    try:
        lent: memoryview = _memory.lent
    except AttributeError:
        lent = _memory.lent = memoryview(bytearray(_READ_BYTES))
    return lent


class _Socket(asyncio.BufferedProtocol):
    """One connection's bytes: what came waits in a buffer, who reads waits on a future.

    It lends asyncio the memory to read into: a plain protocol is given a fresh quarter of a megabyte for each read,
    which the system maps and unmaps. All connections of a loop lend the same, for what was read into it is taken out
    before the loop does anything else.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lent = _lent()
        self.transport: asyncio.Transport | None = None
        self.lost: Exception | None = None
        self.at_end = False
        self._buffer = bytearray()
        self._chunks = Rechunker()
        self._used = False
        self._answered = False
        self._sent_at = 0.0
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._paused = False
        self._reads = 0
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._rest_s = 0.0
        self._hold_until = 0.0

    # asyncio's side
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # always a full transport here

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._lent

    def buffer_updated(self, nbytes: int) -> None:
        self._used = self._answered = True
        self._buffer += self._lent[:nbytes]
        if len(self._buffer) > _BUFFER_BYTES and self.transport is not None and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        if self._may_hold():
            self._rest()
        else:
            self._wake(self._reader)

    def eof_received(self) -> None:
        self.at_end = True
        self._wake(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = exc
        self.at_end = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake(self._reader)
        self._wake(self._writer)

    def pause_writing(self) -> None:
        self._writer = self._loop.create_future()

    def resume_writing(self) -> None:
        self._wake(self._writer)
        self._writer = None

    @staticmethod
    def _wake(waiter: asyncio.Future[None] | None) -> None:
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def through(self, transport: asyncio.BaseTransport | None) -> None:
        """Go on behind a proxy, inside TLS where a transport is given: what the proxy said was no answer."""
        if transport is not None:
            self.transport = transport  # type: ignore[assignment]  # always a full transport here
        self._used = False

    # the connection's side
    async def read(self, max_bytes: int, timeout: float, until: float | None = None) -> bytes:
        """Return what h11 is to read next.

        Args:
            max_bytes: At most so much of the socket's own.
            timeout: Seconds without a byte.
            until: The loop's time by which something that h11 can use must be there; each byte that cannot be used
                would otherwise begin the waiting anew.
        """
        while True:
            if until is not None and (timeout := until - self._loop.time()) <= 0:
                raise ReadTimeout("no answer within the stall limit")
            data = await self.raw(max_bytes, timeout)
            if not data:
                return self._chunks.end()
            data = self._chunks.feed(data)
            if data:
                return data

    async def raw(self, max_bytes: int, timeout: float | None) -> bytes:
        if not self._buffer and not self.at_end:
            self._reader = self._loop.create_future()
            self._watch(timeout)
            self._begin_rest(timeout)
            try:
                await self._reader
            finally:
                self._reader = None
                self._deadline = self._hold_until = 0.0
                self._look()
        if not self._buffer:
            if self._used and not self._answered and self._loop.time() < self._sent_at + _STALE_S:
                raise _StaleError("the kept connection had ended")
            if self.lost is not None:
                raise ReadError(str(self.lost)) from self.lost
            return b""
        data = bytes(self._buffer[:max_bytes])
        del self._buffer[:max_bytes]
        if self._paused and self.transport is not None:
            self._paused = False
            self.transport.resume_reading()
        return data

    def _begin_rest(self, timeout: float | None) -> None:
        """Leave what comes in the socket for a while, so that one wake reads many tokens (`resting`)."""
        self._reads += 1
        self._rest_s, hold_s = REST.get() if self._reads > _READS_AT_ONCE else (0.0, 0.0)
        if self._rest_s:
            now = self._loop.time()
            # A long answer may come in larger steps; but what is held must not look like silence.
            self._hold_until = now + min(hold_s, (now - self._sent_at) / _STEPS, (timeout or hold_s) / 4)
            self._rest()

    def _rest(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self._stop_resting()
            self.transport.pause_reading()
            self._resting = self._loop.call_later(self._rest_s, self._look)

    def _look(self) -> None:
        """End a rest: what is in the socket comes at once, or there was a pause, and what is held goes on."""
        if not self._stop_resting() or self.transport is None or self.transport.is_closing():
            return
        if not self._paused:
            self.transport.resume_reading()
        if self._reader is not None and self._buffer:
            self._resting = self._loop.call_later(_PAUSE_S, self._wake, self._reader)

    def _stop_resting(self) -> bool:
        timer, self._resting = self._resting, None
        if timer is not None:
            timer.cancel()
        return timer is not None

    def _may_hold(self) -> bool:
        return (
            self._hold_until > 0
            and not self._paused
            and not self._buffer.endswith(_LAST_CHUNK)
            and self._loop.time() < self._hold_until
        )

    def _watch(self, timeout: float | None) -> None:
        """Fail the waiting read after `timeout`. One timer serves many reads: it re-arms itself when it is early."""
        if timeout is None:
            return
        self._deadline = self._loop.time() + timeout
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._check)

    def rest_idle(self) -> None:
        """Wake nobody while nothing is asked."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        if not self._deadline or self._reader is None:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._check)
        elif not self._reader.done():
            self._reader.set_exception(ReadTimeout("no data within the stall limit"))

    async def write(self, data: bytes, timeout: float | None) -> None:
        if self.transport is None or self.at_end:
            raise (_StaleError if self._used else ReadError)("the connection had ended")
        self._answered = False
        self._sent_at = self._loop.time()
        self._chunks.restart()
        self._reads = 0
        self.transport.write(data)
        if self._writer is not None:
            try:
                await asyncio.wait_for(asyncio.shield(self._writer), timeout)
            except TimeoutError as exc:
                raise WriteTimeout("the server takes no data") from exc

    @property
    def readable(self) -> bool:
        """Whether an idle connection is of no more use: it has ended, or something unasked came."""
        return self.at_end or bool(self._buffer)


class _Connection:
    """One HTTP/1.1 connection: the socket brings the bytes, h11 says what they mean."""

    def __init__(self, wire: _Socket) -> None:
        self._wire = wire
        self._http = h11.Connection(h11.CLIENT)
        self.idle_until = 0.0

    async def ask(self, outgoing: Outgoing, place: _Place) -> h11.Response:
        """Send a request and return the answer's head."""
        content = outgoing.content or b""
        headers = [("host", place.authority), *place.headers, *outgoing.headers.items()]
        if outgoing.content is not None:
            headers.append(("content-length", str(len(content))))
        parts: list[h11.Event] = [h11.Request(method=outgoing.method, target=place.target, headers=headers)]
        parts += [h11.Data(data=content), h11.EndOfMessage()]
        if not self._wire.at_end:
            _sending.go()
        await self._wire.write(b"".join(self._http.send(part) or b"" for part in parts), outgoing.stall_s)
        # The head has one limit: a server that says "wait" for ever, or a letter at a time, has stalled as well.
        until = asyncio.get_running_loop().time() + outgoing.stall_s
        while True:
            event = await self._event(outgoing.stall_s, until)
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise RemoteProtocolError("the server ended the connection before it answered")

    async def body(self, stall_s: float) -> AsyncGenerator[bytes, None]:
        """Yield the answer's body as it comes."""
        while isinstance(event := await self._event(stall_s), h11.Data):
            yield bytes(event.data)

    async def _event(self, stall_s: float, until: float | None = None) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = await self._wire.read(_READ_BYTES, stall_s, until)
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise RemoteProtocolError("the server ended the connection before it answered")
            self._http.receive_data(data)
        return event

    def reuse(self) -> bool:
        """Make ready for the next request; False where the last one did not end, or the server wants to close."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE or self._wire.readable:
            return False
        self._http.start_next_cycle()
        self._wire.rest_idle()
        return True

    @property
    def is_fresh(self) -> bool:
        """Whether a kept connection can still be used."""
        return not self._wire.readable and asyncio.get_running_loop().time() < self.idle_until

    def abort(self) -> None:
        """Close at once: a cancelled request must not wait for the peer's goodbye."""
        if self._wire.transport is not None:
            self._wire.transport.abort()


class _Place(NamedTuple):
    """Where a request goes: the connection's key, and what the request's head says."""

    scheme: str
    host: str
    port: int
    authority: str
    target: str
    proxy: Proxy | None = None
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, url: str, proxy: Proxy | None) -> _Place:
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").encode("idna").decode() if not url.isascii() else parts.hostname or ""
            usual = {"http": 80, "https": 443}[parts.scheme]
            port = parts.port or usual
        except ValueError as exc:
            raise ConfigError(f"the address {url!r} cannot be used: {exc}", key="base_url") from exc
        named = f"[{host}]" if ":" in host else host
        target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~") + (f"?{parts.query}" if parts.query else "")
        authority = named if port == usual else f"{named}:{port}"
        if proxy is None or proxy.is_socks or parts.scheme == "https":
            return cls(parts.scheme, host, port, authority, target, proxy)
        # A proxy without a tunnel reads the request itself: whereto, and who asks.
        login = (("proxy-authorization", proxy.basic),) if proxy.login else ()
        return cls(parts.scheme, host, port, authority, f"http://{authority}{target}", proxy, login)

    @property
    def key(self) -> tuple[str, str, int, Proxy | None]:
        """What requests must share to share a connection."""
        return self.scheme, self.host, self.port, self.proxy


async def _numbered(host: str, port: int) -> socket.socket:
    """Return a socket that is connected to an address of numbers."""
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)  # noqa: FBT003  # asyncio wants it so
        await asyncio.get_running_loop().sock_connect(opened, (host, port))
    except BaseException:
        opened.close()
        raise
    return opened


class PoolTransport:
    """Connections over plain asyncio, kept for the next request to the same place."""

    def __init__(self, network: Network, tls_context: Callable[[str | None], ssl.SSLContext]) -> None:
        self._network = network
        self._tls_context = tls_context
        self._kept: dict[tuple[str, str, int, Proxy | None], list[_Connection]] = {}
        self._open: set[_Connection] = set()

    async def send(self, outgoing: Outgoing) -> Reply:
        """Send and return the reply once its headers are there.

        Raises:
            Exception: One of this module's or h11's, which `errors.transport` knows by name.
        """
        place = _Place.of(outgoing.url, self._network.proxy(outgoing.url))
        while True:
            connection = self._take(place) or await self._connect(place, outgoing.connect_s)
            try:
                response = await connection.ask(outgoing, place)
            except _StaleError:
                # Some servers announce keep-alive and close all the same. A new connection never gets here.
                self._drop(connection)
            except BaseException:
                self._drop(connection)
                raise
            else:
                break
        body = connection.body(outgoing.stall_s)

        async def close() -> None:
            await body.aclose()
            self._give_back(place, connection)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        return Reply(response.status_code, headers, body, close)

    def _take(self, place: _Place) -> _Connection | None:
        kept = self._kept.get(place.key, [])
        while kept:
            connection = kept.pop()
            if connection.is_fresh:
                return connection
            self._drop(connection)
        return None

    def _give_back(self, place: _Place, connection: _Connection) -> None:
        kept = self._kept.setdefault(place.key, [])
        if len(kept) >= _KEPT_CONNECTIONS or not connection.reuse():
            self._drop(connection)
            return
        connection.idle_until = asyncio.get_running_loop().time() + _KEPT_S
        kept.append(connection)

    def _drop(self, connection: _Connection) -> None:
        self._open.discard(connection)
        connection.abort()

    async def _connect(self, place: _Place, limit_s: float) -> _Connection:
        try:
            async with asyncio.timeout(limit_s):
                wire = await self._opened(place, limit_s)
        except TimeoutError as exc:
            raise ConnectTimeout(f"no connection within {limit_s:g} s") from exc
        except OSError as exc:
            raise ConnectError(str(exc)) from exc
        connection = _Connection(wire)
        self._open.add(connection)
        return connection

    async def _opened(self, place: _Place, limit_s: float) -> _Socket:
        proxy = place.proxy
        if proxy is None:
            return await self._dialled(place.host, place.port, place.scheme == "https", limit_s)
        wire = await self._dialled(proxy.host, proxy.port, proxy.scheme == "https", limit_s)
        try:
            if proxy.is_socks or place.scheme == "https":
                await self._tunnelled(wire, place, proxy, limit_s)
        except BaseException:
            if wire.transport is not None:
                wire.transport.abort()
            raise
        return wire

    async def _dialled(self, host: str, port: int, secure: bool, limit_s: float) -> _Socket:  # noqa: FBT001
        tls: dict[str, Any] = {}
        if secure:
            context = self._tls_context(self._network.ca_file)
            tls = {"ssl": context, "server_hostname": host, "ssl_handshake_timeout": limit_s}
        loop = asyncio.get_running_loop()
        if _IS_NUMBER(host):
            # One address, of which there is nothing to look up and nothing to race: either costs as much as connecting.
            tls["sock"] = await _numbered(host, port)
        else:
            tls |= {"host": host, "port": port, "happy_eyeballs_delay": _NEXT_ADDRESS_S}
        transport, wire = await loop.create_connection(_Socket, **tls)
        opened: socket.socket = transport.get_extra_info("socket")
        for option in _keepalive():
            opened.setsockopt(*option)
        return wire

    async def _tunnelled(self, wire: _Socket, place: _Place, proxy: Proxy, limit_s: float) -> None:
        """Go through a proxy to the place, and begin TLS with it where that is wanted."""
        from larik_nb import _proxies

        await _proxies.open_tunnel(wire, place.host, place.port, proxy, limit_s)
        secured = None
        if place.scheme == "https":
            assert wire.transport is not None
            secured = await asyncio.get_running_loop().start_tls(
                wire.transport,
                wire,
                self._tls_context(self._network.ca_file),
                server_hostname=place.host,
                ssl_handshake_timeout=limit_s,
            )
        wire.through(secured)

    async def aclose(self) -> None:
        """Close every connection."""
        for connection in list(self._open):
            self._drop(connection)
        self._kept.clear()


class AiohttpTransport:
    """aiohttp's client, whose HTTP parser is compiled: a third of the CPU a delta."""

    def __init__(self, network: Network, tls_context: Callable[[str | None], ssl.SSLContext]) -> None:
        import aiohttp

        self._network = network
        self._tls_context = tls_context
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_S, socket_factory=_open_socket)
        watch = aiohttp.TraceConfig()
        watch.on_connection_create_start.append(_mark_new)
        watch.on_request_headers_sent.append(_mark_gone)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_BUFFER_BYTES,
            trace_configs=[watch],
        )

    async def send(self, outgoing: Outgoing) -> Reply:
        """Send and return the reply once its headers are there.

        Raises:
            Exception: One of aiohttp's, which `errors.transport` knows by name.
        """
        response = await self._sent(outgoing)

        async def close() -> None:
            if response.content.at_eof():
                response.release()
            else:
                response.close()

        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status, headers, response.content.iter_chunked(_READ_BYTES), close)

    async def _sent(self, outgoing: Outgoing) -> aiohttp.ClientResponse:
        """Return the response once its head is there, for which there is one limit, whatever comes before it."""
        async with asyncio.timeout(outgoing.connect_s + outgoing.stall_s):
            return await self._asked(outgoing)

    async def _asked(self, outgoing: Outgoing) -> aiohttp.ClientResponse:
        import aiohttp

        begun = asyncio.get_running_loop().time()
        secure = outgoing.url.startswith("https:")
        proxy = self._proxy(outgoing.url)
        login = {"Proxy-Authorization": proxy.basic} if proxy and proxy.login else {}
        while True:
            connection = types.SimpleNamespace(new=False)
            try:
                return await self._session.request(
                    outgoing.method,
                    outgoing.url,
                    headers={**outgoing.headers, **({} if secure else login)},
                    data=outgoing.content,
                    timeout=aiohttp.ClientTimeout(
                        total=None, sock_connect=outgoing.connect_s, sock_read=outgoing.stall_s, ceil_threshold=3600
                    ),
                    allow_redirects=False,
                    ssl=self._tls_context(self._network.ca_file) if secure else True,
                    proxy=proxy.url if proxy else None,
                    proxy_headers=login if secure else None,
                    trace_request_ctx=connection,
                )
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if connection.new or asyncio.get_running_loop().time() > begun + _STALE_S:
                    raise

    def _proxy(self, url: str) -> Proxy | None:
        proxy = self._network.proxy(url)
        if proxy is not None and proxy.is_socks:
            message = "aiohttp cannot go through a SOCKS proxy"
            raise ConfigError(message, key="network.transport", remedy='Set it to "h11"')
        return proxy

    async def aclose(self) -> None:
        await self._session.close()


async def _mark_new(_session: object, trace: types.SimpleNamespace, _params: object) -> None:
    trace.trace_request_ctx.new = True


async def _mark_gone(_session: object, _trace: object, _params: object) -> None:
    _sending.go()


def _open_socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    for option in _keepalive():
        opened.setsockopt(*option)
    return opened
