"""Controls in a cell, made with anywidget (extra `widgets`); each leaves plain markdown when it is done.

Nothing here is imported before a front end watches and a first frame has shown. `available` tells whether it can be;
where it cannot, the text twin of each widget does the same work.
"""

from __future__ import annotations

from importlib.util import find_spec


def available() -> bool:
    """Return whether widgets can be made here; imports nothing."""
    return find_spec("anywidget") is not None
