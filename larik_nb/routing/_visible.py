"""When an answer has begun: from then on nothing may be asked again or of somebody else."""

from __future__ import annotations

from larik_nb.types import StreamEvent

_SHOWN = frozenset({"text_delta", "thinking_delta"})


def is_visible(event: StreamEvent) -> bool:
    """Return whether the user has seen something of the answer with this event.

    Empty deltas and notices are nothing. Images come with the whole answer, in `done`, which is its end anyway.
    """
    return bool(event.text) if event.type in _SHOWN else event.type == "tool_use_start"
