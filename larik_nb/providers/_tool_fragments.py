"""Tool calls out of the fragments in which Chat Completions hosts send them.

The wire says: an index in each fragment, id and name in a call's first. Hosts give all calls index 0, leave the index
or the id out, send the id late or twice, repeat the name, or send arguments as an object or all over again.
"""

from __future__ import annotations

import json
import re
from typing import Any

from larik_nb.providers._fields import string
from larik_nb.providers._wire import Draft, arguments
from larik_nb.types import StreamEvent

_MARKS = re.compile(r'["\\{}\[\]]')


class _Object:
    """Tells when text that comes in pieces is one whole JSON object; each piece is looked at once."""

    def __init__(self) -> None:
        self.text: str | None = None
        self._pieces: list[str] = []
        self._depth = 0
        self._quoted = self._escaped = self._spoilt = False

    def add(self, piece: str) -> None:
        """Take the next piece in; `text` is the whole while it is an object."""
        if self._spoilt or not piece or (not self._depth and piece.isspace()):
            return
        if self.text is not None or (not self._depth and not piece.lstrip().startswith("{")):
            self.text, self._spoilt = None, True  # something after the end, or before the beginning
            return
        self._pieces.append(piece)
        end = self._end(piece)
        if end is None:
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        self._spoilt = bool(piece[end:].strip()) or arguments(text)[0] is None
        self.text = None if self._spoilt else text.strip()

    def _end(self, piece: str) -> int | None:
        """Return where the object ends in a piece; None where it goes on."""
        skipped = 0 if self._escaped else -1
        self._escaped = False
        for mark in _MARKS.finditer(piece):
            at, char = mark.start(), mark[0]
            if at == skipped:
                continue
            if self._quoted:
                if char == "\\":
                    skipped = at + 1
                self._quoted = char != '"'
            elif char == '"':
                self._quoted = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]":
                self._depth -= 1
                if not self._depth:
                    return at + 1
        self._escaped = skipped == len(piece)
        return None


class _Call:
    """A tool call while its fragments arrive."""

    __slots__ = ("input", "key", "name", "place", "started", "vendor_id")

    def __init__(self, key: int, place: Any, vendor_id: str | None, name: str) -> None:
        self.key = key
        self.place = place
        self.vendor_id = vendor_id
        self.name = name
        self.started = False
        self.input = _Object()


class ToolFragments:
    """Puts the fragments of tool calls together, by index first and id second.

    A call is in the draft from its first fragment on; its events wait until its name and id are known.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._all: list[_Call] = []
        self._at: dict[Any, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def add(self, fragment: dict[str, Any], *, several: bool = False) -> list[StreamEvent]:
        """Take one fragment in.

        Args:
            fragment: `{"index"?: n, "id"?: "…", "function"?: {"name"?: "…", "arguments"?: "…" or an object}}`.
            several: It came in a list of several; without an index a name then begins a call.
        """
        function = fragment.get("function") or {}
        name, id_ = string(function.get("name") or ""), string(fragment.get("id") or "")
        text, place = _fragment(function.get("arguments")), fragment.get("index")
        call = None if several and place is None and name else self._find(place, id_, name, text)
        if call is None:
            if not (name or id_ or text):
                return []
            call = self._open(place, id_, name)
        self._at[place] = self._at[None] = call
        self._learn(call, id_, name)
        if sealed := fragment.get("extra_content"):
            self._draft.tool_part(call.key).extra["raw"] = {"extra_content": sealed}
        events = self._append(call, text)
        return events if call.started else self._start(call) if call.name and call.vendor_id else []

    def end(self) -> list[StreamEvent]:
        """Return the events of calls whose id never came."""
        return [event for call in self._all if not call.started for event in self._start(call)]

    def _find(self, place: Any, id_: str, name: str, text: str) -> _Call | None:
        """Return the call that a fragment continues, None where it begins one."""
        known, current = self._by_id.get(id_), self._at.get(place)
        if current is None:
            return None if name else known
        if known is not None and known.place == place:
            current = known
        if not name:
            return current
        if (id_ and current.vendor_id and id_ != current.vendor_id) or (current.name and name != current.name):
            return None
        whole = current.input.text
        again = id_ == current.vendor_id and whole is not None and text.strip() == whole
        return None if text and whole is not None and not again else current

    def _open(self, place: Any, id_: str, name: str) -> _Call:
        vendor_id = None if id_ in self._by_id else id_ or None
        call = _Call(len(self._all), place, vendor_id, name)
        self._draft.tool(call.key, vendor_id, name)
        if id_ and vendor_id is None:
            # The host gave two calls one id: the second keeps the made one.
            call.vendor_id = self._draft.tool_part(call.key).extra["id"]
        self._all.append(call)
        return call

    def _learn(self, call: _Call, id_: str, name: str) -> None:
        extra = self._draft.tool_part(call.key).extra
        if name and not call.name:
            call.name = extra["name"] = name
        if id_ and id_ not in self._by_id:
            self._by_id[id_] = call
            if call.vendor_id is None and not call.started:
                call.vendor_id = extra["id"] = id_
                self._draft.take_id(id_)

    def _append(self, call: _Call, text: str) -> list[StreamEvent]:
        whole = call.input.text
        if whole is not None and text.lstrip().startswith("{"):
            # One object after another is never JSON: an empty one is replaced, the same one was said twice.
            if whole == "{}":
                self._draft.set_tool_input(call.key, "")
                call.input = _Object()
            elif whole == text.strip():
                return []
        call.input.add(text)
        return list(self._draft.tool_input(call.key, text))

    def _start(self, call: _Call) -> list[StreamEvent]:
        call.started = True
        id_, text = self._draft.tool_part(call.key).extra["id"], self._text(call)
        begun = StreamEvent(type="tool_use_start", id=id_, name=call.name)
        return [begun, StreamEvent(type="tool_input_delta", id=id_, text=text)] if text else [begun]

    def _text(self, call: _Call) -> str:
        return "".join(self._draft.tool_part(call.key).pieces)


def _fragment(value: Any) -> str:
    """Return a fragment of arguments as text; some hosts send the object itself."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
