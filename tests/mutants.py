"""Break one rule at a time and see that a test notices.

    python tests/mutants.py [WORD]

Each mutant is a copy of the package with one piece of source replaced; the tests named beside it must fail on it.
Prints each that got away, and `caught N of N` at the end. With a word only the mutants whose name holds it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
WORKERS = 2

REPLAY, WIRE = "larik_nb/providers/_replay.py", "larik_nb/providers/_wire.py"
VERDICT, RULES, ANSWER = "larik_nb/_error_verdict.py", "larik_nb/_error_rules.py", "larik_nb/_error_answer.py"
ONE_BY_ONE, OVER_HTTP = "tests/providers/test_replay.py", "tests/providers/test_wire_provider.py"
ERRORS, TRANSPORTS = "tests/test_errors.py", "tests/test_error_transports.py"


class Mutant(NamedTuple):
    """A rule that is broken, how, and the test that must notice."""

    name: str
    file: str
    source: str
    broken: str
    test: str


MUTANTS = (
    # -- what goes to whom
    Mutant(
        "another model's thinking goes out",
        REPLAY,
        "self.reasoning and block.provider == self.provider and self.made(message)",
        "self.reasoning and block.provider == self.provider",
        f"{ONE_BY_ONE}::test_thinking_goes_back_by_model_and_route",
    ),
    Mutant(
        "another route's thinking goes out",
        REPLAY,
        "self.reasoning and block.provider == self.provider and self.made(message)",
        "self.reasoning and self.made(message)",
        f"{ONE_BY_ONE}::test_thinking_goes_back_by_model_and_route",
    ),
    Mutant(
        "an alias is a stranger",
        REPLAY,
        "self.model in (message.model, message.requested_model)",
        "self.model == message.model",
        f"{ONE_BY_ONE}::test_thinking_goes_back_by_model_and_route",
    ),
    Mutant(
        "a foreign signature stays on",
        REPLAY,
        "return block if own or not (block.signature or block.raw) else replace(block, signature=None, raw=None)",
        "return block",
        f"{ONE_BY_ONE}::test_what_only_another_can_read_is_taken_off",
    ),
    Mutant(
        "a foreign call stays unsigned",
        REPLAY,
        "if not own and target.placeholder:",
        "if own and target.placeholder:",
        f"{ONE_BY_ONE}::test_a_foreign_call_gets_the_placeholder",
    ),
    Mutant(
        "a call stays without a result",
        REPLAY,
        '    _add(out, _Said(Message(role="user"), _results(calls, ())))\n',
        "",
        f"{ONE_BY_ONE}::test_calls_and_results_are_complete",
    ),
    Mutant(
        "a result stays without its call",
        REPLAY,
        'return (*first, *(piece for piece in pieces if piece.block.type != "tool_result"))',
        "return (*first, *pieces)",
        f"{ONE_BY_ONE}::test_calls_and_results_are_complete",
    ),
    Mutant(
        "a blank text goes out",
        REPLAY,
        'case "text" if (block.text or "").strip() or (own and block.signature):',
        'case "text":',
        f"{ONE_BY_ONE}::test_nothing_empty_goes_out_and_roles_alternate",
    ),
    Mutant(
        "two turns of one role in a row",
        REPLAY,
        "if turns and turns[-1].message.role == turn.message.role:",
        "if not turns:",
        f"{ONE_BY_ONE}::test_nothing_empty_goes_out_and_roles_alternate",
    ),
    Mutant(
        "ids keep their own alphabet",
        REPLAY,
        "given and (piece.keeps_id or self._fits.fullmatch(given))",
        "given",
        f"{ONE_BY_ONE}::test_ids_fit_agree_and_differ",
    ),
    Mutant(
        "an id comes twice",
        REPLAY,
        "while id_ in self._taken:",
        "while not id_:",
        f"{ONE_BY_ONE}::test_ids_fit_agree_and_differ",
    ),
    Mutant(
        "a thought ends an answer",
        REPLAY,
        'not seal.needs or (follower if seal.needs == "next" else company)',
        "True",
        f"{ONE_BY_ONE}::test_a_thought_that_led_to_nothing_goes",
    ),
    Mutant(
        "an item stays without the one it leans on",
        REPLAY,
        "before is not None and not before.whole",
        "before is None",
        f"{ONE_BY_ONE}::test_what_leans_on_a_lost_item_goes_with_it",
    ),
    Mutant(
        "a server's call stays without its answer",
        REPLAY,
        "if at > talked and _waits(said[at], last=at == last)",
        "if True",
        f"{ONE_BY_ONE}::test_a_servers_call_keeps_its_answer",
    ),
    Mutant(
        "a picture goes to a model that sees none",
        REPLAY,
        'kind in target.images if block.type == "image" else',
        'True if block.type == "image" else',
        f"{ONE_BY_ONE}::test_media_go_where_they_are_taken",
    ),
    Mutant(
        "what a model drew stays with it",
        REPLAY,
        "if not target.drawn_media:",
        "if target.drawn_media:",
        f"{ONE_BY_ONE}::test_what_a_model_drew_moves_to_the_user",
    ),
    Mutant(
        "an assistant begins",
        REPLAY,
        'target.opening and turns[0].role == "assistant"',
        "target.opening and False",
        f"{ONE_BY_ONE}::test_the_user_begins_where_that_is_wanted",
    ),
    Mutant(
        "arguments that were no JSON go as nothing",
        REPLAY,
        'input={INVALID: block.input_raw or ""}',
        "input={}",
        f"{ONE_BY_ONE}::test_arguments_that_were_no_json_go_back_as_an_object",
    ),
    Mutant(
        "the transcript is changed",
        REPLAY,
        "    offered = {tool.name for tool in request.tools}\n",
        "    offered = {tool.name for tool in request.tools}\n"
        '    object.__setattr__(request.messages[0] if request.messages else request, "model", None)\n',
        f"{ONE_BY_ONE}::test_every_vendor_takes_every_conversation",
    ),
    # -- what the provider makes of it
    Mutant(
        "refused reasoning is sent again",
        WIRE,
        "replace(target, reasoning=False)",
        "target",
        f"{OVER_HTTP}::test_refused_reasoning_is_left_out_once",
    ),
    Mutant(
        "any refusal is tried again",
        WIRE,
        'error.status != 400 or error.cause != "reasoning"',
        "error.status != 400",
        f"{OVER_HTTP}::test_other_refusals_are_not_repeated",
    ),
    Mutant(
        "it is tried again after output",
        WIRE,
        "if bare is None or bare == sent or decoder.draft.blocks():",
        "if bare is None or bare == sent:",
        f"{OVER_HTTP}::test_nothing_is_repeated_once_something_was_shown",
    ),
    Mutant(
        "usage above the window passes",
        WIRE,
        "usage.prompt > window",
        "usage.prompt > 10 * window",
        f"{OVER_HTTP}::test_usage_above_the_window_is_an_overflow_where_nothing_was_answered",
    ),
    Mutant(
        "an empty answer passes",
        WIRE,
        "(estimated := estimate.request_tokens(sent)) > window",
        "(estimated := 0) > window",
        f"{OVER_HTTP}::test_an_empty_answer_to_a_prompt_above_the_window_is_probably_one",
    ),
    Mutant(
        "a refusal near the window is a mystery",
        WIRE,
        "if estimated <= LIKELY * target.window:",
        "if estimated <= 1.5 * target.window:",
        f"{OVER_HTTP}::test_a_refusal_without_a_reason_near_the_window",
    ),
    # -- what an error means
    Mutant(
        "sizes win over rates",
        RULES,
        "BILLING, RATE, LOADING, OUTPUT_CAP, *OVERFLOW[:2],",
        "BILLING, *OVERFLOW, RATE, LOADING, OUTPUT_CAP,",
        f"{ERRORS}::test_own_answer",
    ),
    Mutant(
        "the status wins over the body",
        VERDICT,
        "        _by_stop(answer)\n        or _by_code(answer, phrases)\n        or _by_text(phrases, status)\n",
        "        None\n",
        f"{ERRORS}::test_own_answer",
    ),
    Mutant(
        "the outermost code wins",
        ANSWER,
        "key=lambda code: (-code.depth,",
        "key=lambda code: (code.depth,",
        f"{ERRORS}::test_the_inner_of_two_codes_wins",
    ),
    Mutant(
        "an output limit is an overflow",
        RULES,
        "BILLING, RATE, LOADING, OUTPUT_CAP, *OVERFLOW[:2],",
        "BILLING, RATE, LOADING, *OVERFLOW[:2],",
        f"{ERRORS}::test_own_answer",
    ),
    Mutant(
        "money is a rate",
        VERDICT,
        'return "billing"\n    if kind == "permission"',
        'return kind\n    if kind == "permission"',
        f"{ERRORS}::test_money_behind_a_code_that_speaks_of_rates",
    ),
    Mutant(
        "a day is as short as a minute",
        VERDICT,
        'if kind == "quota" and not _is_long(answer, phrases):',
        'if kind == "quota":',
        f"{ERRORS}::test_own_answer",
    ),
    Mutant(
        "a request above the allowance is retried",
        VERDICT,
        'return replace(verdict, retryable=False, cause="too_large")',
        "return verdict",
        f"{ERRORS}::test_own_answer",
    ),
    Mutant(
        "JSON within a string is not read",
        ANSWER,
        "        found = _quoted(text)\n",
        "        found = None\n",
        f"{ERRORS}::test_wrappings",
    ),
    Mutant(
        "a setting that is refused is reasoning",
        VERDICT,
        "if matches(rules.REASONING, phrases):",
        "if True:",
        f"{OVER_HTTP}::test_refusals_of_reasoning_are_known",
    ),
    Mutant(
        "a full window is a mere end",
        VERDICT,
        "(*rules.STOPS, rules.FAILED_STOP)",
        "(rules.FAILED_STOP,)",
        f"{TRANSPORTS}::test_reasons_to_stop_that_are_failures",
    ),
    Mutant(
        "a body cut short hides its status",
        "larik_nb/http.py",
        "if _failure(exc, url, 0.0) is None:",
        "if True:",
        f"{TRANSPORTS}::test_an_error_whose_body_breaks_off_is_told_by_its_status",
    ),
)


def is_caught(mutant: Mutant) -> bool:
    """Return whether the mutant's test fails on it; a test that cannot run is none.

    Raises:
        ValueError: The source to be broken is not there, or not once.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder)
        for name in ("larik_nb", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "labextension"))
        path = copy / mutant.file
        text = path.read_text("utf-8")
        if text.count(mutant.source) != 1:
            msg = f"{mutant.name}: {mutant.file} has {text.count(mutant.source)} times: {mutant.source}"
            raise ValueError(msg)
        path.write_text(text.replace(mutant.source, mutant.broken), "utf-8")
        return _fails(copy, mutant.test)


def _fails(copy: Path, test: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{test} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 1


def main(words: Sequence[str]) -> int:
    """Try the mutants; 0 when all are caught."""
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.name for word in words)]
    with ThreadPoolExecutor(WORKERS) as pool:
        caught = list(pool.map(is_caught, chosen))
    for mutant, found in zip(chosen, caught, strict=True):
        if not found:
            print(f"got away: {mutant.name} ({mutant.test})")
    print(f"caught {sum(caught)} of {len(chosen)}")
    return 0 if chosen and all(caught) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
