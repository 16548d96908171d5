"""Ctrl-C while a cell asks: heard at once while it waits, and held where half a step would be worse than none."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """Holds interrupts from `with` to its end, but for the time between `allow` and the first one, or `hold`.

    The first one raises; more of them change nothing any more, so that what came is shown and the status told. One
    that came too late to stop anything is raised at the end. Only the main thread hears signals; elsewhere nothing
    is held.
    """

    def __init__(self) -> None:
        self._before: Any = None
        self._allowed = False
        self._pending = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not None:
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def _heard(self, _number: int, _frame: FrameType | None) -> None:
        self._pending = True
        self._raise_if_allowed()

    def _raise_if_allowed(self) -> None:
        if self._allowed and self._pending:
            self._allowed = self._pending = False
            raise KeyboardInterrupt

    def allow(self) -> None:
        """Let the next interrupt raise.

        Raises:
            KeyboardInterrupt: There was one before.
        """
        self._allowed = True
        self._raise_if_allowed()

    def hold(self) -> None:
        """Hold them again."""
        self._allowed = False

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._pending and exc is None:
            raise KeyboardInterrupt


class Cancels(Interrupts):
    """The same for an async cell, whose kernel cancels what is awaited: none can come in between, so none is held."""

    def __enter__(self) -> Interrupts:
        return self


@contextmanager
def at_once() -> Iterator[None]:
    """Let an interrupt raise inside: in an async cell one would else wait until plain code has come to its end."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
