"""JupyterLab's status bar shows what a kernel says on the comm `larik:status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser._axe import serious_faults

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser

ITEM = ".larik-ModelItem"
BUTTON = f"{ITEM} button"
SPEAK = """
from larik_nb.notebook.status import State, Status
status = Status(get_ipython())
status.say(State(model="scripted/demo", session_usd=0.21, budget_usd=2.0, running=True))
"""
WARN = 'status.say(State(model="scripted/demo", session_usd=1.7, budget_usd=2.0, level="warn"))'
STOP = 'status.say(State(model="scripted/demo", session_usd=2, at_least=True, budget_usd=2.0, level="stop"))'
SLOW = """
%load_ext larik_nb
from larik_nb.providers.scripted import ScriptedProvider
from larik_nb.types import Usage
magics = get_ipython().magics_manager.magics["cell"]["larik"].__self__
magics.session(None).model = ScriptedProvider(["word " * 40], usage=Usage(input=1, output=1), delay_s=0.2)
"""
START_CELL = """index => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.deselectAll();
  notebook.activeCellIndex = index;
  void window.jupyterapp.commands.execute('notebook:run-cell');
}"""


def _shows(page: Any, text: str, *, running: bool = False) -> None:
    page.wait_for_function(
        """([item, text, running]) => {
  const node = document.querySelector(item);
  return node?.textContent === text && node.dataset.running === running;
}""",
        arg=[ITEM, text, str(running).lower()],
        timeout=10_000,
    )


def test_the_item_follows_the_kernel(lab: Lab, page: Any) -> None:
    """Nothing shows before the kernel speaks; then model, cost and budget, each as last said."""
    lab.open(page, lab.notebook("follows", SPEAK, WARN, STOP))
    assert not page.locator(ITEM).is_visible()

    lab.run(page, 0)
    _shows(page, "demo · $0.21/2.00", running=True)
    assert page.locator(BUTTON).is_visible()
    assert page.locator(f"{ITEM}-dot").is_visible()
    assert page.locator(BUTTON).get_attribute("title") == (
        "Larik: scripted/demo\nSpent in this session: $0.21\nBudget: $2.00\nA turn is under way\nClick to choose a model"
    )

    lab.run(page, 1)
    _shows(page, "demo · $1.70/2.00 · near the budget")
    assert not page.locator(f"{ITEM}-dot").is_visible()
    warned = page.locator(BUTTON).evaluate("node => getComputedStyle(node).boxShadow")

    lab.run(page, 2)
    _shows(page, "demo · ≥ $2.00/2.00 · budget reached")
    assert page.locator(BUTTON).evaluate("node => getComputedStyle(node).boxShadow") not in ("none", warned)
    assert serious_faults(page, ITEM) == []


def test_the_dot_shows_while_a_turn_runs_and_a_command_stops_it(lab: Lab, page: Any) -> None:
    """A turn of eight seconds is seen to run, and to end when it is stopped."""
    lab.open(page, lab.notebook("turn", SLOW, "%%larik\nhi"))
    lab.run(page, 0)
    page.wait_for_function("() => !window.jupyterapp.commands.isEnabled('larik-nb:stop-turn')")

    page.evaluate(START_CELL, 1)
    _shows(page, "script · $0.00", running=True)
    page.wait_for_function("() => window.jupyterapp.commands.isEnabled('larik-nb:stop-turn')")
    page.evaluate("() => window.jupyterapp.commands.execute('larik-nb:stop-turn')")
    page.wait_for_function("item => document.querySelector(item).dataset.running === 'false'", arg=ITEM, timeout=5_000)
    assert "interrupted" in page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets[1].outputArea.node.textContent"
    )


def test_a_reloaded_page_asks_the_kernel(lab: Lab, page: Any) -> None:
    """The kernel lives on when the page is loaded anew, and what it said shows again."""
    file = lab.notebook("reloads", SPEAK)
    lab.open(page, file)
    lab.run(page, 0)
    _shows(page, "demo · $0.21/2.00", running=True)

    lab.open(page, file)
    _shows(page, "demo · $0.21/2.00", running=True)


def test_a_restarted_kernel_is_silent(lab: Lab, page: Any) -> None:
    """A new kernel knows nothing of the old session, so nothing shows."""
    lab.open(page, lab.notebook("restarts", SPEAK))
    lab.run(page, 0)
    _shows(page, "demo · $0.21/2.00", running=True)

    page.evaluate("() => void window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    _shows(page, "")
    assert not page.locator(ITEM).is_visible()
