"""The embedded default: a small open model on this machine, so that a newcomer without a key sees real output.

`table` says which models there are, `cache` where they lie, `fetch` brings one on an explicit yes, `server` runs it in
a child process, `provider` answers with it, `commands` is `larik local`. The standard library is all that is imported
until one of them works.
"""

from __future__ import annotations

from larik_nb.providers.local.commands import cli
from larik_nb.providers.local.provider import LocalProvider

__all__ = ["LocalProvider", "cli"]
