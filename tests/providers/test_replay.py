"""Any conversation, whoever spoke in it and wherever it was cut, is taken by every vendor, and changes nothing kept."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from larik_nb.catalog import Model
from larik_nb.providers import _replay
from larik_nb.providers._presets import Quirks
from larik_nb.providers._replay import BRIDGE, FAILED, IMAGES_NOTE, INTERRUPTED, OPENING, Seal, Target, prepare
from larik_nb.providers._wire import Adapter
from larik_nb.providers.anthropic import Anthropic
from larik_nb.providers.gemini import DISPLAY, Gemini
from larik_nb.providers.ollama import Ollama
from larik_nb.providers.openai import OpenAI
from larik_nb.providers.openai_compatible import OpenAICompatible
from larik_nb.types import Block, Message, Request, ToolSpec, Usage, assistant, text_block, tool_result, user
from tests.providers import _strict
from tests.providers._decode import encoded

MODEL = "m"
BLIND = {"vision": False, "pdf": False}


# -- whom we ask ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Asked:
    """An adapter with the strict fake of its vendor."""

    adapter: Adapter
    check: Callable[..., None]
    fields: dict[str, Any] = field(default_factory=dict)

    def body(self, messages: tuple[Message, ...]) -> dict[str, Any]:
        return encoded(self.adapter, Request(model=MODEL, messages=messages, **self.fields)).body


def knows(**fields: Any) -> Callable[[str], Model | None]:
    return lambda model: Model(provider="x", id=model, **fields)


MISTRAL = Quirks(tool_ids="alphanumeric-9", strict_turns=True)
NINE = r"[a-zA-Z0-9]{9}"
ANY = r".{1,128}"
ASKED = {
    "anthropic": Asked(Anthropic(provider="anthropic"), _strict.check_messages),
    "anthropic blind": Asked(
        Anthropic(provider="anthropic", abilities=knows(prefill=False, **BLIND)),
        partial(_strict.check_messages, sees=False, prefill=False),
    ),
    "anthropic budget": Asked(
        Anthropic(provider="anthropic", abilities=knows(thinking=("enabled", "disabled"), efforts=())),
        _strict.check_messages,
        {"effort": "high"},
    ),
    "openai": Asked(OpenAI(provider="openai"), _strict.check_responses),
    "openai blind": Asked(
        OpenAI(provider="openai", abilities=knows(**BLIND)), partial(_strict.check_responses, sees=False)
    ),
    "gemini": Asked(Gemini(provider="gemini"), _strict.check_generate),
    "gemini 3": Asked(
        Gemini(provider="gemini", abilities=knows(signed_calls=True, tool_images=True)), _strict.check_generate
    ),
    "chat": Asked(OpenAICompatible(provider="chat"), partial(_strict.check_chat, alphabet=ANY)),
    "chat blind": Asked(
        OpenAICompatible(provider="chat", abilities=knows(**BLIND)),
        partial(_strict.check_chat, sees=False, alphabet=ANY),
    ),
    "chat strict": Asked(
        OpenAICompatible(provider="chat", quirks=MISTRAL), partial(_strict.check_chat, alphabet=NINE, strict=True)
    ),
    "chat thinks": Asked(
        OpenAICompatible(provider="chat", quirks=Quirks(reasoning_back="reasoning_content")),
        partial(_strict.check_chat, alphabet=ANY, back="reasoning_content"),
    ),
    "chat without tools": Asked(
        OpenAICompatible(provider="chat", quirks=Quirks(tools=False)), partial(_strict.check_chat, tools=False)
    ),
    "ollama": Asked(Ollama(provider="ollama"), _strict.check_ollama),
}
ROUTES = ("anthropic", "openai", "gemini", "chat", "ollama")

# -- what was said --------------------------------------------------------------------------------------------------
TEXTS = st.sampled_from(["", " \n", "hi", "Grüße 🌊", "ends with space "])
IDS = st.sampled_from(["a", "a", "b", "call.of:another", "x" * 70, "abcdEF123", "toolu_1", "", None])
NAMES = st.sampled_from(["read", "read", "functions.read me", "", None])


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


MEDIA = st.sampled_from(
    [
        Block(type="image", media_type="image/png", data="AAAA"),
        Block(type="image", media_type="image/gif", data="AAAA"),
        Block(type="image", media_type="image/tiff", data="AAAA"),
        Block(type="image", media_type="image/png", data=""),
        Block(type="image"),
        Block(type="document", media_type="application/pdf", data="JVBERi0=", name="a.pdf"),
        Block(type="document", media_type="text/plain", data=coded(b"Ebb")),
        Block(type="document", media_type="text/plain", data=coded(b" ")),
        Block(type="document", media_type="application/json", data=coded(b"{}"), name="a.json"),
        Block(type="document", media_type="application/vnd.ms-excel", data="AAAA", name="a.xls"),
        Block(type="document"),
    ]
)
CALLS = st.one_of(
    st.builds(lambda id_, name: Block(type="tool_use", id=id_, name=name, input={"p": 1}), IDS, NAMES),
    st.builds(lambda id_: Block(type="tool_use", id=id_, name="read", input_raw='{"p'), IDS),
)
SAID = st.builds(text_block, TEXTS)


def sealed(route: str, model: str) -> str:
    return f"sealed:{route}/{model}:x"


def opaque(raw: Any, **fields: Any) -> Block:
    return Block(type="opaque", raw=raw, **fields)


def anthropic_blocks(seal: str) -> st.SearchStrategy[Block]:
    found = [{"type": "web_search_result", "encrypted_content": seal}]
    ids = st.sampled_from(["srv_1", "srv_2"])
    return st.one_of(
        st.just(Block(type="thinking", text="hm", signature=seal)),
        st.just(Block(type="thinking", text="unsigned")),
        st.just(Block(type="thinking", redacted=True, signature=seal)),
        st.builds(lambda t: Block(type="text", text=t, raw={"citations": [{"encrypted_index": seal}]}), TEXTS),
        st.builds(lambda id_: opaque({"type": "server_tool_use", "id": id_, "name": "web_search", "input": {}}), ids),
        st.builds(lambda id_: opaque({"type": "web_search_tool_result", "tool_use_id": id_, "content": found}), ids),
        st.just(opaque({"type": "refusal", "category": "cyber"})),
    )


def openai_blocks(seal: str) -> st.SearchStrategy[Block]:
    return st.one_of(
        st.just(opaque({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal})),
        st.just(opaque({"type": "reasoning", "id": "rs_1", "summary": []})),
        st.just(opaque({"type": "web_search_call", "id": seal, "status": "completed"})),
        st.just(opaque({"type": "refusal", "refusal": "I would rather not."})),
        st.just(Block(type="thinking", text="a summary")),
        st.builds(lambda text: Block(type="text", text=text, raw={"phase": "commentary"}), TEXTS),
    )


def gemini_blocks(seal: str) -> st.SearchStrategy[Block]:
    return st.one_of(
        st.just(Block(type="thinking", text="a summary", provider=DISPLAY)),
        st.builds(lambda text: Block(type="text", text=text, signature=seal), TEXTS),
        st.just(opaque({"executableCode": {"code": "1"}, "thoughtSignature": seal}, signature=seal)),
        st.just(Block(type="image", media_type="image/png", data="AAAA", signature=seal)),
    )


def chat_blocks(seal: str) -> st.SearchStrategy[Block]:
    return st.one_of(
        st.just(Block(type="thinking", text=seal)),
        st.just(opaque({"reasoning_details": [{"type": "reasoning.encrypted", "data": seal}]})),
        st.just(opaque({"refusal": "No."})),
        st.just(opaque({"part": {"type": "audio"}})),
    )


def ollama_blocks(seal: str) -> st.SearchStrategy[Block]:
    return st.just(Block(type="thinking", text=seal))


BLOCKS = {
    "anthropic": anthropic_blocks,
    "openai": openai_blocks,
    "gemini": gemini_blocks,
    "chat": chat_blocks,
    "ollama": ollama_blocks,
}


def made_by(route: str, model: str, blocks: list[Block], served: str, stop: Any) -> Message:
    """Return an answer as the route's decoder would have made it: first calls are signed where calls are."""
    seal, out, calls = sealed(route, model), [], 0
    for block in blocks:
        extra: dict[str, Any] = {"provider": block.provider or route}
        if block.type == "tool_use":
            if route == "gemini" and not calls:
                extra["signature"] = seal
            if route == "chat":
                extra["raw"] = {"extra_content": {"signature": seal}}
            calls += 1
        out.append(replace(block, **extra))
    return Message(
        role="assistant", blocks=tuple(out), model=served, requested_model=model, provider=route, stop_reason=stop
    )


def answers(route: str, model: str) -> st.SearchStrategy[Message]:
    """Return answers of one model behind one route, whole and interrupted ones."""
    block = st.one_of(BLOCKS[route](sealed(route, model)), CALLS, SAID, MEDIA)
    return st.builds(
        partial(made_by, route, model),
        st.lists(block, max_size=4),
        st.sampled_from([model, f"{model}-2026"]),
        st.sampled_from(["end_turn", "tool_use", "interrupted", "pause", None]),
    )


RESULTS = st.builds(
    lambda id_, text, failed, images: tool_result(id_ or "", text, is_error=failed, images=images),
    IDS,
    TEXTS,
    st.booleans(),
    st.lists(MEDIA, max_size=2),
)
QUESTIONS = st.builds(
    lambda blocks: user(*blocks),
    st.lists(st.one_of(SAID, SAID, RESULTS, MEDIA, st.just(Block(type="thinking", text="mine"))), max_size=4),
)
ANSWERS = st.one_of([answers(route, model) for route in ROUTES for model in (MODEL, "n")])
TRANSCRIPTS = st.lists(st.one_of(QUESTIONS, ANSWERS), max_size=7).map(tuple)
QUICK = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])


def lines(messages: tuple[Message, ...]) -> list[str]:
    return [message.to_json() for message in messages]


# -- what must hold -------------------------------------------------------------------------------------------------
@QUICK
@given(TRANSCRIPTS)
def test_every_vendor_takes_every_conversation(messages: tuple[Message, ...]) -> None:
    """The strict fakes accept what goes out, twice the same; what is kept of the conversation stays as it was."""
    before = lines(messages)
    for asked in ASKED.values():
        body = asked.body(messages)
        asked.check(json.loads(json.dumps(body)), f"{asked.adapter.target(MODEL).provider}/{MODEL}")
        assert asked.body(messages) == body
    assert lines(messages) == before


@QUICK
@given(TRANSCRIPTS)
def test_without_reasoning_nothing_sealed_goes_out(messages: tuple[Message, ...]) -> None:
    """What is sent after a signature was refused holds none, and is valid all the same."""
    for asked in ASKED.values():
        target = replace(asked.adapter.target(MODEL), reasoning=False)
        request = Request(model=MODEL, messages=messages, **asked.fields)
        body = json.dumps(asked.adapter.encode(prepare(request, target)).body)
        assert "sealed:" not in body
        asked.check(json.loads(body), "nobody")


def turns_of(body: dict[str, Any]) -> list[Any]:
    """Return what a body says, without marks for caches, which move on."""
    said = next(body[key] for key in ("messages", "input", "contents") if key in body)
    return json.loads(
        json.dumps(said), object_hook=lambda item: {k: v for k, v in item.items() if k != "cache_control"}
    )


@QUICK
@given(st.data())
def test_switching_there_and_back_sends_ones_own_again(data: st.DataObject) -> None:
    """A → B → A: all that A was sent before B spoke is sent again, byte for byte, its reasoning with it."""
    name = data.draw(st.sampled_from(list(ASKED)))
    asked = ASKED[name]
    route = asked.adapter.target(MODEL).provider
    others = [(r, m) for r in ROUTES for m in (MODEL, "n") if (r, m) != (route, MODEL)]
    other = data.draw(st.sampled_from(others))
    mine = data.draw(st.lists(st.one_of(QUESTIONS, answers(route, MODEL)), max_size=5).map(tuple))
    more = data.draw(st.lists(st.one_of(QUESTIONS, answers(*other)), max_size=3))
    theirs = (made_by(*other, [text_block("B speaks")], other[1], "end_turn"), *more)
    before = turns_of(asked.body((*mine, user("next"))))
    after = turns_of(asked.body((*mine, user("next"), *theirs, user("and?"))))
    event(f"sealed: {'sealed:' in json.dumps(before)}")
    assert json.dumps(after[: len(before)]) == json.dumps(before)
    assert json.dumps(sealed_in(after)) == json.dumps(sealed_in(before))


def sealed_in(value: Any) -> list[str]:
    """Return the sealed values of a body, in order."""
    if isinstance(value, str):
        return [value] if value.startswith("sealed:") else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for item in items for found in sealed_in(item)]


@pytest.mark.parametrize("name", ASKED)
def test_the_fakes_are_strict(name: str) -> None:
    """What goes out unprepared is refused: an orphan, an empty text, another's signature."""
    asked = ASKED[name]
    bad = (
        Message(role="assistant", blocks=(Block(type="tool_use", id="é", name="a b", input={}),)),
        Message(role="user", blocks=(text_block(" "),)),
    )
    with pytest.raises(_strict.Refused):
        asked.check(asked.adapter.encode(Request(model=MODEL, messages=bad)).body, "x/m")


# -- the rules, one by one ------------------------------------------------------------------------------------------
def whole(_block: Block) -> Seal:
    return Seal()


def leads(_block: Block) -> Seal:
    return Seal(needs="next")


def prepared(*messages: Message, offered: tuple[ToolSpec, ...] = (), **fields: Any) -> tuple[Message, ...]:
    target = Target(**{"provider": "here", "model": MODEL, "seal": whole, **fields})
    return prepare(Request(model=MODEL, messages=messages, tools=offered), target).messages


def said(*messages: Message, **fields: Any) -> list[tuple[str, list[str]]]:
    """Return roles and texts of what goes out; a block without words by its type."""
    out = prepared(*messages, **fields)
    return [(turn.role, [block.text or block.content or block.type for block in turn.blocks]) for turn in out]


def mine(*blocks: Block, **fields: Any) -> Message:
    owned = tuple(block if block.provider else replace(block, provider="here") for block in blocks)
    return Message(**{"role": "assistant", "blocks": owned, "model": MODEL, **fields})


def call(id_: str | None = "c1", name: str | None = "read", **fields: Any) -> Block:
    return Block(**{"type": "tool_use", "id": id_, "name": name, "input": {}, **fields})


THOUGHT = Block(type="thinking", text="hm", signature="s")
PNG = Block(type="image", media_type="image/png", data="AAAA")
PDF = Block(type="document", media_type="application/pdf", data="JVBERi0=", name="a.pdf")


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        (mine(THOUGHT, text_block("a")), ["hm", "a"]),
        (mine(THOUGHT, text_block("a"), model="alias", requested_model=MODEL), ["hm", "a"]),
        (mine(THOUGHT, text_block("a"), model=MODEL, requested_model="alias"), ["hm", "a"]),
        (mine(THOUGHT, text_block("a"), model="n"), ["a"]),
        (mine(replace(THOUGHT, provider="there"), text_block("a")), ["a"]),
        (mine(replace(THOUGHT, provider="there"), text_block("a"), model="n"), ["a"]),
    ],
)
def test_thinking_goes_back_by_model_and_route(message: Message, sent: list[str]) -> None:
    """Both must be the target's; nothing of another's thinking goes in any form."""
    assert said(user("x"), message) == [("user", ["x"]), ("assistant", sent)]


def test_what_only_another_can_read_is_taken_off() -> None:
    """Signatures and raw values of texts, calls and images stay with who made them."""
    blocks = (
        replace(text_block("a"), signature="s", raw={"r": 1}),
        call(signature="s", raw={"r": 1}),
        replace(PNG, signature="s"),
    )
    for message, kept in ((mine(*blocks), ["s", "s", "s"]), (mine(*blocks, model="n"), [None] * 3)):
        found = prepared(user("x"), message, drawn_media=True)[1].blocks
        assert [block.signature for block in found] == kept
        assert [block.raw for block in found] == ([{"r": 1}] * 2 if kept[0] else [None] * 2) + [None]


def test_a_foreign_call_gets_the_placeholder() -> None:
    """Where the target signs its calls, and so does one of its own after it refused its signatures."""
    messages = (user("x"), mine(call(signature="s")), mine(call("c2", signature="t"), model="n"))
    for reasoning, wanted in ((True, ["s", "P"]), (False, ["P", "P"])):
        out = prepared(*messages, placeholder="P", reasoning=reasoning)
        assert [block.signature for turn in out for block in turn.blocks if block.type == "tool_use"] == wanted


def test_calls_and_results_are_complete() -> None:
    """A call without a result is told so, a result without its call goes, and so does a second one."""
    out = prepared(
        user(tool_result("gone", "?"), "x"),
        mine(call("c1"), call("c2")),
        user("y", tool_result("c2", "B"), tool_result("c2", "again")),
        mine(call("c3")),
    )
    results = [[(b.id, b.content, b.is_error) for b in turn.blocks if b.type == "tool_result"] for turn in out]
    assert results == [[], [], [("c1", INTERRUPTED, True), ("c2", "B", False)], [], [("c3", INTERRUPTED, True)]]
    assert [block.type for block in out[2].blocks] == ["tool_result", "tool_result", "text"]


def test_a_result_carries_the_name_of_its_tool() -> None:
    """Some wires repeat it."""
    assert prepared(user("x"), mine(call()), user(tool_result("c1", "A")))[2].blocks[0].name == "read"


def test_a_failure_without_words_gets_some() -> None:
    """An error that is empty is refused."""
    failed = user(tool_result("c1", " ", is_error=True))
    assert prepared(user("x"), mine(call()), failed)[2].blocks[0].content == FAILED


def test_nothing_empty_goes_out_and_roles_alternate() -> None:
    """Blank texts go, messages without anything go, neighbours of one role become one turn."""
    messages = (
        user("a", " \n"),
        mine(text_block("")),
        user("b"),
        mine(text_block("c")),
        mine(text_block("d")),
        user(""),
    )
    assert said(*messages) == [("user", ["a", "b"]), ("assistant", ["c", "d"])]
    assert said(user("")) == [("user", [OPENING])]


def test_what_does_not_belong_to_a_speaker_goes() -> None:
    """A user neither thinks nor calls, and an assistant has no results."""
    assert said(user("x", THOUGHT, call()), mine(text_block("a"), tool_result("c", "r"))) == [
        ("user", ["x"]),
        ("assistant", ["a"]),
    ]


def test_the_user_begins_where_that_is_wanted() -> None:
    """And only there."""
    messages = (mine(text_block("a")), user("b"))
    assert [role for role, _ in said(*messages)] == ["assistant", "user"]
    assert said(*messages, opening=True)[0] == ("user", [OPENING])


def test_the_assistant_speaks_before_the_user_goes_on() -> None:
    """Strict hosts want a word between results and a question, and only between these."""
    messages = (user("x"), mine(call()), user(tool_result("c1", "A"), "and?"))
    assert said(*messages, bridge=True)[2:] == [("user", ["A"]), ("assistant", [BRIDGE]), ("user", ["and?"])]
    assert said(*messages)[2:] == [("user", ["A", "and?"])]
    assert said(user("x"), mine(call()), user(tool_result("c1", "A")), bridge=True)[2:] == [("user", ["A"])]


def test_the_last_word_is_the_users_where_that_is_wanted() -> None:
    """An assistant's text at the end is cut of its white space; a turn that paused is gone on with."""
    assert said(user("x"), mine(text_block("a ")))[-1] == ("assistant", ["a"])
    assert said(user("x"), mine(text_block("a ")), prefill=False)[-1] == ("user", [OPENING])
    paused = mine(text_block("a"), Block(type="opaque", raw={}), stop_reason="pause")
    assert said(user("x"), paused, prefill=False, resumes=True)[-1] == ("assistant", ["a", "opaque"])


def test_ids_fit_agree_and_differ() -> None:
    """Those that fit stay; others are made, the same each time; none comes twice; results follow their calls."""
    history = [
        user("x"),
        mine(call("call.of:another"), call("abcdEF123"), call("abcdEF123"), call("")),
        user(tool_result("abcdEF123", "first"), tool_result("abcdEF123", "second")),
    ]
    turns = prepared(*history, ids="[A-Za-z0-9]{9}", id_length=9)
    sent = [block.id or "" for block in turns[1].blocks]
    assert sent[1] == "abcdEF123"
    assert len(set(sent)) == 4
    assert all(len(id_) == 9 and id_.isalnum() for id_ in sent)
    assert [block.id for block in turns[2].blocks] == sent
    assert [block.content for block in turns[2].blocks[1:3]] == ["first", "second"]
    longer = prepared(*history, mine(call("call.of:another")), ids="[A-Za-z0-9]{9}", id_length=9)
    assert [block.id for block in longer[1].blocks] == sent


def test_a_hosts_own_ids_stay() -> None:
    """Where the host takes whatever it made itself; not another's of the same look."""
    ids = [
        prepared(user("x"), message, own_ids=True)[1].blocks[0].id
        for message in (mine(call("f.read:0")), mine(call("f.read:0"), model="n"))
    ]
    assert ids[0] == "f.read:0"
    assert ids[1] != "f.read:0"


def test_names_that_a_model_made_up_are_made_to_fit() -> None:
    """Those of tools that are offered stay as they are."""
    names = [None, "read file", "a.b", "x" * 80]
    history = (user("x"), mine(*(call(str(at), name) for at, name in enumerate(names))))
    sent = [block.name for block in prepared(*history, offered=(ToolSpec(name="a.b"),))[1].blocks]
    assert sent == ["unnamed", "read_file", "a.b", "x" * 64]


def test_arguments_that_were_no_json_go_back_as_an_object() -> None:
    """Every wire takes it, and the model sees its slip."""
    block = prepared(user("x"), mine(call(input=None, input_raw='{"a')))[1].blocks[0]
    assert (block.input, block.input_raw) == ({"INVALID_JSON": '{"a'}, None)


def test_media_go_where_they_are_taken() -> None:
    """Elsewhere a note or the text itself stands for them, in a result as well."""
    note = Block(type="document", media_type="text/csv", data=coded(b"a,b"), name="t.csv")
    empty = Block(type="image", media_type="image/png")
    history = (user(PNG, PDF, note, empty), mine(call()), user(tool_result("c1", "A", images=[PNG, note])))
    written = '<document name="t.csv">\na,b\n</document>'
    blind = said(*history, images=frozenset())
    assert blind[0][1] == [
        "[image left out: m takes no images]",
        "[document a.pdf left out: m takes no PDFs]",
        written,
        "[image left out: it is empty]",
    ]
    assert blind[2][1] == [f"A\n\n[image left out: m takes no images]\n\n{written}"]
    seeing = prepared(*history, documents=("application/pdf",), text_documents=True, tool_media=True)
    assert seeing[0].blocks[:3] == (PNG, PDF, note)
    assert seeing[2].blocks[0].images == (PNG, note)


def test_what_tools_showed_stands_apart_where_results_are_text() -> None:
    """Behind all results, introduced, before what the user said."""
    answers = user(tool_result("c1", "A", images=[PNG]), tool_result("c2", "B"), "and?")
    assert said(user("x"), mine(call("c1"), call("c2")), answers)[2] == (
        "user",
        ["A", "B", IMAGES_NOTE, "image", "and?"],
    )


def test_what_a_model_drew_moves_to_the_user() -> None:
    """Unless the wire takes it from the assistant."""
    history = (user("x"), mine(text_block("there"), PNG), user("nice"))
    assert said(*history)[1:] == [("assistant", ["there"]), ("user", ["nice", "image"])]
    assert said(*history, drawn_media=True)[1:] == [("assistant", ["there", "image"]), ("user", ["nice"])]


def test_a_host_without_tools_reads_of_them() -> None:
    """Calls and results are told in words, pictures behind them."""
    history = (user("x"), mine(call()), user(tool_result("c1", "A", images=[PNG]), "go"))
    assert said(*history, tools=False)[1:] == [
        ("assistant", ["[called read with {}]"]),
        ("user", ["[result: A]", IMAGES_NOTE, "image", "go"]),
    ]


def test_a_thought_that_led_to_nothing_goes() -> None:
    """An answer that was cut after its thoughts, or whose words are gone: a thought goes with what it led to."""
    assert said(user("x"), mine(THOUGHT), user("y"), seal=leads) == [("user", ["x", "y"])]
    assert said(user("x"), mine(THOUGHT, text_block(" ")), user("y"), seal=leads) == [("user", ["x", "y"])]
    cut = mine(THOUGHT, text_block("a"), THOUGHT)
    assert said(user("x"), cut, mine(text_block("b"), model="n"), seal=leads)[1] == ("assistant", ["hm", "a", "b"])


def test_a_thought_needs_company() -> None:
    """Where it is a field beside the answer, wherever it stood."""
    other = lambda block: Seal(needs="other")  # noqa: E731
    assert said(user("x"), mine(text_block("a"), THOUGHT), seal=other)[1] == ("assistant", ["a", "hm"])
    assert said(user("x"), mine(THOUGHT), user("y"), seal=other) == [("user", ["x", "y"])]


def test_what_leans_on_a_lost_item_goes_with_it() -> None:
    """A sealed item behind reasoning that cannot be read again; words and calls stay."""
    raws = [{"type": "reasoning"}, {"type": "reasoning", "encrypted_content": "s"}]
    for raw, wanted in zip(raws, (["words"], ["opaque", "opaque", "words"]), strict=True):
        blocks = (opaque(raw), opaque({"type": "web_search_call"}), text_block("words"))
        adapter = OpenAI(provider="here")
        assert said(user("x"), mine(*blocks), seal=adapter.target(MODEL).seal)[1] == ("assistant", wanted)


def server_call(id_: str) -> Block:
    return opaque({"type": "server_tool_use", "id": id_})


def test_a_servers_call_keeps_its_answer() -> None:
    """Both go back or neither does; the order counts."""
    seal = Anthropic().target(MODEL).seal
    answer = opaque({"type": "x_tool_result", "tool_use_id": "s1"})
    for blocks, kept in (
        ((server_call("s1"), answer), 2),
        ((server_call("s1"),), 0),
        ((answer,), 0),
        ((answer, server_call("s1")), 0),
        ((server_call("s1"), server_call("s1"), answer), 2),
    ):
        out = prepared(user("x"), mine(*blocks, text_block("a")), user("y"), seal=seal)
        assert [block.type for block in out[1].blocks] == ["opaque"] * kept + ["text"]


def test_a_servers_call_may_wait() -> None:
    """For the server at the very end, or for results of the user's own tools."""
    seal = Anthropic().target(MODEL).seal
    paused = mine(server_call("s1"), stop_reason="pause")
    assert said(user("x"), paused, seal=seal)[-1] == ("assistant", ["opaque"])
    assert said(user("x"), paused, user("y"), seal=seal) == [("user", ["x", "y"])]
    waiting = mine(server_call("s1"), call())
    assert said(user("x"), waiting, user(tool_result("c1", "A")), seal=seal)[1] == ("assistant", ["opaque", "tool_use"])


def test_a_turn_keeps_the_usage_of_its_own_model() -> None:
    """By it the next prompt is estimated; another model counts otherwise."""
    usage = Usage(input=9, output=1)
    for model, kept in ((MODEL, usage), ("n", None)):
        assert prepared(user("x"), mine(text_block("a"), model=model, usage=usage), user("y"))[1].usage == kept


def test_budgeted_thinking_is_off_where_another_model_began() -> None:
    """It is refused behind calls whose turn did not begin with a thought."""
    asked = ASKED["anthropic budget"]
    begun = mine(Block(type="thinking", text="hm", signature="s", provider="anthropic"), call())
    results = user(tool_result("c1", "A"))
    bodies = [asked.body((user("x"), message, results)) for message in (begun, replace(begun, model="n"))]
    assert [body.get("thinking", {}).get("type") for body in bodies] == ["enabled", None]
    assert asked.body((user("x"), replace(begun, model="n"), results, assistant("ok"), user("y")))["thinking"]


def test_the_module_is_pure() -> None:
    """It imports no socket, clock or file."""
    names = {name for name in vars(_replay) if not name.startswith("_")}
    assert not names & {"asyncio", "http", "os", "time", "random", "Path", "open"}
