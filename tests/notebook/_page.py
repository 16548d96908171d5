"""What a page with widgets does, in messages: it says that it drew a widget, and sends the clicks."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from tests.notebook._kernel import Kernel, Ran

IPYKERNEL = tuple(map(int, version("ipykernel").split(".")[:2]))
HEARS_CLICKS = IPYKERNEL >= (7, 0)
"""Before that no click reaches a kernel while a cell runs, whatever the page does."""


class Page:
    """A front end that draws the widget `name`, and once it is live does `act`, with its clicks over a subshell or not.

    Attributes:
        states: What each widget's traits were set to, by the widget's id.
        acted: When `act` was done.
    """

    def __init__(self, kernel: Kernel, name: str, act: Callable[[Page], None]) -> None:
        self._kernel = kernel
        self._name = name
        self._act = act
        self._widget = ""
        self._subshell = _subshell(kernel) if (7, 0) <= IPYKERNEL < (7, 4) else None
        self.states: dict[str, dict[str, Any]] = {}
        self.acted = 0.0

    def run(self, cell: str) -> Ran:
        """Run a cell to its end."""
        return self._kernel.collect(self._kernel.start(cell), heard=self._heard)

    def send(self, content: dict[str, Any]) -> None:
        """Send a message of the widget."""
        session = self._kernel.client.session
        data = {"method": "custom", "content": content}
        message = session.msg("comm_msg", {"comm_id": self._widget, "data": data})
        if self._subshell is not None:
            message["header"]["subshell_id"] = self._subshell
        self._kernel.client.shell_channel.send(message)

    def _heard(self, message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "comm_open" and content["data"]["state"].get("_anywidget_id", "").endswith(f".{self._name}"):
            self._widget = content["comm_id"]
            self.states[self._widget] = dict(content["data"]["state"])
            self.send({"type": "ready"})
        elif kind == "comm_msg" and content["comm_id"] == self._widget:
            state = content["data"].get("state", {})
            self.states[self._widget] |= state
            if state.get("live") and not self.acted:
                self.acted = time.monotonic()
                self._act(self)
        elif kind == "comm_close":
            self.states.pop(content["comm_id"], None)


def _subshell(kernel: Kernel) -> str:
    control = kernel.client.control_channel
    request = kernel.client.session.msg("create_subshell_request")
    control.send(request)
    while True:
        reply = control.get_msg(timeout=10)
        if reply["parent_header"].get("msg_id") == request["header"]["msg_id"]:
            return str(reply["content"]["subshell_id"])
