"""Markdown that is still being written, and markdown that a stranger wrote.

`finished` and `closed` let half an answer be shown without a stray fence; `safe` takes from a model's answer what a
page would act on: raw HTML, images and links to anywhere, control characters, and dollars that only mean money.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""Lines as markdown counts them: a line separator of Unicode's ends none."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_IN_LIST = re.compile(r" {0,3}(?:(?:[-*+]|\d{1,9}[.)]) {1,4})+(?=[`~]{3})")
_HALF_OPENING = re.compile(r"^ {0,3}(?:`+[^`\n]*|~+[^~\n]*)\Z", re.MULTILINE)
_HALF_CLOSING = re.compile(r"^ {0,3}(?:`+|~+)[ \t]*\Z", re.MULTILINE)
_MATH_LINE = re.compile(r"\s*(?:\$\$|\\\[|\\\])")


class _Scan:
    """The state of a text at its end: an open fence or display math, and where its finished blocks end."""

    def __init__(self, text: str) -> None:
        self.fence = ""
        self._indent = 0
        self.math = ""
        self.finished = 0
        self._after_block = False
        offset = 0
        for line in _LINES.findall(text):
            self._line(line, offset)
            offset += len(line)

    def _line(self, line: str, offset: int) -> None:
        if self.fence and self._indent and line.strip() and line[: self._indent].strip():
            self.fence, self._after_block = "", True  # the list item is at its end, and its code with it
        if self.fence:
            self._in_fence(line[self._indent :] or line)
            return
        if self._after_block and line[:1] not in (" ", "\t", "\n", "\r"):
            self.finished = offset
            self._after_block = False
        item = _IN_LIST.match(line)
        indent = item.end() if item else 0
        match = _FENCE.match(line[indent:])
        if match and not (match[1][0] == "`" and "`" in line[indent + match.end() :]):
            self.fence, self._indent = match[1], indent
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
_PARAGRAPH_END = re.compile(r"(\n[ \t]*(?=\n)\s*)")
_TICKS = re.compile(r"`+")
_MATH = re.compile(
    r"\$\$(?:(?!\$\$).)+\$\$|\\\[(?:(?!\\[\[\]]).)+\\\]|\\\((?:(?!\\[()]).)+\\\)"
    r"|(?<![\\$])\$(?=[^\s$])(?:\\.|[^$\\\n]|\n(?!\s*\n))*?(?<=[^\s\\])\$(?!\d)",
    re.DOTALL,
)
_TAG = re.compile(r"<(?=[a-zA-Z/!?])(?!(?:br|hr) ?/?>|(?:https?://|mailto:)[^\s<>]*>)", re.IGNORECASE)
_BREAK_FIRST = re.compile(r"^((?:[^\S\n]|[>*+\-\d.)|#])*)(?=<[bh]r ?/?>)", re.IGNORECASE | re.MULTILINE)
_PAIRED = re.compile(r"<(sub|sup|kbd)>([^<\n]*)</\1>")
_SAFE_ADDRESS = r"(?:https?:|mailto:|#|/|\.|[\w%-]+(?:[/.?#)\s]|\Z))"
_LINK = re.compile(rf"\]\((?=\s*(?:<\s*)?(?![\s<)]|{_SAFE_ADDRESS}))", re.IGNORECASE)
_DEFINITION = re.compile(r"\](?=:\s*<?(?!https?:|mailto:)[^\s<>/?#:&\\]*[:&\\])", re.IGNORECASE)
_IMAGE = re.compile(r"!+(?=\[)")
_LASTING = re.compile(
    r"\\(?=(?:[gex]?def|(?:future)?let|(?:re)?new(?:command|environment)|DeclareMathOperator|require|href|style|class|cssId"
    r"|includegraphics)(?![a-zA-Z]))"
)
"""Commands of TeX that change every formula after them on the page, or that reach out of their own."""
_MONEY = re.compile(r"(?<![\\$])\$(?=\d)")
_TICK_IN_ADDRESS = re.compile(r"<[^<>\s`]*`")


_HALF_LETTER = re.compile(r"[\ud800-\udfff]")
"""Half of a UTF-16 pair, which JSON may hold and no message to a page can."""


def plain(text: str) -> str:
    """Return `text` without terminal codes, characters that reorder what is read, and halves of letters."""
    return _HALF_LETTER.sub("\ufffd", _CONTROL.sub("", text))


def safe(text: str) -> str:
    """Return markdown that shows the same and does nothing: no raw HTML, no images, no links but to the web or mail.

    Code is left alone where every reader of markdown sees code. Where they differ, what could act is taken out of
    what might be code as well. A dollar before a number that begins no formula is kept from being read as one.
    """
    # A carriage return ends a line for some readers only.
    text = plain(text).replace("\r\n", "\n").replace("\r", "\n")
    return "".join(_MADE_SAFE[kind](part) for kind, part in _fenced(text))


_Kind = Literal["code", "prose", "doubt"]


def prose(text: str) -> str:
    """Return the text without its fenced code, and without all that only some readers take for code."""
    return "".join(part for kind, part in _fenced(text) if kind == "prose")


def _fenced(text: str) -> Iterator[tuple[_Kind, str]]:
    """Yield the text's fenced code and what stands between; from the first doubtful fence on all is in doubt."""
    fence, part = "", []
    lines = _LINES.findall(text)
    offset = 0
    for number, line in enumerate(lines):
        match, at = _FENCE.match(line), offset
        offset += len(line)
        if fence:
            part.append(line)
            behind = line[match.end() :] if match and match[1].startswith(fence.lstrip()) else "more"
            if not behind.strip(" \n"):
                yield "code", "".join(part)
                fence, part = "", []
            elif not re.sub(r"[`~\s]+", "", behind) or _dedents(line, fence):
                # Some readers end the code here, others do not.
                yield "doubt", "".join([*part, *lines[number + 1 :]])
                return
        elif match and "`" not in line[match.end() :]:
            before = "".join(part)
            if _in_math(before, text, at):
                yield "doubt", "".join([*part, *lines[number:]])
                return
            yield "prose", before
            fence, part = match[0], [line]
        else:
            part.append(line)
    # Some readers see no fence in a last line without its end.
    yield "code" if fence and part[0].endswith("\n") else "prose", "".join(part)


def _dedents(line: str, fence: str) -> bool:
    """Return whether the line stands left of the fence, which ends the code where the fence is in a list."""
    return bool(line.strip()) and not line.startswith(fence[: len(fence) - len(fence.lstrip())])


def _in_math(before: str, text: str, at: int) -> bool:
    """Return whether a formula that began before the fence at `at` may swallow it: some readers look for them first."""
    if before.count("$$") % 2 or before.count("\\[") > before.count("\\]") or "\\begin{" in before:
        return True
    adjacent = _PARAGRAPH_END.split(before)[-1]
    if "$" not in adjacent:
        return False
    end = _PARAGRAPH_END.search(text, at)
    return text.find("$", at, end.start() if end else len(text)) >= 0


def _outside_fences(text: str) -> str:
    parts = _PARAGRAPH_END.split(text)
    return "".join(part if number % 2 else _paragraph(part) for number, part in enumerate(parts))


def _paragraph(text: str) -> str:
    spans = list(_code_spans(text))
    if any(_doubtful(text, *span) for span in spans) or "\\`" in text or _TICK_IN_ADDRESS.search(text):
        return _doubt(text)
    parts, at = [], 0
    for start, end in spans:
        parts += [_outside_code(text[at:start]), text[start:end]]
        at = end
    return "".join([*parts, _outside_code(text[at:])])


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the paragraph's code spans begin and end."""
    runs = [match.span() for match in _TICKS.finditer(text)]
    later: dict[int, list[tuple[int, int]]] = {}
    for start, end in reversed(runs):
        later.setdefault(end - start, []).append((start, end))
    at = 0
    for start, end in runs:
        same = later[end - start]
        same.pop()
        if start < at or not same:
            continue
        at = same[-1][1]
        yield start, at


def _doubtful(text: str, start: int, end: int) -> bool:
    """Return whether a block's, a table cell's or a formula's end may cut the code span for some reader."""
    span = text[start:end]
    return "\n" in span or "|" in span or ("$" in span and "$" in text[:start])


def _outside_code(text: str) -> str:
    dollars = text.count("$")
    parts, end = [], 0
    for match in _MATH.finditer(text):
        parts += [_prose(text[end : match.start()], money=dollars > 1), _formula(match[0])]
        end = match.end()
    return "".join([*parts, _prose(text[end:], money=dollars > 1)])


def _formula(text: str) -> str:
    """Break what would act where a reader sees no formula; TeX does not mind a space."""
    text = _DEFINITION.sub("] ", re.sub(r"<(?=[a-zA-Z/!?])", "< ", _LASTING.sub(r"\\ ", text)))
    return _IMAGE.sub("! ", text).replace("](", "] (")


def _doubt(text: str) -> str:
    return _prose(text, money=False)


def _prose(text: str, *, money: bool) -> str:
    text = _LASTING.sub(r"\\ ", text)
    text = _PAIRED.sub("\0\\1\1\\2\0/\\1\1", text)
    text = _TAG.sub("&lt;", text)
    # A line that begins with a tag would make its paragraph raw HTML.
    text = _BREAK_FIRST.sub("\\1&#8203;", text)
    text = re.sub("\0(/?\\w+)\1", r"<\1>", text)
    text = _IMAGE.sub("", text)
    text = _DEFINITION.sub(r"\\]", _LINK.sub(r"]\\(", text))
    return _MONEY.sub(r"<span>\\$</span>", text) if money else text


_MADE_SAFE: dict[_Kind, Callable[[str], str]] = {"code": str, "prose": _outside_fences, "doubt": _doubt}


def escaped(text: str) -> str:
    """Return a line of our own as markdown that shows exactly it."""
    text = re.sub(r"([\\`*_\[\]~|])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))
    return text.replace("$", r"<span>\$</span>")
