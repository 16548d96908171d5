"""The settings file on disk: found, read, and replaced in one step, so that nobody ever sees half of it.

A save writes the whole new text into a file beside it and renames that over the old one, under a lock that other
kernels respect and that dies with its holder. What cannot be read is never written over.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from larik_nb.errors import ConfigError

PROJECT_FILE = "larik.json"
LOCK_WAIT_S = 10.0
"""How long a save waits for another one; each takes milliseconds."""

_LOCK_PAUSE_S = 0.02
_MEND = "Mend or move the file; it was left as it is"
_here = threading.RLock()
"""Held while files are read and while one is replaced: a reader in this process sees all of them before or after."""


def config_path(env: Mapping[str, str]) -> Path | None:
    """Return where the user's settings file is or would be; None where no home folder is known."""
    if named := env.get("LARIK_CONFIG"):
        return expanded(named)
    folder = config_folder(env, sys.platform)
    return folder / "larik" / "config.json" if folder else None


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with the home folder in the place of ~, where there is such a user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def config_folder(env: Mapping[str, str], platform: str) -> Path | None:
    """Return where a platform keeps its users' settings; None where no home folder is known."""
    home = env.get("USERPROFILE" if platform == "win32" else "HOME")
    if platform == "win32":
        chosen, usual = env.get("APPDATA"), "AppData/Roaming"
    elif platform == "darwin":
        chosen, usual = None, "Library/Application Support"
    else:
        chosen, usual = env.get("XDG_CONFIG_HOME"), ".config"
    if chosen:
        return Path(chosen)
    return Path(home, usual) if home else None


def project_path(env: Mapping[str, str]) -> Path | None:
    """Return the project's settings file: beside the notebook or above it, up to the top of its repository.

    Outside a repository only the notebook's own folder counts. The user's own settings file is nobody's project.
    """
    here = _folder(env)
    if here is None:
        return None
    folders = [here, *here.parents]
    top = next((index for index, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    found = next((file for folder in folders[: top + 1] if (file := folder / PROJECT_FILE).is_file()), None)
    return None if found == config_path(env) else found


def _folder(env: Mapping[str, str]) -> Path | None:
    """Return the notebook's folder as Jupyter tells it, else the process's; None where that is gone."""
    notebook = Path(env.get("JPY_SESSION_NAME") or "-")
    if notebook.is_absolute() and notebook.parent.is_dir():
        return notebook.parent
    with suppress(OSError):
        return Path.cwd()
    return None


@contextmanager
def unchanging() -> Iterator[None]:
    """Keep this process from replacing a settings file meanwhile."""
    with _here:
        yield


def read(path: Path) -> Any:
    """Return what a file says.

    Raises:
        ConfigError: It cannot be read, or is not JSON.
    """
    import json

    source = str(path)
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as exc:
        msg = f"cannot read the settings file: {exc.strerror or type(exc).__name__}"
        raise ConfigError(msg, source=source) from exc
    except json.JSONDecodeError as exc:
        msg = f"not valid JSON at line {exc.lineno}, column {exc.colno}: {exc.msg}"
        raise ConfigError(msg, source=source, remedy=_MEND) from None
    except (ValueError, RecursionError) as exc:
        msg = f"not readable as JSON text ({type(exc).__name__})"
        raise ConfigError(msg, source=source, remedy=_MEND) from None


class Edited(NamedTuple):
    """A settings file before and after a change.

    Attributes:
        path: The file.
        before: What it said; keys in order.
        after: What it says now.
    """

    path: Path
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def edit(path: Path, change: Callable[[dict[str, Any]], None], check: Callable[[Any], object]) -> Edited:
    """Change a settings file in one step. Keys keep their order, and those this version does not know stay.

    Args:
        path: The file; made, for the user's eyes only, where there is none. A link is followed.
        change: Changes the settings in place.
        check: Raises for settings that cannot be used; then nothing is written.

    Raises:
        ConfigError: The file is broken or cannot be written, or the settings would be unusable.
    """
    from copy import deepcopy

    path = Path(os.path.realpath(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _here, _alone(path):
            before = read(path) if path.exists() else {}
            check(before)
            after = deepcopy(before)
            change(after)
            check(after)
            if after != before or not path.exists():
                _replace(path, after)
    except OSError as exc:
        msg = f"cannot save the settings: {exc.strerror or type(exc).__name__}"
        raise ConfigError(
            msg, source=str(path), remedy="Make it writable, or set LARIK_CONFIG to another file"
        ) from exc
    return Edited(path=path, before=before, after=after)


def _replace(path: Path, data: Any) -> None:
    import json
    import tempfile

    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    for stale in path.parent.glob(f".{path.name}.*.tmp"):  # of a save that was killed: we hold the lock
        stale.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)  # mode 0600
    try:
        with open(handle, "wb") as file:  # noqa: PTH123  # a descriptor, not a path
            file.write(text.encode("utf-8", "surrogatepass"))
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """Let the rename survive a loss of power; not every system opens folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other process saves. The system lets go of the lock when its holder dies."""
    lock = path.with_name(f".{path.name}.lock")
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + LOCK_WAIT_S
        while not _locked(handle):
            if time.monotonic() > deadline:
                msg = "another kernel has been saving the settings for too long"
                raise ConfigError(msg, source=str(path), remedy=f"Try again, or remove {lock}")
            time.sleep(_LOCK_PAUSE_S)
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _locked(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def _locked(handle: int) -> bool:
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
