"""One wire provider for every vendor: encode → http → decode → events → done, errors mapped once.

An adapter translates one wire format both ways and knows no socket, clock or environment.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from larik_nb import _sending, errors, estimate
from larik_nb.frames import EventStream, Framing, JSONLines, reader
from larik_nb.providers import _refused
from larik_nb.providers._replay import Target, prepare, unseen
from larik_nb.types import (
    Block,
    Message,
    Request,
    StopReason,
    StreamEvent,
    Usage,
    done,
    notice,
    text_block,
    text_delta,
    thinking_delta,
)

if TYPE_CHECKING:
    from larik_nb._network import Network
    from larik_nb.catalog import Model
    from larik_nb.http import Reply, TransportName
    from larik_nb.providers._key_command import KeyCommand
    from larik_nb.providers._refused import OptionalFields

Abilities = Callable[[str], "Model | None"]
"""What is known of a model, by its id; adapters never look at the id itself."""

UNAUTHORIZED = 401
Window = Callable[[str], "int | None"]
"""How many tokens a prompt may have for a model, where the server was asked; None where that is not known."""

NO_EVENTS: tuple[StreamEvent, ...] = ()

_MOST_TOKENS = 10**12
"""No answer has used so many; a sum of money made of such a count would be nonsense, or overflow."""


def unknown(_model: str) -> None:
    """Know nothing of any model."""


def bearer(key: str | None) -> Mapping[str, str]:
    """Return the header that carries a key as a bearer token; none without a key."""
    return {"Authorization": f"Bearer {key}"} if key else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One HTTP request to be.

    Attributes:
        path: Joined to the provider's base URL; may carry a query.
        body: The JSON body.
        headers: Beside the credential and content type, which are not the adapter's.
    """

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


class ModelList(NamedTuple):
    """How a wire format lists models; None for a path: it does not.

    Attributes:
        path: Joined to the base URL.
        headers: Beside the credential.
        after: The field of an answer that names the next page, and the query that asks for it.
    """

    path: str | None
    headers: Mapping[str, str] = MappingProxyType({})
    after: tuple[str, str] | None = None


class Decoder(Protocol):
    """Reads one answer.

    Attributes:
        draft: What has come, at any moment.
        ended: The protocol's end mark has come, and from then on `event` makes no deltas and raises nothing. A wire
            without one leaves this False.
    """

    draft: Draft
    ended: bool

    def event(self, name: str, data: Any) -> Iterable[StreamEvent]:
        """Take one frame (`frames.Frame`) in and return the deltas it makes.

        Raises:
            APIError: The frame is an error, or cannot be read (BadWire).
        """

    def whole(self, data: Any) -> Iterable[StreamEvent]:
        """Take a whole JSON answer in, which came though a stream was asked for.

        Raises:
            APIError: It is an error or not an answer.
        """

    def finish(self) -> Message:
        """Return the answer once the body has ended.

        Raises:
            ServerError: The protocol's end mark never came.
        """


class Adapter(Protocol):
    """One vendor's wire format, both ways.

    Attributes:
        framing: How its answers are cut into frames.
        optional: What of the body a server may turn down, and by which names.
    """

    framing: Framing
    optional: OptionalFields
    model_list: ModelList

    def target(self, model: str) -> Target:
        """Return what the model takes of a conversation."""

    def encode(self, request: Request) -> Wire:
        """Return the HTTP request that asks `request`, which `prepare` made for the target."""

    def decoder(self, request: Request) -> Decoder:
        """Return a fresh decoder for its answer."""

    def credential(self, key: str | None) -> Mapping[str, str]:
        """Return the headers that carry `key`."""


@runtime_checkable
class Counter(Protocol):
    """An adapter whose vendor counts the tokens of a request before it is sent."""

    def encode_count(self, request: Request) -> Wire:
        """Return the HTTP request that asks how many tokens `request` has, which `prepare` made for the target."""

    def decode_count(self, data: Any) -> int:
        """Return the number in its answer.

        Raises:
            BadWire: There is none.
        """


class _Part:
    """A block while it grows."""

    __slots__ = ("extra", "pieces", "type")

    def __init__(self, kind: str, extra: dict[str, Any]) -> None:
        self.type = kind
        self.pieces: list[str] = []
        self.extra = extra


class Draft:
    """The answer while it arrives: its parts in order, and what is known of the whole.

    Adapters hand over pieces; the draft keeps them, opens a new part where the kind changes, and returns the event
    for the screen. Text of `message()` is exactly the joined text deltas.
    """

    def __init__(self, request: Request, provider: str) -> None:
        self.request = request
        self.provider = provider
        self.model: str | None = None
        self._usage: Usage | None = None
        self._counts: tuple[Callable[[Mapping[str, Any]], Usage | None], Mapping[str, Any]] | None = None
        self.stop_reason: StopReason | None = None
        self._parts: list[_Part] = []
        self._open: _Part | None = None
        self._calls: dict[Any, _Part] = {}
        self._half = ""
        self._ids: set[str] = set()
        self._made_from = 0

    @property
    def usage(self) -> Usage | None:
        """The tokens as last told; None while unknown, and where no model can have counted them."""
        if self._counts is not None:
            read, counts = self._counts
            self._counts = None
            try:
                self._usage = read(counts) or self._usage
            except TypeError:
                self._usage = None
        return self._usage if self._usage is not None and _is_possible(self._usage) else None

    @usage.setter
    def usage(self, usage: Usage | None) -> None:
        self._usage, self._counts = usage, None

    def count(self, read: Callable[[Mapping[str, Any]], Usage | None], counts: Mapping[str, Any]) -> None:
        """Take the vendor's counts, read only once somebody asks: some vendors repeat them with every delta."""
        self._counts = (read, counts)

    def served_by(self, model: Any) -> None:
        """Take the name of the model that answers, as the server tells it; what is no name says nothing."""
        if model and isinstance(model, str):
            self.model = model

    # -- text and thinking ------------------------------------------------------------------------------------
    def text(self, piece: str) -> tuple[StreamEvent, ...]:
        """Add visible text."""
        return (text_delta(piece),) if (piece := self._grow("text", piece)) else NO_EVENTS

    def thinking(self, piece: str) -> tuple[StreamEvent, ...]:
        """Add readable thinking."""
        return (thinking_delta(piece),) if (piece := self._grow("thinking", piece)) else NO_EVENTS

    def _grow(self, kind: str, piece: str) -> str:
        """Keep the piece and return what of it may be shown now."""
        if not piece:
            return ""
        part = self._open
        if part is None or part.type != kind:
            part = self.open(kind)
        if self._half or "\ud800" <= piece[-1] <= "\udbff":
            piece = self._paired(piece)
        if piece:
            part.pieces.append(piece)
        return piece

    def _paired(self, piece: str) -> str:
        """Put an emoji together that a server cut between the two halves of its JSON escape."""
        piece, self._half = self._half + piece, ""
        if "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return paired(piece)

    def open(self, kind: str, **extra: Any) -> _Part:
        """Begin a new part of `kind`, even after one of the same kind; `extra` are Block fields."""
        part = _Part(kind, extra)
        self._parts.append(part)
        self._open, self._half = part, ""
        return part

    def is_open(self, kind: str) -> bool:
        """Return whether the part that grows is of `kind`."""
        return self._open is not None and self._open.type == kind

    def close(self) -> None:
        """End the open part: what comes next begins a new one."""
        self._open = None

    def sign(self, signature: str, kind: str) -> None:
        """Put the vendor's signature on the open part of `kind`, or on an empty one of its own."""
        part = self._open if self._open is not None and self._open.type == kind else self.open(kind)
        part.extra["signature"] = part.extra.get("signature", "") + signature

    def cite(self, citation: Any) -> None:
        """Keep the source of the text that is open, in the vendor's own form."""
        part = self._open if self._open is not None and self._open.type == "text" else self.open("text")
        raw = part.extra.setdefault("raw", {"citations": []})
        raw.setdefault("citations", []).append(citation)

    # -- tool calls -------------------------------------------------------------------------------------------
    def tool(self, key: Any, id: str | None, name: str, **extra: Any) -> tuple[StreamEvent, ...]:  # the field's name
        """Begin the tool call that `key` (an index, an id) stands for on the wire."""
        part = _Part("tool_use", {"id": id or self._made_id(), "name": name, **extra})
        self.take_id(part.extra["id"])
        self._parts.append(part)
        self._calls[key] = part
        self._open = None
        return (StreamEvent(type="tool_use_start", id=part.extra["id"], name=name),)

    def has_tool(self, key: Any) -> bool:
        """Return whether `key` names a call that has begun."""
        return key in self._calls

    def tool_part(self, key: Any) -> _Part:
        """Return the growing call; KeyError for an unknown one."""
        return self._calls[key]

    def tool_input(self, key: Any, fragment: str) -> tuple[StreamEvent, ...]:
        """Add a fragment of a call's JSON arguments."""
        if not fragment:
            return NO_EVENTS
        part = self._calls[key]
        part.pieces.append(fragment)
        return (StreamEvent(type="tool_input_delta", id=part.extra["id"], text=fragment),)

    def set_tool_input(self, key: Any, text: str) -> None:
        """Replace a call's arguments by the vendor's final word on them."""
        self._calls[key].pieces[:] = [text]

    def _made_id(self) -> str:
        """Return an id for a vendor that sends none, unlike any in the conversation."""
        if not self._made_from:
            before = (block for message in self.request.messages for block in message.blocks)
            self._ids |= {block.id for block in before if block.type == "tool_use" and block.id}
        self._made_from = max(self._made_from, len(self._ids)) + 1
        while f"call_{self._made_from}" in self._ids:
            self._made_from += 1
        return f"call_{self._made_from}"

    def take_id(self, id: str) -> None:  # the field's name
        """Let no made id be this one."""
        self._ids.add(id)

    @property
    def calls(self) -> int:
        """How many tool calls have begun."""
        return sum(part.type == "tool_use" for part in self._parts)

    # -- other parts ------------------------------------------------------------------------------------------
    def add(self, block: Block) -> None:
        """Add a finished block as it is (opaque items, redacted thinking, images)."""
        self.fill(self.place(), block)

    def place(self) -> _Part:
        """Keep a place for a block that will be finished later, maybe after ones that come behind it."""
        part = _Part("block", {"block": None})
        self._parts.append(part)
        self._open = None
        return part

    def fill(self, place: _Part, block: Block) -> None:
        """Put the finished block into its place; a place never filled leaves nothing."""
        place.extra["block"] = block

    # -- the whole --------------------------------------------------------------------------------------------
    def blocks(self) -> tuple[Block, ...]:
        """Return the parts so far as blocks; empty unsigned text and thinking are left out."""
        return tuple(block for part in self._parts if (block := self._block(part)) is not None)

    def _block(self, part: _Part) -> Block | None:
        if part.type == "block":
            block: Block | None = part.extra["block"]
            return block
        joined = "".join(part.pieces)
        if part.type == "tool_use":
            value, raw = arguments(paired(joined))
            return Block(type="tool_use", provider=self.provider, input=value, input_raw=raw, **part.extra)
        if not joined and not part.extra.get("signature"):
            return None
        return Block(**{"type": part.type, "text": joined, "provider": self.provider, **part.extra})

    def message(self) -> Message:
        """Return the answer so far."""
        return Message(
            role="assistant",
            blocks=self.blocks(),
            model=self.model or self.request.model,
            provider=self.provider,
            requested_model=self.request.model,
            usage=self.usage,
            stop_reason=self.stop_reason,
        )

    def stopped_for_calls(self) -> Message:
        """Return the answer of a wire whose servers give no word, or another one, for an end with calls."""
        if self.calls and self.stop_reason in (None, "end_turn"):
            self.stop_reason = "tool_use"
        return self.message()

    def finished(self) -> Message:
        """Return the whole answer; one that came without any block has one empty text block."""
        message = self.message()
        return message if message.blocks else replace(message, blocks=(text_block(""),))


def _is_possible(usage: Usage) -> bool:
    counts = (usage.input, usage.output, usage.cache_read, usage.cache_write)
    return min(counts) >= 0 and max(counts) < _MOST_TOKENS


def paired(text: str) -> str:
    """Return text with the halves of each surrogate pair joined; a half without its other becomes U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def arguments(text: str) -> tuple[dict[str, Any] | None, str | None]:
    """Return a call's arguments as (object, None), or (None, the text) where they are not one valid JSON object.

    Nothing is repaired: arguments cut by a limit would otherwise lose their last fields silently. No text at all
    means no arguments.
    """
    if not text.strip():
        return {}, None
    try:
        value = json.loads(text, parse_constant=_no_constant, strict=False)
    except (ValueError, RecursionError):
        return None, text
    return (value, None) if isinstance(value, dict) else (None, text)


def _no_constant(name: str) -> Any:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def stream_error(data: Any, where: errors.Where) -> errors.APIError:
    """Return the exception for an error object that came inside an answer with status 200."""
    body = data if isinstance(data, str) else json.dumps(data)
    return errors.classify(200, {}, body.encode("utf-8", "replace"), where=where)


def stop_reason(told: str) -> StopReason:
    """Return our word for a reason to end that the wire's own documents do not list.

    Raises:
        APIError: It is a failure.
    """
    failure = errors.stopped(told)
    if failure is None:
        return "other"
    if failure.kind == "context_overflow":
        return "context_overflow"
    if failure.kind == "content_filter":
        return "refusal"
    raise failure


def ended_early(what: str) -> errors.APIError:
    """Return the exception for a body that ended without its protocol's end mark."""
    return errors.ServerError(f"the answer ended before its end mark ({what})", kind="server_error")


class WireProvider:
    """A provider that speaks one wire format to one base URL.

    Args:
        adapter: The wire format.
        name: The route, stamped on messages and errors ("anthropic", "openrouter").
        base_url: Address that the adapter's paths are joined to.
        headers: The credential and whatever the user configured.
        stall_timeout_s: Seconds without a byte after which the request fails.
        key_hint: Where its key comes from, named in authentication errors.
        transport: "h11" or, with the extra `fast`, "aiohttp".
        window: Windows that were probed, over those of the catalog.
        network: The way out.
        key_command: Prints the key, where a command does; then `headers` hold none.
        look: Asks the server what it has loaded, where that is worth asking, so that `window` knows; never fails.
    """

    def __init__(  # each is one fact about the route
        self,
        adapter: Adapter,
        *,
        name: str,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        stall_timeout_s: float = 600.0,
        key_hint: str | None = None,
        transport: TransportName = "h11",
        window: Window = unknown,
        network: Network | None = None,
        key_command: KeyCommand | None = None,
        look: Callable[[str], Awaitable[object]] | None = None,
    ) -> None:
        self.adapter = adapter
        self.name = name
        self.base_url = base_url.rstrip("/")
        self._headers = dict(headers or {})
        for header, value in self._headers.items():
            if _is_secret(header):
                errors.keep_secret(value.rpartition(" ")[2])
        self._stall_timeout_s = stall_timeout_s
        self._key_hint = key_hint
        self._transport = transport
        self._window = window
        self._network = network
        self._key_command = key_command
        self._look = look

    def __repr__(self) -> str:
        return f"<WireProvider {self.name} {self.base_url}>"

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the deltas of one answer, then its `done`. Closing the generator closes the socket.

        What the model may not see of the conversation is left out (`prepare`), which is told of the last message. A server that refuses the reasoning it
        is sent back, before it has said anything, is asked once more without.

        Raises:
            APIError: The request failed; `partial` holds what had arrived.
        """
        _sending.begin()
        if self._look is not None:
            await self._look(request.model)
        target = self._target(request.model)
        sent = prepare(request, target)
        missing = unseen(request.messages[-1], target)
        if warning := self._warning():
            yield notice(warning)
        while True:
            decoder = self.adapter.decoder(request)
            frames = reader(self.adapter.framing)
            feed, take = frames.feed, decoder.event
            try:
                async with self._answer(self._trimmed(sent)) as reply:
                    if missing:
                        # Not before it answers: the next model may be asked instead, and see it.
                        yield notice(f"left out for {self.name}/{request.model}: {', '.join(missing)}")
                        missing = ()
                    async for chunk in reply:
                        for name, data in feed(chunk):
                            for event in take(name, data):
                                yield event
                        if decoder.ended:
                            for name, data in feed(await reply.rest()):
                                take(name, data)
                            break
                    else:
                        for event in _rest(decoder, frames):
                            yield event
                yield done(_fitting(decoder.finish(), sent, target))
            except errors.APIError as exc:
                bare = _without_reasoning(exc, request, target)
                if bare is None or bare == sent or decoder.draft.blocks():
                    failure = self._named(_judged(exc, sent, target), sent, decoder)
                    if failure is exc:
                        raise
                    raise failure from exc
                sent = bare
            else:
                return
            yield notice(f"{self.name} refused the reasoning of earlier answers; asking again without it")

    async def count(self, request: Request) -> int | None:
        """Return how many tokens the vendor counts in `request`; None where it does not count before it answers.

        Raises:
            APIError: It would not say.
        """
        from larik_nb import http

        adapter = self.adapter
        if not isinstance(adapter, Counter):
            return None
        try:
            wire = adapter.encode_count(prepare(request, self._target(request.model)))
            async with self._answer(wire) as reply:
                body = await reply.read(http.ERROR_BODY_BYTES)
            return adapter.decode_count(_parsed(body))
        except errors.APIError as exc:
            exc.for_provider(provider=self.name, model=request.model, key_hint=self._key_hint)
            raise

    def _target(self, model: str) -> Target:
        target = self.adapter.target(model)
        probed = self._window(model)
        return replace(target, window=probed) if probed else target

    def _warning(self) -> str | None:
        from larik_nb import http

        return http.ca_warning(self.base_url, self._network) if self._network else None

    def _answer(self, wire: Wire) -> AbstractAsyncContextManager[Reply]:
        return self._post(wire, {}) if self._key_command is None else self._with_key(wire, self._key_command)

    def _post(self, wire: Wire, credential: Mapping[str, str]) -> AbstractAsyncContextManager[Reply]:
        from larik_nb import http

        return http.post(
            self.base_url + wire.path,
            headers={**credential, **self._headers, **wire.headers},
            body=wire.body,
            stall_timeout_s=self._stall_timeout_s,
            transport=self._transport,
            network=self._network or http.STRAIGHT,
        )

    def encoded(self, request: Request) -> Wire:
        """Return `request` as the wire format has it; nothing is sent."""
        return self.adapter.encode(prepare(request, self._target(request.model)))

    def wire(self, request: Request) -> Wire:
        """Return what is sent for `request`: as `encoded`, less what the server has turned down before."""
        return self._trimmed(prepare(request, self._target(request.model)))

    def _trimmed(self, sent: Request) -> Wire:
        wire = self.adapter.encode(sent)
        places = _refused.left_out(self.name, sent.model)
        return replace(wire, body=_refused.without(wire.body, places)) if places else wire

    @asynccontextmanager
    async def _with_key(self, wire: Wire, command: KeyCommand) -> AsyncGenerator[Reply, None]:
        """Send with the key that a command prints, and once more with its next one should this be refused."""
        key = await command.current()
        async with AsyncExitStack() as stack:
            try:
                reply = await stack.enter_async_context(self._post(wire, self.adapter.credential(key)))
            except errors.AuthError as refused:
                if refused.status != UNAUTHORIZED or not await command.renewed(key):
                    raise
                fresh = self.adapter.credential(await command.current())
                reply = await stack.enter_async_context(self._post(wire, fresh))
            yield reply

    def _named(self, error: errors.APIError, sent: Request, decoder: Decoder) -> errors.APIError:
        error.for_provider(provider=self.name, model=sent.model, key_hint=self._key_hint)
        error.partial = decoder.draft.message()
        if isinstance(error, errors.BadRequest):
            body = self._trimmed(sent).body
            error.left_out = _refused.learn(error, body, self.adapter.optional, self.name, sent.model)
        return error


# -- what only the whole tells --------------------------------------------------------------------------------------
LIKELY = 0.9
"""Share of the window above which a refusal that explains nothing is put down to the prompt's length."""


def _without_reasoning(error: errors.APIError, request: Request, target: Target) -> Request | None:
    """Return the request to try after the reasoning sent back was refused; None after any other failure."""
    if error.status != 400 or error.cause != "reasoning":
        return None
    return prepare(request, replace(target, reasoning=False))


def _fitting(message: Message, sent: Request, target: Target) -> Message:
    """Return the answer, unless the prompt did not fit and the server did not say so.

    Raises:
        ContextOverflow: It is empty, and the window full or too small for the prompt.
    """
    window, usage = target.window, message.usage
    if _says_something(message) or message.stop_reason == "refusal":
        return message  # whatever the numbers say: a window that is known too small must not cost an answer
    if usage is not None and not usage.estimated and window and usage.prompt > window:
        raise errors.ContextOverflow(used_tokens=usage.prompt, max_tokens=window)
    if message.stop_reason == "context_overflow":
        raise errors.ContextOverflow(used_tokens=usage.prompt if usage else None, max_tokens=window)
    if message.stop_reason == "max_tokens" and usage is not None and usage.output == 0:
        raise errors.ContextOverflow(used_tokens=usage.prompt or None, max_tokens=window)
    if window and (estimated := estimate.request_tokens(sent)) > window:
        raise errors.ContextOverflow(used_tokens=estimated, max_tokens=window, cause="probably")
    return message


def _says_something(message: Message) -> bool:
    return any(block.text or block.type not in ("text", "thinking") for block in message.blocks)


def _judged(error: errors.APIError, sent: Request, target: Target) -> errors.APIError:
    """Return the error, or the overflow that a refusal without a reason is when the prompt nearly fills the window."""
    if error.status != 400 or error.cause != "unexplained" or not target.window:
        return error
    estimated = estimate.request_tokens(sent)
    if estimated <= LIKELY * target.window:
        return error
    return errors.ContextOverflow(
        status=400,
        said=error.said,
        cause="probably",
        code=error.code,
        type=error.type,
        used_tokens=estimated,
        max_tokens=target.window,
    )


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as exc:
        raise errors.BadWire(f"the server's count is not JSON: {body[:80]!r}") from exc


def _is_secret(header: str) -> bool:
    return any(word in header.lower() for word in ("auth", "key", "token", "secret", "cookie"))


def _rest(decoder: Decoder, frames: EventStream | JSONLines) -> Iterator[StreamEvent]:
    """Yield what the end of the body brings: a last frame, or the JSON that came instead of a stream."""
    last = frames.finish()
    for name, data in last:
        yield from decoder.event(name, data)
    whole = frames.whole()
    if whole is not None:
        yield from decoder.whole(whole)
    elif frames.stray and not last and not decoder.draft.blocks():
        raise stream_error(frames.stray, "json_200")
