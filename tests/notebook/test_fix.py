"""A failed cell set right: what is told of it, the change shown first, made on a yes and only where nothing moved."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from larik_nb.errors import AnswerError, ConfigError
from larik_nb.notebook import asking, fix, steps
from larik_nb.notebook.status import digest
from larik_nb.providers.scripted import Reply
from tests.notebook._shell import Cells
from tests.notebook.test_redact import KEYS

BAD = "total = 0\nvalues = [1, 2]\nprint(values[total + 5])"
GOOD = "total = 0\nvalues = [1, 2]\nprint(values[total])"
ANSWER = f"The index is out of range.\n\n```python\n{GOOD}\n```"


@pytest.fixture
def page(cells: Cells) -> list[dict[str, Any]]:
    """What a page that can replace cells is told."""
    told: list[dict[str, Any]] = []
    status = cells.magics.status
    status._comm = type("Comm", (), {"send": lambda _, data: told.append(data), "close": lambda _: None})()
    status.front.heard({"type": "hello", "abilities": ["insert", "replace"]})
    return told


def run(
    cells: Cells,
    line: str = "",
    *,
    says: str = "yes",
    settle: Callable[[], None] | None = None,
    replies: tuple[Reply, ...] = (ANSWER,),
) -> None:
    """Do `%larik fix` as an async cell does it, its question answered with `says`."""
    cells.answers(*replies)
    work = fix.fix(cells.magics, line)

    async def drive() -> None:
        answer: Any = None
        while True:
            try:
                pause = work.send(answer)
            except StopIteration:
                return
            if isinstance(pause, asking.Ask):
                answer = says
            elif isinstance(pause, fix.Settled):
                if settle:
                    settle()
                answer = await pause.rest()
            else:
                answer = pause.block()

    asyncio.run(drive())


@pytest.fixture
def written(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is left for the next cell."""
    texts: list[str] = []
    monkeypatch.setattr(cells.shell, "set_next_input", lambda text, replace=False: texts.append(text))
    return texts


def test_the_model_is_told_the_cell_the_failure_and_the_values_that_matter(cells: Cells, written: list[str]):
    cells.run(BAD, cell_id="a1")

    run(cells)

    assert f"The cell:\n```\n{BAD}\n```" in cells.sent
    assert "It failed with:\n```\nIndexError: list index out of range\n```" in cells.sent
    assert "→    3  print(values[total + 5])" in cells.sent
    assert "    values = [1, 2]" in cells.sent
    assert "    total = 0" in cells.sent


def test_the_change_is_shown_as_a_diff_and_made_on_a_yes_only(cells: Cells, written: list[str]):
    cells.run(BAD)

    run(cells, says="no")

    change = "@@ -1,3 +1,3 @@\n total = 0\n values = [1, 2]\n-print(values[total + 5])\n+print(values[total])"
    assert cells.published[-2]["text/markdown"] == f"```diff\n{change}\n```"
    assert cells.published[-1]["text/plain"] == "not applied"
    assert written == []
    run(cells, says="yes")
    assert written == [GOOD]


def test_nobody_there_means_no(cells: Cells, written: list[str]):
    cells.run(BAD)
    cells.answers(ANSWER)

    steps.run(fix.fix(cells.magics, ""))

    assert cells.published[-1]["text/plain"] == "not applied"
    assert written == []


def test_insert_puts_the_cell_below_without_a_question(cells: Cells, written: list[str]):
    cells.run(BAD)

    run(cells, "--insert", says="must not be asked")

    assert written == [GOOD]


def test_the_page_replaces_the_cell_by_the_digest_of_what_it_was_based_on(
    cells: Cells, page: list[dict[str, Any]], written: list[str]
):
    cells.run(BAD, cell_id="a1")

    run(cells, settle=lambda: cells.magics.status.front.heard({"type": "done", "id": "1", "ok": True}))

    (edit,) = [data for data in page if data["type"] == "replace"]
    assert edit == {"type": "replace", "id": "1", "cell_id": "a1", "digest": digest(BAD), "source": GOOD}
    assert cells.published[-1]["text/plain"] == "applied"
    assert written == []


def test_a_cell_that_changed_meanwhile_is_not_written_over(
    cells: Cells, page: list[dict[str, Any]], written: list[str]
):
    """S12: refused by the page, the diff shown, nothing else done."""
    cells.run(BAD, cell_id="a1")
    done = {"type": "done", "id": "1", "ok": False, "reason": "the cell has changed"}

    with pytest.raises(
        ConfigError, match=r"the cell was not changed: the cell has changed\. The change is shown above"
    ):
        run(cells, settle=lambda: cells.magics.status.front.heard(done))

    assert any("```diff" in data.get("text/markdown", "") for data in cells.published)
    assert written == []


def test_the_text_on_the_page_counts_where_it_was_told(cells: Cells, page: list[dict[str, Any]]):
    cells.run(BAD, cell_id="a1")
    seen = BAD + "  # edited since"
    cells.magics.status.front.heard({"type": "cell", "cell_id": "a1", "source": seen})

    run(
        cells,
        "--cell a1",
        settle=lambda: cells.magics.status.front.heard({"type": "done", "id": "1", "ok": True}),
    )

    assert seen in cells.sent
    assert [data["digest"] for data in page if data["type"] == "replace"] == [digest(seen)]


def test_a_cell_is_fixed_by_its_id_though_others_failed_since(cells: Cells, written: list[str]):
    cells.run(BAD, cell_id="a1")
    cells.run("1 / 0", cell_id="b2")

    run(cells, "--cell a1")

    assert "IndexError" in cells.sent
    assert "ZeroDivisionError" not in cells.sent
    assert "→    3  print(values[total + 5])" in cells.sent


def test_frames_of_the_user_come_first_and_the_innermost_of_them(cells: Cells, written: list[str]):
    cells.run(
        "import json\ndef outer(text):\n    return inner(text)\ndef inner(text):\n    return json.loads(text)\nouter('{')"
    )

    run(cells)

    places = [cells.sent.index(words) for words in ("in inner, ", "in outer, ", "in the cell", "decoder.py")]
    assert places == sorted(places)
    assert "IPython" not in cells.sent.partition("Where it happened")[2]


@pytest.mark.parametrize("key", KEYS)
def test_no_key_is_told_and_a_cell_with_one_is_left_to_its_owner(cells: Cells, written: list[str], key: str):
    cells.run(f"k = {key!r}\nkeys = [k]\nraise ValueError(k, keys)", cell_id="a1")

    run(cells)

    told = "".join(block.text for block in cells.blocks) + cells.plain
    assert key not in told
    assert key[4:20] not in told
    assert "which was not sent: change it by hand" in cells.published[-1]["text/plain"]
    assert written == []


def test_a_value_of_a_telling_name_is_not_told(cells: Cells, written: list[str]):
    cells.run("import getpass\npassword = 'swordfish'.upper()\nraise ValueError(len(password))")

    run(cells)

    assert "SWORDFISH" not in cells.sent
    assert "password = [redacted: secret]" in cells.sent


def test_hostile_values_are_told_all_the_same(cells: Cells, written: list[str]):
    cells.run("class V:\n    def __repr__(self): raise RuntimeError\nv, w = V(), 'x' * 10**6\nraise KeyError(v is w)")

    run(cells)

    assert "V: no repr (RuntimeError)>" in cells.sent
    assert len(cells.sent) < 10_000


def test_an_exception_that_cannot_be_printed_is_kept_all_the_same(cells: Cells, written: list[str]):
    cells.run("class Bad(Exception):\n    def __str__(self): raise RuntimeError\nraise Bad")

    run(cells)

    assert "Bad" in cells.sent.partition("It failed with")[2]


def test_a_syntax_error_is_told(cells: Cells, written: list[str]):
    cells.run("x = = 1")

    run(cells)

    assert "SyntaxError: invalid syntax" in cells.sent


@pytest.mark.parametrize("code", ["1 + 1", "raise KeyboardInterrupt", "%larik --nonsense x"])
def test_what_is_no_failure_of_code_is_not_kept(cells: Cells, code: str):
    cells.run(code)

    with pytest.raises(ConfigError, match=r"no cell has failed\. Run the cell first"):
        run(cells)


def test_failures_are_few_and_hold_no_frame(cells: Cells):
    class Held: ...

    cells.shell.user_ns["Held"] = Held
    held: list[weakref.ref[Any]] = []
    cells.shell.user_ns["held"] = held
    cells.run(
        "import weakref\ndef f():\n    h = Held()\n    held.append(weakref.ref(h))\n    raise ValueError\nf()",
        cell_id="first",
    )
    for number in range(50):
        cells.run("1 / 0", cell_id=f"c{number}")
    gc.collect()

    assert len(cells.magics.failed) == 32
    assert "first" not in cells.magics.failed
    assert held[0]() is None


def test_an_answer_without_code_and_one_that_changes_nothing_are_said(cells: Cells, written: list[str]):
    cells.run(BAD)

    with pytest.raises(AnswerError, match="the answer holds no code"):
        run(cells, replies=("Sorry.",))
    run(cells, replies=(f"```python\n{BAD}\n```",))
    assert cells.published[-1]["text/plain"] == "the answer changes nothing in the cell"
    assert written == []


def test_explain_asks_why_and_of_a_cell_that_runs_what_it_does(cells: Cells):
    cells.answers("Because.", "It adds.")
    cells.run(BAD)
    steps.run(fix.explain(cells.magics, ""))
    assert cells.sent.startswith("Explain why this cell of a Jupyter notebook failed")

    cells.magics.status.front.heard({"type": "cell", "cell_id": "z9", "source": "1 + 1"})
    steps.run(fix.explain(cells.magics, "--cell z9"))
    assert cells.sent.startswith("Explain what this cell of a Jupyter notebook does")
    assert "1 + 1" in cells.sent
    with pytest.raises(ConfigError, match="that cell has not failed"):
        steps.run(fix.fix(cells.magics, "--cell z9"))
    with pytest.raises(ConfigError, match="no cell gone is known"):
        steps.run(fix.explain(cells.magics, "--cell gone"))


def test_braces_and_at_signs_of_a_cell_are_text(cells: Cells, written: list[str]):
    cells.shell.user_ns["x"] = "must not be told"
    cells.run("f'{x}'\n@dataclass\nclass A: ...")

    run(cells)

    assert "f'{x}'\n@dataclass" in cells.sent
