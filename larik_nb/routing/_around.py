"""What the providers of this room share: each stands around another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from larik_nb.providers import Provider


class Around:
    """A provider around another, with its name and with whatever else that one can: count, probe, preview."""

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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.inner!r}>"

    def __getattr__(self, name: str) -> Any:
        if name in ("inner", "_inner") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)
