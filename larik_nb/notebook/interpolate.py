"""{name} in a prompt: replaced where it names something in the notebook, left as it is where it does not.

One pass: what a value brings in is never looked at again. `{name}`, `{name.attribute}`, `{name[0]}`, `{name["key"]}`
and their combinations are all there is; a dictionary, a set of TypeScript imports or a doubled brace changes by no byte.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from larik_nb.errors import ConfigError

_NAME = r"[^\W\d]\w*"
_STEP = rf"""\.{_NAME}|\[-?\d+\]|\['[^'\\\n]*'\]|\["[^"\\\n]*"\]"""
_FIELD = re.compile(rf"(?<!\{{)\{{({_NAME})((?:{_STEP})*)\}}(?!\}})")
_STEPS = re.compile(_STEP)

_LONE = re.compile(
    rf"""(?<![\w{{}}\\^$])(?<!\bimport )(?<!\bexport )(?<!\bconst )(?<!\blet )(?<!\bvar )"""
    rf"""\{{({_NAME})\}}(?![\w{{}}(]|\s*=|\s*from\s)"""
)
"""A name in braces that stands as a word among words: no formula, no template string, no import."""
_DATA = re.compile(r"""[{,]\s*["'][^"'\n]*["']\s*:""")
_INLINE_CODE = re.compile(r"`+[^`\n]*`+")

_LONGEST = 10_000
"""Characters of a value's own words; a text is never cut."""
_ROWS = 10


class _Unresolvable(Exception):
    pass


def expand(
    text: str,
    names: Mapping[str, Any],
    describe: Callable[[Any], str] | None = None,
    *,
    note: Callable[[str], None] | None = None,
) -> str:
    """Return `text` with its resolvable fields replaced by `describe` of their values.

    Args:
        text: The prompt.
        names: What may be named.
        describe: Puts a value into words; `described` by default.
        note: Told, in one line each, what became of a value other than the reader may think.

    Raises:
        ConfigError: A value cannot be put into words.
    """
    words = describe or described

    def field(match: re.Match[str]) -> str:
        try:
            value = _value(match[1], match[2], names)
        except _Unresolvable:
            return match[0]
        if note is not None and _is_picture(value):
            note(f"{match[0]} is a picture, of which only a description in words was sent; pictures come later")
        try:
            said = words(value)
        except Exception as error:  # the value's own code again
            what = f"{match[0]} cannot be put into words ({type(error).__name__})"
            raise ConfigError(what, remedy="Turn it into text first, or use --raw") from error
        return said + _gap(said, text[match.end() :]) if _is_tabular(value) else said

    return _FIELD.sub(field, text)


def undefined(text: str, names: Mapping[str, Any]) -> list[str]:
    """Return the names that `text` seems to mean as values and that are none, in their order, each once.

    Only a name alone in braces, among words: what is code, data or a formula has braces of its own.
    """
    from larik_nb.notebook import markdown

    if not _LONE.search(text):
        return []
    prose = _INLINE_CODE.sub("", markdown.prose(text))
    if _DATA.search(prose):
        return []
    found = dict.fromkeys(_LONE.findall(prose))
    return [name for name in found if name not in names and not hasattr(builtins, name)]


def _gap(table: str, rest: str) -> str:
    """Return the line ends that part a table from what follows, which would be one more of its rows."""
    if not rest.strip() or not table.endswith("|"):
        return ""
    return "\n" * max(0, 2 - (len(rest) - len(rest.lstrip("\n"))))


def _is_picture(value: Any) -> bool:
    """Return whether a value is there to be seen: a figure, a part of one, or an image of one of the usual libraries."""
    kind = type(value)
    drawn = kind.__module__.partition(".")[0] in ("matplotlib", "PIL", "plotly", "altair", "graphviz")
    shows = ("get_figure", "_repr_png_", "_repr_mimebundle_")
    return hasattr(kind, "savefig") or (drawn and any(hasattr(kind, name) for name in shows))


def _value(name: str, steps: str, names: Mapping[str, Any]) -> Any:
    if name not in names or isinstance(names[name], ModuleType):
        raise _Unresolvable
    value = names[name]
    for step in _STEPS.findall(steps):
        try:
            value = getattr(value, step[1:]) if step[0] == "." else value[ast.literal_eval(step[1:-1])]
        except Exception as error:  # the value's own code runs here, and may raise anything
            raise _Unresolvable from error
    return value


def described(value: Any) -> str:
    """Return a value in words for a model: a text as it is, a table as a table, code as code, the rest as its repr."""
    if isinstance(value, str):
        return value
    if isinstance(value, FunctionType | type):
        return _source(value)
    table = _table(value)
    if table is not None:
        return table
    return _cut(str(value) if hasattr(value, "dtype") else repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text) - _LONGEST:,} more characters)"


def _source(value: FunctionType | type) -> str:
    try:
        return inspect.getsource(value).rstrip()
    except (OSError, TypeError):
        return repr(value)


def _table(value: Any) -> str | None:
    """Return a data frame's or series' shape, columns and first rows; None for anything else.

    Known by its shape, so that no library is imported to ask.
    """
    if not _is_tabular(value):
        return None
    if hasattr(value, "to_frame"):
        value = value.to_frame()
    if not (hasattr(value, "columns") and hasattr(value, "shape") and hasattr(value, "head")):
        return None
    head, (rows, _) = value.head(_ROWS), value.shape
    names = [str(name) for name in head.columns]
    # By position: names may be there twice.
    cells = head.rows() if hasattr(head, "rows") else list(head.itertuples(index=False, name=None))
    index = [str(label) for label in head.index] if hasattr(head, "index") else [str(n) for n in range(len(cells))]
    cells = cells or [()] * len(index)
    lines = [
        _row(["", *names]),
        _row(["---"] * (len(names) + 1)),
        *(_row([label, *map(_cell, row)]) for label, row in zip(index, cells, strict=True)),
    ]
    kinds = ", ".join(f"{name} {kind}" for name, kind in zip(names, list(value.dtypes), strict=True))
    shown = f"first {len(cells)} of {rows:,} rows" if rows > len(cells) else f"{rows} rows"
    return _cut(f"{shown}; columns: {kinds}\n\n" + "\n".join(lines))


def _is_tabular(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("pandas", "polars")


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")[:200]
