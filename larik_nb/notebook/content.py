"""What a question is made of: the text as written, its names replaced, and the files and pictures that go with it.

`build` is called once a turn, before anybody is asked, and sends nothing itself. Files and pictures come first, then the
question, then what a format asks for. Data are redacted, whatever the options say; the user's own words lose only what
cannot be anything but a key, and not even that with `--raw`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larik_nb.notebook import _images, attach, complete, describe, formats, interpolate, redact
from larik_nb.notebook.pictures import Pictures

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
        names: What each part is, for a preview.
    """

    parts: tuple[str | Block, ...]
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def build(
    shell: Any, text: str, asked: Asked, *, route: Route, catalog: Catalog, pictures: Pictures | None = None
) -> Content:
    """Return what `text` sends.

    Args:
        shell: Its variables may be named.
        text: The question as it was written.
        asked: The options beside it.
        route: Who is asked, which decides what can be sent; it is not asked here.
        catalog: What is known of models.
        pictures: What cells showed.

    Raises:
        ConfigError: A value cannot be put into words, a file cannot be read, or the model does not take one of them.
    """
    made = _Made(route, catalog, pictures or Pictures(shell))
    names = visible(shell)
    wanted = list(asked.attach)
    if "@" in text and not asked.raw:
        files, notes = attach.mentioned(text, Path.cwd())
        made.notes += notes
        wanted += files
    for name in dict.fromkeys(wanted):
        made.file(name)
    question = text if asked.raw else made.question(text, names, shell.user_ns)
    made.add("question", question)
    if tail := formats.instruction(asked, names):
        made.add("format", tail)
    return Content(parts=tuple(made.parts), notes=tuple(dict.fromkeys(made.notes)), names=tuple(made.names))


def instructions(asked: Asked) -> tuple[str | None, tuple[str, ...]]:
    """Return the instructions that a question sets, redacted as the user's own words are, and what to say of that."""
    if asked.system is None or asked.raw:
        return asked.system, ()
    own, notes = _own_words(asked.system, "the instructions")
    return own, tuple(notes)


def _own_words(text: str, what: str) -> tuple[str, list[str]]:
    """Return what the user wrote without its secrets, and what to say of those."""
    own = redact.literal(text)
    return own, [] if own == text else [f"{note}; --raw sends it" for note in redact.told(own, what)]


@dataclass
class _Made:
    """Content on its way."""

    route: Route
    catalog: Catalog
    pictures: Pictures
    parts: list[str | Block] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    images: int = 0

    def add(self, name: str, part: str | Block) -> None:
        self.parts.append(part)
        self.names.append(name)

    def file(self, name: str) -> None:
        attached = attach.read(name, Path.cwd(), self.route, self.catalog)
        self.images += not isinstance(attached.part, str) and attached.part.type == "image"
        self.add(name, attached.part)
        self.notes += attached.notes

    def question(self, text: str, names: Mapping[str, Any], defined: Mapping[str, Any]) -> str:
        """Return the question with its names replaced; the pictures among them become parts."""
        if missing := interpolate.undefined(text, defined):
            are, they = ("is", "it stands") if len(missing) == 1 else ("are", "they stand")
            self.notes.append(f"{', '.join(missing)} {are} not defined; sent as {they}")
        # The user's own words first: what a value brings in is redacted by stricter rules where it is described.
        own, notes = _own_words(text, "your question")
        self.notes += notes
        return interpolate.expand(
            own, names, self.words, note=self.notes.append, shown=lambda written: _shown(written, self.pictures)
        )

    def words(self, named: interpolate.Field) -> str:
        said = describe.value(named.value, named.form)
        self.notes += said.notes
        # Again, for a text that the notebook holds as one is described as it is.
        text = redact.hidden(said.text)
        self.notes += redact.told(text, named.written)
        return "\n".join(filter(None, [text, *(self.image(image, named) for image in said.images)]))

    def image(self, image: Block, named: interpolate.Field) -> str:
        """Take a picture up as a part of its own; what stands for it in the text says which it is."""
        attach.check(image, named.written, self.route, self.catalog)
        self.images += 1
        self.add(named.written, replace(image, name=named.name))
        return f"[image {self.images}: {named.name}, {_images.size_words(image)}]"


def visible(shell: Any) -> dict[str, Any]:
    """Return what a prompt may name: the notebook's own variables, and its results as `Out`."""
    names = shell.user_ns
    left_out = complete.hidden(names, shell.user_ns_hidden)
    own = {name: value for name, value in names.items() if name not in left_out}
    return {"Out": names["Out"], **own} if "Out" in names else own


_RESULT = re.compile(r"\{Out\[(\d{1,9})\]!image\}")


def _shown(written: str, pictures: Pictures) -> bytes | None:
    """Return the picture that the cell of `{Out[3]!image}` showed, its value being none."""
    match = _RESULT.fullmatch(written)
    return pictures.of(int(match[1])) if match else None
