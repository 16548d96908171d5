"""What may stand on a magic's line: one table, from which parsing, completion and help are made.

Options come first; what follows them is text, byte for byte. IPython's own parser would split the text too, and
answers a slip with an error that a headless run takes for success.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from keyword import iskeyword
from typing import Any, Literal, get_args

from larik_nb.errors import ConfigError
from larik_nb.types import Effort

Kind = Literal["flag", "model", "effort", "session", "variable", "file", "format", "name", "text"]

Format = Literal["markdown", "code", "json", "table", "html", "image", "text"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its long name, its value's kind and what it does."""

    name: str
    kind: Kind
    does: str
    short: str = ""
    value: str = ""
    repeats: bool = False

    @property
    def spelled(self) -> str:
        """The option as help shows it."""
        names = f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"
        return f"{names} {self.value}".rstrip()


OPTIONS = (
    Option("model", "model", "ask this model for once: provider/model, or a name that stands for one", "m", "MODEL"),
    Option("effort", "effort", f"how hard to think: {', '.join(get_args(Effort))}", value="E"),
    Option("session", "session", "the conversation to go on with; a new name begins one", value="S"),
    Option("system", "text", "instructions ahead of the conversation, kept for its next turns", value="TEXT"),
    Option("new", "flag", "begin the conversation afresh"),
    Option("out", "variable", "put the answer (a Message; with --format its value) into this variable", "o", "VAR"),
    Option(
        "attach", "file", "send this file too: text, code, CSV, image, PDF; may be repeated", value="FILE", repeats=True
    ),
    Option("format", "format", "ask for an answer of this kind; -o then keeps what it holds", value="KIND"),
    Option("schema", "name", "ask for JSON that fits this schema, model or dataclass of the notebook", value="NAME"),
    Option("insert", "flag", "put the code of the answer into cells below"),
    Option("preview", "flag", "show what would be sent and what it may cost; send nothing"),
    Option("raw", "flag", "send the text as it is: {names} and @files are not replaced"),
    Option("record", "file", "add the exchange to this recording", value="FILE"),
    Option("replay", "file", "answer from this recording: no network, no key, no cost", value="FILE"),
    Option("prompt", "text", "the text, quoted; the line form of a cell's body", "p", "TEXT"),
    Option("help", "flag", "show this", "h"),
)
_BY_NAME = {f"--{option.name}": option for option in OPTIONS} | {f"-{o.short}": o for o in OPTIONS if o.short}

_TOKEN = re.compile(r"""\s*((?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'])+)""")
_QUOTED = re.compile(r""""((?:\\.|[^"\\])*)"|'([^']*)'""")
_ESCAPED = re.compile(r'\\(["\\])')


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A parsed line: the options' values, and the text behind them."""

    text: str = ""
    model: str | None = None
    effort: Effort | None = None
    session: str | None = None
    system: str | None = None
    out: str | None = None
    record: str | None = None
    replay: str | None = None
    prompt: str | None = None
    attach: tuple[str, ...] = ()
    format: Format | None = None
    schema: str | None = None
    insert: bool = False
    preview: bool = False
    raw: bool = False
    new: bool = False
    help: bool = False


def parse(line: str) -> Asked:
    """Read a magic's line.

    Raises:
        ConfigError: An unknown option, with the nearest ones; a value that is missing or cannot be.
    """
    values: dict[str, Any] = {}
    rest = line
    while (match := _TOKEN.match(rest)) and match[1].startswith("-") and match[1] != "-":
        rest = rest[match.end() :]
        if match[1] == "--":
            break
        name, equals, value = match[1].partition("=")
        option = _BY_NAME.get(name) or _fail(name)
        if option.kind == "flag":
            values[option.name] = True
            continue
        if not equals:
            value, rest = _next(option, rest)
        checked = _checked(option, _unquoted(value))
        values[option.name] = (*values.get(option.name, ()), checked) if option.repeats else checked
    if values.get("record") and values.get("replay"):
        raise ConfigError("--record and --replay exclude each other")
    if values.get("schema") and values.setdefault("format", "json") != "json":
        raise ConfigError(f"--schema is for JSON, not for --format {values['format']}", remedy="Leave --format out")
    return Asked(text=rest.strip(), **values)


def _next(option: Option, rest: str) -> tuple[str, str]:
    match = _TOKEN.match(rest)
    if match is None:
        raise ConfigError(f"--{option.name} wants a value", remedy=f"Write {option.spelled}")
    return match[1], rest[match.end() :]


def _unquoted(token: str) -> str:
    return _QUOTED.sub(lambda m: m[2] if m[1] is None else _ESCAPED.sub(r"\1", m[1]), token)


def _checked(option: Option, value: str) -> str:
    if option.kind == "effort" and value not in get_args(Effort):
        raise ConfigError(f'unknown effort "{value}"', remedy=_one_of(value, get_args(Effort)))
    if option.kind == "format" and value not in get_args(Format):
        raise ConfigError(f'unknown format "{value}"', remedy=_one_of(value, get_args(Format)))
    if option.kind in ("variable", "name") and (not value.isidentifier() or iskeyword(value)):
        raise ConfigError(f'"{value}" cannot be a variable\'s name')
    return value


def _one_of(value: str, known: Sequence[str]) -> str:
    near = get_close_matches(value, known, n=1)
    return f"{f'Closest: {near[0]}. ' if near else ''}One of {', '.join(known)}"


def _fail(name: str) -> Option:
    near = get_close_matches(name, _BY_NAME, n=3, cutoff=0.6)
    closest = f"Closest: {', '.join(near)}" if near else f"Options: {', '.join(f'--{o.name}' for o in OPTIONS)}"
    raise ConfigError(f'unknown option "{name}"', remedy=f"{closest}. A text that begins with a dash goes behind --")
