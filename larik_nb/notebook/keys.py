"""What `%larik keys` and `larik keys` say: where each provider's key comes from, never the key; and taking one in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from getpass import getpass
from typing import TYPE_CHECKING

from larik_nb.errors import ConfigError
from larik_nb.notebook import asking
from larik_nb.notebook.asking import Choice, Question, Talk
from larik_nb.notebook.routing import Rows
from larik_nb.providers import credentials
from larik_nb.providers._presets import Route, names, route

if TYPE_CHECKING:
    from larik_nb.config import Config

HEAD = ("provider", "key")
ADD, KEYRING = "add", "keyring"
_HOW = "Write keys, or keys add PROVIDER [keyring]"


def answer(
    words: Sequence[str], config: Config, *, can_ask: bool, ask: Callable[[str], str] = getpass
) -> tuple[str, Rows]:
    """Tell where keys come from, or take one in.

    Args:
        words: Nothing; or `add PROVIDER`, for this process only, and `add PROVIDER keyring`, to stay.
        config: The settings.
        can_ask: Somebody is there to type.
        ask: Takes a line in without showing it.

    Returns:
        The text, and the rows of a table to show before it.

    Raises:
        ConfigError: The words mean nothing, nobody can type, or what was typed is no key.
    """
    return asking.drive(talk(words, config, can_ask=can_ask), lambda question: ask(question.prompt))


def talk(words: Sequence[str], config: Config, *, can_ask: bool) -> Talk[tuple[str, Rows]]:
    """Do the same, and ask for the key on the way."""
    match list(words):
        case []:
            rows = _rows(config)
            return _without(config), [HEAD, *rows] if rows else []
        case [word, name] if word == ADD:
            return (yield from _add(_named(name, config), can_ask=can_ask, keep=False)), []
        case [word, name, place] if (word, place) == (ADD, KEYRING):
            return (yield from _add(_named(name, config), can_ask=can_ask, keep=True)), []
    raise ConfigError("that is no way to give a key", remedy=_HOW)


def _rows(config: Config) -> Rows:
    return [(here.name, words) for here in _routes(config) if (words := _source(here, config))]


def _routes(config: Config) -> list[Route]:
    routes = (route(name, config) for name in names(config))
    return [here for here in routes if here is not None and not here.in_process and (here.keys or here.settings)]


def _source(here: Route, config: Config) -> str:
    """Return where a provider's key comes from; "" for one that nobody set up."""
    found = credentials.best(here, config)
    if found:
        return f"{found.source}, run when it is needed" if found.command else found.source
    if here.settings is None and not here.own_address:
        return ""
    return "none, and none is needed" if here.key_optional else f"none: {credentials.missing(here).remedy}"


def is_idle(here: Route, config: Config) -> bool:
    """Return whether a provider takes a key and nobody gave it one, or set it up in any other way."""
    takes = not here.in_process and not here.key_optional and bool(here.keys or here.settings)
    return takes and not _source(here, config)


def _without(config: Config) -> str:
    idle = [here.name for here in _routes(config) if is_idle(here, config)]
    if not idle:
        return ""
    way = f"%larik keys add {idle[0]} (in a shell: larik keys add {idle[0]} keyring)"
    return f"without a key: {', '.join(idle)}\ntype one in:   {way}"


def _named(name: str, config: Config) -> Route:
    here = route(name, config)
    if here is None or here.in_process:
        raise ConfigError(
            f"no provider {name} takes a key", remedy=f"One of: {', '.join(r.name for r in _routes(config))}"
        )
    return here


def _add(here: Route, *, can_ask: bool, keep: bool) -> Talk[str]:
    if not can_ask:
        raise ConfigError("nobody can type a key here", remedy=credentials.unattended(here))
    key = (yield _question(here, keep=keep)).strip()
    if not key:
        return "nothing was added"
    if keep and credentials.store(here.name, key):
        return f"the key for {here.name} is in {credentials.KEYRING}"
    credentials.type_in(here.name, key)
    kept = f"the key for {here.name} is used until this process ends"
    return f'{kept}; there is no keyring here (pip install "larik-nb[keyring]")' if keep else kept


def _question(here: Route, *, keep: bool) -> Question:
    detail = "not shown and not saved in the notebook; empty to leave it"
    give = Choice("", f"Put it into {credentials.KEYRING}" if keep else "Use it until this kernel ends")
    return Question(f"Key for {here.name}", choices=(give, Choice("", "Cancel")), detail=detail, secret=True)
