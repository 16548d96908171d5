"""Tells the front end what the status bar shows, over the comm `larik:status`; quiet where nobody looks.

Each message is the whole state::

    {"version": 1, "model": "provider/model" or None, "session_usd": USD or None, "budget_usd": None, "running": bool}

A page that was reloaded asks with any message, and gets the last state again.
"""

from __future__ import annotations

from typing import Any

TARGET = "larik:status"
VERSION = 1


class Status:
    """One kernel's line to its front ends."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._comm: Any = None
        self._said: dict[str, Any] = {}

    def say(self, *, model: str | None, session_usd: float | None, running: bool) -> None:
        """Send the state, if it changed."""
        state = {"version": VERSION, "model": model, "session_usd": session_usd, "budget_usd": None, "running": running}
        if state != self._said and self._is_watched():
            self._said = state
            self._send()

    def _is_watched(self) -> bool:
        """Whether a front end asked for this cell: a tool that runs notebooks would warn of a comm it does not know."""
        if getattr(self._shell, "kernel", None) is None:
            return False
        return bool(self._shell.get_parent().get("content", {}).get("allow_stdin"))

    def _send(self) -> None:
        if self._comm is None:
            from comm import create_comm

            self._comm = create_comm(target_name=TARGET, data=self._said)
            self._comm.on_msg(lambda _: self._comm.send(self._said))
        else:
            self._comm.send(self._said)

    def close(self) -> None:
        """Say that there is nothing more to show."""
        if self._comm is not None:
            self._comm.close()
            self._comm = None
