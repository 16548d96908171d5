"""Values, files and schemas that lie, raise, hang or hold secrets: a line says what is wrong, and the next turn works."""

from __future__ import annotations

import asyncio
import gc
import re
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from larik_nb.errors import AnswerError, ConfigError
from larik_nb.notebook import _bounded, redact
from tests.notebook._shell import Cells

ENDINGS = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, StopIteration, RecursionError)


class Ends:
    """A value whose property and repr raise what may end more than themselves."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error

    @property
    def attribute(self) -> None:
        raise self._error

    def __repr__(self) -> str:
        raise self._error


@pytest.mark.parametrize("error", ENDINGS)
def test_no_value_ends_a_cell_or_a_kernel(cells: Cells, error: type[BaseException]) -> None:
    cells.shell.user_ns["value"] = Ends(error)
    with pytest.raises(ConfigError, match=r"\{value\} cannot be put into words"):
        cells.ask("See {value}")
    cells.ask("See {value.attribute}")

    assert cells.sent == "See {value.attribute}"


def _liar(**members: Any) -> Any:
    return type("Liar", (), members)()


def _raises(*_: Any) -> Any:
    raise ValueError


class _Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(name)


class _Shy(metaclass=_Meta):
    pass


LIES: list[dict[str, Any]] = [
    *({"__class__": property(lambda _, kind=kind: kind)} for kind in (dict, str, bytes, list, ModuleType, ValueError)),
    {"__class__": property(_raises)},
    {"__module__": None},
    {"__module__": 5},
]


@pytest.mark.parametrize("number", range(len(LIES)))
def test_a_value_is_what_it_is_and_not_what_it_says(cells: Cells, number: int) -> None:
    cells.shell.user_ns["value"] = _liar(**LIES[number])
    cells.ask("See {value}")

    assert "Liar object" in cells.sent


def test_a_class_that_shows_nothing_is_told_in_one_line(cells: Cells) -> None:
    cells.shell.user_ns["value"] = object.__new__(_Shy)
    with pytest.raises(ConfigError, match="cannot be put into words"):
        cells.ask("See {value}")


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Let no collection run on a thread that is ended: what hypothesis hooks into one would be ended instead."""
    gc.disable()
    yield
    gc.enable()


def _hangs(*_: Any) -> Any:
    while True:
        time.sleep(0.001)


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("field", ["{value.attribute}", "{value[0]}"])
def test_what_hangs_is_given_up_and_leaves_no_thread(cells: Cells, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    monkeypatch.setattr(_bounded, "LIMIT_S", 0.05)
    cells.shell.user_ns["value"] = _liar(attribute=property(_hangs), __getitem__=_hangs)
    with pytest.raises(ConfigError, match="to look up"):
        cells.ask(f"See {field}")

    assert not [thread for thread in threading.enumerate() if thread.name == "larik-describe"]


@pytest.mark.usefixtures("no_collection")
def test_an_interrupt_ends_what_was_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    join, waits = threading.Thread.join, []

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        waits.append(timeout)
        if len(waits) == 1:
            raise KeyboardInterrupt
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _bounded.within(60.0, _hangs)

    assert not [thread for thread in threading.enumerate() if thread.name == "larik-describe"]


# -- files ------------------------------------------------------------------------------------------------------------
def test_files_that_cannot_be_read_are_told_in_one_line(cells: Cells, tmp_path: Path) -> None:
    (tmp_path / "deep.ipynb").write_text('{"cells":' + "[" * 100_000)
    with pytest.raises(ConfigError, match="cannot be read"):
        cells.ask("q", '--attach "a\0b.txt"')
    cells.ask("See @deep.ipynb")

    assert '<document name="deep.ipynb">' in cells.blocks[0].text


@pytest.mark.parametrize("is_bomb", [True, False])
def test_images_that_are_none_or_too_much_are_told_in_one_line(cells: Cells, tmp_path: Path, is_bomb: bool) -> None:
    pytest.importorskip("PIL.Image")
    image = b"\x89PNG\r\n\x1a\n"
    if is_bomb:
        head = b"IHDR" + (100_000).to_bytes(4) * 2 + bytes([8, 0, 0, 0, 0])
        image += (13).to_bytes(4) + head + zlib.crc32(head).to_bytes(4)
    (tmp_path / "image.png").write_bytes(image)
    with pytest.raises(ConfigError, match="the image cannot be read"):
        cells.ask("See @image.png")

    assert not cells.provider.requests


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".netrc", "machine host login me password hunter2pass"),
        (".pgpass", "host:5432:base:me:hunter2pass"),
        (".pypirc", "[index]\nusername = me\npassword = hunter2pass"),
        ("credentials", "[default]\naws_secret_access_key = hunter2pass/abcdEFGH1234567890"),
        ("settings.yaml", "base:\n  password: hunter2pass\n  api_key: hunter2pass9"),
        ("settings.ini", "secret = hunter2pass/x"),
    ],
)
def test_files_that_hold_logins_lose_them(cells: Cells, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    cells.ask(f"See @{name}")

    assert "hunter2pass" not in cells.sent
    assert "[redacted: " in cells.sent


def test_a_link_does_not_hide_what_a_file_is(cells: Cells, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GREETING=words-nobody-shall-read\n")
    (tmp_path / "notes.txt").symlink_to(".env")
    cells.ask("See @notes.txt")

    assert "words-nobody" not in cells.sent


@pytest.mark.parametrize(
    "code", ["token = next_token2", "max_tokens: 1000", "token = os.environ1", "password = ${SECRET_1}"]
)
def test_code_is_not_taken_for_a_setting(code: str) -> None:
    assert redact.hidden(code) == code


# -- formats ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere"},
        {"$schema": []},
        {"enum": {1, 2}},
    ],
)
def test_a_schema_that_cannot_be_used_is_told_in_one_line(
    cells: Cells, monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any]
) -> None:
    def fetched(*_: Any, **__: Any) -> Any:
        raise AssertionError("a schema was fetched")

    monkeypatch.setattr("urllib.request.urlopen", fetched)
    cells.answers('{"x": 1}')
    cells.shell.user_ns["schema"] = schema
    with pytest.raises(ConfigError, match="--schema: schema"):
        cells.ask("q", "--schema schema")


def test_an_answer_too_deep_for_its_schema_is_told_in_one_line(cells: Cells) -> None:
    cells.answers('{"a":' * 900 + "1" + "}" * 900)
    cells.shell.user_ns["schema"] = {"additionalProperties": {"$ref": "#"}}
    with pytest.raises(AnswerError, match="nested too deeply"):
        cells.ask("q", "--schema schema")


def test_numbers_too_large_are_no_numbers(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    cells.answers("[1e999]", "| a |\n| - |\n| 1e999 |")
    with pytest.raises(AnswerError, match="1e999 is no JSON"):
        cells.ask("q", "--format json")
    cells.ask("q", "--format table --out rows")

    assert cells.shell.user_ns["rows"] == [{"a": "1e999"}]


def test_columns_of_one_name_are_all_kept(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    cells.answers("| a | a |\n| - | - |\n| 1 | 2 |")
    cells.ask("q", "--format table --out rows")

    assert cells.shell.user_ns["rows"] == [{"a": 1, "a (2)": 2}]


def test_what_is_no_image_is_not_shown_as_one(cells: Cells) -> None:
    from larik_nb.types import Block

    cells.answers(Block(type="image", media_type="image/png", data="PHNjcmlwdD4="), "<svg>\ud800</svg>")
    with pytest.raises(AnswerError, match="damaged"):
        cells.ask("q", "--format image")
    cells.ask("q", "--format image --out drawing")

    assert cells.shell.user_ns["drawing"] == b"<svg>?</svg>"


SECRET = "sk-ant-api03-Ab1Cd2Ef3Gh4Ij5Kl6Mn7"


def test_a_recording_holds_no_secret_that_the_question_s_data_held(
    cells: Cells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a variable, a file, the user's own words or the instructions: each is taken out, and said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text(f"the key is {SECRET}\n")
    cells.shell.user_ns["settings"] = {"host": "a", "api_key": SECRET}
    cells.ask(f"Why does {SECRET} fail with {{settings}} and @notes.txt?", f'--record r.jsonl --system "Use {SECRET}"')

    request = cells.provider.requests[-1]
    assert SECRET not in repr(request)
    assert request.system == "Use [redacted: API key]"
    assert SECRET not in (tmp_path / "r.jsonl").read_text()
    told = capsys.readouterr().out
    for where in ("your question", "the instructions", "{settings}", "notes.txt"):
        assert re.search(f"⚠ redacted in @?{re.escape(where)}: ", told)
    assert SECRET not in cells.plain


def test_raw_instructions_are_sent_as_they_stand(cells: Cells) -> None:
    cells.ask("hi", f'--raw --system "Use {SECRET}"')

    assert cells.provider.requests[-1].system == f"Use {SECRET}"


def test_a_preview_shows_the_instructions_as_they_would_be_sent(cells: Cells) -> None:
    cells.ask("hi", f'--preview --system "Use {SECRET}"')

    assert "⚠ redacted in the instructions: API key; --raw sends it" in cells.plain
    assert SECRET not in cells.plain
