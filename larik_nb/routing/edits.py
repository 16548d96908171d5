"""Quick edits of the settings, `worker=groq/openai/gpt-oss-120b explore= budget=5`, and what they changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from larik_nb import config as settings
from larik_nb.errors import ConfigError
from larik_nb.providers import resolve, role_names

if TYPE_CHECKING:
    from larik_nb.config import Config, Edited
    from larik_nb.routing.suggest import Suggestion

BUDGET = "budget"
FALLBACKS = "fallbacks"
NO_MODELS = "none"
"""What stands for an empty list of fallbacks: not even those of the role's model are asked."""
OPTIONS = ("isolation", "max_turns", "context")
BUDGET_KEYS = ("session_usd", "warn_at", "allow_unpriced")
_HOW = "Write it like worker=provider/model, worker.max_turns=30 or budget=5; nothing behind the = unsets it"

Path = tuple[str, ...]
"""A setting's place in the file: ("roles", "worker")."""


@dataclass(frozen=True, slots=True)
class Change:
    """One setting to write.

    Attributes:
        path: Its place.
        value: What it becomes, as JSON has it; None: it goes.
    """

    path: Path
    value: Any


def parse(words: Sequence[str], config: Config) -> list[Change]:
    """Read quick edits.

    Args:
        words: `NAME=VALUE` each: a role and its model; `ROLE.isolation`, `.max_turns`, `.context` and `.fallbacks`
            (models with commas between them, or "none"; a model's full name may stand for the role there); `budget`,
            `budget.warn_at`, `budget.allow_unpriced`. An empty value unsets.
        config: The settings as they are; a model named in an edit has to be one.

    Raises:
        ConfigError: A word is no edit, or names no role or model.
    """
    named = [_split(word) for word in words]
    made = [name.lower() for name, value in named if value and "." not in name]
    return [_change(name, value, config, made) for name, value in named]


def _split(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f'"{word}" is no edit', remedy=_HOW)
    return name.strip(), value.strip()


def _change(name: str, value: str, config: Config, made: Sequence[str]) -> Change:
    """Return the change; `made` are the roles that the same line gives a model."""
    head, dot, option = name.rpartition(".")
    if name.lower() == BUDGET:
        return Change((BUDGET, "session_usd"), _number(value, name))
    if dot and head.lower() == BUDGET:
        return Change((BUDGET, _one_of(option, BUDGET_KEYS, name)), _number(value, name))
    if dot and option.lower() == FALLBACKS:
        return _fallbacks(head, value, config, made)
    if dot:
        path = ("role_options", _known_role(head, config, made), _one_of(option, OPTIONS, name))
        return Change(path, _number(value, name) if option == "max_turns" else value or None)
    if value:
        _check_model(value, name, config)
    if name.lower() == "main":
        return Change(("model",), value or None)
    return Change(("roles", _new_role(name, config) if value else _known_role(name, config)), value or None)


def _fallbacks(head: str, value: str, config: Config, made: Sequence[str]) -> Change:
    key = head.lower() if "/" in head else _known_role(head, config, made)
    if value.lower() == NO_MODELS:
        return Change((FALLBACKS, key), [])
    specs = [spec.strip() for spec in value.split(",") if spec.strip()]
    for spec in specs:
        _check_model(spec, f"{head}.fallbacks", config)
    return Change((FALLBACKS, key), specs or None)


def _known_role(name: str, config: Config, made: Sequence[str] = ()) -> str:
    """Return the name of a role that there is, or will be once the line's other words are done."""
    known = [*role_names(config), *made]
    if name.lower() in known:
        return name.lower()
    raise _no_role(name, known, _closest(name, known, cutoff=0.5))


def _new_role(name: str, config: Config) -> str:
    """Return a role's name; one that is new is taken unless it looks like a slip of the pen."""
    known = role_names(config)
    close = _closest(name, known, cutoff=0.75)
    if name.lower() in known or not close:
        return name.lower()
    raise _no_role(name, known, close)


def _closest(name: str, known: Sequence[str], *, cutoff: float) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(name.lower(), known, n=1, cutoff=cutoff)


def _no_role(name: str, known: Sequence[str], close: Sequence[str]) -> ConfigError:
    remedy = f"Did you mean {close[0]}?" if close else f"Roles: {', '.join(known)}"
    return ConfigError(f"there is no role {name.lower()}", remedy=remedy)


def _check_model(spec: str, name: str, config: Config) -> None:
    if spec.lower() in role_names(config):
        raise ConfigError(f"{spec} is a role itself", key=name, remedy="A role names provider/model")
    try:
        resolve(spec, config)
    except ConfigError as exc:
        raise ConfigError(exc.message, key=name) from exc


def _one_of(option: str, words: Sequence[str], name: str) -> str:
    from difflib import get_close_matches

    if option.lower() in words:
        return option.lower()
    close = get_close_matches(option.lower(), words, n=1, cutoff=0.5)
    remedy = f"Did you mean {close[0]}?" if close else f"One of: {', '.join(words)}"
    raise ConfigError("is no option", key=name, remedy=remedy)


def _number(text: str, name: str) -> Any:
    """Return the number, true or false that `text` is; None when it is empty."""
    if not text:
        return None
    try:
        return json.loads(text.removeprefix("$").lower(), parse_constant=_no_number)
    except ValueError:
        raise ConfigError("must be a number", key=name) from None


def _no_number(text: str) -> Any:
    raise ValueError(text)


def words(changes: Iterable[Change]) -> list[str]:
    """Return the quick edits that make the changes: what `parse` reads as the same again."""
    return [f"{_named(change.path)}={_valued(change)}" for change in changes]


def _named(path: Path) -> str:
    match path:
        case ("model",):
            return "main"
        case ("roles", role):
            return role
        case ("fallbacks", head):
            return f"{head}.{FALLBACKS}"
        case ("budget", "session_usd"):
            return BUDGET
        case ("budget", option):
            return f"{BUDGET}.{option}"
    return ".".join(path[1:])


def _valued(change: Change) -> str:
    match change.value:
        case None:
            return ""
        case []:
            return NO_MODELS
        case list():
            return ",".join(change.value)
        case str():
            return change.value
    return json.dumps(change.value)


def of(suggestion: Suggestion) -> list[Change]:
    """Return what a suggestion changes: for each role it decides the model, what stands in for it, and the leash.

    A role that is to stay the main model is unset; its fallbacks and its leash stay as they are.
    """
    return [change for role in suggestion.reasons for change in _of_role(role, suggestion.settings)]


def _of_role(role: str, chosen: Mapping[str, Any]) -> Iterator[Change]:
    spec = chosen.get("roles", {}).get(role)
    yield Change(("roles", role), spec)
    if then := chosen.get(FALLBACKS, {}).get(role):
        yield Change((FALLBACKS, role), list(then))
    if spec is not None:
        leash = chosen.get("role_options", {}).get(role, {})
        yield from (Change(("role_options", role, option), leash.get(option)) for option in OPTIONS)


class ChangedMeanwhile(ConfigError):
    """The settings file is no longer what the changes were made on; nothing was saved.

    Attributes:
        now: What it says.
    """

    def __init__(self, now: Mapping[str, Any]) -> None:
        super().__init__("the settings were changed by somebody else meanwhile", remedy="Look at the changes again")
        self.now = now


def apply(
    changes: Iterable[Change], *, env: Mapping[str, str] | None = None, base: Mapping[str, Any] | None = None
) -> Edited:
    """Save the changes in the user's settings file, all of them or none.

    Args:
        changes: What to change.
        env: The environment, which says where the file is.
        base: What the file must say for the changes to be meant; None: anything.

    Raises:
        ChangedMeanwhile: It says something else.
        ConfigError: The file cannot be read or written, or a value cannot be.
    """
    change = setting(changes)

    def checked(data: dict[str, Any]) -> None:
        if base is not None and data != base:
            raise ChangedMeanwhile(data)
        change(data)

    return settings.edit(checked, env=env)


def setting(changes: Iterable[Change]) -> Callable[[dict[str, Any]], None]:
    """Return what makes the changes in settings as JSON has them."""
    wanted = list(changes)

    def change(data: dict[str, Any]) -> None:
        for item in wanted:
            _put(data, item.path, item.value)

    return change


def _put(data: dict[str, Any], path: Path, value: Any) -> None:
    """Set a value; None takes it away, and with it the objects it leaves empty."""
    name, *rest = path
    key = next((own for own in data if own.lower() == name.lower()), name)  # as the user spelled it
    if not rest and value is None:
        data.pop(key, None)
        return
    if not rest:
        data[key] = value
        return
    below = data.get(key) or {}
    _put(below, tuple(rest), value)
    if below:
        data[key] = below
    else:
        data.pop(key, None)


def changed(data: Mapping[str, Any], changes: Iterable[Change]) -> dict[str, Any]:
    """Return settings with the changes in them; what was given stays as it was."""
    from copy import deepcopy

    after = deepcopy(dict(data))
    setting(changes)(after)
    return after


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what changed, a line each: `roles.worker: (none) → "groq/…"`. Keys and headers are not shown."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    return [
        f"{'.'.join(path)}: {_shown(path, old)} → {_shown(path, new)}"
        for path in dict.fromkeys([*old, *new])
        if old.get(path, _GONE) != new.get(path, _GONE)
    ]


_GONE = object()


def _leaves(data: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*path, str(name)))
        else:
            yield (*path, str(name)), value


def _shown(path: Path, values: Mapping[Path, Any]) -> str:
    if path not in values:
        return "(none)"
    return settings.MASK if path[0] == "providers" else json.dumps(values[path], ensure_ascii=False)
