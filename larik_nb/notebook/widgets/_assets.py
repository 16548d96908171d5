"""The widgets' JavaScript and CSS: plain files, joined as text, so that nothing is built and nothing is fetched."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

_STATIC = files("larik_nb.notebook.widgets") / "static"


@cache
def esm(name: str) -> str:
    """Return the module of the widget `name`: what all share, then its own text, which exports `render`."""
    return "\n".join((_read("common.js"), _read(f"{name}.js")))


@cache
def css(name: str | None = None) -> str:
    """Return the style all share, followed by the widget's own where `static/NAME.css` is one."""
    own = _STATIC / f"{name}.css"
    return "\n".join([_read("style.css"), *([_read(own.name)] if name and own.is_file() else [])])


def _read(file: str) -> str:
    return (_STATIC / file).read_text(encoding="utf-8")
