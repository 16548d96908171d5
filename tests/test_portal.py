"""Plain code over the async core: scripts, threads, running loops, interrupts, forks."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator

import pytest

from larik_nb import portal


class Source:
    """Numbers from the portal's loop, and what became of the generator."""

    def __init__(self, count: int = 3, then: str = "end") -> None:
        self.count, self.then = count, then
        self.closed = threading.Event()

    async def numbers(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(self.count):
                yield number
            if self.then == "wait":
                await asyncio.sleep(3600)
            if self.then == "fail":
                msg = "no more"
                raise ValueError(msg)
        finally:
            self.closed.set()


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_a_coroutine_and_a_generator_run_from_plain_code() -> None:
    assert portal.wait(double(4)) == 8
    assert list(portal.iterate(Source(1000).numbers())) == list(range(1000))


def test_they_run_inside_a_running_loop() -> None:
    async def cell() -> tuple[int, list[int]]:
        return portal.wait(double(4)), list(portal.iterate(Source().numbers()))

    assert asyncio.run(cell()) == (8, [0, 1, 2])


def test_an_error_arrives_after_what_came_before_it() -> None:
    reader = portal.iterate(Source(3, "fail").numbers())

    assert [next(reader) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="no more"):
        next(reader)
    assert list(reader) == []


def test_breaking_out_closes_the_generator() -> None:
    source = Source(5, "wait")
    for number in portal.iterate(source.numbers()):
        if number == 2:
            break
    gc.collect()

    assert source.closed.wait(2)


def test_dropping_the_iterator_closes_the_generator() -> None:
    source = Source(1, "wait")
    reader = portal.iterate(source.numbers())
    assert next(reader) == 0
    del reader
    gc.collect()

    assert source.closed.wait(2)


def test_closing_waits_for_the_generator() -> None:
    source = Source(1, "wait")
    with portal.iterate(source.numbers()) as reader:
        assert next(reader) == 0

    assert source.closed.is_set()
    assert list(reader) == []


def test_a_generator_closed_before_its_first_step_never_runs_on() -> None:
    source = Source(3, "wait")
    portal.iterate(source.numbers()).close()

    assert portal.wait(double(1)) == 2


def test_ready_says_whether_something_is_there_and_takes_nothing() -> None:
    reader = portal.iterate(Source(1, "wait").numbers())

    assert reader.ready(2)
    assert reader.ready(0)
    assert next(reader) == 0
    assert not reader.ready(0.05)
    reader.close()
    assert reader.ready(0)


@pytest.mark.parametrize("form", ["wait", "iterate"])
def test_an_interrupt_cancels_the_work_within_a_second(form: str) -> None:
    source = Source(1, "wait")

    async def forever() -> None:
        async for _ in source.numbers():
            pass

    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    work = (lambda: portal.wait(forever())) if form == "wait" else (lambda: list(portal.iterate(source.numbers())))
    with pytest.raises(KeyboardInterrupt):
        work()

    assert time.monotonic() - begun < 1.2
    assert source.closed.wait(1)


def test_a_slow_reader_pauses_the_source() -> None:
    made = []

    async def many() -> AsyncGenerator[int, None]:
        for number in range(5000):
            made.append(number)
            yield number
            await asyncio.sleep(0)

    reader = portal.iterate(many())
    assert next(reader) == 0
    deadline = time.monotonic() + 5
    while len(made) < 400 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)

    assert len(made) < 2000
    assert len(list(reader)) == 4999


def test_sixty_four_threads_share_the_portal() -> None:
    sums: list[int] = []
    threads = [
        threading.Thread(target=lambda: sums.append(sum(portal.iterate(Source(50).numbers())))) for _ in range(64)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sums == [1225] * 64
    assert sum(thread.name == "larik-portal" for thread in threading.enumerate()) == 1


def test_context_variables_go_along() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="?")

    async def read() -> AsyncGenerator[str, None]:
        yield name.get()

    name.set("cell 3")

    assert list(portal.iterate(read())) == ["cell 3"]


def test_the_portal_refuses_to_wait_for_itself() -> None:
    async def nested() -> int:
        return portal.wait(double(1))

    with pytest.raises(RuntimeError, match="await the async form"):
        portal.wait(nested())


def _in_child(queue: multiprocessing.Queue[int]) -> None:
    queue.put(portal.wait(double(21)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_gets_a_portal_of_its_own() -> None:
    portal.wait(double(1))
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[int] = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()

    assert queue.get(timeout=10) == 42
    child.join(10)
    assert portal.wait(double(2)) == 4


def test_a_reader_closed_before_its_source_began_is_closed_at_once() -> None:
    portal.loop().call_soon_threadsafe(time.sleep, 0.1)  # so that start and end fall into one turn of the loop
    reader = portal.iterate(Source().numbers())
    begun = time.monotonic()
    reader.close()

    assert time.monotonic() - begun < 0.9


def test_every_thread_that_reads_hears_the_end() -> None:
    async def late_end() -> AsyncGenerator[int, None]:
        yield 0
        await asyncio.sleep(0.2)

    reader = portal.iterate(late_end())
    threads = [threading.Thread(target=list, args=(reader,), daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)

    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_leaves_the_parents_stream_alone() -> None:
    reader = portal.iterate(Source(3, "wait").numbers())
    next(reader)
    child = os.fork()
    if not child:
        begun = time.monotonic()
        reader.close()
        os._exit(time.monotonic() - begun > 0.9)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [next(reader), next(reader)] == [1, 2]
    reader.close()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="no thread begins so late from 3.12 on")
def test_code_that_runs_at_exit_may_still_ask() -> None:
    code = (
        "import atexit, asyncio\n"
        "atexit.register(lambda: print(portal.wait(asyncio.sleep(0, 'answered'))))\n"
        "from larik_nb import portal\n"
        "portal.wait(asyncio.sleep(0))\n"
    )
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=30)

    assert (ran.stdout, ran.stderr) == ("answered\n", "")
