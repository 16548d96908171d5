"""Make the recording behind a notebook anew, and run the notebook from it.

    python scripts/record_notebook.py notebooks/03_data_in_prompts.ipynb

For when the words change in which values go into a question, or a question itself: a recording is found by the whole
request. The answers are those of the old recording, in their order, so the notebook keeps as many questions; edit them
there first to change one. The notebook's outputs are written back: read the difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbclient import NotebookClient

from larik_nb.agent.session import Route
from larik_nb.providers.recorded import Recorder
from larik_nb.providers.scripted import ScriptedProvider
from larik_nb.types import Message

REPLAY = re.compile(r"--replay (\S+)")


def answers(recording: Path) -> list[Message]:
    """Return the answers of a recording, in the order in which they were recorded."""
    lines = [json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines()]
    return [Message.from_json(json.dumps(line["events"][-1][1]["message"])) for line in lines]


def record(cells: list[str], old: list[Message], recording: Path) -> int:
    """Run the cells with the old answers, write what was asked and answered, and return how many questions that were."""
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "larik_nb")
    magics: Any = shell.magics_manager.magics["cell"]["larik"].__self__
    session = magics.session(None)
    provider = ScriptedProvider(old, name=old[0].provider or "scripted", model=old[0].model or "")
    session.model = Route(provider=provider, model=old[0].model or "")
    # Without a clock, so that the same answers make the same file.
    magics.recordings[id(session), str(recording), Recorder] = Recorder(recording, clock=lambda: 0.0)
    for source in cells:
        with capture_output():
            ran = shell.run_cell(REPLAY.sub(f"--record {recording}", source), store_history=True)
        ran.raise_error()
    return len(session.turns)


def run(path: Path) -> None:
    """Run the notebook and write its outputs back, without what differs from run to run."""
    notebook = nbformat.read(path, 4)
    language = dict(notebook.metadata.language_info)
    os.environ["LARIK_MODEL"] = "scripted/demo"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.language_info = language
    nbformat.write(notebook, path)


def main(name: str) -> int:
    """Do it for the notebook `name`."""
    path = Path(name).resolve()
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    named = {match for source in cells for match in REPLAY.findall(source)}
    if len(named) != 1:
        print(f"{name} names {len(named)} recordings; this is for one", file=sys.stderr)
        return 2
    os.chdir(path.parent)
    recording = Path(named.pop())
    old, new = answers(recording), recording.with_suffix(".new")
    new.unlink(missing_ok=True)
    asked = record(cells, old, new)
    if asked != len(old):
        print(f"{name} asks {asked} questions and has {len(old)} answers; {new} is left to look at", file=sys.stderr)
        return 1
    new.replace(recording)
    run(path)
    print(f"{recording}: {asked} questions recorded; {path.name} run from it")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
