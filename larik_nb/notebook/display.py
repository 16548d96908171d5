"""How values look in a notebook: the quiet line, figures with units, and the bundle that is saved.

A bundle holds `text/markdown` and a `text/plain` that reads as well: no HTML, which would win over the markdown in
exports, and no widget.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING

from larik_nb import _error_text, catalog
from larik_nb.notebook import markdown

if TYPE_CHECKING:
    from larik_nb.agent.session import Spent, Turn
    from larik_nb.types import Message, Usage

Bundle = dict[str, str]

VIEW = "application/vnd.jupyter.widget-view+json"
"""The part of an output that shows a widget, where a front end has one."""

_THINKING_SHOWN = 20_000
"""Characters of thinking that are saved behind the fold."""

_LONGEST_NAME, _LONGEST_NOTICE = 120, 500
"""Characters of a model's name, and of a notice, that are shown."""

UNKNOWN = "unknown"

_GAP = "     "


def tokens(count: int) -> str:
    """Return a count of tokens: 412, 8.2k, 131k, 1.2M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size * 0.9995:
            value = count / size
            digits = 1 if value < 99.95 else 0  # three figures at most
            return f"{value:.{digits}f}".removesuffix(".0") + unit
    return str(count)


def usd(amount: float) -> str:
    """Return money to the cent, and to two figures where it is less: $1.60, $0.013, $0.00042."""
    if amount == 0:
        return "$0.00"
    if amount < 0.00001:  # a thousandth of a cent
        return "< $0.00001"
    digits = max(2, 1 - floor(log10(amount)))
    text = f"{amount:.{digits}f}"
    return f"${text.rstrip('0')}" if digits > 2 and text.endswith("0") else f"${text}"


def seconds(value: float) -> str:
    """Return a duration: 0.3 s, 4.1 s, 61 s, 12 min."""
    if value < 9.95:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"


def total(spent: Spent) -> str:
    """Return a sum of money: "≥" before one with an unknown part, "~" before an estimate."""
    if spent.at_least and not spent.usd:
        return UNKNOWN
    return ("≥ " if spent.at_least else "") + ("~" if spent.estimated else "") + usd(spent.usd)


def cost(message: Message, *, how_to: str = "") -> str:
    """Return what an answer cost; `how_to` follows where only its price is unknown."""
    if message.cost_usd is None:
        return f"cost unknown{how_to if message.usage else ''}"
    if message.cost_usd:
        return (about(message.usage) if message.usage else "") + usd(message.cost_usd)
    return free(message.provider or "")


def how_to_price(message: Message, settings: str) -> str:
    """Return how to make a price known, and in which file."""
    spec = answered_by(message)
    return f' (no price for {spec}: set pricing."{spec}" in {home_short(settings)})'


def home_short(path: str) -> str:
    """Return a path with ~ for the user's home: it is shorter, and names nobody in a saved notebook."""
    home = str(Path("~").expanduser())
    return f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path


def free(provider: str) -> str:
    """Return that a provider costs nothing, and why."""
    why = catalog.shipped().free.get(provider)
    return f"free ({why})" if why else "free"


def used(message: Message) -> list[str]:
    """Return the tokens that went in and came out, each with its word."""
    usage = message.usage
    return ["tokens unknown"] if usage is None else counted(usage)


def counted(usage: Usage) -> list[str]:
    """Return tokens in and out, "~" before what nobody counted."""
    cached = f" ({tokens(usage.cache_read)} cached)" if usage.cache_read else ""
    return [f"{about(usage)}{tokens(usage.prompt)} in{cached}", f"{about(usage)}{tokens(usage.output)} out"]


def about(usage: Usage) -> str:
    """Return the mark before an estimate."""
    return "~" if usage.estimated else ""


def answered_by(message: Message) -> str:
    """Return who answered, as provider/model; the server names its model, and may name it anything."""
    return one_line(f"{message.provider or 'unknown'}/{message.model or 'unknown'}", _LONGEST_NAME)


def one_line(text: str, limit: int = _LONGEST_NOTICE) -> str:
    """Return a stranger's words as one line of what prints, fit to stand among our own."""
    return _error_text.one_line(markdown.plain(text), limit)


def quiet_line(message: Message, *, took_s: float, spent: Spent, how_to: str = "") -> str:
    """Return the line under an answer: who, tokens, money, time, and the session's sum."""
    parts = [answered_by(message), *used(message), cost(message, how_to=how_to), seconds(took_s)]
    if word := _ENDED.get(message.stop_reason or ""):
        parts.append(word)
    return " · ".join(parts) + _sum(spent)


def unanswered_line(turn: Turn, *, spent: Spent) -> str:
    """Return the line of a question that was stopped before its answer began, and is counted all the same."""
    spec = one_line(f"{turn.provider}/{turn.model}", _LONGEST_NAME)
    used_up = [counted(turn.usage)[0]] if turn.usage else []
    paid = [f"{about(turn.usage) if turn.usage else ''}{usd(turn.cost_usd)}"] if turn.cost_usd else []
    why = ["interrupted before the answer, counted in case it was sent"]
    return " · ".join([spec, *used_up, *paid, seconds(turn.seconds), *why]) + _sum(spent)


def _sum(spent: Spent) -> str:
    if not (spent.usd or spent.at_least):
        return ""
    return f"{_GAP}session {'cost ' if total(spent) == UNKNOWN else ''}{total(spent)}"


def replayed_line(message: Message) -> str:
    """Return the line under a replayed answer: only what is the same each time."""
    return " · ".join([answered_by(message), *used(message), "replayed"])


_ENDED = {
    "max_tokens": "cut off at the token limit",
    "context_overflow": "cut off: the context is full",
    "refusal": "refused",
    "pause": "paused",
    "interrupted": "interrupted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """All that is to be seen of a finished turn.

    Attributes:
        text: The answer.
        line: The quiet line; empty leaves it out.
        thinking: The model's readable thinking.
        thought: The line that stands for it ("thought for 6 s"); empty when it did not think.
        above: Notices that came before the text.
        below: Notices that came after it had begun.
    """

    text: str
    line: str
    thinking: str = ""
    thought: str = ""
    above: Sequence[str] = ()
    below: Sequence[str] = ()

    def bundle(self) -> Bundle:
        """Return both forms."""
        return {"text/plain": self._plain(), "text/markdown": self._markdown()}

    def _plain(self) -> str:
        parts = [*self.above, self.thought, markdown.plain(self.text).rstrip(), *self.below, self.line]
        return "\n\n".join(filter(None, parts))

    def _markdown(self) -> str:
        answer = markdown.whole(markdown.safe(self.text))
        above, below = map(small, self.above), map(small, self.below)
        parts = [*above, thought(self.thought, self.thinking), answer, *below, small(self.line)]
        return "\n\n".join(filter(None, parts))


def small(line: str) -> str:
    """Return a line of our own as markdown, small and in italics."""
    if not line:
        return ""
    main, _, rest = line.partition(_GAP)
    tail = f" &emsp; *{markdown.escaped(rest)}*" if rest else ""
    return f"<small>*{markdown.escaped(main)}*{tail}</small>"


def thought(line: str, thinking: str) -> str:
    """Return the line that stands for thinking, which folds open where there are words to show."""
    words = thinking.strip()
    if not line or not words:
        return small(line)
    cut = words if len(words) <= _THINKING_SHOWN else words[:_THINKING_SHOWN] + "…"
    body = markdown.whole(markdown.safe(cut))
    return f"<details><summary><small>{line}</small></summary>\n\n{body}\n\n</details>"


def message_bundle(message: Message) -> Bundle:
    """Return how a message looks when it is a cell's value."""
    line = " · ".join([answered_by(message), *used(message)]) if message.role == "assistant" else ""
    words = message.thinking
    return Shown(text=message.text, line=line, thinking=words, thought="thought" if words else "").bundle()
