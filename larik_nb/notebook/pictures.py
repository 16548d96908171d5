"""The pictures that cells showed, by the cells' numbers: what `{Out[3]!image}` means where a plot is no cell's value.

A kernel keeps no display by itself, so its publisher is listened to; only the last few pictures are kept, and none of
them twice. A terminal's shell keeps them in its history.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from larik_nb.notebook import cells

_KINDS = ("image/png", "image/jpeg")
_MOST = 16
_MOST_BYTES = 8_000_000
"""Of one picture's base64; larger ones are not kept."""


class Pictures:
    """The last picture of each of the last few cells that showed one.

    Args:
        shell: Its displays are listened to.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._kept: OrderedDict[int, str] = OrderedDict()

    def listen(self) -> Callable[[], None]:
        """Begin to keep pictures; returns what ends it."""
        publisher = self._shell.display_pub
        if not hasattr(type(publisher), "register_hook"):  # a terminal's
            return lambda: None
        publisher.register_hook(self._heard)
        return lambda: publisher.unregister_hook(self._heard)

    def _heard(self, message: dict[str, Any]) -> dict[str, Any]:
        data = _encoded(message.get("content", {}).get("data", {}))
        if data is not None and len(data) <= _MOST_BYTES:
            number = cells.number(self._shell)
            self._kept[number] = data
            self._kept.move_to_end(number)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return message

    def of(self, number: int) -> bytes | None:
        """Return the picture that a cell showed; None where it showed none, or too long ago."""
        data = self._kept.get(number)
        if data is None:
            outputs = getattr(self._shell.history_manager, "outputs", {}).get(number, [])
            data = next((found for output in reversed(outputs) if (found := _encoded(output.bundle))), None)
        try:
            return base64.b64decode(data) if data is not None else None
        except binascii.Error:
            return None


def _encoded(bundle: Mapping[str, Any]) -> str | None:
    """Return a display's picture in base64."""
    for kind in _KINDS:
        data = bundle.get(kind)
        if isinstance(data, bytes):
            return base64.b64encode(data).decode()
        if isinstance(data, str):
            return data
    return None
