"""What of a conversation may go to whom, made valid for the wire it goes over.

A transcript keeps everything that every model said. `prepare` makes of it, at request-build time and on a copy, what
one target takes: its own reasoning goes back sealed as it came, another's never goes in any form; calls and results
are complete; roles alternate; nothing is empty. Adapters then only translate. What a target takes is data (`Target`),
and the rules are the same for all.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from larik_nb.providers._media import IMAGE_TYPES, MEDIA, left_out, words, written_out
from larik_nb.types import Block, Message, Request, text_block, tool_result

OPENING = "(the conversation goes on)"
"""Stands before a conversation whose beginning was cut off, for wires that let only the user begin."""

BRIDGE = "(interrupted)"
"""The assistant's word between the results of its calls and what the user said instead of waiting for its answer."""

INTERRUPTED = "The call was interrupted; it has no result."
"""Stands for the result of a call that never got one: wires refuse a call without its result."""

FAILED = "The tool failed and did not say why."
"""Stands for the words of a failure without any: wires refuse an error that is empty."""

IMAGES_NOTE = "The images and documents that the tools above returned:"
"""Introduces them in a user message, for wires whose tool messages hold text only."""

INVALID = "INVALID_JSON"
"""Under this name a call's arguments go back that were no JSON object, for the model to see its slip."""

MADE_ID_LENGTH = 24
"""Letters and digits of an id that we make; every wire but the strictest takes so many."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


class Seal(NamedTuple):
    """How a vendor's own item goes back.

    Attributes:
        needs: What the server takes it with only: "next", the item that followed it in the same answer; "other", any
            further item of the answer; "", nothing.
        whole: The server can read it again. One that is not is left out, and with it the item that leans on it.
        call: Id of a call that the server runs itself; without its answer it is refused.
        answers: Id of the call of that kind whose answer it is.
    """

    needs: Literal["", "other", "next"] = ""
    whole: bool = True
    call: str | None = None
    answers: str | None = None


def nothing_sealed(_block: Block) -> Seal | None:
    """Take no thinking or opaque block back."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What one model behind one route takes of a conversation, as its adapter, preset and catalog row say.

    Attributes:
        provider: The route.
        model: The model that is asked.
        images: Media types it takes as images; empty: it sees nothing.
        documents: Beginnings of the media types that it takes as files.
        text_documents: The wire has a form for documents of text; elsewhere they are written out.
        tool_media: Results hold images and files; elsewhere these follow in a user's message.
        drawn_media: An assistant's turn holds them; elsewhere they move to the user's next.
        tools: It takes calls and results; elsewhere they are told in words.
        ids: Pattern that a call's id must match in full.
        id_length: Letters and digits of an id made to fit.
        own_ids: The ids it made itself go back as they came, whatever they look like.
        opening: The user must begin.
        bridge: The assistant must speak between results and the user's next words.
        prefill: The conversation may end with the assistant's words.
        resumes: A turn that paused within the server's own work is gone on with as it is.
        placeholder: Stands for the signature of a call that it did not make; None: none is asked for.
        reasoning: Its own sealed blocks go back; False after it has refused them.
        seal: How a sealed block of its own goes back; None for one that this wire has no form for.
        window: Tokens that a prompt may have; None when unknown.
    """

    provider: str
    model: str
    images: frozenset[str] = IMAGE_TYPES
    documents: tuple[str, ...] = ()
    text_documents: bool = False
    tool_media: bool = False
    drawn_media: bool = False
    tools: bool = True
    ids: str = r"[A-Za-z0-9_-]{1,64}"
    id_length: int = MADE_ID_LENGTH
    own_ids: bool = False
    opening: bool = False
    bridge: bool = False
    prefill: bool = True
    resumes: bool = False
    placeholder: str | None = None
    reasoning: bool = True
    seal: Callable[[Block], Seal | None] = nothing_sealed
    window: int | None = None

    def made(self, message: Message) -> bool:
        """Return whether this model gave the answer: the one that served and the one that was asked for both count."""
        return message.role == "assistant" and self.model in (message.model, message.requested_model)

    def own(self, message: Message, block: Block) -> bool:
        """Return whether what is sealed in a block may go back: this route made it, with this model."""
        return self.reasoning and block.provider == self.provider and self.made(message)


class _Piece(NamedTuple):
    """A block on its way: how it goes back where it is sealed, and whether its id stays whatever it looks like."""

    block: Block
    seal: Seal | None = None
    keeps_id: bool = False


class _Said(NamedTuple):
    """What of a message, or of a turn, goes out."""

    message: Message
    pieces: tuple[_Piece, ...]


def prepare(request: Request, target: Target) -> Request:
    """Return the request as `target` takes it: one message a turn, every block fit to be translated as it stands.

    Results carry the name of their tool and stand first in their turn, in the order of the calls. A signature or raw
    value that is still there may be sent. The request given is not changed, and the same one gives the same result.
    """
    offered = {tool.name for tool in request.tools}
    said = [_said(message, target, offered) for message in request.messages]
    if not target.drawn_media:
        said = _drawn_to_user(said)
    if any(piece.seal is not None for item in said for piece in item.pieces):
        said = [_standing(item) for item in _settled(said)]
    turns = [_placed(turn, target) for turn in _answered(_turns(said, target), target)]
    return replace(request, messages=tuple(_framed(turns, target)))


# -- what may be said -----------------------------------------------------------------------------------------------
def _said(message: Message, target: Target, offered: set[str]) -> _Said:
    pieces = (_piece(message, block, target, offered) for block in message.blocks)
    return _Said(message, tuple(piece for piece in pieces if piece is not None))


def _piece(message: Message, block: Block, target: Target, offered: set[str]) -> _Piece | None:
    """Return a block fit for the target, stripped of what only another could read; None: it cannot go."""
    own = target.own(message, block)
    speaker = message.role == "assistant"
    match block.type:
        case "text" if (block.text or "").strip() or (own and block.signature):
            return _Piece(_bare(block, own=own))
        case "thinking" | "opaque" if own:
            seal = target.seal(block)
            return _Piece(block, seal) if seal is not None else None
        case "tool_use" if speaker:
            keeps = target.own_ids and block.provider == target.provider and target.made(message)
            return _Piece(_call(block, target, offered, own=own), keeps_id=keeps)
        case "tool_result" if not speaker:
            return _Piece(_result(block, target))
        case "image" | "document":
            return _Piece(_medium(_bare(block, own=own), target))
        case _:
            return None


def _bare(block: Block, *, own: bool) -> Block:
    return block if own or not (block.signature or block.raw) else replace(block, signature=None, raw=None)


def _call(block: Block, target: Target, offered: set[str], *, own: bool) -> Block:
    block = _bare(block, own=own)
    if not own and target.placeholder:
        block = replace(block, signature=target.placeholder)
    if block.invalid:
        block = replace(block, input={INVALID: block.input_raw or ""}, input_raw=None)
    name = block.name or ""
    if name in offered or _NAME.fullmatch(name):
        return block
    # A name that the model made up; wires hold the names of calls to the alphabet of those of tools.
    return replace(block, name=_NOT_IN_NAMES.sub("_", name)[:64] or "unnamed")


def _result(block: Block, target: Target) -> Block:
    media = [_medium(item, target) for item in block.images]
    texts = [block.content or "", *(item.text or "" for item in media if item.type == "text")]
    content = "\n\n".join(text for text in texts if text.strip())
    if block.is_error and not content:
        content = FAILED
    return replace(block, content=content, images=tuple(item for item in media if item.type != "text"))


def unseen(message: Message, target: Target) -> tuple[str, ...]:
    """Return what of a message the target does not take, by name, so that a note stands for it."""
    media = (block for block in message.blocks if block.type in MEDIA)
    return tuple(
        f"{block.type} {block.name}" if block.name else block.type
        for block in media
        if _medium(block, target).type == "text" and words(block) is None
    )


def _medium(block: Block, target: Target) -> Block:
    """Return an image or document, or the text that stands for it where the target does not take it."""
    kind = block.media_type or ""
    if block.data and (kind in target.images if block.type == "image" else kind.startswith(target.documents)):
        return block
    text = words(block) if block.type == "document" and block.data else None
    if text is not None and target.text_documents and text.strip():
        return block
    return text_block(left_out(block, target.model) if text is None else written_out(block.name, text))


# -- sealed items with what belongs to them -------------------------------------------------------------------------
def _settled(said: Sequence[_Said]) -> list[_Said]:
    """Leave out calls of the server's own that have no answer, and answers without their call.

    One that the server has yet to answer stays: it paused at the very end, or waits for results of the user's tools.
    """
    talked = max((at for at, item in enumerate(said) if _is_word(item)), default=-1)
    kept: set[tuple[int, int]] = set()
    open_calls: dict[str | None, tuple[int, int]] = {}
    begun: set[str] = set()
    for place, seal in _seals(said):
        if not (seal.call or seal.answers):
            kept.add(place)
        elif seal.call and seal.call not in begun:
            begun.add(seal.call)
            open_calls[seal.call] = place
        elif seal.answers in open_calls:
            kept |= {open_calls.pop(seal.answers), place}
    last = len(said) - 1
    kept |= {(at, place) for at, place in open_calls.values() if at > talked and _waits(said[at], last=at == last)}
    return [
        item._replace(pieces=tuple(p for place, p in enumerate(item.pieces) if p.seal is None or (at, place) in kept))
        for at, item in enumerate(said)
    ]


def _seals(said: Sequence[_Said]) -> Iterator[tuple[tuple[int, int], Seal]]:
    for at, item in enumerate(said):
        for place, piece in enumerate(item.pieces):
            if piece.seal is not None:
                yield (at, place), piece.seal


def _waits(item: _Said, *, last: bool) -> bool:
    paused = last and item.message.stop_reason == "pause"
    return paused or any(piece.block.type == "tool_use" for piece in item.pieces)


def _is_word(item: _Said) -> bool:
    return item.message.role == "user" and any(piece.block.type != "tool_result" for piece in item.pieces)


def _standing(item: _Said) -> _Said:
    """Leave out sealed items whose company is gone: a trace of thought that led to nothing, and the reverse."""
    kept: list[_Piece] = []
    company = any(piece.seal is None or not piece.seal.needs for piece in item.pieces)
    for at in reversed(range(len(item.pieces))):
        piece = item.pieces[at]
        before = item.pieces[at - 1].seal if at else None
        leans_on_nothing = piece.seal is not None and before is not None and not before.whole
        if leans_on_nothing or not _stands(piece.seal, follower=bool(kept), company=company):
            continue
        kept.append(piece)
    return item._replace(pieces=tuple(reversed(kept)))


def _stands(seal: Seal | None, *, follower: bool, company: bool) -> bool:
    if seal is None:
        return True
    return seal.whole and (not seal.needs or (follower if seal.needs == "next" else company))


def _drawn_to_user(said: Iterable[_Said]) -> list[_Said]:
    """Move what a model drew to the user's next message, for wires that take it from nobody else."""
    out: list[_Said] = []
    carried: tuple[_Piece, ...] = ()
    for item in said:
        if item.message.role == "user":
            out.append(item._replace(pieces=item.pieces + carried))
            carried = ()
            continue
        carried += tuple(piece for piece in item.pieces if piece.block.type in MEDIA)
        out.append(item._replace(pieces=tuple(piece for piece in item.pieces if piece.block.type not in MEDIA)))
    return out


# -- turns ----------------------------------------------------------------------------------------------------------
def _turns(said: Iterable[_Said], target: Target) -> list[_Said]:
    """Return what one side said until the other did, as one.

    A turn keeps the usage that the target itself reported, by which its next prompt is estimated.
    """
    out: list[_Said] = []
    for message, pieces in said:
        kept = replace(message, blocks=()) if target.made(message) else Message(role=message.role)
        _add(out, _Said(kept, pieces))
    return out


def _add(turns: list[_Said], turn: _Said) -> None:
    if not turn.pieces:
        return
    if turns and turns[-1].message.role == turn.message.role:
        turns[-1] = turn._replace(pieces=turns[-1].pieces + turn.pieces)
    else:
        turns.append(turn)


def _answered(turns: Iterable[_Said], target: Target) -> list[Message]:
    """Return the turns with one result behind each call, and without results that have no call before them."""
    out: list[_Said] = []
    name = _Ids(target)
    calls: list[tuple[str | None, Block]] = []
    for turn in turns:
        if turn.message.role == "user":
            _add(out, turn._replace(pieces=_results(calls, turn.pieces)))
            calls = []
        else:
            sent = tuple(name(piece) for piece in turn.pieces)
            _add(out, turn._replace(pieces=sent))
            calls = [
                (before.block.id, after.block)
                for before, after in zip(turn.pieces, sent, strict=True)
                if after.block.type == "tool_use"
            ]
    _add(out, _Said(Message(role="user"), _results(calls, ())))
    return [replace(message, blocks=tuple(piece.block for piece in pieces)) for message, pieces in out]


def _results(calls: Iterable[tuple[str | None, Block]], pieces: Sequence[_Piece]) -> tuple[_Piece, ...]:
    """Return a user's turn with one result for each call first; a second one for the same call is left out."""
    given: dict[str | None, list[Block]] = {}
    for piece in pieces:
        if piece.block.type == "tool_result":
            given.setdefault(piece.block.id, []).append(piece.block)
    first = []
    for id_, call in calls:
        result = given[id_].pop(0) if given.get(id_) else tool_result("", INTERRUPTED, is_error=True)
        first.append(_Piece(replace(result, id=call.id, name=call.name)))
    return (*first, *(piece for piece in pieces if piece.block.type != "tool_result"))


class _Ids:
    """Ids of calls in the target's alphabet: none twice, and the same ones as long as the conversation begins alike."""

    def __init__(self, target: Target) -> None:
        self._fits = re.compile(target.ids)
        self._length = target.id_length
        self._taken: set[str] = set()

    def __call__(self, piece: _Piece) -> _Piece:
        """Return a call under the id it is sent with; anything else as it is."""
        if piece.block.type != "tool_use":
            return piece
        seed = given = piece.block.id or ""
        id_ = given if given and (piece.keeps_id or self._fits.fullmatch(given)) else _hashed(given, self._length)
        while id_ in self._taken:
            seed += "'"
            id_ = _hashed(seed, self._length)
        self._taken.add(id_)
        return piece._replace(block=replace(piece.block, id=id_))


def _hashed(text: str, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")
    letters = []
    for _ in range(length):
        number, place = divmod(number, len(_ALPHANUMERIC))
        letters.append(_ALPHANUMERIC[place])
    return "".join(letters)


# -- the wire's order -----------------------------------------------------------------------------------------------
def _placed(turn: Message, target: Target) -> Message:
    """Return a turn with everything where the wire has room for it."""
    if not (target.tool_media and target.tools):
        turn = _shown_apart(turn)
    return turn if target.tools else replace(turn, blocks=tuple(_told(block) for block in turn.blocks))


def _shown_apart(turn: Message) -> Message:
    """Return a turn with what its tools showed behind all results."""
    shown = [item for block in turn.blocks for item in block.images]
    if not shown:
        return turn
    results = [replace(block, images=()) for block in turn.blocks if block.type == "tool_result"]
    rest = [block for block in turn.blocks if block.type != "tool_result"]
    return replace(turn, blocks=(*results, text_block(IMAGES_NOTE), *shown, *rest))


def _told(block: Block) -> Block:
    """Return a call or a result in words."""
    if block.type == "tool_use":
        return text_block(f"[called {block.name} with {json.dumps(block.input)}]")
    if block.type == "tool_result":
        return text_block(f"[{'error' if block.is_error else 'result'}: {block.content}]")
    return block


def _framed(turns: Sequence[Message], target: Target) -> Iterator[Message]:
    """Yield the turns with what the wire wants before, between and after them."""
    if not turns or (target.opening and turns[0].role == "assistant"):
        yield Message(role="user", blocks=(text_block(OPENING),))
    for turn in turns[:-1]:
        yield from _bridged(turn, target)
    if turns:
        yield from _last(turns[-1], target)


def _bridged(turn: Message, target: Target) -> Iterator[Message]:
    results = tuple(block for block in turn.blocks if block.type == "tool_result")
    if not target.bridge or len(results) in (0, len(turn.blocks)):
        yield turn
        return
    yield replace(turn, blocks=results)
    yield Message(role="assistant", blocks=(text_block(BRIDGE),))
    yield replace(turn, blocks=turn.blocks[len(results) :])


def _last(turn: Message, target: Target) -> Iterator[Message]:
    """Yield the turn that is to be answered; one of the assistant's own is to be gone on with."""
    if turn.role == "user":
        yield from _bridged(turn, target)
        return
    last = turn.blocks[-1]
    if last.type == "text" and not last.signature:
        turn = replace(turn, blocks=(*turn.blocks[:-1], replace(last, text=(last.text or "").rstrip())))
    yield turn
    paused = target.resumes and turn.stop_reason == "pause" and last.type == "opaque"
    if not (target.prefill or paused):
        yield Message(role="user", blocks=(text_block(OPENING),))


def result_text(result: Block) -> str:
    """Return what a tool message says; a failure says so, for wires that have no field for it."""
    text = result.content or ""
    return f"Error: {text}" if result.is_error else text or "(no output)"
