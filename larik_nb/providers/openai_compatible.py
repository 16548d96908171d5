"""Chat Completions, for every host that speaks it.

The wire is one vendor's and the hosts are many: each leaves something out, adds something or repeats something.
What a host needs in a request is data (`quirks`); what it may do in an answer is read whoever the host is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from larik_nb import errors
from larik_nb.providers._abilities import effort_level, samples
from larik_nb.providers._fields import SHAPE_ERRORS, bad_shape, string, unreadable
from larik_nb.providers._presets import Quirks
from larik_nb.providers._replay import Piece, data_url, own
from larik_nb.providers._text_tools import TextTools
from larik_nb.providers._tool_fragments import ToolFragments
from larik_nb.providers._turns import (
    IMAGES_NOTE,
    Turn,
    as_text,
    call_input,
    media_to_user,
    result_text,
    turns,
)
from larik_nb.providers._wire import NO_EVENTS, Abilities, Draft, ModelList, Wire, ended_early, stream_error, unknown
from larik_nb.types import Block, Message, Request, StopReason, StreamEvent, ToolSpec, Usage, notice

if TYPE_CHECKING:
    from larik_nb.catalog import Model
    from larik_nb.frames import Framing

_STOP: Mapping[str, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
_KEPT = frozenset({"reasoning_details", "refusal", "extra_content", "thought_signature"})
"""Fields of an assistant message that go back as they came, to the model that wrote them."""

_USUAL = Quirks()
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


class OpenAICompatible:
    """The wire format, both ways.

    Args:
        provider: The route, stamped on messages.
        quirks: How the host deviates.
        abilities: What is known of a model, by id.
    """

    framing: Framing = "sse"

    def __init__(self, *, provider: str, quirks: Quirks = _USUAL, abilities: Abilities = unknown) -> None:
        self._provider = provider
        self._quirks = quirks
        self._abilities = abilities
        self.model_list = ModelList(quirks.models_path)

    def credential(self, key: str | None) -> Mapping[str, str]:
        """Return the bearer header, none without a key."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def decoder(self, request: Request) -> ChatDecoder:
        """Return a fresh decoder for the answer."""
        return ChatDecoder(request, self._provider)

    def encode(self, request: Request) -> Wire:
        """Return the HTTP request that asks `request`."""
        model = self._abilities(request.model)
        body: dict[str, Any] = {
            "model": request.model,
            "messages": _Encoder(request, self._provider, self._quirks, model).messages(),
            "stream": True,
        }
        if self._quirks.stream_options:
            body["stream_options"] = {"include_usage": True}
        if request.tools and self._quirks.tools:
            body["tools"] = [function_tool(tool) for tool in request.tools]
        return Wire(path="/chat/completions", body={**body, **self._settings(request, model)})

    def _settings(self, request: Request, model: Model | None) -> dict[str, Any]:
        level = effort_level(request, model)
        sampled = samples(model, level)
        values = {
            self._quirks.max_tokens: request.max_tokens,
            "temperature": request.temperature if sampled else None,
            "top_p": request.top_p if sampled else None,
            self._quirks.seed: request.seed,
            "stop": list(request.stop) or None,
            **self._reasoning(request, level),
        }
        return {key: value for key, value in values.items() if value is not None}

    def _reasoning(self, request: Request, level: str | None) -> dict[str, Any]:
        if self._quirks.effort != "reasoning":
            return {"reasoning_effort": level}
        if request.thinking_budget is not None:
            return {"reasoning": {"max_tokens": request.thinking_budget}}
        return {"reasoning": {"effort": level} if level else None}


def function_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool in the form that this wire and others after it take."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters or {"type": "object", "properties": {}},
    }
    return {"type": "function", "function": function}


class _Encoder:
    """Translates one conversation."""

    def __init__(self, request: Request, provider: str, quirks: Quirks, model: Model | None) -> None:
        self._request = request
        self._provider = provider
        self._back = quirks.reasoning_back
        self._tools = quirks.tools
        self._sees = model is None or model.vision is not False
        self._turns = turns(media_to_user(request.messages), self._keep)
        self._id = ToolIds(quirks.tool_ids, self._turns, self._own)

    def _own(self, message: Message, block: Block) -> bool:
        return own(message, block, self._provider, self._request.model)

    def _keep(self, message: Message, block: Block) -> bool:
        match block.type:
            case "text":
                return bool(block.text)
            case "thinking":
                return bool(self._back and block.text) and self._own(message, block)
            case "opaque":
                return self._own(message, block) and isinstance(block.raw, dict) and block.raw.keys() <= _KEPT
            case _:
                return True

    def messages(self) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        if self._request.system:
            out.append({"role": "system", "content": self._request.system})
        for turn in self._turns:
            out += self._assistant(turn) if turn.role == "assistant" else self._user(turn.blocks)
        return out

    def _assistant(self, turn: Turn) -> list[dict[str, Any]]:
        blocks = turn.blocks
        texts = [block.text or "" for block in blocks if block.type == "text"]
        calls = [part for part in turn.parts if part[1].type == "tool_use"]
        if not self._tools:
            texts += [f"[called {call.name} with {json.dumps(call_input(call))}]" for _, call in calls]
            calls = []
        message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or (None if calls else "")}
        if self._back and (calls or any(block.type == "thinking" for block in blocks)):
            message[self._back] = "".join(block.text or "" for block in blocks if block.type == "thinking")
        for block in blocks:
            if block.type == "opaque":
                message.update(block.raw)
        if calls:
            message["tool_calls"] = [self._call(part) for part in calls]
        return [message] if len(message) > 2 or message["content"] else []  # more than role and content

    def _call(self, part: Piece) -> dict[str, Any]:
        call = part[1]
        function = {"name": call.name, "arguments": json.dumps(call_input(call))}
        sealed = call.raw if self._own(*part) and isinstance(call.raw, dict) else {}
        return {"id": self._id(call.id), "type": "function", "function": function, **sealed}

    def _user(self, blocks: Sequence[Block]) -> list[dict[str, Any]]:
        results = [block for block in blocks if block.type == "tool_result"]
        shown = [image for result in results for image in result.images]
        rest = [block for block in blocks if block.type != "tool_result"]
        parts = [_text_part(IMAGES_NOTE), *map(self._user_part, shown)] if shown else []
        parts += map(self._user_part, rest)
        out = []
        if self._tools:
            out = [self._result(result) for result in results]
        else:
            parts = [_text_part(f"[result: {result.content}]") for result in results] + parts
        return [*out, {"role": "user", "content": _content(parts)}] if parts else out

    def _result(self, result: Block) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": self._id(result.id), "content": result_text(result)}

    def _user_part(self, block: Block) -> dict[str, Any]:
        if block.type == "image" and self._sees:
            url = data_url(block)
            return {"type": "image_url", "image_url": {"url": url}}
        return _text_part(block.text or "" if block.type == "text" else as_text(block))


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return one string where all is text: not every host takes a list."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


class ToolIds:
    """Tool call ids in the host's alphabet: one to one within a request, and the same in every request.

    The host's own ids go back as they came; others stay where they fit.
    """

    def __init__(self, alphabet: str | None, sent: Sequence[Turn], is_own: Callable[[Message, Block], bool]) -> None:
        self._length = int(alphabet.rpartition("-")[2]) if alphabet else None
        self._fits = re.compile(f"[A-Za-z0-9]{{{self._length}}}") if alphabet else _PLAIN_ID
        self._out: dict[str, str] = {}
        calls = [part for turn in sent for part in turn.parts if part[1].type == "tool_use"]
        fit = [call.id or "" for message, call in calls if self._fits.fullmatch(call.id or "") or is_own(message, call)]
        self._out.update((id_, id_) for id_ in fit)
        for _, call in calls:
            self._add(call.id or "")

    def __call__(self, id_: str | None) -> str:
        """Return the host's form of an id."""
        return self._out[id_ or ""]

    def _add(self, id_: str) -> None:
        taken, seed = set(self._out.values()), id_
        while id_ not in self._out:
            made = _hashed(seed, self._length or 24)
            if made not in taken:
                self._out[id_] = made
            seed += "'"


def _hashed(text: str, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")
    letters = []
    for _ in range(length):
        number, place = divmod(number, len(_ALPHANUMERIC))
        letters.append(_ALPHANUMERIC[place])
    return "".join(letters)


class ChatDecoder:
    """Reads one answer, streamed or whole."""

    def __init__(self, request: Request, provider: str) -> None:
        self.draft = Draft(request, provider)
        self._texts = TextTools(self.draft)
        self._calls = ToolFragments(self.draft)
        self._kept: dict[str, Any] = {}
        self._reasoning: list[dict[str, Any]] = []
        self._place: Any = None
        self.ended = False
        self._streamed = False
        self._unread: str | None = None

    def event(self, name: str, data: Any) -> Iterable[StreamEvent]:
        """Take one frame in and return the deltas it makes (`Decoder.event`)."""
        if self.ended:
            self._late(data)
            return NO_EVENTS
        try:
            if type(data) is dict:
                return self._object(name, data, "sse")
            return self._other(name, data)
        except SHAPE_ERRORS as exc:
            raise bad_shape(exc) from exc

    def whole(self, data: Any) -> Iterable[StreamEvent]:
        """Take a whole JSON answer in (`Decoder.whole`)."""
        if not isinstance(data, dict) or "choices" not in data:
            raise stream_error(data, "json_200")
        try:
            events = [*self._object("", data, "json_200"), *self._end()]
        except SHAPE_ERRORS as exc:
            raise bad_shape(exc) from exc
        self.ended = True
        return events

    def finish(self) -> Message:
        """Return the answer; an unexplained end with tool calls is a call for tools (`Decoder.finish`)."""
        draft = self.draft
        if not self.ended and draft.stop_reason is None:
            raise ended_early("neither finish_reason nor [DONE]")
        if draft.calls and draft.stop_reason in (None, "end_turn"):
            draft.stop_reason = "tool_use"
        elif "refusal" in self._kept and draft.stop_reason in (None, "end_turn"):
            draft.stop_reason = "refusal"
        return draft.message()

    def _other(self, name: str, data: Any) -> Iterable[StreamEvent]:
        """Take in what is not an object: the end mark, an error without data, text cut short."""
        if name == "error":
            raise stream_error(data if data is not None else {"error": {"message": "an error without a word"}}, "sse")
        if self._unread is not None:
            raise unreadable(self._unread)
        if isinstance(data, str) and data.strip() == "[DONE]":
            self.ended = True
            return self._end()
        if data is not None:
            # Cut short if it is the last frame, unreadable if another follows.
            self._unread = data if isinstance(data, str) else json.dumps(data)
        return NO_EVENTS

    def _late(self, data: Any) -> None:
        """Take the counts in that some hosts send behind the end mark."""
        if isinstance(data, dict) and isinstance(counts := data.get("usage"), dict):
            with suppress(*SHAPE_ERRORS):
                self.draft.usage = usage(counts) or self.draft.usage

    def _object(self, name: str, data: dict[str, Any], where: errors.Where) -> Iterable[StreamEvent]:
        if data.get("error") or name == "error" or data.get("object") == "error":
            raise stream_error(data, where)
        if self._unread is not None:
            raise unreadable(self._unread)
        model = data.get("model")
        if model and isinstance(model, str):
            self.draft.model = model
        events: Iterable[StreamEvent] = NO_EVENTS
        for choice in data.get("choices") or ():
            if choice.get("index") in (0, None):
                events = self._choice(choice)
                break
        counts = data.get("usage") or (data.get("x_groq") or {}).get("usage")
        if counts:
            self.draft.usage = usage(counts) or self.draft.usage
        return events

    def _choice(self, choice: dict[str, Any]) -> Iterable[StreamEvent]:
        events: Iterable[StreamEvent] = NO_EVENTS
        if delta := choice.get("delta"):
            self._streamed = True
            events = self._delta(delta)
        elif not self._streamed and (message := choice.get("message")):
            events = self._delta(message)
        if reason := choice.get("finish_reason"):
            self.draft.stop_reason = _STOP.get(reason, "other")
            events = [*events, *self._end()]
        return events

    def _delta(self, delta: dict[str, Any]) -> Iterable[StreamEvent]:
        """Read one delta in the order in which a model works: it thinks, writes, calls."""
        content = delta.get("content")
        if len(delta) == 1 and isinstance(content, str):
            # Nearly every delta: text and nothing else.
            return self._texts.text(content)
        events: list[StreamEvent] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if details := delta.get("reasoning_details"):
            said = self._details(details)
            thought = thought or said
        if thought:
            events += self._thinking(thought)
        if content:
            events += self._texts.text(content) if isinstance(content, str) else self._parts(content)
        if refusal := delta.get("refusal"):
            self._keep("refusal", self._kept.get("refusal", "") + refusal)
            events.append(notice(refusal))
        for field in ("extra_content", "thought_signature"):
            if sealed := delta.get(field):
                self._keep(field, string(sealed) if field == "thought_signature" else sealed)
        return [*events, *self._tools(delta)]

    def _thinking(self, text: str) -> Iterable[StreamEvent]:
        return [*self._texts.end(), *self.draft.thinking(string(text))]

    def _parts(self, content: list[Any]) -> Iterable[StreamEvent]:
        """Read content that is a list of typed parts."""
        events: list[StreamEvent] = []
        for part in content:
            kind = part["type"]
            if kind == "text":
                events += self._texts.text(string(part["text"]))
            elif kind == "thinking":
                said = part["thinking"]
                texts = [said] if isinstance(said, str) else [item.get("text") or "" for item in said]
                events += self._thinking("".join(texts))
            else:
                events += self._texts.end()
                self.draft.add(Block(type="opaque", provider=self.draft.provider, raw={"part": part}))
        return events

    def _details(self, details: list[Any]) -> str:
        """Keep structured reasoning once any of it is sealed; return its readable text."""
        for detail in details:
            _merge_detail(self._reasoning, detail)
        if any(detail.get("signature") or detail.get("data") for detail in details):
            self._keep("reasoning_details", [dict(item) for item in self._reasoning])
        return "".join(string(detail.get("text") or detail.get("summary") or "") for detail in details)

    def _keep(self, field: str, value: Any) -> None:
        """Keep a field of the message that the host wants back as it is, where it first came."""
        if self._place is None:
            self._place = self.draft.place()
        self._kept = {**self._kept, field: value}
        signature = self._kept.get("thought_signature")
        block = Block(type="opaque", provider=self.draft.provider, raw=self._kept, signature=signature)
        self.draft.fill(self._place, block)

    def _tools(self, delta: dict[str, Any]) -> Iterable[StreamEvent]:
        fragments = delta.get("tool_calls") or ()
        if legacy := delta.get("function_call"):
            fragments = [*fragments, {"index": "function_call", "function": legacy}]
        if not fragments:
            return NO_EVENTS
        events = list(self._texts.end())
        for fragment in fragments:
            if "custom" in fragment:
                raw = {"tool_call": fragment}
                self.draft.add(Block(type="opaque", provider=self.draft.provider, raw=raw))
            else:
                events += self._calls.add(fragment, several=len(fragments) > 1)
        return events

    def _end(self) -> Iterable[StreamEvent]:
        return [*self._texts.stop(), *self._calls.end()]


def _merge_detail(merged: list[dict[str, Any]], detail: dict[str, Any]) -> None:
    """Join a fragment of structured reasoning to the item it continues, or begin one."""
    last = merged[-1] if merged else {}
    if any(last.get(key) != detail.get(key) for key in ("type", "index")):
        merged.append(dict(detail))
        return
    for key, value in detail.items():
        before = last.get(key)
        joined = key in ("text", "summary") or (key in ("data", "signature") and value != before)
        if before and value and joined:
            last[key] = string(before) + string(value)
        elif value:
            last[key] = value


def usage(counts: Mapping[str, Any]) -> Usage | None:
    """Read the token counts of an answer.

    Hosts differ in where cached tokens are told, in whether `prompt_tokens` includes them and in whether
    `completion_tokens` includes reasoning; where they differ, `total_tokens` says which it is.

    Args:
        counts: The `usage` object.

    Returns:
        The tokens, None where the prompt's or the answer's count is missing.
    """
    prompt, written = _count(counts, "prompt_tokens"), _count(counts, "completion_tokens")
    if prompt is None or written is None:
        return None
    details = counts.get("prompt_tokens_details") or {}
    read = _first(
        _count(details, "cached_tokens"),
        _count(counts, "prompt_cache_hit_tokens"),
        _count(counts, "cache_read_input_tokens"),
        _count(counts, "cached_tokens"),
    )
    write = _first(_count(details, "cache_write_tokens"), _count(counts, "cache_creation_input_tokens"))
    thought = _first(
        _count(counts.get("completion_tokens_details") or {}, "reasoning_tokens"), _count(counts, "reasoning_tokens")
    )
    beyond = (_count(counts, "total_tokens") or 0) - prompt - written
    apart = read + write > prompt or (beyond == read + write and beyond != thought)
    if beyond > 0 and not apart and thought in (0, beyond):
        written += beyond
    fresh = prompt if apart else prompt - read - write
    return Usage(input=fresh, output=written, cache_read=read, cache_write=write)


def _count(counts: Mapping[str, Any], key: str) -> int | None:
    value = counts.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _first(*values: int | None) -> int:
    """Return the first count that was told, 0 when none was."""
    return next((value for value in values if value is not None), 0)
