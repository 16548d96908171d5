"""The only file that opens a socket: one pooled client per event loop, time-outs and the stall limit.

The seam is httpx2's transport interface. The stock transport is httpcore2's connection pool over asyncio; the fast
one (extra `fast`) is aiohttp behind the same interface. Nothing is imported before the first request.

Every read has the stall limit and there is no limit on the whole, so a slow model is never cut off. Leaving the
`async with` early aborts the connection at once.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from larik_nb import errors

if TYPE_CHECKING:
    import ssl

    import httpx2

    from larik_nb._transports import AiohttpTransport, AsyncioTransport

TransportName = Literal["httpx2", "aiohttp"]

CONNECT_TIMEOUT_S = 30.0
"""Limit for the TCP and TLS handshakes together."""

ERROR_BODY_BYTES = 1 << 20
"""How much of an error's body is read; what names the error stands at its beginning."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response whose body is still coming."""

    status: int
    headers: Mapping[str, str]
    _body: AsyncIterator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._body

    async def read(self, limit: int | None = None) -> bytes:
        """Return the rest of the body, at most about `limit` bytes of it."""
        parts: list[bytes] = []
        size = 0
        async for part in self._body:
            parts.append(part)
            size += len(part)
            if limit is not None and size >= limit:
                break
        return b"".join(parts)


@asynccontextmanager
async def post(
    url: str,
    *,
    headers: Mapping[str, str],
    body: Mapping[str, Any],
    stall_timeout_s: float = 600.0,
    transport: TransportName = "httpx2",
) -> AsyncGenerator[Reply, None]:
    """Send a JSON body and hand over the reply once its headers are there.

    Raises:
        APIError: The server could not be reached, went silent, or answered with an error status.
    """
    content = json.dumps(body, separators=(",", ":")).encode()
    own = {"content-type": "application/json", **headers}
    async with request("POST", url, own, content, stall_timeout_s, transport) as reply:
        if reply.status >= 300:
            text = await reply.read(ERROR_BODY_BYTES)
            raise errors.classify(reply.status, reply.headers, text, where="http")
        yield reply


@asynccontextmanager
async def request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: bytes | None = None,
    stall_timeout_s: float = 600.0,
    transport: TransportName = "httpx2",
) -> AsyncGenerator[Reply, None]:
    """Send a request and hand over whatever reply comes; redirects are not followed.

    Raises:
        APIError: The server could not be reached or went silent.
    """
    client = _client(transport)
    stall = stall_timeout_s if stall_timeout_s > 0 else 600.0
    response: httpx2.Response | None = None
    try:
        response = await client.handle_async_request(_outgoing(method, url, headers, content, stall))
        yield Reply(response.status_code, response.headers, _body(response))
    except errors.LarikError:
        raise
    except Exception as exc:
        failure = _failure(exc, url, stall)
        if failure is None:
            raise
        raise failure from exc
    finally:
        if response is not None:
            await response.aclose()


def _outgoing(
    method: str, url: str, headers: Mapping[str, str], content: bytes | None, stall_s: float
) -> httpx2.Request:
    import httpx2

    timeouts = {"connect": min(CONNECT_TIMEOUT_S, stall_s), "read": stall_s, "write": stall_s, "pool": None}
    own = {"accept": "*/*", "accept-encoding": "identity", "user-agent": _user_agent(), **headers}
    return httpx2.Request(method, url, headers=own, content=content, extensions={"timeout": timeouts})


def _user_agent() -> str:
    from larik_nb._version import __version__

    return f"larik-nb/{__version__}"


def _body(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Return the body's pieces as they come, decompressed where a server compressed unasked."""
    if "content-encoding" in response.headers:
        return response.aiter_bytes()
    return response.stream.__aiter__()  # type: ignore[union-attr]  # both transports give async streams


def _failure(exc: Exception, url: str, stall_s: float) -> errors.APIError | None:
    """Return our exception for a transport's; None for anything else, which is a bug and stays itself."""
    import httpx2

    if isinstance(exc, httpx2.ReadTimeout | httpx2.WriteTimeout):
        message = f"the model API stopped responding: no data for {stall_s:g} s (the limit is stall_timeout_s)"
        return errors.StallError(message)
    if isinstance(exc, httpx2.HTTPError | httpx2.InvalidURL | OSError):
        return errors.transport(exc, host=url.partition("://")[2].partition("/")[0] or url)
    return None


# -- one client per loop --------------------------------------------------------------------------------------
_clients: dict[tuple[asyncio.AbstractEventLoop, str], _Client] = {}
_before_fork: list[object] = []
_tls: ssl.SSLContext | None = None


@dataclass(slots=True)
class _Client:
    transport: AsyncioTransport | AiohttpTransport
    keeper: AsyncGenerator[None, None]


def _client(name: TransportName) -> AsyncioTransport | AiohttpTransport:
    """Return the running loop's transport: a pooled connection belongs to the loop that opened it."""
    loop = asyncio.get_running_loop()
    client = _clients.get((loop, name))
    if client is None:
        for gone in [key for key in _clients if key[0].is_closed()]:
            del _clients[gone]
        transport = _build(name)
        client = _clients[loop, name] = _Client(transport, _closed_with(loop, name, transport))
        # A started generator is closed by the loop's own shutdown (`asyncio.run` does that), and with it the pool.
        _start(client.keeper)
    return client.transport


def _start(keeper: AsyncGenerator[None, None]) -> None:
    """Run `keeper` up to its yield, which needs no loop turn."""
    try:
        keeper.__anext__().send(None)
    except StopIteration:
        return


async def _closed_with(
    loop: asyncio.AbstractEventLoop, name: str, transport: AsyncioTransport | AiohttpTransport
) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        _clients.pop((loop, name), None)
        await transport.aclose()


def _build(name: TransportName) -> AsyncioTransport | AiohttpTransport:
    with _quick_import():
        if name == "aiohttp":
            from larik_nb._transports import AiohttpTransport as Transport
        else:
            from larik_nb._transports import AsyncioTransport as Transport  # type: ignore[assignment]
    return Transport(tls_context)


def tls_context() -> ssl.SSLContext:
    """Return the one TLS context, made at the first https request: it costs 50 ms and every pool can share it."""
    global _tls  # noqa: PLW0603  # shared on purpose
    if _tls is None:
        import httpx2

        _tls = httpx2.create_ssl_context()
    return _tls


@contextmanager
def _quick_import() -> Iterator[None]:
    """Hold the garbage collector while modules load: it finds nothing there and costs a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _forget() -> None:
    """Leave the parent's connections alone in a forked child: kept, never finalized, never used."""
    _before_fork.extend(_clients.values())
    _clients.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
