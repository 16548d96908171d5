"""A cell's work as a generator that yields wherever it waits, so that one body serves blocking magics and async cells.

What it yields is a `Pause`, and what that brought comes back from the `yield`; an interrupt of the waiting is raised
there as KeyboardInterrupt, whichever way it came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Pause(Protocol):
    """Something to wait for."""

    def block(self) -> Any:
        """Wait for it, and let nobody else run."""

    async def rest(self) -> Any:
        """Wait for it, and let the loop run meanwhile: clicks are heard."""


Steps = Generator[Pause, Any, T]


def run(steps: Steps[T]) -> T:
    """Do the work, blocking wherever it waits."""
    answer: Any = None
    failure: BaseException | None = None
    while True:
        try:
            pause = steps.send(answer) if failure is None else steps.throw(failure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what the generator's type says it returns
        answer = failure = None
        try:
            answer = pause.block()
        except BaseException as exc:  # noqa: BLE001  # raised again where the work waits
            failure = exc


async def arun(steps: Steps[T]) -> T:
    """Do the work, awaiting wherever it waits. A cancel, which is what a kernel makes of an interrupt, is one."""
    answer: Any = None
    failure: BaseException | None = None
    while True:
        try:
            pause = steps.send(answer) if failure is None else steps.throw(failure)
        except StopIteration as end:
            await _hear()
            return end.value  # type: ignore[no-any-return]  # as above
        answer = failure = None
        try:
            answer = await pause.rest()
        except asyncio.CancelledError:
            failure = KeyboardInterrupt()
        except BaseException as exc:  # noqa: BLE001  # as above
            failure = exc


async def _hear() -> None:
    """Let an interrupt be heard that came while plain code ran: it is on its way through the loop as three callbacks.

    Raises:
        KeyboardInterrupt: There was one. It came too late to stop anything here, but shall stop what comes next.
    """
    try:
        for _ in range(3):
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
