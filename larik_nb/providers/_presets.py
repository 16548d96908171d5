"""Providers by name, as data: their dialect, address, key variables and quirks; the user's settings over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larik_nb.config import check_base_url
from larik_nb.errors import ConfigError

if TYPE_CHECKING:
    from larik_nb.config import Config, ProviderConfig

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """How a host deviates from its dialect; what is not said here it does as everybody.

    Attributes:
        max_tokens: Name of the field that limits the answer.
        stream_options: Takes `stream_options.include_usage`.
        effort: Where the effort goes: the field "reasoning_effort" or the object "reasoning" {"effort"}.
        seed: Name of the field for the seed.
        tool_ids: Alphabet of tool call ids it insists on: "alphanumeric-9" is nine letters and digits.
        strict_turns: An assistant must speak between results and the user's next words, and may not speak last.
        reasoning_back: Field of an assistant message in which it wants its own reasoning back.
        tools: Takes function tools.
        models_path: Path of its list of models; None: it has none.
        probe: Which of the known ways tells its loaded window and abilities.
    """

    max_tokens: str = "max_tokens"
    stream_options: bool = True
    effort: str = "reasoning_effort"
    seed: str = "seed"
    tool_ids: str | None = None
    strict_turns: bool = False
    reasoning_back: str | None = None
    tools: bool = True
    models_path: str | None = "/models"
    probe: str | None = None


_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "stream_options": (True, False),
    "effort": ("reasoning_effort", "reasoning"),
    "seed": ("seed", "random_seed"),
    "tool_ids": ("alphanumeric-9", None),
    "strict_turns": (True, False),
    "tools": (True, False),
    "reasoning_back": ("reasoning_content", "reasoning", None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A provider as it will be spoken to: its preset under the user's settings.

    Attributes:
        name: The provider's name.
        wire: The format it speaks, a key of the tables in `_build`.
        base_url: Its address; None where it has none (in-process) or none was given.
        own_address: The address is the user's, not the preset's.
        keys: Environment variables that hold its key.
        key_optional: It answers without a key.
        default_model: What its name alone means.
        open: It serves models of any name.
        in_process: It answers without a request over the network.
        quirks: Its deviations from the format.
        settings: What the user said of it.
        prices: Its id in the price library, None when that has none.
    """

    name: str
    wire: str
    base_url: str | None = None
    own_address: bool = False
    keys: tuple[str, ...] = ()
    key_optional: bool = False
    default_model: str | None = None
    open: bool = False
    in_process: bool = False
    quirks: Quirks = Quirks()
    settings: ProviderConfig | None = None
    prices: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Presets:
    """The file `presets.json`, read."""

    providers: Mapping[str, Mapping[str, Any]]
    aliases: Mapping[str, str]
    retired: Mapping[str, str]
    order: tuple[str, ...]
    conventions: tuple[tuple[str, str | None], ...]
    key_prefixes: tuple[str, ...]


@cache
def presets() -> Presets:
    """Return the presets of this release."""
    import json

    data = json.loads(Path(__file__).with_name("presets.json").read_bytes())
    return Presets(
        providers=data["providers"],
        aliases=data["aliases"],
        retired=data["retired"],
        order=tuple(data["order"]),
        conventions=tuple((pattern, owner) for pattern, owner in data["conventions"]),
        key_prefixes=tuple(data["key_prefixes"]),
    )


def names(config: Config) -> tuple[str, ...]:
    """Return every provider's name: the user's own first, then the presets in their order."""
    own = (_canonical(settings) for settings in config.providers.values())
    return tuple(dict.fromkeys([*own, *presets().providers]))


def route(name: str, config: Config) -> Route | None:
    """Return the provider called `name`, capitals and aliases allowed; None when there is none.

    Raises:
        ConfigError: It was switched off, or the settings for it cannot be used.
    """
    name = name.strip().lower()
    settings = config.providers.get(name)
    canonical = _canonical(settings) if settings else presets().aliases.get(name, name)
    settings = settings or _settings_of(canonical, config)
    if settings is None and canonical in presets().retired:
        raise ConfigError(f"{canonical}: {presets().retired[canonical]}")
    if settings is None and canonical not in presets().providers:
        return None
    return _over(_preset(canonical, settings, config), settings, config)


def _canonical(settings: ProviderConfig) -> str:
    """Return the preset's name for settings under an alias; with a `type` they are a provider of their own."""
    return settings.name if settings.type else presets().aliases.get(settings.name, settings.name)


def _settings_of(canonical: str, config: Config) -> ProviderConfig | None:
    return next((item for item in config.providers.values() if _canonical(item) == canonical), None)


def _preset(name: str, settings: ProviderConfig | None, config: Config) -> Route:
    """Return the preset that `name`, or the `type` of its settings, stands for."""
    kind = settings.type.lower() if settings and settings.type else name
    kind = presets().aliases.get(kind, kind)
    row = presets().providers.get(kind)
    if row is None:
        raise _unknown_type(name, kind, settings, config)
    base_url, own_address = _address(row, config)
    return Route(
        name=name,
        wire=row["wire"],
        base_url=base_url,
        own_address=own_address,
        keys=tuple(row["keys"]),
        key_optional=row.get("key_optional", False),
        default_model=row.get("default_model"),
        open=row.get("open", False),
        in_process=row.get("in_process", False),
        quirks=Quirks(**row.get("quirks", {})),
        prices=row.get("prices"),
    )


def _unknown_type(name: str, kind: str, settings: ProviderConfig | None, config: Config) -> ConfigError:
    from difflib import get_close_matches

    key = f"providers.{name}.type"
    if settings is None or settings.type is None:
        remedy = f"Say which format it speaks: {', '.join(_formats())}"
        return ConfigError("is missing", key=key, source=config.source, remedy=remedy)
    close = get_close_matches(kind, presets().providers, n=1)
    remedy = f"Did you mean {close[0]}?" if close else f"One of: {', '.join(_formats())}"
    return ConfigError("is no format or provider known here", key=key, source=config.source, remedy=remedy)


def _formats() -> tuple[str, ...]:
    return tuple(dict.fromkeys(row["wire"] for row in presets().providers.values() if "base_url" in row))


def _over(preset: Route, settings: ProviderConfig | None, config: Config) -> Route:
    """Return the preset with the user's settings over it.

    The variables of a preset stand for its own service: another provider that only borrows its format, and has an
    address of its own, is not sent that key.
    """
    if settings is None:
        return preset
    moved = settings.base_url is not None
    borrowed = settings.type is not None and moved and preset.name not in presets().providers
    return replace(
        preset,
        base_url=settings.base_url or preset.base_url,
        own_address=moved or preset.own_address,
        keys=() if borrowed else preset.keys,
        # Who names a variable for the key wants one sent: without it the host would only say no.
        key_optional=(preset.key_optional or moved) and settings.api_key_env is None,
        default_model=settings.model or (None if borrowed else preset.default_model),
        open=preset.open or moved,
        quirks=_quirks(preset, settings, config),
        settings=settings,
    )


def _quirks(preset: Route, settings: ProviderConfig, config: Config) -> Quirks:
    known = {item.name for item in fields(Quirks)}
    for name, value in settings.quirks.items():
        key = f"providers.{settings.name}.quirks.{name}"
        if name not in known:
            raise ConfigError("is no quirk known here", key=key, source=config.source, remedy=_one_of(sorted(known)))
        choices = _CHOICES.get(name)
        if choices is None and not isinstance(value, str | None):
            raise ConfigError("must be text or null", key=key, source=config.source)
        if choices is not None and value not in choices:
            raise ConfigError("cannot be used", key=key, source=config.source, remedy=_one_of(choices))
    return replace(preset.quirks, **settings.quirks)


def _one_of(choices: Sequence[Any]) -> str:
    import json

    return "One of: " + ", ".join(item if isinstance(item, str) else json.dumps(item) for item in choices)


def _address(row: Mapping[str, Any], config: Config) -> tuple[str | None, bool]:
    """Return a preset's address and whether a variable of the environment moved it."""
    variable = row.get("base_url_env")
    value = config.env_value(variable) if variable else None
    if value is None:
        return row.get("base_url"), False
    if "default_port" in row:
        value = host_url(value, row["default_port"])
    return check_base_url(value, key=str(variable), source="the environment"), True


def host_url(host: str, port: int) -> str:
    """Return the address for a host whose scheme and port may be missing, as Ollama's own variable allows.

    A server that listens on every interface is reached on loopback.
    """
    scheme, mark, rest = host.strip().rpartition("://")
    usual = {"http": 80, "https": 443}.get(scheme, port) if mark else port
    authority, slash, path = rest.partition("/")
    name, colon, given = authority.rpartition(":")
    if not colon or "]" in given:
        name, given = authority, ""
    if name in ("", "0.0.0.0", "[::]"):  # what a server listens on is no address to call
        name = _LOOPBACK
    return f"{scheme or 'http'}://{name}:{given or usual}{slash}{path}"
