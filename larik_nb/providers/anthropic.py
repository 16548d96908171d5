"""The Messages API, both ways.

Sources: platform.claude.com API reference and guides on streaming, thinking, caching, refusals; read 2026-11-30.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from larik_nb.frames import Framing
from larik_nb.providers._abilities import effort_level, plain_target
from larik_nb.providers._fields import Frames, count, number, record, records, string
from larik_nb.providers._media import PDF, words
from larik_nb.providers._replay import Seal, Target
from larik_nb.providers._wire import (
    NO_EVENTS,
    Abilities,
    Draft,
    ModelList,
    Wire,
    bearer,
    ended_early,
    stream_error,
    unknown,
)
from larik_nb.types import Block, Message, Request, StopReason, StreamEvent, Usage, notice

if TYPE_CHECKING:
    from larik_nb.catalog import Model
    from larik_nb.providers._refused import OptionalFields

API_VERSION = "2026-10-21"
MAX_TOKENS = 16_000
"""Limit of an answer when none is asked for: the wire wants one (specification A1)."""
LEAST_BUDGET = 1_024
"""Smallest `budget_tokens` the API takes."""
BINDING_BETA = "thinking-binding-controls-2026-08-01"

BUDGET_SHARES: Mapping[str, float] = {"low": 0.125, "medium": 0.25, "high": 0.5, "xhigh": 0.625, "max": 0.75}
"""How much of `max_tokens` may go into thinking, on models that take a budget and no effort. Ours: the API has none."""

STOP_REASONS: Mapping[str, StopReason] = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_use",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",
    "model_context_window_exceeded": "context_overflow",
}

_EFFORTS = (None, "low", "medium", "high", "xhigh", "max")
_EPHEMERAL = {"type": "ephemeral"}
_CACHEABLE = frozenset({"text", "image", "document", "tool_use", "tool_result"})
_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_KNOWN_CALL_FIELDS = frozenset({"type", "id", "name", "input"})


_OPTIONAL: OptionalFields = {
    "thinking": ("thinking", "budget_tokens"),
    "output_config": ("effort", "output_config"),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
}


class Anthropic:
    """The Messages API for one route.

    Args:
        provider: The route, stamped on blocks and messages.
        abilities: What is known of a model, by id.
    """

    framing: Framing = "sse"
    optional: OptionalFields = _OPTIONAL
    model_list = ModelList("/v1/models?limit=1000", {"anthropic-version": API_VERSION}, ("last_id", "after_id"))

    def __init__(self, *, provider: str = "anthropic", abilities: Abilities = unknown) -> None:
        self._provider = provider
        self._abilities = abilities

    def credential(self, key: str | None) -> Mapping[str, str]:
        """Return the header that carries the key; version 2026-10-21 takes it as a bearer token."""
        return bearer(key)

    def target(self, model: str) -> Target:
        """Return what the model takes of a conversation."""
        known = self._abilities(model)
        return replace(
            plain_target(self._provider, model, known, documents=(PDF,)),
            text_documents=True,
            tool_media=True,
            opening=True,
            prefill=known is None or known.prefill,
            resumes=True,
            seal=_seal,
        )

    def decoder(self, request: Request) -> AnthropicDecoder:
        """Return a fresh decoder for one answer."""
        return AnthropicDecoder(Draft(request, self._provider))

    def encode(self, request: Request) -> Wire:
        """Return the request for `/v1/messages`, always streamed."""
        model = self._abilities(request.model)
        limit = _max_tokens(request, model)
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": limit,
            "messages": _messages(request),
            "stream": True,
        }
        headers = {"anthropic-version": API_VERSION}
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, "cache_control": _EPHEMERAL}]
        if request.tools:
            body["tools"] = _tools(request)
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        body.update(_thinking(request, model, limit))
        if model and model.bound_thinking and _thinks(body):
            body["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
            headers["anthropic-beta"] = BINDING_BETA
        sampling = _sampling(request, model, thinking=_thinks(body))
        if sampling and model and model.sampling_api_version:
            headers["anthropic-version"] = model.sampling_api_version
        return Wire(path="/v1/messages", body={**body, **sampling}, headers=headers)

    def encode_count(self, request: Request) -> Wire:
        """Return the request for the count of its tokens."""
        wire = self.encode(request)
        counted = ("model", "messages", "system", "tools", "thinking", "output_config")
        body = {name: value for name, value in wire.body.items() if name in counted}
        return Wire(path="/v1/messages/count_tokens", body=body, headers=wire.headers)

    def decode_count(self, data: Any) -> int:
        """Return the count."""
        return number(record(data).get("input_tokens"))


# -- settings -------------------------------------------------------------------------------------------------------
def _max_tokens(request: Request, model: Model | None) -> int:
    ceiling = model.max_output if model else None
    wanted = request.max_tokens or MAX_TOKENS
    return min(wanted, ceiling) if ceiling else wanted


def _thinks(body: Mapping[str, Any]) -> bool:
    return body.get("thinking", {}).get("type") in ("adaptive", "enabled")


def _thinking(request: Request, model: Model | None, limit: int) -> dict[str, Any]:
    """Return `thinking` and `output_config`: what was asked, by the nearest means that the model takes."""
    kinds = (model.thinking if model else None) or ()
    effort = effort_level(request, model)
    if effort == "minimal":
        effort = "low"
    out: dict[str, Any] = {"output_config": {"effort": effort}} if effort else {}
    if request.thinking_budget == 0:
        return out | _least(kinds, effort, model)
    budget = 0 if _goes_on_thoughtless(request.messages) else _budget(request, limit)
    if budget and "enabled" in kinds and ("adaptive" not in kinds or request.thinking_budget):
        return out | {"thinking": {"type": "enabled", "budget_tokens": budget}}
    asked = bool(request.effort or request.thinking_budget)
    if ("adaptive" in kinds and (asked or (model and model.thinking_on))) or (model is None and asked):
        # The newest models send no readable thinking unless asked for its summary.
        return out | {"thinking": {"type": "adaptive", "display": "summarized"}}
    return out


def _goes_on_thoughtless(turns: Sequence[Message]) -> bool:
    """Return whether the answer continues calls of a turn that did not begin with a thought.

    Budgeted thinking is refused then. It comes about when another model began the turn.
    """
    if not any(block.type == "tool_result" for block in turns[-1].blocks):
        return False
    began = turns[-1]
    for turn in reversed(turns[:-1]):
        if turn.role == "user" and any(block.type != "tool_result" for block in turn.blocks):
            break
        began = turn if turn.role == "assistant" else began
    return began.blocks[0].type != "thinking"


def _least(kinds: Sequence[str], effort: str | None, model: Model | None) -> dict[str, Any]:
    """Return the lowest setting the model has, for a budget of zero."""
    ceiling = model.disable_max_effort if model else None
    too_high = bool(ceiling and effort) and _EFFORTS.index(effort) > _EFFORTS.index(ceiling)
    if "disabled" in kinds and not too_high:
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "between_tools"}} if "between_tools" in kinds else {}


def _budget(request: Request, limit: int) -> int:
    """Return the tokens for thinking; 0 where none were asked for or none fit below the answer's limit."""
    wanted = request.thinking_budget or int(limit * BUDGET_SHARES.get(request.effort or "", 0))
    budget = min(max(wanted, LEAST_BUDGET), limit - 1) if wanted else 0
    return budget if budget >= LEAST_BUDGET else 0


def _sampling(request: Request, model: Model | None, *, thinking: bool) -> dict[str, Any]:
    """Return the sampling settings for the models that take them, and never beside thinking.

    Only one of the two goes out, since the models that take both at once are gone.
    """
    if model is None or model.sampling != "yes" or thinking:
        return {}
    if request.temperature is not None:
        return {"temperature": request.temperature}
    return {"top_p": request.top_p} if request.top_p is not None else {}


def _tools(request: Request) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters or {"type": "object", "properties": {}},
        }
        for tool in request.tools
    ]
    if not request.system:
        # Tools come first in the prompt: the system's breakpoint covers them, where there is one.
        tools[-1]["cache_control"] = _EPHEMERAL
    return tools


# -- conversation ---------------------------------------------------------------------------------------------------
def _messages(request: Request) -> list[dict[str, Any]]:
    out = [{"role": turn.role, "content": [_item(block) for block in turn.blocks]} for turn in request.messages]
    _mark(out)
    return out


def _mark(messages: list[dict[str, Any]]) -> None:
    """Put cache breakpoints on the last two user turns: one to write, one that the last request has written."""
    for message in [message for message in messages if message["role"] == "user"][-2:]:
        last = next((item for item in reversed(message["content"]) if item["type"] in _CACHEABLE), None)
        if last is not None:
            last["cache_control"] = _EPHEMERAL


def _item(block: Block) -> dict[str, Any]:
    """Return the content block for one of ours."""
    match block.type:
        case "text":
            return {"type": "text", "text": block.text, **record(block.raw)}
        case "image" | "document":
            return _media(block)
        case "tool_use":
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input, **record(block.raw)}
        case "tool_result":
            return _result(block)
        case "thinking" if block.redacted:
            return {"type": "redacted_thinking", "data": block.signature}
        case "thinking":
            return {"type": "thinking", "thinking": block.text or "", "signature": block.signature}
        case "opaque":
            return record(block.raw)


def _result(block: Block) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.id}
    text = [{"type": "text", "text": block.content}] if block.content else []
    if block.images:
        out["content"] = [*text, *map(_media, block.images)]
    elif block.content:
        out["content"] = block.content
    if block.is_error:
        out["is_error"] = True
    return out


def _media(block: Block) -> dict[str, Any]:
    source: dict[str, Any] = {"type": "base64", "media_type": block.media_type, "data": block.data}
    if block.type == "document" and (text := words(block)) is not None:
        source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": block.type, "source": source, **({"title": block.name} if block.name else {})}


def _seal(block: Block) -> Seal | None:
    """Return how a sealed block goes back; thoughts may not end a message, and unsigned ones are refused."""
    if block.type == "thinking":
        return Seal(needs="next") if block.signature else None
    item = block.raw
    if not isinstance(item, dict) or item.get("type") == "refusal":
        return None
    call = item.get("id") if item.get("type") in _SERVER_CALLS else None
    return Seal(call=call, answers=item.get("tool_use_id"))


# -- answer ---------------------------------------------------------------------------------------------------------
class AnthropicDecoder:
    """Reads the events of one answer, or the message that came instead of them."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._frames = Frames()
        self._counts: dict[str, int] = {}
        self._sealed: _Sealed | None = None
        self._given: dict[Any, Any] = {}
        self.ended = False

    def event(self, name: str, data: Any) -> Iterable[StreamEvent]:
        """Take one event in; unknown ones pass."""
        if self.ended:
            return NO_EVENTS
        event = self._frames.read(name, data)
        if event is None:
            # Gateways put another protocol's end mark behind the reason to stop.
            self.ended = data == "[DONE]" and self.draft.stop_reason is not None
            return NO_EVENTS
        match event.get("type", name):
            case "content_block_delta":
                return self._delta(event)
            case "content_block_start":
                return self._start(event.get("index"), record(event.get("content_block")))
            case "content_block_stop":
                return self._stop(event.get("index"))
            case "message_start":
                self._begin(record(event.get("message")))
            case "message_delta":
                return self._end(record(event.get("delta")), event.get("usage"))
            case "message_stop":
                self.ended = True
            case "error":
                raise stream_error(event, "sse")
            case _ if event.get("error"):
                raise stream_error(event, "sse")
        return NO_EVENTS

    def whole(self, data: Any) -> Iterable[StreamEvent]:
        """Take a message in that came whole."""
        if not isinstance(data, dict) or "content" not in data:
            raise stream_error(data, "json_200")
        self._begin(data)
        for index, block in enumerate(records(data["content"])):
            yield from self._start(index, block)
            yield from self._stop(index)
        yield from self._end(data, data.get("usage"))
        self.ended = True

    def finish(self) -> Message:
        """Return the answer; its end mark is `message_stop`."""
        if not self.ended:
            raise ended_early("no message_stop")
        return self.draft.finished()

    # -- the message ----------------------------------------------------------------------------------------------
    def _begin(self, message: dict[str, Any]) -> None:
        self.draft.model = string(message.get("model")) or None
        self._count(message.get("usage"), final=False)

    def _count(self, usage: Any, *, final: bool) -> None:
        """Merge in the counts of one event: each is cumulative, so the last one given wins.

        Until message_delta brings the final output count, ours is the little that had been written at the start.
        """
        fields = record(usage)
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            if (value := count(fields.get(name))) is not None:
                self._counts[name] = value
        counts = self._counts
        if "input_tokens" in counts and "output_tokens" in counts:
            self.draft.usage = Usage(
                input=counts["input_tokens"],
                output=counts["output_tokens"],
                cache_read=counts.get("cache_read_input_tokens", 0),
                cache_write=counts.get("cache_creation_input_tokens", 0),
                estimated=not (final and "output_tokens" in fields),
            )

    def _end(self, delta: dict[str, Any], usage: Any) -> Iterable[StreamEvent]:
        self._count(usage, final=True)
        if reason := string(delta.get("stop_reason")):
            self.draft.stop_reason = STOP_REASONS.get(reason, "other")
        events = [event for key in list(self._given) for event in self._whole_input(key)]
        return [*events, *self._refusal(record(delta.get("stop_details")))] if reason == "refusal" else events

    def _refusal(self, details: dict[str, Any]) -> tuple[StreamEvent, ...]:
        """Say that the model declined, and keep the vendor's details, which are never sent back."""
        if details:
            self.draft.add(Block(type="opaque", provider=self.draft.provider, raw={**details, "type": "refusal"}))
        category, explanation = string(details.get("category")), string(details.get("explanation"))
        what = f"The model declined to answer ({category})" if category else "The model declined to answer"
        return (notice(f"{what}: {explanation}" if explanation else f"{what}."),)

    # -- content blocks -------------------------------------------------------------------------------------------
    def _start(self, index: Any, block: dict[str, Any]) -> Iterable[StreamEvent]:
        draft = self.draft
        self._seal()
        match block.get("type"):
            case "text":
                part = draft.open("text")
                if citations := records(block.get("citations")):
                    part.extra["raw"] = {"citations": citations}
                return draft.text(string(block.get("text")))
            case "thinking":
                draft.open("thinking")
                events = draft.thinking(string(block.get("thinking")))
                if signature := string(block.get("signature")):
                    draft.sign(signature, "thinking")
                return events
            case "redacted_thinking":
                draft.add(
                    Block(
                        type="thinking",
                        redacted=True,
                        signature=string(block.get("data")),
                        provider=draft.provider,
                    )
                )
            case "tool_use":
                return self._tool(_key(index), block)
            case _:
                if block.get("type") == "fallback":
                    draft.model = string(record(block.get("to")).get("model")) or draft.model
                self._sealed = _Sealed(index, dict(block), draft.place())
        return NO_EVENTS

    def _tool(self, key: Any, block: dict[str, Any]) -> tuple[StreamEvent, ...]:
        extra = {name: value for name, value in block.items() if name not in _KNOWN_CALL_FIELDS}
        if given := block.get("input"):
            self._given[key] = given
        fields = {"raw": extra} if extra else {}
        return self.draft.tool(key, string(block.get("id")) or None, string(block.get("name")), **fields)

    def _delta(self, event: dict[str, Any]) -> Iterable[StreamEvent]:
        delta = record(event.get("delta"))
        match delta.get("type"):
            case "text_delta":
                return self.draft.text(string(delta.get("text")))
            case "thinking_delta":
                return self.draft.thinking(string(delta.get("thinking")))
            case "input_json_delta":
                return self._input(event.get("index"), string(delta.get("partial_json")))
            case "signature_delta":
                self.draft.sign(string(delta.get("signature")), "thinking")
            case "citations_delta":
                self.draft.cite(record(delta.get("citation")))
            case _ if self._sealed is not None:
                self._sealed.block.update((k, v) for k, v in delta.items() if k != "type")
        return NO_EVENTS

    def _input(self, index: Any, fragment: str) -> tuple[StreamEvent, ...]:
        if self._sealed is not None and self._sealed.index == index:
            self._sealed.input.append(fragment)
            return NO_EVENTS
        key = _key(index)
        if not self.draft.has_tool(key):
            return NO_EVENTS
        if fragment:
            self._given.pop(key, None)
        return self.draft.tool_input(key, fragment)

    def _stop(self, index: Any) -> Iterable[StreamEvent]:
        self._seal()
        self.draft.close()
        return self._whole_input(_key(index))

    def _whole_input(self, key: Any) -> Iterable[StreamEvent]:
        """Take the input that came with the call's beginning, where no fragment followed it."""
        given = self._given.pop(key, None)
        if given is None:
            return NO_EVENTS
        return self.draft.tool_input(key, given if isinstance(given, str) else json.dumps(given))

    def _seal(self) -> None:
        """Keep a block that only the server understands, once it is complete."""
        sealed, self._sealed = self._sealed, None
        if sealed is None:
            return
        if text := "".join(sealed.input):
            try:
                sealed.block["input"] = json.loads(text, strict=False)
            except (ValueError, RecursionError):
                # Cut by a limit: the server never ran it and would not take it back.
                return
        self.draft.fill(sealed.place, Block(type="opaque", provider=self.draft.provider, raw=sealed.block))


class _Sealed:
    """A block of the server's own while it grows: its JSON, the fragments of its input, its place in the answer."""

    __slots__ = ("block", "index", "input", "place")

    def __init__(self, index: Any, block: dict[str, Any], place: Any) -> None:
        self.index = index
        self.block = block
        self.input: list[str] = []
        self.place = place


def _key(index: Any) -> Any:
    """Return what stands for a block on the wire; servers that leave the index out send one call at a time."""
    return index if isinstance(index, int) else None
