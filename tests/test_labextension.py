"""The extension from the built wheel, as a stranger installs it. Slow: each test fills an environment of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
BUNDLE = ROOT / "larik_nb" / "labextension" / "static" / "style.js"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
BROWSER_TESTS = ("tests/browser/test_status_item.py", "tests/browser/test_extension.py")


def _run(*command: str | Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return COLOUR.sub("", done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, outside: dict[str, str]) -> Path:
    if not BUNDLE.exists():
        pytest.skip("the extension is not built: make labextension")
    out = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, environment=outside)
    return next(out.glob("*.whl"))


def _environment(folder: Path, *packages: str, outside: dict[str, str]) -> Path:
    """Make an environment with packages in it and return its Python."""
    venv.create(folder, with_pip=shutil.which("uv") is None)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip"] if shutil.which("uv") is None else ["uv", "pip"]
    where = [] if shutil.which("uv") is None else ["--python", python]
    _run(*pip, "install", "--quiet", *where, *packages, environment=outside)
    return python


@pytest.mark.parametrize("version", ["4.6", "4.4"])
def test_it_loads_and_works_in_jupyterlab(version: str, wheel: Path, tmp_path: Path, outside: dict[str, str]) -> None:
    """Listed as enabled and OK; and, where Chromium is, all that it does is seen to work there."""
    packages = (f"{wheel}[widgets]", f"jupyterlab=={version}.*", "ipykernel")
    python = _environment(tmp_path / "env", *packages, outside=outside)
    listed = _run(python, "-m", "jupyter", "labextension", "list", environment=outside | {"HOME": str(tmp_path)})
    assert re.search(r"larik-nb v\S+ enabled OK", listed), listed

    chosen = outside | {"LARIK_LAB_PYTHON": str(python), "PATH": os.environ["PATH"]}
    said = _run(sys.executable, "-m", "pytest", "-q", *BROWSER_TESTS, environment=chosen)
    assert re.search(r"\d+ (passed|skipped)", said), said
