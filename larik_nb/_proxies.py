"""Proxies as the environment names them: their addresses, the hosts that are reached without one, and the way through."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from larik_nb.errors import ConfigError, keep_secret

SCHEMES = ("http", "https", "socks5", "socks5h")
USUAL_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A proxy.

    Attributes:
        scheme: http, https, socks5 or socks5h.
        host: Its name or address.
        port: Where it listens.
        login: User name and password.
    """

    scheme: str
    host: str
    port: int
    login: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Its address, without the login."""
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS, not HTTP."""
        return self.scheme.startswith("socks")

    @property
    def basic(self) -> str:
        """The login as the header Proxy-Authorization has it."""
        import base64

        return "Basic " + base64.b64encode(":".join(self.login or ()).encode()).decode()


def on_the_way(url: str, address: str, no_proxy: str) -> Proxy | None:
    """Return the proxy at `address`; None where `url` is reached straight.

    Raises:
        ConfigError: The address cannot be used.
    """
    parts = urlsplit(url)
    if _is_loopback(parts.hostname or "") or _is_excepted(parts, no_proxy):
        return None
    return _read(address, f"{parts.scheme.upper()}_PROXY")


@lru_cache
def _read(address: str, variable: str) -> Proxy:
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, SplitResult("", "", "", "", "")
    if not host or parts.scheme not in SCHEMES:
        remedy = "Write it like http://host:3128 or socks5://host:1080"
        raise ConfigError("is no proxy's address", source=f"environment {variable} or ALL_PROXY", remedy=remedy)
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    if login:
        keep_secret(login[1])
        keep_secret(":".join(login))
    return Proxy(scheme=parts.scheme, host=host, port=port or USUAL_PORTS[parts.scheme], login=login)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _is_excepted(parts: SplitResult, no_proxy: str) -> bool:
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or USUAL_PORTS.get(parts.scheme)
    return any(_matches(rule, host, port) for rule in no_proxy.lower().replace(",", " ").split())


def _matches(rule: str, host: str, port: int | None) -> bool:
    """Return whether a rule of NO_PROXY holds: `*`, a domain with what is below it, an address or a range; maybe a port."""
    if rule == "*":
        return True
    address = _address(host)
    if address is not None and "/" in rule:
        return _is_in(address, rule)
    name, colon, digits = rule.rpartition(":")
    if colon and digits.isdigit() and not (name.count(":") and "]" not in name):
        if int(digits) != port:
            return False
        rule = name
    name = rule.strip("[]").removeprefix("*").removeprefix(".")
    if address is not None:
        return _address(name) == address
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_in(address: ipaddress.IPv4Address | ipaddress.IPv6Address, rule: str) -> bool:
    try:
        return address in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return False


# -- the way through ----------------------------------------------------------------------------------------------------
class ProxyError(Exception):
    """The proxy did not let a request through."""


class Wire(Protocol):
    """A connection to a proxy."""

    async def write(self, data: bytes, timeout: float | None) -> None:
        """Send bytes."""

    async def raw(self, max_bytes: int, timeout: float | None) -> bytes:
        """Return the bytes that come next; none at the end."""


HEAD_BYTES = 1 << 16


async def open_tunnel(wire: Wire, host: str, port: int, proxy: Proxy, limit_s: float) -> None:
    """Let a proxy connect to a place, so that what follows on the wire is between us and it.

    Raises:
        ProxyError: It would not.
    """
    if proxy.is_socks:
        await _socks(wire, host, port, proxy, limit_s)
    else:
        await _connect(wire, host, port, proxy, limit_s)


async def _connect(wire: Wire, host: str, port: int, proxy: Proxy, limit_s: float) -> None:
    """Ask for a tunnel as RFC 9110, section 9.3.6, has it."""
    place = f"{f'[{host}]' if ':' in host else host}:{port}"
    login = f"proxy-authorization: {proxy.basic}\r\n" if proxy.login else ""
    await wire.write(f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n{login}\r\n".encode(), limit_s)
    head = b""
    while not head.endswith(b"\r\n\r\n"):  # byte by byte at its end: what comes behind it is not the proxy's
        head += await _exactly(wire, 1, limit_s)
        if len(head) > HEAD_BYTES:
            raise ProxyError("the proxy's answer has no end")
    status = head.split(b"\r\n", 1)[0].decode("latin-1")
    if status.split(" ")[1:2] != ["200"]:
        raise ProxyError(f"the proxy {proxy.host} answered {status.partition(' ')[2]}")


_SOCKS5 = 5
_NO_LOGIN, _LOGIN = 0, 2
_IPV4, _NAME, _IPV6 = 1, 3, 4
_SOCKS_ERRORS = {
    2: "its rules forbid it",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
}


async def _socks(wire: Wire, host: str, port: int, proxy: Proxy, limit_s: float) -> None:
    """Ask for a tunnel as RFC 1928 and RFC 1929 have it. The proxy looks names up: behind one, we often cannot."""
    offered = [_NO_LOGIN, *([_LOGIN] if proxy.login else [])]
    await wire.write(bytes([_SOCKS5, len(offered), *offered]), limit_s)
    version, chosen = await _exactly(wire, 2, limit_s)
    if version != _SOCKS5 or chosen not in offered:
        raise ProxyError(f"the SOCKS proxy {proxy.host} wants another authentication")
    if chosen == _LOGIN and proxy.login:
        words = [word.encode()[:255] for word in proxy.login]
        await wire.write(b"\x01" + b"".join(bytes([len(word)]) + word for word in words), limit_s)
        if (await _exactly(wire, 2, limit_s))[1]:
            raise ProxyError(f"the SOCKS proxy {proxy.host} refused the login: authentication failed")
    await wire.write(bytes([_SOCKS5, 1, 0]) + _socks_address(host) + port.to_bytes(2, "big"), limit_s)
    _, refused, _, kind = await _exactly(wire, 4, limit_s)
    if refused:
        why = _SOCKS_ERRORS.get(refused, f"error {refused}")
        raise ProxyError(f"the SOCKS proxy {proxy.host} cannot reach {host}: {why}")
    size = {_IPV4: 4, _IPV6: 16}.get(kind) or (await _exactly(wire, 1, limit_s))[0]
    await _exactly(wire, size + 2, limit_s)


def _socks_address(host: str) -> bytes:
    address = _address(host)
    if address is None:
        name = host.encode()
        return bytes([_NAME, len(name)]) + name
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed


async def _exactly(wire: Wire, count: int, limit_s: float) -> bytes:
    data = b""
    while len(data) < count:
        part = await wire.raw(count - len(data), limit_s)
        if not part:
            raise ProxyError("the proxy ended the connection")
        data += part
    return data
