"""The first hour by keyboard alone: the quickstart, a question of one's own, Stop, another model, and on with the work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from tests.browser.conftest import ARTIFACTS

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser
pytest.importorskip("anywidget", reason="the extra widgets is not installed")

QUICKSTART = Path(__file__).resolve().parents[2] / "notebooks" / "01_quickstart.ipynb"
NO_MODEL = "import os\nos.environ['LARIK_MODEL'] = 'scripted/demo'"
LONG = """\
from larik_nb.providers.scripted import ScriptedProvider
magics = get_ipython().magics_manager.magics["cell"]["larik"].__self__
magics.session("long").model = ScriptedProvider(["word " * 2_000], delay_s=0.05)
"""
HOLDS_FOCUS = """([index, mode]) => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  return notebook.mode === mode && notebook.widgets[index]?.node.contains(document.activeElement);
}"""
RAN = """index => {
  const cell = window.jupyterapp.shell.currentWidget.content.widgets[index];
  return cell.model.type !== 'code' || cell.model.executionCount !== null;
}"""
SHOWS = """([index, text]) =>
  window.jupyterapp.shell.currentWidget.content.widgets[index]?.outputArea?.node.textContent.includes(text)"""
IN_PICKER = "() => document.activeElement?.closest('.larik-picker') !== null"


@pytest.fixture
def quickstart(lab: Lab) -> list[str]:
    """Write the quickstart, without outputs and on a model that needs no key; return each cell's kind and source."""
    notebook = nbformat.read(QUICKSTART, as_version=4)
    notebook.cells.insert(0, new_code_cell(NO_MODEL))
    notebook.cells.insert(-1, new_code_cell(LONG))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, lab.folder / "keyboard.ipynb")
    return [cell.source for cell in notebook.cells]


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def holds(page: Any, index: int, mode: str = "command") -> None:
    """Wait until the keyboard is at a cell: what is pressed next is heard by the notebook."""
    page.wait_for_function(HOLDS_FOCUS, arg=[index, mode], timeout=20_000)


def shows(page: Any, index: int, text: str) -> None:
    page.wait_for_function(SHOWS, arg=[index, text], timeout=30_000)


def picture(page: Any, name: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"keyboard_{name}.png")


def ask(page: Any, index: int, source: str) -> None:
    """Insert a cell below the one the keyboard is at, type a question and ask it; the keyboard is then below that."""
    press(page, "b")
    holds(page, index)
    press(page, "Enter")
    holds(page, index, "edit")
    page.keyboard.insert_text(source)
    press(page, "Shift+Enter")


def test_the_first_hour_needs_no_mouse(lab: Lab, page: Any, quickstart: list[str]) -> None:
    lab.open(page, "keyboard.ipynb")
    page.wait_for_function("() => document.activeElement?.closest('.jp-Notebook') !== null")
    holds(page, 0)

    for index, source in enumerate(quickstart[:-1]):
        holds(page, index)
        press(page, "Shift+Enter")
        page.wait_for_function(RAN, arg=index, timeout=30_000)
        if source.strip() == "%model":  # opens the picker, which takes the keyboard; the same key gives it back
            page.wait_for_function(IN_PICKER, timeout=20_000)
            picture(page, "picker_in_the_way")
            press(page, "Shift+Enter")
    last = len(quickstart) - 1
    holds(page, last)

    ask(page, last + 1, "%%larik\nWhy is the sky blue?")
    shows(page, last + 1, "You asked: Why is the sky blue?")
    shows(page, last + 1, "scripted/demo · ")
    press(page, "Escape")
    holds(page, last + 2)
    picture(page, "asked")

    ask(page, last + 3, "%%larik --session long\nSay a lot.")
    page.locator(".larik-bar-stop").wait_for(state="visible", timeout=20_000)
    press(page, "Escape", "i", "i")
    shows(page, last + 3, "· interrupted")
    picture(page, "stopped")
    holds(page, last + 4)

    ask(page, last + 5, "%model")
    page.wait_for_function(IN_PICKER, timeout=20_000)
    page.keyboard.type("qwen coder")
    picture(page, "picker")
    press(page, "Enter")
    shows(page, last + 5, "scripted/demo → local/qwen2.5-coder-0.5b")
    holds(page, last + 6, "edit")  # where the cursor was before the picker took it
    press(page, "Escape")
    holds(page, last + 6)
    ask(page, last + 7, "%model")
    page.wait_for_function(IN_PICKER, timeout=20_000)
    press(page, "Escape")
    holds(page, last + 8, "edit")
