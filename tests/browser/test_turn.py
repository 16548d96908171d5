"""A turn as somebody sees it: text that streams under a bar, Stop, the next turn, a question's card, a long answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser._axe import serious_faults
from tests.browser.conftest import ARTIFACTS, OUTPUTS, wait

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser
pytest.importorskip("anywidget", reason="the extra widgets is not installed")

SETUP = """\
%load_ext larik_nb
import larik_nb
from larik_nb.providers.scripted import ScriptedProvider
words = "March has 31 % fewer orders because of *refunds*, at $5 to $9 each. "
answer = "\\n\\n".join([
    "## What the numbers say", words * 3, "$$\\nr = \\\\frac{orders}{visits}\\n$$",
    "```python\\n" + "total = orders.groupby('month').sum()\\n" * 8 + "```",
    "- one\\n- two\\n- three", "| month | orders |\\n| --- | --- |\\n| March | 310 |\\n| April | 455 |", words * 4,
] * 2)
magics = get_ipython().magics_manager.magics["cell"]["larik"].__self__
magics.session(None).model = ScriptedProvider([answer] * 9, delay_s=0.03)
"""
ASK = "%%larik\nWhy does revenue drop in March?"
START = """index => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.deselectAll();
  notebook.activeCellIndex = index;
  void window.jupyterapp.commands.execute('notebook:run-cell');
}"""
DONE = "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.executionCount !== null"
SHOWS = """([index, text]) =>
  window.jupyterapp.shell.currentWidget.content.widgets[index].outputArea.node.textContent.includes(text)"""
SAVE = "async () => { await window.jupyterapp.shell.currentWidget.context.save(); }"
THEME = "async name => { await window.jupyterapp.commands.execute('apputils:change-theme', { theme: name }); }"


def finished(page: Any, index: int) -> list[dict[str, Any]]:
    """Wait for a cell's end and return its outputs."""
    page.wait_for_function(DONE, arg=index, timeout=90_000)
    page.wait_for_function("() => !document.querySelector('.larik-bar')", timeout=10_000)
    outputs: list[dict[str, Any]] = page.evaluate(OUTPUTS, index)
    return outputs


def saved(lab: Lab, page: Any, file: str) -> str:
    wait(page, SAVE)
    return (lab.folder / file).read_text()


def picture(page: Any, name: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_a_turn_streams_is_stopped_and_the_next_one_works(lab: Lab, page: Any, theme: str) -> None:
    word = theme.split()[-1].lower()
    file = lab.notebook(f"turn_{word}", SETUP, ASK, "%%larik\nAnd in April?")
    lab.open(page, file)
    wait(page, THEME, theme)
    lab.run(page, 0)

    page.evaluate(START, 1)
    stop = page.locator(".larik-bar-stop")
    stop.wait_for(state="visible", timeout=20_000)
    page.wait_for_function(SHOWS, arg=[1, "fewer orders"], timeout=20_000)
    page.wait_for_function(SHOWS, arg=[1, "2 s"], timeout=20_000)
    picture(page, f"turn_{word}_streaming")
    assert "scripted/script" in page.locator(".larik-bar").text_content()
    assert serious_faults(page, ".larik-bar") == []
    stop.click()
    outputs = finished(page, 1)

    assert [output["output_type"] for output in outputs] == ["display_data", "error"]
    assert set(outputs[0]["data"]) == {"text/markdown", "text/plain"}
    assert "· interrupted" in outputs[0]["data"]["text/plain"]
    assert outputs[1]["ename"] == "Interrupted"
    picture(page, f"turn_{word}_stopped")

    page.evaluate(START, 2)
    (whole,) = finished(page, 2)
    assert set(whole["data"]) == {"text/markdown", "text/plain"}
    assert "interrupted" not in whole["data"]["text/plain"]
    assert page.locator(".larik").count() == 0
    picture(page, f"turn_{word}_finished")
    text = saved(lab, page, file)
    assert "widgets" not in json.loads(text)["metadata"]
    assert "widget-view" not in text


def test_a_key_is_typed_into_a_card_and_nowhere_else(lab: Lab, page: Any) -> None:
    key = "sk-typed-into-the-card-0123456789"
    file = lab.notebook("card", SETUP, "%larik keys add anthropic", "%larik keys")
    lab.open(page, file)
    lab.run(page, 0)

    page.evaluate(START, 1)
    field = page.locator(".larik-question input[type=password]")
    field.wait_for(state="visible", timeout=20_000)
    picture(page, "question_secret")
    assert serious_faults(page, ".larik-question") == []
    field.fill(key)
    field.press("Enter")
    outputs = finished(page, 1)

    texts = [output["data"]["text/plain"] for output in outputs]
    assert texts == ["Key for anthropic: given, not shown", "the key for anthropic is used until this process ends"]
    lab.run(page, 2)
    assert "typed into this notebook" in json.dumps(page.evaluate(OUTPUTS, 2))
    text = saved(lab, page, file)
    assert key not in text
    assert "widgets" not in json.loads(text)["metadata"]
    assert key not in page.content()


LONG = """\
paragraph = "Words that fill a line and more, with *emphasis* and `code` in it. " * 7 + "So $x^2 = y$ at $5."
long = "\\n\\n".join([paragraph, "```python\\n" + "x = 1\\n" * 30 + "```", "- a\\n- b\\n- c"] * 72)[:50_000]
provider = ScriptedProvider([long] * 3, delay_s=0.0002)
magics.session("long").model = provider
from IPython.display import Markdown
Markdown("$x$")  # the page loads what draws formulas, once and for whoever shows the first
"""
FORMULAS = """\
formula = "and $x_{i}^2 = \\\\frac{a}{b}$ fills a line and more, with *emphasis* and `code` in it as before. "
block = "$$\\n\\\\sum_{i=1}^n x_{i} = \\\\int_0^1 f(t) dt\\n$$"
long = "\\n\\n".join([formula * 5, block, "```python\\n" + "x = 1\\n" * 30 + "```", "- a\\n- $x_{i}$\\n- c"] * 70)
magics.session("long").model = ScriptedProvider([long] * 3, delay_s=0.0002)
Markdown("$x$")
"""
TYPESET = """([index, formulas]) => window.jupyterapp.shell.currentWidget.content.widgets[index].outputArea.node
  .querySelectorAll('mjx-container').length === formulas"""


@pytest.mark.parametrize(("answer", "formulas"), [(LONG, 71), (LONG + FORMULAS, 490)], ids=["few", "many"])
def test_a_long_answer_never_blocks_the_page(lab: Lab, page: Any, answer: str, formulas: int) -> None:
    """50,000 characters: no task of the page's main thread takes 200 ms, as far as the page itself can help it."""
    file = lab.notebook(f"long_{formulas}", SETUP, answer, *["%%larik --new --session long\nSay a lot."] * 2)
    lab.open(page, file)
    lab.run(page, 0)
    lab.run(page, 1)
    page.wait_for_selector("mjx-container", timeout=20_000)

    # What else the machine does can only make a task longer, so that the lesser of two is the page's own.
    longest = min(blocked(page, cell, formulas) for cell in (2, 3))

    assert longest < 200
    saved(lab, page, file)
    lab.open(page, file)
    page.wait_for_function(TYPESET, arg=[2, formulas], timeout=60_000)


def blocked(page: Any, cell: int, formulas: int) -> float:
    """Run a long answer and return the longest task of the page's main thread meanwhile, in ms."""
    browser = page.context.browser
    browser.start_tracing(page=page, categories=["toplevel"])
    page.evaluate(START, cell)
    (output,) = finished(page, cell)
    assert len(output["data"]["text/plain"]) > 50_000
    page.wait_for_function(TYPESET, arg=[cell, formulas], timeout=60_000)
    page.wait_for_timeout(1000)
    tasks = task_times(json.loads(browser.stop_tracing())["traceEvents"])
    print(f"tasks over 50 ms: {sum(task > 50 for task in tasks)}, the longest {max(tasks):.0f} ms")
    return max(tasks)


def task_times(events: list[dict[str, Any]]) -> list[float]:
    """Return how long each task of all pages' main threads took, in ms: as long as nobody there is heard."""
    named = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    tasks = [event for event in events if event["name"].endswith("RunTask") and "dur" in event]
    return [task["dur"] / 1000 for task in tasks if named.get((task["pid"], task["tid"])) == "CrRendererMain"]
