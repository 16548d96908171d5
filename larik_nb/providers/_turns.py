"""A conversation made valid for a wire that insists: roles alternate, calls have results, nothing is empty."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from larik_nb.providers._replay import MEDIA, Piece
from larik_nb.types import Block, Message, Role, tool_result

INTERRUPTED = "The call was interrupted; it has no result."
"""Stands for the result of a call that never got one: wires refuse a call without its result."""

IMAGES_NOTE = "The images and documents that the tools above returned:"
"""Introduces them in a user message, for wires whose tool messages hold text only."""

_TEXTUAL = ("json", "xml", "yaml", "javascript")


@dataclass(slots=True)
class Turn:
    """What one side said until the other did."""

    role: Role
    parts: list[Piece] = field(default_factory=list)

    @property
    def blocks(self) -> list[Block]:
        """The blocks without their messages."""
        return [block for _, block in self.parts]


def turns(messages: Sequence[Message], keep: Callable[[Message, Block], bool]) -> list[Turn]:
    """Return the turns to send.

    Messages of one role in a row are one turn. Results stand at the beginning of their turn in the order of the
    calls; a result without its call in the turn before is left out, a call without a result gets `INTERRUPTED`.

    Args:
        messages: The conversation.
        keep: Whether a block can be sent at all; a turn without any is left out.
    """
    merged = _merge((message, block) for message in messages for block in message.blocks if keep(message, block))
    answered: list[Turn] = []
    for turn in merged:
        calls = _calls(answered[-1]) if answered else []
        if calls and turn.role == "assistant":
            answered.append(Turn("user", [_interrupted(call) for call in calls]))
            calls = []
        parts = _answers(calls, turn) if turn.role == "user" else turn.parts
        if parts:
            _add(answered, Turn(turn.role, parts))
    if answered and (calls := _calls(answered[-1])):
        answered.append(Turn("user", [_interrupted(call) for call in calls]))
    return answered


def _merge(parts: Iterable[Piece]) -> list[Turn]:
    out: list[Turn] = []
    for message, block in parts:
        _add(out, Turn(message.role, [(message, block)]))
    return out


def _add(turns: list[Turn], turn: Turn) -> None:
    if turns and turns[-1].role == turn.role:
        turns[-1].parts += turn.parts
    else:
        turns.append(turn)


def _calls(turn: Turn) -> list[Block]:
    return [block for block in turn.blocks if block.type == "tool_use"] if turn.role == "assistant" else []


def _answers(calls: list[Block], turn: Turn) -> list[Piece]:
    """Return the turn's parts with one result for each call first."""
    results: dict[str | None, list[Piece]] = {}
    for part in turn.parts:
        if part[1].type == "tool_result":
            results.setdefault(part[1].id, []).append(part)
    first = [results[call.id].pop(0) if results.get(call.id) else _interrupted(call) for call in calls]
    return first + [part for part in turn.parts if part[1].type != "tool_result"]


def _interrupted(call: Block) -> Piece:
    result = tool_result(call.id or "", INTERRUPTED, is_error=True)
    return Message(role="user", blocks=(result,)), result


def media_to_user(messages: Iterable[Message]) -> list[Message]:
    """Return the messages with what a model drew moved to the user's next, for wires that take it from nobody else."""
    out: list[Message] = []
    carried: tuple[Block, ...] = ()
    for message in messages:
        if message.role == "user":
            out.append(replace(message, blocks=(*message.blocks, *carried)) if carried else message)
            carried = ()
            continue
        drawn = tuple(block for block in message.blocks if block.type in MEDIA)
        carried += drawn
        kept = tuple(block for block in message.blocks if block.type not in MEDIA)
        out.append(replace(message, blocks=kept) if drawn else message)
    return out


def result_text(result: Block) -> str:
    """Return what a tool message says; a failure says so, for wires that have no field for it."""
    text = result.content or ""
    return f"Error: {text}" if result.is_error else text or "(no output)"


def call_input(call: Block) -> dict[str, object]:
    """Return a call's arguments; those that were no JSON object are told as one, for the model to see its slip."""
    return {"invalid_arguments": call.input_raw} if call.input is None else call.input


def as_text(block: Block) -> str:
    """Return a document's text, or what stands for an attachment that is not text."""
    name, kind = block.name or "unnamed", block.media_type or "application/octet-stream"
    if (text := words(block)) is None:
        return f"[{block.type} {name} ({kind}) left out: it cannot be sent to this model]"
    return f'<document name="{name}">\n{text}\n</document>'


def words(block: Block) -> str | None:
    """Return a document's text; None where it holds none that can be read."""
    kind = block.media_type or ""
    return _decoded(block.data or "") if kind.startswith("text/") or kind.endswith(_TEXTUAL) else None


def _decoded(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
