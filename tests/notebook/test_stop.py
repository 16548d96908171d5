"""Interrupt and Stop: before the first byte, in the middle of the text, in a stall, and while a question waits.

Each time control is back within a second, what had arrived is kept and billed, and the next turn works. Runs as well on
the ipykernels that hear clicks on another thread, or not at all (`make check-kernels`).
"""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("anywidget", reason="the extra widgets is not installed")

from tests.fake_provider import FakeProvider, expected
from tests.notebook._kernel import Kernel, Ran
from tests.notebook._page import HEARS_CLICKS, Page

clicks = pytest.mark.skipif(not HEARS_CLICKS, reason="this ipykernel delivers no click while a cell runs")
AT_ONCE_S = 1.0
MOMENTS = {
    "before the first byte": ("fake:stall=0", ""),
    "in the middle of the text": ("fake:n=4000:d=4", "      0       1 "),
    "in a stall": ("fake:n=20:d=1:stall=7", expected("fake:n=7").rstrip()),
}
moments = pytest.mark.parametrize(("model", "part"), MOMENTS.values(), ids=MOMENTS)


def check(kernel: Kernel, fake: FakeProvider, ran: Ran, *, stopped: float, part: str) -> None:
    """See that the turn ended at once, that its part is kept and billed, and that the next one works."""
    assert ran.messages[-1][0] - stopped < AT_ONCE_S
    assert ran.of("error")[0]["ename"] == "Interrupted"
    shown = [output["data"]["text/plain"] for output in ran.saved if "data" in output]
    assert len(shown) == 1
    assert shown[0].startswith(part)
    assert "interrupted" in shown[0].splitlines()[-1]
    assert fake.wait_until(lambda f: f.open == 0, 1.0)
    cost = kernel.run("%larik cost").plain.splitlines()
    assert len(cost) > 1, "it is not billed"
    history = kernel.run("%larik history").plain
    assert ("(interrupted): " in history) == bool(part)
    again = kernel.run("%%larik -m fake/fake:n=3\nnext")
    assert again.plain.startswith(expected("fake:n=3").rstrip())


@pytest.fixture
def fresh(kernel: Kernel) -> Kernel:
    assert not kernel.run("%%larik --new -m fake/fake:n=3\nwarm up").error
    kernel.run("%larik reset")
    kernel.run("get_ipython().magics_manager.magics['cell']['larik'].__self__.session(None).turns.clear()")
    return kernel


@moments
def test_an_interrupt(fresh: Kernel, fake: FakeProvider, model: str, part: str) -> None:
    request = fresh.start(f"%%larik -m fake/{model}\nhi")
    time.sleep(1.2)
    stopped = time.monotonic()
    fresh.interrupt()

    check(fresh, fake, fresh.collect(request), stopped=stopped, part=part)


@clicks
@moments
def test_stop(fresh: Kernel, fake: FakeProvider, model: str, part: str) -> None:
    page = Page(fresh, "Bar", lambda page: page.send({"type": "stop"}))

    ran = page.run(f"%%larik -m fake/{model}\nhi")

    assert page.acted, "the bar never became live"
    assert page.states == {}, "a widget is left"
    check(fresh, fake, ran, stopped=page.acted, part=part)


@moments
def test_an_interrupt_of_the_magic_that_blocks(fresh: Kernel, fake: FakeProvider, model: str, part: str) -> None:
    request = fresh.start(f"get_ipython().run_cell_magic('larik', '-m fake/{model}', 'hi')")
    time.sleep(1.2)
    stopped = time.monotonic()
    fresh.interrupt()

    check(fresh, fake, fresh.collect(request), stopped=stopped, part=part)


ADD = "%larik keys add anthropic"


@clicks
def test_an_interrupt_while_a_card_waits(fresh: Kernel) -> None:
    page = Page(fresh, "Card", lambda _: fresh.interrupt())

    ran = page.run(ADD)

    assert page.acted, "the card never became live"
    assert ran.messages[-1][0] - page.acted < AT_ONCE_S
    assert ran.of("error")[0]["ename"] == "Interrupted"
    assert ran.plain == "Key for anthropic: interrupted"
    assert page.states == {}
    assert not fresh.run("%%larik -m fake/fake:n=3\nnext").error


def test_an_interrupt_while_it_is_typed_at(fresh: Kernel) -> None:
    """No page draws the card: after its time the question is typed at, and that can be interrupted too."""
    stopped: list[float] = []

    def stop() -> None:
        stopped.append(time.monotonic())
        fresh.interrupt()

    request = fresh.start(ADD)
    fresh.client.get_stdin_msg(timeout=20)
    timer = threading.Timer(0.3, stop)
    timer.start()
    ran = fresh.collect(request)
    timer.join()

    assert ran.messages[-1][0] - stopped[0] < AT_ONCE_S
    assert ran.of("error")[0]["ename"] == "Interrupted"
    assert not fresh.run("%%larik -m fake/fake:n=3\nnext").error


@clicks
def test_a_card_is_answered_with_a_click_and_its_secret_is_nowhere(fresh: Kernel) -> None:
    secret = "sk-0123456789-typed"
    page = Page(fresh, "Card", lambda page: page.send({"type": "answer", "value": secret}))

    ran = page.run(ADD)

    assert ran.plain.splitlines() == [
        "Key for anthropic: given, not shown",
        "the key for anthropic is used until this process ends",
    ]
    assert page.states == {}
    assert secret not in str(ran.messages)
    assert secret not in fresh.value("repr(In) + repr(Out) + repr(get_ipython().user_ns)")
    assert "typed into this notebook" in fresh.run("%larik keys").plain
