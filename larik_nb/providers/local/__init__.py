"""The embedded default: a small open model on this machine, so that a newcomer without a key sees real output.

`table` says which models there are, `cache` where they lie, `fetch` brings one on an explicit yes, `server` runs it in
a child process, `provider` answers with it, `commands` is `larik local`. Each is loaded when it is first used, for the
question whether a model is here is asked at every start without a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from larik_nb.providers.local.commands import cli as cli
    from larik_nb.providers.local.provider import LocalProvider as LocalProvider

__all__ = ["LocalProvider", "cli"]

_HOMES = {"LocalProvider": "provider", "cli": "commands"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if home := _HOMES.get(name):
        return getattr(import_module(f"{__name__}.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
