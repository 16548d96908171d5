"""Markdown that is still being written, and markdown that a stranger wrote.

`finished` and `closed` let half an answer be shown without a stray fence; `safe` takes from a model's answer what a
page would act on: raw HTML, images and links to anywhere, control characters, and dollars that only mean money.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HALF_OPENING = re.compile(r"^ {0,3}(?:`+[^`\n]*|~+[^~\n]*)\Z", re.MULTILINE)
_HALF_CLOSING = re.compile(r"^ {0,3}(?:`+|~+)[ \t]*\Z", re.MULTILINE)
_MATH_LINE = re.compile(r"\s*(?:\$\$|\\\[|\\\])")


class _Scan:
    """The state of a text at its end: an open fence or display math, and where its finished blocks end."""

    def __init__(self, text: str) -> None:
        self.fence = ""
        self.math = ""
        self.finished = 0
        self._after_block = False
        offset = 0
        for line in text.splitlines(keepends=True):
            self._line(line, offset)
            offset += len(line)

    def _line(self, line: str, offset: int) -> None:
        if self.fence:
            self._in_fence(line)
            return
        if self._after_block and line[:1] not in (" ", "\t", "\n", "\r"):
            self.finished = offset
            self._after_block = False
        if match := _FENCE.match(line):
            self.fence = match[1]
        elif self.math or _MATH_LINE.match(line):
            self._in_math(line)
        else:
            self._after_block = self._after_block or not line.strip()

    def _in_fence(self, line: str) -> None:
        match = _FENCE.match(line)
        closes = match and match[1].startswith(self.fence) and not line[match.end() :].strip()
        if closes and line.endswith("\n"):
            self.fence, self._after_block = "", True

    def _in_math(self, line: str) -> None:
        marks = re.findall(r"\$\$|\\\[|\\\]", line)
        for mark in marks:
            self.math = "" if self.math else {"$$": "$$", "\\[": "\\]"}.get(mark, "")


def finished(text: str) -> int:
    """Return where the finished blocks of `text` end: behind it nothing that is still to come can change them."""
    return _Scan(text).finished


def closed(text: str) -> str:
    """Return `text` fit to be shown as it stands: open fences and display math closed, half a fence held back."""
    lines, end, _ = text.rpartition("\n")
    fence = _Scan(lines + end).fence
    if fence:
        return f"{_HALF_CLOSING.sub('', text).rstrip()}\n{fence}"
    text = _HALF_OPENING.sub("", text)
    math = _Scan(text).math
    return f"{text.rstrip()}\n{math}" if math else text


def whole(text: str) -> str:
    """Return `text` with an open fence or math closed, for something to stand behind it; nothing is held back."""
    scan = _Scan(text if text.endswith("\n") else text + "\n")
    end = scan.fence or scan.math
    return f"{text.rstrip()}\n{end}" if end else text.rstrip()


# -- what a stranger wrote ----------------------------------------------------------------------------------------
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:.|\n(?!\s*\n))+?(?<!`)\1(?!`)")
_MATH = re.compile(
    r"\$\$.+?\$\$|\\\[.+?\\\]|\\\(.+?\\\)|(?<![\\$])\$(?=[^\s$])(?:\\.|[^$\\\n]|\n(?!\s*\n))*?(?<=[^\s\\])\$(?!\d)",
    re.DOTALL,
)
_TAG = re.compile(r"<(?=[a-zA-Z/!?])(?!(?:br|hr) ?/?>|(?:https?://|mailto:)[^\s<>]*>)", re.IGNORECASE)
_PAIRED = re.compile(r"<(sub|sup|kbd)>([^<\n]*)</\1>")
_LINK = re.compile(
    r"\]\((?=\s*<?\s*(?![\s<)])(?!https?:|mailto:|#|/|\.|[\w%-]+(?:[/.?#)\s]|\Z))[^)\n]*)", re.IGNORECASE
)
_DEFINITION = re.compile(
    r"^( {0,3})\[(?=[^\]\n]+\]:\s*<?(?![\s<])(?!https?:|mailto:|#|/))", re.IGNORECASE | re.MULTILINE
)
_MONEY = re.compile(r"(?<![\\$])\$(?=\d)")


def plain(text: str) -> str:
    """Return `text` without terminal codes and characters that reorder what is read."""
    return _CONTROL.sub("", text)


def safe(text: str) -> str:
    """Return markdown that shows the same and does nothing: no raw HTML, no images, no links but to the web or mail.

    Code is left alone. A dollar before a number that begins no formula is kept from being read as one.
    """
    return "".join(part if is_code else _outside_fences(part) for is_code, part in _fenced(plain(text)))


def _fenced(text: str) -> Iterator[tuple[bool, str]]:
    fence = ""
    part: list[str] = []
    for line in text.splitlines(keepends=True):
        match = _FENCE.match(line)
        if not fence and match:
            yield False, "".join(part)
            fence, part = match[1], [line]
        elif fence and match and match[1].startswith(fence) and not line[match.end() :].strip():
            yield True, "".join([*part, line])
            fence, part = "", []
        else:
            part.append(line)
    yield bool(fence), "".join(part)


def _outside_fences(text: str) -> str:
    return _split(text, _CODE_SPAN, lambda code: code, _outside_code)


def _outside_code(text: str) -> str:
    dollars = text.count("$")
    return _split(text, _MATH, _formula, lambda prose: _prose(prose, money=dollars > 1))


def _split(text: str, inner: re.Pattern[str], inside: Callable[[str], str], outside: Callable[[str], str]) -> str:
    parts, end = [], 0
    for match in inner.finditer(text):
        parts += [outside(text[end : match.start()]), inside(match[0])]
        end = match.end()
    return "".join([*parts, outside(text[end:])])


def _formula(text: str) -> str:
    return re.sub(r"<(?=[a-zA-Z/!?])", "< ", text)


def _prose(text: str, *, money: bool) -> str:
    text = _PAIRED.sub("\0\\1\1\\2\0/\\1\1", text)
    text = _TAG.sub("&lt;", text)
    text = re.sub("\0(/?\\w+)\1", r"<\1>", text)
    text = text.replace("![", "[")
    text = _DEFINITION.sub(r"\1\\[", _LINK.sub(r"]\\(", text))
    return _MONEY.sub(r"<span>\\$</span>", text) if money else text


def escaped(text: str) -> str:
    """Return a line of our own as markdown that shows exactly it."""
    text = re.sub(r"([\\`*_\[\]~|])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))
    return text.replace("$", r"<span>\$</span>")
