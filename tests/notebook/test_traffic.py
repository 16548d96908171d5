"""What a long answer costs the way to the page while it comes, whatever its blocks and its pace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from larik_nb.notebook.render import Answer, Live
from larik_nb.types import StreamEvent

SIZE = 50_000
WHILE_IT_COMES = 0.6
"""Of the answer's size, for the blocks that are drawn meanwhile: the finished output is a little over twice it, and the
bar has its code sent."""
MORE = "characters more"


class Page:
    """Keeps the outputs as a page would, and counts what it was sent."""

    def __init__(self) -> None:
        self.outputs: dict[str, str] = {}
        self.sent = 0

    def show(self, bundle: Mapping[str, Any], id: str | None = None) -> None:
        assert id
        self.outputs[id] = bundle["text/markdown"]
        self.sent += len(json.dumps(bundle))

    def update(self, bundle: Mapping[str, Any], id: str) -> None:
        assert id in self.outputs
        self.show(bundle, id)

    def clear(self) -> None:
        self.outputs.clear()

    def write(self, text: str) -> None:
        raise AssertionError(text)

    @property
    def blocks(self) -> str:
        """The answer as far as it is drawn, without the line that tells how much is not."""
        return "\n\n".join(text.strip() for text in list(self.outputs.values())[1:] if MORE not in text)


def streamed(text: str, a_second: float) -> Page:
    """Draw `text` as it comes, `a_second` characters of it each second, and return the page just before the end."""
    now = 1_000.0
    page = Page()
    answer = Answer("m", clock=lambda: now)
    answer.above.append("so that the text has an output of its own")
    view = Live(answer, page)
    view.start()
    begun = now
    had = 0
    while had < len(text):
        now += view.pause()
        come = min(int((now - begun) * a_second), len(text))
        if come > had:
            answer.take(StreamEvent(type="text_delta", text=text[had:come]))
            had = come
        view.tick()
    return page


def plain(text: str) -> str:
    return "".join(text.split())


@settings(max_examples=25)
@given(
    words=st.lists(st.integers(12, 200), min_size=1, max_size=6),
    a_second=st.sampled_from([250.0, 800.0, 3_000.0, 20_000.0]),
)
def test_a_long_answer_stays_under_three_times_its_size(words: list[int], a_second: float) -> None:
    block = "\n\n".join("word " * count for count in words) + "\n\n"
    text = (block * (SIZE // len(block) + 1))[:SIZE]

    page = streamed(text, a_second)

    assert page.sent < WHILE_IT_COMES * SIZE
    assert plain(text).startswith(plain(page.blocks))


@pytest.mark.parametrize("size", [500, 4_000, 7_000])
def test_an_answer_of_usual_length_is_drawn_as_it_comes(size: int) -> None:
    text = "\n\n".join(f"Block {number} of {'words ' * 12}" for number in range(200))[:size]

    page = streamed(text, 400.0)

    assert len(plain(page.blocks)) > len(plain(text)) - 600
    assert MORE not in "".join(page.outputs.values())


def test_who_reads_along_is_never_ahead_of_what_is_drawn() -> None:
    """A slow model's long answer is drawn in full."""
    text = "\n\n".join(f"Block {number} of {'words ' * 12}" for number in range(250))

    assert len(plain(streamed(text, 60.0).blocks)) > len(plain(text)) - 600


def test_what_waits_to_be_drawn_is_told() -> None:
    text = "\n\n".join(f"Block {number} of {'words ' * 12}" for number in range(600))

    last = list(streamed(text, 3_000.0).outputs.values())[-1]

    assert last.startswith("<small>*… ")  # a quiet line of ours, not text of the model's with its tags made visible
    assert MORE in last
    assert "all of it shows at the end" in last


def test_what_the_model_says_is_made_safe_while_it_comes() -> None:
    text = "<img src=x onerror=alert(1)> and more.\n\n" * 40

    drawn = "".join(streamed(text, 400.0).outputs.values())

    assert "img src" in drawn
    assert "<img" not in drawn.replace("\\<", "")


@pytest.mark.parametrize("a_second", [100.0, 400.0])
def test_one_long_block_goes_on_growing(a_second: float) -> None:
    """Code is one block to its end, and must not seem to stand still until then."""
    text = "Here it is:\n\n```python\n" + "".join(f"value_{number} = {number}\n" for number in range(300))

    page = streamed(text[:6_000], a_second)

    assert len(plain(page.blocks)) > len(plain(text[:6_000])) * 0.6
    assert page.sent < 20_000
