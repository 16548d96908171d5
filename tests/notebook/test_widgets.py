"""What all widgets share: the handshake, the twin beside them, and an end that leaves no widget."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("anywidget", reason="the extra widgets is not installed")

from traitlets import Unicode

from larik_nb.notebook.display import VIEW
from larik_nb.notebook.widgets import _assets
from larik_nb.notebook.widgets._base import Panel


class Screen:
    def __init__(self) -> None:
        self.outputs: dict[str | None, dict[str, Any]] = {}

    def show(self, bundle: dict[str, Any], id: str | None = None) -> None:
        assert id not in self.outputs
        self.outputs[id] = bundle

    def update(self, bundle: dict[str, Any], id: str) -> None:
        assert id in self.outputs
        self.outputs[id] = bundle

    def clear(self) -> None:
        raise AssertionError("nobody asked for that")

    def write(self, text: str) -> None:
        raise AssertionError("nobody asked for that")


class Note(Panel):
    _esm = "export default panel(() => {});"
    text = Unicode("").tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        self.got: list[dict[str, Any]] = []
        super().__init__(**traits)

    def twin(self) -> dict[str, str]:
        return {"text/plain": self.text, "text/markdown": f"*{self.text}*"}

    def heard(self, message: dict[str, Any]) -> None:
        self.got.append(message)


def widgets() -> set[str]:
    from ipywidgets.widgets import widget

    return set(widget._instances)


def test_it_shows_beside_its_twin_and_leaves_the_twin_alone() -> None:
    before, screen = widgets(), Screen()
    note = Note(text="hello")

    note.show(screen, "a")
    assert screen.outputs["a"][VIEW]["model_id"] == note.model_id
    assert screen.outputs["a"]["text/markdown"] == "*hello*"
    note.text = "done"
    note.close()
    note.close()

    assert screen.outputs == {"a": {"text/plain": "done", "text/markdown": "*done*"}}
    assert widgets() == before
    assert not note.is_open


def test_it_takes_the_place_of_an_output_and_leaves_it_when_dropped() -> None:
    before, screen = widgets(), Screen()
    screen.show({"text/plain": "waiting"}, "a")
    note = Note(text="hello")

    note.show(screen, "a", update=True)
    shown = dict(screen.outputs)
    note.drop()

    assert set(shown["a"]) == {"text/plain", "text/markdown", VIEW}
    assert screen.outputs == shown
    assert widgets() == before


def test_ready_makes_it_live_and_other_messages_are_heard() -> None:
    note = Note()
    for content in ({"type": "ready"}, {"type": "stop"}, "nonsense"):
        note._handle_custom_msg(content, [])

    assert note.live
    assert note.became_live.is_set()
    assert note.got == [{"type": "stop"}]
    note.drop()


def test_ready_that_comes_after_the_end_changes_nothing() -> None:
    note = Note()
    note.drop()
    note._handle_custom_msg({"type": "ready"}, [])

    assert not note.live


FETCHES = re.compile(
    r"\bimport\b|\brequire\(|\bfetch\(|https?://(?!www\.w3\.org/)|innerHTML|outerHTML|insertAdjacentHTML|\beval\(|url\("
)
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, which nobody fetches
PARTS = ("common", "list")
NAMES = sorted(p.name.removesuffix(".js") for p in _assets._STATIC.iterdir() if p.name.endswith(".js"))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PARTS])
def test_a_widgets_module_is_whole_fetches_nothing_and_parses_no_markup(name: str) -> None:
    text = _assets.esm(name)

    assert len(re.findall(r"^export default ", text, re.MULTILINE)) == 1
    assert not FETCHES.search(text.replace(NAMESPACE, ""))


def test_colours_are_the_themes() -> None:
    for path in _assets._STATIC.iterdir():
        if path.name.endswith(".css"):
            assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(", path.read_text())


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "update",
        {"method": "update", "state": None},
        {"method": "update", "state": {"live": "x"}},
        {"method": "update", "state": {"text": "not what was asked", "live": True}},
        {"method": "custom", "content": ["ready"]},
    ],
)
def test_a_page_cannot_set_what_it_is_shown(data: Any, capsys: pytest.CaptureFixture[str]) -> None:
    note = Note(text="as it was")
    note._handle_msg({"content": {"data": data}, "buffers": []})

    assert (note.text, note.live) == ("as it was", False)
    assert capsys.readouterr() == ("", "")
    note.drop()
