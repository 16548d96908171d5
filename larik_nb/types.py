"""The neutral model of a conversation: frozen values that every vendor's wire format maps to.

No vendor SDK, no I/O and no policy lives here. A message is one line of JSON and comes back equal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, NamedTuple, TypeVar, cast

BlockType = Literal["text", "thinking", "tool_use", "tool_result", "image", "document", "opaque"]
Role = Literal["user", "assistant"]
Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
StopReason = Literal[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "refusal",
    "pause",
    "context_overflow",
    "interrupted",
    "other",
]
EventType = Literal["text_delta", "thinking_delta", "tool_use_start", "tool_input_delta", "notice", "done"]

_T = TypeVar("_T", bound="_Record")

_tuple = tuple.__new__


class _Record:
    """A frozen dataclass that goes to plain JSON and back, leaving out what has its default.

    Sequences may be given as lists and are kept as tuples.
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the set fields as JSON values; nested records become dicts, tuples lists."""
        out: dict[str, Any] = {}
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if field.default is MISSING or value != field.default:
                out[field.name] = _plain(value)
        return out

    def to_json(self) -> str:
        """Return one line of pure ASCII, so that no reader can split it at U+2028 or a lone surrogate."""
        return json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=True)

    @classmethod
    def from_dict(cls: type[_T], data: Mapping[str, Any]) -> _T:
        """Build the record from `to_dict`'s form; fields of a later version are ignored.

        Raises:
            TypeError: A field without a default is missing.
        """
        known = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        return cls(**{key: value for key, value in data.items() if key in known})

    @classmethod
    def from_json(cls: type[_T], line: str | bytes) -> _T:
        """Read what `to_json` wrote.

        Raises:
            ValueError: The line is not JSON.
            TypeError: It is not an object with the record's fields.
        """
        data = json.loads(line)
        if not isinstance(data, dict):
            msg = f"{cls.__name__} wants a JSON object, not {type(data).__name__}"
            raise TypeError(msg)
        return cls.from_dict(data)


def _plain(value: Any) -> Any:
    if isinstance(value, _Record):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _records(kind: type[_T], items: Sequence[_T | Mapping[str, Any]]) -> tuple[_T, ...]:
    return tuple(item if isinstance(item, kind) else kind.from_dict(cast("Mapping[str, Any]", item)) for item in items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(_Record):
    """Tokens of one answer; the four counts never overlap.

    Attributes:
        input: Prompt tokens that were neither read from nor written to a cache.
        output: Tokens the model wrote, thinking included.
        cache_read: Prompt tokens read from the provider's cache.
        cache_write: Prompt tokens written to it.
        estimated: True when we counted, because the provider's own count never came (an interrupted answer).
    """

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    estimated: bool = False

    @property
    def prompt(self) -> int:
        """All tokens that went in, cached or not."""
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            estimated=self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(_Record):
    """One part of a message: a flat record whose `type` says which fields count.

    Attributes:
        type: text, thinking, tool_use, tool_result, image, document or opaque.
        text: The words of a text or thinking block.
        signature: What the vendor needs back with this block, sealed; opened by its own adapter only.
        redacted: A thinking block whose words the vendor kept to itself.
        id: A tool call's id; on a tool_result the id of the call it answers.
        name: The tool's name; a document's file name.
        input: A tool call's arguments; None when they were not one valid JSON object (`input_raw` has them).
        input_raw: The arguments as they came, kept only when they could not be read. Such a call is never run.
        content: A tool_result's text.
        is_error: The tool failed.
        images: Image and document blocks that a tool returned.
        media_type: MIME type of `data`.
        data: Base64 of an image or document.
        provider: The route that made the block, for replay ("anthropic", "openrouter", …).
        raw: The vendor's own JSON value, untouched.
    """

    type: BlockType
    text: str | None = None
    signature: str | None = None
    redacted: bool = False
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    input_raw: str | None = None
    content: str | None = None
    is_error: bool = False
    images: Sequence[Block] = ()
    media_type: str | None = None
    data: str | None = None
    provider: str | None = None
    raw: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "images", _records(Block, self.images))

    @property
    def invalid(self) -> bool:
        """Whether this is a tool call whose arguments must not be run."""
        return self.type == "tool_use" and self.input is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(_Record):
    """One turn by the user or the assistant.

    Attributes:
        role: user or assistant. Tool results are blocks of a user message.
        blocks: Its parts in order; any sequence of blocks or of their dicts is taken.
        model: The model that answered, as the response named it.
        provider: The route that answered.
        requested_model: The model that was asked for, which may be an alias of `model`.
        replaced: The first choice ("provider/model") that this answer stands in for; None: it is the first choice's.
        usage: Tokens of this answer; None when unknown.
        stop_reason: Why the answer ended; None when the vendor did not say.
        cost_usd: What it cost when it was made; None when unknown.
    """

    role: Role
    blocks: Sequence[Block] = ()
    model: str | None = None
    provider: str | None = None
    requested_model: str | None = None
    replaced: str | None = None
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", _records(Block, self.blocks))
        usage: Any = self.usage
        if isinstance(usage, Mapping):
            object.__setattr__(self, "usage", Usage.from_dict(usage))

    @property
    def text(self) -> str:
        """All visible text, joined as it came."""
        return "".join(block.text or "" for block in self.blocks if block.type == "text")

    @property
    def thinking(self) -> str:
        """All readable thinking, joined as it came."""
        return "".join(block.text or "" for block in self.blocks if block.type == "thinking")

    @property
    def tool_calls(self) -> tuple[Block, ...]:
        """The tool calls in order, invalid ones included."""
        return tuple(block for block in self.blocks if block.type == "tool_use")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec(_Record):
    """A function the model may call.

    Attributes:
        name: The name the model uses.
        description: What it does and when to use it.
        parameters: JSON Schema of its arguments, an object schema.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(_Record):
    """Everything a provider needs to answer once. Fields left at None take the provider's default.

    Attributes:
        model: Id within the provider.
        messages: The conversation, oldest first.
        system: Instructions ahead of it.
        tools: Functions the model may call.
        max_tokens: Limit of the answer, thinking included.
        effort: How hard to think, mapped to the nearest level the model has.
        temperature: Sampling temperature, sent only to models that take it.
        top_p: Nucleus sampling, likewise.
        seed: Likewise.
        thinking_budget: Tokens for thinking, for models that take a number instead of a level.
        stop: Strings at which the answer ends.
    """

    model: str
    messages: Sequence[Message]
    system: str | None = None
    tools: Sequence[ToolSpec] = ()
    max_tokens: int | None = None
    effort: Effort | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    thinking_budget: int | None = None
    stop: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", _records(Message, self.messages))
        object.__setattr__(self, "tools", _records(ToolSpec, self.tools))
        object.__setattr__(self, "stop", tuple(self.stop))


class StreamEvent(NamedTuple):
    """One thing that happened while a model answered.

    Deltas are for the screen; the one `done` at the end is the truth for the transcript. The joined text deltas
    equal the text of `done`. A named tuple, since deltas come by thousands and a frozen dataclass takes six times
    as long to make.

    Attributes:
        type: text_delta, thinking_delta, tool_use_start, tool_input_delta, notice or done.
        text: The delta's text, a fragment of a tool's arguments, or the notice.
        id: The tool call it belongs to.
        name: The tool's name (tool_use_start); "passing" on a notice that need not be kept.
        message: The whole answer (done).
        usage: Its tokens (done); None when the provider did not say.
        stop_reason: Why it ended (done).
    """

    type: EventType
    text: str = ""
    id: str | None = None
    name: str | None = None
    message: Message | None = None
    usage: Usage | None = None
    stop_reason: StopReason | None = None


def text_block(text: str) -> Block:
    """Return a text block."""
    return Block(type="text", text=text)


def tool_result(call_id: str, content: str, *, is_error: bool = False, images: Sequence[Block] = ()) -> Block:
    """Return the answer to a tool call, to be put into a user message."""
    return Block(type="tool_result", id=call_id, content=content, is_error=is_error, images=tuple(images))


def user(*content: str | Block) -> Message:
    """Return a user message of texts and blocks."""
    return Message(role="user", blocks=_content(content))


def assistant(*content: str | Block) -> Message:
    """Return an assistant message of texts and blocks."""
    return Message(role="assistant", blocks=_content(content))


def _content(content: Sequence[str | Block]) -> tuple[Block, ...]:
    return tuple(text_block(item) if isinstance(item, str) else item for item in content)


def text_delta(text: str) -> StreamEvent:
    """Return the event for visible text."""
    return _tuple(StreamEvent, ("text_delta", text, None, None, None, None, None))


def thinking_delta(text: str) -> StreamEvent:
    """Return the event for readable thinking."""
    return _tuple(StreamEvent, ("thinking_delta", text, None, None, None, None, None))


def notice(text: str) -> StreamEvent:
    """Return the event for a word to the user that is not part of the answer."""
    return StreamEvent(type="notice", text=text)


def passing(text: str) -> StreamEvent:
    """Return the event for a word to the user that matters only while it is new ("reconnecting")."""
    return StreamEvent(type="notice", text=text, name="passing")


def done(message: Message) -> StreamEvent:
    """Return the last event of a stream; usage and stop reason are the message's."""
    return StreamEvent(type="done", message=message, usage=message.usage, stop_reason=message.stop_reason)
