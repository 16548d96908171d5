"""A turn that is disturbed: stopped twice, its page loaded anew or open twice, its kernel restarted. Control comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import IS_OPEN, OUTPUTS, RUN_CELL, wait
from tests.browser.test_turn import ASK, SETUP, SHOWS, START, finished, saved

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser
pytest.importorskip("anywidget", reason="the extra widgets is not installed")

HISTORY = "print(len(magics.session(None).history), [turn.stop_reason for turn in magics.session(None).turns])"
KEY_ASKED = "%larik keys add anthropic"
IS_LOADED = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  await app.shell.currentWidget.context.ready;
  await app.shell.currentWidget.sessionContext.ready;
}"""
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"
INTERRUPT = f"async () => {{ await {KERNEL}.interrupt(); }}"
RESTART = f"async () => {{ await {KERNEL}.restart(); await {KERNEL}.info; }}"
IS_IDLE = f"() => {KERNEL}.status === 'idle'"
STOP = ".larik-bar-stop"


def opened(lab: Lab, page: Any, name: str, *cells: str) -> str:
    file = lab.notebook(name, SETUP, *cells)
    lab.open(page, file)
    lab.run(page, 0)
    return file


def under_way(page: Any, index: int = 1) -> None:
    """Start a turn and wait until it has a bar and some text."""
    page.evaluate(START, index)
    page.locator(STOP).wait_for(state="visible", timeout=20_000)
    page.wait_for_function(SHOWS, arg=[index, "fewer orders"], timeout=20_000)


def reloaded(page: Any) -> None:
    page.reload()
    page.wait_for_function(IS_OPEN)
    wait(page, IS_LOADED)


def words(page: Any, index: int) -> str:
    """Run a cell that prints, and return what it printed."""
    wait(page, RUN_CELL, index)
    page.wait_for_function(f"index => ({OUTPUTS})(index).length > 0", arg=index, timeout=20_000)
    (output,) = page.evaluate(OUTPUTS, index)
    assert output["output_type"] == "stream", output
    return str(output["text"])


def ends_well(page: Any, index: int) -> None:
    """Ask in a cell and wait for the whole answer: one output, not interrupted."""
    page.evaluate(START, index)
    (whole,) = finished(page, index)
    assert "interrupted" not in whole["data"]["text/plain"]


def test_stop_pressed_twice_and_an_interrupt_with_it(lab: Lab, page: Any) -> None:
    """They stop one turn once, and nothing that runs after it."""
    opened(lab, page, "stopped_twice", ASK, "x = 1\nprint(x)", "%%larik\nAnd in April?", HISTORY)
    under_way(page)
    wait(
        page,
        f"""async stop => {{
  const button = document.querySelector(stop);
  button.click();
  button.click();
  button.disabled = false;
  button.click();
  await {KERNEL}.interrupt();
  await {KERNEL}.interrupt();
}}""",
        STOP,
    )
    outputs = finished(page, 1)

    assert [output["output_type"] for output in outputs] == ["display_data", "error"]
    assert outputs[1]["ename"] == "Interrupted"
    assert outputs[0]["data"]["text/plain"].count("What the numbers say") == 1
    assert words(page, 2) == "1\n"
    ends_well(page, 3)
    assert words(page, 4) == "4 ['interrupted', 'end_turn']\n"


def test_the_page_is_loaded_anew_while_a_turn_runs(lab: Lab, page: Any) -> None:
    """The turn goes on to its end in the kernel, and the new page goes on after it."""
    file = opened(lab, page, "reloaded_midway", ASK, "%%larik\nAnd in April?", HISTORY)
    under_way(page)
    saved(lab, page, file)
    reloaded(page)
    page.wait_for_function(IS_IDLE, timeout=60_000)

    ends_well(page, 2)
    assert words(page, 3) == "4 ['end_turn', 'end_turn']\n"
    assert page.locator(".larik-bar").count() == 0
    assert "Loading widget" not in page.content()
    assert "model not found" not in page.content()
    assert "widget-view" not in saved(lab, page, file)


def test_the_page_is_loaded_anew_while_a_question_waits(lab: Lab, page: Any) -> None:
    """Its card is there again, and its answer is heard."""
    file = opened(lab, page, "reloaded_question", KEY_ASKED, "print('went on')")
    page.evaluate(START, 1)
    page.locator(".larik-question input").wait_for(state="visible", timeout=20_000)
    saved(lab, page, file)
    reloaded(page)

    field = page.locator(".larik-question input")
    field.wait_for(state="visible", timeout=20_000)
    field.fill("sk-typed-after-the-reload-0123456789")
    field.press("Enter")
    page.wait_for_selector(".larik-question", state="detached", timeout=20_000)
    assert words(page, 2) == "went on\n"
    text = saved(lab, page, file)
    assert "widget-view" not in text
    assert "sk-typed" not in text


def test_a_question_nobody_sees_any_more_can_be_interrupted(lab: Lab, page: Any) -> None:
    opened(lab, page, "lost_question", KEY_ASKED, "print('went on')")
    page.evaluate(START, 1)
    page.locator(".larik-question input").wait_for(state="visible", timeout=20_000)
    reloaded(page)  # not saved: the new page does not have the card
    wait(page, INTERRUPT)
    page.wait_for_function(IS_IDLE, timeout=20_000)
    assert words(page, 2) == "went on\n"


def test_the_kernel_is_restarted_while_a_turn_runs(lab: Lab, page: Any) -> None:
    """What had come stays to be read, without a bar over it, and the next turn works."""
    file = opened(lab, page, "restarted_midway", ASK, "%%larik\nAnd in April?")
    under_way(page)
    wait(page, RESTART)
    page.wait_for_function("bar => !document.querySelector(bar)", arg=".larik-bar", timeout=20_000)
    outputs = page.evaluate(OUTPUTS, 1)
    assert "".join(str(output["data"]) for output in outputs).count("What the numbers say") == 1
    assert "widget-view" not in saved(lab, page, file)

    lab.run(page, 0)
    ends_well(page, 2)


def test_two_pages_on_one_kernel(lab: Lab, page: Any) -> None:
    """The second page comes while a turn runs: the first one's turn ends as ever, and the second asks the next."""
    file = opened(lab, page, "two_pages", ASK, "%%larik\nAnd in April?", HISTORY)
    under_way(page)
    saved(lab, page, file)
    other = page.context.new_page()
    other.goto(f"{lab.url}/lab/workspaces/other/tree/{file}?token={lab.token}&reset")
    other.wait_for_function(IS_OPEN)
    wait(other, IS_LOADED)
    (whole,) = finished(page, 1)
    assert whole["data"]["text/plain"].count("What the numbers say") == 2  # the script says it twice
    assert "interrupted" not in whole["data"]["text/plain"]

    other.wait_for_function(IS_IDLE, timeout=30_000)
    ends_well(other, 2)
    assert words(other, 3) == "4 ['end_turn', 'end_turn']\n"
    assert other.locator(".larik-bar").count() == 0
    assert "model not found" not in other.content()
    assert page.evaluate(OUTPUTS, 2) == []
