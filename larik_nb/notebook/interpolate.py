"""{name} in a prompt: replaced where it names something in the notebook, left as it is where it does not.

One pass: what a value brings in is never looked at again. `{name}`, `{name.attribute}`, `{name[0]}`, `{name["key"]}`,
their combinations, and a form behind an exclamation mark (`{df!schema}`) are all there is; a dictionary, a set of
TypeScript imports or a doubled brace changes by no byte.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from larik_nb.errors import ConfigError
from larik_nb.notebook import _bounded, describe

_NAME = r"[^\W\d]\w*"
_STEP = rf"""\.{_NAME}|\[-?\d+\]|\['[^'\\\n]*'\]|\["[^"\\\n]*"\]"""
_FIELD = re.compile(rf"(?<!\{{)\{{({_NAME})((?:{_STEP})*)(?:!([a-z]+))?\}}(?!\}})")
_STEPS = re.compile(_STEP)

_LONE = re.compile(
    rf"""(?<![\w{{}}\\^$])(?<!\bimport )(?<!\bexport )(?<!\bconst )(?<!\blet )(?<!\bvar )"""
    rf"""\{{({_NAME})\}}(?![\w{{}}(]|\s*=|\s*from\s)"""
)
"""A name in braces that stands as a word among words: no formula, no template string, no import."""
_DATA = re.compile(r"""[{,]\s*["'][^"'\n]*["']\s*:""")
_OF_LINES = ("stats", "csv")
"""Forms whose lines hang together by what stands above what, and so begin and end on lines of their own."""
_INLINE_CODE = re.compile(r"`+[^`\n]*`+")
_CONVERSIONS = ("r", "s", "a")
"""Forms of Python's own format strings, which a prompt may hold as text."""


class _Unresolvable(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a prompt that names something.

    Attributes:
        written: As it stands there, braces included.
        name: The same without braces and form.
        value: What it names.
        form: The word behind its exclamation mark; empty where there is none.
    """

    written: str
    name: str
    value: Any
    form: str


def expand(
    text: str,
    names: Mapping[str, Any],
    words: Callable[[Field], str] | None = None,
    *,
    note: Callable[[str], None] | None = None,
    shown: Callable[[str], Any] = lambda _: None,
) -> str:
    """Return `text` with its resolvable fields replaced by what `words` says of them.

    Args:
        text: The prompt.
        names: What may be named.
        words: Puts a field's value into words; those of `describe` by default.
        note: Told, in one line each, of a form that its value does not have.
        shown: Returns what a field without a value of that form means all the same; None: nothing.

    Raises:
        ConfigError: A value cannot be put into words.
    """
    say = words or (lambda field: describe.value(field.value, field.form).text)

    def replaced(match: re.Match[str]) -> str:
        form = match[3] or ""
        value, known = _found(match, names)
        if form and form not in known and (instead := shown(match[0])) is not None:
            value = instead
        elif not known or (form and form not in known):
            if known and note is not None and form not in _CONVERSIONS:
                note(f"{match[0]} has no form {form}; sent as it stands. Forms: {', '.join(known)}")
            return match[0]
        said = _said(say, Field(match[0], match[1] + match[2], value, form))
        is_table = form in _OF_LINES or (said.endswith("|") and "| --- |" in said)
        if _bounded.is_a(value, str) or not is_table:
            return said
        return _lead(text[: match.start()]) + said + _gap(text[match.end() :])

    return _FIELD.sub(replaced, text)


def _found(match: re.Match[str], names: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Return what a field names and its forms, of which there are none where it names nothing.

    Raises:
        ConfigError: An attribute or an item is not there in time.
    """
    if match[1] not in names:
        return None, ()
    try:
        value = _bounded.within(_bounded.LIMIT_S, lambda: _value(match[1], match[2], names))
    except _Unresolvable:
        return None, ()
    except _bounded.TooSlowError as error:
        what = f"{match[0]} takes more than {_bounded.LIMIT_S:.0f} seconds to look up"
        raise ConfigError(what, remedy="Keep it in a variable first, or use --raw") from error
    return value, describe.forms(value)


def _said(say: Callable[[Field], str], field: Field) -> str:
    try:
        return say(field)
    except ConfigError:
        raise
    except KeyboardInterrupt:  # the user's: what a value raises on its leash is none
        raise
    except BaseException as error:  # the value's own code runs here, and may raise anything
        what = f"{field.written} cannot be put into words ({type(error).__name__})"
        raise ConfigError(what, remedy="Turn it into text first, or use --raw") from error


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


def _lead(before: str) -> str:
    """Return the line ends that part a table from what stands ahead of it on its line."""
    return "\n\n" if before.rpartition("\n")[2].strip() else ""


def _gap(rest: str) -> str:
    """Return the line ends that part a table from what follows, which would be one more of its rows."""
    return "\n" * max(0, 2 - (len(rest) - len(rest.lstrip("\n")))) if rest.strip() else ""


def _value(name: str, steps: str, names: Mapping[str, Any]) -> Any:
    value = names[name]
    if _bounded.is_a(value, ModuleType):
        raise _Unresolvable
    for step in _STEPS.findall(steps):
        try:
            value = getattr(value, step[1:]) if step[0] == "." else value[ast.literal_eval(step[1:-1])]
        except _bounded.TooSlowError:
            raise
        except BaseException as error:  # the value's own code runs here, and may raise anything
            raise _Unresolvable from error
    return value
