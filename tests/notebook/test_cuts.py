"""However an answer is cut on its way, what is drawn is whole, and what stays is the same."""

from __future__ import annotations

import itertools
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from larik_nb.notebook import display, render
from larik_nb.types import text_delta

PARTS = [
    "It costs $5, not $9 or $10.50.\n\n",
    "From $1 to $2 a piece, and $x^2 + 1$ in it.\n\n",
    "$$\n\\frac{a}{b} = c\n$$\n\n",
    "\\[\nx < y\n\\]\n\n",
    "```python\nprice = '$5'\n\nmore = `x`\n```\n\n",
    "~~~\n```\nnot a fence\n~~~\n\n",
    "- one\n- two $3\n\n  still two\n\n",
    "| a | b |\n| --- | --- |\n| $1 | $2 |\n\n",
    "A `code $ span` and **words**.\n\n",
    "# Heading\n\n",
]
ANSWERS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join)


class Screen:
    """Keeps what is drawn as a page would, and every text it was sent."""

    def __init__(self) -> None:
        self.outputs: dict[str | None, str] = {}
        self.sent: list[str] = []
        self._clear = False

    def show(self, bundle: Any, id: str | None = None) -> None:
        if self._clear:
            self.outputs, self._clear = {}, False
        self.update(bundle, id)

    def update(self, bundle: Any, id: str | None) -> None:
        self.outputs[id] = bundle["text/markdown"]
        self.sent.append(bundle["text/markdown"])

    def clear(self) -> None:
        self._clear = True


class Gauge:
    is_shown = True
    is_stopped = False

    def follow(self, screen: Any, id: str) -> int:
        return 0

    def drop(self) -> None:
        return


def stream(answer: str, cuts: list[int], gauge: Gauge | None) -> tuple[Screen, list[str]]:
    """Draw an answer cut at some places, a frame a piece; return the screen and the texts drawn before the end."""
    now = [0.0]
    screen, asked = Screen(), render.Answer("m/m", clock=lambda: now[0])
    view = render.Live(asked, screen, gauge)
    view.start()
    places = sorted({0, *(cut % len(answer) for cut in cuts), len(answer)})
    for start, end in itertools.pairwise(places):
        asked.take(text_delta(answer[start:end]))
        now[0] += 5.0
        view.tick()
    drawn = list(screen.sent)
    view.finish(display.Shown(text=asked.text, line="m/m").bundle())
    return screen, drawn


def is_whole(text: str) -> bool:
    """Whether nothing in a drawn text is left open."""
    fence, math = "", 0
    for line in text.splitlines():
        if match := re.match(r" {0,3}(`{3,}|~{3,})", line):
            if not fence:
                fence = match[1]
            elif match[1].startswith(fence) and not line.strip("`~ "):
                fence = ""
        elif not fence:
            math += line.count("$$")
    return not fence and math % 2 == 0


@given(answer=ANSWERS, cuts=st.lists(st.integers(0, 5_000), max_size=30), with_gauge=st.booleans())
def test_every_frame_is_whole_and_the_end_is_the_same(answer: str, cuts: list[int], with_gauge: bool) -> None:
    gauge = Gauge() if with_gauge else None
    screen, drawn = stream(answer, cuts, gauge)
    whole, _ = stream(answer, [], gauge)

    assert [text for text in drawn if not is_whole(text)] == []
    assert list(screen.outputs.values()) == list(whole.outputs.values())
    assert len(screen.outputs) == 1


@given(answer=ANSWERS, cuts=st.lists(st.integers(0, 5_000), max_size=30))
def test_a_price_is_never_drawn_as_a_formula(answer: str, cuts: list[int]) -> None:
    """Where two dollars before numbers stand in one drawn text, they are marked as money."""
    _, drawn = stream(answer, cuts, None)
    prose = [re.sub(r"(?ms)^(`{3}|~{3}).*?^\1|`[^`\n]*`|<span>\\\$</span>", "", text) for text in drawn]

    assert [text for text in prose if re.search(r"(?<![\\$\w])\$\d[^$\n]*[^\s$]\$(?!\$)", text)] == []
