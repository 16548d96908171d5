"""Files on their way into a prompt: `@name` for those of the working folder, `--attach` for any that the user writes.

A word behind an @ is a file only if one of that name lies in the working folder, links followed: a mail address, a
decorator or somebody's handle stays the text it is. What `--attach` names must be there.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal

from larik_nb.errors import ConfigError
from larik_nb.notebook import _images, markdown, redact
from larik_nb.types import Block, Request, user

if TYPE_CHECKING:
    from larik_nb.agent.session import Route
    from larik_nb.catalog import Catalog

_WORD = re.compile(r"""(?<![\w@/.:+`~\\-])@(?:"([^"\n]{1,300})"|([^\s"'`<>(){}\[\],;:!?*|]{1,300}))""")
_CODE = re.compile(r"(`+)[^`\n]*\1")

_MOST_TEXT = 100_000
"""Characters of a text file, some 25,000 tokens."""
_MOST_ROWS, _MOST_TABLE = 200, 20_000
"""Lines and characters of a table: its head shows what it is, the rest is work for code."""
_MOST_BYTES = 20_000_000
_TABLES = (".csv", ".tsv")
_SETTINGS = re.compile(
    r"(?:(?:^|.*[._-])env(?:[._-].*)?|[._]netrc|\.pgpass|\.pypirc|\.npmrc|\.git-credentials|\.htpasswd|credentials)$",
    re.IGNORECASE,
)
"""Names of files that are there to hold secrets."""
_PDF = "application/pdf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """A file as it is sent.

    Attributes:
        name: As the user wrote it.
        part: Its text, or its bytes as a block.
        notes: What the user should know.
    """

    name: str
    part: str | Block
    notes: tuple[str, ...] = ()


# -- which files --------------------------------------------------------------------------------------------------
def mentioned(text: str, folder: Path) -> tuple[list[str], list[str]]:
    """Return the files that the @words of a prompt name, in order and each once, and notes on those that name none."""
    found: dict[str, None] = {}
    notes: list[str] = []
    for word in _words(text):
        name = _resolved(word, folder, notes)
        if name is not None:
            found[name] = None
    return list(found), notes


def _words(text: str) -> Iterator[str]:
    """Yield what stands behind an @ in prose: in code it is a decorator or a matrix product."""
    if "@" not in text:
        return
    for match in _WORD.finditer(_CODE.sub("", markdown.prose(text))):
        yield match[1] or match[2]


def _resolved(word: str, folder: Path, notes: list[str]) -> str | None:
    """Return the longest beginning of `word`, less full stops at its end, that is a file in `folder`."""
    if word.startswith("~"):
        return None
    for name in dict.fromkeys([word, word.rstrip(".…")]):
        place = _place(folder, name)
        if place is None:
            continue
        if not place.is_relative_to(folder.resolve()):
            notes.append(f"@{name} lies outside of the notebook's folder and was not sent; --attach {name} sends it")
            return None
        if place.is_file():
            return name
        if place.is_dir():
            notes.append(f"@{name} is a folder and was not sent; name a file in it")
            return None
    bare = word.rstrip(".…")
    if PurePath(bare).suffix.lower() in _LIKELY:
        notes.append(f"@{bare} is no file here; sent as it stands")
    return None


_LIKELY = (".csv", ".tsv", ".txt", ".md", ".json", ".ipynb", ".pdf", ".png", ".jpg", ".jpeg", ".yaml", ".yml", ".log")


def _place(folder: Path, name: str) -> Path | None:
    try:
        place = Path(os.path.realpath(folder / name))
        return place if place.exists() else None
    except (OSError, ValueError):
        return None


# -- what is sent of one ------------------------------------------------------------------------------------------
def read(name: str, folder: Path, route: Route, catalog: Catalog) -> Attached:
    """Return a file as it is sent.

    Args:
        name: Its path, from `folder` on where it is not absolute.
        folder: The working folder.
        route: Who is asked; a file that this model does not take is refused.
        catalog: What is known of models.

    Raises:
        ConfigError: It is not there, cannot be read, or is nothing that the model takes; the message says which.
    """
    data = _bytes(name, folder)
    kind = _images.media_type(data)
    if kind is not None:
        block, notes = _images.from_bytes(data)
        check(block, name, route, catalog)
        return Attached(name=name, part=replace(block, name=PurePath(_plain_name(name)).name), notes=notes)
    if data.startswith(b"%PDF-"):
        return _pdf(name, data, route, catalog)
    text = _decoded(data)
    if text is not None:
        return _text(name, text, is_settings=_SETTINGS.match(_true_name(name, folder)) is not None)
    guessed = mimetypes.guess_type(name)[0]
    if guessed is None or not guessed.startswith(("audio/", "video/", "image/")):
        raise ConfigError(
            f"{name} is neither text nor an image nor a PDF", remedy="Load it, and name what is in it: {df}"
        )
    return _document(name, data, guessed, route, catalog)


def _bytes(name: str, folder: Path) -> bytes:
    path = folder / Path(name).expanduser()
    try:
        with open(path, "rb", opener=_opened) as file:  # Path.open takes no opener
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise ConfigError(f"{name} is no file", remedy="Name a file")
            if about.st_size > _MOST_BYTES and not _is_texts_head(file.read(4096)):
                what = f"{name} has {about.st_size / 1e6:,.0f} MB, more than the {_MOST_BYTES / 1e6:.0f} MB that can be sent"
                raise ConfigError(what, remedy="Load it, and name what is in it: {df}")
            file.seek(0)
            return file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:  # a name with a NUL in it is no OSError
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{name} cannot be read: {why}", remedy="Check the path") from None


def _opened(path: str, flags: int) -> int:
    """Open without waiting: a named pipe that nobody writes to would never answer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _is_texts_head(data: bytes) -> bool:
    return b"\0" not in data and not data.startswith(b"%PDF-") and _images.media_type(data) is None


def _decoded(data: bytes) -> str | None:
    """Return the text that `data` is; None where it is none."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start > len(data) - 4 and len(data) == _MOST_BYTES:  # a letter cut in two where reading ended
            return data[: error.start].decode("utf-8-sig")
        text = data.decode("latin-1")
        return text if sum(not char.isprintable() and char not in "\r\n\t\f" for char in text[:8192]) == 0 else None


def _true_name(name: str, folder: Path) -> str:
    """Return what the file is called where it lies: a link to it may be called anything."""
    return PurePath(os.path.realpath(folder / Path(name).expanduser())).name


def _text(name: str, text: str, *, is_settings: bool = False) -> Attached:
    from larik_nb.providers._media import written_out

    path = PurePath(name)
    if path.suffix.lower() == ".ipynb":
        text = _cells(text)
    if is_settings or _SETTINGS.match(path.name):
        text = redact.dotenv(text)
    limit = _MOST_TABLE if path.suffix.lower() in _TABLES else _MOST_TEXT
    rows, whole = text, len(text)
    if path.suffix.lower() in _TABLES:
        rows = "".join(text.splitlines(keepends=True)[:_MOST_ROWS])
    sent = redact.cut(rows, limit)
    notes = list(redact.told(sent, name))
    if len(rows) > limit or len(rows) < whole:
        lines = f"{sent.count(chr(10)):,} of {len(text.splitlines()):,} lines"
        sent = f"{sent.rstrip()}\n… (cut: the first {lines})"
        notes.append(f"{name} was cut: the first {lines} are sent")
    return Attached(name=name, part=written_out(_plain_name(name), sent), notes=tuple(notes))


def _plain_name(name: str) -> str:
    return re.sub(r"[\"<>&\s]+", " ", markdown.plain(name))


def _cells(text: str) -> str:
    """Return a notebook's cells as text, its outputs left out: they hold images, and widgets' state."""
    try:
        cells = json.loads(text)["cells"]
        parts = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError):
        return text
    marks = {"code": "# %%", "markdown": "# %% [markdown]"}
    return "\n\n".join(f"{marks.get(kind, f'# %% [{kind}]')}\n{source}" for kind, source in parts)


def _pdf(name: str, data: bytes, route: Route, catalog: Catalog) -> Attached:
    """Return a PDF as it is, or its text for a model that takes none."""
    if takes(Block(type="document", media_type=_PDF), route, catalog):
        return _document(name, data, _PDF, route, catalog)
    from larik_nb.notebook import _pdf

    found = _pdf.text(data, _MOST_TEXT, f"{name} was not sent: {_refusal(_PDF, route)}")
    attached = _text(name, found.text)
    pages = f"{found.pages} page{'s' * (found.pages != 1)}"
    pages = pages if found.read == found.pages else f"the first {found.read} of {pages}"
    said = f"{name} goes as its text, {pages} without their pictures: {_refusal(_PDF, route)}"
    silent = [f"{found.silent} of the {found.read} pages of {name} that were read hold no text"] if found.silent else []
    return replace(attached, notes=(said, *silent, *attached.notes))


def _document(name: str, data: bytes, kind: str, route: Route, catalog: Catalog) -> Attached:
    if len(data) >= _MOST_BYTES:
        raise ConfigError(f"{name} is larger than the {_MOST_BYTES / 1e6:.0f} MB that can be sent", remedy="Split it")
    medium: Literal["image", "document"] = "image" if kind.startswith("image/") else "document"
    plain = PurePath(_plain_name(name)).name
    block = Block(
        type=medium, media_type=kind, data=base64.b64encode(data).decode(), name=plain if medium == "document" else None
    )
    check(block, name, route, catalog)
    return Attached(name=name, part=block)


# -- what the model takes -----------------------------------------------------------------------------------------
_SEEN_ANYWHERE = ("image/png", "image/jpeg", "image/gif", "image/webp", _PDF)


def check(block: Block, name: str, route: Route, catalog: Catalog) -> None:
    """Refuse what would not reach the model: its wire would put a note in its place.

    Raises:
        ConfigError: The model does not take it; the message says why.
    """
    if not takes(block, route, catalog):
        remedy = "Ask a model that does (%larik models), or put it into words"
        what = "images" if block.type == "image" else block.media_type or ""
        raise ConfigError(f"{name} was not sent: {_refusal(what, route)}", remedy=remedy)


def takes(block: Block, route: Route, catalog: Catalog) -> bool:
    """Return whether the model takes an image or a file of this kind."""
    known = catalog.find(route.provider.name, route.model)
    sees_none = known is not None and (
        (block.type == "image" and known.vision is False) or (block.media_type == _PDF and known.pdf is False)
    )
    return not sees_none and _is_taken(block, route)


def _refusal(kind: str, route: Route) -> str:
    what = {_PDF: "PDFs", "images": "images"}.get(kind, f"{kind} files")
    return f"{route.spec} takes no {what}"


def _is_taken(block: Block, route: Route) -> bool:
    """Return whether the wire has the file in it; where nothing goes over one, what is usual."""
    from larik_nb.providers import Previews
    from larik_nb.providers._media import left_out

    small = Block(type=block.type, media_type=block.media_type, data="QUJD", name=block.name)
    provider: Any = route.provider
    wire = None
    if isinstance(provider, Previews):
        wire = provider.encoded(Request(model=route.model, messages=(user("?", small),)))
    if wire is None:
        return block.media_type in _SEEN_ANYWHERE
    note = json.dumps(left_out(small, route.model))[1:-1]
    return note not in json.dumps(wire.body)
