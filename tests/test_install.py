"""The package installs where strangers install it. Slow: each test fills an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


def _run(*command: str | Path, cwd: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy what git tracks, so that nothing else of this folder helps or hinders."""
    target = tmp_path / "checkout"
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    for name in filter(None, listed):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    return target


def test_the_oldest_versions_allowed_serve(tmp_path: Path, checkout: Path, outside: dict[str, str]) -> None:
    """Every lower bound in pyproject.toml is true: the tests pass on exactly those versions."""
    uv = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    if uv is None:
        pytest.skip("uv is not installed")
    python = tmp_path / "oldest" / "bin" / "python"
    environment = outside | {"LARIK_SKIP_LABEXTENSION": "1"}
    _run(uv, "venv", "--seed", "--python", sys.executable, tmp_path / "oldest", cwd=checkout, environment=environment)
    _run(
        *(uv, "pip", "install", "--python", python, "--resolution", "lowest-direct", "-e", ".[test]"),
        cwd=checkout,
        environment=environment,
    )

    _run(python, "-m", "pytest", "-q", "-m", "not slow and not browser", cwd=checkout, environment=environment)


def test_binders_script_leaves_a_working_notebook(tmp_path: Path, checkout: Path, outside: dict[str, str]) -> None:
    """`binder/postBuild` in an empty environment ends with the extension listed and the quickstart first."""
    if shutil.which("node") is None:
        pytest.skip("Node.js was not found, which Binder has")
    venv.create(tmp_path / "binder", with_pip=True)
    home = tmp_path / "jovyan"
    home.mkdir()
    path = os.pathsep.join([str(tmp_path / "binder" / "bin"), outside["PATH"]])
    said = _run("binder/postBuild", cwd=checkout, environment=outside | {"HOME": str(home), "PATH": path})

    assert "larik-nb" in said
    assert "01_quickstart.ipynb" in (home / ".jupyter" / "jupyter_lab_config.json").read_text()
