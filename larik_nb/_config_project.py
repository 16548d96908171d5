"""What a project's settings file may say: less than the user's own, for a notebook's folder can come from anybody.

It may choose models, their order and their settings, and lower the budget. A provider that the user has not set up
answers nobody, so naming one gives no power. Whatever else it says is left out with one notice each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from larik_nb.config import BudgetConfig

CHOICES = ("model", "roles", "fallbacks", "model_settings")
MAY_SAY = (*CHOICES, "budget")
"""Keys a project's file may set; of `budget`, only what makes it smaller."""

NOTICES = 12
"""A file that says much it may not is not to bury everything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A project's settings over the user's.

    Attributes:
        settings: Both, as JSON has them.
        origins: What the project said ("roles.worker"), and the file.
        notices: What was left out, one line each.
    """

    settings: dict[str, Any]
    origins: dict[str, str]
    notices: list[str]


def over(user: Mapping[str, Any], project: Mapping[str, Any], budget: BudgetConfig, path: Path) -> Laid:
    """Lay a project's settings over the user's.

    Args:
        user: The user's, as JSON has them.
        project: The project's; the keys it may say have been checked, the others were not looked at.
        budget: The user's.
        path: The project's file.
    """
    settings: dict[str, Any] = {**user}
    said: list[str] = []
    for key in CHOICES:
        value = project.get(key)
        if isinstance(value, Mapping):
            settings[key] = {**(user.get(key) or {}), **value}
            said += [f"{key}.{name}" for name in value]
        elif value is not None:
            settings[key] = value
            said.append(key)
    lowered, raised = _smaller(budget, project.get("budget") or {})
    settings["budget"] = {**(user.get("budget") or {}), **lowered}
    left_out = [f"{name}: a project cannot set it" for name in _forbidden(project)]
    left_out += [f"budget.{name}: a project can only lower it" for name in raised]
    return Laid(settings=settings, origins=dict.fromkeys(said, str(path)), notices=_notices(left_out, path))


def _notices(left_out: list[str], path: Path) -> list[str]:
    lines = [f"{path} is not followed in {text}" for text in left_out]
    more = len(lines) - NOTICES
    return lines if more <= 0 else [*lines[:NOTICES], f"{path} is not followed in {more} more settings"]


def _forbidden(project: Mapping[str, Any]) -> list[str]:
    """Return the names of what it may not set, a provider's keys one by one."""
    others = {key: value for key, value in project.items() if key not in MAY_SAY}
    return [name for key, value in others.items() for name in _names(key, value, 2 if key == "providers" else 1)]


def _names(key: str, value: Any, depth: int) -> list[str]:
    if depth == 0 or not isinstance(value, Mapping) or not value:
        return [key]
    return [name for below, item in value.items() for name in _names(f"{key}.{below}", item, depth - 1)]


def _smaller(budget: BudgetConfig, project: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what of the project's budget is smaller than the user's, and the names of what is not."""
    given = {name: value for name, value in project.items() if value is not None}
    lowered = {name: value for name, value in given.items() if _lowers(name, value, budget)}
    return lowered, [name for name in given if name not in lowered]


def _lowers(name: str, value: Any, budget: BudgetConfig) -> bool:
    match name:
        case "session_usd":
            return budget.session_usd is None or value <= budget.session_usd
        case "warn_at":
            return bool(value <= budget.warn_at)
    return name == "allow_unpriced" and value is False
