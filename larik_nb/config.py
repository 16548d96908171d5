"""One frozen snapshot of the user's settings, from a JSON file, the environment and arguments.

No other file reads settings or the environment. A file that cannot be used is reported by name and key and is never
written over. Unknown keys are kept, for a later version may know them; one that looks like a slip of the pen is noted.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from larik_nb.errors import ConfigError
from larik_nb.types import Effort

if TYPE_CHECKING:
    from larik_nb.catalog import Catalog

Transport = Literal["h11", "aiohttp"]

STALL_TIMEOUT_S = 600.0
"""Seconds without a byte after which a request fails (specification H1)."""
MAX_RETRIES = 3
"""Further attempts after a failure that may pass (specification H3)."""
HOURS_A_DAY = 24

_EMPTY: Mapping[str, Any] = MappingProxyType({})
_T = TypeVar("_T")


def _nothing() -> Mapping[str, Any]:
    return _EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """What the user says of one provider, built-in or their own; None and empty leave the preset's word.

    Attributes:
        name: As the user writes it in "name/model", in lower case.
        type: Wire format, or the provider whose ways it shares.
        base_url: Its address.
        model: The model that the name alone means.
        api_key: The key itself.
        api_key_env: The environment variable that holds it.
        headers: Sent with each request.
        quirks: Deviations from the wire format, over the preset's.
        extra: Keys this version does not know.
    """

    name: str
    type: str | None = None
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=_nothing, repr=False)
    quirks: Mapping[str, Any] = field(default_factory=_nothing)
    extra: Mapping[str, Any] = field(default_factory=_nothing, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """How requests travel.

    Attributes:
        stall_timeout_seconds: Seconds without a byte after which a request fails.
        ca_file: PEM file of authorities to trust beside the system's.
        transport: The library that moves the bytes.
        extra: Keys this version does not know.
    """

    stall_timeout_seconds: float = STALL_TIMEOUT_S
    ca_file: str | None = None
    transport: Transport = "h11"
    extra: Mapping[str, Any] = field(default_factory=_nothing, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalConfig:
    """The model that runs on this machine.

    Attributes:
        model: Its name in the table of local models.
        model_path: A model file of the user's own.
        extra: Keys this version does not know.
    """

    model: str | None = None
    model_path: str | None = None
    extra: Mapping[str, Any] = field(default_factory=_nothing, repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Config:
    """Everything the user has set, at one moment.

    Attributes:
        model: "provider/model", a bare model id or a provider; None leaves the choice to `resolve`.
        model_source: Where `model` was read, for messages.
        providers: By name in lower case.
        provider_order: Providers to try when no model is named; None: the presets' order.
        models: Rows over the catalog's: "provider/id" or "id" → window, max_output, abilities.
        pricing: Price rows over the catalog's.
        network: How requests travel.
        max_retries: Further attempts after a failure that may pass.
        local: The model that runs on this machine.
        extra: Keys this version does not know.
        source: The file read, or what stood in for it.
        notices: Keys that look like slips of the pen, one line each.
        env: The environment as it was.
    """

    model: str | None = None
    model_source: str = ""
    providers: Mapping[str, ProviderConfig] = field(default_factory=_nothing)
    provider_order: tuple[str, ...] | None = None
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=_nothing)
    pricing: Mapping[str, Any] = field(default_factory=_nothing)
    network: NetworkConfig = NetworkConfig()
    max_retries: int = MAX_RETRIES
    local: LocalConfig = LocalConfig()
    extra: Mapping[str, Any] = field(default_factory=_nothing, repr=False)
    source: str = ""
    notices: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=_nothing, repr=False)

    @classmethod
    def load(
        cls,
        config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
    ) -> Config:
        """Read the settings.

        Args:
            config: A snapshot to use as it is; the settings themselves; a file; or None for the user's own file,
                LARIK_CONFIG or `config_path`, which need not be there unless LARIK_CONFIG names it.
            env: The environment; the process's own by default.

        Raises:
            ConfigError: The file cannot be read, is not a JSON object, or a value cannot be used.
        """
        if isinstance(config, Config):
            return config
        env = MappingProxyType(dict(os.environ if env is None else env))
        data, source = _settings(config, env)
        # The environment is set for one run, so it outranks a file, but not what the caller hands over.
        handed = isinstance(config, Mapping) and "model" in config
        named = "" if handed else env.get("LARIK_MODEL", "").strip()
        return _read(data, source, env, named)

    def env_value(self, name: str) -> str | None:
        """Return an environment variable without white space around it; None when unset or empty."""
        return self.env.get(name, "").strip() or None

    @cached_property
    def catalog(self) -> Catalog:
        """The shipped catalog under the user's own rows."""
        from larik_nb import catalog

        shipped = catalog.shipped()
        return shipped.with_own(self.models, self.pricing) if self.models or self.pricing else shipped


def config_path(env: Mapping[str, str]) -> Path | None:
    """Return where the user's settings file is or would be; None where no home folder is known."""
    if named := env.get("LARIK_CONFIG"):
        return _expanded(named)
    folder = _config_folder(env, sys.platform)
    return folder / "larik" / "config.json" if folder else None


def _expanded(path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # there is no such user
        return Path(path)


def _config_folder(env: Mapping[str, str], platform: str) -> Path | None:
    home = env.get("USERPROFILE" if platform == "win32" else "HOME")
    if platform == "win32":
        chosen, usual = env.get("APPDATA"), "AppData/Roaming"
    elif platform == "darwin":
        chosen, usual = None, "Library/Application Support"
    else:
        chosen, usual = env.get("XDG_CONFIG_HOME"), ".config"
    if chosen:
        return Path(chosen)
    return Path(home, usual) if home else None


# -- reading ------------------------------------------------------------------------------------------------------


def _settings(config: Any, env: Mapping[str, str]) -> tuple[Any, str]:
    if isinstance(config, Mapping):
        return dict(config), "the settings given"
    path = _expanded(config) if config is not None else config_path(env)
    if path is None:
        return {}, "no settings file"
    must_exist = config is not None or "LARIK_CONFIG" in env
    if not must_exist and not path.is_file():
        return {}, str(path)
    return _json(path), str(path)


def _json(path: Path) -> Any:
    import json

    source = str(path)
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as exc:
        msg = f"cannot read the settings file: {exc.strerror or type(exc).__name__}"
        raise ConfigError(msg, source=source) from exc
    except json.JSONDecodeError as exc:
        msg = f"not valid JSON at line {exc.lineno}, column {exc.colno}: {exc.msg}"
        raise ConfigError(msg, source=source, remedy="Mend or move the file; it was left as it is") from None
    except (ValueError, RecursionError) as exc:
        msg = f"not readable as JSON text ({type(exc).__name__})"
        raise ConfigError(msg, source=source, remedy="Mend or move the file; it was left as it is") from None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands, to be named when it cannot be used. Values themselves are never shown: they may be keys."""

    source: str
    key: str
    notices: list[str]

    def at(self, name: object) -> _Place:
        return _Place(self.source, f"{self.key}.{name}" if self.key else str(name), self.notices)

    def wrong(self, wanted: str, value: Any, remedy: str = "") -> ConfigError:
        return ConfigError(f"must be {wanted}, not {_kind(value)}", key=self.key, source=self.source, remedy=remedy)

    def error(self, message: str, remedy: str = "") -> ConfigError:
        return ConfigError(message, key=self.key, source=self.source, remedy=remedy)


def _kind(value: Any) -> str:
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "true or false"),
        (str, "text" if str(value).strip() else "empty text"),
        ((int, float), "a number"),
        (Mapping, "an object"),
        ((list, tuple), "a list"),
        (type(None), "null"),
    )
    return next((word for kind, word in kinds if isinstance(value, kind)), type(value).__name__)


_Check = Callable[[Any, _Place], Any]


def _text(value: Any, place: _Place) -> str:
    if not isinstance(value, str) or not value.strip():
        raise place.wrong("text", value)
    return value.strip()


def _header(value: Any, place: _Place) -> str:
    text = _text(value, place)
    if not text.isascii() or not text.isprintable():
        raise place.error("holds characters that no HTTP header can carry")
    return text


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _headers(value: Any, place: _Place) -> Mapping[str, str]:
    for name in _object(value, place):
        if not _HEADER_NAME.fullmatch(str(name)):
            raise place.error("holds a name that no HTTP header can have")
    return _each(_header)(value, place)


def _flag(value: Any, place: _Place) -> bool:
    if not isinstance(value, bool):
        raise place.wrong("true or false", value)
    return value


def _number(value: Any, place: _Place) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.wrong("a number", value)
    if abs(value) > sys.maxsize or math.isnan(value):
        raise place.error("must be a finite number")
    return value


def _whole(value: Any, place: _Place) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise place.wrong("a whole number", value)
    return value


def _tokens(value: Any, place: _Place) -> int:
    if _whole(value, place) <= 0:
        raise place.error("must be more than 0")
    return int(value)


def _price(value: Any, place: _Place) -> float:
    if _number(value, place) < 0:
        raise place.error("must not be less than 0")
    return float(value)


def _day(value: Any, place: _Place) -> str:
    try:
        date.fromisoformat(_text(value, place))
    except ValueError:
        raise place.error('must be a day such as "2027-01-01"') from None
    return str(value).strip()


def _hours(value: Any, place: _Place) -> tuple[tuple[int, int], ...]:
    return tuple(_span(pair, place) for pair in _list(value, place))


def _span(value: Any, place: _Place) -> tuple[int, int]:
    match [_whole(hour, place) for hour in _list(value, place)]:
        case [start, end] if 0 <= start < end <= HOURS_A_DAY:
            return start, end
    raise place.error("must hold pairs of hours such as [1, 4]")


def _one_of(*words: str) -> _Check:
    def check(value: Any, place: _Place) -> str:
        word = _text(value, place)
        if word not in words:
            close = _nearest(word, words)
            raise place.error(f"must be one of {', '.join(words)}", f"Did you mean {close}?" if close else "")
        return word

    return check


def _list(value: Any, place: _Place) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise place.wrong("a list", value)
    return list(value)


def _texts(value: Any, place: _Place) -> tuple[str, ...]:
    return tuple(_text(item, place.at(index)) for index, item in enumerate(_list(value, place)))


def _object(value: Any, place: _Place) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise place.wrong("an object", value)
    return value


def _each(check: Callable[[Any, _Place], _T]) -> Callable[[Any, _Place], Mapping[str, _T]]:
    def checked(value: Any, place: _Place) -> Mapping[str, _T]:
        items = _object(value, place).items()
        return MappingProxyType({str(name): check(item, place.at(name)) for name, item in items})

    return checked


def _fields(value: Any, place: _Place, checks: Mapping[str, _Check]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return the known keys checked, null ones left out, and the unknown ones as they are."""
    rows = _object(value, place)
    known = {key: check(rows[key], place.at(key)) for key, check in checks.items() if rows.get(key) is not None}
    extra = {str(key): item for key, item in rows.items() if key not in checks}
    for key in extra:
        if close := _nearest(key, checks):
            place.notices.append(f'{place.at(key).key} in {place.source} is not a setting; did you mean "{close}"?')
    return known, MappingProxyType(extra)


def _nearest(word: str, words: Any) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word.lower(), list(words), n=1, cutoff=0.75)), None)


def _base_url(value: Any, place: _Place) -> str:
    return check_base_url(_text(value, place), key=place.key, source=place.source)


def check_base_url(url: str, *, key: str, source: str) -> str:
    """Return an address without the slash at its end.

    Raises:
        ConfigError: It is not an http(s) address, or it holds a password, which messages would show.
    """
    from urllib.parse import urlsplit

    remedy = "Write it like https://host/v1"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        (parts.hostname or "").encode("idna")  # an empty label, or one of more than 63 characters
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or any(char.isspace() for char in url):
        raise ConfigError("is not an http:// or https:// address", key=key, source=source, remedy=remedy)
    if not url.isascii():
        remedy = "Write the host as xn--… and the path with %"
        raise ConfigError("holds characters that no address can carry", key=key, source=source, remedy=remedy)
    if "@" in parts.netloc:
        raise ConfigError("holds a user name or password", key=key, source=source, remedy="Use api_key or headers")
    if parts.query or parts.fragment:
        raise ConfigError("must end before any ? or #", key=key, source=source, remedy=remedy)
    return url.rstrip("/")


_PROVIDER: Mapping[str, _Check] = {
    "type": _text,
    "base_url": _base_url,
    "model": _text,
    "api_key": _text,
    "api_key_env": _text,
    "headers": _headers,
    "quirks": _object,
}
_NETWORK: Mapping[str, _Check] = {
    "stall_timeout_seconds": lambda value, place: _stall(_number(value, place)),
    "ca_file": _text,
    "transport": _one_of(*get_args(Transport)),
}
_LOCAL: Mapping[str, _Check] = {"model": _text, "model_path": _text}
_PRICE: Mapping[str, _Check] = {
    "input": _price,
    "output": _price,
    "cache_read": _price,
    "cache_write": _price,
    "request": _price,
    "above": _tokens,
    "from": _day,
    "hours": _hours,
}


def _provider(name: str, value: Any, place: _Place) -> ProviderConfig:
    if not name or "/" in name or not name.isprintable() or any(char.isspace() for char in name):
        raise place.error("a provider's name has no spaces and no /")
    known, extra = _fields(value, place, _PROVIDER)
    return ProviderConfig(name=name.lower(), extra=extra, **known)


def _providers(value: Any, place: _Place) -> Mapping[str, ProviderConfig]:
    found: dict[str, ProviderConfig] = {}
    for name, row in _object(value, place).items():
        provider = _provider(str(name), row, place.at(name))
        if provider.name in found:
            raise place.at(name).error("is there twice; capitals make no difference in a provider's name")
        found[provider.name] = provider
    return MappingProxyType(found)


def _network(value: Any, place: _Place) -> NetworkConfig:
    known, extra = _fields(value, place, _NETWORK)
    return NetworkConfig(extra=extra, **known)


def _local(value: Any, place: _Place) -> LocalConfig:
    known, extra = _fields(value, place, _LOCAL)
    return LocalConfig(extra=extra, **known)


def _model_row(value: Any, place: _Place) -> Mapping[str, Any]:
    from larik_nb import catalog

    level = _one_of(*catalog.EFFORTS)
    checks: dict[str, _Check] = {
        "window": _tokens,
        "max_output": _tokens,
        "tools": _flag,
        "vision": _flag,
        "pdf": _flag,
        "thinking": _texts,
        "efforts": lambda items, at: tuple(level(item, at) for item in _list(items, at)),
        "default_effort": level,
        "sampling": _one_of(*get_args(catalog.Sampling)),
    }
    known, extra = _fields(value, place, checks)
    return MappingProxyType({**extra, **known})


def _price_row(value: Any, place: _Place) -> Mapping[str, Any]:
    known, extra = _fields(value, place, _PRICE)
    missing = [key for key in ("input", "output") if key not in known]
    if missing:
        raise place.error(f"lacks {' and '.join(missing)}", "Prices are USD per million tokens")
    return MappingProxyType({**extra, **known})


def _price_rows(value: Any, place: _Place) -> tuple[Mapping[str, Any], ...]:
    if isinstance(value, list | tuple):
        return tuple(_price_row(row, place.at(index)) for index, row in enumerate(value))
    return (_price_row(value, place),)


_KEYS: Mapping[str, _Check] = {
    "model": _text,
    "providers": _providers,
    "provider_order": _texts,
    "models": _each(_model_row),
    "pricing": _each(_price_rows),
    "network": _network,
    "max_retries": _whole,
    "local": _local,
}


_ARGUMENTS: Mapping[str, _Check] = {
    "max_retries": lambda value, place: max(0, _whole(value, place)),
    "stall_timeout_s": lambda value, place: _stall(_number(value, place)),
    "effort": _one_of(*get_args(Effort)),
    "temperature": _number,
    "top_p": _number,
    "max_tokens": _tokens,
    "seed": _whole,
    "headers": _headers,
}


def check_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of one model as the caller gave them, checked; those at None are left out.

    Raises:
        ConfigError: There is no such setting, or its value cannot be used.
    """
    known, extra = _fields(given, _Place("the arguments", "", []), _ARGUMENTS)
    for name in extra:
        close = _nearest(name, _ARGUMENTS)
        remedy = f"Did you mean {close}?" if close else f"Known: {', '.join(_ARGUMENTS)}"
        raise ConfigError("is no setting of a model", key=name, source="the arguments", remedy=remedy)
    return known


def _stall(seconds: float) -> float:
    return seconds if seconds > 0 else STALL_TIMEOUT_S


def _read(data: Any, source: str, env: Mapping[str, str], named: str) -> Config:
    place = _Place(source, "", [])
    if not isinstance(data, Mapping):
        raise ConfigError(f"the settings must be a JSON object, not {_kind(data)}", source=source)
    known, extra = _fields(data, place, _KEYS)
    known["max_retries"] = max(0, known.get("max_retries", MAX_RETRIES))
    origin = f"model in {source}" if "model" in known else ""
    if named:
        known["model"], origin = named, "environment LARIK_MODEL"
    return Config(model_source=origin, extra=extra, source=source, notices=tuple(place.notices), env=env, **known)
