"""What a question sends: text, values, files and pictures, redacted, or refused with the reason."""

from __future__ import annotations

import base64
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from larik_nb import Session
from larik_nb.agent.session import Route
from larik_nb.errors import ConfigError
from larik_nb.notebook import attach, content
from larik_nb.notebook.options import Asked
from tests.notebook._shell import Cells
from tests.notebook.test_redact import KEYS

PDF = b"%PDF-1.4\n1 0 obj <</Type /Page>> endobj\n%%EOF"


@pytest.fixture
def png() -> bytes:
    from io import BytesIO

    out = BytesIO()
    pytest.importorskip("PIL.Image").new("RGB", (40, 30)).save(out, format="PNG")
    return out.getvalue()


def build(cells: Cells, text: str, spec: str | None = None, **options: Any) -> content.Content:
    session = Session(spec) if spec else cells.magics.session(None)
    route: Route = session.route()
    return content.build(cells.shell, text, Asked(**options), route=route, catalog=session.config.catalog)


# -- files --------------------------------------------------------------------------------------------------------
def test_a_file_of_the_folder_goes_ahead_of_the_question(cells: Cells):
    Path("data").mkdir()
    Path("data/a.csv").write_text("x,y\n1,2\n")
    Path("my notes.txt").write_text("hello")

    sent = build(cells, 'What is in @data/a.csv and @"my notes.txt"? See @data/a.csv.')

    assert sent.parts == (
        '<document name="data/a.csv">\nx,y\n1,2\n\n</document>',
        '<document name="my notes.txt">\nhello\n</document>',
        'What is in @data/a.csv and @"my notes.txt"? See @data/a.csv.',
    )
    assert sent.notes == ()


@pytest.mark.parametrize(
    "text",
    ["mail ada@a.csv now", "@property\ndef f(): ...", "thanks @ada and @bob_2!", "a @ b", "@", "@@a.csv", "x = y @a.csv_",
     "`@a.csv`", "```python\n@a.csv\n```", "git@a.csv:x", "@/", "user@a.csv", "@~/a.csv", "@\u2028a.csv", "@" + "a" * 5_000],
)  # fmt: skip
def test_other_words_stay_text_and_bring_no_file(cells: Cells, text: str):
    Path("a.csv").write_text("secret")

    assert build(cells, text).parts == (text,)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="@{}a.!/\\~\"'` \n:x[]é\u2028$é%"))
def test_text_is_untouched_where_nothing_is_named(cells: Cells, text: str):
    assert build(cells, text).parts == (text,)


def test_what_looks_like_a_file_and_is_none_is_said(cells: Cells):
    Path("folder").mkdir()

    assert build(cells, "@gone.csv").notes == ("@gone.csv is no file here; sent as it stands",)
    assert build(cells, "@folder").notes == ("@folder is a folder and was not sent; name a file in it",)


@pytest.mark.parametrize("name", ["../outside.txt", "link.txt", "linked/outside.txt", "{outside}"])
def test_a_file_outside_of_the_folder_is_not_sent_by_a_word(cells: Cells, name: str, tmp_path: Path):
    """Neither by going up, nor through a link, nor by its full path."""
    outside = tmp_path.parent / "outside.txt"
    outside.write_text("private")
    Path("link.txt").symlink_to(outside)
    Path("linked").symlink_to(tmp_path.parent)
    name = name.format(outside=outside)

    sent = build(cells, f"see @{name}")

    assert len(sent.parts) == 1
    assert sent.notes == (f"@{name} lies outside of the notebook's folder and was not sent; --attach {name} sends it",)
    assert "private" in str(build(cells, "see", attach=(str(outside),)).parts[0])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: None, "f cannot be read: No such file"),
        (lambda: Path("f").mkdir(), "f cannot be read: Is a directory"),
        (lambda: os.mkfifo("f"), "f is no file"),
        (lambda: Path("f").write_bytes(b"\0\1\2" * 99), "f is neither text nor an image nor a PDF. Load it"),
    ],
)
def test_what_cannot_be_attached_says_why(cells: Cells, make: Any, says: str):
    make()

    with pytest.raises(ConfigError) as caught:
        build(cells, "q", attach=("f",))

    assert says in caught.value.message


def test_a_long_table_is_cut_and_says_so(cells: Cells):
    Path("t.csv").write_text("a,b\n" + "1,2\n" * 5_000)
    Path("long.txt").write_text("word " * 50_000)

    sent = build(cells, "q", attach=("t.csv", "long.txt"))

    assert len(str(sent.parts[0])) < 1_000
    assert len(str(sent.parts[1])) < 101_000
    assert sent.notes[0] == "t.csv was cut: the first 200 of 5,001 lines are sent"


def test_a_notebook_goes_as_its_cells(cells: Cells):
    nb = {
        "cells": [
            {"cell_type": "markdown", "source": ["# T"]},
            {"cell_type": "code", "source": "x = 1", "outputs": ["big"]},
        ]
    }
    Path("n.ipynb").write_text(json.dumps(nb))

    assert "# %% [markdown]\n# T\n\n# %%\nx = 1" in str(build(cells, "@n.ipynb").parts[0])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_text_is_read_in_the_usual_encodings(cells: Cells, encoding: str):
    Path("t.txt").write_bytes("naïve café".encode(encoding))

    assert "naïve café" in str(build(cells, "@t.txt").parts[0])


# -- what models take ---------------------------------------------------------------------------------------------
def test_images_and_pdfs_go_as_blocks(cells: Cells, png: bytes):
    Path("p.png").write_bytes(png)
    Path("d.pdf").write_bytes(PDF)

    image, document, text = build(cells, "see", attach=("p.png", "d.pdf")).parts

    assert (image.type, image.media_type, base64.b64decode(image.data)) == ("image", "image/png", png)
    assert (document.type, document.media_type, document.name) == ("document", "application/pdf", "d.pdf")
    assert text == "see"


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Routes on every wire, with keys, and a model that is known to see nothing."""
    providers = {
        "claude": {"type": "anthropic", "base_url": "http://127.0.0.1:9", "api_key": "k" * 12},
        "compatible": {"type": "openai-compatible", "base_url": "http://127.0.0.1:9", "api_key": "k" * 12},
        "here": {"type": "ollama", "base_url": "http://127.0.0.1:9"},
        "google": {"type": "gemini", "base_url": "http://127.0.0.1:9", "api_key": "k" * 12},
    }
    rows = {"claude/blind": {"vision": False, "pdf": False}}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"providers": providers, "models": rows}))
    monkeypatch.setenv("LARIK_CONFIG", str(path))


@pytest.mark.parametrize(
    ("spec", "name", "says"),
    [
        ("claude/any", "p.png", ""),
        ("claude/any", "d.pdf", ""),
        ("claude/blind", "p.png", "p.png was not sent: claude/blind takes no images"),
        ("claude/blind", "d.pdf", "d.pdf was not sent: claude/blind takes no PDFs, and its text cannot be read"),
        ("compatible/any", "p.png", ""),
        ("compatible/any", "d.pdf", "takes no PDFs"),
        ("here/any", "d.pdf", "takes no PDFs"),
        ("google/any", "d.pdf", ""),
        ("google/any", "s.mp3", ""),
        ("claude/any", "s.mp3", "s.mp3 was not sent: claude/any takes no audio/mpeg files"),
    ],
)
def test_what_the_model_does_not_take_is_refused_with_the_reason(
    cells: Cells, models: None, png: bytes, spec: str, name: str, says: str
):
    Path("p.png").write_bytes(png)
    Path("d.pdf").write_bytes(PDF)
    Path("s.mp3").write_bytes(b"ID3\0\0" * 40)

    if not says:
        assert len(build(cells, "q", spec, attach=(name,)).parts) == 2
        return
    with pytest.raises(ConfigError) as caught:
        build(cells, "q", spec, attach=(name,))
    assert says in caught.value.message


def test_a_figure_is_refused_by_a_model_that_sees_nothing(cells: Cells, models: None, png: bytes):
    cells.shell.user_ns["pic"] = png

    with pytest.raises(ConfigError, match=r"\{pic\} was not sent: claude/blind takes no images"):
        build(cells, "see {pic}", "claude/blind")


# -- values -------------------------------------------------------------------------------------------------------
def test_a_picture_stands_ahead_and_is_named_in_its_place(cells: Cells, png: bytes):
    cells.shell.user_ns["pic"] = png
    Path("p.png").write_bytes(png)

    sent = build(cells, "compare @p.png with {pic}")

    assert [getattr(part, "type", part) for part in sent.parts] == [
        "image",
        "image",
        "compare @p.png with [image 2: pic, 40×30 px]",
    ]
    assert sent.names == ("p.png", "{pic}", "question")


def test_results_are_named_by_number(cells: Cells, png: bytes):
    cells.run("[1, 2, 3]")
    number = cells.shell.execution_count - 1
    bundle = type("Shown", (), {"bundle": {"image/png": base64.b64encode(png).decode()}})()
    cells.shell.history_manager.outputs[99] = [bundle]

    assert build(cells, f"{{Out[{number}]}} {{Out[{number}][1]}}").parts == ("[1, 2, 3] 2",)
    assert build(cells, "{Out[77]} {Out['x']}").parts == ("{Out[77]} {Out['x']}",)
    assert build(cells, "{Out[99]!image} {Out[98]!image}").parts[-1] == "[image 1: Out[99], 40×30 px] {Out[98]!image}"


def test_raw_sends_the_text_alone_and_still_redacts_files(cells: Cells):
    Path("a.txt").write_text(f"x {KEYS[0]}")
    cells.shell.user_ns["x"] = 5

    sent = build(cells, f"{{x}} @a.txt {KEYS[1]}", raw=True)
    attached = build(cells, "q", raw=True, attach=("a.txt",))

    assert sent.parts == (f"{{x}} @a.txt {KEYS[1]}",)
    assert KEYS[0] not in str(attached.parts)
    assert attached.notes == ("⚠ redacted in a.txt: API key",)


# -- secrets ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("key", KEYS)
def test_a_planted_key_reaches_neither_parts_nor_notes_nor_preview(cells: Cells, key: str):
    Path("f.txt").write_text(f"a\nb {key}\n")
    cells.shell.user_ns.update(v=[key], t=f"<{key}>", d={"k": {"n": key}})

    text = f"{{v}} {{t}} {{d!repr}} @f.txt {key}"
    sent = build(cells, text)
    cells.ask(text, "--preview")
    cells.ask(text)

    shown = json.dumps(cells.published) + json.dumps([b.to_json() for b in cells.blocks])
    for where in (str(sent.parts), str(sent.notes), shown):
        assert key not in where
        assert key[4:20] not in where
    assert "⚠ redacted in your question: " in str(sent.notes)
    assert any("redacted in f.txt" in note and "line 2" in note for note in sent.notes)


def test_a_settings_file_goes_with_its_names_only(cells: Cells):
    Path(".env").write_text("A=plain\nURL=http://x\n")

    assert "plain" not in str(build(cells, "@.env").parts[0])
    assert "URL=[redacted: setting]" in str(build(cells, "@.env").parts[0])


def test_a_key_in_a_name_of_a_failing_value_is_not_in_the_error(cells: Cells):
    class Broken:
        def __repr__(self) -> str:
            raise ValueError(KEYS[0])

    cells.shell.user_ns["b"] = Broken()

    with pytest.raises(ConfigError) as caught:
        build(cells, "{b}")
    assert caught.value.message == ("{b} cannot be put into words (ValueError). Turn it into text first, or use --raw")


# -- preview ------------------------------------------------------------------------------------------------------
def test_a_preview_shows_all_and_sends_nothing(cells: Cells, png: bytes):
    Path("p.png").write_bytes(png)
    cells.answers("first answer")
    cells.ask("first question")
    before = list(cells.magics.session(None).history)

    cells.ask("second {missing} ```x```", "--preview --system 'Be brief.' --attach p.png --format json")

    assert len(cells.provider.requests) == 1
    assert cells.magics.session(None).history == before
    assert cells.magics.session(None).system is None
    lines = cells.published[-1]["text/plain"].splitlines()
    assert lines[0].startswith("preview, nothing was sent: scripted/demo-model · ~")
    assert any(line.split() == ["system", "text,", "9", "characters", "~3"] for line in lines)
    assert any(line.startswith("history   2 messages, from “first question”") for line in lines)
    assert any(line.startswith("p.png     image 40×30 px, image/png, 1 kB") for line in lines)
    assert "missing is not defined; sent as it stands" in lines
    assert "second {missing} ```x```" in lines
    assert "Answer with one JSON value in a fenced json block and nothing else." in lines
    assert "````text\nsecond {missing} ```x```\n````" in cells.published[-1]["text/markdown"]


def test_a_preview_with_new_leaves_the_conversation_and_its_history_out(cells: Cells):
    cells.answers("a")
    cells.ask("q")

    cells.ask("fresh", "--new --preview")

    assert len(cells.magics.session(None).history) == 2
    assert "history" not in cells.published[-1]["text/plain"]


def test_a_preview_names_the_price(cells: Cells, models: None):
    cells.magics.session(None).model = "claude/any"
    cells.ask("q", "--preview")
    unknown = cells.published[-1]["text/plain"]
    data = json.loads(Path("config.json").read_text())
    Path("config.json").write_text(json.dumps({**data, "pricing": {"claude/any": {"input": 10, "output": 100}}}))
    cells.ask("x" * 4_000, "--preview")

    assert "cost unknown" in unknown.splitlines()[0]
    assert cells.published[-1]["text/plain"].splitlines()[0] == (
        "preview, nothing was sent: claude/any · ~1k in · ~$0.01, and ~$0.10 for each 1k of answer"
    )


# -- completion ---------------------------------------------------------------------------------------------------
def test_files_forms_and_formats_complete(cells: Cells):
    from larik_nb.notebook.complete import Completer

    Path("data").mkdir()
    Path("data/a.csv").touch()
    Path(".hidden").touch()
    completer = Completer(names=lambda: {"df": [1]}, verbs=(), sessions=list)

    def words(line: str, cell: str = "%%larik\n") -> list[str]:
        found = completer.matches(cell, 1, line)
        return [word for word in found[1] if word.startswith(found[0])] if found else []

    assert words("look at @") == ["data/"]
    assert words("look at @data/") == ["data/a.csv"]
    assert words("look at @.h") == [".hidden"]
    assert words("mail ada@") == []
    assert words("{df!") == ["schema", "repr", "type"]
    assert words("{gone!") == []
    assert words("%%larik --attach da") == ["data/"]
    assert words("%%larik --format t") == ["table", "text"]
    assert words("%%larik --schema ") == ["df"]
    assert words("@", cell="x = 1") == []


def test_mentions_are_found_once_and_less_their_full_stop(tmp_path: Path):
    (tmp_path / "a.b").touch()

    assert attach.mentioned("@a.b. and (@a.b), @a.b", tmp_path) == (["a.b"], [])


# -- PDFs as text -------------------------------------------------------------------------------------------------
def pdf(*pages: str) -> bytes:
    """Return a PDF with a line of text on each page; an empty one draws a line instead, as a scan draws a picture."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    for said in pages:
        drawn = f"BT /F1 12 Tf 72 700 Td ({said}) Tj ET" if said else "0 0 m 9 9 l S"
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
        contents = f"/Contents {len(objects)} 0 R"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>{contents}>>")
    kids = " ".join(f"{5 + 2 * at} 0 R" for at in range(len(pages)))
    objects[1] = f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>"
    body, places = b"%PDF-1.4\n", []
    for number, written in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{written}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R>>\nstartxref\n{len(body)}\n%%EOF"
    )
    return body + end.encode()


def test_a_pdf_goes_as_its_text_to_a_model_that_takes_none(cells: Cells, models: None):
    Path("d.pdf").write_bytes(pdf("Net sales rose", "", "API_TOKEN=made-up-0123456789abcdef"))

    sent = build(cells, "q", "compatible/any", attach=("d.pdf",))

    assert sent.parts[0] == (
        '<document name="d.pdf">\n[page 1]\nNet sales rose\n\n[page 3]\nAPI_TOKEN=[redacted: setting]\n</document>'
    )
    assert sent.notes[:2] == (
        "d.pdf goes as its text, 3 pages without their pictures: compatible/any takes no PDFs",
        "1 of the 3 pages of d.pdf that were read hold no text",
    )
    as_it_is = build(cells, "q", "claude/any", attach=("d.pdf",)).parts[0]
    assert not isinstance(as_it_is, str)
    assert as_it_is.media_type == "application/pdf"


def test_of_a_long_pdf_no_more_pages_are_read_than_are_sent(cells: Cells, models: None):
    Path("d.pdf").write_bytes(pdf(*["word " * 10_000] * 4))

    sent = build(cells, "q", "compatible/any", attach=("d.pdf",))

    assert len(str(sent.parts[0])) < 101_000
    assert sent.notes[0].startswith("d.pdf goes as its text, the first 2 of 4 pages without their pictures: ")
    assert sent.notes[1].startswith("d.pdf was cut: the first")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (pdf("", ""), "d.pdf was not sent: here/any takes no PDFs, and its pages hold no text: they are pictures. Ask"),
        (PDF, "d.pdf was not sent: here/any takes no PDFs, and its text cannot be read ("),
        (b"%PDF-" + bytes(range(256)) * 9, "and its text cannot be read ("),
    ],
    ids=["scanned", "broken", "noise"],
)
def test_a_pdf_without_text_is_refused_with_the_reason(cells: Cells, models: None, data: bytes, says: str):
    Path("d.pdf").write_bytes(data)

    with pytest.raises(ConfigError) as caught:
        build(cells, "q", "here/any", attach=("d.pdf",))

    assert says in caught.value.message


def test_a_pdf_with_a_password_is_refused_with_the_reason(cells: Cells, models: None):
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("secret")))
    writer.encrypt("open", algorithm="RC4-128")
    with Path("d.pdf").open("wb") as file:
        writer.write(file)

    with pytest.raises(ConfigError) as caught:
        build(cells, "q", "here/any", attach=("d.pdf",))

    assert "its text has a password. Save it without one" in caught.value.message


def test_without_the_extra_the_refusal_names_it(cells: Cells, models: None, monkeypatch: pytest.MonkeyPatch):
    Path("d.pdf").write_bytes(pdf("Net sales rose"))
    monkeypatch.setitem(sys.modules, "pypdf", None)

    with pytest.raises(ConfigError) as caught:
        build(cells, "q", "here/any", attach=("d.pdf",))

    assert (
        'takes no PDFs, and reading its text needs an extra. %pip install "larik-nb[documents]"' in caught.value.message
    )
