"""An answer of a wanted kind: what the model is told, and what is made of what it says.

The answer itself is shown as it came, whatever follows. JSON is read and checked, a table is read into rows, code is
taken out of its fences, HTML and SVG are shown in a frame that runs no script and reaches nothing.
"""

from __future__ import annotations

import base64
import html
import json
import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from larik_nb.errors import AnswerError, ConfigError
from larik_nb.notebook import insert

if TYPE_CHECKING:
    from larik_nb.notebook.magics import LarikMagics
    from larik_nb.notebook.options import Asked
    from larik_nb.types import Message

_ASKS = {
    "markdown": "",
    "text": "Answer in plain text, without any markup.",
    "code": "Answer with one fenced code block and nothing else.",
    "json": "Answer with one JSON value in a fenced json block and nothing else.",
    "table": "Answer with one markdown table and nothing else: a head, one row per item, plain numbers without units.",
    "html": "Answer with one fenced html block and nothing else: a fragment with inline styles, without scripts and "
    "without anything from the network.",
    "image": "Answer with an image. If you can only write, answer with one fenced svg block and nothing else.",
}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]*)")


def instruction(asked: Asked, names: Mapping[str, Any]) -> str:
    """Return what is added to the question for the options' format; empty for none.

    Raises:
        ConfigError: The schema named is none.
    """
    if asked.format is None:
        return ""
    if asked.schema is None:
        return _ASKS[asked.format]
    try:
        schema = json.dumps(_schema(asked.schema, names), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"--schema: {asked.schema} is no JSON: {error}", remedy="Mend it") from None
    return f"{_ASKS['json']} It has to fit this JSON Schema:\n{schema}"


def keep(magics: LarikMagics, asked: Asked, message: Message) -> None:
    """Do with the finished answer what the options say; it is on screen already.

    Raises:
        AnswerError: It is not what was asked for; the variable is then unset, and the error keeps the answer.
    """
    value: Any = message
    if asked.format is not None:
        names = magics.ip.user_ns
        try:
            value = parsed(asked.format, message, names, schema=asked.schema)
        except AnswerError:
            if asked.out:
                names.pop(asked.out, None)
            raise
        _show(magics, asked.format, message, value)
    if asked.out:
        magics.ip.user_ns[asked.out] = value
    if asked.insert:
        insert.below(magics, insert.code_blocks(message.text))


def parsed(kind: str, message: Message, names: Mapping[str, Any], *, schema: str | None = None) -> Any:
    """Return the value that an answer holds.

    Args:
        kind: One of the formats.
        message: The answer.
        names: The notebook's variables, among them what `schema` names.
        schema: Name of a JSON schema (a dict), a pydantic model or a dataclass.

    Returns:
        json: the value, an instance where `schema` names a class; table: a DataFrame where pandas is loaded, else rows as
        dicts; image: its bytes; all else: a text.

    Raises:
        AnswerError: The answer holds no such thing.
    """
    text = message.text
    if kind == "json":
        return _fitting(_json(text), schema, names, text)
    if kind == "image":
        return _image(message)
    return _READ[kind](text)


def _fail(text: str, what: str, remedy: str = "Ask again, or a larger model") -> AnswerError:
    return AnswerError(f"{what}. {remedy}; error.raw has the answer", raw=text)


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the fenced blocks of an answer, each with its language; one that was cut off ends where the answer does."""
    found: list[tuple[str, str]] = []
    fence, kind = "", ""
    body: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        if fence and match and match[1].startswith(fence) and not line[match.end(1) :].strip():
            found.append((kind, "\n".join(body)))
            fence = ""
        elif fence:
            body.append(line)
        elif match and "`" not in line[match.end(1) :]:
            fence, kind, body = match[1], match[2].lower(), []
    return [*found, (kind, "\n".join(body).rstrip("\n"))] if fence else found


def _code(text: str) -> str:
    found = [code for _, code in blocks(text)]
    if not found:
        raise _fail(text, "the answer holds no code block")
    return "\n\n".join(found)


# -- json ---------------------------------------------------------------------------------------------------------
def _json(text: str) -> Any:
    """Return the JSON value of an answer: alone, in a fence, or the one that stands among words."""
    candidates = [text, *(code for kind, code in blocks(text) if kind in ("json", "")), *_bracketed(text)]
    reason = "there is none"
    for candidate in candidates:
        try:
            return json.loads(candidate, parse_constant=_no_constant, parse_float=_finite)
        except ValueError as error:
            reason = str(error)
        except RecursionError:
            reason = "it is nested too deeply"
    raise _fail(text, f"the answer holds no valid JSON ({reason})")


def _bracketed(text: str) -> list[str]:
    first = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    last = max(text.rfind("}"), text.rfind("]"))
    return [text[first : last + 1]] if 0 <= first < last else []


def _no_constant(word: str) -> Any:
    msg = f"{word} is no JSON"
    raise ValueError(msg)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if isfinite(number) else _no_constant(digits)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and callable(getattr(kind, "model_json_schema", None))


def _is_dataclass(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__dataclass_fields__")


def _adapter(kind: type) -> Any:
    """Return what reads a dataclass.

    Raises:
        ConfigError: pydantic is not installed.
    """
    try:
        from pydantic import TypeAdapter
    except ImportError:
        raise ConfigError("--schema with a dataclass needs pydantic", remedy="%pip install pydantic") from None
    return TypeAdapter(kind)


def _schema(name: str, names: Mapping[str, Any]) -> Any:
    if name not in names:
        raise ConfigError(
            f"--schema: {name} is not defined",
            remedy="Run the cell that defines it first: a JSON schema (a dict), a pydantic model or a dataclass",
        )
    kind = names[name]
    if isinstance(kind, dict):
        return kind
    if _is_model(kind):
        return kind.model_json_schema()
    if _is_dataclass(kind):
        return _adapter(kind).json_schema()
    what = f"--schema: {name} is no JSON schema (a dict), pydantic model or dataclass but {type(kind).__name__}"
    raise ConfigError(what, remedy="Name one of these")


def _fitting(value: Any, schema: str | None, names: Mapping[str, Any], text: str) -> Any:
    """Return the value checked, or the instance made of it."""
    if schema is None:
        return value
    kind = names[schema]
    if isinstance(kind, dict):
        return _checked(value, kind, schema, text)
    read = kind.model_validate if _is_model(kind) else _adapter(kind).validate_python
    try:
        return read(value)
    except ValueError as error:  # pydantic's ValidationError is one
        raise _fail(text, f"the answer does not fit {schema}: {_first_lines(str(error))}") from error
    except Exception as error:  # the user's own validators run here, and may raise anything
        why = _first_lines(f"{type(error).__name__}: {error}")
        raise _fail(text, f"{schema} failed to read the answer: {why}", "Mend it") from error


def _checked(value: Any, schema: dict[str, Any], name: str, text: str) -> Any:
    try:
        jsonschema: Any = import_module("jsonschema")
        nowhere = import_module("referencing").Registry()  # or it would fetch what a schema refers to
    except ImportError:
        raise ConfigError("--schema with a dict needs jsonschema ≥ 4.18", remedy="%pip install -U jsonschema") from None
    try:
        validator = jsonschema.validators.validator_for(schema)
        validator.check_schema(schema)
        wrong = jsonschema.exceptions.best_match(validator(schema, registry=nowhere).iter_errors(value))
    except jsonschema.exceptions.SchemaError as error:
        raise ConfigError(f"--schema: {name} is no valid JSON schema: {error.message}", remedy="Mend it") from None
    except RecursionError:
        raise _fail(text, f"the answer is nested too deeply to be checked, or {name} refers to itself") from None
    except Exception as error:  # a schema that is a dict may hold anything, and refer to anywhere
        why = _first_lines(f"{type(error).__name__}: {error}")
        raise ConfigError(f"--schema: {name} cannot be used: {why}", remedy="Mend it") from error
    if wrong is not None:
        raise _fail(text, f"the answer does not fit {name}: at {wrong.json_path}: {_first_lines(wrong.message)}")
    return value


def _first_lines(text: str) -> str:
    return " ".join(text.split())[:300]


# -- tables -------------------------------------------------------------------------------------------------------
_NUMBER = re.compile(r"[-+]?(?:\d+|\d*\.\d+|\d+\.)(?:[eE][-+]?\d+)?")


def _table(text: str) -> Any:
    rows = _rows(text)
    pandas = sys.modules.get("pandas")
    return pandas.DataFrame(rows) if pandas is not None else rows


def _rows(text: str) -> list[dict[str, Any]]:
    lines = text.splitlines()
    at = next((n for n in range(1, len(lines)) if _is_rule(lines[n]) and "|" in lines[n - 1]), None)
    if at is None:
        raise _fail(text, "the answer holds no table")
    head = _apart(_cells(lines[at - 1]))
    body: list[list[str]] = []
    for line in lines[at + 1 :]:
        if "|" not in line:
            break
        cells = _cells(line)
        body.append([*cells[: len(head)], *[""] * (len(head) - len(cells))])
    columns = [_typed(list(column)) for column in zip(*body, strict=True)] if body else [[] for _ in head]
    return [dict(zip(head, row, strict=True)) for row in zip(*columns, strict=True)]


def _apart(names: list[str]) -> list[str]:
    """Return the names of columns, each of which there is once."""
    counts = dict.fromkeys(names, 0)
    apart = []
    for name in names:
        counts[name] += 1
        apart.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return apart


def _is_rule(line: str) -> bool:
    return "|" in line and "-" in line and all(re.fullmatch(r":?-+:?", cell) for cell in _cells(line))


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def _typed(column: list[str]) -> list[Any]:
    """Return a column as numbers where all of it is; an empty cell among them is None."""
    filled = [
        cell.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", cell) else cell for cell in column
    ]
    if not any(filled) or not all(_NUMBER.fullmatch(cell) for cell in filled if cell):
        return list(column)
    whole = all(re.fullmatch(r"[-+]?\d{1,300}", cell) for cell in filled if cell)
    numbers = [(int(cell) if whole else float(cell)) if cell else None for cell in filled]
    return list(column) if inf in map(abs, filter(None, numbers)) else numbers


# -- html and images ----------------------------------------------------------------------------------------------
def _html(text: str) -> str:
    found = [code for kind, code in blocks(text) if kind in ("html", "xml", "svg", "")]
    page = found[0] if found else text.strip()
    if "<" not in page:
        raise _fail(text, "the answer holds no HTML")
    return page


_ACTS = re.compile(
    r"<(?=/?(?:script|link|meta|base|i?frame|frameset|object|embed|applet|form|portal)\b)", re.IGNORECASE
)
_LEADS = re.compile(r"\bhref(?=\s*=\s*(?![\"']?#))", re.IGNORECASE)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"


def frame(page: str) -> str:
    """Return HTML that shows `page` in a frame without scripts, forms, links, or any way to the network.

    The frame's sandbox and policy do that in every browser; tags that act and links that lead away are text besides,
    for a click, or a name that is looked up ahead of one, falls under neither.
    """
    page = _LEADS.sub("data-href", _ACTS.sub("&lt;", page))
    inner = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><base target="_blank">{page}'
    return (
        f'<iframe sandbox="" referrerpolicy="no-referrer" loading="lazy" title="answer as HTML" '
        f'style="width:100%;height:24em;border:1px solid #8884;background:#fff" srcdoc="{html.escape(inner)}"></iframe>'
    )


_DATA_URL = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,([A-Za-z0-9+/=\s]{20,})")


def _image(message: Message) -> bytes:
    for block in message.blocks:
        if block.type == "image" and block.data:
            return _picture(block.data, message.text)
    text = message.text
    if match := _DATA_URL.search(text):
        return _picture(match[1], text)
    drawing = next((code for kind, code in blocks(text) if kind in ("svg", "xml", "html") and "<svg" in code), None)
    if drawing is None and text.lstrip().startswith("<svg"):
        drawing = text.strip()
    if drawing is None:
        raise _fail(text, "the answer holds no image", "Ask a model that draws")
    return drawing.encode("utf-8", "replace")


def _picture(data: str, text: str) -> bytes:
    from larik_nb.notebook import _images

    try:
        image = base64.b64decode(data)
    except ValueError:
        image = b""
    if _images.media_type(image) is None:
        raise _fail(text, "the answer's image is damaged")
    return image


_READ: dict[str, Callable[[str], Any]] = {
    "markdown": str,
    "text": str,
    "code": _code,
    "table": _table,
    "html": _html,
}


def _show(magics: LarikMagics, kind: str, message: Message, value: Any) -> None:
    """Show what the answer's own text does not: the page it describes, the image it holds."""
    from larik_nb.notebook import _images

    if kind == "html":
        _publish(magics, {"text/html": frame(value), "text/plain": "(the page above, in a frame)"})
    elif kind == "image" and (media := _images.media_type(value)):
        _publish(magics, {media: base64.b64encode(value).decode(), "text/plain": f"({media}, {len(value):,} bytes)"})
    elif kind == "image":
        _publish(magics, {"text/html": frame(value.decode()), "text/plain": "(the drawing above, in a frame)"})


def _publish(magics: LarikMagics, data: dict[str, str]) -> None:
    magics.ip.display_pub.publish(data=data, metadata={})
