"""Whatever tells a person to run something names what can be run."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from larik_nb import cli
from larik_nb.notebook.verbs import VERBS
from larik_nb.providers.local import cli as local

ROOT = Path(__file__).resolve().parents[1]
IN_CELL = re.compile(r"%larik ([a-z]+)")
IN_SHELL = re.compile(r"(?<![%\w])larik ([a-z]+)")
OF_LOCAL = re.compile(r"larik local ([a-z]+)")
MAGIC = re.compile(r"(?<![\w%])%{1,2}([a-z_]{3,})(?![\w%])")
OURS = {"routing", "larik", "model", "effort", "model_settings"}


def texts() -> Iterator[tuple[str, str]]:
    """Yield each string of the package, docstrings and pieces of f-strings included, and each document, with its place."""
    for path in sorted((ROOT / "larik_nb").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value
    for name in ("README.md", "CONTRIBUTING.md"):
        yield name, (ROOT / name).read_text("utf-8")
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            yield f"{path.name}:{cell['id']}", "".join(cell["source"])


def strays(pattern: re.Pattern[str], known: set[str]) -> list[tuple[str, str]]:
    return [(place, word) for place, text in texts() for word in pattern.findall(text) if word not in known]


def test_every_command_named_is_one_of_the_cells() -> None:
    assert strays(IN_CELL, set(VERBS)) == []


def test_every_command_named_is_one_of_the_shells() -> None:
    assert strays(IN_SHELL, set(cli._VERBS)) == []


def test_every_magic_named_is_registered() -> None:
    registered = InteractiveShell.instance().magics_manager.magics
    InteractiveShell.clear_instance()

    assert strays(MAGIC, {*OURS, *registered["line"], *registered["cell"]}) == []


def test_every_command_named_of_the_local_model_is_one() -> None:
    named = {word for _, text in texts() for word in OF_LOCAL.findall(text)}
    assert "fetch" in named

    for word in sorted(named):
        with pytest.raises(SystemExit) as ended:
            local([word, "--help"])
        assert ended.value.code == 0


def test_a_command_that_does_not_exist_would_be_found() -> None:
    assert IN_CELL.findall("run  %larik auth anthropic") == ["auth"]
    assert IN_SHELL.findall("(in a shell: larik auth)") == ["auth"]
    assert MAGIC.findall("sent.  %routing budget=4, or %%bench") == ["routing", "bench"]
