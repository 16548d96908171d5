"""What the providers of this room share: each stands around another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from larik_nb import providers

if TYPE_CHECKING:
    from larik_nb.errors import ConfigError
    from larik_nb.providers import Provider
    from larik_nb.providers._wire import Wire
    from larik_nb.types import Request


class Around:
    """A provider around another, with its name and with whatever else that one can."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    @property
    def inner(self) -> Provider:
        """The provider within."""
        return self._inner

    @property
    def name(self) -> str:
        """The route."""
        return self.inner.name

    @property
    def model(self) -> str:
        """The model that is asked where a request names none; "" where the provider has none of its own."""
        return str(getattr(self.inner, "model", ""))

    @property
    def error(self) -> ConfigError | None:
        """Why it cannot be built; None where it can."""
        return getattr(self.inner, "error", None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.inner!r}>"

    async def count(self, request: Request) -> int | None:
        """Return the tokens of a request by the vendor's count (`providers.count`)."""
        return await providers.count(self.inner, request)

    async def probe(self, model: str = "") -> Any:
        """Return what the server says of a model that it runs; None where there is nobody to ask."""
        ask = getattr(self.inner, "probe", None)
        return await ask(model) if ask is not None else None

    def encoded(self, request: Request) -> Wire | None:
        """Return a request as the wire format has it (`providers.Previews`)."""
        return self.inner.encoded(request) if isinstance(self.inner, providers.Previews) else None

    def wire(self, request: Request) -> Wire | None:
        """Return what would be sent for a request (`providers.Previews`)."""
        return self.inner.wire(request) if isinstance(self.inner, providers.Previews) else None
