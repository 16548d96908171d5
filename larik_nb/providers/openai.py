"""The Responses API, both ways. Nothing is stored at the vendor: reasoning travels sealed with the conversation.

Sources: platform.openai.com API reference "Responses" and its streaming events, guide "Reasoning"; read 2026-11-30.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from larik_nb.frames import Framing
from larik_nb.providers._abilities import effort_level, plain_target, sampling
from larik_nb.providers._fields import Frames, count, number, record, records, string
from larik_nb.providers._media import PDF, data_url
from larik_nb.providers._replay import Seal, Target, result_text
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
    from larik_nb.errors import Where
    from larik_nb.providers._refused import OptionalFields

INCOMPLETE: Mapping[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}

_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_FAILED = frozenset({"failed", "cancelled"})
_FINAL = frozenset(
    {
        "response.output_text.done",
        "response.reasoning_summary_text.done",
        "response.reasoning_text.done",
        "response.function_call_arguments.done",
    }
)
_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_KNOWN_CALL_FIELDS = frozenset({"type", "id", "call_id", "name", "arguments", "status"})
_BETWEEN_PARTS = "\n\n"


_OPTIONAL: OptionalFields = {
    "reasoning": (r"reasoning(?:\.\w+)?", "effort"),
    "include": ("include", r"reasoning\.encrypted_content"),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
}


class OpenAI:
    """The Responses API for one route.

    Args:
        provider: The route, stamped on blocks and messages.
        abilities: What is known of a model, by id.
    """

    framing: Framing = "sse"
    optional: OptionalFields = _OPTIONAL
    model_list = ModelList("/models")

    def __init__(self, *, provider: str = "openai", abilities: Abilities = unknown) -> None:
        self._provider = provider
        self._abilities = abilities

    def credential(self, key: str | None) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return bearer(key)

    def target(self, model: str) -> Target:
        """Return what the model takes of a conversation."""
        known = self._abilities(model)
        plain = plain_target(self._provider, model, known, documents=(PDF,))
        return replace(plain, tool_media=True, seal=_seal)

    def decoder(self, request: Request) -> OpenAIDecoder:
        """Return a fresh decoder for one answer."""
        return OpenAIDecoder(Draft(request, self._provider))

    def encode(self, request: Request) -> Wire:
        """Return the request for `/responses`, always streamed and never stored."""
        model = self._abilities(request.model)
        body: dict[str, Any] = {
            "model": request.model,
            "input": list(_input(request)),
            "stream": True,
            "store": False,
        }
        if request.system:
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = [_tool(tool.name, tool.description, tool.parameters) for tool in request.tools]
        if request.max_tokens:
            ceiling = model.max_output if model else None
            body["max_output_tokens"] = min(request.max_tokens, ceiling or request.max_tokens)
        body.update(_reasoning(request, model))
        body.update(_sampling(request, model))
        return Wire(path="/responses", body=body)

    def encode_count(self, request: Request) -> Wire:
        """Return the request for the count of its tokens."""
        body = self.encode(request).body
        counted = ("model", "input", "instructions", "tools", "reasoning")
        return Wire(path="/responses/input_tokens", body={k: v for k, v in body.items() if k in counted})

    def decode_count(self, data: Any) -> int:
        """Return the count."""
        return number(record(data).get("input_tokens"))


# -- settings -------------------------------------------------------------------------------------------------------
def _effort(request: Request, model: Model | None) -> str | None:
    """Return the level to ask for; a budget of zero is the level "none" where there is one."""
    if request.thinking_budget == 0 and model and "none" in (model.efforts or ()):
        return "none"
    return effort_level(request, model)


def _reasoning(request: Request, model: Model | None) -> dict[str, Any]:
    """Return the reasoning settings; nothing for models that have none and refuse to hear of it."""
    if model is not None and model.thinking is not None and not model.thinking:
        return {}
    sealed: dict[str, Any] = {"include": ["reasoning.encrypted_content"]}
    effort = _effort(request, model)
    if model is None and effort is None:
        return sealed
    return sealed | {"reasoning": {"summary": "auto", **({"effort": effort} if effort else {})}}


def _sampling(request: Request, model: Model | None) -> dict[str, float]:
    """Return the sampling settings for the models that take them, at the effort that holds where none is sent too."""
    return sampling(request, model, _effort(request, model) or (model.default_effort if model else None))


def _tool(name: str, description: str, parameters: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": parameters or {"type": "object", "properties": {}},
        # The default is strict, which takes a part of JSON Schema only.
        "strict": False,
    }


# -- conversation ---------------------------------------------------------------------------------------------------
def _input(request: Request) -> Iterator[dict[str, Any]]:
    for turn in request.messages:
        yield from _user_items(turn.blocks) if turn.role == "user" else map(_output_item, turn.blocks)


def _user_items(blocks: Iterable[Block]) -> Iterator[dict[str, Any]]:
    """Yield the results of calls, which are items of their own here, then one message with the rest."""
    content: list[dict[str, Any]] = []
    for block in blocks:
        match block.type:
            case "tool_result":
                yield {"type": "function_call_output", "call_id": block.id, "output": _result(block)}
            case "text":
                content.append({"type": "input_text", "text": block.text})
            case _:
                content.append(_media(block))
    if content:
        yield {"type": "message", "role": "user", "content": content}


def _output_item(block: Block) -> dict[str, Any]:
    """Return the item for one of the assistant's blocks."""
    match block.type:
        case "text":
            phase = record(block.raw).get("phase")
            return _said(block.text or "") | ({"phase": phase} if phase else {})
        case "tool_use":
            return {
                "type": "function_call",
                "call_id": block.id,
                "name": block.name,
                "arguments": _compact(block.input),
                **record(block.raw),
            }
        case _:
            item = record(block.raw)
            return _said(string(item.get("refusal"))) if item.get("type") == "refusal" else item


def _seal(block: Block) -> Seal | None:
    """Return how an item goes back; the server keeps none, so reasoning that is only an id means nothing to it."""
    item = block.raw
    if block.type != "opaque" or not isinstance(item, dict) or not item.get("type"):
        return None
    if item["type"] == "refusal":
        return Seal() if item.get("refusal") else None
    if item["type"] != "reasoning":
        return Seal()
    return Seal(needs="next", whole=bool(item.get("encrypted_content") or item.get("content")))


def _said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text}


def _compact(value: dict[str, Any] | None) -> str:
    """Return arguments as models write them, so that a cached prompt stays the same."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _result(block: Block) -> str | list[dict[str, Any]]:
    if not block.images:
        return result_text(block)
    text = [{"type": "input_text", "text": result_text(block)}] if block.content else []
    return [*text, *map(_media, block.images)]


def _media(block: Block) -> dict[str, Any]:
    if block.type == "image":
        return {"type": "input_image", "image_url": data_url(block), "detail": "auto"}
    return {"type": "input_file", "filename": block.name or "document.pdf", "file_data": data_url(block)}


# -- answer ---------------------------------------------------------------------------------------------------------
class _Item:
    """An output item while it grows: the text shown of it, and the place its final form goes to."""

    __slots__ = ("done", "kind", "parts", "place", "shown")

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.kind = ""
        self.parts: list[Any] = []
        self.place: Any = None
        self.done = False


class OpenAIDecoder:
    """Reads the events of one answer, or the response object that came instead of them."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._frames = Frames()
        self._items: dict[Any, _Item] = {}
        self._last: _Item | None = None
        self._writing: _Item | None = None
        self._refused = False
        self.ended = False

    def event(self, name: str, data: Any) -> Iterable[StreamEvent]:
        """Take one event in; unknown ones pass."""
        if self.ended:
            return NO_EVENTS
        event = self._frames.read(name, data)
        if event is None:
            return NO_EVENTS
        kind = string(event.get("type")) or name
        if kind in ("", "response.done"):
            kind = _untyped(event)
        if kind == "response.output_text.delta":
            return self._text(self._item(event), string(event.get("delta")))
        if kind.endswith(".delta"):
            return self._delta(kind, event)
        match kind:
            case "response.output_item.added":
                return self._added(self._item(event), record(event.get("item")))
            case "response.output_item.done":
                return self._done(self._item(event), record(event.get("item")))
            case "response.content_part.added":
                self._writing = None
            case _ if kind in _FINAL:
                return self._final(kind, event)
            case "response.reasoning_summary_part.added" if event.get("summary_index"):
                return self._thought(self._item(event), _BETWEEN_PARTS)
            case "response.created" | "response.in_progress":
                self._note(record(event.get("response")))
            case _ if kind in _TERMINAL:
                status = {"status": kind.rpartition(".")[2]}
                return self._end(status | record(event.get("response")), event, "sse")
            case _ if kind == "error" or (event.get("error") and not kind.startswith("response.")):
                raise stream_error(event, "sse")
        return NO_EVENTS

    def whole(self, data: Any) -> Iterable[StreamEvent]:
        """Take a response in that came whole."""
        if not isinstance(data, dict) or "output" not in data:
            raise stream_error(data, "json_200")
        return self._end(data, data, "json_200")

    def finish(self) -> Message:
        """Return the answer; its end mark is a terminal event, which carries the whole response."""
        if not self.ended:
            raise ended_early("no response.completed")
        return self.draft.finished()

    # -- pieces ---------------------------------------------------------------------------------------------------
    def _item(self, event: dict[str, Any]) -> _Item:
        """Return the item an event is about: by id, else by place, else the one that came last.

        Servers leave one or the other out, or give an item another id when it is done.
        """
        known = event.get("item_id")
        if isinstance(known, str) and (item := self._items.get(known)) is not None:
            self._last = item
            return item
        keys = [key for key in (_item_id(event), event.get("output_index")) if isinstance(key, str | int)]
        found = next((self._items[key] for key in keys if key in self._items), None)
        if found is None:
            fresh = "item" in event and not (event.get("type") == "response.output_item.done" and not keys)
            found = self._last if self._last is not None and not fresh else _Item()
        for key in keys:
            self._items.setdefault(key, found)
        self._last = found
        return found

    def _text(self, item: _Item, piece: str) -> tuple[StreamEvent, ...]:
        if self._writing is not item:
            self._writing = item
            item.parts.append(self.draft.open("text"))
        item.shown.append(piece)
        return self.draft.text(piece)

    def _thought(self, item: _Item, piece: str) -> tuple[StreamEvent, ...]:
        if self._writing is not None or not item.shown:
            self.draft.close()
            self._writing = None
        item.shown.append(piece)
        return self.draft.thinking(piece)

    def _delta(self, kind: str, event: dict[str, Any]) -> tuple[StreamEvent, ...]:
        if kind in _THOUGHTS:
            item = self._item(event)
            item.kind = item.kind or kind
            # Where a server sends both a summary and the thoughts themselves, the first to come is shown.
            return self._thought(item, string(event.get("delta"))) if item.kind == kind else NO_EVENTS
        if kind == "response.function_call_arguments.delta":
            item = self._item(event)
            if self.draft.has_tool(item):
                return self.draft.tool_input(item, string(event.get("delta")))
        return NO_EVENTS

    def _final(self, kind: str, event: dict[str, Any]) -> tuple[StreamEvent, ...]:
        """Take the whole of a piece whose deltas never came."""
        item = self._item(event)
        if kind == "response.function_call_arguments.done":
            missing = self.draft.has_tool(item) and not self.draft.tool_part(item).pieces
            return self.draft.tool_input(item, _arguments(event.get("arguments"))) if missing else ()
        show = self._text if kind == "response.output_text.done" else self._thought
        text = string(event.get("text"))
        return show(item, text) if text and not item.shown and not item.done else ()

    # -- items ----------------------------------------------------------------------------------------------------
    def _added(self, item: _Item, data: dict[str, Any]) -> tuple[StreamEvent, ...]:
        self._writing = None
        kind = data.get("type")
        if kind == "function_call":
            return self._call(item, data)
        if kind == "message":
            self.draft.close()
        elif item.place is None:
            item.place = self.draft.place()
        return NO_EVENTS

    def _call(self, item: _Item, data: dict[str, Any]) -> tuple[StreamEvent, ...]:
        if self.draft.has_tool(item):
            return NO_EVENTS
        self._writing = None
        return self.draft.tool(item, string(data.get("call_id")) or None, string(data.get("name")))

    def _done(self, item: _Item, data: dict[str, Any]) -> tuple[StreamEvent, ...]:
        """Take an item's final form, which wins over its deltas."""
        if item.done:
            return NO_EVENTS
        item.done = True
        match data.get("type"):
            case "message":
                return self._message(item, data)
            case "function_call":
                return self._called(item, data)
            case "reasoning":
                events = self._rest(item, _thoughts(data), self._thought)
                self._seal(item, data)
                return events
        self._seal(item, data)
        return NO_EVENTS

    def _message(self, item: _Item, data: dict[str, Any]) -> tuple[StreamEvent, ...]:
        content = records(data.get("content"))
        texts = [string(part.get("text")) for part in content if part.get("type") in ("output_text", "text")]
        events = self._rest(item, "".join(texts), self._text)
        raw = {"phase": phase} if (phase := string(data.get("phase"))) else {}
        notes = [note for part in content for note in records(part.get("annotations"))]
        for part in item.parts if raw or notes else ():
            part.extra["raw"] = raw | ({"annotations": notes} if part is item.parts[-1] and notes else {})
        for part in content:
            if part.get("type") == "refusal":
                events += self._refuse(part)
        self._writing = None
        self.draft.close()
        return events

    def _refuse(self, part: dict[str, Any]) -> tuple[StreamEvent, ...]:
        self._refused = True
        self.draft.add(Block(type="opaque", provider=self.draft.provider, raw=part))
        return (notice(f"The model declined to answer: {string(part.get('refusal'))}"),)

    def _called(self, item: _Item, data: dict[str, Any]) -> tuple[StreamEvent, ...]:
        events = self._call(item, data)
        part = self.draft.tool_part(item)
        final = _arguments(data.get("arguments"))
        if not part.pieces:
            events += self.draft.tool_input(item, final)
        elif final:
            self.draft.set_tool_input(item, final)
        part.extra["name"] = string(data.get("name")) or part.extra["name"]
        if extra := {name: value for name, value in data.items() if name not in _KNOWN_CALL_FIELDS and value}:
            part.extra["raw"] = extra
        return events

    def _rest(
        self, item: _Item, final: str, show: Callable[[_Item, str], tuple[StreamEvent, ...]]
    ) -> tuple[StreamEvent, ...]:
        """Show what of an item's final text its deltas have not shown."""
        shown = "".join(item.shown)
        return show(item, final[len(shown) :]) if final.startswith(shown) and final != shown else NO_EVENTS

    def _seal(self, item: _Item, data: dict[str, Any]) -> None:
        """Keep an item whole, to be sent back as it is."""
        if not data:
            return
        if item.place is None:
            item.place = self.draft.place()
        self._writing = None
        self.draft.fill(item.place, Block(type="opaque", provider=self.draft.provider, raw=data))

    # -- the response ---------------------------------------------------------------------------------------------
    def _note(self, response: dict[str, Any]) -> None:
        self.draft.model = string(response.get("model")) or self.draft.model
        if (usage := _usage(response.get("usage"))) is not None:
            self.draft.usage = usage

    def _end(self, response: dict[str, Any], source: dict[str, Any], where: Where) -> Iterator[StreamEvent]:
        """Take the whole response in; `source` is what an error in it is classified by."""
        self._note(response)
        for index, data in enumerate(records(response.get("output"))):
            yield from self._done(self._item({"item": data, "output_index": index}), data)
        status = string(response.get("status"))
        if status in _FAILED or response.get("error"):
            raise stream_error(source, where)
        self.draft.stop_reason = self._reason(status, record(response.get("incomplete_details")))
        self.ended = True

    def _reason(self, status: str, details: dict[str, Any]) -> StopReason | None:
        """Return why it ended: this API says only whether it is complete."""
        if status == "incomplete":
            return INCOMPLETE.get(string(details.get("reason")), "other")
        if self._refused:
            return "refusal"
        if status in ("completed", ""):
            return "tool_use" if self.draft.calls else "end_turn" if status else None
        return "other"


def _arguments(value: Any) -> str:
    """Return a call's arguments as text; some servers send the object itself."""
    return json.dumps(value) if isinstance(value, dict) else string(value)


def _untyped(event: dict[str, Any]) -> str:
    """Return the type of an event that says none, where the response in it has come to an end."""
    status = record(event.get("response")).get("status")
    return f"response.{status}" if f"response.{status}" in _TERMINAL else ""


def _item_id(event: dict[str, Any]) -> Any:
    item = event.get("item")
    return event.get("item_id") or (item.get("id") if isinstance(item, dict) else None)


def _thoughts(item: dict[str, Any]) -> str:
    """Return a reasoning item's readable words: its summary, else its content, as servers may send both."""
    for field in ("summary", "content"):
        texts = [string(part.get("text")) for part in records(item.get(field))]
        if any(texts):
            return _BETWEEN_PARTS.join(texts)
    return ""


def _usage(usage: Any) -> Usage | None:
    """Return the token counts; this API counts cached tokens, read and written, within `input_tokens`."""
    fields = record(usage)
    given, output = count(fields.get("input_tokens")), count(fields.get("output_tokens"))
    if given is None or output is None:
        return None
    details = record(fields.get("input_tokens_details"))
    read, written = count(details.get("cached_tokens")) or 0, count(details.get("cache_write_tokens")) or 0
    return Usage(input=max(0, given - read - written), output=output, cache_read=read, cache_write=written)
