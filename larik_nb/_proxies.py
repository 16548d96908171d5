"""Proxies as the environment names them: their addresses, and the hosts that are reached without one."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import SplitResult, unquote, urlsplit

from larik_nb.errors import ConfigError, keep_secret

SCHEMES = ("http", "https", "socks5", "socks5h")
USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A proxy.

    Attributes:
        url: Its address, without a password.
        scheme: http, https, socks5 or socks5h.
        login: User name and password.
    """

    url: str
    scheme: str
    login: tuple[str, str] | None = field(default=None, repr=False)

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
    name = f"[{host}]" if ":" in host else host
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    if login:
        keep_secret(login[1])
        keep_secret(":".join(login))
    return Proxy(url=f"{parts.scheme}://{name}{f':{port}' if port else ''}", scheme=parts.scheme, login=login)


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
