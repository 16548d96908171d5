"""The one question before the small local model is downloaded, and `%larik local`."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from typing import TYPE_CHECKING

from larik_nb.errors import ConfigError
from larik_nb.notebook.asking import Choice, Question, Talk
from larik_nb.notebook.interrupts import at_once

if TYPE_CHECKING:
    from larik_nb.agent.session import Route
    from larik_nb.providers.local.table import Model

_CHOICES = (Choice("yes", "Download", "y"), Choice("no", "Not now", "n"))


def offer(route: Route, *, can_ask: bool) -> Talk[None]:
    """Ask whether to fetch the local model that `route` means, if it is not here; leave it to the turn to fail.

    Args:
        route: Who is about to be asked.
        can_ask: Somebody is there to answer.
    """
    from larik_nb.providers.local import LocalProvider

    if route.provider.name != LocalProvider.name or not can_ask:
        return
    model = _missing(route.model)
    if model is None:
        return
    answer = yield Question(f"Download {model.title}? {model.size}, {model.licence}", choices=_CHOICES, default="no")
    if answer == "yes":
        with at_once():
            run(["fetch", model.name, "--yes"])


def is_here(spec: str) -> bool:
    """Return False for a small model of this machine's own that was not fetched yet."""
    from larik_nb.providers.local import LocalProvider, cache, table

    provider, _, name = spec.partition("/")
    if provider.lower() != LocalProvider.name:
        return True
    return all(cache.is_present(model) for model in table.models() if model.name == name)


def _missing(name: str) -> Model | None:
    from larik_nb.providers.local import cache, table

    if find_spec("xllamacpp") is None:
        return None
    model = table.find(name) if name else table.models()[-1]
    return None if cache.is_present(model) else model


def run(words: list[str]) -> None:
    """Run `larik local …`.

    Raises:
        ConfigError: There is no such command, or nothing was fetched.
    """
    from larik_nb.providers.local import cli

    try:
        status = cli(words)
    except SystemExit as error:
        if not error.code:  # it was asked for help
            return
        raise ConfigError("no such command", remedy="Write %larik local fetch, list or status") from None
    if status and words[:1] == ["fetch"]:
        raise ConfigError("nothing was fetched", remedy="The line above says why")


def split(line: str) -> list[str]:
    """Return the words of `%larik local …`."""
    return shlex.split(line)
