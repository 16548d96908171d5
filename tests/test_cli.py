"""The shell's door."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb import config
from larik_nb._version import __version__
from larik_nb.cli import main
from larik_nb.providers import _listing
from larik_nb.routing.suggest import PRESETS
from tests._serve import Answer, Server


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


# -- settings -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SETTINGS))
    monkeypatch.setenv("LARIK_CONFIG", str(path))
    monkeypatch.setattr(_listing, "_is_guest", lambda _here: False)
    return path


KEY = "sk-hush-0123456789"
SETTINGS = {
    "model": "anthropic/claude-opus-5",
    "providers": {
        "corp": {
            "type": "openai-compatible",
            "base_url": "http://127.0.0.1:1/v1",
            "api_key": KEY,
            "api_key_command": f"echo {KEY}",
            "headers": {"x-team": KEY, "authorization": KEY},
            "token": KEY,
            "api_key_env": "CORP_KEY",
            "quirks": {"stream_options": False},
        }
    },
    "max_retries": 1,
}


def test_the_settings_are_shown_without_keys(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show"]) == 0
    shown = capsys.readouterr().out
    assert KEY not in shown
    corp = json.loads(shown)["providers"]["corp"]
    assert corp["base_url"] == "http://127.0.0.1:1/v1"
    assert (corp["api_key"], corp["api_key_command"], corp["token"]) == ("***",) * 3
    assert corp["headers"] == {"x-team": "***", "authorization": "***"}
    assert (corp["api_key_env"], corp["quirks"]) == ("CORP_KEY", {"stream_options": False})


@given(
    st.recursive(
        st.just(KEY) | st.integers() | st.none(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["api_key", "x", "headers", "model"]), inner, max_size=3)
        ),
        max_leaves=6,
    )
)
def test_whatever_stands_in_a_providers_settings_no_key_is_shown(value: object) -> None:
    for data in ({"providers": {"corp": value}}, {"providers": value}, {"extra": value}):
        assert KEY not in json.dumps(config.masked(data))


def test_where_the_settings_are_and_what_may_stand_in_them(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == config.schema()
    assert main(["config", "shwo"]) == 2


def test_a_broken_settings_file_is_one_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("{")
    for words in (["config", "show"], ["routing"], ["routing", "budget=5"], ["keys"]):
        assert main(words) == 1
        assert capsys.readouterr().err.startswith(f"ConfigError: {file}: not valid JSON at line 1, column 2")
    assert file.read_text() == "{"


# -- routing, models, keys ------------------------------------------------------------------------------------------
def test_routing_is_told_and_changed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["routing", "worker=groq/x", "budget=2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        'roles.worker: (none) → "groq/x"',
        "budget.session_usd: (none) → 2",
        f"saved in {file}",
    ]
    assert main(["routing"]) == 0
    told = capsys.readouterr().out
    assert "worker   groq/x" in told
    assert "budget    $2.00 a session, a warning at 80 %" in told
    assert main(["routing", "worker=gropq/x"]) == 1
    assert 'unknown model "gropq/x"' in capsys.readouterr().err


MODELS = {"data": [{"id": "big-70b", "pricing": {"prompt": "0.000005", "completion": "0.00001"}}, {"id": "mini"}]}


@pytest.fixture
def listed(file: Path) -> Iterator[Path]:
    """The settings with a provider that lists two models."""
    with Server() as server:
        row = {"type": "openai-compatible", "base_url": server.url(Answer(body=json.dumps(MODELS).encode()))}
        file.write_text(json.dumps({"model": "corp/big-70b", "providers": {"corp": row}}))
        yield file


def test_models_are_listed(listed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    told = capsys.readouterr().out
    assert [line.split() for line in told.splitlines()[:3]] == [
        ["model", "window", "$", "in/out", "until"],
        ["corp/big-70b", "-", "5/10"],
        ["corp/mini", "-", "-"],
    ]
    assert "prices of 20" in told


def test_a_provider_that_does_not_answer_is_shown_with_why(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 1
    told = capsys.readouterr().out
    assert "corp: " in told
    assert "127.0.0.1:1" in told
    assert KEY not in told


def test_no_provider_is_a_usage_error(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("{}")
    assert main(["models"]) == 2
    assert "no provider is set up" in capsys.readouterr().err
    assert main(["models", "gropq"]) == 2
    assert "Did you mean groq?" in capsys.readouterr().err


def test_a_preset_is_shown_first_and_saved_when_asked(listed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = listed.read_text()
    assert main(["routing", "preset", "cheapest", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert 'roles.worker: (none) → "corp/mini"' in told
    assert "not saved; without --dry-run it goes into" in told
    assert "worker: corp/mini: the only one that fits, no price is known, placed by its name" in told
    assert listed.read_text() == before
    assert main(["routing", "preset", "cheapest"]) == 0
    assert json.loads(listed.read_text())["roles"] == {"worker": "corp/mini", "explore": "corp/mini"}
    capsys.readouterr()
    assert main(["routing", "suggest"]) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if line[0] != " "] == list(PRESETS)


def test_keys_are_told_and_not_asked_for_without_a_person(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys"]) == 0
    told = capsys.readouterr().out
    assert f"corp      providers.corp.api_key in {file}" in told
    assert KEY not in told
    assert main(["keys", "add", "groq"]) == 1
    assert "larik keys add groq keyring" in capsys.readouterr().err
    assert main(["keys", "add", "groq", "keyring"]) == 1
    assert "nobody can type a key here" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["config", "keys", "models", "routing"])
def test_every_verb_helps(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"larik {verb}" in capsys.readouterr().out
