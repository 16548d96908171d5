"""The way out: through which proxy, and which authorities are trusted beside the system's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from larik_nb._proxies import Proxy


class Network(NamedTuple):
    """How requests leave this machine.

    Attributes:
        http_proxy: Address of the proxy for http:// addresses; None: straight.
        https_proxy: The same for https://.
        no_proxy: Hosts that are reached straight, as NO_PROXY has them.
        ca_file: PEM file of authorities to trust beside the system's.
    """

    http_proxy: str | None = None
    https_proxy: str | None = None
    no_proxy: str = ""
    ca_file: str | None = None

    def __repr__(self) -> str:  # a proxy's address may hold a password
        return f"<Network {'through a proxy' if self.http_proxy or self.https_proxy else 'straight'}>"

    @classmethod
    def of(cls, env: Mapping[str, str], ca_file: str | None = None) -> Network:
        """Return the network that an environment describes; small letters go before capitals, as everywhere."""

        def value(name: str) -> str:
            return (env.get(name.lower()) or env.get(name) or "").strip()

        every = value("ALL_PROXY")
        return cls(
            http_proxy=value("HTTP_PROXY") or every or None,
            https_proxy=value("HTTPS_PROXY") or every or None,
            no_proxy=value("NO_PROXY"),
            ca_file=ca_file,
        )

    def proxy(self, url: str) -> Proxy | None:
        """Return the proxy on the way to `url`; None: straight. Loopback is always reached straight.

        Raises:
            ConfigError: The proxy's address cannot be used.
        """
        address = self.https_proxy if url.startswith("https:") else self.http_proxy
        if not address:
            return None
        from larik_nb import _proxies

        return _proxies.on_the_way(url, address, self.no_proxy)
