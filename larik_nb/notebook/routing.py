"""What `%routing` and `larik routing` say: the table of roles, edits and what they changed, presets and their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from larik_nb import portal
from larik_nb.errors import ConfigError
from larik_nb.notebook import display
from larik_nb.providers import role_names
from larik_nb.providers._listing import listings
from larik_nb.routing import edits, roles, suggest

if TYPE_CHECKING:
    from larik_nb.config import BudgetConfig, Config, Edited
    from larik_nb.routing.roles import Role

Rows = list[tuple[str, ...]]

PRESET, SUGGEST, DRY_RUN = "preset", "suggest", "--dry-run"
HEAD = ("role", "model", "window", "$ in/out", "then", "leash", "state")
NOTHING = "—"
CHOICES_HEAD = ("model", "", "why")


def answer(words: Sequence[str], config: Config, health: Mapping[str, str]) -> tuple[str, Rows]:
    """Do what stands behind `%routing` and tell it.

    Args:
        words: Nothing for the table; edits; `preset NAME [--dry-run]`; `suggest [ROLE [PRESET]]`.
        config: The settings.
        health: What is known of models by their full names: "answered", "cooling 38 s (rate limited)".

    Returns:
        The text, and the rows of a table to show before it.

    Raises:
        ConfigError: The words mean nothing, or the settings cannot be read or saved.
    """
    match list(words):
        case []:
            return _foot(config), table(config, health)
        case [word] if word == SUGGEST:
            return suggestions(config), []
        case [word, role] if word == SUGGEST:
            return choices(role, suggest.DEFAULT, config)
        case [word, role, name] if word == SUGGEST:
            return choices(role, name, config)
        case [word, name, *rest] if word == PRESET and rest in ([], [DRY_RUN]):
            return preset(name, config, dry_run=bool(rest)), []
        case [word, *_] if word in (PRESET, SUGGEST):
            raise ConfigError(f"which {word}?", remedy=f"Write preset {'|'.join(suggest.PRESETS)} [{DRY_RUN}]")
    return edit(words, config), []


def table(config: Config, health: Mapping[str, str]) -> Rows:
    """Return every role, a row each, under a head."""
    roles.look(config)
    return [HEAD, *(_row(role, health) for role in roles.roles(config))]


def _row(role: Role, health: Mapping[str, str]) -> tuple[str, ...]:
    state = first_words(role.problem) or health.get(role.spec or "", "" if role.has_key else "no key")
    return (
        role.name,
        roles.MAIN if role.is_main else role.spec or NOTHING,
        display.tokens(role.window) if role.window else "unknown" if role.spec else NOTHING,
        _price(role),
        ", ".join(role.fallbacks) or NOTHING,
        leash(role) or NOTHING,
        state or NOTHING,
    )


def first_words(problem: str) -> str:
    """Return what is wrong without what would do, which stands under the table."""
    return problem.partition(". ")[0]


def _price(role: Role) -> str:
    if role.price is not None:
        return f"{role.price.input:g}/{role.price.output:g}"
    return role.free or ("unknown" if role.spec else NOTHING)


def leash(role: Role) -> str:
    """Return what holds a role's subagents: "worktree · 40 turns · minimal"."""
    options, usual = role.options, type(role.options)()
    turns = f"{options.max_turns} turns" if options.max_turns != usual.max_turns else ""
    return " · ".join(filter(None, [options.isolation, turns, options.context]))


def _foot(config: Config) -> str:
    lines = [f"budget    {budget(config.budget)}", f"settings  {config.source}"]
    if config.project:
        lines.append(f"project   {config.project}")
    problems = dict.fromkeys(role.problem for role in roles.roles(config) if role.problem)
    return "\n".join([*lines, f"prices    {prices_of(config)}", *problems, *config.notices])


def budget(limits: BudgetConfig) -> str:
    """Return what a session may spend, in words."""
    if limits.session_usd is None:
        return "none; budget=5 stops a session at $5"
    unpriced = ", models of unknown price allowed" if limits.allow_unpriced else ""
    return f"{display.usd(limits.session_usd)} a session, a warning at {percent(limits.warn_at)}{unpriced}"


def percent(share: float) -> str:
    """Return a share as people read it: "80 %"."""
    return f"{100 * share:.0f} %"


def shortened(source: str) -> str:
    """Return where a setting was read, "model in ~/.config/larik/config.json", without the name of the home folder."""
    key, within, path = source.partition(" in ")
    return f"{key}{within}{display.home_short(path)}"


def prices_of(config: Config) -> str:
    """Return the day of the catalog's prices, and what to do when that is long ago."""
    today = datetime.now(UTC).date()
    age = (today - config.catalog.date).days
    return f"of {config.catalog.date}" + (
        f", {age} days old: pip install -U larik-nb brings newer ones" if config.catalog.is_stale(today) else ""
    )


# -- changes ------------------------------------------------------------------------------------------------------------
def edit(words: Sequence[str], config: Config) -> str:
    """Save edits and return what changed, and where."""
    return "\n".join(saved_lines(edits.apply(edits.parse(words, config), env=config.env), config))


def saved_lines(edited: Edited, config: Config) -> list[str]:
    """Return what a save changed, where it went, and what goes before it."""
    lines = edits.diff(edited.before, edited.after)
    if not lines:
        return [f"nothing to change in {edited.path}"]
    hidden = [
        f"{line.partition(':')[0]}: {config.origin(line.partition(':')[0])} says something else, which goes first"
        for line in lines
        if line.partition(":")[0] in config.origins
    ]
    return [*lines, f"saved in {edited.path}", *hidden]


def preset(name: str, config: Config, *, dry_run: bool) -> str:
    """Choose models by a preset and return what that changes, with its reasons; save it unless it is a dry run."""
    suggest.check(name)  # before any provider is asked
    found, problems = _models(config)
    chosen = suggest.suggest(found, name, main=_main(config), roles=own(config), today=datetime.now(UTC).date())
    reasons = [f"{role}: {why}" for role, why in chosen.reasons.items()]
    changes = edits.of(chosen)
    if dry_run:
        told = _previewed(changes, config)
    else:
        saved = saved_lines(edits.apply(changes, env=config.env), config) if changes else ["nothing to change"]
        told = "\n".join(saved)
    return "\n".join([told, "", *reasons, *problems])


def _previewed(changes: Sequence[edits.Change], config: Config) -> str:
    from larik_nb.config import current

    before, path = current(config.env)
    after: dict[str, Any] = edits.changed(before, changes)
    lines = edits.diff(before, after)
    return "\n".join([*(lines or ["nothing to change"]), f"not saved; without {DRY_RUN} it goes into {path}"])


def suggestions(config: Config) -> str:
    """Return what each preset would choose, with its reasons."""
    found, problems = _models(config)
    today = datetime.now(UTC).date()
    lines: list[str] = []
    for name, does in suggest.PRESETS.items():
        chosen = suggest.suggest(found, name, main=_main(config), roles=own(config), today=today)
        lines += [f"{name}: {does}", *(f"  {role}: {why}" for role, why in chosen.reasons.items())]
    return "\n".join([*lines, *problems])


def choices(role: str, preset: str, config: Config) -> tuple[str, Rows]:
    """Return every model as a choice for a role, in a preset's order, each with why it is suggested or not."""
    if role.lower() not in role_names(config):
        raise ConfigError(f"there is no role {role}", remedy=f"Roles: {', '.join(role_names(config))}")
    suggest.check(preset)
    found, problems = _models(config)
    today = datetime.now(UTC).date()
    rows = suggest.candidates(found, preset, role.lower(), main=_main(config), roles=own(config), today=today)
    shown = [(row.model.spec, "suggested" if row.is_suggested else "", row.why) for row in rows]
    return "\n".join(problems), [CHOICES_HEAD, *shown]


def _models(config: Config) -> tuple[list[Any], list[str]]:
    told = portal.wait(listings(config))
    problems = [f"left out {listing.provider}: {listing.error}" for listing in told if listing.error]
    return [model for listing in told for model in listing.models], problems


def _main(config: Config) -> str | None:
    return roles.role(roles.MAIN, config).spec


def own(config: Config) -> list[str]:
    """Return the roles that are the user's own."""
    from larik_nb.config import ROLES

    return [name for name in config.roles if name not in ROLES]
