"""{name} in prompts: what names something is replaced once, all else keeps every byte."""

from __future__ import annotations

import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb.errors import ConfigError
from larik_nb.notebook.interpolate import expand, undefined

pd = pytest.importorskip("pandas")


class Broken:
    @property
    def attribute(self) -> str:
        msg = "no"
        raise ValueError(msg)


NAMES = {
    "x": 5,
    "name": "Ada",
    "items": ["first", {"key": "inner"}],
    "table": {"a b": 1.5, "n": {"m": None}},
    "brace": "{name} {x}",
    "broken": Broken(),
    "string": string,
    "naïve": "ok",
}

UNTOUCHED = [
    'interface A { b: string }\nimport {useState, x} from "react"',
    '{"a": 1}',
    "{v:k for k,v in d.items()}",
    "{{x}}",
    "{x",
    "x}",
    "{",
    "{}",
    "{ x }",
    "{x!r}",
    "{x:>10}",
    "{x.nothing}",
    "{items[9]}",
    "{items[x]}",
    "{table['none']}",
    "{broken.attribute}",
    "{unknown}",
    "{string}",
    "{x()}",
    "{x+1}",
    "{x.real.}",
    "{0}",
    "\\{x }\\",
    "$x `x` %x",
    "{items[0}}",
]


@pytest.mark.parametrize("text", UNTOUCHED)
def test_what_names_nothing_keeps_every_byte(text: str):
    assert expand(text, NAMES) == text


@given(st.text(alphabet="{}[]'\".:!,x n0\n$\\ab\u2028é_-"))
def test_nothing_changes_without_names(text: str):
    assert expand(text, {}) == text


@given(st.text())
def test_a_value_is_never_looked_at_again(value: str):
    """Whatever a value holds, it arrives as it is, once."""
    assert expand("<{x}>", {"x": value, "name": "no"}) == f"<{value}>"


@given(st.lists(st.sampled_from(["{x}", "{{x}}", "{y}", "{", "}", "text", '{"x": {x}}', "\r\n"]), max_size=12))
def test_only_the_fields_change(parts: list[str]):
    """Pieces of text around fields stay as they are; a doubled brace is no field."""
    text = " ".join(parts)
    expected = " ".join({"{x}": "5", '{"x": {x}}': '{"x": 5}'}.get(part, part) for part in parts)
    if '{"x": {x}}' in parts:
        expected = expected.replace('{"x": 5}', '{"x": {x}}')  # `}}` behind the name: not a field

    assert expand(text, {"x": 5}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{x}{x}", "55"),
        ("Hi {name}, {items[0]}!", "Hi Ada, first!"),
        ("{items[-1]['key']}", "inner"),
        ('{table["a b"]}', "1.5"),
        ("{table['n']['m']}", "None"),
        ("{name.upper}", None),
        ("{x.real}", "5"),
        ("{brace}", "{name} {x}"),
        ("{naïve}", "ok"),
        ("f({x})", "f(5)"),
    ],
)
def test_what_names_something_is_replaced(text: str, expected: str | None):
    result = expand(text, NAMES)

    assert result == expected if expected is not None else "built-in method" in result


def test_a_data_frame_becomes_columns_and_first_rows():
    frame = pd.DataFrame({"month": range(30), "note": ["a|b\nc"] * 30})

    text = expand("{df}", {"df": frame})

    lines = text.splitlines()
    assert lines[0] == "DataFrame of 30 rows, 2 columns"
    assert lines[2:5] == ["| column | type | missing |", "| --- | --- | --- |", "| month | int64 | 0 |"]
    assert lines[7:12] == [
        "first 5 of 30 rows",
        "",
        "|  | month | note |",
        "| --- | --- | --- |",
        "| 0 | 0 | a\\|b c |",
    ]
    assert len(lines) == 16


def test_a_series_is_a_table_of_one_column():
    assert "| 0 | 1 |" in expand("{s}", {"s": pd.Series([1, 2], name="n")})


def test_a_long_value_is_cut_and_says_so_but_a_text_never():
    assert expand("{v}", {"v": "x" * 50_000}) == "x" * 50_000
    cut = expand("{v}", {"v": list(range(50_000))})
    assert len(cut) < 11_000
    assert cut.endswith("… (50,000 in all)")


def test_a_function_is_its_source():
    assert "def test_a_function_is_its_source" in expand("{f}", {"f": test_a_function_is_its_source})


class Unprintable:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error


@pytest.mark.parametrize("error", [ValueError("no"), RecursionError(), ZeroDivisionError()])
@pytest.mark.parametrize("within", [lambda value: value, lambda value: [value], lambda value: pd.DataFrame([[value]])])
def test_a_value_that_cannot_be_printed_is_one_line_that_names_it(within: Callable[[object], object], error: Exception):
    with pytest.raises(ConfigError, match=rf"\{{it\}} cannot be put into words \({type(error).__name__}\)"):
        expand("{it}", {"it": within(Unprintable(error))})


def test_columns_of_one_name_keep_their_own_values():
    assert expand("{t}", {"t": pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])}).endswith(
        "| 0 | 1 | 2 |\n| 1 | 3 | 4 |"
    )


def test_a_table_without_columns_shows_its_rows():
    assert expand("{t}", {"t": pd.DataFrame(index=["p", "q"])}).endswith("|  |\n| --- |\n| p |\n| q |")


def test_a_very_wide_table_is_cut():
    assert len(expand("{t}", {"t": pd.DataFrame([[1] * 20_000])})) < 11_000


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("{t} Why?", "| 0 | 1 |\n\n Why?"),
        ("{t}\nWhy?", "| 0 | 1 |\n\nWhy?"),
        ("{t}\n\nWhy?", "| 0 | 1 |\n\nWhy?"),
        ("{t}\n\n\nWhy?", "| 0 | 1 |\n\n\nWhy?"),
        ("{t}", "| 0 | 1 |"),
        ("{t}\n", "| 0 | 1 |\n"),
    ],
)
def test_what_follows_a_table_is_no_row_of_it(text: str, end: str):
    assert expand(text, {"t": pd.DataFrame({"a": [1]})}).endswith(f"| --- | --- |\n{end}")


@pytest.mark.parametrize("form", ["stats", "csv"])
def test_lines_that_hang_together_begin_and_end_on_their_own(form: str):
    table = pd.DataFrame({"a": [1, 2]})
    alone = expand(f"{{t!{form}}}", {"t": table})

    assert expand(f"Why {{t!{form}}} so?", {"t": table}) == f"Why \n\n{alone}\n\n so?"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Why does it drop? {df}", ["df"]),
        ("{df}", ["df"]),
        ("({a}, {b}): {a}", ["a", "b"]),
        ("{x} is {df}.", ["df"]),
        ("**{df}**\n\n```python\nf'{other}'\n```", ["df"]),
        # code, data and formulas
        ("```python\nprint(f'{df}')\n```\n", []),
        ("~~~\n{df}\n~~~\nhi", []),
        ("what is `{df}` in ``a {b} c``?", []),
        ('{"a": 1} and {df}', []),
        ("{'a': {df}}", []),
        (r"\frac{a}{b} x^{n} x_{n} $e^{x}$ \sqrt{y}", []),
        ("`${home}` and ${home}", []),
        ('import {useState} from "react"', []),
        ("const {props} = this; {rest} = 1", []),
        ("{{df}}", []),
        ("{ df }", []),
        ("{df.rev} {df[0]} {df!r} {0}", []),
        ("{list} {print}", []),
        ("f{df} {df}()", []),
    ],
)
def test_a_name_that_seems_to_be_meant_and_is_none_is_found(text: str, names: list[str]):
    assert undefined(text, NAMES) == names


@given(st.text(alphabet="{}[]'\".:!,x n0\n$\\ab`~é_-"))
def test_looking_for_names_never_fails(text: str):
    assert all(f"{{{name}}}" in text for name in undefined(text, {}))


@pytest.mark.parametrize(
    ("text", "begins"),
    [("See {t}", "See \n\nDataFrame of"), ("{t}", "DataFrame of"), ("See:\n{t}", "See:\nDataFrame of")],
)
def test_a_table_stands_on_lines_of_its_own(text: str, begins: str):
    assert expand(text, {"t": pd.DataFrame({"a": [1]})}).startswith(begins)


@given(st.text(alphabet="{}[]'\".:!,x n0\n$\\abdf@é_-"))
def test_a_form_that_the_value_does_not_have_keeps_every_byte(text: str):
    names = {"n": 1, "x": "x", "df": pd.DataFrame()}
    fields = ("{n}", "{x}", "{df}", "{n!", "{x!", "{df!", "{n.", "{x.", "{df.", "{n[", "{x[", "{df[")

    assert any(field in text for field in fields) or expand(text, names) == text


def test_a_form_is_chosen_behind_the_name_and_a_wrong_one_is_told():
    notes: list[str] = []
    frame = pd.DataFrame({"secret_column": [1234567]})

    schema = expand("{df!schema}", {"df": frame})
    kept = expand("{df!shcema} {df!r}", {"df": frame}, note=notes.append)

    assert "| secret_column | int64 | 0 |" in schema
    assert "1234567" not in schema
    assert kept == "{df!shcema} {df!r}"
    assert notes == ["{df!shcema} has no form shcema; sent as it stands. Forms: schema, head, stats, csv, repr, type"]
