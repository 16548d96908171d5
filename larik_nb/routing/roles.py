"""Every role as it stands: the model behind it, who steps in, and what is known of that model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from larik_nb.config import ROLES, RoleOptions
from larik_nb.errors import ConfigError
from larik_nb.providers import credentials, resolve, role_names

if TYPE_CHECKING:
    from larik_nb.catalog import Price
    from larik_nb.config import Config
    from larik_nb.providers import Resolved

MAIN = "main"
_LOOSE = RoleOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role as it stands.

    Attributes:
        name: The role.
        spec: The model it means now, "provider/model"; None when it means none.
        problem: Why it means none.
        is_main: It is not set and means the main model.
        source: Where its model was set.
        fallbacks: The models to ask next, in order.
        options: The leash of its subagents.
        window: Tokens a prompt may have; None when unknown.
        price: What the model costs now; None when unknown.
        free: Why it costs nothing: "local", "plan"; "" when it does cost.
        has_key: There is a key for it, or it needs none.
    """

    name: str
    spec: str | None = None
    problem: str = ""
    is_main: bool = False
    source: str = ""
    fallbacks: tuple[str, ...] = ()
    options: RoleOptions = _LOOSE
    window: int | None = None
    price: Price | None = None
    free: str = ""
    has_key: bool = True


def fallbacks(name: str, spec: str | None, config: Config) -> tuple[str, ...]:
    """Return the models to ask when a role's own fails: the role's list, else that of its model (specification F1)."""
    own = config.fallbacks.get(name.lower())
    if own is None and spec is not None:
        own = config.fallbacks.get(spec.lower())
    return own or ()


def look(config: Config) -> None:
    """Ask the user's own servers what they have loaded of the models that roles mean, for who is about to show them."""
    from larik_nb.providers import _probe

    wanted = []
    for name in role_names(config):
        with suppress(ConfigError):
            resolved = resolve(name, config)
            wanted.append((resolved.route, resolved.model))
    _probe.look(wanted, config)


def roles(config: Config, *, at: datetime | None = None) -> tuple[Role, ...]:
    """Return every role: those that always exist, the user's own, then the names that stand for a model by themselves.

    Args:
        config: The settings.
        at: The moment whose prices are wanted; now by default.
    """
    return tuple(role(name, config, at=at) for name in role_names(config))


def role(name: str, config: Config, *, at: datetime | None = None) -> Role:
    """Return one role as it stands; `problem` says why it means no model."""
    options = config.role_options.get(name, _LOOSE)
    try:
        resolved = resolve(name, config)
    except ConfigError as error:
        return Role(name=name, problem=error.message, fallbacks=fallbacks(name, None, config), options=options)
    known = config.catalog.find(resolved.provider, resolved.model)
    return Role(
        name=name,
        spec=resolved.spec,
        is_main=name != MAIN and not _is_set(name, config),
        source=resolved.source,
        fallbacks=fallbacks(name, resolved.spec, config),
        options=options,
        window=window(resolved, config),
        price=known.price(0, at or datetime.now(UTC)) if known else None,
        has_key=resolved.route.key_optional or bool(credentials.best(resolved.route, config)),
        free=config.catalog.free.get(resolved.provider, ""),
    )


def window(resolved: Resolved, config: Config) -> int | None:
    """Return how many tokens a prompt may have: what the model's server was heard to say, else what the catalog does."""
    from larik_nb.providers import _probe

    known = config.catalog.find(resolved.provider, resolved.model)
    return _probe.known(resolved.route, resolved.model).limit or (known.window if known else None)


def _is_set(name: str, config: Config) -> bool:
    return name in config.roles or name not in ROLES
