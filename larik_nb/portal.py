"""Plain code over the async core: the only file that starts a thread or a loop.

One daemon thread owns one event loop for the life of the process. `wait` runs a coroutine there, `iterate` an async
generator. Both work in a script, in a thread, inside a running Jupyter loop, in the next cell and in a forked child,
and an interrupt of the waiting thread cancels the work, which closes its socket.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from larik_nb.providers import Provider
    from larik_nb.types import Request, StreamEvent

T = TypeVar("T")

_CLOSE_S = 1.0
"""How long an interrupted or closed caller waits for the cancelled work to let go of its socket."""

_TICK_S = 0.5
"""Waits are cut into ticks: on Windows an untimed wait does not hear Ctrl-C."""

_BEHIND, _ROOM = 512, 64
"""Batches a reader may be behind before the source is paused, and at which it goes on."""

_lock = threading.Lock()
_running: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_before_fork: list[object] = []


def loop() -> asyncio.AbstractEventLoop:
    """Return the portal's loop, started on first use."""
    global _running, _thread  # one portal a process is the point
    if _running is not None and not _running.is_closed():
        return _running
    with _lock:
        if _running is None or _running.is_closed():  # closed: code that runs at exit, after `_stop`
            started = asyncio.new_event_loop()
            _thread = threading.Thread(target=_run, args=(started,), name="larik-portal", daemon=True)
            _thread.start()
            _running = started
        return _running


def _run(own: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(own)
    try:
        own.run_forever()
    finally:
        own.run_until_complete(own.shutdown_asyncgens())
        own.close()


def _refuse_own_thread() -> None:
    if threading.current_thread() is _thread:
        msg = (
            "this is the portal's own thread, which must not wait for itself: await the async form (aask, astream) here"
        )
        raise RuntimeError(msg)


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the portal's loop and return its result; an interrupt cancels it.

    Raises:
        RuntimeError: Called on the portal's own thread.
    """
    try:
        _refuse_own_thread()
        running = loop()
    except RuntimeError:
        work.close()
        raise
    future = asyncio.run_coroutine_threadsafe(work, running)
    settled = threading.Event()
    future.add_done_callback(lambda _: settled.set())
    try:
        while not settled.wait(_TICK_S):
            pass
        return future.result()
    except BaseException:
        if future.cancel():
            settled.wait(_CLOSE_S)
        raise


def apart(work: Coroutine[Any, Any, T]) -> T:
    """Run short `work` on a loop and thread of its own, for plain code that may itself be on the portal's thread."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="larik-apart") as pool:
        return pool.submit(asyncio.run, work).result()


class _Pipe(Generic[T]):
    """What the portal's task and the reading iterator share; neither keeps the other alive."""

    def __init__(self) -> None:
        self.batches: SimpleQueue[list[T] | _End] = SimpleQueue()
        self.task: asyncio.Task[None] | None = None
        self.begun = False
        self.closed = False
        self.ended = threading.Event()
        self.alarm: Callable[[], None] | None = None
        self.has_items = False
        self._batch: list[T] = []
        self._room: asyncio.Event | None = None

    def start(self, source: AsyncGenerator[T, None]) -> None:
        self.task = asyncio.get_running_loop().create_task(self.pump(source))

    async def pump(self, source: AsyncGenerator[T, None]) -> None:
        error: BaseException | None = None
        self.begun = True
        try:
            if not self.closed:
                async for item in source:
                    if not self._batch:
                        # Runs when this task next waits: what one socket read brings crosses in one hop.
                        asyncio.get_running_loop().call_soon(self.flush)
                    self._batch.append(item)
                    if self.batches.qsize() > _BEHIND:
                        self._room = asyncio.Event()
                        await self._room.wait()
        except asyncio.CancelledError:
            pass
        except BaseException as exc:  # noqa: BLE001  # raised again in the reader's thread
            error = exc
        finally:
            with contextlib.suppress(BaseException):
                await source.aclose()
            self.flush()
            self.batches.put(_End(error))
            self.ended.set()
            self._ring()

    def flush(self) -> None:
        if self._batch:
            batch, self._batch = self._batch, []
            self.batches.put(batch)
            if not self.has_items:
                self.has_items = True
                self._ring()

    def _ring(self) -> None:
        if self.alarm is not None:
            self.alarm()

    def cancel(self) -> None:
        self.closed = True
        # A task cancelled before its first step would never get to its end, which the reader waits for.
        if self.task is not None and self.begun:
            self.task.cancel()

    def caught_up(self) -> None:
        if self._room is not None:
            self._room.set()


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Reader(Iterator[T]):
    """The plain side of an async generator."""

    def __init__(self, source: AsyncGenerator[T, None]) -> None:
        self._pipe: _Pipe[T] = _Pipe()
        self._items: deque[T] = deque()
        self._over = False
        self._failure: BaseException | None = None
        self._loop = loop()
        self._loop.call_soon_threadsafe(self._pipe.start, source)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if not self._items and not self._take(None):
            failure, self._failure = self._failure, None
            raise StopIteration if failure is None else failure
        return self._items.popleft()

    def ready(self, timeout_s: float) -> bool:
        """Return whether an item or the end is there within `timeout_s` seconds, without taking it.

        For callers that have something to do meanwhile: a clock on the screen, an interrupt to look for.
        """
        if self._items or self._over:
            return True
        try:
            self._take(timeout_s)
        except Empty:
            return False
        return True

    def arrived(self) -> Iterator[T]:
        """Yield the items that are there, without waiting.

        Raises:
            BaseException: What the source raised, once its items are taken.
        """
        while self.ready(0.0) and (self._items or self._failure is not None):
            yield next(self)

    def ended(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds for the source's end, and return whether it is there.

        Items do not wake the caller: a screen that is drawn now and then costs nothing in between.
        """
        return self._pipe.ended.wait(timeout_s)

    @property
    def has_ended(self) -> bool:
        """Whether the source's end is there; items before it may still be waiting."""
        return self._pipe.ended.is_set()

    async def stirred(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` seconds for the first item, or once it is there for the end, on any loop.

        As with `ended`, items behind the first wake nobody.
        """
        running = asyncio.get_running_loop()
        woken = running.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        had_items = self._pipe.has_items
        self._pipe.alarm = lambda: _on(running, wake)
        timer = running.call_later(timeout_s, wake)
        try:
            # Looked at once the alarm is set: what came before it rings nobody.
            if not self._pipe.ended.is_set() and self._pipe.has_items == had_items:
                await woken
        finally:
            timer.cancel()
            self._pipe.alarm = None

    def _take(self, timeout_s: float | None) -> bool:
        """Fetch the next batch; False at the end.

        Raises:
            Empty: Nothing came within `timeout_s`.
        """
        if self._over:
            return False
        try:
            batch = self._get(timeout_s)
        except Empty:
            raise
        except BaseException:
            self.close()
            raise
        if isinstance(batch, _End):
            self._pipe.batches.put(batch)  # for another thread that waits for the same end
            self._over = True
            self._failure = batch.error
            return False
        self._items.extend(batch)
        if self._pipe.batches.qsize() == _ROOM:
            self._loop.call_soon_threadsafe(self._pipe.caught_up)
        return True

    def _get(self, timeout_s: float | None) -> list[T] | _End:
        if timeout_s is not None:
            return self._pipe.batches.get(timeout=timeout_s)
        while True:
            with contextlib.suppress(Empty):
                return self._pipe.batches.get(timeout=_TICK_S)

    def close(self) -> None:
        """Cancel the source and wait until its socket is closed, at most a second."""
        self._abandon()
        self._items.clear()
        if not self._pipe.ended.is_set() and self._is_ours() and threading.current_thread() is not _thread:
            self._pipe.ended.wait(_CLOSE_S)

    def _is_ours(self) -> bool:
        """Whether the source runs in this process: not in a forked child, nor once the portal has stopped."""
        return self._loop is _running and not self._loop.is_closed()

    def _abandon(self) -> None:
        self._over = True
        if not self._pipe.ended.is_set() and self._is_ours():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._pipe.cancel)

    def __enter__(self) -> _Reader[T]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_loop"):
            self._abandon()


def _on(other: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Have `call` called on another thread's loop, unless that is over."""
    with contextlib.suppress(RuntimeError):
        other.call_soon_threadsafe(call)


def iterate(source: AsyncGenerator[T, None]) -> _Reader[T]:
    """Return a plain iterator over `source`, which runs on the portal's loop from now on.

    Breaking out, closing or dropping the iterator closes the generator. It also has `ready(timeout_s)`.

    Raises:
        RuntimeError: Called on the portal's own thread.
    """
    _refuse_own_thread()
    return _Reader(source)


def stream(provider: Provider, request: Request) -> Iterator[StreamEvent]:
    """Yield the events of `provider.stream(request)` to plain code.

    Works wherever plain code runs, a cell of a running notebook included. Leaving the loop cancels the request.

    Raises:
        APIError: As the provider raises it.
    """
    return iterate(provider.stream(request))


def _stop() -> None:
    if _running is not None and _thread is not None and _thread.is_alive():
        with contextlib.suppress(RuntimeError):
            _running.call_soon_threadsafe(_cancel_all)
        _thread.join(_CLOSE_S)


def _cancel_all() -> None:
    tasks = asyncio.all_tasks()
    for task in tasks:
        task.cancel()
    asyncio.get_running_loop().call_later(0.05 if tasks else 0, asyncio.get_running_loop().stop)


def _forget() -> None:
    """Start afresh in a forked child.

    The thread did not come along, and the parent's loop is kept alive unused: finalizing it here would take the
    parent's sockets out of an epoll set that both processes share.
    """
    global _running, _thread, _lock  # see loop()
    if _running is not None:
        _before_fork.append((_running, _thread))
    _running, _thread, _lock = None, None, threading.Lock()


atexit.register(_stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
