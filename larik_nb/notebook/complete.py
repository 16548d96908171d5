"""Completion for the magics: options and their values on the line, {variables} in the text, silence in prose."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from larik_nb.notebook.options import OPTIONS, Format, Option
from larik_nb.types import Effort

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext

_LINE = re.compile(r"\s*%{1,2}(larik|model|routing|effort|model_settings)(?:\s+(.*))?\Z", re.DOTALL)
_FIELD = re.compile(r"(?<!\{)\{(\w*)\Z")
_FORM = re.compile(r"(?<!\{)\{([^\W\d]\w*)!([a-z]*)\Z")
_FILE = re.compile(r"(?<![\w@/.:+`~\\-])@([^\s\"'`<>(){}\[\],;:!?*|]*)\Z")
_WORD = re.compile(r"\S*\Z")
_OPTIONS = {f"--{o.name}": o for o in OPTIONS} | {f"-{o.short}": o for o in OPTIONS if o.short}


class _Silence(list[Any]):
    """No completion at all: IPython lets a matcher silence the others only when it seems to have something."""

    def __len__(self) -> int:
        return 1


class Completer:
    """Answers what could follow.

    Args:
        names: The notebook's variables.
        verbs: Words after `%larik` that are commands.
        sessions: Names of the conversations.
    """

    def __init__(
        self, *, names: Callable[[], Iterable[str]], verbs: Iterable[str], sessions: Callable[[], Iterable[str]]
    ) -> None:
        self._names = names
        self._verbs = tuple(verbs)
        self._sessions = sessions

    def __call__(self, context: CompletionContext) -> dict[str, Any]:
        """The matcher, as IPython calls it."""
        found = self.matches(
            context.full_text, context.cursor_line, context.line_with_cursor[: context.cursor_position]
        )
        if found is None:
            return {"completions": [], "suppress": False}
        from IPython.core.completer import SimpleCompletion

        fragment, words, kind = found
        starts = [SimpleCompletion(text=word, type=kind) for word in words if word.startswith(fragment)]
        return {"completions": starts or _Silence(), "suppress": True, "matched_fragment": fragment}

    def matches(self, cell: str, line_number: int, line: str) -> tuple[str, list[str], str] | None:
        """Return the fragment before the cursor, what it may become and of what kind; None where it is not for us.

        Args:
            cell: The whole cell.
            line_number: The cursor's line.
            line: That line up to the cursor.
        """
        if field := _FIELD.search(line):
            if self._is_ours(cell, line):
                return field[1], self._variables(), "variable"
            return None
        if (form := _FORM.search(line)) and self._is_ours(cell, line):
            return form[2], self._forms(form[1]), "form"
        if (file := _FILE.search(line)) and self._is_ours(cell, line):
            return file[1], files(file[1], Path.cwd()), "file"
        if match := _LINE.match(line):
            return self._on_line(match[1], match[2] or "") if match[2] is not None else None
        return ("", [], "text") if line_number and cell.lstrip().startswith("%%larik") else None

    @staticmethod
    def _is_ours(cell: str, line: str) -> bool:
        return cell.lstrip().startswith("%%larik") or line.lstrip().startswith("%larik")

    def _variables(self) -> list[str]:
        return sorted(name for name in self._names() if not name.startswith("_"))

    def _forms(self, name: str) -> list[str]:
        from larik_nb.notebook import describe

        names = self._names()
        return list(describe.forms(names[name])) if isinstance(names, Mapping) and name in names else []

    def _on_line(self, magic: str, rest: str) -> tuple[str, list[str], str] | None:
        fragment = _WORD.search(rest)[0]  # type: ignore[index]  # the pattern always matches
        before = rest[: len(rest) - len(fragment)].split()
        if magic == "model" or (before == ["model"]):
            return fragment, models(), "model"
        if magic == "routing" or before[:1] == ["routing"]:
            return self._edit(fragment)
        if magic == "effort" or before == ["effort"]:
            return fragment, [*get_args(Effort), "auto"], "effort"
        if magic == "model_settings" or before[:1] == ["model_settings"]:
            return self._setting(fragment, first=before in ([], ["model_settings"]))
        option = _OPTIONS.get(before[-1]) if before else None
        if option is not None and option.kind != "flag":
            return self._value(option, fragment)
        if fragment.startswith("-"):
            return (fragment, [f"--{o.name}" for o in OPTIONS] + [f"-{o.short}" for o in OPTIONS if o.short], "option")
        return fragment, list(self._verbs) if not before else [], "command"

    @staticmethod
    def _edit(fragment: str) -> tuple[str, list[str], str]:
        """Return roles and budget before the =, models behind it."""
        name, equals, value = fragment.partition("=")
        if equals:
            return value, models(), "model"
        return name, [f"{role}=" for role in (*roles(), "budget")] + ["preset", "suggest"], "role"

    @staticmethod
    def _setting(fragment: str, *, first: bool) -> tuple[str, list[str], str]:
        """Return models and settings before the =, efforts behind it."""
        from larik_nb.routing.model_edits import SETTINGS

        name, equals, value = fragment.partition("=")
        if equals:
            return value, list(get_args(Effort)) if name == "reasoning_effort" else [], "effort"
        return fragment, [*(f"{setting}=" for setting in SETTINGS), *(models() if first else ())], "setting"

    def _value(self, option: Option, fragment: str) -> tuple[str, list[str], str] | None:
        match option.kind:
            case "model":
                return fragment, models(), "model"
            case "effort":
                return fragment, list(get_args(Effort)), "effort"
            case "session":
                return fragment, sorted(self._sessions()), "session"
            case "variable":
                return fragment, self._variables(), "variable"
            case "name":
                return fragment, self._variables(), "variable"
            case "format":
                return fragment, list(get_args(Format)), "format"
            case "file" if option.name == "attach":
                return fragment, files(fragment, Path.cwd()), "file"
            case "file":
                return None
        return fragment, [], "text"


_MOST_FILES = 200


def files(fragment: str, folder: Path) -> list[str]:
    """Return the files and folders that a path may become, folders with a slash; hidden ones once their dot is typed."""
    head, _, begun = fragment.rpartition("/")
    above = f"{head}/" if "/" in fragment else ""
    try:
        with os.scandir(folder / Path(above or ".").expanduser()) as there:
            found = [
                above + entry.name + "/" * entry.is_dir()
                for entry in islice(there, 10_000)
                if entry.name.startswith(begun) and (begun.startswith(".") or not entry.name.startswith("."))
            ]
    except OSError:
        return []
    return sorted(found)[:_MOST_FILES]


def roles() -> tuple[str, ...]:
    """Return every role's name."""
    from larik_nb.config import Config
    from larik_nb.providers import role_names

    return role_names(Config.load())


def models() -> list[str]:
    """Return the specs worth offering: roles, then those of providers with a key, then what else is known."""
    from larik_nb.config import Config
    from larik_nb.providers import credentials, role_names
    from larik_nb.providers._presets import names, route

    config = Config.load()
    routes = {name: here for name in names(config) if (here := route(name, config))}
    usable = {name for name, here in routes.items() if credentials.find(here, config) or here.key_optional}
    listed = [model.spec for model in config.catalog.models]
    defaults = [f"{name}/{here.default_model}" for name, here in routes.items() if here.default_model]
    known = sorted(dict.fromkeys([*listed, *defaults]), key=lambda spec: (spec.partition("/")[0] not in usable, spec))
    return [*role_names(config), *known]


def hidden(names: Mapping[str, Any], shown: Mapping[str, Any]) -> set[str]:
    """Return the names the shell itself put into the notebook, which are nobody's variables."""
    return {name for name in names if name in shown and names[name] is shown[name]}
