"""Notebooks run by tools: one saved output, comparable when replayed, and a failure that fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from larik_nb import Session
from larik_nb.agent.session import Route
from larik_nb.providers.recorded import RecordingProvider
from larik_nb.providers.scripted import ScriptedProvider
from larik_nb.types import Usage
from tests.notebook._kernel import ROOT
from tests.notebook.conftest import KEY

ANSWER = "The sky is **blue**.\n\n```python\nprint('blue')\n```\n"
REPLAYED = "%%larik --replay recording.jsonl\nWhy is the sky blue?"


@pytest.fixture
def env(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARIK_CONFIG", str(settings))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])))


@pytest.fixture
def folder(tmp_path: Path, env: None) -> Path:
    """A folder with a recording of one exchange."""
    provider = ScriptedProvider([ANSWER], name="scripted", model="m1", usage=Usage(input=8, output=12))
    Session(Route(provider=RecordingProvider(provider, tmp_path / "recording.jsonl"), model="m1")).ask(
        "Why is the sky blue?"
    )
    return tmp_path


def execute(folder: Path, *cells: str) -> NotebookNode:
    notebook = new_notebook(cells=[new_code_cell(source) for source in ("%load_ext larik_nb", *cells)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def nbval(folder: Path, notebook: NotebookNode, *flags: str) -> subprocess.CompletedProcess[str]:
    path = folder / "notebook.ipynb"
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval-current-env", *flags, str(path)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_replayed_cell_passes_strict_comparison_and_fails_once_edited(folder: Path):
    """S5."""
    notebook = execute(folder, REPLAYED)
    outputs = notebook.cells[1].outputs
    assert len(outputs) == 1
    assert outputs[0].data["text/plain"] == f"{ANSWER.rstrip()}\n\nscripted/m1 · 8 in · 12 out · replayed"

    passed = nbval(folder, notebook, "--nbval")
    assert passed.returncode == 0, passed.stdout + passed.stderr

    for kind in ("text/plain", "text/markdown"):
        outputs[0].data[kind] = outputs[0].data[kind].replace("blue", "green")
    failed = nbval(folder, notebook, "--nbval")
    assert failed.returncode == 1
    assert "green" in failed.stdout


def test_a_changed_prompt_fails_and_shows_what_differs(folder: Path):
    with pytest.raises(CellExecutionError) as caught:
        execute(folder, REPLAYED.replace("blue", "red"))

    assert "-user: Why is the sky blue?" in str(caught.value)
    assert "+user: Why is the sky red?" in str(caught.value)


def test_record_then_replay_in_the_same_notebook_form(folder: Path):
    recorded = execute(folder, "%%larik -m scripted/demo --record new.jsonl\nhi")
    replayed = execute(folder, "%%larik --replay new.jsonl\nhi")

    texts = [n.cells[1].outputs[0].data["text/plain"].rpartition("\n\n") for n in (recorded, replayed)]
    assert texts[0][0] == texts[1][0]
    assert texts[1][2].endswith("replayed")


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("fake/fake:e=401", "fake"),
        ("fake/fake:e=429:ra=9", "fake"),
        ("fake/fake:e=529", "fake"),
        ("gone/any", "nobody.invalid"),
        ("nonsense/model", "unknown model"),
    ],
)
def test_a_failure_fails_the_run_and_names_who_without_a_key(folder: Path, settings: Path, model: str, says: str):
    """S6: nbclient stops at our exception."""
    data = json.loads(settings.read_text())
    data["providers"]["gone"] = {"type": "openai-compatible", "base_url": "http://nobody.invalid/v1", "api_key": KEY}
    (folder / "config.json").write_text(json.dumps(data))

    with pytest.raises(CellExecutionError) as caught:
        execute(folder, "import os\nos.environ['LARIK_CONFIG'] = 'config.json'", f"%%larik -m {model}\nhi")

    assert "LarikError: " in str(caught.value)
    assert says in str(caught.value)
    assert KEY not in str(caught.value)


def test_papermill_stops_at_a_failure_and_injects_what_prompts_read(folder: Path):
    """S6, and `parameters`: what papermill injects is what a name in braces becomes."""
    notebook = new_notebook(
        cells=[new_code_cell("town = 'Oslo'", metadata={"tags": ["parameters"]})]
        + [
            new_code_cell(source)
            for source in ("%load_ext larik_nb", "%%larik --preview -m scripted/demo\nIs {town} far?")
        ]
        + [new_code_cell("%%larik -m fake/fake:e=529\nhi")],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    nbformat.write(notebook, folder / "in.ipynb")

    with pytest.raises(papermill.PapermillExecutionError) as caught:
        papermill.execute_notebook(
            str(folder / "in.ipynb"), str(folder / "out.ipynb"), {"town": "Bergen"}, cwd=str(folder), progress_bar=False
        )

    assert "LarikError: fake" in str(caught.value)
    assert KEY not in str(caught.value)
    ran = nbformat.read(folder / "out.ipynb", as_version=4)
    (preview,) = [cell for cell in ran.cells if "--preview" in cell.source]
    assert "Is Bergen far?" in preview.outputs[0].data["text/plain"]


def test_every_model_cooling_fails_the_run_and_tells_of_each_when_it_is_asked_again(folder: Path, settings: Path):
    """S6: the second question finds both left alone, asks them all the same, and names them with the time."""
    data = json.loads(settings.read_text())
    data |= {"model": "fake/fake:e=429:ra=90", "fallbacks": {"main": ["fake/fake:e=529"]}}
    (folder / "config.json").write_text(json.dumps(data))
    first = "%%larik\nhi"
    kept = "try:\n    get_ipython().run_cell_magic('larik', '', 'hi')\nexcept Exception:\n    print('failed')"

    with pytest.raises(CellExecutionError) as caught:
        execute(folder, "import os\nos.environ['LARIK_CONFIG'] = 'config.json'", kept, first)

    told = str(caught.value)
    assert "no model can answer: fake/fake:e=429:ra=90 rate limited, again in " in told
    assert "fake/fake:e=529 overloaded, again in " in told
    assert KEY not in told


def test_a_failure_fails_even_the_lax_comparison(folder: Path):
    """A usage error would only print, and pass."""
    notebook = execute(folder)
    notebook.cells.append(new_code_cell("%%larik -m fake/fake:e=529\nhi"))

    assert nbval(folder, notebook, "--nbval-lax").returncode == 1


FORMATTED = {
    "code": "```python\nx = 1\n```",
    "json": '{"a": 1}',
    "html": "<b>bold</b>",
    "table": "| a |\n| --- |\n| 1 |",
}
SCRIPTED = """
from larik_nb.providers.scripted import ScriptedProvider
magics = get_ipython().magics_manager.magics["cell"]["larik"].__self__
magics.session(None).model = ScriptedProvider({script!r})
"""


def test_a_saved_notebook_opens_everywhere(folder: Path):
    """S9: valid, no widgets, readable as markdown and as text, no script needed in the export."""
    told = ["cost", "status", "keys", "help", "routing", "effort", "model_settings", "models scripted"]
    notebook = execute(
        folder,
        REPLAYED,
        SCRIPTED.format(script=[*FORMATTED.values()]),
        *(f"%%larik --format {kind}\nhi" for kind in FORMATTED),
        *(f"%larik {verb}" for verb in told),
        "%%larik --preview -m scripted/demo\nhi",
        "%model scripted/demo",
        "%%larik --new\nhi",
    )

    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    for cell in notebook.cells[1:]:
        if cell.source.startswith("%"):
            first, *frame = cell.outputs
            assert not set(first.data) - {"text/plain", "text/markdown"}
            assert "<larik_nb" not in first.data["text/plain"]
            assert len(frame) == ("--format html" in cell.source), cell.source
    assert KEY not in json.dumps(notebook)
    html, _ = HTMLExporter(embed_images=True).from_notebook_node(notebook)
    assert "The sky is <strong>blue</strong>." in html
    assert "replayed</em>" in html


def test_a_hostile_answer_is_inert_in_the_export(folder: Path):
    hostile = "<script>alert(1)</script> <img src=x onerror=alert(1)> ![x](https://e.example/?q=1) <div>\n"
    provider = RecordingProvider(ScriptedProvider([hostile], model="m1"), folder / "hostile.jsonl")
    Session(Route(provider=provider, model="m1")).ask("hi")

    notebook = execute(folder, "%%larik --replay hostile.jsonl\nhi", "print('the next cell')")
    html, _ = HTMLExporter().from_notebook_node(notebook)
    body = html[html.index("<body") :]

    assert "alert(1)</script>" not in body
    assert "<img src=x" not in body
    assert 'src="https://e.example' not in body
    assert body.count("<div") == body.count("</div>")


def test_the_meter_shows_the_numbers_that_a_saved_notebook_has(folder: Path):
    look = """
from larik_nb.notebook import meter
magics = get_ipython().magics_manager.magics["cell"]["larik"].__self__
told = meter.Report.of(magics.session(None), lambda: magics.route(magics.session(None)))
print(*(step["cell"] for step in meter.view(told, running=False)["steps"]))
"""

    notebook = execute(folder, REPLAYED, "1 + 1", "%larik -m scripted/demo -p again", look)

    numbers = [f"[{notebook.cells[at].execution_count}]" for at in (1, 3)]
    assert notebook.cells[-1].outputs[0].text.split() == numbers
