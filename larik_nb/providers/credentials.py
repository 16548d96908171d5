"""Where a key comes from: one credential for a request, and words for it that never show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from larik_nb.errors import ConfigError, keep_secret

if TYPE_CHECKING:
    from larik_nb.config import Config
    from larik_nb.providers._key_command import KeyCommand
    from larik_nb.providers._presets import Route

SERVICE = "larik-nb"
"""The name under which keys lie in the system's keyring; the user name there is the provider's."""

KEYRING = "the system's keyring"
TYPED = "typed into this notebook"

_typed: dict[str, str] = {}
_stored: dict[str, str] = {}
"""Keys of this process: typed in by the user, and found in the keyring. Nowhere else, and not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A key and where it was found.

    Attributes:
        key: The key; None where there is none. Left out of every text form.
        source: Where it was read, such as "environment ANTHROPIC_API_KEY".
        command: Prints the key when one is needed.
    """

    key: str | None = field(default=None, repr=False)
    source: str = "no key"
    command: KeyCommand | None = None

    def __bool__(self) -> bool:
        return self.key is not None or self.command is not None


NO_KEY = Credential()


def find(route: Route, config: Config, *, api_key: str | None = None) -> Credential:
    """Return the first credential there is, without asking the keyring, which is slow and may ask back.

    The argument comes first, then the provider's settings (the key, its command, its variable), the preset's
    variables in order, and last what was typed into this notebook.

    Args:
        route: The provider.
        config: The settings and the environment.
        api_key: A key given by the caller.

    Raises:
        ConfigError: What was found holds characters that no key has.
    """
    own = route.settings
    if api_key:
        return check(api_key, "the argument api_key")
    if own and own.api_key:
        return check(own.api_key, f"providers.{own.name}.api_key in {config.source}")
    if own and own.api_key_command:
        return _command(
            own.api_key_command, own.api_key_ttl, f"providers.{own.name}.api_key_command in {config.source}"
        )
    places = [(config.env_value(name), f"environment {name}") for name in _variables(route)]
    places.append((_typed.get(route.name), TYPED))
    return next((check(key, source) for key, source in places if key), NO_KEY)


def stored(route: Route) -> Credential:
    """Return the provider's key from the system's keyring, where there is one (extra `keyring`)."""
    key = _stored.get(route.name)
    if key is None:
        key = _from_keyring(route.name)
        if key is None:
            return NO_KEY
        _stored[route.name] = key
    return check(key, KEYRING)


def best(route: Route, config: Config, *, api_key: str | None = None) -> Credential:
    """Return the first credential there is, the keyring's being the last.

    Raises:
        ConfigError: As `find`.
    """
    found = find(route, config, api_key=api_key)
    likely = not route.in_process and (not route.key_optional or route.settings is not None)
    return found or (stored(route) if likely else NO_KEY)


async def key(route: Route, config: Config) -> str | None:
    """Return the key itself, from its command where one prints it; None where there is none.

    Raises:
        ConfigError: As `find`, or the command failed.
    """
    found = best(route, config)
    return await found.command.current() if found.command else found.key


def _command(command: str, ttl_s: float, source: str) -> Credential:
    from larik_nb.providers import _key_command

    return Credential(command=_key_command.shared(command, ttl_s, source), source=source)


def _from_keyring(name: str) -> str | None:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return None
    try:
        return keyring.get_password(SERVICE, name)
    except KeyringError:  # none on this machine, locked, or the user said no
        return None


def _variables(route: Route) -> tuple[str, ...]:
    own = route.settings.api_key_env if route.settings else None
    return (own, *route.keys) if own else route.keys


def check(key: str, source: str) -> Credential:
    """Return the key as a credential.

    Raises:
        ConfigError: It holds characters that no key has.
    """
    key = key.strip()
    keep_secret(key)
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        message, remedy = "the key holds characters that no key has", "Copy it again, without line breaks"
        raise ConfigError(message, source=source, remedy=remedy)
    return Credential(key=key, source=source)


def type_in(name: str, key: str) -> None:
    """Use a key the user typed, for as long as this process lives.

    Raises:
        ConfigError: It holds characters that no key has.
    """
    _typed[name] = str(check(key, TYPED).key)


def store(name: str, key: str) -> bool:
    """Put a key into the system's keyring; False where there is none.

    Raises:
        ConfigError: It holds characters that no key has.
    """
    key = str(check(key, TYPED).key)
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return False
    try:
        keyring.set_password(SERVICE, name, key)
    except KeyringError:
        return False
    _stored[name] = key
    return True


def forget(name: str) -> None:
    """Use no key that was typed or taken from the keyring any more; what lies in the keyring stays there."""
    _typed.pop(name, None)
    _stored.pop(name, None)


def hint(route: Route, credential: Credential) -> str | None:
    """Return what to look at when the key is refused: where it was found, or the variable it belongs into."""
    if credential:
        return credential.source.removeprefix("environment ")
    return next(iter(_variables(route)), None)


def missing(route: Route) -> ConfigError:
    """Return the error for a provider whose key was found nowhere, with what would do."""
    from larik_nb._error_sentences import assignment

    names = _variables(route)
    what, either, typed = f"no key for {route.name}", " or ".join(names), f"%larik keys add {route.name}"
    if not names:
        remedy = f"Set providers.{route.name}.api_key_env, or type it in: {typed}"
        return ConfigError(what, remedy=remedy, reason="no key")
    remedy = f"Type it in: {typed}, or set {either}, in a notebook by:  {assignment(names[0])}"
    return ConfigError(what, remedy=remedy, reason=f"no key: set {either}")


def unattended(route: Route) -> str:
    """Return what would do for a key where nobody can type one."""
    names = " or ".join(_variables(route))
    return f"Set {names} in the environment" if names else f"Set providers.{route.name}.api_key_env"
