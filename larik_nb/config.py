"""One frozen snapshot of the user's settings, from a JSON file, a project's file, the environment and arguments.

No other file reads settings or the environment. A file that cannot be used is reported by name and key and is never
written over. Unknown keys are kept, for a later version may know them; one that looks like a slip of the pen is noted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from larik_nb import _config_file, catalog
from larik_nb._config_file import Edited, config_path
from larik_nb.errors import ConfigError

__all__ = [
    "BudgetConfig",
    "Config",
    "Edited",
    "LocalConfig",
    "NetworkConfig",
    "ProviderConfig",
    "RoleOptions",
    "check_arguments",
    "check_base_url",
    "config_path",
    "current",
    "edit",
    "masked",
    "schema",
]

Transport = Literal["h11", "aiohttp"]
Isolation = Literal["worktree"]
Context = Literal["minimal"]
CooldownName = Literal["fixed", "breaker"]

ROLES = ("main", "smart", "worker", "explore", "compact")
"""The roles that always exist; one that is not set is the main model (specification S2)."""
STALL_TIMEOUT_S = 600.0
"""Seconds without a byte after which a request fails (specification H1)."""
MAX_RETRIES = 3
"""Further attempts after a failure that may pass (specification H3)."""
KEY_TTL_S = 300.0
"""Seconds for which a command's key is used before it is asked again (specification K2)."""
MAX_TURNS = 100
"""Turns of a subagent (specification G4)."""
WARN_AT = 0.8
"""Share of a budget from which the user is warned (specification G5)."""

MASK = "***"
"""Stands for what may hold a key."""

_EMPTY: Mapping[str, Any] = MappingProxyType({})


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
        api_key_command: A command of the shell that prints it.
        api_key_ttl: Seconds for which what it printed is used.
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
    api_key_command: str | None = field(default=None, repr=False)
    api_key_ttl: float = KEY_TTL_S
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleOptions:
    """The leash of a role's subagents.

    Attributes:
        isolation: Where they work: "worktree" in a git worktree of their own, None in place.
        max_turns: Turns each may take.
        context: "minimal" gives them the project's own instructions only, None all there are.
    """

    isolation: Isolation | None = None
    max_turns: int = MAX_TURNS
    context: Context | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetConfig:
    """What a session may spend.

    Attributes:
        session_usd: USD, subagents included; None: no limit.
        warn_at: Share of it from which the user is warned, once.
        allow_unpriced: Models of unknown price may be asked although there is a limit.
    """

    session_usd: float | None = None
    warn_at: float = WARN_AT
    allow_unpriced: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Config:
    """Everything the user has set, at one moment.

    Attributes:
        model: "provider/model", a bare model id or a provider; None leaves the choice to `resolve`.
        model_source: Where `model` was read, for messages.
        roles: By name in lower case: the model each stands for. "main" is `model`.
        fallbacks: By role or "provider/model", in lower case: the models to ask next, in order.
        role_options: By role.
        budget: What a session may spend.
        model_settings: By model, as the user wrote it: temperature, top_p, max_tokens, seed, reasoning_effort,
            thinking_budget.
        cooldown: How a failed model is left alone: "fixed", as long as its failure is likely to last; "breaker",
            short at first and longer with each failure.
        providers: By name in lower case.
        provider_order: Providers to try when no model is named; None: the presets' order.
        models: Rows over the catalog's: "provider/id" or "id" → window, max_output, abilities.
        pricing: Price rows over the catalog's.
        network: How requests travel.
        max_retries: Further attempts after a failure that may pass.
        local: The model that runs on this machine.
        extra: Keys this version does not know.
        source: The file read, or what stood in for it.
        project: The project's file that was read as well.
        origins: Which keys ("roles.worker") the project's file said.
        notices: Keys that look like slips of the pen or that a project may not set, one line each.
        env: The environment as it was.
    """

    model: str | None = None
    model_source: str = ""
    roles: Mapping[str, str] = field(default_factory=_nothing)
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    role_options: Mapping[str, RoleOptions] = field(default_factory=_nothing)
    budget: BudgetConfig = BudgetConfig()
    model_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=_nothing)
    cooldown: CooldownName = "fixed"
    providers: Mapping[str, ProviderConfig] = field(default_factory=_nothing)
    provider_order: tuple[str, ...] | None = None
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=_nothing)
    pricing: Mapping[str, Any] = field(default_factory=_nothing)
    network: NetworkConfig = NetworkConfig()
    max_retries: int = MAX_RETRIES
    local: LocalConfig = LocalConfig()
    extra: Mapping[str, Any] = field(default_factory=_nothing, repr=False)
    source: str = ""
    project: str | None = None
    origins: Mapping[str, str] = field(default_factory=_nothing)
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
                LARIK_CONFIG or `config_path`, which need not be there unless LARIK_CONFIG names it, with what the
                project's file ("larik.json" beside the notebook) may say over it.
            env: The environment; the process's own by default.

        Raises:
            ConfigError: A file cannot be read, is not a JSON object, or a value cannot be used.
        """
        if isinstance(config, Config):
            return config
        env = MappingProxyType(dict(os.environ if env is None else env))
        with _config_file.unchanging():
            data, source = _settings(config, env)
            path = _config_file.project_path(env) if config is None else None
            project = _config_file.read(path) if path else None
        settings = _with_project(data, project, source, path) if path else _read(data, source)
        # The environment is set for one run, so it outranks files, but not what the caller hands over.
        handed = isinstance(config, Mapping) and "model" in config
        named = "" if handed else env.get("LARIK_MODEL", "").strip()
        return settings.snapshot(env, named)

    def drafted(self, data: Mapping[str, Any]) -> Config:
        """Return the settings as they would be if the user's file said `data`; the project's file is read anew.

        Raises:
            ConfigError: `data`, or the project's file, cannot be used.
        """
        if self.project is None:
            settings = _read(data, self.source)
        else:
            path = Path(self.project)
            settings = _with_project(data, _config_file.read(path), self.source, path)
        return settings.snapshot(self.env, self.env.get("LARIK_MODEL", "").strip())

    def env_value(self, name: str) -> str | None:
        """Return an environment variable without white space around it; None when unset or empty."""
        return self.env.get(name, "").strip() or None

    def origin(self, key: str) -> str:
        """Return the file that said `key`, "roles.worker"."""
        return self.origins.get(key, self.source)

    @cached_property
    def catalog(self) -> catalog.Catalog:
        """The shipped catalog under the user's own rows."""
        shipped = catalog.shipped()
        return shipped.with_own(self.models, self.pricing) if self.models or self.pricing else shipped


def edit(
    change: Callable[[dict[str, Any]], None],
    *,
    path: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Edited:
    """Change the user's settings file in one step, or not at all; a second kernel doing the same waits.

    Args:
        change: Changes the settings, as JSON has them, in place.
        path: The file; the user's own by default.
        env: The environment, which says where that is.

    Raises:
        ConfigError: The file is broken or cannot be written, or the settings would be unusable.
    """
    found = Path(path) if path is not None else config_path(os.environ if env is None else env)
    if found is None:
        raise ConfigError("there is no home folder to save settings in", remedy="Set LARIK_CONFIG to a file")
    return _config_file.edit(found, change, lambda data: _read(data, str(found)))


def current(env: Mapping[str, str]) -> tuple[Mapping[str, Any], Path | None]:
    """Return what the user's settings file says, as JSON has it, and where it is; nothing where there is none.

    Raises:
        ConfigError: It cannot be read.
    """
    path = config_path(env)
    return (_config_file.read(path) if path is not None and path.is_file() else {}), path


def masked(data: Any, path: tuple[str, ...] = ()) -> Any:
    """Return settings as JSON has them, to be shown: what may be a key or hold one is masked."""
    if isinstance(data, Mapping):
        return {str(name): masked(value, (*path, str(name))) for name, value in data.items()}
    if isinstance(data, list):
        return [masked(item, path) for item in data]
    in_provider = path[:1] == ("providers",)
    shown = not in_provider or path[2:3] in (("type",), ("base_url",), ("model",), ("api_key_env",), ("api_key_ttl",))
    shown = shown or path[2:3] == ("quirks",) or not isinstance(data, str)
    return _shown(data) if shown else MASK


def _shown(value: Any) -> Any:
    from larik_nb import errors

    return errors.shown(value, limit=10_000) if isinstance(value, str) else value


def schema() -> dict[str, Any]:
    """Return the settings file as JSON Schema, for editors and for people."""
    from larik_nb._config_keys import KEYS

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "larik-nb settings",
        **KEYS.schema,
    }


# -- reading ----------------------------------------------------------------------------------------------------------
def _settings(config: Any, env: Mapping[str, str]) -> tuple[Any, str]:
    if isinstance(config, Mapping):
        return dict(config), "the settings given"
    path = _config_file.expanded(config) if config is not None else config_path(env)
    if path is None:
        return {}, "no settings file"
    must_exist = config is not None or "LARIK_CONFIG" in env
    if not must_exist and not path.is_file():
        return {}, str(path)
    return _config_file.read(path), str(path)


def _stall(seconds: float) -> float:
    return seconds if seconds > 0 else STALL_TIMEOUT_S


def stall_limit(seconds: float) -> float:
    """Return the limit that `seconds` asks for: nought and less mean the usual."""
    return seconds if seconds > 0 else STALL_TIMEOUT_S


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


def check_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of one model as the caller gave them, checked; those at None are left out.

    Raises:
        ConfigError: There is no such setting, or its value cannot be used.
    """
    if not given:
        return {}
    from larik_nb._config_checks import Place, nearest
    from larik_nb._config_keys import ARGUMENTS

    known, extra = ARGUMENTS.read(given, Place("the arguments", "", []))
    for name in extra:
        close = nearest(name, ARGUMENTS.keys)
        remedy = f"Did you mean {close}?" if close else f"Known: {', '.join(ARGUMENTS.keys)}"
        raise ConfigError("is no setting of a model", key=name, source="the arguments", remedy=remedy)
    return known


# -- from what was read to a snapshot ---------------------------------------------------------------------------------
class _Settings(NamedTuple):
    """Settings that were read and checked.

    Attributes:
        values: The known keys, as `Config` has them.
        source: Where they were read.
        extra: The unknown ones.
        notices: What to tell the user.
        origins: Which keys another file said.
        project: That file.
    """

    values: dict[str, Any]
    source: str
    extra: Mapping[str, Any] = _EMPTY
    notices: tuple[str, ...] = ()
    origins: Mapping[str, str] = _EMPTY
    project: str | None = None

    def snapshot(self, env: Mapping[str, str], named: str) -> Config:
        """Return the settings with the environment over them; `named` is the model it names."""
        model, source = self._model()
        if named:
            model, source = named, "environment LARIK_MODEL"
        values = {**self.values, "max_retries": max(0, self.values.get("max_retries", MAX_RETRIES))}
        values["model"] = model
        return Config(
            model_source=source,
            extra=self.extra,
            source=self.source,
            project=self.project,
            origins=self.origins,
            notices=self.notices,
            env=env,
            **values,
        )

    def _model(self) -> tuple[str | None, str]:
        """Return the main model and where it was read: the role "main" is another word for `model`."""
        for key, model in (
            ("model", self.values.get("model")),
            ("roles.main", self.values.get("roles", {}).get("main")),
        ):
            if model:
                return model, f"{key} in {self.origins.get(key, self.source)}"
        return None, ""


def _read(data: Any, source: str) -> _Settings:
    if data == {}:  # most starts: nothing to check, nothing to load for it
        return _Settings({}, source)
    from larik_nb._config_checks import Place, kind
    from larik_nb._config_keys import KEYS

    if not isinstance(data, Mapping):
        raise ConfigError(f"the settings must be a JSON object, not {kind(data)}", source=source)
    notices: list[str] = []
    known, extra = KEYS.read(data, Place(source, "", notices))
    return _Settings(values=known, extra=extra, source=source, notices=tuple(notices))


def _with_project(user: Mapping[str, Any], project: Any, source: str, path: Path) -> _Settings:
    """Return the user's settings with what the project's file may say over them."""
    from larik_nb import _config_project
    from larik_nb._config_checks import kind

    if not isinstance(project, Mapping):
        raise ConfigError(f"the settings must be a JSON object, not {kind(project)}", source=str(path))
    own = _read(user, source)
    theirs = _read({key: project[key] for key in _config_project.MAY_SAY if key in project}, str(path))
    budget = own.values.get("budget", BudgetConfig())
    laid = _config_project.over(user, project, budget, path)
    both = _read(laid.settings, source)
    return both._replace(
        notices=(*own.notices, *theirs.notices, *laid.notices), origins=laid.origins, project=str(path)
    )
