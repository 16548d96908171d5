"""The widgets' JavaScript and CSS: plain files, joined as text, so that nothing is built and nothing is fetched."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

_STATIC = files("larik_nb.notebook.widgets") / "static"


@cache
def esm(name: str, *parts: str) -> str:
    """Return the module of the widget `name`: what all share, the parts it shares with some, then its own text."""
    return "\n".join(_read(f"{file}.js") for file in ("common", *parts, name))


@cache
def css(name: str | None = None, *parts: str) -> str:
    """Return the style all share, then that of the parts, then the widget's own where `static/NAME.css` is one."""
    own = [f"{name}.css"] if name and (_STATIC / f"{name}.css").is_file() else []
    return "\n".join(map(_read, ["style.css", *(f"{part}.css" for part in parts), *own]))


def _read(file: str) -> str:
    """Return a file without its indentation: the page is sent it with every widget, and no text in it spans lines."""
    return "\n".join(map(str.strip, (_STATIC / file).read_text(encoding="utf-8").splitlines()))
