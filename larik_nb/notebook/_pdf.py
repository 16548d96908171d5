"""The text of a PDF, for models that take no PDFs. Needs the extra `documents`."""

from __future__ import annotations

import io
import logging
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from larik_nb.errors import ConfigError

if TYPE_CHECKING:
    from pypdf import PageObject

EXTRA = 'pip install "larik-nb[documents]"'
_ELSEWHERE = "Ask a model that takes PDFs (%larik models)"
_UNREADABLE = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
    *(NotImplementedError, OSError, struct.error, zlib.error),
)
"""What reading a broken file raises beside the library's own errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What a PDF says.

    Attributes:
        text: Its pages, each under a line with its number.
        pages: How many it has.
        read: How many of them were read.
        silent: How many of those have no text: scans, drawings.
    """

    text: str
    pages: int
    read: int
    silent: int


def text(data: bytes, most: int, unsent: str) -> Text:
    """Return the text of a PDF.

    Args:
        data: The file.
        most: Characters after which no further page is read.
        unsent: How an error begins: that the file was not sent, and why it does not go as it is.

    Raises:
        ConfigError: The extra is missing, it has a password, it is broken, or no page of it has any text.
    """
    try:
        import pypdf
        from pypdf import errors
    except ImportError:
        raise ConfigError(
            f"{unsent}, and reading its text needs an extra", remedy=f"%{EXTRA}, then ask again"
        ) from None
    try:
        with _quietly():
            file = pypdf.PdfReader(io.BytesIO(data))
            if file.is_encrypted and not file.decrypt(""):
                raise ConfigError(f"{unsent}, and its text has a password", remedy="Save it without one")
            found = _said(file.pages, most)
    except (errors.PyPdfError, errors.DependencyError, *_UNREADABLE) as error:
        what = f"{unsent}, and its text cannot be read ({type(error).__name__})"
        raise ConfigError(what, remedy=_ELSEWHERE) from error
    if not found.text:
        what = f"{unsent}, and its pages hold no text: they are pictures"
        raise ConfigError(what, remedy=f"{_ELSEWHERE}, or run text recognition over it")
    return found


def _said(pages: Sequence[PageObject], most: int) -> Text:
    parts: list[str] = []
    read = silent = length = 0
    for read, page in enumerate(pages, 1):
        said = page.extract_text().strip()
        silent += not said
        if said:
            parts.append(f"[page {read}]\n{said}")
            length += len(parts[-1])
        if length > most:
            break
    return Text(text="\n\n".join(parts), pages=len(pages), read=read, silent=silent)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep what the library has to say of a file's slips from the cell."""
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
