"""Whether anything of a question has left this machine: who is stopped before that owes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token


class Sending:
    """What became of one question, as far as bytes go.

    Attributes:
        begun: It is on its way to a server.
        gone: Bytes of it were written to a connection.
    """

    __slots__ = ("_outer", "begun", "gone")

    def __init__(self, outer: Sending | None = None) -> None:
        self._outer = outer
        self.begun = self.gone = False

    @property
    def is_unsent(self) -> bool:
        """Whether it is certain that no server has it; a provider in this process never says so."""
        return self.begun and not self.gone

    def begin(self) -> None:
        """Note that a request is being made of it."""
        self.begun = True
        if self._outer is not None:
            self._outer.begin()

    def go(self) -> None:
        """Note that bytes were written."""
        self.gone = True
        if self._outer is not None:
            self._outer.go()


_watching: ContextVar[Sending | None] = ContextVar("sending", default=None)


@contextmanager
def watched() -> Iterator[Sending]:
    """Watch what is sent inside, by this task and what it calls."""
    sending = Sending(_watching.get())
    token: Token[Sending | None] = _watching.set(sending)
    try:
        yield sending
    finally:
        with suppress(ValueError):  # a generator that is closed by another task leaves its own variables alone
            _watching.reset(token)


def begin() -> None:
    """Tell whoever watches that a request is being made."""
    if (sending := _watching.get()) is not None:
        sending.begin()


def go() -> None:
    """Tell whoever watches that bytes were written."""
    if (sending := _watching.get()) is not None:
        sending.go()
