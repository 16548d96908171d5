"""What a question would send, word for word, and what it may cost. Nothing is sent, begun or forgotten."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from larik_nb import estimate
from larik_nb.notebook import _images, content, display, markdown, redact, tables
from larik_nb.types import Block, Message, Request, Usage, text_block, user

if TYPE_CHECKING:
    from larik_nb.agent.session import Route, Session
    from larik_nb.catalog import Catalog
    from larik_nb.notebook.magics import LarikMagics
    from larik_nb.notebook.options import Asked

_TICKS = re.compile(r"`{3,}")
_LONGEST = 200_000
"""Characters of one part that are shown: a page is to stay alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A question that is not asked.

    Attributes:
        request: What would be sent.
        content: What it is made of.
        spec: Whom it would go to.
        history: Messages of the conversation ahead of it.
    """

    request: Request
    content: content.Content
    spec: str
    history: int


def show(magics: LarikMagics, asked: Asked, text: str) -> None:
    """Show what `asked` with `text` would send.

    Raises:
        ConfigError: It could not be sent; the message says why.
    """
    from larik_nb.notebook import turn
    from larik_nb.notebook.verbs import say

    session = magics.session(asked.session)
    route = turn._route(magics, session, replace(asked, record=None))
    plain, rich = drawn(planned(magics, session, route, asked, text), session.config.catalog)
    say(magics, plain, rich)


def planned(magics: LarikMagics, session: Session, route: Route, asked: Asked, text: str) -> Preview:
    """Return what would be sent, with the conversation left as it is."""
    catalog = session.config.catalog
    sent = content.build(magics.ip, text, asked, route=route, catalog=catalog, pictures=magics.pictures)
    history = () if asked.new else tuple(session.history)
    said, told = content.instructions(asked)
    system = said if said is not None or asked.new else session.system
    effort = asked.effort or session.effort
    request = Request(model=route.model, messages=(*history, user(*sent.parts)), system=system, effort=effort)
    sent = replace(sent, notes=(*told, *sent.notes))
    return Preview(request=request, content=sent, spec=route.spec, history=len(history))


# -- as text ------------------------------------------------------------------------------------------------------
def drawn(preview: Preview, catalog: Catalog) -> tuple[str, str]:
    """Return the preview as plain text and as markdown."""
    head = f"preview, nothing was sent: {preview.spec} · {cost(preview, catalog)}"
    rows = [("part", "what", "tokens"), *_rows(preview)]
    bodies = [(name, _masked(text)) for name, text in _texts(preview)]
    notes = preview.content.notes
    plain = [head, tables.aligned(rows, numbers=False), *notes, *(f"--- {name}\n{text}" for name, text in bodies)]
    rich = [
        display.small(head),
        tables.marked(rows, numbers=False),
        *map(display.small, notes),
        *(f"**{markdown.escaped(name)}**\n\n{_fence(text)}" for name, text in bodies),
    ]
    return "\n\n".join(plain), "\n\n".join(rich)


def cost(preview: Preview, catalog: Catalog) -> str:
    """Return the tokens of the prompt and what it costs, with what the answer adds for each thousand tokens."""
    count = estimate.request_tokens(preview.request)
    provider, _, model = preview.spec.partition("/")
    inwards = catalog.cost(Usage(input=count, output=0), provider, model)
    tokens = f"~{display.tokens(count)} in"
    if inwards is None:
        return f"{tokens} · cost unknown"
    with_answer = catalog.cost(Usage(input=count, output=1_000), provider, model) or 0.0
    if not with_answer:
        return f"{tokens} · {display.free(provider)}"
    window = catalog.window(provider, model)
    over = f" · more than the window of {display.tokens(window)}" if count > window else ""
    return f"{tokens} · ~{display.usd(inwards)}, and ~{display.usd(with_answer - inwards)} for each 1k of answer{over}"


def _rows(preview: Preview) -> list[tuple[str, str, str]]:
    request = preview.request
    rows = []
    if request.system:
        rows.append(("system", _length(request.system), _tokens(text_block(request.system))))
    if preview.history:
        earlier = request.messages[: preview.history]
        count = sum(estimate.block_tokens(block) for message in earlier for block in message.blocks)
        first = _first_words(earlier)
        rows.append(("history", f"{preview.history} messages, from “{first}”", f"~{display.tokens(count)}"))
    for name, block in zip(preview.content.names, request.messages[-1].blocks, strict=True):
        rows.append((name, _what(block), _tokens(block)))
    return rows


def _first_words(messages: Sequence[Message]) -> str:
    text = next((message.text for message in messages if message.text.strip()), "")
    line = " ".join(markdown.plain(redact.cut(text, 400)).split())
    return line if len(line) <= 60 else line[:59] + "…"


def _tokens(block: Block) -> str:
    return f"~{display.tokens(estimate.block_tokens(block))}"


def _length(text: str) -> str:
    return f"text, {len(text):,} characters"


def _what(block: Block) -> str:
    if block.type == "text":
        return _length(block.text or "")
    size = len(block.data or "") * 3 // 4
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"
    if block.type == "image":
        return f"image {_images.size_words(block)}, {block.media_type}, {shown}"
    return f"document, {block.media_type}, {shown}"


def _texts(preview: Preview) -> list[tuple[str, str]]:
    request = preview.request
    texts = [("system", request.system)] if request.system else []
    for name, block in zip(preview.content.names, request.messages[-1].blocks, strict=True):
        if block.type == "text":
            texts.append((name, block.text or ""))
    return texts


def _masked(text: str) -> str:
    """Return a part as a notebook may keep it: what goes out with `--raw` may still hold a key, its preview not."""
    shown = redact.literal(text)
    more = len(shown) - _LONGEST
    return shown if more <= 0 else f"{shown[:_LONGEST]}\n… ({more:,} more characters are sent)"


def _fence(text: str) -> str:
    ticks = max(map(len, _TICKS.findall(text)), default=2) + 1
    return f"{'`' * ticks}text\n{markdown.plain(text)}\n{'`' * ticks}"
