"""The two ways to send a request. Imported by `http.py` at the first request, by nothing else.

The stock one drives httpcore2, httpx2's engine, without the client above it: that client costs as much again at
start, and cookies, redirects and authentication flows are things an API call must not do.
"""

from __future__ import annotations

import asyncio
import re
import socket
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import httpcore2

from larik_nb.errors import ConfigError
from larik_nb.http import REST_S, Outgoing, Reply

if TYPE_CHECKING:
    import ssl

    import aiohttp

    from larik_nb._network import Network
    from larik_nb._proxies import Proxy

_KEPT_CONNECTIONS = 20
_KEPT_S = 60.0
_STALE_S = 2.0
"""A kept connection that ends within this time of a request had ended before; later, the server may have worked on it."""

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
    """Return the socket options for it. httpx2 sends no HTTP/2 pings, so this is the kernel's work."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in _KEEPALIVE.items():
        if name == "TCP_KEEPALIVE" and hasattr(socket, "TCP_KEEPIDLE"):
            continue
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


_READS_AT_ONCE = 8
"""Reads of an answer without a rest: the first words are not held back."""


# -- httpcore2 over plain asyncio -----------------------------------------------------------------------------
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


class _StaleError(httpcore2.ReadError):
    """The server had closed a kept connection before it saw the request: sending it again repeats nothing."""


class _Socket(asyncio.Protocol):
    """One connection's bytes: what came waits in a buffer, who reads waits on a future."""

    def __init__(self) -> None:
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

    # asyncio's side
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # always a full transport here

    def data_received(self, data: bytes) -> None:
        self._used = self._answered = True
        self._buffer += data
        if len(self._buffer) > _BUFFER_BYTES and self.transport is not None and not self._paused:
            self._paused = True
            self.transport.pause_reading()
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
        self._writer = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        self._wake(self._writer)
        self._writer = None

    @staticmethod
    def _wake(waiter: asyncio.Future[None] | None) -> None:
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def through_tls(self, transport: asyncio.Transport) -> None:
        """Go on inside TLS. What a proxy said before does not make the connection a used one."""
        self.transport = transport
        self._used = False

    # httpcore2's side
    async def read(self, max_bytes: int, timeout: float | None) -> bytes:
        while True:
            data = await self._raw(max_bytes, timeout)
            if not data:
                return self._chunks.end()
            data = self._chunks.feed(data)
            if data:
                return data

    async def _raw(self, max_bytes: int, timeout: float | None) -> bytes:
        if not self._buffer and not self.at_end:
            await self._rest()
        if not self._buffer and not self.at_end:
            self._reader = asyncio.get_running_loop().create_future()
            self._watch(timeout)
            try:
                await self._reader
            finally:
                self._reader = None
                self._deadline = 0.0
        if not self._buffer:
            if self._used and not self._answered and asyncio.get_running_loop().time() < self._sent_at + _STALE_S:
                raise _StaleError("the kept connection had ended")
            if self.lost is not None:
                raise httpcore2.ReadError(str(self.lost)) from self.lost
            return b""
        data = bytes(self._buffer[:max_bytes])
        del self._buffer[:max_bytes]
        if self._paused and self.transport is not None:
            self._paused = False
            self.transport.resume_reading()
        return data

    async def _rest(self) -> None:
        """Leave what comes in the socket for a while, so that one wake reads many tokens (`REST_S`)."""
        self._reads += 1
        if self._reads <= _READS_AT_ONCE or not (rest_s := REST_S.get()) or self.transport is None:
            return
        self.transport.pause_reading()
        try:
            await asyncio.sleep(rest_s)
        finally:
            if not self.transport.is_closing():
                self.transport.resume_reading()

    def _watch(self, timeout: float | None) -> None:
        """Fail the waiting read after `timeout`. One timer serves many reads: it re-arms itself when it is early."""
        if timeout is None:
            return
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + timeout
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._check)

    def _check(self) -> None:
        self._timer = None
        if not self._deadline or self._reader is None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._deadline:
            self._timer = loop.call_at(self._deadline, self._check)
        elif not self._reader.done():
            self._reader.set_exception(httpcore2.ReadTimeout("no data within the stall limit"))

    async def write(self, data: bytes, timeout: float | None) -> None:
        if self.transport is None or self.at_end:
            raise _StaleError("the kept connection had ended")
        self._answered = False
        self._sent_at = asyncio.get_running_loop().time()
        self._chunks.restart()
        self._reads = 0
        self.transport.write(data)
        if self._writer is not None:
            try:
                await asyncio.wait_for(asyncio.shield(self._writer), timeout)
            except TimeoutError as exc:
                raise httpcore2.WriteTimeout("the server takes no data") from exc

    @property
    def readable(self) -> bool:
        """Whether an idle connection is of no more use: it has ended, or something unasked came."""
        return self.at_end or bool(self._buffer)


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, protocol: _Socket, transport: asyncio.Transport) -> None:
        self._protocol = protocol
        self._transport = transport

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._protocol.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if buffer:
            await self._protocol.write(buffer, timeout)

    async def aclose(self) -> None:
        # Not close(): a cancelled request must not wait for the peer's goodbye.
        self._transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        import ssl

        loop = asyncio.get_running_loop()
        try:
            wrapped = await loop.start_tls(
                self._transport,
                self._protocol,
                ssl_context,
                server_hostname=server_hostname,
                ssl_handshake_timeout=timeout,
            )
        except ssl.SSLError as exc:
            raise httpcore2.ConnectError(str(exc)) from exc
        except TimeoutError as exc:
            raise httpcore2.ConnectTimeout(str(exc)) from exc
        except OSError as exc:
            raise httpcore2.ConnectError(str(exc)) from exc
        if wrapped is None:
            raise httpcore2.ConnectError("the TLS handshake was cut off")
        self._protocol.through_tls(wrapped)
        return _Stream(self._protocol, wrapped)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return self._protocol.readable
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._transport.get_extra_info(names.get(info, info))


class _Backend(httpcore2.AsyncNetworkBackend):
    """Sockets for httpcore2 straight from asyncio: one future a read instead of a cancel scope, and no anyio calls."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        local = (local_address, 0) if local_address else None
        connecting = loop.create_connection(_Socket, host, port, local_addr=local, happy_eyeballs_delay=0.25)
        try:
            transport, protocol = await asyncio.wait_for(connecting, timeout)
        except TimeoutError as exc:
            raise httpcore2.ConnectTimeout(f"no connection within {timeout:g} s") from exc
        except OSError as exc:
            raise httpcore2.ConnectError(str(exc)) from exc
        connection: socket.socket = transport.get_extra_info("socket")
        for option in (*_keepalive(), *(socket_options or ())):
            connection.setsockopt(*option)
        return _Stream(protocol, transport)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class PoolTransport:
    """httpcore2's HTTP/1.1 pools: one for each way out, http or https, straight or through a proxy, made when needed."""

    def __init__(self, network: Network, tls_context: Callable[[str | None], ssl.SSLContext]) -> None:
        self._network = network
        self._tls_context = tls_context
        self._pools: dict[tuple[str, Proxy | None], httpcore2.AsyncConnectionPool] = {}

    def _pool(self, url: str, scheme: str) -> httpcore2.AsyncConnectionPool:
        proxy = self._network.proxy(url)
        pool = self._pools.get((scheme, proxy))
        if pool is None:
            pool = self._pools[scheme, proxy] = self._made(scheme, proxy)
        return pool

    def _made(self, scheme: str, proxy: Proxy | None) -> httpcore2.AsyncConnectionPool:
        shape: dict[str, Any] = {
            "ssl_context": self._tls_context(self._network.ca_file) if scheme == "https" else None,
            "max_connections": None,
            "max_keepalive_connections": _KEPT_CONNECTIONS,
            "keepalive_expiry": _KEPT_S,
            "network_backend": _Backend(),
        }
        if proxy is None:
            return httpcore2.AsyncConnectionPool(**shape)
        if proxy.scheme.startswith("socks"):
            return _socks(proxy, shape)
        inner = self._tls_context(self._network.ca_file) if proxy.scheme == "https" else None
        return httpcore2.AsyncHTTPProxy(proxy.url, proxy_auth=proxy.login, proxy_ssl_context=inner, **shape)

    async def send(self, outgoing: Outgoing) -> Reply:
        """Send and return the reply once its headers are there.

        Raises:
            Exception: One of httpcore2's, which `errors.transport` knows by name.
        """
        url = httpcore2.URL(outgoing.url)
        headers = [(b"host", _authority(url)), *((k.encode(), v.encode()) for k, v in outgoing.headers.items())]
        content = outgoing.content
        if content is not None:
            headers.append((b"content-length", b"%d" % len(content)))
        timeouts = {"connect": outgoing.connect_s, "read": outgoing.stall_s, "write": outgoing.stall_s}
        request = httpcore2.Request(
            outgoing.method, url, headers=headers, content=content, extensions={"timeout": timeouts}
        )
        response = await self._sent(self._pool(outgoing.url, url.scheme.decode()), request)
        pairs = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers)
        return Reply(response.status, dict(pairs), aiter(response.stream), response.aclose)  # type: ignore[arg-type]

    @staticmethod
    async def _sent(pool: httpcore2.AsyncConnectionPool, request: httpcore2.Request) -> httpcore2.Response:
        while True:
            try:
                return await pool.handle_async_request(request)
            except _StaleError:
                # Some servers announce keep-alive and close all the same. A new connection never gets here.
                continue

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()
        self._pools.clear()


def _socks(proxy: Proxy, shape: dict[str, Any]) -> httpcore2.AsyncConnectionPool:
    from importlib.util import find_spec

    if find_spec("socksio") is None:
        message = 'the way out is a SOCKS proxy, which needs the extra "socks": pip install "larik-nb[socks]"'
        raise ConfigError(message, source="environment ALL_PROXY, HTTPS_PROXY or HTTP_PROXY")
    # The names are looked up at the proxy in either spelling: behind one, this machine often cannot.
    url = proxy.url.replace("socks5h:", "socks5:")
    return httpcore2.AsyncSOCKSProxy(url, proxy_auth=proxy.login, **shape)


def _authority(url: httpcore2.URL) -> bytes:
    default = {b"http": 80, b"https": 443}[url.scheme]
    host = b"[%s]" % url.host if b":" in url.host else url.host
    return host if url.port in {None, default} else b"%s:%d" % (host, url.port)


class AiohttpTransport:
    """aiohttp's client, whose HTTP parser is compiled: a third of the CPU a delta."""

    def __init__(self, network: Network, tls_context: Callable[[str | None], ssl.SSLContext]) -> None:
        import aiohttp

        self._network = network
        self._tls_context = tls_context
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_S, socket_factory=_open_socket)
        watch = aiohttp.TraceConfig()
        watch.on_connection_create_start.append(_mark_new)
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
        if proxy is not None and proxy.scheme.startswith("socks"):
            message = "aiohttp cannot go through a SOCKS proxy"
            raise ConfigError(message, key="network.transport", remedy='Set it to "httpx2"')
        return proxy

    async def aclose(self) -> None:
        await self._session.close()


async def _mark_new(_session: object, trace: types.SimpleNamespace, _params: object) -> None:
    trace.trace_request_ctx.new = True


def _open_socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    for option in _keepalive():
        opened.setsockopt(*option)
    return opened
