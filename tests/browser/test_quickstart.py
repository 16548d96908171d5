"""The quickstart as a reader sees it: a real JupyterLab, each cell run, the first answer watched while it streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser

QUICKSTART = Path(__file__).resolve().parents[2] / "notebooks" / "01_quickstart.ipynb"
NO_MODEL = "import os\nos.environ['LARIK_MODEL'] = 'scripted/demo'"
START_CELL = """index => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.deselectAll();
  notebook.activeCellIndex = index;
  void window.jupyterapp.commands.execute('notebook:run-cell');
}"""
STREAMING = """index => {
  const cell = window.jupyterapp.shell.currentWidget.content.widgets[index];
  const text = cell.outputArea.node.textContent;
  return text.includes('You asked') && cell.node.querySelector('.jp-InputPrompt').textContent.includes('*');
}"""
DONE = "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.executionCount !== null"
SHOWN = "index => window.jupyterapp.shell.currentWidget.content.widgets[index].outputArea.node.textContent"
OUTPUTS = "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.outputs.toJSON()"


@pytest.fixture
def quickstart(lab: Lab) -> tuple[str, list[int]]:
    """The notebook without its outputs, on a model that says the same every time; and where its code cells are."""
    notebook = nbformat.read(QUICKSTART, as_version=4)
    notebook.cells.insert(0, new_code_cell(NO_MODEL))
    code = [index for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    for index in code:
        notebook.cells[index].outputs, notebook.cells[index].execution_count = [], None
    nbformat.write(notebook, lab.folder / "quickstart.ipynb")
    return "quickstart.ipynb", code


def test_every_cell_runs_and_the_answer_streams(lab: Lab, page: Any, quickstart: tuple[str, list[int]]) -> None:
    file, code = quickstart
    lab.open(page, file)
    setting, load, model, ask, *rest = code
    for index in (setting, load, model):
        lab.run(page, index)

    page.evaluate(START_CELL, ask)
    page.wait_for_function(STREAMING, arg=ask, timeout=20_000)
    page.wait_for_function(DONE, arg=ask, timeout=20_000)
    page.wait_for_function("index => !document.querySelector('.jp-mod-busy')", arg=ask)

    outputs = page.evaluate(OUTPUTS, ask)
    assert [output["output_type"] for output in outputs] == ["display_data"]
    assert set(outputs[0]["data"]) == {"text/markdown", "text/plain"}
    assert "scripted/demo · " in page.evaluate(SHOWN, ask)
    for index in rest:
        lab.run(page, index)
    status = page.locator(".larik-ModelItem")
    assert "demo" in status.text_content()
