"""A file from an address, continued where the last try stopped."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast
from urllib.parse import urljoin

from larik_nb import portal
from larik_nb.errors import APIError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from larik_nb.providers.local.fetch import Progress
    from larik_nb.providers.local.table import Model, UrlSource

MAX_CUTS = 5
MAX_REDIRECTS = 5
STALL_LIMIT_S = 30.0
PROBE_LIMIT_S = 5.0


class SourceFailed(Exception):
    """One source did not give the file; its text is the reason, and the next source is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """How an answer begins."""

    status: int
    headers: Mapping[str, str]


def answers(source: UrlSource) -> bool:
    """Whether the address can be reached and has the file, asked with a short time limit."""
    try:
        # A redirect is an answer; the storage behind it may refuse HEAD.
        return portal.wait(_probe(source.url)) < 400
    except APIError:
        return False


def download(source: UrlSource, model: Model, part: Path, report: Progress) -> None:
    """Fill `part` up to the model's size, from where it is; a connection that was cut is made again.

    Raises:
        SourceFailed: The address cannot be reached, has another file, or cuts the connection again and again.
        OSError: `part` cannot be written.
    """
    for _ in range(MAX_CUTS):
        before = _size(part)
        try:
            _pull(source, model, part, report)
        except APIError as error:
            if _size(part) <= before:
                raise SourceFailed(error.message) from error
        if _size(part) == model.bytes:
            _tag_of(part).unlink(missing_ok=True)
            return
    msg = f"the connection was cut {MAX_CUTS} times, {_size(part) / 1e6:.1f} of {model.bytes / 1e6:.1f} MB are here"
    raise SourceFailed(msg)


def _pull(source: UrlSource, model: Model, part: Path, report: Progress) -> None:
    """Ask once for what is missing and append what comes."""
    if _size(part) > model.bytes:
        part.unlink()
    start = _size(part)
    if start == model.bytes:
        return
    # The portal carries the bytes; the file and the progress are the caller's own.
    with closing(portal.iterate(_get(source.url, _range(source, part, start)))) as answer:
        head = cast("_Head", next(answer))
        start = _starts_at(head, start)
        _check_length(head, model, start)
        _tag_of(part).write_text(json.dumps({"url": source.url, "etag": head.headers.get("etag")}))
        with part.open("ab" if start else "wb") as file:
            for chunk in answer:
                file.write(cast("bytes", chunk))
                if file.tell() > model.bytes:
                    msg = f"it sends more than the {model.bytes:,} bytes of this model"
                    raise SourceFailed(msg)
                report(file.tell(), model.bytes, source.label)


async def _get(url: str, headers: Mapping[str, str]) -> AsyncGenerator[_Head | bytes, None]:
    """Yield how the answer begins, then its body; redirects are followed."""
    from larik_nb import http

    for _ in range(MAX_REDIRECTS):
        async with http.request("GET", url, headers, stall_timeout_s=STALL_LIMIT_S) as reply:
            if not 300 <= reply.status < 400:
                yield _Head(status=reply.status, headers=reply.headers)
                async for chunk in reply:
                    yield chunk
                return
            url = urljoin(url, reply.headers.get("location", ""))
    msg = f"it redirects more than {MAX_REDIRECTS} times"
    raise SourceFailed(msg)


async def _probe(url: str) -> int:
    from larik_nb import http

    async with http.request("HEAD", url, {}, stall_timeout_s=PROBE_LIMIT_S) as reply:
        return reply.status


def _range(source: UrlSource, part: Path, start: int) -> dict[str, str]:
    """Return the headers that ask for the rest, only if the file there is still the one we began with."""
    if not start:
        return {}
    tag = json.loads(_tag_of(part).read_text()) if _tag_of(part).exists() else {}
    etag = tag.get("etag") or ""
    is_comparable = tag.get("url") == source.url and etag and not etag.startswith("W/")
    return {"Range": f"bytes={start}-"} | ({"If-Range": etag} if is_comparable else {})


def _starts_at(head: _Head, start: int) -> int:
    """Return where the body begins: where we asked, or at 0 when the server sends all of it."""
    if head.status == 206:
        sent = head.headers.get("content-range", "")
        if not sent.startswith(f"bytes {start}-"):
            msg = f"asked for the bytes from {start} on, it sent {sent or 'others'}"
            raise SourceFailed(msg)
        return start
    if head.status == 200:
        return 0
    msg = f"HTTP {head.status}"
    raise SourceFailed(msg)


def _check_length(head: _Head, model: Model, start: int) -> None:
    """Refuse another file (a log-in page, a newer version) before its bytes are taken."""
    length = head.headers.get("content-length")
    if length and int(length) + start != model.bytes:
        msg = f"it has {int(length) + start:,} bytes there, not the {model.bytes:,} of this model"
        raise SourceFailed(msg)


def _tag_of(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
