"""What the settings say of routing, as this room's own values. The only file here that reads them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larik_nb.routing.budget import BudgetLimits
from larik_nb.routing.cooldown import CooldownPolicy
from larik_nb.routing.retry import RetryPolicy
from larik_nb.routing.settings import ModelSettings, Table, by_name

if TYPE_CHECKING:
    from larik_nb.config import Config
    from larik_nb.providers import Route

MAIN = "main"
ROLES = (MAIN, "smart", "worker", "explore", "compact")
"""Roles that are always there; one that is not set is the main model."""


def retry_policy(config: Config, route: Route) -> RetryPolicy:
    """Return how often and how long to wait at a provider."""
    first_s, longest_s = route.backoff_s
    return RetryPolicy(max_retries=config.max_retries, first_s=first_s, longest_s=longest_s)


def cooldown_policy(config: Config) -> CooldownPolicy:
    """Return how long a failed model is left alone: `{"cooldown": {"policy": "breaker"}}`."""
    return CooldownPolicy(**_known(CooldownPolicy, _section(config, "cooldown")))


def budget_limits(config: Config) -> BudgetLimits:
    """Return what a session may spend: `{"budget": {"session_usd": 2.0, "warn_at": 0.8}}`."""
    return BudgetLimits(**_known(BudgetLimits, _section(config, "budget")))


def model_settings(config: Config) -> Table:
    """Return the settings per model, by bare names: `{"model_settings": {"gpt-5": {"reasoning_effort": "low"}}}`."""
    rows = _section(config, "model_settings")
    return by_name({name: ModelSettings(**_known(ModelSettings, row)) for name, row in rows.items()})


def role_spec(name: str, config: Config) -> str | None:
    """Return the model that a role names, "" for one that is not set, None where `name` is no role."""
    roles: Mapping[str, str] = _section(config, "roles")
    if name in roles:
        return roles[name]
    return "" if name in ROLES else None


def fallbacks(config: Config, role: str | None, *specs: str) -> tuple[str, ...]:
    """Return the models to ask next: those of the role, else those of the model under any of its names."""
    rows: Mapping[str, Any] = _section(config, "fallbacks")
    wanted = [name.lower() for name in (role, *specs) if name]
    by_key = {key.lower(): row for key, row in rows.items()}
    return tuple(next((by_key[name] for name in wanted if name in by_key), ()))


def ledger_path(config: Config) -> Path:
    """Return where the ledger of what was spent is: where the platform keeps what programs remember."""
    return next(_state_folders(config.env, sys.platform)) / "spend.jsonl"


def _state_folders(env: Mapping[str, str], platform: str) -> Iterator[Path]:
    windows, mac = platform == "win32", platform == "darwin"
    if chosen := env.get("LOCALAPPDATA" if windows else "XDG_STATE_HOME"):
        yield Path(chosen) / "larik"
    if home := env.get("USERPROFILE" if windows else "HOME"):
        usual = "AppData/Local" if windows else "Library/Application Support" if mac else ".local/state"
        yield Path(home, usual, "larik")
    yield Path(tempfile.gettempdir()) / "larik"


def _section(config: Config, name: str) -> Mapping[str, Any]:
    section: Mapping[str, Any] = config.extra.get(name) or {}
    return section


def _known(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    names = {item.name for item in fields(kind)}
    return {name: value for name, value in row.items() if name in names and value is not None}
