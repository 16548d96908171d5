"""JupyterLab's status bar shows what a kernel says on the comm `larik:status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser

ITEM = ".larik-ModelItem"
SPEAK = """
from comm import create_comm
state = dict(version=1, model="scripted/demo", session_usd=0.21, budget_usd=2.0, warn_usd=1.6, running=True)
status = create_comm(target_name="larik:status", data=state)
status.on_msg(lambda message: status.send(state))
"""
FINISH = "state |= dict(session_usd=1.7, running=False); status.send(state)"


def _shows(page: Any, text: str) -> None:
    page.wait_for_function(
        "([item, text]) => document.querySelector(item)?.textContent === text", arg=[ITEM, text], timeout=10_000
    )


def test_the_item_follows_the_kernel(lab: Lab, page: Any) -> None:
    """Nothing shows before the kernel speaks; then model, cost and budget, each as last said."""
    lab.open(page, lab.notebook("follows", SPEAK, FINISH))
    assert not page.locator(ITEM).is_visible()

    lab.run(page, 0)
    _shows(page, "● demo · $0.21/2.00")
    assert page.locator(ITEM).is_visible()
    assert page.locator(ITEM).get_attribute("title") == (
        "Larik: scripted/demo\nSpent in this session: $0.21\nBudget: $2.00\nA turn is under way"
    )

    lab.run(page, 1)
    _shows(page, "demo · $1.70/2.00 · near the budget")


def test_a_reloaded_page_asks_the_kernel(lab: Lab, page: Any) -> None:
    """The kernel lives on when the page is loaded anew, and what it said shows again."""
    file = lab.notebook("reloads", SPEAK)
    lab.open(page, file)
    lab.run(page, 0)
    _shows(page, "● demo · $0.21/2.00")

    lab.open(page, file)
    _shows(page, "● demo · $0.21/2.00")


def test_a_restarted_kernel_is_silent(lab: Lab, page: Any) -> None:
    """A new kernel knows nothing of the old session, so nothing shows."""
    lab.open(page, lab.notebook("restarts", SPEAK))
    lab.run(page, 0)
    _shows(page, "● demo · $0.21/2.00")

    page.evaluate("() => void window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    _shows(page, "")
    assert not page.locator(ITEM).is_visible()
