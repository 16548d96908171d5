"""The script behind `make demo` prints answers while they are being written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from scripts.run_notebook import Printer

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "run_notebook.py"


def _display(text: str, name: str | None = "d1", kind: str = "update_display_data") -> dict[str, object]:
    transient = {} if name is None else {"display_id": name}
    return {"msg_type": kind, "content": {"data": {"text/plain": text}, "transient": transient}}


def _stream(text: str) -> dict[str, object]:
    return {"msg_type": "stream", "content": {"name": "stdout", "text": text}}


@pytest.mark.parametrize(
    ("messages", "printed"),
    [
        ([_display("Hel"), _display("Hello"), _display("Hello")], "Hello\n"),
        ([_display("one\ntwo ▌"), _display("one\ntwo\nthree")], "one\ntwo ▌\ntwo\nthree\n"),
        ([_display("a", "d1"), _display("b", "d2"), _display("ab", "d1")], "a\nb\nb\n"),
        ([_stream("x"), _stream("y\n"), _display("shown", None, "display_data")], "xy\nshown\n"),
        ([_display("a"), _stream("note\n"), _display("a b")], "a\nnote\n b\n"),
    ],
    ids=["grows", "is rewritten", "two at once", "plain outputs", "a line between"],
)
def test_only_what_is_new_is_printed(
    messages: list[dict[str, object]], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A display that is updated reads as one text that grows."""
    printer = Printer()
    for message in messages:
        printer.message(message)
    printer.end()

    assert capsys.readouterr().out == printed


def _frame(markdown: str, name: str) -> dict[str, object]:
    return {
        "msg_type": "display_data",
        "content": {"data": {"text/markdown": markdown}, "transient": {"display_id": name}},
    }


def _bar(markdown: str, name: str) -> dict[str, object]:
    data = {"text/plain": markdown, "text/markdown": markdown, "application/vnd.jupyter.widget-view+json": {}}
    return {"msg_type": "update_display_data", "content": {"data": data, "transient": {"display_id": name}}}


def _final(text: str) -> dict[str, object]:
    return _display(text, None, "display_data")


@pytest.mark.parametrize(
    ("messages", "printed"),
    [
        ([_frame("Hel", "a"), _frame("Hello", "a"), _final("Hello\n\nm · 1 s")], "Hello\n\nm · 1 s\n"),
        ([_frame("One.\n\n", "a"), _frame("Two", "b"), _final("One.\n\nTwo\n\nm")], "One.\n\nTwo\n\nm\n"),
        (
            [_frame("```\nx\n```", "a"), _frame("```\nx\ny\n```", "a"), _final("```\nx\ny\n```\n\nm")],
            "```\nx\ny\n```\n\nm\n",
        ),
        ([_frame("<small>*m · 0 s*</small>", "a"), _frame("Hi", "a"), _final("Hi\n\nm")], "Hi\n\nm\n"),
        (
            [
                _frame("<small>*m · 0 s*</small>", "a"),
                _frame("One", "b"),
                _bar("<small>*m · 1 s*</small>", "a"),
                _frame("One two", "b"),
                _final("One two\n\nm"),
            ],
            "One two\n\nm\n",
        ),
        (
            [
                _frame("<small>*m · 0 s*</small>", "a"),
                _bar("<small>*starting*</small>\n\n<small>*m · 1 s*</small>", "a"),
                _frame("One", "b"),
                _final("starting\n\ntold by the bar\n\nOne two\n\nm"),
            ],
            "starting\n\nOne two\n\nm\n",
        ),
        (
            [
                _frame("<small>*take care*</small>\n\n<small>*m · 2 s*</small>", "a"),
                _frame("Hi", "b"),
                _final("take care\n\nHi\n\nm"),
            ],
            "take care\n\nHi\n\nm\n",
        ),
        ([_frame("\\$5", "a"), _final("$5\n\nm")], "\\$5$5\n\nm\n"),
    ],
    ids=[
        "grows",
        "blocks",
        "a fence",
        "the waiting line",
        "the bar in its place",
        "what the bar tells",
        "a notice first",
        "told otherwise: all of it",
    ],
)
def test_an_answer_is_printed_as_it_streams_and_once(
    messages: list[dict[str, object]], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Frames grow into the finished answer, which adds its line."""
    printer = Printer()
    printer.cell("%%larik")
    capsys.readouterr()
    for message in messages:
        printer.message(message)
    printer.end()

    assert capsys.readouterr().out == printed


def test_markdown_stands_in_for_missing_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A value without a text form is shown by its markdown."""
    Printer().message({"msg_type": "execute_result", "content": {"data": {"text/markdown": "**x**"}}})

    assert capsys.readouterr().out == "**x**\n"


def _write(path: Path, *cells: str) -> Path:
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Words"), *map(new_code_cell, cells)]), path)
    return path


def test_words_show_before_the_cell_ends(tmp_path: Path) -> None:
    """The first words are read here while the cell still waits for us to have read them."""
    seen = tmp_path / "seen"
    waits = f"""
import pathlib, time
h = display({{"text/plain": "first words"}}, raw=True, display_id=True)
until = time.monotonic() + 60
while not pathlib.Path({str(seen)!r}).exists() and time.monotonic() < until:
    time.sleep(0.01)
h.update({{"text/plain": "first words, then the rest\\n\\nm · $0.01"}}, raw=True)
assert pathlib.Path({str(seen)!r}).exists()
"""
    notebook = _write(tmp_path / "waits.ipynb", waits)
    with subprocess.Popen([sys.executable, SCRIPT, notebook], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        shown = ""
        while not shown.endswith("\n\nfirst words"):
            letter = process.stdout.read(1)
            assert letter, f"ended after {shown!r}"
            shown += letter
        seen.touch()
        rest = process.stdout.read()

    assert (process.returncode, rest) == (0, ", then the rest\n\nm · $0.01\n")


def test_a_failing_cell_fails_the_run(tmp_path: Path) -> None:
    """The error shows in one line and the exit status tells of it; later cells do not run."""
    notebook = _write(tmp_path / "fails.ipynb", "1/0", "print('never')")
    done = subprocess.run([sys.executable, SCRIPT, notebook], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stdout.endswith("ZeroDivisionError: division by zero\n")
    assert done.stderr.strip().endswith("a cell failed; its error is above")


def test_a_missing_notebook_is_named(tmp_path: Path) -> None:
    """The path that was asked for is in the answer."""
    missing = tmp_path / "gone.ipynb"
    done = subprocess.run([sys.executable, SCRIPT, missing], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (2, f"{missing}: there is no such notebook\n")


def test_a_recording_that_fits_no_more_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The committed recording and outputs are what the script makes, from answers to questions of other words."""
    folder = tmp_path / "notebooks"
    shutil.copytree(ROOT / "notebooks", folder)
    recording = folder / "recordings" / "03_data_in_prompts.jsonl"
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    recording.write_text("".join(json.dumps({**line, "key": "0" * 64}) + "\n" for line in lines))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")

    command = [sys.executable, ROOT / "scripts" / "record_notebook.py", folder / "03_data_in_prompts.ipynb"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert recording.read_bytes() == (ROOT / "notebooks/recordings/03_data_in_prompts.jsonl").read_bytes()
