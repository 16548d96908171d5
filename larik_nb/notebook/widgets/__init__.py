"""Controls in a cell, made with anywidget (extra `widgets`); each leaves plain markdown when it is done.

Nothing is imported before a front end watches and a first frame has shown: `load` costs about 0.15 s of CPU the first
time. Where widgets cannot be, their text twins do the same work.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def available() -> bool:
    """Return whether widgets can be made here; imports nothing."""
    return find_spec("anywidget") is not None


def load(name: str) -> ModuleType:
    """Import a widget's module; may be done on another thread than the one that makes the widget.

    Raises:
        ImportError: anywidget is missing, or broken.
    """
    return import_module(f"larik_nb.notebook.widgets.{name}")
