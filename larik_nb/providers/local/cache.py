"""Where local models lie on this machine, and the lock that lets one process at a time fetch one."""

from __future__ import annotations

import errno
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from larik_nb.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from larik_nb.providers.local.table import Model

LOCK_POLL_S = 0.2
MOVE_IT = "Set LARIK_CACHE_DIR to a folder you can write to that has room"


def cache_dir() -> Path:
    """Return the user's cache folder for this product: LARIK_CACHE_DIR, or where the platform keeps caches."""
    if chosen := os.environ.get("LARIK_CACHE_DIR"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "larik-nb" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "larik-nb"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "larik-nb"


def folder(name: str, root: Path | None = None) -> Path:
    """Return a folder of the cache, made when it is not there.

    Raises:
        ConfigError: It cannot be made.
    """
    path = (root or cache_dir()) / name
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"cannot make the folder {path}: {error.strerror}"
        raise ConfigError(msg, remedy=MOVE_IT) from error
    return path


def path_of(model: Model, root: Path | None = None) -> Path:
    """Return where the model's file is or will be; part of its hash is in the name, so a new file is never the old."""
    return (root or cache_dir()) / "models" / f"{model.sha256[:12]}-{model.file}"


def is_present(model: Model, root: Path | None = None) -> bool:
    """Whether the model can be used; a file gets its name only once its hash was right."""
    path = path_of(model, root)
    return path.is_file() and path.stat().st_size == model.bytes


def best_present(known: Sequence[Model], root: Path | None = None) -> Model | None:
    """Return the best model that is here, or None."""
    return next((model for model in known if is_present(model, root)), None)


@contextmanager
def locked(path: Path, while_waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock between processes and threads; it goes with its holder, even one that was killed.

    Args:
        path: The lock's file, left in place afterwards: removing it would let two in.
        while_waiting: Called at every look, while another holds it.

    Raises:
        ConfigError: The file system has no locks, or the file cannot be made.
    """
    try:
        file = path.open("a+b")
    except OSError as error:
        raise _unlockable(path, error) from error
    with file:
        while not _try_lock(file, path):
            while_waiting()
            time.sleep(LOCK_POLL_S)
        yield


def _try_lock(file: BinaryIO, path: Path) -> bool:
    """Take the lock if it is free; closing the file gives it back."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise _unlockable(path, error) from error
    return True


def _unlockable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"cannot lock {path}: {error.strerror}", remedy=MOVE_IT)
