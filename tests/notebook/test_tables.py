"""Tables of what settings and providers name, and name as they like: a row stays a row, and no wider than can be read."""

from __future__ import annotations

import re

import pytest

from larik_nb.notebook import tables
from tests.notebook.test_wizard import BASE, row, wizard_on

NASTY = "big/a|b\n| x | y |\r\n<img src=x onerror=alert(1)>\u202egpj\u2028z\x1b[31m`$1$"
LONG = "big/" + "m" * 10_000
ROWS = [("model", "price"), (NASTY, "1"), (LONG, "2")]
REORDERS = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f]")


def test_a_markdown_table_keeps_its_rows_and_columns() -> None:
    lines = tables.marked(ROWS).splitlines()

    assert len(lines) == 4
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}
    assert "<img" not in lines[2]
    assert not REORDERS.search(lines[2])


def test_plain_columns_are_no_wider_than_can_be_read() -> None:
    lines = tables.aligned(ROWS).splitlines()

    assert len(lines) == 3
    assert max(map(len, lines)) < 200
    assert all(line.isprintable() for line in lines)
    assert [line[-1] for line in lines[1:]] == ["1", "2"]


@pytest.mark.parametrize("name", [NASTY, LONG])
def test_the_wizard_shows_a_strange_fallback_in_one_line_and_can_drop_it(name: str) -> None:
    wizard = wizard_on({**BASE, "fallbacks": {"worker": [name, "small/m-mini"]}})
    strange, usual = (then["spec"] for then in row(wizard, "worker")["then"])

    assert usual == "small/m-mini"
    assert strange.isprintable()
    assert len(strange) <= 120
    assert wizard.do("drop", role="worker", at=0)
    assert [then["spec"] for then in row(wizard, "worker")["then"]] == ["small/m-mini"]
    assert all(line.isprintable() and len(line) <= 500 for line in wizard.view()["diff"])
