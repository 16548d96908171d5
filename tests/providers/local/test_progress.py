"""The progress line: what it says, and how seldom."""

from __future__ import annotations

import io

from larik_nb.providers.local.progress import ProgressLine

MB = 1_000_000


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


class Ascii(Terminal):
    """A terminal of the old kind."""

    encoding = "ascii"


def test_a_terminal_line_is_rewritten_five_times_a_second() -> None:
    """A thousand reports in two seconds draw at most the first, ten more and the last, on one line."""
    clock, out = Clock(), Terminal()
    with ProgressLine("tiny", out, clock=clock) as progress:
        for step in range(1001):
            clock.now = step * 0.002
            progress(step * 100_000, 100 * MB, "host")
    drawn = out.getvalue().split("\r")[1:]
    assert len(drawn) <= 12
    assert out.getvalue().count("\n") == 1
    assert drawn[-1].rstrip() == f"tiny {'█' * 24} 100% · 100.0 of 100.0 MB · 50.0 MB/s · from host"


def test_speed_and_time_left_count_from_where_it_went_on() -> None:
    """What was here before this fetch is in the bar, not in the speed."""
    clock, out = Clock(), Terminal()
    progress = ProgressLine("tiny", out, clock=clock)
    progress(50 * MB, 200 * MB, "host")
    clock.now = 2.0
    progress(60 * MB, 200 * MB, "host")
    assert "60.0 of 200.0 MB · 5.0 MB/s · 28 s left" in out.getvalue()


def test_a_log_gets_a_plain_line_at_each_tenth() -> None:
    """No carriage return where none is obeyed."""
    clock, out = Clock(), io.StringIO()
    with ProgressLine("tiny", out, clock=clock) as progress:
        for step in range(101):
            clock.now = step / 10
            progress(step * MB, 100 * MB, "host")
    lines = out.getvalue().splitlines()
    assert "\r" not in out.getvalue()
    assert [line.split("·")[0].split()[-1] for line in lines] == [f"{percent}%" for percent in range(0, 101, 10)]


def test_a_stream_without_the_signs_gets_plain_ones() -> None:
    """An ASCII terminal shows a bar too."""
    out = Ascii()
    ProgressLine("tiny", out, clock=Clock())(50 * MB, 100 * MB, "host")
    assert out.getvalue().startswith("\rtiny ############............  50% | 50.0 of 100.0 MB")
