"""The Gemini API: `streamGenerateContent`, each event a partial response whose parts are appended in order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from larik_nb import errors
from larik_nb.providers._abilities import effort_level, plain_target, sampling
from larik_nb.providers._fields import SHAPE_ERRORS, bad_shape, number, record, string, unreadable
from larik_nb.providers._media import PDF
from larik_nb.providers._replay import Seal, Target
from larik_nb.providers._wire import NO_EVENTS, Abilities, Draft, ModelList, Wire, ended_early, stream_error, unknown
from larik_nb.types import Block, Message, Request, StopReason, StreamEvent, ToolSpec, Usage, notice

if TYPE_CHECKING:
    from larik_nb.catalog import Model
    from larik_nb.frames import Framing
    from larik_nb.providers._refused import OptionalFields

DISPLAY = "gemini-display"
"""Provider of thought summaries: no route has this name, so they are shown and never sent back."""

NO_SIGNATURE = "skip_thought_signature_validator"
"""Documented stand-in for the signature of a call that another model made (Thought signatures, FAQ)."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
FILES = (PDF, "audio/", "video/")
"""What the API takes as files (its guides on images, documents, audio and video; read 2026-11-30)."""

BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576, "xhigh": 24_576, "max": 24_576}
"""Thinking tokens for an effort where a model takes no levels, as the vendor's own Chat Completions endpoint maps
them; the last is the most that every such model takes."""

_STOP: Mapping[str, StopReason] = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "pause",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "LANGUAGE": "refusal",
    "MODEL_ARMOR": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
}
_SAYS_NOTHING = ("FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED")
_STEP = re.compile(r"""\.([^.*\[\]]+)|\[(\d+)\]|\[['"]((?:[^'"\\]|\\.)*)['"]\]""")


_OPTIONAL: OptionalFields = {
    "generationConfig.thinkingConfig": ("thinking[_ ]?(?:config|level|budget)?", "includethoughts"),
    "generationConfig.temperature": ("temperature",),
    "generationConfig.topP": ("top_?p",),
    "generationConfig.seed": ("seed",),
}


class Gemini:
    """The wire format, both ways.

    Args:
        provider: The route, stamped on messages.
        abilities: What is known of a model, by id.
    """

    framing: Framing = "sse"
    optional: OptionalFields = _OPTIONAL
    model_list = ModelList("/v1beta/models?pageSize=1000", {}, ("nextPageToken", "pageToken"))

    def __init__(self, *, provider: str = "gemini", abilities: Abilities = unknown) -> None:
        self._provider = provider
        self._abilities = abilities

    def credential(self, key: str | None) -> Mapping[str, str]:
        """Return the key's header."""
        return {"x-goog-api-key": key} if key else {}

    def target(self, model: str) -> Target:
        """Return what the model takes of a conversation."""
        known = self._abilities(model)
        return replace(
            plain_target(self._provider, model, known, images=IMAGE_TYPES, documents=FILES),
            tool_media=bool(known and known.tool_images),
            drawn_media=True,
            own_ids=True,
            opening=True,
            placeholder=NO_SIGNATURE if known is None or known.signed_calls else None,
            seal=_seal,
        )

    def decoder(self, request: Request) -> GeminiDecoder:
        """Return a fresh decoder for the answer."""
        return GeminiDecoder(request, self._provider)

    def encode(self, request: Request) -> Wire:
        """Return the HTTP request that asks `request`."""
        model = self._abilities(request.model)
        body: dict[str, Any] = {"contents": [_content(turn) for turn in request.messages]}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in request.tools]}]
        if config := _config(request, model):
            body["generationConfig"] = config
        return Wire(path=_path(request.model, "streamGenerateContent?alt=sse"), body=body)

    def encode_count(self, request: Request) -> Wire:
        """Return the request for the count of its tokens, instructions and tools included."""
        body = {"model": _name(request.model), **self.encode(request).body}
        return Wire(path=_path(request.model, "countTokens"), body={"generateContentRequest": body})

    def decode_count(self, data: Any) -> int:
        """Return the count."""
        return number(record(data).get("totalTokens"))


def _name(model: str) -> str:
    return model if "/" in model else f"models/{model}"


def _path(model: str, method: str) -> str:
    return f"/v1beta/{quote(_name(model), safe='/:@')}:{method}"


def _declaration(tool: ToolSpec) -> dict[str, Any]:
    declared = {"name": tool.name, "description": tool.description}
    return {**declared, "parametersJsonSchema": tool.parameters} if tool.parameters else declared


def _config(request: Request, model: Model | None) -> dict[str, Any]:
    sampled = sampling(request, model, None)
    values = {
        "maxOutputTokens": request.max_tokens,
        "temperature": sampled.get("temperature"),
        "topP": sampled.get("top_p"),
        "seed": request.seed,
        "stopSequences": list(request.stop) or None,
        "thinkingConfig": _thinking(request, model) or None,
    }
    return {key: value for key, value in values.items() if value is not None}


def _thinking(request: Request, model: Model | None) -> dict[str, Any]:
    """Return how to think: a level where the model has levels, else a budget, never both.

    Of a model that is not known only what the caller asks for is sent, since one that cannot think refuses it.
    """
    kinds = model.thinking if model else None
    if kinds == ():
        return {}
    level, budget = effort_level(request, model), request.thinking_budget
    if kinds is not None and "level" not in kinds:
        level, budget = None, budget if budget is not None else BUDGETS.get(request.effort or "")
    if level is not None:
        return {"includeThoughts": True, "thinkingLevel": level.upper()}
    if budget is not None and (kinds is None or "budget" in kinds):
        return {"includeThoughts": budget != 0, "thinkingBudget": budget}
    return {"includeThoughts": True} if kinds else {}


def _content(turn: Message) -> dict[str, Any]:
    return {"role": "model" if turn.role == "assistant" else "user", "parts": [_part(block) for block in turn.blocks]}


def _part(block: Block) -> dict[str, Any]:
    out: dict[str, Any]
    match block.type:
        case "text":
            out = {"text": block.text}
        case "tool_use":
            out = {"functionCall": {"id": block.id, "name": block.name, "args": block.input}}
        case "tool_result":
            return _response(block)
        case "opaque":
            return dict(block.raw)
        case _:
            out = _inline(block)
    return {**out, "thoughtSignature": block.signature} if block.signature else out


def _response(result: Block) -> dict[str, Any]:
    said = {"error" if result.is_error else "output": result.content or ""}
    response: dict[str, Any] = {"id": result.id, "name": result.name, "response": said}
    if result.images:
        response["parts"] = [_inline(item) for item in result.images]
    return {"functionResponse": response}


def _seal(block: Block) -> Seal | None:
    """Return how a part that only this wire knows goes back; summaries of thoughts never do."""
    return Seal() if block.type == "opaque" and isinstance(block.raw, dict) else None


def _inline(block: Block) -> dict[str, Any]:
    return {"inlineData": {"mimeType": block.media_type, "data": block.data}}


class GeminiDecoder:
    """Reads one answer, streamed or whole."""

    ended = False
    """This wire has no end mark: more may follow the finish reason."""

    def __init__(self, request: Request, provider: str) -> None:
        self.draft = Draft(request, provider)
        self._call: _PartialCall | None = None
        self._ended = False
        self._unread: str | None = None

    def event(self, name: str, data: Any) -> Iterable[StreamEvent]:
        """Take one partial response in and return the deltas it makes (`Decoder.event`)."""
        if name == "error" and not isinstance(data, dict):
            raise stream_error(data or {"error": {"message": "an error without a word"}}, "sse")
        if data is None:
            return NO_EVENTS
        if self._unread is not None:
            raise unreadable(self._unread)
        if isinstance(data, str):
            # Cut short if it is the last frame, unreadable if another follows.
            self._unread = data
            return NO_EVENTS
        return self._responses(data, "sse")

    def whole(self, data: Any) -> Iterable[StreamEvent]:
        """Take in a JSON answer, or the list of partial responses that this API sends without `alt=sse`."""
        events = self._responses(data, "json_200")
        if not self.draft.blocks() and not self._ended:
            raise stream_error(data, "json_200")
        self._ended = True
        return events

    def finish(self) -> Message:
        """Return the answer; one that calls tools stops for them (`Decoder.finish`)."""
        if not self._ended:
            raise ended_early("no finishReason")
        return self.draft.stopped_for_calls()

    def _responses(self, data: Any, where: errors.Where) -> Iterable[StreamEvent]:
        try:
            if type(data) is dict:
                return self._response(data, where)
            return [event for item in data for event in self._response(item, where)]
        except SHAPE_ERRORS as exc:
            raise bad_shape(exc) from exc

    def _response(self, data: dict[str, Any], where: errors.Where) -> Iterable[StreamEvent]:
        if data.get("error"):
            raise stream_error(data, where)
        self.draft.served_by(data.get("modelVersion"))
        counts, candidates = data.get("usageMetadata"), data.get("candidates")
        if counts:
            self.draft.count(usage, record(counts))
        for candidate in candidates or ():
            if candidate.get("index") in (0, None):
                return self._candidate(candidate)
        feedback = data.get("promptFeedback") or {}
        return self._blocked(feedback) if feedback and not candidates else NO_EVENTS

    def _blocked(self, feedback: dict[str, Any]) -> Iterable[StreamEvent]:
        """Read why the prompt was not answered."""
        self._ended = True
        if feedback.get("blockReason"):
            self.draft.stop_reason = "refusal"
        why = [feedback.get("blockReason"), feedback.get("blockReasonMessage")]
        said = ": ".join(str(word) for word in why if word and word not in _SAYS_NOTHING)
        return [notice(f"the prompt was blocked ({said or 'no reason given'})")]

    def _candidate(self, candidate: dict[str, Any]) -> Iterable[StreamEvent]:
        parts: list[Any] = (candidate.get("content") or {}).get("parts") or []
        reason = candidate.get("finishReason")
        if len(parts) == 1 and not reason:
            return self._part(parts[0])
        events = [event for part in parts for event in self._part(part)]
        return events + self._finish(reason, candidate) if reason and reason not in _SAYS_NOTHING else events

    def _finish(self, reason: str, candidate: dict[str, Any]) -> list[StreamEvent]:
        stop = _STOP.get(reason, "other")
        self._ended, self.draft.stop_reason = True, stop
        events = list(self._complete()) if stop == "end_turn" else []
        if stop == "pause":
            events.append(notice("the answer reached the limit of one request and is not finished"))
        elif stop not in ("end_turn", "max_tokens"):
            events.append(notice(str(candidate.get("finishMessage") or f"the answer was ended: {reason}")))
        return events

    # -- parts ------------------------------------------------------------------------------------------------
    def _part(self, part: dict[str, Any] | None) -> Iterable[StreamEvent]:
        if part and len(part) == 1 and isinstance(text := part.get("text"), str):
            # Nearly every part: text and nothing else.
            return self.draft.text(text)
        if part is None:
            return NO_EVENTS
        signature = string(part.get("thoughtSignature"))
        if (call := part.get("functionCall")) is not None:
            return self._function_call(call, signature)
        if "text" in part or part.keys() <= {"thoughtSignature", "thought"}:
            return self._text(string(part.get("text")), signature, thought=bool(part.get("thought")))
        self.draft.add(self._other(part, signature))
        return NO_EVENTS

    def _text(self, text: str, signature: str, *, thought: bool) -> Iterable[StreamEvent]:
        """Add text or a thought summary; what is signed stays a part of its own, for so it must go back."""
        draft = self.draft
        if signature:
            draft.close()
        if thought:
            if (text or signature) and not draft.is_open("thinking"):
                draft.open("thinking", provider=DISPLAY)
            events = draft.thinking(text)
        else:
            events = draft.text(text)
        if signature:
            draft.sign(signature, "thinking" if thought else "text")
            draft.close()
        return events

    def _other(self, part: dict[str, Any], signature: str) -> Block:
        """Return the block for a part that is neither text nor a call: an image, or what only this wire knows."""
        provider, inline = self.draft.provider, part.get("inlineData")
        if inline and inline.get("mimeType", "").startswith("image/") and isinstance(inline.get("data"), str):
            kind, data = inline["mimeType"], inline["data"]
            return Block(type="image", media_type=kind, data=data, signature=signature or None, provider=provider)
        return Block(type="opaque", raw=part, signature=signature or None, provider=provider)

    # -- calls ------------------------------------------------------------------------------------------------
    def _function_call(self, call: dict[str, Any], signature: str) -> Iterable[StreamEvent]:
        """Begin a call, or go on with the one whose arguments come in pieces."""
        events: list[StreamEvent] = []
        if name := call.get("name"):
            events += self._complete()
            events += self._begin(name, call.get("id"), signature)
        if self._call is None:
            return events
        self._call.add(call)
        if not call.get("willContinue"):
            events += self._complete()
        return events

    def _begin(self, name: Any, id_: Any, signature: str) -> Iterable[StreamEvent]:
        key, id_ = self.draft.calls, string(id_)
        taken = any(block.id == id_ for block in self.draft.message().tool_calls)
        sealed = {"signature": signature} if signature else {}
        events = self.draft.tool(key, None if taken else id_ or None, string(name), **sealed)
        self._call = _PartialCall(self.draft, key)
        return events

    def _complete(self) -> Iterable[StreamEvent]:
        call, self._call = self._call, None
        return call.complete() if call else NO_EVENTS


class _PartialCall:
    """A call whose arguments may come as values at JSON paths.

    Until it is complete the draft has what came as text that is no JSON, so that a cut call is never run.
    """

    def __init__(self, draft: Draft, key: int) -> None:
        self._draft = draft
        self._key = key
        self._args: dict[str, Any] = {}
        self._growing: str | None = None
        draft.tool_input(key, "{…")

    def add(self, call: Mapping[str, Any]) -> None:
        """Take in `args` or `partialArgs` of one part."""
        if args := call.get("args"):
            args = json.loads(args) if isinstance(args, str) else args
            self._args = {**self._args, **args}
            self._draft.tool_input(self._key, json.dumps(args))
        for piece in call.get("partialArgs") or ():
            self._put(piece["jsonPath"], piece)
            self._draft.tool_input(self._key, json.dumps(piece))

    def complete(self) -> Iterable[StreamEvent]:
        """Set the arguments and return them as one delta."""
        self._draft.set_tool_input(self._key, "")
        return self._draft.tool_input(self._key, json.dumps(self._args))

    def _put(self, path: str, piece: Mapping[str, Any]) -> None:
        value = _value(piece)
        steps = _steps(path)
        last, place = steps[-1], cast("Any", self._args)
        for step, following in pairwise(steps):
            place = _child(place, step, [] if isinstance(following, int) else {})
        if path == self._growing and isinstance(value, str):
            place[last] += value
        else:
            _child(place, last, None)
            place[last] = value
        self._growing = path if piece.get("willContinue") else None


def _value(piece: Mapping[str, Any]) -> Any:
    for key in ("stringValue", "numberValue", "boolValue"):
        if key in piece:
            return piece[key]
    return None


def _steps(path: str) -> list[str | int]:
    """Return the keys and indices of a JSON path such as `$.recipe.steps[0]`.

    Raises:
        ValueError: It is another kind of path.
    """
    steps: list[str | int] = []
    at = 1
    while match := _STEP.match(path, at):
        steps.append(int(match[2]) if match[2] else match[1] or re.sub(r"\\(.)", r"\1", match[3]))
        at = match.end()
    if not path.startswith("$") or at != len(path) or not steps:
        msg = f"not a path to a value: {path!r}"
        raise ValueError(msg)
    return steps


def _child(place: Any, step: str | int, new: Any) -> Any:
    """Return what is at a key or index, put there if it is the next one missing."""
    if isinstance(step, int):
        if step == len(place):
            place.append(new)
        return place[step]
    return place.setdefault(step, new)


def usage(counts: Mapping[str, Any]) -> Usage:
    """Read the token counts, which are cumulative: the last of a stream are the answer's.

    Prompt and cached tokens overlap, tokens of server tools come on top, thoughts are counted beside the answer. A
    count of zero is left out on the wire.

    Args:
        counts: The `usageMetadata` object.

    Raises:
        TypeError: A count is not a number.
    """
    cached = _count(counts, "cachedContentTokenCount")
    prompt = _count(counts, "promptTokenCount") + _count(counts, "toolUsePromptTokenCount")
    written = _count(counts, "candidatesTokenCount") + _count(counts, "thoughtsTokenCount")
    return Usage(input=max(prompt - cached, 0), output=written, cache_read=cached)


def _count(counts: Mapping[str, Any], key: str) -> int:
    value = counts.get(key) or 0
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{key} is not a count"
        raise TypeError(msg)
    return value
