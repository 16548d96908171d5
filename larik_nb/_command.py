"""How a command of the shell ends: one line on standard error where it fails, and its exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable

from larik_nb.errors import LarikError

FAILED, INTERRUPTED = 1, 130


def status(run: Callable[[], int], *, stopped: str = "stopped") -> int:
    """Run a command and return its exit status: its own, 1 where it failed, 130 where it was interrupted.

    Args:
        run: The command.
        stopped: What to say of an interrupt.
    """
    try:
        return run()
    except LarikError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(stopped, file=sys.stderr)
        return INTERRUPTED
