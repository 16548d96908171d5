"""Notebook 7 takes the same extension: a turn, no status bar to miss, and help with an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import test_extension as parts
from tests.browser.conftest import RUN_CELL, wait

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytest.importorskip("notebook", reason="Notebook 7 is not installed")
pytestmark = pytest.mark.browser


def test_a_turn_and_a_fix_in_notebook_7(lab: Lab, page: Any) -> None:
    cells = (parts.LOAD + parts.STAND_IN, "%%larik\nWhat is {x}?", parts.FAILS)
    lab.open(page, lab.notebook("seven", *cells), at="notebooks")
    lab.run(page, 0)
    page.wait_for_function(f"() => ({parts.PIECES})([1, 'name']).length === 1")
    lab.run(page, 1)
    parts._says(page, 1, "scripted/demo · ")
    assert page.locator(".larik-ModelItem").count() == 0

    wait(page, RUN_CELL, 2)
    page.locator(parts.FIX).click()
    parts._says(page, 3, "fix of totl = 1")
    parts._picture(page, "notebook 7")


def test_a_model_is_chosen_in_notebook_7(lab: Lab, page: Any) -> None:
    """Without a status bar the palette has the list of models."""
    lab.open(page, lab.notebook("seven-models", parts.LOAD + parts.MODELS, "print(chosen)"), at="notebooks")
    lab.run(page, 0)
    page.evaluate("() => void window.jupyterapp.commands.execute('larik-nb:pick-model')")
    page.locator(f"{parts.PICKER}-option").first.wait_for()
    page.keyboard.type("big")
    page.keyboard.press("Enter")
    page.locator(parts.PICKER).wait_for(state="detached")

    assert "cloud/big" in str(lab.run(page, 1))
