"""A real kernel, and everything it says while a cell runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
DISPLAYS = ("display_data", "update_display_data", "execute_result")


@dataclass
class Ran:
    """What a cell said: its messages with the time each arrived, and the reply."""

    messages: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)
    started: float = 0.0
    seconds: float = 0.0

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [m["content"] for _, m in self.messages if m["msg_type"] in kinds]

    @property
    def error(self) -> str:
        return "\n".join("\n".join(content["traceback"]) for content in self.of("error"))

    @property
    def stdout(self) -> str:
        return "".join(c["text"] for c in self.of("stream"))

    @property
    def display_times(self) -> list[float]:
        return [at for at, m in self.messages if m["msg_type"] in DISPLAYS]

    @property
    def saved(self) -> list[dict[str, Any]]:
        """The outputs a front end would save, as it keeps them."""
        outputs: list[dict[str, Any]] = []
        places: dict[str, int] = {}
        clear = False
        for _, message in self.messages:
            kind, content = message["msg_type"], message["content"]
            if kind == "clear_output":
                clear = True
            elif kind == "update_display_data":
                outputs[places[content["transient"]["display_id"]]] = content
            elif kind in ("display_data", "execute_result", "stream", "error"):
                if clear:
                    outputs, places, clear = [], {}, False
                if name := content.get("transient", {}).get("display_id"):
                    places[name] = len(outputs)
                outputs.append(content)
        return outputs

    @property
    def plain(self) -> str:
        return "\n".join(output["data"]["text/plain"] for output in self.saved if "data" in output)


class Kernel:
    """An ipykernel in a child process."""

    def __init__(self, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self.manager = KernelManager(kernel_name="python3")
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        self.manager.start_kernel(cwd=str(cwd), env={**os.environ, "PYTHONPATH": path, **(env or {})})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE_S)

    def start(self, code: str, *, watched: bool = True) -> str:
        return str(self.client.execute(code, allow_stdin=watched))

    def run(self, code: str, *, watched: bool = True, answers: tuple[str, ...] = ()) -> Ran:
        """Run a cell to its end; `answers` are typed into its questions."""
        return self.collect(self.start(code, watched=watched), answers=answers)

    def collect(
        self, request: str, *, answers: tuple[str, ...] = (), heard: Callable[[dict[str, Any]], None] | None = None
    ) -> Ran:
        """Take in what a cell says until it ends; `heard` gets every message, those of other requests too."""
        ran = Ran(started=time.monotonic())
        typed = list(answers)
        deadline = ran.started + PATIENCE_S
        while time.monotonic() < deadline:
            if typed and self._asks():
                self.client.input(typed.pop(0))
            try:
                message = self.client.get_iopub_msg(timeout=0.2)
            except Empty:
                continue
            if heard is not None:
                heard(message)
            if message["parent_header"].get("msg_id") != request:
                continue
            ran.messages.append((time.monotonic(), message))
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        ran.seconds = time.monotonic() - ran.started
        ran.reply = self._reply(request)
        return ran

    def _asks(self) -> bool:
        try:
            return bool(self.client.get_stdin_msg(timeout=0.05))
        except Empty:
            return False

    def _reply(self, request: str) -> dict[str, Any]:
        while True:
            message = self.client.get_shell_msg(timeout=PATIENCE_S)
            if message["parent_header"].get("msg_id") == request:
                content: dict[str, Any] = message["content"]
                return content

    def value(self, expression: str) -> str:
        """Return the printed form of an expression."""
        return self.run(f"print({expression})").stdout.rstrip("\n")

    def interrupt(self) -> None:
        self.manager.interrupt_kernel()

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()
