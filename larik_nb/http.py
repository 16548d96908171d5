"""The only file that opens a socket: one pooled client per event loop, time-outs and the stall limit.

The seam is `Transport`. The stock one is h11, httpx2's engine, over asyncio; the fast one (extra `fast`) is
aiohttp. Nothing of them is imported before the first request.

Every read has the stall limit and there is no limit on the whole, so a slow model is never cut off. Leaving the
`async with` early aborts the connection at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
)
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from larik_nb import errors
from larik_nb._imports import collector_paused
from larik_nb._network import Network

if TYPE_CHECKING:
    import ssl

TransportName = Literal["h11", "aiohttp"]
STRAIGHT = Network()
"""No proxy, and no authorities beside the system's."""

CONNECT_TIMEOUT_S = 30.0
"""Limit for the TCP and TLS handshakes together."""

REST: ContextVar[tuple[float, float]] = ContextVar("rest", default=(0.0, 0.0))
"""Seconds to rest before each look at the socket, and seconds that what came may be held (`resting`)."""

ERROR_BODY_BYTES = 1 << 20
"""How much of an error's body is read; what names the error stands at its beginning."""

REST_OF_ANSWER_S = 0.25
"""How long an answer that is complete may take to end its body, so that the connection can be kept."""

_INFLATED_BYTES = 1 << 20
"""How much of a compressed body is inflated at once: a few bytes may stand for a thousand times as many."""


@contextmanager
def resting(seconds: float, *, hold_s: float = 0.0) -> Iterator[None]:
    """Let the answers asked for inside be read with a rest before each look at the socket, once they have begun.

    For a reader that draws only now and then. A token that comes by itself costs a wake of the loop and a cold run of
    the decoder, many times what it costs to read it among others. What a rest leaves in the socket is taken in one go,
    and held for up to `hold_s` while more comes; the end of the answer, and a pause, hold nothing back. The stock
    transport rests; the fast one need not.
    """
    token = REST.set((seconds, hold_s))
    try:
        yield
    finally:
        REST.reset(token)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request about to be sent; times in seconds, `stall_s` being the limit of each read and write."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None
    connect_s: float
    stall_s: float


@dataclass(slots=True)
class Reply:
    """A response whose body is still coming.

    Attributes:
        status: HTTP status.
        headers: By lower-case name; of a repeated one the last.
        body: The pieces as they come.
        aclose: Lets go of the connection: back to the pool when the body was read, aborted otherwise.
    """

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    aclose: Callable[[], Awaitable[None]]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.body

    async def read(self, limit: int | None = None) -> bytes:
        """Return the rest of the body, at most about `limit` bytes of it."""
        parts: list[bytes] = []
        size = 0
        async for part in self.body:
            parts.append(part)
            size += len(part)
            if limit is not None and size >= limit:
                break
        return b"".join(parts)

    async def rest(self) -> bytes:
        """Return what still comes soon of an answer that is complete, so that its body can end; it may fail or hang."""
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(REST_OF_ANSWER_S):
                async for part in self.body:
                    parts.append(part)
        except errors.BadWire:
            pass
        except Exception as exc:
            if _failure(exc, "", REST_OF_ANSWER_S) is None:
                raise
        return b"".join(parts)


class Transport(Protocol):
    """What sends a request: the seam."""

    async def send(self, outgoing: Outgoing) -> Reply:
        """Return the reply once its headers are there."""

    async def aclose(self) -> None:
        """Close every connection."""


@asynccontextmanager
async def post(
    url: str,
    *,
    headers: Mapping[str, str],
    body: Mapping[str, Any],
    stall_timeout_s: float = 600.0,
    transport: TransportName = "h11",
    network: Network = STRAIGHT,
) -> AsyncGenerator[Reply, None]:
    """Send a JSON body and hand over the reply once its headers are there.

    Raises:
        APIError: The server could not be reached, went silent, or answered with an error status.
    """
    content = json.dumps(body, separators=(",", ":")).encode()
    own = {"content-type": "application/json", **headers}
    async with request("POST", url, own, content, stall_timeout_s, transport, network) as reply:
        if reply.status >= 300:
            raise errors.classify(reply.status, reply.headers, await _told(reply, url), where="http")
        yield reply


async def _told(reply: Reply, url: str) -> bytes:
    """Return an error's body, what came of it where the connection broke: its status and beginning say enough."""
    parts: list[bytes] = []
    try:
        async for part in reply:
            parts.append(part)
            if sum(map(len, parts)) >= ERROR_BODY_BYTES:
                break
    except errors.BadWire:
        pass
    except Exception as exc:
        if _failure(exc, url, 0.0) is None:
            raise
    return b"".join(parts)


@asynccontextmanager
async def request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: bytes | None = None,
    stall_timeout_s: float = 600.0,
    transport: TransportName = "h11",
    network: Network = STRAIGHT,
) -> AsyncGenerator[Reply, None]:
    """Send a request and hand over whatever reply comes; redirects are not followed.

    Raises:
        APIError: The server could not be reached or went silent.
    """
    stall = stall_timeout_s if stall_timeout_s > 0 else 600.0
    reply: Reply | None = None
    try:
        reply = await _client(transport, network).send(_outgoing(method, url, headers, content, stall))
        encoding = reply.headers.get("content-encoding", "").strip().lower()
        if encoding not in {"", "identity"}:
            reply.body = _inflated(reply.body, encoding)
        yield reply
    except errors.LarikError:
        raise
    except Exception as exc:
        failure = _failure(exc, url, stall)
        if failure is None:
            raise
        told = str(exc)
        raise failure from (None if any(secret in told for secret in errors.secrets()) else exc)
    finally:
        if reply is not None:
            await reply.aclose()


def _outgoing(method: str, url: str, headers: Mapping[str, str], content: bytes | None, stall_s: float) -> Outgoing:
    scheme, _, rest = url.partition("://")
    if scheme not in {"http", "https"} or not rest.partition("/")[0]:
        msg = f"the address must look like https://host/path, not {url!r}"
        raise errors.ConfigError(msg, key="base_url")
    from larik_nb._version import __version__

    own = {"accept": "*/*", "accept-encoding": "identity", "user-agent": f"larik-nb/{__version__}", **headers}
    return Outgoing(method, url, own, content, min(CONNECT_TIMEOUT_S, stall_s), stall_s)


async def _inflated(body: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    """Decompress what a server compressed though it was asked not to."""
    import zlib

    if encoding not in {"gzip", "x-gzip", "deflate"}:
        msg = f"the server compressed its answer as {encoding!r}, which was not asked for"
        raise errors.BadWire(msg)
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        async for part in body:
            while part:
                yield inflate.decompress(part, _INFLATED_BYTES)
                part = inflate.unconsumed_tail
        yield inflate.flush()
    except zlib.error as exc:
        msg = f"the server's {encoding} answer is broken: {exc}"
        raise errors.BadWire(msg) from exc


def _failure(exc: Exception, url: str, stall_s: float) -> errors.APIError | None:
    """Return our exception for a transport's; None for anything else, which is a bug and stays itself."""
    if not isinstance(exc, OSError | TimeoutError) and type(exc).__module__.partition(".")[0] not in _TRANSPORTS:
        return None
    if type(exc).__name__ in {"ReadTimeout", "WriteTimeout", "SocketTimeoutError", "ServerTimeoutError"}:
        stalled = errors.StallError()
        stalled.limit_s = stall_s
        return stalled
    return errors.transport(exc, host=url.partition("://")[2].partition("/")[0])


# -- one client per loop --------------------------------------------------------------------------------------
_TRANSPORTS = {"larik_nb", "aiohttp", "h11"}
_Key = tuple[asyncio.AbstractEventLoop, str, Network]
_clients: dict[_Key, _Client] = {}
_before_fork: list[object] = []
_tls: dict[str | None, ssl.SSLContext] = {}
_warnings: dict[str, str] = {}


@dataclass(slots=True)
class _Client:
    transport: Transport
    keeper: AsyncGenerator[None, None]


def _client(name: TransportName, network: Network) -> Transport:
    """Return the running loop's transport: a pooled connection belongs to the loop that opened it."""
    key = (asyncio.get_running_loop(), name, network)
    client = _clients.get(key)
    if client is None:
        for gone in [key for key in _clients if key[0].is_closed()]:
            del _clients[gone]
        transport = _build(name, network)
        client = _clients[key] = _Client(transport, _closed_with(key, transport))
        # A started generator is closed by the loop's own shutdown (`asyncio.run` does that), and with it the pool.
        _start(client.keeper)
    return client.transport


def _start(keeper: AsyncGenerator[None, None]) -> None:
    """Run `keeper` up to its yield, which needs no loop turn."""
    try:
        keeper.__anext__().send(None)
    except StopIteration:
        return


async def _closed_with(key: _Key, transport: Transport) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        _clients.pop(key, None)
        await transport.aclose()


def _build(name: TransportName, network: Network) -> Transport:
    with collector_paused():
        from larik_nb import _transports

        if name == "h11":
            return _transports.PoolTransport(network, tls_context)
        try:
            return _transports.AiohttpTransport(network, tls_context)
        except ImportError as exc:
            msg = 'needs the extra "fast": pip install "larik-nb[fast]"'
            raise errors.ConfigError(msg, key="network.transport") from exc


def tls_context(ca_file: str | None = None) -> ssl.SSLContext:
    """Return the TLS context for a file of authorities, made once: it costs 50 ms and every pool can share it.

    It trusts what the system trusts, whose store is not OpenSSL's on Windows and macOS. A file that cannot be used
    leaves it at that; `ca_warning` says so.
    """
    context = _tls.get(ca_file)
    if context is None:
        import ssl

        if sys.platform in {"win32", "darwin"}:
            import truststore

            context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        else:
            context = ssl.create_default_context()
        if ca_file is not None:
            _add_authorities(context, ca_file)
        _tls[ca_file] = context
    return context


def _add_authorities(context: ssl.SSLContext, ca_file: str) -> None:
    import ssl

    path = os.path.expanduser(ca_file)  # noqa: PTH111  # as OpenSSL wants it, text
    try:
        context.load_verify_locations(cafile=path)
    except ssl.SSLError:
        reason = "it holds no certificates"
    except OSError as exc:
        reason = exc.strerror or type(exc).__name__
    else:
        return
    _warnings[ca_file] = f"⚠ network.ca_file {ca_file} is not used: {reason}; the system's authorities are"


def ca_warning(url: str, network: Network) -> str | None:
    """Return, the first time it matters, that the file of authorities cannot be used."""
    if network.ca_file is None or not url.startswith("https:"):
        return None
    tls_context(network.ca_file)
    return _warnings.pop(network.ca_file, None)


def _forget() -> None:
    """Leave the parent's connections alone in a forked child: kept, never finalized, never used."""
    _before_fork.extend(_clients.values())
    _clients.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
