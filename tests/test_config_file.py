"""The settings file: changed in one step, private, never half written, never written over when broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb import _config_file
from larik_nb.config import Config, config_path, edit
from larik_nb.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]


def put(**values: Any) -> Any:
    return lambda settings: settings.update(values)


def test_a_change_keeps_order_and_what_this_version_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('\ufeff{"zeta": 1, "model": "a/b", "theme": {"dark": true, "a": "ü"}}', encoding="utf-8")
    edited = edit(put(model="c/d", max_retries=1), path=path)
    assert path.read_text(encoding="utf-8") == (
        '{\n  "zeta": 1,\n  "model": "c/d",\n  "theme": {\n    "dark": true,\n    "a": "ü"\n  },\n  "max_retries": 1\n}\n'
    )
    assert (edited.before["model"], edited.after["model"], edited.path) == ("a/b", "c/d", path)
    assert Config.load(path, env={}).extra == {"zeta": 1, "theme": {"dark": True, "a": "ü"}}


def test_the_first_save_makes_the_users_file_private(home: Path) -> None:
    before = os.umask(0)
    try:
        edit(put(model="a/b"))
    finally:
        os.umask(before)
    path = config_path(os.environ)
    assert path is not None
    assert path.is_relative_to(home)
    assert [oct(place.stat().st_mode & 0o777) for place in (path, path.parent)] == ["0o600", "0o700"]
    assert Config.load().model == "a/b"


def test_a_file_that_was_open_to_others_is_private_after_a_save(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("{}")
    path.chmod(0o644)
    edit(put(model="a/b"), path=path)
    assert oct(path.stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize("text", ['{"model": ', "[]", '{"max_retries": "x"}', "\x00"])
def test_a_broken_file_is_never_written_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"config\.json"):
        edit(put(model="a/b"), path=path)
    assert path.read_text() == text


def test_settings_that_could_not_be_read_again_are_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model": "a/b"}')
    with pytest.raises(ConfigError, match="names the role smart"):
        edit(put(roles={"worker": "smart"}), path=path)
    assert path.read_text() == '{"model": "a/b"}'
    assert [item.name for item in tmp_path.iterdir() if item.suffix == ".tmp"] == []


def test_a_change_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model":"a/b"}')
    edit(put(model="a/b"), path=path)
    assert path.read_text() == '{"model":"a/b"}'


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Settings kept in a repository of dot files are changed there."""
    real, link = tmp_path / "dotfiles.json", tmp_path / "config.json"
    real.write_text("{}")
    link.symlink_to(real)
    edit(put(model="a/b"), path=link)
    assert link.is_symlink()
    assert json.loads(real.read_text()) == {"model": "a/b"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ConfigError, match=r"file/config\.json: cannot save the settings.*LARIK_CONFIG"):
        edit(put(model="a/b"), path=blocked / "config.json")


def test_without_a_home_there_is_nowhere_to_save() -> None:
    with pytest.raises(ConfigError, match="no home folder"):
        edit(put(model="a/b"), env={})


def test_what_a_killed_save_left_behind_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / ".config.json.abc123.tmp").write_text("{")
    edit(put(model="a/b"), path=tmp_path / "config.json")
    assert sorted(item.name for item in tmp_path.iterdir()) == [".config.json.lock", "config.json"]


def test_a_save_waits_for_another_kernels_and_says_so_when_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_config_file, "LOCK_WAIT_S", 0.1)
    path = tmp_path / "config.json"
    code = (
        "import sys, pathlib; from larik_nb import _config_file\n"
        "with _config_file._alone(pathlib.Path(sys.argv[1])): print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(path)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdout.readline()
    with pytest.raises(ConfigError, match="another kernel has been saving"):
        edit(put(model="a/b"), path=path)
    other.kill()
    other.wait()
    other.stdin.close()
    other.stdout.close()
    edit(put(model="a/b"), path=path)
    assert Config.load(path, env={}).model == "a/b"


def test_no_thread_sees_half_of_a_change(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    edit(put(model="a/0", roles={"worker": "a/0"}), path=path)
    seen: list[tuple[str | None, str]] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            got = Config.load(path, env={})
            seen.append((got.model, got.roles["worker"]))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(1, 40):
        edit(put(model=f"a/{number}", roles={"worker": f"a/{number}"}), path=path)
    over.set()
    for reader in readers:
        reader.join()
    assert [pair for pair in seen if pair[0] != pair[1]] == []
    assert len(seen) > 3


def test_changes_of_many_threads_all_arrive(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    threads = [
        threading.Thread(
            target=edit,
            args=(lambda s, n=n: s.setdefault("roles", {}).update({f"r{n}": "a/b"}),),
            kwargs={"path": path},
        )
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(Config.load(path, env={}).roles) == sorted(f"r{n}" for n in range(12))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=6).map(lambda name: f"x-{name}"), ANY, max_size=5))
def test_what_this_version_does_not_know_survives_any_number_of_saves(
    tmp_path_factory: Any, unknown: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("kept") / "config.json"
    path.write_text(json.dumps(unknown))
    edit(put(model="a/b"), path=path)
    edit(lambda settings: settings.pop("model"), path=path)
    assert list(json.loads(path.read_text(encoding="utf-8")).items()) == list(unknown.items())


@pytest.mark.parametrize("kills", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_two_kernels_killed_while_they_save_leave_one_of_two_versions(kills: int) -> None:
    command = [sys.executable, "tests/kill_config.py", "--kills", str(kills), "--seed", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"violations 0 of {kills}")
