"""Wizard, picker and meter in a notebook whose kernel, or whose page, is no longer the one that opened them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from larik_nb.notebook.display import VIEW
from tests.browser.conftest import IS_READY, OUTPUTS, wait

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser
pytest.importorskip("anywidget", reason="the extra widgets is not installed")

PANELS = {1: ".larik-wizard", 2: ".larik-picker", 4: ".larik-meter"}
RESTART = """async () => {
  const context = window.jupyterapp.shell.currentWidget.sessionContext;
  await context.session.kernel.restart();
  await context.session.kernel.info;
}"""
SAVE = "async () => { await window.jupyterapp.shell.currentWidget.context.save(); }"
HAS_VIEW = "index => ({OUTPUTS})(index).some(output => '{VIEW}' in output.data)".replace("{OUTPUTS}", OUTPUTS).replace(
    "{VIEW}", VIEW
)
SHOWN = "index => window.jupyterapp.shell.currentWidget.content.widgets[index].outputArea.node"


def opened(lab: Lab, page: Any, name: str) -> str:
    """Open all three, none of them closed, and return the notebook's file."""
    settings = lab.folder / f"{name}.json"
    settings.write_text(
        json.dumps({"model": "scripted/demo", "pricing": {"scripted/demo": {"input": 3, "output": 15}}})
    )
    setup = f"import os\nos.environ['LARIK_CONFIG'] = {str(settings)!r}\n%load_ext larik_nb"
    file = lab.notebook(name, setup, "%routing", "%model", "%%larik\nhi", "%larik cost")
    lab.open(page, file)
    for index in range(5):
        lab.run(page, index)
    for panel in PANELS.values():
        page.wait_for_selector(panel, timeout=20_000)
    return file


def saved(lab: Lab, page: Any, file: str) -> Any:
    wait(page, SAVE)
    notebook = nbformat.read(lab.folder / file, as_version=4)
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    return notebook


def reads_as_text(lab: Lab, page: Any, file: str) -> None:
    """See the twins, and nothing of a widget, in the page and in the file."""
    for index, panel in PANELS.items():
        page.wait_for_function(f"index => !({HAS_VIEW})(index)", arg=index, timeout=15_000)
        page.wait_for_function(f"index => ({SHOWN})(index).querySelector('.jp-RenderedMarkdown')", arg=index)
        text = page.evaluate(f"index => ({SHOWN})(index).innerText", index)
        assert "model not found" not in text
        assert "Loading widget" not in text
        assert page.locator(panel).count() == 0
        (output,) = page.evaluate(OUTPUTS, index)
        assert set(output["data"]) == {"text/plain", "text/markdown"}
        assert output["metadata"] == {}
    assert page.evaluate(f"() => ({SHOWN})(1).querySelectorAll('table').length") == 1
    assert VIEW not in nbformat.writes(saved(lab, page, file))


def test_saved_open_and_read_after_a_restart(lab: Lab, page: Any) -> None:
    file = opened(lab, page, "panels_reopened")
    assert VIEW in nbformat.writes(saved(lab, page, file))
    page.goto("about:blank")
    page.context.request.post(_kernel(lab, page, file) + "/restart", headers={"Authorization": f"token {lab.token}"})

    lab.open(page, file)
    reads_as_text(lab, page, file)


def _kernel(lab: Lab, page: Any, file: str) -> str:
    """Return the address of the kernel of a notebook that no page has open."""
    sessions = page.context.request.get(f"{lab.url}/api/sessions", headers={"Authorization": f"token {lab.token}"})
    (kernel,) = (session["kernel"]["id"] for session in sessions.json() if session["path"] == file)
    return f"{lab.url}/api/kernels/{kernel}"


def test_restarted_under_the_page(lab: Lab, page: Any) -> None:
    file = opened(lab, page, "panels_restarted")
    wait(page, RESTART)
    reads_as_text(lab, page, file)


def test_shut_down_under_the_page_and_opened_without_a_kernel(lab: Lab, page: Any) -> None:
    file = opened(lab, page, "panels_shut_down")
    wait(page, "async () => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    reads_as_text(lab, page, file)


def test_a_page_loaded_anew_goes_on_and_sees_the_end(lab: Lab, page: Any) -> None:
    """The kernel lives: the panels do as well, and what a panel leaves stands in its place, not what it began with."""
    file = opened(lab, page, "panels_reloaded")
    saved(lab, page, file)
    page.reload()
    wait(page, IS_READY)
    for panel in PANELS.values():
        page.wait_for_selector(panel, timeout=20_000)

    page.locator(".larik-wizard tbody button").nth(1).focus()
    page.keyboard.press("w")
    page.keyboard.press("s")
    page.wait_for_selector(".larik-wizard", state="detached", timeout=15_000)
    (left,) = page.evaluate(OUTPUTS, 1)
    assert set(left["data"]) == {"text/plain", "text/markdown"}
    assert "the same as text: %routing " in left["data"]["text/plain"]
    page.locator(".larik-meter button", has_text="Close").click()
    page.wait_for_selector(".larik-meter", state="detached", timeout=15_000)
    assert "scripted/demo" in page.evaluate(f"() => ({SHOWN})(4).innerText")
    assert page.locator(".larik-picker").count() == 1
    assert "Loading widget" not in page.content()
    saved(lab, page, file)
