"""Interrupts are heard at once while a cell waits, and never leave a half-shown answer or a locked conversation."""

from __future__ import annotations

import signal
import threading

import pytest

from larik_nb.notebook.interrupts import Interrupts
from tests.notebook._kernel import Kernel


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_one_before_it_is_allowed_raises_where_it_is() -> None:
    with Interrupts() as interrupts:
        press()
        with pytest.raises(KeyboardInterrupt):
            interrupts.allow()


def test_the_first_raises_and_more_change_nothing() -> None:
    with Interrupts() as interrupts:
        interrupts.allow()
        with pytest.raises(KeyboardInterrupt):
            press()
        press()
        with pytest.raises(KeyboardInterrupt):  # the second, which came behind the first
            interrupts.allow()


def test_one_that_is_held_raises_at_the_end() -> None:
    shown = []

    def ask() -> None:
        with Interrupts() as interrupts:
            interrupts.allow()
            interrupts.hold()
            press()
            shown.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        ask()

    assert shown == ["all of it"]


def test_a_failure_goes_before_an_interrupt_that_was_held() -> None:
    def ask() -> None:
        with Interrupts():
            press()
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        ask()


def test_the_handler_from_before_is_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before

    assert signal.getsignal(signal.SIGINT) == before


def test_another_thread_hears_none_and_works() -> None:
    heard = []

    def run() -> None:
        with Interrupts() as interrupts:
            interrupts.allow()
            heard.append("through")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert heard == ["through"]


PRESSES = """
import signal
from larik_nb.notebook import render
def press(*args, before=render.{place}, **kwargs):
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    return before(*args, **kwargs)
render.{place}, kept = press, render.{place}
"""


@pytest.mark.parametrize("place", ["Live.finish", "ShellScreen.clear", "ShellScreen.show", "watch", "_take"])
@pytest.mark.parametrize("answer", ["fake/fake:n=20", "fake/fake:n=20:cut=5"])
def test_pressed_anywhere_what_is_shown_is_what_is_kept(kernel: Kernel, place: str, answer: str) -> None:
    kernel.run("%larik reset")
    kernel.run(PRESSES.format(place=place))
    ran = kernel.run(f"%%larik -m {answer}\nq")
    kernel.run(f"render.{place} = kept")
    history = "get_ipython().magics_manager.magics['cell']['larik'].__self__.session(None).history"
    texts = kernel.value(f"[m.text.strip() for m in {history}][1:]")

    assert ran.of("error")[0]["ename"] in ("Interrupted", "ServerError")
    shown = [o["data"].get("text/plain", "unfinished").partition("\n\n")[0].strip() for o in ran.saved if "data" in o]
    assert str([text for text in shown if "interrupted before the answer" not in text]) == texts
    assert not kernel.run("%%larik -m fake/fake:n=1\nnext").error
