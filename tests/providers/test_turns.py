"""Any conversation, whoever spoke in it and wherever it was cut, is valid for each wire."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from larik_nb.providers._presets import Quirks
from larik_nb.providers.gemini import Gemini
from larik_nb.providers.ollama import Ollama
from larik_nb.providers.openai_compatible import OpenAICompatible
from larik_nb.types import Block, Message, Request

IDS = st.sampled_from(["a", "b", "call.of:another", "x" * 60])
ROUTES = st.sampled_from(["host", "other", None])
TEXT = st.sampled_from(["", "hi", "\n"])
IMAGE = Block(type="image", media_type="image/png", data="AAAA")

ASSISTANT = st.one_of(
    st.builds(lambda text, route: Block(type="text", text=text, provider=route, signature="s"), TEXT, ROUTES),
    st.builds(lambda text, route: Block(type="thinking", text=text, provider=route), TEXT, ROUTES),
    st.builds(lambda route: Block(type="opaque", raw={"reasoning_details": []}, provider=route), ROUTES),
    st.builds(lambda id_: Block(type="tool_use", id=id_, name="read", input={}), IDS),
    st.builds(lambda id_: Block(type="tool_use", id=id_, name="read", input_raw="{"), IDS),
    st.just(IMAGE),
)
USER = st.one_of(
    st.builds(lambda text: Block(type="text", text=text), TEXT),
    st.builds(lambda id_: Block(type="tool_result", id=id_, content="", images=(IMAGE,)), IDS),
    st.builds(lambda id_: Block(type="tool_result", id=id_, content="no", is_error=True), IDS),
    st.just(IMAGE),
)


def message(role: str, blocks: st.SearchStrategy[Block]) -> st.SearchStrategy[Message]:
    unique = st.lists(blocks, max_size=4, unique_by=lambda block: (block.type, block.id, block.text))
    return st.builds(
        lambda found, model: Message(role=role, blocks=tuple(found), model=model),  # type: ignore[arg-type]  # one of two
        unique,
        st.sampled_from(["m", "n", None]),
    )


TRANSCRIPTS = st.lists(st.one_of(message("user", USER), message("assistant", ASSISTANT)), max_size=8).map(tuple)


def check_turns(roles: list[str], calls: list[list[Any]], results: list[list[Any]]) -> None:
    """Assert that roles alternate, and that each turn's results are those of the calls in the turn before."""
    assert all(here != after for here, after in pairwise(roles))
    assert [[], *calls] == [*results, []]


@given(TRANSCRIPTS, st.sampled_from([Quirks(), Quirks(tool_ids="alphanumeric-9", reasoning_back="reasoning_content")]))
def test_chat(messages: tuple[Message, ...], quirks: Quirks) -> None:
    """Tool messages right behind the calls, one for each; ids in the alphabet; nothing empty."""
    adapter = OpenAICompatible(provider="host", quirks=quirks)
    body = adapter.encode(Request(model="m", messages=messages)).body
    json.dumps(body)
    open_ids: list[str] = []
    last = ""
    for item in body["messages"]:
        if item["role"] == "tool":
            assert item["tool_call_id"] == open_ids.pop(0)
            assert item["content"]
        else:
            assert not open_ids
            assert item["role"] != last or last == ""
            assert item["content"] or item.get("tool_calls") or item.get("reasoning_details") is not None
            open_ids = [call["id"] for call in item.get("tool_calls", ())]
            assert all(id_.isalnum() and len(id_) == 9 for id_ in open_ids) or not quirks.tool_ids
            assert all(len(id_) <= 40 and id_.replace("_", "").isalnum() for id_ in open_ids)
        last = item["role"]
    assert not open_ids


@given(TRANSCRIPTS)
def test_ollama(messages: tuple[Message, ...]) -> None:
    """The same."""
    body = Ollama(provider="host").encode(Request(model="m", messages=messages)).body
    json.dumps(body)
    open_ids: list[str] = []
    for item in body["messages"]:
        if item["role"] == "tool":
            assert (item["tool_call_id"], item["tool_name"]) == (open_ids.pop(0), "read")
        else:
            assert not open_ids
            assert item["content"] or item.get("tool_calls") or item.get("thinking") or item.get("images")
            open_ids = [call["id"] for call in item.get("tool_calls", ())]
    assert not open_ids


@given(TRANSCRIPTS)
def test_gemini(messages: tuple[Message, ...]) -> None:
    """Responses in the turn behind the calls, with their ids and names."""
    contents = Gemini(provider="host").encode(Request(model="m", messages=messages)).body["contents"]
    json.dumps(contents)
    assert all(content["parts"] for content in contents)
    kinds = [
        [
            [part[kind]["id"] for part in content["parts"] if kind in part]
            for kind in ("functionCall", "functionResponse")
        ]
        for content in contents
    ]
    check_turns([content["role"] for content in contents], [kind[0] for kind in kinds], [kind[1] for kind in kinds])
