"""Where the wizard, the picker and the meter show as widgets, and where only their text does: in a real kernel."""

from __future__ import annotations

import pytest

from tests.notebook._kernel import Kernel
from tests.notebook.conftest import KEY

VIEW = "application/vnd.jupyter.widget-view+json"
LINES = ["%routing", "%model", "%larik cost"]

pytest.importorskip("anywidget", reason="the extra widgets is not installed")


@pytest.mark.parametrize("line", LINES)
def test_a_page_that_looks_on_gets_the_widget_beside_its_text(asked: Kernel, line: str) -> None:
    (shown,) = asked.run(line).saved
    (alone,) = asked.run(line, watched=False).saved

    assert set(shown["data"]) == {VIEW, "text/plain", "text/markdown"}
    assert VIEW not in alone["data"]
    assert shown["data"]["text/plain"] == alone["data"]["text/plain"]


@pytest.mark.parametrize("line", LINES)
def test_captured_or_without_widgets_only_the_text_is_there(asked: Kernel, line: str) -> None:
    captured = asked.run(
        f"with __import__('IPython').utils.capture.capture_output() as got:\n    get_ipython().run_line_magic(*{line!r}[1:].partition(' ')[::2])"
    )
    assert not captured.error
    assert asked.value(f"{VIEW!r} in got.outputs[0].data") == "False"

    asked.run(
        "import importlib.util as util\nfound = util.find_spec\nfrom larik_nb.notebook import widgets\nwidgets.find_spec = lambda name: None"
    )
    (alone,) = asked.run(line).saved
    asked.run("widgets.find_spec = found")
    assert VIEW not in alone["data"]


def test_what_is_open_holds_no_key(asked: Kernel) -> None:
    everything = str([asked.run(line).messages for line in LINES])
    assert "comm_open" in everything
    assert KEY not in everything


def test_loading_needs_no_widget_library(kernel: Kernel) -> None:
    fresh = "import subprocess, sys; print(subprocess.run([sys.executable, '-c', {!r}], capture_output=True, text=True).stdout)"
    code = (
        "from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance(); "
        "s.run_line_magic('load_ext', 'larik_nb'); s.run_line_magic('larik', 'cost'); "
        "import sys; print({'anywidget', 'ipywidgets', 'matplotlib'} & set(sys.modules))"
    )
    assert kernel.run(fresh.format(code)).stdout.strip().endswith("set()")


def test_a_save_as_text_shows_in_an_open_wizard(asked: Kernel) -> None:
    asked.run("%routing")
    panel = "list(__import__('larik_nb.notebook.widgets.wizard').notebook.widgets.wizard._OPEN)[-1]"
    assert asked.value(f"{panel}.wizard.theirs") == "[]"
    asked.run("%routing worker.max_turns=33")
    assert "role_options.worker.max_turns: (none) → 33" in asked.value(f"{panel}.view['theirs']")
    asked.run("%routing worker.max_turns=")
