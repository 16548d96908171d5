"""Chat Completions, for every host that speaks it.

The wire is one vendor's and the hosts are many: each leaves something out, adds something or repeats something.
What a host needs in a request is data (`quirks`); what it may do in an answer is read whoever the host is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from larik_nb import errors
from larik_nb.providers._abilities import effort_level, plain_target, sampling
from larik_nb.providers._fields import SHAPE_ERRORS, bad_shape, string, unreadable
from larik_nb.providers._media import data_url
from larik_nb.providers._presets import Quirks
from larik_nb.providers._replay import MADE_ID_LENGTH, Seal, Target, result_text
from larik_nb.providers._text_tools import TextTools
from larik_nb.providers._tool_fragments import ToolFragments
from larik_nb.providers._wire import (
    NO_EVENTS,
    Abilities,
    Draft,
    ModelList,
    Wire,
    bearer,
    ended_early,
    stop_reason,
    stream_error,
    unknown,
)
from larik_nb.types import Block, Message, Request, StopReason, StreamEvent, ToolSpec, Usage, notice

if TYPE_CHECKING:
    from larik_nb.catalog import Model
    from larik_nb.frames import Framing
    from larik_nb.providers._refused import OptionalFields

_STOP: Mapping[str, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
    # What other wires call it, where a gateway passes it on.
    "eos": "end_turn",
    "eos_token": "end_turn",
    "end_turn": "end_turn",
    "complete": "end_turn",
    "completed": "end_turn",
    "stop_sequence": "stop_sequence",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",
    "tool_use": "tool_use",
    "tool_call": "tool_use",
}
_KEPT = frozenset({"reasoning_details", "refusal", "extra_content", "thought_signature"})
"""Fields of an assistant message that go back as they came, to the model that wrote them."""

_COMPLAINTS = ("message", "detail", "error_msg", "msg")
_USUAL = Quirks()
_PLAIN_ID = r"[A-Za-z0-9_-]{1,40}"


_OPTIONAL: OptionalFields = {
    "stream_options": ("stream_options", "include_usage"),
    "reasoning_effort": ("reasoning_effort", "reasoning effort", "reasoning"),
    "reasoning": ("reasoning",),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "seed": ("seed",),
    "random_seed": ("random_seed",),
}


class OpenAICompatible:
    """The wire format, both ways.

    Args:
        provider: The route, stamped on messages.
        quirks: How the host deviates.
        abilities: What is known of a model, by id.
    """

    framing: Framing = "sse"
    optional: OptionalFields = _OPTIONAL

    def __init__(self, *, provider: str, quirks: Quirks = _USUAL, abilities: Abilities = unknown) -> None:
        self._provider = provider
        self._quirks = quirks
        self._abilities = abilities
        self.model_list = ModelList(quirks.models_path)

    def credential(self, key: str | None) -> Mapping[str, str]:
        """Return the bearer header, none without a key."""
        return bearer(key)

    def target(self, model: str) -> Target:
        """Return what the model takes of a conversation at this host."""
        known, quirks = self._abilities(model), self._quirks
        length = int(quirks.tool_ids.rpartition("-")[2]) if quirks.tool_ids else None
        return replace(
            plain_target(self._provider, model, known),
            tools=quirks.tools,
            ids=f"[A-Za-z0-9]{{{length}}}" if length else _PLAIN_ID,
            id_length=length or MADE_ID_LENGTH,
            own_ids=length is None,
            bridge=quirks.strict_turns,
            prefill=not quirks.strict_turns,
            seal=self._seal,
        )

    def _seal(self, block: Block) -> Seal | None:
        """Return how a thought or a field of the answer goes back: beside what else was said."""
        if block.type == "thinking":
            return Seal(needs="other") if self._quirks.reasoning_back and block.text else None
        fields = block.raw if isinstance(block.raw, dict) else {}
        if not fields or not fields.keys() <= _KEPT:
            return None
        return Seal(needs="" if fields.get("refusal") else "other")

    def decoder(self, request: Request) -> ChatDecoder:
        """Return a fresh decoder for the answer."""
        return ChatDecoder(request, self._provider)

    def encode(self, request: Request) -> Wire:
        """Return the HTTP request that asks `request`."""
        model = self._abilities(request.model)
        body: dict[str, Any] = {
            "model": request.model,
            "messages": list(messages(request, self._assistant, _user)),
            "stream": True,
        }
        if self._quirks.stream_options:
            body["stream_options"] = {"include_usage": True}
        if request.tools and self._quirks.tools:
            body["tools"] = [function_tool(tool) for tool in request.tools]
        return Wire(path="/chat/completions", body={**body, **self._settings(request, model)})

    def _assistant(self, blocks: Sequence[Block]) -> dict[str, Any]:
        texts, thoughts, calls = (
            [block for block in blocks if block.type == kind] for kind in ("text", "thinking", "tool_use")
        )
        said = "".join(block.text or "" for block in texts)
        message: dict[str, Any] = {"role": "assistant", "content": said or (None if calls else "")}
        if self._quirks.reasoning_back and (calls or thoughts):
            message[self._quirks.reasoning_back] = "".join(block.text or "" for block in thoughts)
        for block in blocks:
            if block.type == "opaque":
                message.update(block.raw)
        if calls:
            message["tool_calls"] = [_call(call) for call in calls]
        return message

    def _settings(self, request: Request, model: Model | None) -> dict[str, Any]:
        level = effort_level(request, model)
        values = {
            self._quirks.max_tokens: request.max_tokens,
            **sampling(request, model, level),
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


def messages(
    request: Request,
    assistant: Callable[[Sequence[Block]], dict[str, Any]],
    user: Callable[[Sequence[Block]], Iterable[dict[str, Any]]],
) -> Iterator[dict[str, Any]]:
    """Yield a conversation in the form that this wire and others after it take; their turns differ."""
    if request.system:
        yield {"role": "system", "content": request.system}
    for turn in request.messages:
        yield from [assistant(turn.blocks)] if turn.role == "assistant" else user(turn.blocks)


def function_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool in the form that this wire and others after it take."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters or {"type": "object", "properties": {}},
    }
    return {"type": "function", "function": function}


def _call(call: Block) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(call.input)}
    sealed = call.raw if isinstance(call.raw, dict) else {}
    return {"id": call.id, "type": "function", "function": function, **sealed}


def _user(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    """Yield one tool message for each result, then what the user said."""
    for block in blocks:
        if block.type == "tool_result":
            yield {"role": "tool", "tool_call_id": block.id, "content": result_text(block)}
    if parts := [_user_part(block) for block in blocks if block.type != "tool_result"]:
        yield {"role": "user", "content": _content(parts)}


def _user_part(block: Block) -> dict[str, Any]:
    if block.type == "image":
        return {"type": "image_url", "image_url": {"url": data_url(block)}}
    return {"type": "text", "text": block.text}


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return one string where all is text: not every host takes a list."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


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
        if not isinstance(data, dict) or not data.get("choices"):
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
        if "refusal" in self._kept and not draft.calls and draft.stop_reason in (None, "end_turn"):
            draft.stop_reason = "refusal"
        return draft.stopped_for_calls()

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
        if data.get("error") or name == "error" or (not data.get("choices") and _tells_a_failure(data)):
            raise stream_error(data, where)
        if self._unread is not None:
            raise unreadable(self._unread)
        self.draft.served_by(data.get("model"))
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
        if choice.get("error"):
            raise stream_error({"error": choice["error"]}, "sse" if self._streamed else "json_200")
        if reason := choice.get("finish_reason"):
            self.draft.stop_reason = _STOP.get(string(reason).lower()) or stop_reason(reason)
            events = [*events, *self._end()]
        return events

    def _delta(self, delta: dict[str, Any]) -> Iterable[StreamEvent]:
        """Read one delta in the order in which a model works: it thinks, writes, calls."""
        content = delta.get("content")
        if len(delta) == 1 and isinstance(content, str):
            # Nearly every delta: text and nothing else.
            return self._texts.text(content)
        events: list[StreamEvent] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning") or delta.get("reasoning_text")
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


def _tells_a_failure(data: Mapping[str, Any]) -> bool:
    """Return whether an object without a choice is an error of a host that has no field for errors."""
    base = data.get("base_resp")
    failed = isinstance(base, dict) and base.get("status_code") not in (0, None)
    return failed or data.get("object") == "error" or any(isinstance(data.get(key), str) for key in _COMPLAINTS)


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
