"""The rules notice: each of them is broken once in the code, and the simulation must say so."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import NamedTuple

import pytest

from larik_nb.routing import budget, cooldown, fallback, retry
from tests.simulate_chain import Parts, violations

ENOUGH = 1_500
"""Seeds after which a broken rule must have shown."""


class Mutant(NamedTuple):
    """A module with one thing broken: `old` in its source is `new`, and `rule` is what must be reported."""

    name: str
    module: types.ModuleType
    old: str
    new: str
    rule: str


MUTANTS = [
    Mutant("switches after output", fallback, "if shown or not error.falls_back:", "if not error.falls_back:", "no_switch_after_output"),
    Mutant("switches on the request's own fault", fallback, "if shown or not error.falls_back:", "if shown:", "only_what_another_may_answer"),
    Mutant("never switches", fallback, "if shown or not error.falls_back:", "if True:", "should have moved on"),
    Mutant("passes the last over", fallback, "if attempt is None and all(", "if False and all(", "the_last_is_always_asked"),
    Mutant("asks only the last when all cool", fallback, "anyway=nobody_ready)", "anyway=False)", "all_are_asked_when_all_cool"),
    Mutant("asks those left alone", fallback, "anyway=nobody_ready)", "anyway=True)", "a_cooling_model_is_left_alone"),
    Mutant("takes a cancellation for an end", fallback, "if shown and not _is_cancelled():", "if shown:", "a_cancelled_caller_leaves_nothing"),
    Mutant("counts no answer that is stopped early", fallback, "if shown and not _is_cancelled():", "if False:", "each_attempt_gets_its_verdict"),
    Mutant("counts silence as an answer", fallback, "if shown and not _is_cancelled():", "if not _is_cancelled():", "each_attempt_gets_its_verdict"),
    Mutant("keeps the trial", fallback, "                    attempt.given_back()\n", "                    pass\n", "is still on trial"),
    Mutant("swallows a cancellation", fallback, "except GeneratorExit:", "except asyncio.CancelledError:\n                    continue\n                except GeneratorExit:", "a_cancellation_arrives"),
    Mutant("blames for a cancellation", fallback, "except GeneratorExit:", "except asyncio.CancelledError:\n                    attempt.failed(APIError(cools='short'))\n                    raise\n                except GeneratorExit:", "a_cancelled_caller_leaves_nothing"),
    Mutant("asks for the wrong model", fallback, "replace(request, model=candidate.model)", "replace(request, model=self._first.model)", "each_model_is_asked_for_itself"),
    Mutant("keeps quiet about who was replaced", fallback, "provider=provider, replaced=replaced", "provider=provider", "the_answer_says_who_gave_it"),
    Mutant("names the wrong model", fallback, "message.model or candidate.model,", "message.model or self._first.model,", "the_answer_says_who_gave_it"),
    Mutant("leaves the stream open", fallback, "async with aclosing(candidate.provider.stream(asked)) as events:", "if events := candidate.provider.stream(asked):", "a request is still open"),
    Mutant("forgets a failure", fallback, "attempt.failed(error)", "attempt.given_back()", "each_attempt_gets_its_verdict"),
    Mutant("forgets an answer", fallback, "                                attempt.succeeded()\n", "                                attempt.given_back()\n", "each_attempt_gets_its_verdict"),
    Mutant("answers twice", fallback, "                            yield event\n", "                            yield event\n                            if event.message:\n                                yield event\n", "at_most_one_answer"),
    Mutant("shows things twice", fallback, "                            yield event\n", "                            yield event\n                            if event.text:\n                                yield event\n", "nothing_twice"),
    Mutant("drops what comes first", fallback, "                                shown = True\n", "                                shown = True\n                                continue\n", "nothing_twice_and_nothing_lost"),
    Mutant("tells one reason only", fallback, "AllModelsFailed(failures,", "AllModelsFailed(failures[-1:],", "the_failure_is_one_that_happened"),
    Mutant("does not tell when", fallback, "self._cooldowns.left_s(candidate.spec) or None", "None", "not told when they are asked again"),
    Mutant("asks in another order", fallback, "enumerate(self._candidates):", "enumerate(self._candidates[::-1]):", "models_are_asked_in_order"),
    Mutant("says each time that it is back", fallback, "self._stand_ins.pop(first, None)", "True", "what_is_known_is_not_said_again"),
    Mutant("says each time that it switches", fallback, "if self._stand_ins.get(first) == to:", "if False:", "what_is_known_is_not_said_again"),
    Mutant("retries after output", retry, "if shown or (wait_s", "if (wait_s", "no_switch_after_output"),
    Mutant("retries without end", retry, "or self._count >= limit:", "or self._count >= 99:", "retries_keep_to_their_limits"),
    Mutant("never retries", retry, "or self._count >= limit:", "or True:", "what_may_pass_is_asked_again"),
    Mutant("retries what cannot pass", retry, "if not error.retryable or", "if", "retries_keep_to_their_limits"),
    Mutant("does not wait as long as asked", retry, "least = max(asked_s, ", "least = max(0, ", "retries_keep_to_their_limits"),
    Mutant("jitters below what was asked", retry, "(1 + policy.jitter", "(1 - policy.jitter", "retries_keep_to_their_limits"),
    Mutant("waits for ever", retry, "if least > left:", "if False:", "retries_keep_to_their_limits"),
    Mutant("forgets what it has slept", retry, "self._slept_s += wait_s", "self._slept_s += 0", "retries_keep_to_their_limits"),
    Mutant("retries a rate limit though another is ready", retry, "(crowded and other)", "False", "retries_keep_to_their_limits"),
    Mutant("waits long though another is ready", retry, "self._policy.longest_s if other else", "self._policy.total_s if other else", "waited for though another was ready"),
    Mutant("repeats notices", retry, "        self._said.add(event)\n", "", "a notice came twice"),
    Mutant("leaves the same field out for ever", retry, "fresh = error.left_out not in self._left_out", "fresh = True", "without"),
    Mutant("takes nothing for an answer", retry, "and not _is_empty(event.message, request)", "", "the answer is empty"),
    Mutant("leaves the request open", retry, "async with aclosing(self.inner.stream(request)) as events:", "if events := self.inner.stream(request):", "a request is still open"),
    Mutant("shortens a cooldown", cooldown, "max(now + seconds, entry.until if entry else 0.0)", "now + seconds", "cooldowns_are_as_long"),
    Mutant("ignores what the provider asks for", cooldown, "min(error.wait_s, ASKED_AT_MOST_S))", "0.0)", "cooldowns_are_as_long"),
    Mutant("believes any wait", cooldown, "min(error.wait_s, ASKED_AT_MOST_S)", "error.wait_s", "is too long"),
    Mutant("lets an old answer end it", cooldown, "if entry is not None and attempt.number > entry.since:", "if entry is not None:", "cooldowns_are_as_long"),
    Mutant("is not ended by an answer", cooldown, "if entry is not None and attempt.number > entry.since:", "if False:", "still left alone after it answered"),
    Mutant("lets everybody try", cooldown, "if entry is not None and ready and entry.breaker:", "if False:", "one_trial_at_a_time"),
    Mutant("counts one failure many times", cooldown, "entry.failures + (attempt.number > entry.since)", "entry.failures + 1", "the_breaker_doubles"),
    Mutant("never doubles", cooldown, "entry.failures + (attempt.number > entry.since)", "1", "the_breaker_doubles"),
    Mutant("cools after the request's own fault", cooldown, "        if error.cools is None:\n            return\n", "", "though it was failed"),
    Mutant("ends a cooldown when given back", cooldown, "self._table._released(self)", "self._table._entries.pop(self.spec, None)", "though it was given back"),
    Mutant("keeps what was set aside", budget, "reserved.settle(cost, ", "id(reserved) or reserved.settle(cost, ", "reservations are left"),
    Mutant("sets nothing aside", budget, "spent + expected_usd > limits.session_usd + _NOTHING", "False", "was spent"),
    Mutant("forgets to price", budget, "replace(message, cost_usd=cost)", "message", "it has no cost"),
]  # fmt: skip


def broken(mutant: Mutant) -> types.ModuleType:
    """Return the module with one thing changed in its source."""
    source = Path(mutant.module.__file__ or "").read_text(encoding="utf-8")
    assert source.count(mutant.old) >= 1, "the mutant is out of date: its text is not in the source any more"
    module = types.ModuleType(f"mutant_of_{mutant.module.__name__.rpartition('.')[2]}")
    sys.modules[module.__name__] = module  # dataclasses look there
    exec(compile(source.replace(mutant.old, mutant.new, 1), mutant.name, "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_the_simulation_notices(mutant: Mutant) -> None:
    parts = Parts(**{mutant.module.__name__.rpartition(".")[2]: broken(mutant)})

    found: list[str] = []
    for seed in range(ENOUGH):
        found += violations(seed, parts)
        if any(mutant.rule in line for line in found):
            return

    pytest.fail(f"nobody noticed in {ENOUGH} runs; other rules that were broken: {found[:3]}")
