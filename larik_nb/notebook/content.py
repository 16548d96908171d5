"""What a question is made of: the text as written, its names replaced, and what goes with it.

`build` is called once a turn, before anybody is asked, and sends nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from larik_nb.notebook import complete, interpolate

if TYPE_CHECKING:
    from larik_nb.agent.session import Route
    from larik_nb.catalog import Catalog
    from larik_nb.notebook.options import Asked
    from larik_nb.types import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is sent.

    Attributes:
        parts: Texts and blocks in their order, as `Session.stream` takes them.
        notes: What went otherwise than it may have been meant, a line each, to be shown above the answer.
    """

    parts: tuple[str | Block, ...]
    notes: tuple[str, ...] = ()


def build(shell: Any, text: str, asked: Asked, *, route: Route, catalog: Catalog) -> Content:
    """Return what `text` sends.

    Args:
        shell: Its variables may be named.
        text: The question as it was written.
        asked: The options beside it.
        route: Who is asked, which decides what can be sent; it is not asked here.
        catalog: What is known of models.

    Raises:
        ConfigError: A value cannot be put into words.
    """
    if asked.raw:
        return Content(parts=(text,))
    notes: list[str] = []
    names = interpolate.undefined(text, shell.user_ns)
    if names:
        are, they = ("is", "it stands") if len(names) == 1 else ("are", "they stand")
        notes.append(f"{', '.join(names)} {are} not defined; sent as {they}")
    filled = interpolate.expand(text, visible(shell), note=notes.append)
    return Content(parts=(filled,), notes=tuple(notes))


def visible(shell: Any) -> dict[str, Any]:
    """Return the notebook's own variables."""
    names = shell.user_ns
    left_out = complete.hidden(names, shell.user_ns_hidden)
    return {name: value for name, value in names.items() if name not in left_out}
