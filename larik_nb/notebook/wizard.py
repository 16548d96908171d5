"""The routing wizard's state: the settings, the edits made to them, and what both mean. No widget, nothing is asked.

Every command becomes the same changes that `%routing` would make of words, and is refused where those would be; so the
draft is always one that can be saved, and `words` says how to do the same as text.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from larik_nb import config as settings
from larik_nb.config import MAX_TURNS, ROLES
from larik_nb.errors import ConfigError
from larik_nb.notebook import display, picker, routing
from larik_nb.routing import edits, roles, suggest

if TYPE_CHECKING:
    from pathlib import Path

    from larik_nb.agent.session import Turn
    from larik_nb.config import Config, Edited
    from larik_nb.notebook.picker import Shelf
    from larik_nb.routing.edits import Change
    from larik_nb.routing.roles import Role

LABELS = {"balanced": "Balanced", "cheapest": "Cheapest", "local": "Local and plan first"}

KEYS = (
    ("↑ ↓", "go to another role or fallback"),
    ("Enter", "choose its model from a list; type to filter"),
    ("f", "add a fallback, asked when the model fails"),
    ("Shift ↑ ↓", "move a fallback, or its role's first one, up or down"),
    ("Delete", "take the fallback away, or let the role be the main model"),
    ("w", "work in a git worktree of its own, or in place"),
    ("c", "the minimal prompt, or the whole one"),
    ("+ −", "more or fewer turns for each subagent"),
    ("p", "the next preset"),
    ("$", "the budget"),
    ("s", "save"),
    ("?", "these keys"),
    ("Esc", "leave; what was not saved is dropped when you press it twice"),
)
"""What the keyboard does, for the help; the page holds the same keys."""

_LONGEST_NAME = 120

_UNLEASHED = (roles.MAIN, "compact")
"""Roles that no subagent has: a leash would hold nobody."""


class Wizard:
    """Settings being changed.

    Args:
        config: The settings as they are.
        base: What the user's file says, as JSON has it.
        path: The file; None where no home folder is known.
        shelf: The models there are.
        turns: What was asked in this notebook, to say what a choice would have cost.

    Attributes:
        note: What the last command has to say; empty for nothing.
        theirs: What somebody else changed in the file while this was open, a line each.
    """

    def __init__(
        self,
        config: Config,
        base: Mapping[str, Any],
        path: Path | None,
        shelf: Shelf,
        turns: Callable[[], Sequence[Turn]] = tuple,
    ) -> None:
        self.shelf = shelf
        self.note = ""
        self.theirs: list[str] = []
        self._path = path
        self._turns = turns
        self._preset = ""
        self._base = base
        self._saved = self._draft = config
        self._changes: dict[edits.Path, Any] = {}

    @classmethod
    def of(cls, config: Config, shelf: Shelf, turns: Callable[[], Sequence[Turn]] = tuple) -> Wizard:
        """Return one on the user's own file.

        Raises:
            ConfigError: The file cannot be read.
        """
        return cls(config, *settings.current(config.env), shelf, turns)

    # -- what it has ------------------------------------------------------------------------------------------
    @property
    def draft(self) -> Config:
        """The settings as they would be if they were saved now."""
        return self._draft

    @property
    def changes(self) -> list[Change]:
        """What saving would change."""
        return [edits.Change(path, value) for path, value in self._changes.items()]

    @property
    def data(self) -> dict[str, Any]:
        """What the file would say if it were saved now, as JSON has it."""
        return edits.changed(self._base, self.changes)

    @property
    def diff(self) -> list[str]:
        """What saving would change, a line each."""
        return edits.diff(self._base, self.data)

    @property
    def words(self) -> str:
        """The same as text: "%routing worker=… budget=5"; empty when nothing was changed."""
        return f"%routing {shlex.join(edits.words(self.changes))}" if self._changes else ""

    # -- commands ---------------------------------------------------------------------------------------------
    def do(self, command: str, **values: Any) -> bool:
        """Carry out a command and return whether it was; `note` says why not.

        Args:
            command: A name in `COMMANDS`.
            values: What it takes.
        """
        self.note = ""
        try:
            changes = COMMANDS[command](self, **values)
            self._take(changes)
        except ConfigError as error:
            self.note = error.message
            return False
        return True

    def _take(self, changes: Sequence[Change]) -> None:
        """Add changes to those made before; all of them or none."""
        wanted = self._changes | {change.path: change.value for change in changes}
        kept = {path: value for path, value in wanted.items() if _at(self._base, path) != value}
        self._draft = self._saved.drafted(
            edits.changed(self._base, [edits.Change(path, value) for path, value in kept.items()])
        )
        self._changes = kept

    def _edit(self, *words: str) -> list[Change]:
        return edits.parse(words, self._draft)

    def _choose(self, role: str, spec: str = "") -> list[Change]:
        """Give a role a model; none makes it the main one."""
        changes = self._edit(f"{role}={spec}")
        if self._preset and suggest.decides(self._preset, role, routing.own(self._draft)):
            self._preset = ""
        return changes

    def _fallback(self, role: str, spec: str) -> list[Change]:
        """Add a model to ask when the role's own fails."""
        now = self._fallbacks(role)
        if spec in (*now, self._role(role).spec):
            raise ConfigError(f"{role} asks {spec} already")
        return self._then(role, [*now, spec])

    def _drop(self, role: str, at: int) -> list[Change]:
        """Take a fallback away."""
        now = self._fallbacks(role)
        if not 0 <= at < len(now):
            return []
        return self._then(role, now[:at] + now[at + 1 :])

    def _move(self, role: str, at: int, by: int) -> list[Change]:
        """Move a fallback to another place; at the ends it stays."""
        now = self._fallbacks(role)
        to = at + by
        if not (0 <= at < len(now) and 0 <= to < len(now)):
            return []
        now[at], now[to] = now[to], now[at]
        return self._then(role, now)

    def _then(self, role: str, specs: list[str]) -> list[Change]:
        unset = self._edit(f"{role}.fallbacks=")
        if not specs and not self._inherits(role):
            return unset
        return self._edit(f"{role}.fallbacks={','.join(specs) or edits.NO_MODELS}")

    def _inherits(self, role: str) -> bool:
        """Return whether without a list of its own the role has that of its model."""
        spec = self._role(role).spec
        return bool(spec and self._draft.fallbacks.get(spec.lower()))

    def _fallbacks(self, role: str) -> list[str]:
        return list(self._role(role).fallbacks)

    def _worktree(self, role: str) -> list[Change]:
        """Let a role's subagents work in a worktree of their own, or in place again."""
        return self._leash(role, "isolation", "" if self._options(role).isolation else "worktree")

    def _minimal(self, role: str) -> list[Change]:
        """Give a role's subagents the minimal prompt, or the whole one again."""
        return self._leash(role, "context", "" if self._options(role).context else "minimal")

    def _turns_by(self, role: str, by: int) -> list[Change]:
        """Let a role's subagents take more or fewer turns."""
        now = self._options(role).max_turns
        wanted = more_turns(now) if by > 0 else fewer_turns(now)
        return self._leash(role, "max_turns", "" if wanted == MAX_TURNS else str(wanted))

    def _leash(self, role: str, option: str, value: str) -> list[Change]:
        if role in _UNLEASHED:
            raise ConfigError(f"{role} has no subagents: a leash would hold nobody")
        return self._edit(f"{role}.{option}={value}")

    def _options(self, role: str) -> settings.RoleOptions:
        return self._role(role).options

    def _budget(self, text: str) -> list[Change]:
        """Limit what a session may spend, USD; nothing takes the limit away."""
        return self._edit(f"budget={text.strip()}")

    def _warn(self, text: str) -> list[Change]:
        """Say from which share of the budget to warn, in percent."""
        percent = text.strip().removesuffix("%").strip()
        try:
            share = f"{float(percent) / 100:g}" if percent else ""
        except ValueError:
            raise ConfigError("must be a number of percent", key="budget.warn_at") from None
        return self._edit(f"budget.warn_at={share}")

    def _by_preset(self, name: str) -> list[Change]:
        """Choose by a preset."""
        changes = edits.of(self._suggestion(name))
        self._preset = name
        return changes

    def _next_preset(self) -> list[Change]:
        """Choose by the preset after the one that was chosen last."""
        names = list(suggest.PRESETS)
        return self._by_preset(names[(names.index(self._preset) + 1) % len(names)] if self._preset else names[0])

    def _discard(self) -> list[Change]:
        """Drop all changes."""
        self._changes, self._preset = {}, ""
        return []

    # -- saving -----------------------------------------------------------------------------------------------
    def save(self) -> Edited | None:
        """Save, and return what the file said and says; None where it was not saved, and `note` says why.

        What somebody else wrote meanwhile is taken in and shown; saving again saves on top of it.
        """
        self.note = ""
        try:
            return edits.apply(self.changes, env=self._saved.env, base=self._base)
        except edits.ChangedMeanwhile as error:
            self.rebase(error.now)
            self.note = "somebody else changed the settings meanwhile, as shown here; s saves your changes on top"
        except ConfigError as error:
            self.note = error.message
        return None

    def rebase(self, base: Mapping[str, Any]) -> None:
        """Go by what the file says now; the changes made here stay, those it already has fall away."""
        if base == self._base:
            return
        try:
            saved = self._saved.drafted(base)
        except ConfigError as error:
            self.note = error.message
            return
        self.theirs = edits.diff(self._base, base)
        self._base, self._saved = base, saved
        try:
            self._take([])
        except ConfigError as error:  # each is fine by itself, together they are not: theirs stay
            self._changes, self._draft = {}, saved
            self.note = f"your changes do not fit what was saved meanwhile: {error.message}"

    # -- what it shows ----------------------------------------------------------------------------------------
    def view(self) -> dict[str, Any]:
        """Return all that is to be seen, as JSON has it."""
        rows = [self._row(role) for role in self._roles()]
        diff = self.diff
        return {
            "providers": self.shelf.providers(),
            "lacking": self.shelf.without_key(),
            "presets": [self._preset_row(name) for name in suggest.PRESETS],
            "rows": rows,
            "budget": self._budget_row(),
            "changes": _counted(self._changes),
            "diff": [display.one_line(line) for line in diff],
            "words": self.words,
            "file": display.home_short(str(self._path or self._saved.source)),
            "typical": self._typical(),
            "note": self.note,
            "theirs": [display.one_line(line) for line in self.theirs],
        }

    def _roles(self) -> list[str]:
        own = [name for name in self._draft.roles if name not in ROLES]
        gone = [path[1] for path in self._changes if path[0] == "roles" and path[1] not in (*ROLES, *own)]
        return [*ROLES, *own, *gone]

    def _role(self, name: str) -> Role:
        return roles.role(name, self._draft)

    def _row(self, name: str) -> dict[str, Any]:
        role, cooling = self._role(name), self.shelf.cooling()
        own = "" if role.is_main else role.spec or ""
        known = self._known(own, cooling)
        return {
            "role": name,
            "model": roles.MAIN if role.is_main else _shown(role.spec or routing.NOTHING),
            "price": known["price"],
            "window": known["window"],
            "leash": routing.leash(role),
            "leashed": name not in _UNLEASHED,
            "state": routing.first_words(role.problem) or known["state"],
            "changed": any(name in path or (path == ("model",) and name == roles.MAIN) for path in self._changes),
            "then": [{"spec": _shown(spec), **self._known(spec, cooling)} for spec in role.fallbacks],
            "reason": self._reason(role),
        }

    def _known(self, spec: str, cooling: Mapping[str, str]) -> dict[str, str]:
        """Return what is known of a model, in words; empty ones for none."""
        if not spec:
            return {"price": "", "window": "", "state": ""}
        found = self.shelf.find(spec)
        free = self._draft.catalog.free.get(spec.partition("/")[0].lower(), "")
        return {
            "price": picker.price(found.price if found else None, free),
            "window": display.tokens(found.window) if found and found.window else "",
            "state": self.shelf.state(spec, cooling),
        }

    def _reason(self, role: Role) -> str:
        """Return in one line why a role has its model."""
        said = self._draft.origins.get(f"roles.{role.name}" if role.name != roles.MAIN else "model")
        if said:
            return f"{display.home_short(said)} says so, which goes before your own settings"
        if role.problem:
            return role.problem
        why = self._suggestion(self._preset).reasons.get(role.name, "") if self._preset else ""
        if why:
            return why
        if role.is_main:
            return "not set, so it is the main model"
        if self._is_new(role.name):
            return f"{role.spec}: your choice, not saved yet"
        return f"{role.spec}: set by {routing.shortened(role.source)}" if role.source else role.spec or ""

    def _is_new(self, name: str) -> bool:
        return (("model",) if name == roles.MAIN else ("roles", name)) in self._changes

    def _preset_row(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "label": LABELS[name],
            "does": suggest.PRESETS[name],
            "on": name == self._preset,
        }

    def _budget_row(self) -> dict[str, str]:
        budget = self._draft.budget
        return {
            "usd": "" if budget.session_usd is None else f"{budget.session_usd:g}",
            "warn": f"{budget.warn_at * 100:g}",
            "words": routing.budget(budget),
        }

    def _typical(self) -> str:
        """Return what a turn like those of this notebook costs now and would cost; empty where it is the same."""
        turns = [turn for turn in self._turns() if turn.usage is not None]
        before, after = _mean_usd(turns, self._saved), _mean_usd(turns, self._draft)
        if before is None or after is None or before == after:
            return ""
        many = f"{len(turns)} turn{'s' * (len(turns) != 1)}"
        return f"typical turn ≈ {display.usd(before)} → {display.usd(after)} (from your {many})"

    def about(self, role: str) -> str:
        """Return by what the list for a role is ordered."""
        label = LABELS[self._preset or suggest.DEFAULT]
        if suggest.decides(self._preset or suggest.DEFAULT, role, routing.own(self._draft)):
            return f"in the order of the preset {label}"
        return f"the preset {label} leaves this role to you; the cheapest come first"

    # -- choices ----------------------------------------------------------------------------------------------
    def candidates(self, role: str) -> list[dict[str, Any]]:
        """Return every model for a role as the list shows it: what is suggested first, each with its reason."""
        cooling = self.shelf.cooling()
        return [
            self.shelf.offer(choice.model, cooling).to_json() | {"why": choice.why, "suggested": choice.is_suggested}
            for choice in suggest.candidates(
                self.shelf.usable,
                self._preset or suggest.DEFAULT,
                role,
                main=self._main(),
                roles=routing.own(self._draft),
                today=self.shelf.today,
            )
        ]

    def _suggestion(self, preset: str) -> suggest.Suggestion:
        return suggest.suggest(
            self.shelf.usable, preset, main=self._main(), roles=routing.own(self._draft), today=self.shelf.today
        )

    def _main(self) -> str | None:
        return self._role(roles.MAIN).spec


COMMANDS: Mapping[str, Callable[..., list[Change]]] = {
    "choose": Wizard._choose,
    "fallback": Wizard._fallback,
    "drop": Wizard._drop,
    "move": Wizard._move,
    "worktree": Wizard._worktree,
    "minimal": Wizard._minimal,
    "turns": Wizard._turns_by,
    "budget": Wizard._budget,
    "warn": Wizard._warn,
    "preset": Wizard._by_preset,
    "next_preset": Wizard._next_preset,
    "discard": Wizard._discard,
}
"""What the wizard does besides saving, each with what it takes."""


def _shown(spec: str) -> str:
    """Return a model's name fit to be read: a project's settings come from strangers, and may name anything."""
    return display.one_line(spec, _LONGEST_NAME)


def more_turns(now: int) -> int:
    """Return the next larger number of turns: by fives up to 20, then by tens."""
    return now + 5 - now % 5 if now < 20 else now + 10 - now % 10


def fewer_turns(now: int) -> int:
    """Return the next smaller number of turns; 1 is the least."""
    step = 5 if now <= 20 else 10
    return max(1, (now - 1) // step * step)


def _at(data: Mapping[str, Any], path: edits.Path) -> Any:
    """Return what settings say at a place, None where they say nothing; capitals make no difference in names."""
    found: Any = data
    for name in path:
        if not isinstance(found, Mapping):
            return None
        found = next((value for key, value in found.items() if key.lower() == name.lower()), None)
    return found


def _counted(changes: Mapping[edits.Path, Any]) -> str:
    """Return how much is changed: "3 roles and the budget"."""
    touched = {roles.MAIN if path == ("model",) else path[1] for path in changes if path[0] != edits.BUDGET}
    parts = [f"{len(touched)} role{'s' * (len(touched) != 1)}"] if touched else []
    parts += ["the budget"] if any(path[0] == edits.BUDGET for path in changes) else []
    return " and ".join(parts)


def _mean_usd(turns: Sequence[Turn], config: Config) -> float | None:
    """Return what the turns would cost on average by these settings; None where a part is unknown."""
    if not turns:
        return None
    specs = dict(_specs(turns, config))
    costs = [config.catalog.cost(turn.usage, *specs[turn.role]) if turn.role in specs else None for turn in turns]
    known = [cost for cost in costs if cost is not None]
    return sum(known) / len(known) if len(known) == len(costs) else None


def _specs(turns: Sequence[Turn], config: Config) -> Iterator[tuple[str, tuple[str, str]]]:
    for name in {turn.role for turn in turns}:
        spec = roles.role(name, config).spec
        if spec:
            provider, _, model = spec.partition("/")
            yield name, (provider, model)
