"""Answers of a wanted kind: read, checked, shown, kept; a bad one stays reachable and sets nothing."""

from __future__ import annotations

import base64
import dataclasses
import html
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb.errors import AnswerError, ConfigError
from larik_nb.notebook import formats, insert
from larik_nb.types import Block, assistant, text_block
from tests.notebook._shell import Cells

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def parsed(kind: str, text: str, names: dict[str, Any] | None = None, **options: Any) -> Any:
    return formats.parsed(kind, assistant(text), names or {}, **options)


# -- json ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    ['{"n": 1}', '```json\n{"n": 1}\n```', 'Here:\n\n```\n{"n": 1}\n```\nDone.', 'It is {"n": 1}.', '~~~json\n{"n": 1}\n~~~',
     '```json\n{"n": 1}'],
)  # fmt: skip
def test_json_is_found_where_models_put_it(text: str):
    assert parsed("json", text) == {"n": 1}


@pytest.mark.parametrize(
    "text", ["no", "", '{"n": 1', "```json\n{'n': 1}\n```", '{"n": NaN}', "[" * 100_000, "```json\n```", "9" * 5_000]
)
def test_what_is_no_json_is_an_error_that_keeps_the_answer(text: str):
    with pytest.raises(AnswerError, match="the answer holds no valid JSON") as caught:
        parsed("json", text)

    assert caught.value.raw == text
    assert "error.raw has the answer" in caught.value.message


@dataclasses.dataclass
class Row:
    n: int


def test_json_is_checked_by_a_schema_a_model_or_a_dataclass():
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", n=(int, ...))
    names = {"S": SCHEMA, "M": model, "D": Row}

    assert parsed("json", '{"n": 1}', names, schema="S") == {"n": 1}
    assert parsed("json", '{"n": 1}', names, schema="M") == model(n=1)
    assert parsed("json", '{"n": 1}', names, schema="D") == Row(1)
    for name, says in (("S", r"does not fit S: at \$\.n"), ("M", "does not fit M"), ("D", "does not fit D")):
        with pytest.raises(AnswerError, match=says) as caught:
            parsed("json", '{"n": "many"}', names, schema=name)
        assert caught.value.raw == '{"n": "many"}'


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gone", "gone is not defined. Run the cell"),
        ("number", "number is no JSON schema (a dict), pydantic model or dataclass but int"),
    ],
)
def test_a_schema_that_is_none_is_told_before_anything_is_sent(cells: Cells, name: str, says: str):
    cells.shell.user_ns["number"] = 1

    with pytest.raises(ConfigError) as caught:
        cells.ask("q", f"--schema {name}")
    assert says in caught.value.message
    assert cells.provider.requests == []


def test_a_schema_goes_with_the_question_and_a_bad_one_is_told(cells: Cells):
    cells.shell.user_ns.update(S=SCHEMA, Bad={"type": "nonsense"})
    cells.answers('{"n": 1}', "{}")

    cells.ask("q", "--schema S -o v")
    assert '"required": ["n"]' in cells.sent
    assert cells.shell.user_ns["v"] == {"n": 1}
    with pytest.raises(ConfigError, match="Bad is no valid JSON schema"):
        cells.ask("q", "--schema Bad")


# -- tables -------------------------------------------------------------------------------------------------------
TABLE = "Here it is:\n\n| name | n | price |\n|:---|---:|:-:|\n| a\\|b | 1,234 | 0.5 |\n| c | | 2 |\n\nDone | so."


def test_a_table_is_rows_with_numbers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "pandas", raising=False)

    assert parsed("table", TABLE) == [
        {"name": "a|b", "n": 1234, "price": 0.5},
        {"name": "c", "n": None, "price": 2.0},
    ]


def test_a_table_is_a_frame_where_pandas_is_loaded():
    pytest.importorskip("pandas")

    assert parsed("table", TABLE).shape == (2, 3)


@pytest.mark.parametrize("text", ["", "no table", "| a |", "a\n---\n", "|---|", "--|--"])
def test_what_is_no_table_is_an_error(text: str):
    with pytest.raises(AnswerError, match="the answer holds no table"):
        parsed("table", text)


@given(st.text(alphabet="|-: a1\n\\`~"))
def test_no_answer_makes_reading_fail_otherwise(text: str):
    for kind in ("json", "table", "code", "html", "image", "text", "markdown"):
        with suppress(AnswerError):
            parsed(kind, text)


@pytest.mark.parametrize("unit", ["```x\n", "~~~~\n", "|-", "- ", "|", "[", "{", "`", "<svg", "data:image/png;base64,"])
def test_no_answer_takes_long_to_read(unit: str):
    text = unit * (100_000 // len(unit))
    started = time.process_time()

    for kind in ("json", "table", "code", "html", "image"):
        with suppress(AnswerError):
            parsed(kind, text)

    assert time.process_time() - started < 20  # a tenth of a second is usual; squared it would be minutes


# -- code ---------------------------------------------------------------------------------------------------------
def test_code_is_taken_out_of_its_fences():
    text = "Look:\n```python\nx = '```'\n```\nand\n````md\n```\ninner\n```\n````\n```python\ncut off"

    assert parsed("code", text) == "x = '```'\n\n```\ninner\n```\n\ncut off"
    with pytest.raises(AnswerError, match="no code block"):
        parsed("code", "only words")


def test_cells_of_an_answer_run_under_their_own_magic():
    text = "```python\na\n```\n```bash\nls\n```\n```text\nout\n```\n```\nb\n```\n```json\n{}\n```"

    assert insert.code_blocks(text) == ["a", "%%bash\nls", "b"]


# -- html and images ----------------------------------------------------------------------------------------------
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=https://e.example/x onerror=alert(1)>",
    "<iframe src=//e.example></iframe>",
    '"></iframe><script>alert(1)</script>',
    "&quot;><script>alert(1)</script>",
    "<base href=//e.example><meta http-equiv=refresh content='0;url=//e.example'>",
    "<link rel=dns-prefetch href=//e.example>",
    "<form action=//e.example><input></form>",
    "<a\nhref='//e.example' target=_self>x</a><svg><a xlink:href='//e.example'>y</a></svg>",
]


@pytest.mark.parametrize("page", HOSTILE)
def test_hostile_html_stays_in_a_frame_that_can_do_nothing(page: str):
    shown = formats.frame(page)

    match = re.fullmatch(r'<iframe sandbox="" [^<>]*srcdoc="([^"<>]*)"></iframe>', shown)
    assert match is not None
    inner = html.unescape(match[1])
    assert inner.startswith('<meta http-equiv="Content-Security-Policy" content="default-src \'none\';')
    body = inner.partition('<base target="_blank">')[2]
    assert not re.search(
        r"<(script|iframe|base|meta|link|form)|\bhref\s*=\s*['\"]?/", body.replace("data-href", ""), re.I
    )


def test_a_fragment_keeps_its_inner_references():
    assert "href=&quot;#a&quot;" in formats.frame('<svg><use href="#a"/></svg>')


def test_html_is_shown_in_its_frame_and_kept_as_text(cells: Cells):
    cells.answers("Look:\n```html\n<b>hi</b>\n```")

    cells.ask("q", "--format html -o page")

    assert cells.shell.user_ns["page"] == "<b>hi</b>"
    assert cells.published[-1]["text/html"] == formats.frame("<b>hi</b>")


def test_an_image_is_bytes_wherever_the_answer_has_it():
    data = base64.b64encode(PNG).decode()
    block = Block(type="image", media_type="image/png", data=data)

    assert formats.parsed("image", assistant(text_block("x"), block), {}) == PNG
    assert parsed("image", f"![x](data:image/png;base64,{data})") == PNG
    assert parsed("image", "```svg\n<svg></svg>\n```") == b"<svg></svg>"
    with pytest.raises(AnswerError, match=r"holds no image\. Ask a model that draws"):
        parsed("image", "I cannot")


# -- in a cell ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "answer", "value"),
    [
        ("--format json", "[1]", [1]),
        ("--format code", "```python\nx\n```", "x"),
        ("--format text", "a *b*", "a *b*"),
        ("--format markdown", "a *b*", "a *b*"),
    ],
)
def test_the_variable_holds_the_value(
    cells: Cells, capsys: pytest.CaptureFixture[str], options: str, answer: str, value: Any
):
    cells.answers(answer)

    cells.ask("q", f"{options} -o v")

    assert cells.shell.user_ns["v"] == value
    assert answer in capsys.readouterr().out


def test_a_bad_answer_is_shown_unsets_the_variable_and_stays_in_the_conversation(
    cells: Cells, capsys: pytest.CaptureFixture[str]
):
    cells.shell.user_ns["v"] = "of the last run"
    cells.answers("I would rather not.")

    with pytest.raises(AnswerError) as caught:
        cells.ask("q", "--format json -o v")

    assert "v" not in cells.shell.user_ns
    assert caught.value.raw == "I would rather not."
    assert "I would rather not." in capsys.readouterr().out
    assert cells.magics.session(None).history[-1].text == "I would rather not."


def payloads(cells: Cells) -> list[Any]:
    written: list[Any] = []
    cells.shell.set_next_input = lambda text, replace=False: written.append((text, replace))
    return written


def test_without_a_page_the_code_is_left_for_the_next_cell(cells: Cells):
    written = payloads(cells)
    cells.answers("Do:\n```python\na\n```\nthen\n```python\nb\n```", "no code")

    cells.ask("q", "--insert")
    cells.ask("q", "--insert")

    assert written == [("a\n\nb", False)]
    assert "the answer holds no code to insert" in cells.plain


@pytest.fixture
def page(cells: Cells) -> Callable[[], list[dict[str, Any]]]:
    """A page that can insert and replace; returns what it was told."""
    told: list[dict[str, Any]] = []
    status = cells.magics.status
    status._comm = type("Comm", (), {"send": lambda _, data: told.append(data), "close": lambda _: None})()
    status.front.heard({"type": "hello", "abilities": ["insert", "replace"]})
    return lambda: [data for data in told if data["type"] != "state"]


def test_with_a_page_each_block_is_a_cell(cells: Cells, page: Callable[[], list[dict[str, Any]]]):
    written = payloads(cells)
    cells.answers("Do:\n```python\na\n```\nthen\n```python\nb\n```")

    cells.ask("q", "--insert")

    assert [cell["source"] for cell in page()[0]["cells"]] == ["a", "b"]
    assert written == []
