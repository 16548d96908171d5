"""Larik for notebooks: any model, streamed into the cell, with its tokens and cost.

Every name is imported when it is first used, so `import larik_nb` and `%load_ext larik_nb` stay quick and silent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from larik_nb import errors as errors
    from larik_nb._version import __version__ as __version__
    from larik_nb.agent.session import Session as Session
    from larik_nb.notebook.describe import describe as describe
    from larik_nb.portal import stream as stream
    from larik_nb.providers import Provider as Provider
    from larik_nb.providers import connect as connect
    from larik_nb.types import Block as Block
    from larik_nb.types import Message as Message
    from larik_nb.types import Request as Request
    from larik_nb.types import StreamEvent as StreamEvent
    from larik_nb.types import ToolSpec as ToolSpec
    from larik_nb.types import Usage as Usage

_HOMES = {
    "Block": "larik_nb.types",
    "Message": "larik_nb.types",
    "Provider": "larik_nb.providers",
    "Request": "larik_nb.types",
    "Session": "larik_nb.agent.session",
    "StreamEvent": "larik_nb.types",
    "ToolSpec": "larik_nb.types",
    "Usage": "larik_nb.types",
    "__version__": "larik_nb._version",
    "connect": "larik_nb.providers",
    "describe": "larik_nb.notebook.describe",
    "stream": "larik_nb.portal",
}

__all__ = [
    "Block",
    "Message",
    "Provider",
    "Request",
    "Session",
    "StreamEvent",
    "ToolSpec",
    "Usage",
    "__version__",
    "connect",
    "describe",
    "errors",
    "load_ipython_extension",
    "stream",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    from larik_nb._imports import collector_paused

    with collector_paused():
        if name == "errors":
            return import_module("larik_nb.errors")
        if name in _HOMES:
            value = globals()[name] = getattr(import_module(_HOMES[name]), name)
            return value
    msg = f"module 'larik_nb' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(ip: InteractiveShell) -> None:
    """Register the magics: what `%load_ext larik_nb` calls."""
    from larik_nb import notebook

    notebook.load(ip)


def unload_ipython_extension(ip: InteractiveShell) -> None:
    """Take everything back that loading registered."""
    from larik_nb import notebook

    notebook.unload(ip)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "larik-nb"}]
