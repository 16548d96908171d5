"""Where a cell runs, who looks on, and whether it may await."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

from IPython.core.displaypub import CapturingDisplayPublisher


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a cell runs.

    Attributes:
        in_kernel: In a kernel, not in a terminal.
        watched: Somebody looks at it, and can be asked.
        captured: What is published is kept by other code.
        whole_cell: The magic is all there is in the cell.
        awaited: It runs as an async cell, so that what the page sends is heard meanwhile.
    """

    in_kernel: bool
    watched: bool
    captured: bool
    whole_cell: bool
    awaited: bool = False

    @property
    def can_ask(self) -> bool:
        """Whether a question would be answered."""
        return self.watched and not self.captured

    @classmethod
    def of(cls, shell: Any, *, awaited: bool = False) -> Place:
        """Look around."""
        in_kernel = getattr(shell, "kernel", None) is not None
        content = _asked_for(shell) if in_kernel else {}
        code = content.get("code", "").strip()
        return cls(
            in_kernel=in_kernel,
            watched=bool(content.get("allow_stdin")) if in_kernel else _is_terminal(shell),
            captured=isinstance(shell.display_pub, CapturingDisplayPublisher),
            whole_cell=code.startswith("%%larik") or (code.startswith("%larik") and "\n" not in code),
            awaited=awaited,
        )


def _asked_for(shell: Any) -> dict[str, Any]:
    content: dict[str, Any] = shell.get_parent().get("content", {})
    return content


def _is_terminal(shell: Any) -> bool:
    return bool(getattr(shell, "simple_prompt", True) is False)


def may_await(shell: Any, source: str) -> bool:
    """Return whether `source`, the code that IPython made of a cell, is a whole cell that an ipykernel would await.

    Only then: code run by other code (`%%time`, `run_cell`) is transformed too, and nobody would await it.
    """
    place = Place.of(shell)
    if not (place.can_ask and place.whole_cell and _awaits_cells(shell)):
        return False
    return bool(shell.input_transformer_manager.transform_cell(_asked_for(shell).get("code", "")) == source)


def _awaits_cells(shell: Any) -> bool:
    """Return whether the kernel runs a cell that awaits something on its own loop."""
    ipkernel = sys.modules.get("ipykernel.ipkernel")
    if ipkernel is None or not isinstance(getattr(shell, "kernel", None), ipkernel.IPythonKernel):
        return False
    if not (shell.autoawait and shell.loop_runner is ipkernel._asyncio_runner):
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
