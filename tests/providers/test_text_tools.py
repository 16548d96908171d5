"""Calls written as text: found where they are meant, and never at the price of the stream."""

from __future__ import annotations

import json
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb.providers._text_tools import TextTools
from larik_nb.providers._wire import Draft
from larik_nb.types import Request, StreamEvent, ToolSpec
from tests.providers._decode import READ, joined

TOOLS = (READ, ToolSpec(name="run"), ToolSpec(name="run_all"))
CALL = '{"name": "read", "arguments": {"path": "a"}}'


def feed(*pieces: str, tools: tuple[ToolSpec, ...] = TOOLS) -> tuple[list[list[StreamEvent]], Draft]:
    """Return what each piece, and the end at last, showed."""
    draft = Draft(Request(model="m", messages=(), tools=tools), "host")
    texts = TextTools(draft)
    return [*(list(texts.text(piece)) for piece in pieces), list(texts.stop())], draft


def calls(text: str, tools: tuple[ToolSpec, ...] = TOOLS) -> list[tuple[str | None, object]]:
    draft = feed(text, tools=tools)[1]
    return [(block.name, block.input) for block in draft.blocks() if block.type == "tool_use"]


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"\n{CALL}\n\n",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```\n",
        f"```JSON\r\n{CALL}```",
        '{"name":"read","args":{"path":"a"}}',
        '{"parameters":{"path":"a"},"name":"read"}',
        '{"type": "function", "name": "read", "parameters": {"path": "a"}}',
        '{"name": "read", "arguments": "{\\"path\\": \\"a\\"}"}',
        '{"name": "read", "arguments": {"file_path": "a"}}',
    ],
)
def test_a_part_that_is_a_call_becomes_one(text: str) -> None:
    """Fenced or not, with any of the three names for arguments."""
    assert calls(text) == [("read", {"path": "a"})]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "erase", "arguments": {}}',
        '{"name": "rea", "arguments": {}}',
        '{"name": "read"}',
        '{"name": "read", "arguments": [1]}',
        '{"name": "read", "arguments": {}, "note": 1}',
        '{"name": "read", "arguments": {}, "args": {}}',
        '{"name": "read", "arguments": {"path": "a"}',
        f"I call {CALL}",
        f"{CALL} and wait",
        f"```python\n{CALL}\n```",
        f"```json\n{CALL}\n``` as I said",
        f"[{CALL}]",
        "```json",
        " \n",
        "{}",
    ],
)
def test_other_text_stays_text(text: str) -> None:
    """A name that was not offered, words around it, another shape: all of it is shown, as it came."""
    shown, draft = feed(text)
    assert draft.message().text == joined(chain(*shown), "text_delta") == text
    assert not draft.calls


def test_without_tools_nothing_is_held() -> None:
    """A request that offers nothing gets its text at once."""
    shown, _ = feed("{", '"name"', tools=())
    assert [joined(events, "text_delta") for events in shown] == ["{", '"name"', ""]


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (("Hel", "lo"), ("Hel", "lo")),
        (("```", "py", "thon\n", "{"), ("", "```py", "thon\n", "{")),
        (('{"na', 'me": "er', 'ase"'), ("", '{"name": "er', 'ase"')),
        (('{"ans', "wer"), ('{"ans', "wer")),
        (('{"name": "read", "arguments": {}}', " x"), ("", '{"name": "read", "arguments": {}} x')),
        (('{"name": "run', "_al", "x"), ("", "", '{"name": "run_alx')),
        (("``", "x"), ("", "``x")),
        (("\n", "1"), ("", "\n1")),
    ],
)
def test_only_what_could_be_a_call_is_held(pieces: tuple[str, ...], shown: tuple[str, ...]) -> None:
    """Text flows on from the first character that no call has there."""
    assert tuple(joined(events, "text_delta") for events in feed(*pieces)[0][:-1]) == shown


def test_a_call_is_shown_as_one() -> None:
    """Its events are a call's, and no text is shown."""
    shown, draft = feed(CALL[:9], CALL[9:])
    assert [[event.type for event in events] for events in shown] == [[], [], ["tool_use_start", "tool_input_delta"]]
    assert json.loads(shown[-1][1].text) == {"path": "a"}
    assert draft.message().text == ""


def test_an_interrupted_answer_keeps_what_is_held() -> None:
    """What was not shown yet is in the partial message all the same."""
    draft = Draft(Request(model="m", messages=(), tools=TOOLS), "host")
    TextTools(draft).text(CALL[:20])
    assert draft.message().text == CALL[:20]


def test_each_part_is_judged_by_itself() -> None:
    """Text, a thought, then a call: the call is one."""
    draft = Draft(Request(model="m", messages=(), tools=TOOLS), "host")
    texts = TextTools(draft)
    events = [*texts.text("Well."), *texts.end(), *draft.thinking("hm"), *texts.text(CALL), *texts.stop()]
    assert [block.type for block in draft.blocks()] == ["text", "thinking", "tool_use"]
    assert joined(events, "text_delta") == "Well."


def test_a_path_is_renamed_only_where_the_tool_says_path() -> None:
    """A tool with its own `file_path` gets it."""
    other = ToolSpec(name="read", parameters={"properties": {"file_path": {}}})
    assert calls('{"name": "read", "arguments": {"file_path": "a"}}', tools=(other,)) == [("read", {"file_path": "a"})]


FRAGMENTS = st.sampled_from(
    [CALL, "```", "```json\n", "json", "{", "}", '"name"', ":", '"read"', '"arguments"', " ", "\n", "x", '"', "\\", ","]
)


@given(st.lists(FRAGMENTS, max_size=12), st.lists(st.integers(0, 400), max_size=8))
def test_joined_deltas_are_the_text(parts: list[str], cuts: list[int]) -> None:
    """Whatever comes, cut wherever: what was shown is what is kept, and the cuts change nothing."""
    text = "".join(parts)
    marks = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    shown, draft = feed(*(text[start:end] for start, end in pairwise(marks)))
    assert joined(chain(*shown), "text_delta") == draft.message().text
    assert draft.message() == feed(text)[1].message()
    assert draft.message().text == ("" if draft.calls else text)
