"""The shell's door."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from larik_nb._version import __version__
from larik_nb.cli import main


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """`larik --version` names the package."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert (ended.value.code, capsys.readouterr().out) == (0, f"larik-nb {__version__}\n")


def test_no_verb_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    """A bare `larik` lists what there is and counts as a wrong command line."""
    assert main([]) == 2
    assert "local" in capsys.readouterr().out


def test_help_names_the_settings_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the path holds."""
    monkeypatch.setenv("LARIK_CONFIG", "/etc/100%s/larik.json")

    main([])

    assert "settings: /etc/100%s/larik.json" in capsys.readouterr().out


def test_unknown_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """A verb that does not exist is refused by name."""
    with pytest.raises(SystemExit) as ended:
        main(["lcoal"])

    assert ended.value.code == 2
    assert "lcoal" in capsys.readouterr().err


def test_the_installed_command() -> None:
    """The package installs a program `larik`, which is quick to say its version."""
    program = Path(sys.executable).with_name("larik")

    assert subprocess.check_output([program, "--version"], text=True) == f"larik-nb {__version__}\n"


def test_a_verbs_own_options_reach_it(capsys: pytest.CaptureFixture[str]) -> None:
    """What follows the verb is the verb's business, dashes included."""
    with pytest.raises(SystemExit) as ended:
        main(["local", "--help"])

    assert ended.value.code == 0
    assert "larik local" in capsys.readouterr().out
