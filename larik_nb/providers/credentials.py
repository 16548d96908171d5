"""Where a key comes from: one credential for a request, and words for it that never show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from larik_nb.errors import ConfigError

if TYPE_CHECKING:
    from larik_nb.config import Config
    from larik_nb.providers._presets import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A key and where it was found.

    Attributes:
        key: The key; None where there is none. Left out of every text form.
        source: Where it was read, such as "environment ANTHROPIC_API_KEY".
    """

    key: str | None = field(default=None, repr=False)
    source: str = "no key"


def find(route: Route, config: Config, *, api_key: str | None = None) -> Credential:
    """Return the first credential there is: the argument, the provider's settings, then its variables in order.

    Args:
        route: The provider.
        config: The settings and the environment.
        api_key: A key given by the caller.

    Raises:
        ConfigError: What was found holds characters that no key has.
    """
    own = route.settings.api_key if route.settings else None
    places = [
        (api_key, "the argument api_key"),
        (own, f"providers.{route.name}.api_key in {config.source}"),
        *((config.env_value(name), f"environment {name}") for name in _variables(route)),
    ]
    return next((_checked(key, source) for key, source in places if key), Credential())


def _variables(route: Route) -> tuple[str, ...]:
    own = route.settings.api_key_env if route.settings else None
    return (own, *route.keys) if own else route.keys


def _checked(key: str, source: str) -> Credential:
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        message, remedy = "the key holds characters that no key has", "Copy it again, without line breaks"
        raise ConfigError(message, source=source, remedy=remedy)
    return Credential(key=key, source=source)


def hint(route: Route, credential: Credential) -> str | None:
    """Return what to look at when the key is refused: where it was found, or the variable it belongs into."""
    if credential.key:
        return credential.source.removeprefix("environment ")
    return next(iter(_variables(route)), None)


def missing(route: Route) -> ConfigError:
    """Return the error for a provider whose key was found nowhere, with what would do."""
    from larik_nb._error_sentences import assignment

    names = _variables(route)
    what, either = f"no key for {route.name}", " or ".join(names)
    if not names:
        return ConfigError(what, remedy=f"Set providers.{route.name}.api_key_env", reason="no key")
    remedy = f"Set {either}, in a notebook by:  {assignment(names[0])}"
    return ConfigError(what, remedy=remedy, reason=f"no key: set {either}")
