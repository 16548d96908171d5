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


def retry_policy(config: Config, route: Route) -> RetryPolicy:
    """Return how often and how long to wait at a provider."""
    first_s, longest_s = route.backoff_s
    return RetryPolicy(max_retries=config.max_retries, first_s=first_s, longest_s=longest_s)


def cooldown_policy(config: Config) -> CooldownPolicy:
    """Return how long a failed model is left alone: `{"cooldown": {"policy": "breaker"}}`."""
    return CooldownPolicy(policy=config.cooldown)


def budget_limits(config: Config) -> BudgetLimits:
    """Return what a session may spend: `{"budget": {"session_usd": 2.0, "warn_at": 0.8}}`."""
    budget = config.budget
    return BudgetLimits(session_usd=budget.session_usd, warn_at=budget.warn_at, allow_unpriced=budget.allow_unpriced)


def model_settings(config: Config) -> Table:
    """Return the settings per model, by bare names: `{"model_settings": {"gpt-5": {"reasoning_effort": "low"}}}`."""
    return by_name({name: ModelSettings(**_known(ModelSettings, row)) for name, row in config.model_settings.items()})


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


def _known(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    names = {item.name for item in fields(kind)}
    return {name: value for name, value in row.items() if name in names and value is not None}
