"""A cell that is wholly ours is awaited where somebody watches; everything else blocks as magics do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebook._kernel import Kernel

BESIDE = """
import asyncio
ticks = []
async def tick():
    while True:
        ticks.append(1)
        await asyncio.sleep(0.01)
ticking = asyncio.get_running_loop().create_task(tick())
"""
PLACES = {
    "a cell": ("%%larik -m fake/fake:n=50:d=5\nhi", True),
    "a line": ("%larik -m fake/fake:n=50:d=5 hi", True),
    "a cell behind blank lines": ("\n\n%%larik -m fake/fake:n=50:d=5\nhi", True),
    "a cell whose text is on its line": ("%%larik -m fake/fake:n=50:d=5 -p 'hi'", True),
    "a line among others": ("x = 1\n%larik -m fake/fake:n=50:d=5 hi", False),
    "a line whose value is kept": ("x = %larik -m fake/fake:n=50:d=5 hi", False),
    "inside a function": ("def f():\n    %larik -m fake/fake:n=50:d=5 hi\nf()", False),
    "inside %%time": ("%%time\n%larik -m fake/fake:n=50:d=5 hi", False),
    "inside %%capture": ("%%capture\n%larik -m fake/fake:n=50:d=5 hi", False),
    "called": ("get_ipython().run_cell_magic('larik', '-m fake/fake:n=50:d=5', 'hi')", False),
    "run by other code": ("get_ipython().run_cell('%larik -m fake/fake:n=50:d=5 hi')", False),
}


@pytest.mark.parametrize(("cell", "awaits"), PLACES.values(), ids=PLACES)
def test_the_loop_runs_on_only_while_a_whole_cell_is_awaited(kernel: Kernel, cell: str, awaits: bool) -> None:
    kernel.run(BESIDE)
    kernel.run("before = len(ticks)")
    ran = kernel.run(cell)
    kernel.run("during = len(ticks) - before; ticking.cancel()")

    assert not ran.error
    assert (int(kernel.value("during")) > 10) == awaits


def test_nobody_watching_it_blocks(kernel: Kernel) -> None:
    kernel.run(BESIDE)
    kernel.run("before = len(ticks)")
    ran = kernel.run(PLACES["a cell"][0], watched=False)
    kernel.run("during = len(ticks) - before; ticking.cancel()")

    assert not ran.error
    assert int(kernel.value("during")) <= 10


def test_without_autoawait_it_blocks_and_answers(kernel: Kernel) -> None:
    kernel.run("%autoawait off")
    try:
        ran = kernel.run("%%larik -m fake/fake:n=3\nhi")
    finally:
        kernel.run("%autoawait asyncio")

    assert not ran.error
    assert "fake/fake:n=3" in ran.plain


@pytest.mark.parametrize(
    ("cell", "parsed"),
    [
        ("%%larik -m fake/fake:n=1\nhi", "get_ipython().run_cell_magic('larik', '-m fake/fake:n=1', 'hi\\n')"),
        ("%larik -m fake/fake:n=1 hi", "get_ipython().run_line_magic('larik', '-m fake/fake:n=1 hi')"),
    ],
)
def test_the_history_has_what_was_written_and_the_form_that_other_code_can_run(
    kernel: Kernel, cell: str, parsed: str
) -> None:
    kernel.run(cell)
    number = int(kernel.value("len(In) - 1")) - 1

    ask = f"json.dumps([In[{number}], _i{number}, list(get_ipython().history_manager.get_range(0, {number}, {number} + 1, raw=True))])"
    kept, raw, stored = json.loads(kernel.value(f"__import__('json').{ask.removeprefix('json.')}"))
    assert kept in (parsed, parsed.replace("hi\\n", "hi"))
    assert raw == cell
    assert stored[0][2] == cell
    kernel.run(f"%macro again {number}")
    assert "fake/fake:n=1" in kernel.run("again").plain


def test_a_magic_that_took_our_name_is_left_alone(kernel: Kernel) -> None:
    kernel.run(
        "ours = get_ipython().magics_manager.magics['cell']['larik']\n"
        "get_ipython().register_magic_function(lambda line, cell: print('theirs'), 'cell', 'larik')"
    )
    try:
        ran = kernel.run("%%larik\nhi")
    finally:
        kernel.run("get_ipython().magics_manager.magics['cell']['larik'] = ours")

    assert ran.stdout == "theirs\n"


def test_help_and_slips_are_as_ever(kernel: Kernel) -> None:
    assert "Ask a model" in str(kernel.run("%%larik?").reply["payload"])
    assert "nothing to ask" in kernel.run("%%larik").error
    assert "Closest: --effort" in kernel.run("%%larik --efort high\nhi").error


@pytest.fixture
def new(settings: Path, tmp_path: Path) -> Iterator[Kernel]:
    running = Kernel(tmp_path, {"LARIK_CONFIG": str(settings)})
    running.run("%load_ext larik_nb")
    yield running
    running.close()


def test_no_widget_library_is_imported_before_it_is_wanted(new: Kernel) -> None:
    """Not for a short answer, and not where nobody watches; for one that takes its time it is."""
    kernel = new
    loaded = "'anywidget' in __import__('sys').modules"
    kernel.run("%%larik -m fake/fake:n=20\nhi")
    kernel.run("%%larik -m fake/fake:n=200:d=6\nhi", watched=False)
    before = kernel.value(loaded)
    ran = kernel.run("%%larik -m fake/fake:n=300:d=6\nhi")

    assert (before, kernel.value(loaded)) == ("False", "True")
    opened = [m["comm_id"] for m in ran.of("comm_open")]
    assert len(opened) == 2  # the bar and its layout
    assert sorted(m["comm_id"] for m in ran.of("comm_close")) == sorted(opened)
    assert [set(output["data"]) for output in ran.saved] == [{"text/plain", "text/markdown"}]
