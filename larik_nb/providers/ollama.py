"""Ollama's own chat wire: `/api/chat`, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from larik_nb import errors
from larik_nb.providers._abilities import effort_level, plain_target, sampling
from larik_nb.providers._fields import SHAPE_ERRORS, bad_shape, string
from larik_nb.providers._replay import Seal, Target, result_text
from larik_nb.providers._text_tools import TextTools
from larik_nb.providers._wire import (
    NO_EVENTS,
    Abilities,
    Draft,
    ModelList,
    Window,
    Wire,
    bearer,
    ended_early,
    stop_reason,
    stream_error,
    unknown,
)
from larik_nb.providers.openai_compatible import function_tool, messages
from larik_nb.types import Block, Message, Request, StopReason, StreamEvent, Usage

if TYPE_CHECKING:
    from larik_nb.catalog import Model
    from larik_nb.frames import Framing
    from larik_nb.providers._refused import OptionalFields

NUM_CTX = 16_384
"""Window asked for where neither the user nor the catalog knows better. The server's own default is 4,096 tokens on
most machines, which a tool-using conversation outgrows at once; a changed value reloads the model, so it is fixed."""

_LEVELS = {"minimal": "low", "xhigh": "max", "none": False}
"""Efforts that this wire's `think` has no word for; low, medium, high and max it has."""

_STOP: Mapping[str, StopReason] = {"stop": "end_turn", "length": "max_tokens"}


_OPTIONAL: OptionalFields = {
    "think": ("think", "thinking"),
    "options.temperature": ("temperature",),
    "options.top_p": ("top_p",),
    "options.seed": ("seed",),
}


class Ollama:
    """The wire format, both ways.

    Args:
        provider: The route, stamped on messages.
        num_ctx: Tokens of the window that the server is to load the model with; the model's own limit caps it.
        abilities: What is known of a model, by id.
        probed: The window to ask for where the server was asked what it has, by id; it goes before both.
    """

    framing: Framing = "ndjson"
    optional: OptionalFields = _OPTIONAL
    model_list = ModelList("/api/tags")

    def __init__(
        self,
        *,
        provider: str = "ollama",
        num_ctx: int = NUM_CTX,
        abilities: Abilities = unknown,
        probed: Window = unknown,
    ) -> None:
        self._probed = probed
        self._provider = provider
        self._num_ctx = num_ctx
        self._abilities = abilities

    def credential(self, key: str | None) -> Mapping[str, str]:
        """Return the bearer header for the hosted service; a local server wants none."""
        return bearer(key)

    def target(self, model: str) -> Target:
        """Return what the model takes of a conversation; its window is the one that the server is told to load."""
        known = self._abilities(model)
        plain = plain_target(self._provider, model, known)
        return replace(plain, own_ids=True, seal=_seal, window=self._window(model, known))

    def decoder(self, request: Request) -> OllamaDecoder:
        """Return a fresh decoder for the answer."""
        return OllamaDecoder(request, self._provider)

    def encode(self, request: Request) -> Wire:
        """Return the HTTP request that asks `request`.

        A prompt that does not fit is to be an error: the server would otherwise drop its beginning silently.
        """
        model = self._abilities(request.model)
        level = effort_level(request, model)
        body: dict[str, Any] = {
            "model": request.model,
            "messages": list(messages(request, _assistant, _user)),
            "stream": True,
            "truncate": False,
            "shift": False,
            "options": self._options(request, model, level),
        }
        if level is not None:
            body["think"] = _LEVELS.get(level, level)
        if request.tools:
            body["tools"] = [function_tool(tool) for tool in request.tools]
        return Wire(path="/api/chat", body=body)

    def _options(self, request: Request, model: Model | None, level: str | None) -> dict[str, Any]:
        values = {
            "num_ctx": self._window(request.model, model),
            "num_predict": request.max_tokens,
            **sampling(request, model, level),
            "seed": request.seed,
            "stop": list(request.stop) or None,
        }
        return {key: value for key, value in values.items() if value is not None}

    def _window(self, name: str, model: Model | None) -> int:
        return self._probed(name) or min(self._num_ctx, (model.window if model else None) or self._num_ctx)


def _assistant(blocks: Sequence[Block]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _joined(blocks, "text")}
    if thought := _joined(blocks, "thinking"):
        message["thinking"] = thought
    calls = [block for block in blocks if block.type == "tool_use"]
    if calls:
        message["tool_calls"] = [_call(call, index) for index, call in enumerate(calls)]
    return message


def _call(call: Block, index: int) -> dict[str, Any]:
    return {"id": call.id, "function": {"index": index, "name": call.name, "arguments": call.input}}


def _joined(blocks: Iterable[Block], kind: str) -> str:
    return "".join(block.text or "" for block in blocks if block.type == kind)


def _user(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    """Yield one tool message for each result, then what the user said with all images."""
    for block in blocks:
        if block.type == "tool_result":
            content = result_text(block)
            yield {"role": "tool", "content": content, "tool_name": block.name, "tool_call_id": block.id}
    texts = [block.text or "" for block in blocks if block.type == "text"]
    images = [block.data for block in blocks if block.type == "image"]
    if texts or images:
        yield {"role": "user", "content": "\n\n".join(texts), **({"images": images} if images else {})}


def _seal(block: Block) -> Seal | None:
    """Return how a thought goes back: beside the answer it led to."""
    return Seal(needs="other") if block.type == "thinking" and block.text else None


class OllamaDecoder:
    """Reads one answer."""

    def __init__(self, request: Request, provider: str) -> None:
        self.draft = Draft(request, provider)
        self._texts = TextTools(self.draft)
        self.ended = False

    def event(self, name: str, data: Any) -> Iterable[StreamEvent]:
        """Take one line in and return the deltas it makes (`Decoder.event`)."""
        if self.ended:
            return NO_EVENTS
        return self._line(data, "ndjson")

    def whole(self, data: Any) -> Iterable[StreamEvent]:
        """Take an answer that was printed over several lines in (`Decoder.whole`)."""
        if not isinstance(data, dict) or "message" not in data:
            raise stream_error(data, "json_200")
        return self._line(data, "json_200")

    def finish(self) -> Message:
        """Return the answer; one that calls tools stops for them, whatever the server's word (`Decoder.finish`)."""
        if not self.ended:
            raise ended_early("no line with done: true")
        return self.draft.stopped_for_calls()

    def _line(self, data: Any, where: errors.Where) -> Iterable[StreamEvent]:
        try:
            if data.get("error"):
                raise stream_error(data, where)
            return self._read(data)
        except SHAPE_ERRORS as exc:
            raise bad_shape(exc) from exc

    def _read(self, data: dict[str, Any]) -> Iterable[StreamEvent]:
        self.draft.served_by(data.get("model"))
        message = data.get("message")
        events = self._message(message) if message else NO_EVENTS
        if data.get("done") is not True:
            return events
        self.ended = True
        reason = data.get("done_reason")
        self.draft.stop_reason = (_STOP.get(reason) or stop_reason(string(reason))) if reason else None
        self.draft.usage = usage(data)
        return [*events, *self._texts.stop()]

    def _message(self, message: dict[str, Any]) -> Iterable[StreamEvent]:
        thought, content, calls = message.get("thinking"), message.get("content"), message.get("tool_calls")
        if content and not thought and not calls:
            return self._texts.text(string(content))
        events: list[StreamEvent] = []
        if thought:
            events += [*self._texts.end(), *self.draft.thinking(string(thought))]
        if content:
            events += self._texts.text(string(content))
        for call in calls or ():
            events += [*self._texts.end(), *self._call(call)]
        return events

    def _call(self, call: dict[str, Any]) -> Iterable[StreamEvent]:
        function, key = call["function"], ("call", self.draft.calls)
        value, id_ = function.get("arguments"), call.get("id")
        text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
        taken = {block.id for block in self.draft.message().tool_calls}
        start = self.draft.tool(key, None if id_ in taken else id_ and string(id_), string(function["name"]))
        return (*start, *self.draft.tool_input(key, text))


def usage(data: Mapping[str, Any]) -> Usage | None:
    """Read the counters of the last line.

    Args:
        data: With `prompt_eval_count` and `eval_count`; servers leave a count out when they do not know it.

    Returns:
        The tokens, None where a count is missing.
    """
    counts = [data.get("prompt_eval_count"), data.get("eval_count")]
    if not all(isinstance(count, int) and not isinstance(count, bool) for count in counts):
        return None
    return Usage(input=int(counts[0] or 0), output=int(counts[1] or 0))
