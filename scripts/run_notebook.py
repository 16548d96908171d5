"""Run a notebook through a real kernel and print its cells and their outputs as they come.

    python scripts/run_notebook.py NOTEBOOK

Nothing is written back. The exit status is 1 when a cell fails.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

CLOSERS = re.compile(r"\n?(```+|~~~+|\$\$)\s*$")
"""What a frame adds so that a block which still grows shows as one."""


SMALL = re.compile(r"<small>\*(.*?)\*</small>")
WAITING = re.compile(r" · \d+ s$")
WIDGET = "application/vnd.jupyter.widget-view+json"


class Printer:
    """Prints outputs that grow: of a display that is updated, only what is new.

    An answer on its way comes as frames of markdown alone; the finished one, which takes their place, has plain text as
    well. Of that only what the frames had not shown yet is printed.
    """

    def __init__(self) -> None:
        """Start with nothing shown."""
        self._shown: dict[str, str] = {}
        self._frames: dict[str, str] = {}
        self._streamed = ""
        self._notices: list[str] = []
        self._open: str | None = None
        self._at_line_start = True

    def cell(self, source: str) -> None:
        """Print the code that is about to run."""
        self.end()
        self._frames, self._streamed, self._notices = {}, "", []
        first, *rest = source.splitlines() or [""]
        self._write("\n".join([f"\n› {first}", *(f"  {line}" for line in rest)]) + "\n\n")

    def message(self, message: Mapping[str, Any]) -> None:
        """Print what one message on the kernel's output channel shows."""
        content = message["content"]
        match message["msg_type"]:
            case "stream":
                self._switch(None)
                self._write(content["text"])
            case "execute_result":
                self._switch(None)
                self._write(_text(content["data"]) + "\n")
            case "display_data" | "update_display_data":
                self._display(content)
            case "error":
                self.end()
                self._write(f"{content['ename']}: {content['evalue']}\n")

    def end(self) -> None:
        """Finish the line that is being written."""
        self._switch(None)
        if not self._at_line_start:
            self._write("\n")

    def _frame(self, name: str, markdown: str) -> None:
        self._frames[name] = markdown
        if markdown.startswith("<small>"):
            self._notice(line for line in SMALL.findall(markdown) if not WAITING.search(line))
            return
        text = "".join(frame for frame in self._frames.values() if not frame.startswith("<small>"))
        text = CLOSERS.sub("", text)
        if text.startswith(self._streamed):
            self._write(text[len(self._streamed) :])
            self._streamed = text

    def _notice(self, lines: Iterable[str]) -> None:
        for line in lines:
            if line not in self._notices:
                self._notices.append(line)
                self._write(f"{line}\n\n")

    def _finished(self, text: str) -> str:
        """Return what of a finished answer is still to be printed; lines that only the bar has told are not."""
        for line in self._notices:
            text = text.removeprefix(line).lstrip("\n")
        streamed = self._streamed.strip()
        return text.partition(streamed)[2] if streamed and streamed in text else text

    def _display(self, content: Mapping[str, Any]) -> None:
        data, name = content["data"], content.get("transient", {}).get("display_id")
        if name is not None and set(data) == {"text/markdown"}:
            self._frame(name, data["text/markdown"])
            return
        if name in self._frames and WIDGET in data:  # the bar with Stop takes the waiting line's place
            if not self._streamed:
                self._frame(name, data["text/markdown"])
            return
        text = self._finished(_text(data)) if self._frames else _text(data)
        if name is None:
            self._switch(None)
            self._write(text + "\n")
            return
        self._switch(name)
        before = self._shown.get(name, "")
        if not text.startswith(before):  # it was rewritten: go on from the first line that differs
            same = _common(before, text)
            self.end()
            self._open = name
            before = text[: text.rfind("\n", 0, same) + 1]
        self._write(text[len(before) :])
        self._shown[name] = text

    def _switch(self, name: str | None) -> None:
        """Begin a new line when the last words belong to another output."""
        if self._open is not None and self._open != name and not self._at_line_start:
            self._write("\n")
        self._open = name

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._at_line_start = text.endswith("\n")


def _text(data: Mapping[str, str]) -> str:
    return data.get("text/plain") or data.get("text/markdown") or ""


def _common(left: str, right: str) -> int:
    """Count the characters at the start that two texts share."""
    pairs = zip(left, right, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


class ShowingClient(NotebookClient):
    """A notebook client that hands each output on before the cell has ended."""

    def __init__(self, notebook: nbformat.NotebookNode, printer: Printer, **settings: Any) -> None:
        """Take the notebook, where to print, and a notebook client's own settings."""
        super().__init__(notebook, **settings)
        self.printer = printer

    async def async_start_new_kernel_client(self, **kwargs: Any) -> Any:
        """Start as somebody who looks on, so that answers stream; nothing here asks back."""
        client = await super().async_start_new_kernel_client(**kwargs)
        client.allow_stdin = True
        return client

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        """Print a message, then do with it what the notebook needs."""
        self.printer.message(msg)
        return super().process_message(msg, cell, cell_index)

    async def async_execute_cell(self, cell: Any, cell_index: int, *args: Any, **kwargs: Any) -> Any:
        """Print a code cell, then run it."""
        if cell.cell_type == "code" and cell.source.strip():
            self.printer.cell(cell.source)
        return await super().async_execute_cell(cell, cell_index, *args, **kwargs)


def run(path: Path) -> int:
    """Run every cell in the notebook's own folder.

    Returns:
        The exit status: 0, or 1 when a cell failed or the kernel died; the reason is printed.
    """
    notebook = nbformat.read(path, as_version=4)
    printer = Printer()
    client = ShowingClient(
        notebook,
        printer,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        # Else each kernel says at length that local messages are not encrypted.
        extra_arguments=["--log-level=ERROR"],
    )
    problem: str | None = None
    try:
        client.execute()
    except CellExecutionError:
        problem = "a cell failed; its error is above"
    except (CellTimeoutError, DeadKernelError) as error:
        problem = str(error).strip()
    printer.end()
    if problem is None:
        return 0
    print(f"\n{path}: {problem}", file=sys.stderr)
    return 1


def main() -> int:
    """Read the command line and run the notebook it names."""
    parser = argparse.ArgumentParser(description="Run a notebook and print its outputs as they come.")
    parser.add_argument("notebook", type=Path)
    path = parser.parse_args().notebook
    if not path.is_file():
        print(f"{path}: there is no such notebook", file=sys.stderr)
        return 2
    return run(path)


if __name__ == "__main__":
    sys.exit(main())
