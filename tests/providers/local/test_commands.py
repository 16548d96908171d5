"""`larik local …`: what it prints and how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from larik_nb.providers.local import cache, cli, table


def _pretend_present(model: table.Model) -> Path:
    """Put a file of the model's size there; it has holes and takes no room."""
    cache.folder("models")
    with cache.path_of(model).open("wb") as file:
        file.truncate(model.bytes)
    return cache.path_of(model)


def test_list_shows_what_each_is_and_where(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Name, size, licence, place and one honest line for every model of the table."""
    here = _pretend_present(table.models()[-1])
    assert cli(["list"]) == 0
    printed = capsys.readouterr().out
    for model in table.models():
        assert {f"local/{model.name}", model.size.split()[0], model.licence} <= set(printed.split())
        assert model.description in printed
    assert f"here: {here}" in printed
    assert f"from {table.models()[0].sources[0].label}" in printed


def test_alone_it_shows_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody who does not know them types no more than this."""
    assert cli([]) == 0
    assert "larik local fetch smollm2-135m" in capsys.readouterr().out


def test_a_description_is_one_clause_of_a_sentence() -> None:
    """It stands behind a colon."""
    assert all(":" not in model.description for model in table.models())


def test_status_tells_what_is_missing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not ready is status 1 with the command that helps."""
    assert cli(["status"]) == 1
    assert "model   none yet: larik local fetch" in capsys.readouterr().out


def test_path_prints_the_file_only(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its output can be used in a script."""
    here = _pretend_present(table.models()[-1])
    assert cli(["path"]) == 0
    assert capsys.readouterr().out == f"{here}\n"


def test_path_of_what_is_not_here_fails(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on standard error, nothing on standard output."""
    assert cli(["path", "smollm2-135m"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "ConfigError: local/smollm2-135m is not on this machine. Fetch it with: larik local fetch smollm2-135m\n"
    )


def test_fetch_of_what_is_here_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is asked and nothing fetched."""
    here = _pretend_present(table.models()[-1])
    assert cli(["fetch"]) == 0
    assert capsys.readouterr().out == f"local/{table.models()[-1].name} is here: {here}\n"


def test_fetch_of_an_unknown_name_has_the_known_ones(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A slip of the pen is answered, not traced."""
    assert cli(["fetch", "smolm"]) == 1
    assert "did you mean local/smollm2-135m?" in capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` shows commands that can be copied."""
    with pytest.raises(SystemExit):
        cli(["--help"])
    assert "larik local fetch smollm2-135m" in capsys.readouterr().out


def test_nothing_heavy_is_imported() -> None:
    """The package loads with the standard library alone."""
    script = "import sys, larik_nb.providers.local.provider, larik_nb.providers.local.commands; print([m for m in ('xllamacpp', 'httpx2', 'anyio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
