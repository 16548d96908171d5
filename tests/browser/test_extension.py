"""What JupyterLab does for a kernel's Larik: help with errors, cells put in and changed, prompts as prose, the models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser._axe import serious_faults
from tests.browser.conftest import ARTIFACTS, RUN_CELL, wait

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser

LOAD = """
%load_ext larik_nb
import os
os.environ["LARIK_MODEL"] = "scripted/demo"
magics = get_ipython().magics_manager.magics["cell"]["larik"].__self__
magics.say_status(magics.session(None))
"""
STAND_IN = """
from larik_nb.notebook import verbs
def told(name):
    def run(magics, line):
        cell = line.removeprefix("--cell ")
        print(name, "of", magics.status.front.source_of(cell))
    return verbs.Verb(name, run, takes="--cell .*")
verbs.VERBS |= {"fix": told("fix"), "explain": told("explain")}
"""
FAILS = "totl = 1\nprint(total)"
SOURCES = "() => window.jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.sharedModel.getSource())"
CELL_ID = "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.id"
OUTPUT = "index => window.jupyterapp.shell.currentWidget.content.widgets[index].outputArea?.node.textContent ?? ''"
COMMAND = "([id, args]) => window.jupyterapp.commands.execute(id, args)"
ACTIVATE = """([index, mode]) => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.deselectAll();
  notebook.activeCellIndex = index;
  notebook.mode = mode;
  notebook.activate();
}"""
TYPE = "([index, source]) => window.jupyterapp.shell.currentWidget.content.widgets[index].model.sharedModel.setSource(source)"
FIX = ".larik-FixRow-button"
PICKER = ".larik-ModelPicker"


def _command(page: Any, name: str) -> None:
    wait(page, COMMAND, [name, {}])


def _sources(page: Any) -> list[str]:
    sources: list[str] = page.evaluate(SOURCES)
    return sources


def _says(page: Any, index: int, text: str) -> None:
    page.wait_for_function(f"([index, text]) => ({OUTPUT})(index).includes(text)", arg=[index, text], timeout=10_000)


def _picture(page: Any, name: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png")


def _theme(page: Any, name: str) -> None:
    wait(page, COMMAND, ["apputils:change-theme", {"theme": f"JupyterLab {name}"}])
    page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=str(name == "Light").lower())


# -- errors -----------------------------------------------------------------------------------------------------------
def test_an_error_can_be_fixed_by_one_click(lab: Lab, page: Any) -> None:
    """The cell below asks for it, about what stands in the cell now and not what ran; asked again it is the same cell."""
    lab.open(page, lab.notebook("fix", LOAD + STAND_IN, FAILS, "print('fine')"))
    lab.run(page, 0)
    wait(page, RUN_CELL, 1)
    lab.run(page, 2)
    assert page.locator(FIX).count() == 1
    assert page.locator(FIX).is_visible()
    page.evaluate(TYPE, [1, FAILS + "  # typed since"])
    _picture(page, "fix button")
    assert serious_faults(page, ".larik-FixRow") == []

    page.locator(FIX).click()
    cell = page.evaluate(CELL_ID, 1)
    _says(page, 2, "fix of totl = 1\nprint(total)  # typed since")
    assert _sources(page)[1:] == [FAILS + "  # typed since", f"%larik fix --cell {cell}", "print('fine')"]

    page.locator(FIX).click()
    _says(page, 2, "fix of")
    assert len(_sources(page)) == 4


MENDS = """
from larik_nb.providers.scripted import ScriptedProvider
answer = "The name is misspelt.\\n\\n```python\\ntotal = 1\\nprint(total)\\n```"
magics.session(None).model = ScriptedProvider([answer])
"""


def _ask_to_fix(lab: Lab, page: Any, name: str) -> None:
    """Have a fix proposed, and the question asked whether to apply it."""
    lab.open(page, lab.notebook(name, LOAD + MENDS, FAILS))
    lab.run(page, 0)
    wait(page, RUN_CELL, 1)
    page.locator(FIX).click(no_wait_after=True)
    page.locator("button.larik-main", has_text="Yes").wait_for()


def test_a_fix_is_shown_asked_about_and_put_into_the_cell(lab: Lab, page: Any) -> None:
    """The whole way: the button, the answer with what would change, Yes, the cell; it can be undone."""
    _ask_to_fix(lab, page, "whole")
    _says(page, 2, "The name is misspelt.")
    _picture(page, "fix asked")
    page.locator("button.larik-main", has_text="Yes").click()
    page.wait_for_function(f"([text]) => ({SOURCES})()[1] === text", arg=["total = 1\nprint(total)"])
    _says(page, 2, "applied")

    page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets[1].model.sharedModel.undo()")
    assert _sources(page)[1] == FAILS


def test_a_fix_is_not_put_over_what_was_typed_meanwhile(lab: Lab, page: Any) -> None:
    _ask_to_fix(lab, page, "meanwhile")
    page.evaluate(TYPE, [1, FAILS + "  # mine"])
    page.locator("button.larik-main", has_text="Yes").click()

    _says(page, 2, "the cell was not changed: the cell was changed meanwhile")
    assert _sources(page)[1] == FAILS + "  # mine"


def test_there_is_no_button_without_our_kernel_side_nor_on_a_question_that_failed(lab: Lab, page: Any) -> None:
    """It shows as soon as the extension is loaded, and goes when the error does."""
    lab.open(page, lab.notebook("quiet", "1 / 0", LOAD, "%%larik -m nope/nope\nhi", "print('mended')"))
    wait(page, RUN_CELL, 0)
    _says(page, 0, "ZeroDivisionError")
    assert not page.locator(FIX).is_visible()

    lab.run(page, 1)
    page.locator(FIX).wait_for(state="visible")
    wait(page, RUN_CELL, 2)
    _says(page, 2, "nope")
    assert page.locator(f"{FIX} >> visible=true").count() == 1

    page.evaluate(TYPE, [0, "1 / 1"])
    lab.run(page, 0)
    page.locator(FIX).first.wait_for(state="hidden")


def test_a_cell_is_explained_from_its_menu(lab: Lab, page: Any) -> None:
    """The context menu of a code cell has it; the question goes below."""
    lab.open(page, lab.notebook("explain", LOAD + STAND_IN, "sum(range(10))"))
    lab.run(page, 0)
    page.locator(".jp-CodeCell .jp-InputPrompt").nth(1).click(button="right")
    _picture(page, "cell menu")
    page.locator(".lm-Menu-itemLabel", has_text="Explain with Larik").click()

    _says(page, 2, "explain of sum(range(10))")
    assert _sources(page)[2].startswith("%larik explain --cell ")


# -- the document -----------------------------------------------------------------------------------------------------
INSERT = """
from larik_nb.notebook.status import NewCell
edit = magics.status.front.insert([NewCell(source="x = 1"), NewCell(kind="markdown", source="# why")])
print(await edit)
"""


def test_cells_go_below_the_one_that_runs_and_one_undo_takes_them_back(lab: Lab, page: Any) -> None:
    lab.open(page, lab.notebook("insert", LOAD, INSERT, "mine = 1"))
    lab.run(page, 0)
    before = _sources(page)
    lab.run(page, 1)
    page.wait_for_function(f"() => ({SOURCES})().length === 5")

    assert _sources(page) == [*before[:2], "x = 1", "# why", "mine = 1"]
    kinds = page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.type)")
    assert kinds == ["code", "code", "code", "markdown", "code"]
    _says(page, 1, "Outcome(ok=True, reason='')")
    _command(page, "notebook:undo-cell-action")
    assert _sources(page) == before


def _replace(cell: str, source: str) -> str:
    return f"edit = magics.status.front.replace({cell!r}, {source!r}, based_on='y = 1')\nprint(await edit)"


def test_a_cell_is_changed_only_while_it_reads_as_it_did(lab: Lab, page: Any) -> None:
    """Unchanged, it is replaced, by one undo back again; changed, moved or gone, nothing is written over."""
    lab.open(page, lab.notebook("replace", LOAD, "y = 1", "ask", "ask"))
    lab.run(page, 0)
    cell = page.evaluate(CELL_ID, 1)
    page.evaluate(TYPE, [2, _replace(cell, "y = 2")])
    lab.run(page, 2)
    _says(page, 2, "Outcome(ok=True, reason='')")
    assert _sources(page)[1] == "y = 2"
    page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets[1].model.sharedModel.undo()")
    assert _sources(page)[1] == "y = 1"

    page.evaluate(TYPE, [1, "y = 1  # mine"])
    lab.run(page, 2)
    _says(page, 2, "Outcome(ok=False, reason='the cell was changed meanwhile')")
    assert _sources(page)[1] == "y = 1  # mine"

    page.evaluate("() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.deleteCell(1)")
    lab.run(page, 1)
    _says(page, 1, "Outcome(ok=False, reason='the cell is gone')")


def test_a_second_window_puts_nothing_in_twice(lab: Lab, page: Any, browser: Any) -> None:
    """Both hear the kernel; the one whose cell ran does it."""
    file = lab.notebook("twice", LOAD, INSERT)
    lab.open(page, file)
    lab.run(page, 0)
    other = browser.new_context().new_page()
    lab.open(other, file)
    other.wait_for_function("() => document.querySelector('.larik-ModelItem').dataset.running === 'false'")
    lab.run(page, 1)
    _says(page, 1, "Outcome(ok=True, reason='')")

    assert len(_sources(page)) == 4
    assert len(_sources(other)) == 2
    other.context.close()


# -- prompts ----------------------------------------------------------------------------------------------------------
PROMPT = """%%larik -m fast --effort=low
# What is wrong?
Look at {df.head[0]} and @data/sales.csv, it's **urgent** - see `f(x)`:
```python
total = {df}
```
{"a": 1} is no name, nor is {{df}}, nor me@home.org"""
CODE = "import os  # {df}\n%larik what is {df}, isn't it?\nname = 'x'"
PIECES = """([index, kind]) => [...window.jupyterapp.shell.currentWidget.content.widgets[index].editor.host
  .querySelectorAll(`.larik-prose-${kind}`)].map(node => node.textContent)"""


def _pieces(page: Any, index: int, kind: str) -> list[str]:
    pieces: list[str] = page.evaluate(PIECES, [index, kind])
    return pieces


def test_prompts_read_as_prose_and_code_as_code(lab: Lab, page: Any) -> None:
    lab.open(page, lab.notebook("prose", PROMPT, CODE, "print('%%larik {df}')"))
    page.wait_for_function(f"() => ({PIECES})([0, 'name']).length > 0")
    _picture(page, "prose")

    assert _pieces(page, 0, "magic") == ["%%larik"]
    assert _pieces(page, 0, "option") == ["-m", "--effort"]
    assert _pieces(page, 0, "value") == ["fast", "low"]
    assert _pieces(page, 0, "name") == ["{df.head[0]}"]
    assert _pieces(page, 0, "file") == ["@data/sales.csv"]
    assert _pieces(page, 0, "strong") == ["**urgent**"]
    assert _pieces(page, 0, "code") == ["`f(x)`", "total = {df}"]
    assert "".join(_pieces(page, 0, "heading")) == " What is wrong?"

    assert _pieces(page, 1, "magic") == ["%larik"]
    assert _pieces(page, 1, "name") == ["{df}"]
    assert page.evaluate(PIECES.replace(".larik-prose-${kind}", "[class*=larik-]"), [2, ""]) == []
    weight = "node => getComputedStyle(node).fontWeight"
    assert page.locator(".larik-prose-strong").evaluate(weight) == "700"
    plain = "() => getComputedStyle(document.querySelector('.larik-line')).color"
    inner = """() => [...document.querySelectorAll('.larik-line span:not([class*=larik-prose])')]
  .map(node => getComputedStyle(node).color)"""
    assert set(page.evaluate(inner)) <= {page.evaluate(plain)}


def test_a_cell_turns_to_prose_and_back_while_it_is_typed(lab: Lab, page: Any) -> None:
    lab.open(page, lab.notebook("typed", "for x in [1]: y = 'a'"))
    page.evaluate(TYPE, [0, "%%larik\nfor {x}"])
    page.wait_for_function(f"() => ({PIECES})([0, 'name']).length === 1")
    page.evaluate(TYPE, [0, "for x in [1]: y = 'a'"])
    page.wait_for_function(f"() => ({PIECES})([0, 'name']).length === 0")
    colours = """() => new Set([...document.querySelectorAll('.jp-CodeCell .cm-line span')]
  .map(node => getComputedStyle(node).color)).size"""
    assert page.evaluate(colours) > 1


def test_dark_theme(lab: Lab, page: Any) -> None:
    """All is readable on dark ground too."""
    lab.open(page, lab.notebook("dark", LOAD, PROMPT, FAILS))
    _theme(page, "Dark")
    lab.run(page, 0)
    wait(page, RUN_CELL, 2)
    page.locator(FIX).wait_for(state="visible")
    page.wait_for_function(f"() => ({PIECES})([1, 'name']).length > 0")

    assert serious_faults(page, ".larik-FixRow") == []
    assert serious_faults(page, ".larik-ModelItem") == []
    assert serious_faults(page, ".larik-prose") == []
    _picture(page, "dark")
    _theme(page, "Light")  # or the tests that follow would be in the dark


SAVE = """async raw => {
  const { settings } = window.jupyterapp.serviceManager;
  await settings.save('larik-nb:settings', raw);
}"""


def test_the_settings_turn_each_part_off(lab: Lab, page: Any) -> None:
    file = lab.notebook("settings", LOAD, FAILS, PROMPT)
    lab.open(page, file)
    try:
        wait(page, SAVE, '{"statusItem": false, "highlighting": false, "buttons": false}')
        lab.open(page, file)
        lab.run(page, 0)
        wait(page, RUN_CELL, 1)
        page.wait_for_function("() => window.jupyterapp.commands.isEnabled('larik-nb:fix-cell')")
        assert page.locator(FIX).is_hidden()
        assert page.locator(".larik-ModelItem").is_hidden()
        assert _pieces(page, 2, "name") == []
    finally:
        wait(page, SAVE, "{}")
    lab.open(page, file)
    wait(page, RUN_CELL, 1)
    page.locator(FIX).wait_for(state="visible")
    assert page.locator(".larik-ModelItem").is_visible()


# -- the models -------------------------------------------------------------------------------------------------------
MODELS = """
async def rows(data):
    names = ["scripted/demo", "cloud/big", "cloud/small", "local/tiny"]
    known = dict(window="1M", price="$2/$10", abilities=["vision", "tools"], state="ok", ready=True)
    models = [known | {"spec": name} for name in names]
    models[3] |= {"price": "free (local)", "window": "33k", "abilities": []}
    yield {"type": "models", "models": models, "problem": "gemini: no key", "asking": False}
chosen = []
async def choose(data):
    chosen.append(data["spec"])
    magics.chosen = "scripted/" + data["spec"].partition("/")[2]
    magics.say_status(magics.session(None))
    yield {"type": "chosen", "ok": True, "text": magics.chosen}
magics.status._answers = {"models": rows, "choose": choose}
"""


def _active(page: Any) -> str:
    text: str = page.locator(f"{PICKER} [aria-selected=true] .larik-ModelPicker-spec").text_content()
    return text


def test_a_model_is_chosen_by_keys_alone(lab: Lab, page: Any) -> None:
    """From the palette to the next turn's model without a pointer; the cells stay as they are."""
    lab.open(page, lab.notebook("picker", LOAD + MODELS, "print(chosen)"))
    lab.run(page, 0)
    before = _sources(page)
    page.evaluate(ACTIVATE, [1, "command"])
    page.keyboard.press("Control+Shift+C")
    page.locator(".lm-CommandPalette-input").fill("Larik Choose Model")
    page.keyboard.press("Enter")
    page.locator(f"{PICKER}-option").first.wait_for()
    assert page.evaluate("() => document.activeElement.getAttribute('role')") == "combobox"
    assert _active(page) == "scripted/demo"
    _picture(page, "picker")
    assert serious_faults(page, PICKER) == []

    page.keyboard.type("cloud")
    assert _active(page) == "cloud/big"
    assert page.locator(f"{PICKER}-note").text_content() == "2 models · gemini: no key"
    page.keyboard.press("ArrowDown")
    assert _active(page) == "cloud/small"
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.larik-ModelItem').textContent.startsWith('small ')")
    assert page.locator(PICKER).count() == 0
    assert "cloud/small" in json.dumps(lab.run(page, 1))
    assert _sources(page) == before


def test_escape_leaves_the_model_as_it_is(lab: Lab, page: Any) -> None:
    lab.open(page, lab.notebook("escape", LOAD + MODELS))
    lab.run(page, 0)
    page.locator(".larik-ModelItem button").click()
    page.locator(f"{PICKER}-option").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    page.locator(PICKER).wait_for(state="detached")

    assert page.locator(".larik-ModelItem").text_content() == "demo · $0.00"


def test_the_real_list_of_models_and_a_choice_that_cannot_be(lab: Lab, page: Any) -> None:
    """The kernel's own answer: the models of what is set up, or one line that says why there are none."""
    lab.open(page, lab.notebook("real", LOAD, "magics.status.open_picker()"))
    lab.run(page, 0)
    lab.run(page, 1)
    page.locator(PICKER).wait_for()
    page.wait_for_function(
        "picker => !document.querySelector(`${picker}-note`).textContent.startsWith('Asking')", arg=PICKER
    )

    assert page.locator(f"{PICKER}-option").count() > 0 or "provider" in page.locator(f"{PICKER}-note").text_content()


# -- keys -------------------------------------------------------------------------------------------------------------
def test_help_below_an_error_is_reached_by_keys(lab: Lab, page: Any) -> None:
    lab.open(page, lab.notebook("keys", LOAD + STAND_IN, FAILS))
    lab.run(page, 0)
    wait(page, RUN_CELL, 1)
    page.locator(FIX).wait_for(state="visible")
    page.evaluate(ACTIVATE, [1, "command"])
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("fix => document.activeElement.matches(fix)", FIX):
            break
    _picture(page, "fix button focused")
    page.keyboard.press("Enter")
    _says(page, 2, "fix of totl = 1")


def test_a_question_is_inserted_ready_to_type(lab: Lab, page: Any) -> None:
    """Even before the kernel side is loaded: the cell is what it needs."""
    lab.open(page, lab.notebook("question", "x = 1"))
    page.evaluate(ACTIVATE, [0, "command"])
    _command(page, "larik-nb:insert-cell")
    page.keyboard.type("why?")
    page.wait_for_function(f"() => ({SOURCES})()[1] === '%%larik\\nwhy?'")


def test_the_palette_names_all_commands(lab: Lab, page: Any) -> None:
    lab.open(page, lab.notebook("palette", LOAD))
    lab.run(page, 0)
    labels = page.evaluate(
        """() => window.jupyterapp.commands.listCommands().filter(id => id.startsWith('larik-nb:'))
  .map(id => window.jupyterapp.commands.label(id))"""
    )

    assert sorted(labels) == sorted(
        [
            "Choose Model…",
            "Edit Routing",
            "Explain with Larik",
            "Fix with Larik",
            "Insert Question Below",
            "Show Cost",
            "Stop the Turn",
        ]
    )
