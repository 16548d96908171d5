"""A shell in this process, with what it published."""

from __future__ import annotations

from typing import Any

from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from larik_nb.agent.session import Session
from larik_nb.notebook import steps
from larik_nb.notebook.magics import LarikMagics
from larik_nb.providers.scripted import Reply, ScriptedProvider


class Publisher(DisplayPublisher):
    """Keeps what is published."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.published: list[dict[str, Any]] = []

    def publish(self, data: Any, *args: Any, **kwargs: Any) -> None:
        self.published.append(data)


class Cells:
    """Runs cells, and asks a scripted provider."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        shell.display_pub = Publisher(parent=shell)
        shell.run_line_magic("load_ext", "larik_nb")
        self.magics: LarikMagics = shell.magics_manager.magics["cell"]["larik"].__self__
        self.answers()

    def answers(self, *replies: Reply) -> None:
        self.provider = ScriptedProvider(replies, model="demo-model")
        session: Session = self.magics.session(None)
        session.model = self.provider

    def run(self, code: str, cell_id: str | None = None) -> Any:
        return self.shell.run_cell(code, store_history=True, cell_id=cell_id)

    def ask(self, text: str, line: str = "") -> Any:
        return steps.run(self.magics._steps(line, text, awaited=False))

    @property
    def sent(self) -> str:
        """The texts of the last question."""
        return self.provider.requests[-1].messages[-1].text

    @property
    def blocks(self) -> list[Any]:
        return list(self.provider.requests[-1].messages[-1].blocks)

    @property
    def published(self) -> list[dict[str, Any]]:
        published: list[dict[str, Any]] = self.shell.display_pub.published  # type: ignore[attr-defined]
        return published

    @property
    def plain(self) -> str:
        return "\n".join(data.get("text/plain", "") for data in self.published)
