"""The magics in a real kernel: prompts, lines, completion, values, failures, the front end's status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fake_provider import FakeProvider, expected
from tests.notebook._kernel import Kernel
from tests.notebook.conftest import KEY

BRACES = """interface A { b: string }
{"a": 1} and {v:k for k,v in d.items()} {{x}} and a lone {
\ttabs, "quotes" $HOME `x` %magic !shell \\{x \\n"""


def last_prompt(kernel: Kernel) -> str:
    return str(json.loads(kernel.value("__import__('json').dumps(provider.requests[-1].messages[-1].text)")))


def test_braces_are_text(asked: Kernel):
    """S1: the provider receives the body byte for byte."""
    asked.run("x = 5")

    ran = asked.run(f"%%larik\n{BRACES}")

    assert not ran.error
    assert last_prompt(asked) == BRACES


def test_names_are_replaced_unless_raw(asked: Kernel):
    asked.run("import pandas as pd\ndf = pd.DataFrame({'month': [1, 2]})\nx = 5")

    asked.run("%%larik\n{x} {df} {In} {get_ipython} {quit}")
    assert last_prompt(asked).startswith("5 \n\nDataFrame of 2 rows, 1 column\n\n| column | type |")
    assert last_prompt(asked).endswith("{In} {get_ipython} {quit}")

    asked.run("%%larik --raw\n{x}")
    assert last_prompt(asked) == "{x}"


def test_a_name_that_is_none_is_sent_as_it_stands_and_told(asked: Kernel):
    ran = asked.run("%%larik\nWhy does {no_such} drop?")

    assert ran.plain.startswith("no_such is not defined; sent as it stands\n\nDone.")
    assert last_prompt(asked) == "Why does {no_such} drop?"
    assert asked.run("%%larik\n{no_such} and {none_such}").plain.startswith(
        "no_such, none_such are not defined; sent as they stand"
    )
    for quiet in ("%%larik --raw\n{no_such}", "%%larik\n{In} {get_ipython} {list}"):
        assert "not defined" not in asked.run(quiet).plain


def test_line_arguments_arrive_unchanged(asked: Kernel):
    """S2: IPython expands neither braces nor dollars on our line."""
    asked.run("x = 5")

    ran = asked.run("""%%larik --system '{"role": "x"}' --effort high $HOME {x}\nbody""")

    assert not ran.error
    assert asked.value("provider.requests[-1].system") == '{"role": "x"}'
    assert asked.value("provider.requests[-1].effort") == "high"
    assert last_prompt(asked) == "$HOME 5\n\nbody"


def test_an_unknown_option_is_one_line_and_the_kernel_lives(asked: Kernel):
    ran = asked.run("%%larik --efort high\nbody")

    assert "LarikError: unknown option" in ran.error
    assert "Closest: --effort" in ran.error
    assert ran.error.count("\n") == 1
    assert ran.of("error")[0]["ename"] == "ConfigError"
    assert asked.value("1 + 1") == "2"


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%%larik\n", "nothing to ask"),
        ("%%larik", "nothing to ask"),
        ("%%larik\n   \n\n", "nothing to ask"),
        ("# a comment\n%%larik\nx", "Line magic function `%%larik` not found"),
        ("%larik -p ''", "nothing to ask"),
    ],
)
def test_an_empty_or_displaced_magic_is_said(asked: Kernel, cell: str, says: str):
    """S3: what IPython does not take for ours, it says itself."""
    ran = asked.run(cell)

    assert says in ran.error + ran.stdout
    assert asked.value("1 + 1") == "2"


def test_blank_lines_and_spaces_are_fine(asked: Kernel):
    assert not asked.run("%load_ext larik_nb  ").error
    assert not asked.run("\n\n%%larik\n\n  indented\n").error
    assert last_prompt(asked) == "\n  indented"


def test_the_line_form_answers_and_returns_the_message(asked: Kernel):
    shown = asked.run('%larik -p "text"')
    kept = asked.run("r = %larik more text")

    assert shown.plain.startswith("Done.")
    assert len(shown.saved) == 1
    assert len(kept.saved) == 1
    assert asked.value("(type(r).__name__, r.text, r.model)") == "('Message', 'Done.', 'script')"
    assert last_prompt(asked) == "more text"
    again = asked.run("r")
    assert again.saved[0]["data"]["text/markdown"].startswith("Done.")


def test_out_puts_the_answer_into_a_variable(asked: Kernel):
    asked.run("%%larik -o answer\nhi")

    assert asked.value("(answer.text, answer.stop_reason)") == "('Done.', 'end_turn')"


def test_a_conversation_has_a_memory_and_others_are_apart(asked: Kernel):
    for cell in ("%%larik\na", "%%larik\nb", "%%larik --session s\nc", "%%larik --new\nd"):
        asked.run("magics.session('s').model = provider")
        asked.run(cell)

    counts = asked.value("[len(r.messages) for r in provider.requests]")

    assert counts == "[1, 3, 1, 1]"


def test_the_model_is_switched_and_shown(asked: Kernel):
    assert asked.run("%model scripted/demo").plain == "scripted/script → scripted/demo"
    about = asked.run("%model").plain
    assert about == "scripted/demo · from %model · window unknown · free (scripted)"
    assert asked.run("%larik model").plain == about

    wrong = asked.run("%model claud-sonnet")

    assert 'LarikError: unknown model "claud-sonnet". Closest: ' in wrong.error
    assert asked.run("%model").plain == about


def test_a_model_without_a_key_is_shown_whole_with_what_is_lacking(asked: Kernel):
    """Its name, window and price do not depend on a key."""
    changed = asked.run("%model openai/gpt-6-sol").plain
    about = asked.run("%model").plain
    failed = asked.run("%%larik\nhi").error

    assert changed == "scripted/script → openai/gpt-6-sol · no key: set OPENAI_API_KEY"
    assert about.startswith("openai/gpt-6-sol · from %model · ")
    assert about.endswith(" · no key: set OPENAI_API_KEY")
    assert "unknown" not in about
    assert 'os.environ["OPENAI_API_KEY"] = "…"' in failed
    assert asked.run("%larik history").plain == "nothing was said yet"


def test_a_name_in_no_catalog_is_taken_and_its_nearest_are_shown(asked: Kernel):
    changed = asked.run("%model anthropic/claude-opus-55").plain

    assert "not in the catalog; closest: anthropic/claude-opus-5-5, " in changed
    assert "not in the catalog; closest: anthropic/claude-opus-5-5, " in asked.run("%model").plain
    assert "closest" not in asked.run("%model anthropic/claude-opus-5-5").plain


def test_thinking_that_stays_behind_is_counted(asked: Kernel):
    asked.run(
        "from larik_nb.types import *\n"
        "t = Block(type='thinking', text='hm', signature='s')\n"
        "provider._replies = iter([Message(role='assistant', blocks=(t, text_block('yes')))])"
    )
    ran = asked.run("%%larik\nhi")
    assert "<summary><small>thought for 0 s</small></summary>\n\nhm\n" in ran.saved[0]["data"]["text/markdown"]

    assert asked.run("%model scripted/demo").plain == (
        "scripted/script → scripted/demo; 1 thinking block stays with the old model, and it comes back with it"
    )


def test_verbs_say_what_there_is(asked: Kernel):
    asked.run("%%larik\nfirst question")

    assert asked.run("%larik history").plain == "you: first question\nscripted/script: Done."
    assert "main: 2 messages, 1 turn (all: main)" in asked.run("%larik status").plain
    cost = asked.run("%larik cost")
    assert cost.plain.splitlines()[0].split() == ["model", "turns", "in", "cached", "out", "cost"]
    assert cost.saved[0]["data"]["text/markdown"].startswith("| model | turns |")
    assert "%%larik [options]" in asked.run("%larik help").plain
    assert asked.run("%larik reset").plain == "forgot 2 messages; what they cost stays in the sum"
    assert asked.run("%larik history").plain == "nothing was said yet"
    assert "nothing was asked yet" not in asked.run("%larik cost").plain


def test_help_is_shown_where_somebody_looks_for_it(asked: Kernel):
    """Alone, by option, with or without a body."""
    shown = [
        asked.run(cell).plain for cell in ("%larik help", "%larik", "%larik -h", "%%larik -h", "%%larik --help\nx")
    ]

    assert len(set(shown)) == 1
    assert "-h, --help" in shown[0]
    assert shown[0].splitlines()[-1].startswith("settings: ")
    assert shown[0].endswith("config.json")
    assert asked.value("len(provider.requests)") == "0"
    assert "Ask a model" in str(asked.run("%%larik?").reply["payload"])


def test_a_cell_without_a_body_asks_what_its_line_says(asked: Kernel):
    assert not asked.run('%%larik -p "only this"').error

    assert last_prompt(asked) == "only this"


def test_a_command_misspelt_is_not_sent(asked: Kernel):
    ran = asked.run("%larik histroy")

    assert 'no command histroy. Closest: history. To ask it: %larik -p "histroy"' in ran.error
    assert asked.value("len(provider.requests)") == "0"


@pytest.mark.parametrize("verb", ["status", "history", "reset", "cost"])
def test_a_conversation_nobody_began_is_said_and_not_begun(asked: Kernel, verb: str):
    assert asked.run(f"%larik {verb} sceond").plain == "there is no conversation sceond; there are: main"
    assert asked.value("sorted(magics.sessions)") == "['main']"
    assert "no conversation" not in asked.run(f"%larik {verb} main").plain


def test_a_fresh_conversation_has_no_instructions_of_the_last(asked: Kernel):
    asked.run("%%larik --system 'Be brief.'\na")
    asked.run("%%larik --new\nb")
    asked.run("%%larik --new --system 'Be long.'\nc")

    assert asked.value("[r.system for r in provider.requests]") == "['Be brief.', None, 'Be long.']"


def test_a_wrong_name_says_where_it_came_from(asked: Kernel):
    asked.run("%config LarikMagics.model = 'claud-sonnet'")
    try:
        errors = [asked.run(cell).error for cell in ("%model", "%%larik\nhi", "%larik status")]
        changed = asked.run("%model scripted/demo")
    finally:
        asked.run("%config LarikMagics.model = ''")

    assert all('%config LarikMagics.model: unknown model "claud-sonnet". Closest: ' in error for error in errors)
    assert changed.plain == "scripted/demo"


def test_the_status_names_the_settings_file_and_a_slip_in_it_is_told_once(asked: Kernel, tmp_path: Path):
    own = tmp_path / "own.json"
    own.write_text('{"max_retrys": 1}')
    asked.run(f"magics.session('slip').model = provider; magics.session('slip')._config = {str(own)!r}")

    first, second = (asked.run("%%larik --session slip\nhi").plain for _ in range(2))
    status = asked.run("%larik status slip").plain

    slip = f'max_retrys in {own} is not a setting; did you mean "max_retries"?'
    assert first.startswith(f"⚠ {slip}")
    assert slip not in second
    assert slip in status
    assert f"settings  {own}" in status


def test_an_unknown_price_is_explained_once_for_each_model(asked: Kernel, tmp_path: Path):
    asked.run("provider._usage = __import__('larik_nb').Usage(input=3, output=4)\nprovider.name = 'mystery'")

    first, second = (asked.run("%%larik\nhi").plain for _ in range(2))
    asked.run("provider.model = 'other'")
    third = asked.run("%%larik\nhi").plain

    assert 'cost unknown (no price for mystery/script: set pricing."mystery/script" in ' in first
    assert "session cost unknown" in first
    assert "· cost unknown · " in second
    assert 'set pricing."mystery/other" in ' in third
    table = asked.run("%larik cost").plain.splitlines()
    assert [row.split()[-1] for row in table[:4]] == ["cost", "unknown", "unknown", "unknown"]


def test_a_failure_is_one_red_line_and_debug_has_the_rest_without_the_key(kernel: Kernel, fake: FakeProvider):
    kernel.run(f"import os; os.environ['SOME_API_KEY'] = {KEY!r}")

    ran = kernel.run("%%larik -m fake/fake:e=401\nhi")
    debug = kernel.run("%larik debug").plain

    assert ran.reply["status"] == "error"
    first, hint = ran.error.splitlines()
    assert first.startswith("\x1b[31mLarikError: ")
    assert "fake" in first
    assert "%larik debug" in hint
    assert "Traceback (most recent call last)" in debug
    assert "AuthError" in debug
    assert KEY in str(fake.requests[-1][1])
    assert KEY not in json.dumps([m for _, m in ran.messages], default=str) + debug


def test_a_failure_loses_nothing_of_the_conversation(asked: Kernel):
    asked.run("%%larik\nfirst")
    asked.run("%%larik -m fake/fake:e=500\nsecond")

    assert asked.run("%larik history").plain == "you: first\nscripted/script: Done."


def test_asking_again_what_failed_neither_doubles_it_nor_eats_an_earlier_question(asked: Kernel):
    """The same words, answered, failed twice and answered: each time the history is what was said."""
    asked.run("%%larik\nsame words")
    for _ in range(2):
        assert "LarikError" in asked.run("%%larik -m fake/fake:e=500\nsame words").error
        assert asked.run("%larik history").plain == "you: same words\nscripted/script: Done."

    asked.run("%%larik\nsame words")

    turn = "you: same words\nscripted/script: Done."
    assert asked.run("%larik history").plain == f"{turn}\n{turn}"
    assert asked.value("[m.role for m in provider.requests[-1].messages]") == "['user', 'assistant', 'user']"


def test_a_cut_stream_keeps_the_part_that_came(asked: Kernel):
    ran = asked.run("%%larik -m fake/fake:n=20:cut=3\nhi")

    assert "LarikError" in ran.error
    assert ran.plain.startswith(expected("fake:n=3").rstrip())
    assert "interrupted" in ran.plain
    assert "(interrupted)" in asked.run("%larik history").plain


def test_an_answer_names_its_cost_and_the_sum(asked: Kernel):
    """12 tokens in at $10 and 20 out at $100 a million."""
    line = asked.run("%%larik -m fake/fake:n=20\nhi").plain.splitlines()[-1]

    assert line.startswith("fake/fake:n=20 · 12 in · 20 out · $0.0021 · ")
    assert line.endswith("     session $0.0021")


def test_an_unlisted_model_goes_to_its_own_address_and_its_cost_is_unknown(kernel: Kernel, fake: FakeProvider):
    """S7: exactly one request, under the path that was set."""
    before = len(fake.requests)
    kernel.run(
        "from larik_nb import connect\n"
        f"magics.session('own').model = connect('my-own-model-7b:n=2', base_url={fake.url + '/gate/v1'!r}, api_key='k')"
    )

    ran = kernel.run("%%larik --session own\nhi")

    assert not ran.error
    assert 'cost unknown (no price for openai-compatible/my-own-model-7b:n=2: set pricing."' in ran.plain
    assert [path for path, _, _ in fake.requests[before:]] == ["/gate/v1/chat/completions"]


def test_nothing_set_up_gives_three_ways(kernel: Kernel):
    ran = kernel.run("%%larik --session nobody\nhi")

    lines = ran.error.splitlines()
    assert "No model is set up" in lines[0]
    assert len(lines) == 5
    assert "ANTHROPIC_API_KEY" in lines[1]
    assert "%larik local fetch" in lines[3]


# -- completion -------------------------------------------------------------------------------------------------------
def complete(kernel: Kernel, code: str) -> list[str]:
    reply = kernel.client.complete(code, len(code), reply=True, timeout=30)
    return list(reply["content"]["matches"])


def test_options_models_and_variables_complete(kernel: Kernel):
    kernel.run("revenue_frame = 1")

    assert "--effort" in complete(kernel, "%%larik --")
    assert complete(kernel, "%%larik --eff") == ["--effort"]
    assert complete(kernel, "%%larik --effort hi") == ["high"]
    assert complete(kernel, "%%larik -m scripted/") == ["scripted/demo"]
    assert complete(kernel, "%model scripted/de") == ["scripted/demo"]
    assert any(m.startswith("anthropic/claude-") for m in complete(kernel, "%model anthropic/cl"))
    assert complete(kernel, "%larik sta") == ["status"]
    assert complete(kernel, "%%larik\nwhy {revenue_f") == ["revenue_frame"]
    assert complete(kernel, "%%larik -o revenue_f") == ["revenue_frame"]


def test_prose_completes_to_nothing_and_code_as_ever(kernel: Kernel):
    assert complete(kernel, "%%larik\nplease pri") == []
    assert complete(kernel, "%%larik\nwhat ") == []
    assert "print" in complete(kernel, "pri")
    assert "revenue_frame" in complete(kernel, "x = {revenue_f")


# -- the front end's status -------------------------------------------------------------------------------------------
def test_the_front_end_hears_the_model_the_cost_and_when_a_turn_runs(asked: Kernel):
    asked.run("%model fake/fake:n=20")

    said = [content["data"] for content in asked.run("%%larik\nhi").of("comm_open", "comm_msg")]

    assert [state["running"] for state in said] == [True, False]
    assert said[-1] == {
        "type": "state",
        "version": 2,
        "model": "fake/fake:n=20",
        "session_usd": pytest.approx(0.00212),
        "at_least": False,
        "budget_usd": None,
        "level": "ok",
        "running": False,
    }


@pytest.mark.parametrize("watched", [True, False], ids=["awaited", "blocking"])
def test_the_meter_shows_the_number_that_the_cell_has_in_the_page(asked: Kernel, watched: bool):
    asked.run("1 + 1")

    ran = asked.run("%%larik\nhello", watched=watched)

    asked.run(
        "from larik_nb.notebook import meter\ntold = meter.Report.of(magics.session(None), lambda: magics.route(magics.session(None)))"
    )
    shown = asked.value("meter.view(told, running=False)['steps'][-1]['cell']")
    assert shown == f"[{ran.reply['execution_count']}]"
