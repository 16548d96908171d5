"""A magic's line: options first, the rest byte for byte, one clear line for every slip."""

from __future__ import annotations

import pytest

from larik_nb.errors import ConfigError
from larik_nb.notebook.options import OPTIONS, Asked, parse
from larik_nb.notebook.verbs import EXAMPLES, VERBS, check_slip, find, help_text


def test_values_arrive_unchanged_and_the_rest_is_text():
    asked = parse("""--system '{"role": "x"}' -m a/b --effort high $HOME {x} it's "so"  """)

    assert asked == Asked(system='{"role": "x"}', model="a/b", effort="high", text="""$HOME {x} it's "so\"""")


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("", Asked()),
        ("why not?", Asked(text="why not?")),
        ("-p 'two words'", Asked(prompt="two words")),
        ('-p "say \\"hi\\" to C:\\\\x"', Asked(prompt='say "hi" to C:\\x')),
        ("--model=a/b -o r --raw --new q", Asked(model="a/b", out="r", raw=True, new=True, text="q")),
        ("-- -1 is negative", Asked(text="-1 is negative")),
        ("- a list", Asked(text="- a list")),
        ("--replay C:\\data\\r.jsonl", Asked(replay="C:\\data\\r.jsonl")),
        ("--attach a.csv --attach 'my b.png' q", Asked(attach=("a.csv", "my b.png"), text="q")),
        ("--schema S q", Asked(schema="S", format="json", text="q")),
        ("--format table --insert --preview q", Asked(format="table", insert=True, preview=True, text="q")),
        ("what does -m mean", Asked(text="what does -m mean")),
    ],
)
def test_lines_are_read(line: str, asked: Asked):
    assert parse(line) == asked


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--efort high x", 'unknown option "--efort". Closest: --effort'),
        ("--zzz", "Options: --model"),
        ("-m", "--model wants a value. Write -m, --model MODEL"),
        ("--effort hard x", 'unknown effort "hard". One of minimal, low'),
        ("--format tabel x", 'unknown format "tabel". Closest: table. One of markdown'),
        ("--format pdf x", 'unknown format "pdf". One of markdown, code, json'),
        ("--format html --schema S x", "--schema is for JSON, not for --format html"),
        ("--schema a.b x", "cannot be a variable's name"),
        ("-o 1x q", "cannot be a variable's name"),
        ("-o class q", "cannot be a variable's name"),
        ("--record a --replay b q", "exclude each other"),
    ],
)
def test_slips_get_one_line_that_says_what_would_do(line: str, says: str):
    with pytest.raises(ConfigError) as caught:
        parse(line)

    assert says in caught.value.message
    assert "\n" not in caught.value.message


def test_a_verb_is_one_only_when_its_line_is_no_question():
    assert find("status") is not None
    assert find("history second") is not None
    assert find("status of the patient") is None
    assert find("help me write a loop") is None
    assert find("explain") is not None
    assert find("explain this to me") is None
    assert find("fix --cell a1 --insert") is not None
    assert find("fix my code") is None
    assert find("explain -m scripted/demo") is not None
    assert find("fix --model=scripted/demo --insert") is not None


def test_help_names_every_option_and_command():
    text = help_text()

    assert all(f"--{option.name}" in text and option.does in text for option in OPTIONS)
    assert all(f"%larik {name}" in text for name in VERBS)


@pytest.mark.parametrize(("word", "verb"), [("histroy", "history"), ("Status", "status"), ("costs", "cost")])
def test_a_lone_word_that_is_nearly_a_command_is_no_question(word: str, verb: str):
    with pytest.raises(ConfigError) as caught:
        check_slip(word)

    assert caught.value.message == f'no command {word}. Closest: {verb}. To ask it: %larik -p "{word}"'


def test_a_command_with_an_option_it_does_not_take_is_no_question():
    with pytest.raises(ConfigError) as caught:
        check_slip("history --all")

    assert caught.value.message == (
        '%larik history does not take --all. Write: %larik history [SESSION]. To ask it: %larik -p "…"'
    )


def test_the_examples_of_the_help_are_read_as_their_magics_read_them():
    lines = [example.split("  ")[1] for example in EXAMPLES if example.startswith("  %")]

    assert {line.split()[0] for line in lines} == {"%%larik", "%model", "%routing", "%larik"}
    for magic, _, rest in (line.partition(" ") for line in lines):
        if magic == "%%larik":
            assert parse(rest).text == ""
        else:
            assert find(rest if magic == "%larik" else f"{magic[1:]} {rest}") is not None


@pytest.mark.parametrize(
    "line",
    [
        "cost - benefit?",
        "status quo -- and then?",
        "help me with gcc -O2",
        "why -x is positive",
        "hello",
        "why",
        "Hi",
        "histroy of rome",
        "-p histroy",
        "",
        "статус",
    ],
)
def test_other_lines_are_questions(line: str):
    check_slip(line)
