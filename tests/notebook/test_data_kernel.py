"""Data in prompts and answers as values, in a real kernel: shown pictures, questions typed, runs that fail."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from larik_nb import Session
from larik_nb.agent.session import Route
from larik_nb.notebook import formats
from larik_nb.notebook.options import Asked, Format
from larik_nb.providers.recorded import RecordingProvider
from larik_nb.providers.scripted import ScriptedProvider
from tests.notebook._kernel import ROOT, Kernel

SENT = "[(b.type, b.text or b.media_type) for b in provider.requests[-1].messages[-1].blocks]"


def test_the_picture_that_a_cell_showed_goes_as_an_image(asked: Kernel):
    pytest.importorskip("matplotlib")
    late = asked.run("%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);").reply["execution_count"]
    early = asked.run("fig, _ = plt.subplots()\ndisplay(fig)\nplt.close(fig)\n5").reply["execution_count"]

    assert not asked.run(f"%%larik\nsee {{Out[{late}]!image}} {{Out[{early}]!image}} {{Out[{early}]}}").error

    sent = asked.value(SENT)
    assert sent.startswith("[('image', 'image/png'), ('image', 'image/png'), ('text', 'see [image 1: Out[")
    assert sent.endswith(" px] 5')]")


def test_a_failed_cell_is_fixed_on_a_typed_yes_and_goes_below_without_a_page(asked: Kernel):
    asked.run("provider._replies = iter(['Off by one.\\n```python\\nprint([1][0])\\n```'] * 2)")
    asked.run("print([1][1])")

    kept = asked.run("%larik fix", answers=("",))
    asked.run("print([1][1])")
    done = asked.run("%larik fix", answers=("y",))

    texts = [output["data"].get("text/markdown") for output in kept.saved if "data" in output]
    assert "```diff\n@@ -1 +1 @@\n-print([1][1])\n+print([1][0])\n```" in texts
    assert "not applied" in kept.plain
    assert not kept.reply["payload"]
    assert [(p["source"], p["text"], p["replace"]) for p in done.reply["payload"]] == [
        ("set_next_input", "print([1][0])", False)
    ]


def test_nobody_there_means_that_nothing_is_changed(asked: Kernel):
    asked.run("provider._replies = iter(['```python\\n2\\n```'])")
    asked.run("1 / 0")

    ran = asked.run("%larik fix", watched=False)

    assert not ran.error
    assert "not applied" in ran.plain
    assert not ran.reply["payload"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recording of an answer that is no JSON, and of a page that is hostile."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    page = "```html\n<b>hi</b><script>alert(1)</script><img src=x onerror=alert(1)>\n```"
    answers: list[tuple[str, Format, str]] = [("bad", "json", "Sorry."), ("html", "html", page)]
    for name, kind, answer in answers:
        provider = RecordingProvider(ScriptedProvider([answer], model="m1"), tmp_path / f"{name}.jsonl")
        Session(Route(provider=provider, model="m1")).ask("q", formats.instruction(Asked(format=kind), {}))
    return tmp_path


def execute(folder: Path, *sources: str) -> nbformat.NotebookNode:
    notebook = new_notebook(cells=[new_code_cell(source) for source in ("%load_ext larik_nb", *sources)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def test_a_bad_answer_fails_the_run(folder: Path):
    with pytest.raises(CellExecutionError) as caught:
        execute(folder, "%%larik --replay bad.jsonl --format json -o v\nq")

    assert "LarikError: the answer holds no valid JSON" in str(caught.value)


def test_a_page_of_a_strangers_is_inert_in_a_saved_notebook(folder: Path):
    from nbconvert import HTMLExporter

    notebook = execute(folder, "%%larik --replay html.jsonl --format html\nq")

    nbformat.validate(notebook)
    html, _ = HTMLExporter().from_notebook_node(notebook)
    body = html[html.index("<body") :]
    assert re.search('<iframe[^>]* sandbox=""[^>]*>', body)
    assert "<script>alert" not in body
    assert "<img src=x" not in body
