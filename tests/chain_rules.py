"""What may not be in the log of a simulated run: each rule reads the log by itself and says where it was broken.

The rules know what the chain promises (specification H3, F2–F5, G5), not how it keeps it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from larik_nb import errors

if TYPE_CHECKING:
    from tests.simulate_chain import Call, Entry, Run

Rule = Callable[["Run", "Call", "Sequence[Entry]"], Iterator[str]]
SLACK_S = 1e-6
LONGEST_WAIT_S, ASKED_AT_MOST_S = 60.0, 3_600.0


def broken(run: Run) -> list[str]:
    """Return what was broken, one line each, with the name of the rule."""
    by_call: dict[int, list[Entry]] = defaultdict(list)
    for entry in run.log:
        by_call[entry.call].append(entry)
    found = [f"left behind: {line}" for line in run.left]
    found += [f"{rule.__name__}: {line}" for rule in _OF_RUNS for line in rule(run)]
    for call in run.calls:
        entries = by_call[call.number]
        if [entry.what for entry in entries] == ["cancel"]:
            continue  # before it had begun
        found += [
            f"call {call.number}: {rule.__name__}: {line}" for rule in _OF_CALLS for line in rule(run, call, entries)
        ]
    return found


def _of(entries: Sequence[Entry], *whats: str) -> list[Entry]:
    return [entry for entry in entries if entry.what in whats]


def _outcome(entries: Sequence[Entry]) -> str:
    return next((str(entry.detail) for entry in entries if entry.what == "end"), "")


def _shown(entry: Entry) -> bool:
    return entry.what == "got" and entry.detail.type == "text_delta" and bool(entry.detail.text)


# -- of one call ----------------------------------------------------------------------------------------------------
def at_most_one_answer(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    got = [entry.detail for entry in _of(entries, "got")]
    ends = [place for place, event in enumerate(got) if event.type == "done"]
    if len(ends) > 1 or (ends and ends[0] != len(got) - 1):
        yield f"done at {ends} of {len(got)} events"
    wanted = {"answered": {1}, "stopped": {0, 1}, "cancelled": {0, 1}}.get(_outcome(entries), {0})
    if len(ends) not in wanted:
        yield f"{_outcome(entries)} with {len(ends)} answers"
    if any(event.type == "done" and not event.message.text for event in got):
        yield "the answer is empty"
    if len(_of(entries, "end")) != 1:
        yield "it did not end once"


def nothing_twice_and_nothing_lost(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    """What was shown is one attempt's words, each once, in order, without a gap; the answer is all of them."""
    shown = [entry.detail.text.strip() for entry in entries if _shown(entry)]
    attempts = {text.partition(".")[0] for text in shown}
    if len(attempts) > 1:
        yield f"words of attempts {sorted(attempts)}"
    numbers = [int(text.partition(".")[2]) for text in shown]
    if numbers != list(range(len(numbers))):
        yield f"words {numbers}"
    for entry in _of(entries, "got"):
        if entry.detail.type == "done" and entry.detail.message.text != "".join(f"{text} " for text in shown):
            yield f"the answer is {entry.detail.message.text!r}, shown was {shown}"
    notices = [
        entry.detail for entry in _of(entries, "got") if entry.detail.type == "notice" and "wakes" in entry.detail.text
    ]
    if len(notices) != len(set(notices)):
        yield "a notice came twice"


def no_switch_after_output(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    seen = False
    for entry in entries:
        if seen and entry.what in ("attempt", "slept", "begin"):
            yield f"{entry.what} {entry.spec} after something was shown"
        seen = seen or _shown(entry)


def what_was_given_is_passed_on(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    """Of an attempt that showed something nothing is kept back."""
    given = [entry for entry in entries if entry.what == "gave" and entry.detail[1] == "text_delta"]
    shown = [entry for entry in entries if _shown(entry)]
    lost = len(given) - len(shown)
    if lost > 0 and not (_outcome(entries) in ("cancelled", "stopped") and lost == 1):
        yield f"{lost} words were given and not shown"


def a_cancelled_caller_leaves_nothing(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    if _outcome(entries) == "cancelled":
        at = next(place for place, entry in enumerate(entries) if entry.what == "cancel")
        for entry in entries[at:]:
            if entry.what in ("succeeded", "failed", "attempt", "begin", "got", "slept"):
                yield f"{entry.what} {entry.spec} after it was cancelled"
    elif _of(entries, "cancel") and not _of(entries, "end"):
        yield "the cancellation was lost"
    if any(entry.detail for entry in _of(entries, "open")) or len(_of(entries, "attempt")) != len(
        _of(entries, "closed")
    ):
        yield "a request is still open"


def a_cancellation_arrives(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    """Nobody who was cancelled goes on: at most what had come already ends the call at that very moment."""
    cancelled = _of(entries, "cancel")
    end = _of(entries, "end")
    if cancelled and end and end[0].at > cancelled[0].at + SLACK_S:
        yield f"cancelled at {cancelled[0].at}, ended at {end[0].at}"


def each_attempt_gets_its_verdict(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    """What was begun is told one end: the one that it had."""
    granted = sum(entry.detail[2] for entry in _of(entries, "begin"))
    verdicts = _of(entries, "succeeded", "failed", "given back")
    if granted != len(verdicts):
        yield f"{granted} attempts, {len(verdicts)} ends"
        return
    last = verdicts[-1].what if verdicts else ""
    shown = any(map(_shown, entries)) or any(e.detail.type == "done" for e in _of(entries, "got"))
    wanted = {
        "answered": "succeeded",
        "stopped": "succeeded" if shown else "given back",
        "cancelled": "given back",
    }.get(_outcome(entries))  # fmt: skip
    answered = any(e.detail.type == "done" for e in _of(entries, "got"))
    if (
        wanted
        and last
        and last != wanted
        and not (_outcome(entries) == "cancelled" and (answered or last == "succeeded"))
    ):
        yield f"{_outcome(entries)}, told {last}"
    if isinstance(call.error, errors.APIError) and last != "failed":
        yield f"failed with {type(call.error).__name__}, told {last}"


def the_last_is_always_asked(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    if isinstance(call.error, errors.AllModelsFailed) and call.specs[-1] not in {
        e.spec for e in _of(entries, "attempt")
    }:
        yield "the last model was not asked"


def all_are_asked_when_all_cool(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    start = _of(entries, "call")[0].detail
    if any(start.values()) or not isinstance(call.error, errors.AllModelsFailed):
        return
    # Somebody may have become ready in between: the plan is made when the first is due, a moment later.
    asked = list(dict.fromkeys(entry.spec for entry in _of(entries, "attempt")))
    if asked != list(call.specs):
        yield f"all were cooling, asked were {asked}"


def a_cooling_model_is_left_alone(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    nobody = not any(_of(entries, "call")[0].detail.values())
    for entry in _of(entries, "begin"):
        ready, _, granted = entry.detail
        if granted and not ready and entry.spec != call.specs[-1] and not nobody:
            yield f"{entry.spec} was asked while it was left alone"
        if ready and not granted:
            yield f"{entry.spec} was ready and not asked"


def models_are_asked_in_order(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    places = [call.specs.index(entry.spec) for entry in _of(entries, "attempt")]
    if places != sorted(places):
        yield f"asked in the order {places}"
    asked = [entry.spec for entry in _of(entries, "begin")]
    looked = list(dict.fromkeys(asked))
    if looked != list(call.specs[: len(looked)]):
        yield f"looked at {looked}"


def each_model_is_asked_for_itself(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    for entry in _of(entries, "attempt"):
        if entry.spec.partition("/")[2] != entry.detail[1]:
            yield f"{entry.spec} was asked for {entry.detail[1]}"


def only_what_another_may_answer_moves_on(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    failed: Entry | None = None
    for entry in _of(entries, "error", "attempt"):
        if entry.what == "error":
            failed = entry
            continue
        if failed is not None and failed.spec != entry.spec and not getattr(failed.detail, "falls_back", False):
            yield f"{entry.spec} was asked after {type(failed.detail).__name__}"
        failed = None


def the_answer_says_who_gave_it(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    for entry in _of(entries, "got"):
        message = entry.detail.message
        if message is None:
            continue
        spec = _of(entries, "attempt")[-1].spec
        if f"{message.provider}/{message.model}" != spec:
            yield f"{message.provider}/{message.model} is named, {spec} answered"
        if message.replaced != (None if spec == call.specs[0] else call.specs[0]):
            yield f"{spec} is said to replace {message.replaced}"
        if message.cost_usd is None:
            yield "it has no cost"


def the_failure_is_one_that_happened(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    error = call.error
    happened = [entry.detail for entry in _of(entries, "error")]
    asked = {entry.spec for entry in _of(entries, "attempt")}
    if isinstance(error, errors.AllModelsFailed):
        told = {f"{one.provider}/{one.model}" for one in error.exceptions}
        if told != asked or told | set(error.not_asked) != set(call.specs) or told & set(error.not_asked):
            yield f"told {sorted(told)} and {sorted(error.not_asked)}, asked {sorted(asked)}"
        if any(one.cools and not one.again_in_s for one in error.exceptions):
            yield "it is not told when they are asked again"
        if any(not one.falls_back for one in error.exceptions) or any(map(_shown, entries)):
            yield "one of them was no reason to go on"
    elif isinstance(error, errors.APIError) and error.cause != "empty":
        if error is not (happened or [None])[-1]:
            yield f"{type(error).__name__} is not the last that happened"
        if error.falls_back and not any(map(_shown, entries)):
            yield f"{type(error).__name__} should have moved on"
    elif isinstance(error, errors.BudgetExceeded) and asked:
        yield "it was sent though the budget was reached"


def retries_keep_to_their_limits(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    for spec in dict.fromkeys(entry.spec for entry in _of(entries, "attempt")):
        yield from _retries(run, spec, [entry for entry in entries if entry.spec == spec])


def _retries(run: Run, spec: str, entries: Sequence[Entry]) -> Iterator[str]:
    """Read one model's part of a call: attempts, failures and the waits between them."""
    slept = retries = 0.0
    failed: errors.APIError | None = None
    failed_at, other, alternatives = 0.0, False, 0
    turned_down: set[str] = set()
    for entry in entries:
        if entry.what == "begin":
            slept = 0.0
            failed = None
        elif entry.what == "error" and isinstance(entry.detail, errors.APIError):
            failed, failed_at, other = entry.detail, entry.at, False
        elif entry.what == "alternative":
            other = entry.detail
            alternatives += 1
        elif entry.what == "slept" and failed is not None and not failed.left_out:
            slept += entry.detail
            least = max(failed.wait_s, 0.5 if failed.cause != "empty" else 0.0)
            if not least - SLACK_S <= entry.detail <= max(8 * 1.25, failed.wait_s * 1.25, 0) + SLACK_S:
                yield f"{spec} was waited for {entry.detail} s after {failed.wait_s} s were asked"
            if slept > LONGEST_WAIT_S + SLACK_S:
                yield f"{spec} was waited for {slept} s in all"
        elif entry.what == "attempt" and failed is not None:
            yield from _again(run, spec, failed, int(retries), turned_down, other=other)
            if entry.at - failed_at < failed.wait_s - SLACK_S and not failed.left_out:
                yield f"{spec} was asked again after {entry.at - failed_at} s"
            retries += not failed.left_out
            failed = None


def _again(
    run: Run, spec: str, failed: errors.APIError, retries: int, turned_down: set[str], *, other: bool
) -> Iterator[str]:
    if failed.left_out:
        if failed.left_out in turned_down:
            yield f"{spec} was asked again without {failed.left_out} twice"
        turned_down.add(failed.left_out)
        return
    crowded = isinstance(failed, errors.RateLimited | errors.QuotaError)
    limit = min(run.max_retries, 1) if crowded and other else run.max_retries
    if not failed.retryable or retries >= limit:
        yield f"{spec} was asked again after {type(failed).__name__}, {retries} retries, {other=}"
    if other and failed.wait_s > 8:
        yield f"{spec} was waited for though another was ready"


def what_may_pass_is_asked_again(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    """The first failure of a model that may pass, and asks for no long wait, has a retry."""
    for place, entry in enumerate(entries):
        error = entry.detail
        if (
            entry.what != "error"
            or not isinstance(error, errors.APIError)
            or not error.retryable
            or not run.max_retries
        ):
            continue
        before = [e for e in entries[:place] if e.spec == entry.spec and e.what == "attempt"]
        later = [e for e in entries[place:] if e.what == "attempt" and e.spec == entry.spec]
        quiet = not any(map(_shown, entries[: place + 1])) and error.wait_s <= 8
        if len(before) == 1 and quiet and not later and _outcome(entries) != "cancelled" and not _of(entries, "stops"):
            yield f"{entry.spec} was not asked again after {type(error).__name__}"


def notices_are_said_once(run: Run, call: Call, entries: Sequence[Entry]) -> Iterator[str]:
    told = [entry.detail.text for entry in _of(entries, "got") if entry.detail.type == "notice"]
    switches = [text for text in told if "→" in text]
    failures = {entry.spec for entry in _of(entries, "failed")}
    if len(switches) > len(failures):
        yield f"{len(switches)} switches told, {len(failures)} models failed"
    back = [text for text in told if text.startswith("✓")]
    first = call.specs[0]
    answered = _of(entries, "attempt")[-1:]
    if back and (back != [f"✓ back on {first}"] or (answered and answered[0].spec != first)):
        yield f"told {back}"


# -- of the whole run -----------------------------------------------------------------------------------------------
def what_is_known_is_not_said_again(run: Run) -> Iterator[str]:
    """A switch is told when it is another than the last one told, a return when there was a switch."""
    known: dict[int, str] = {}
    for entry in run.log:
        text = entry.detail.text if entry.what == "got" and entry.detail.type == "notice" else ""
        caller = run.calls[entry.call].caller
        if "→ answering with" in text:
            to = text.rpartition(" ")[2]
            if known.get(caller) == to:
                yield f"call {entry.call}: told again that {to} answers"
            known[caller] = to
        elif text.startswith("✓") and known.pop(caller, None) is None:
            yield f"call {entry.call}: told of a return from nowhere"


def cooldowns_are_as_long_as_they_should_be(run: Run) -> Iterator[str]:
    """Never shorter than before, but by an answer that was asked for after the failure."""
    failed_at: dict[str, int] = {}
    for place, entry in enumerate(run.log):
        if entry.what not in ("succeeded", "failed", "given back"):
            continue
        begun, before, after, error = entry.detail
        if entry.what == "failed" and error.cools:
            least, most = _span(run, error)
            if after < before - SLACK_S or after < entry.at + least - SLACK_S:
                yield f"{entry.spec}: until {before} became {after} at {entry.at} by {type(error).__name__}"
            if after > max(before, entry.at + most) + SLACK_S:
                yield f"{entry.spec}: until {after} at {entry.at} is too long after {type(error).__name__}"
            failed_at[entry.spec] = place
        elif entry.what == "succeeded" and begun > failed_at.get(entry.spec, -1):
            if after > entry.at + SLACK_S:
                yield f"{entry.spec}: still left alone after it answered"
        elif abs(after - before) > SLACK_S:
            yield f"{entry.spec}: until {before} became {after} though it was {entry.what}"


def _span(run: Run, error: errors.APIError) -> tuple[float, float]:
    asked = min(error.wait_s, ASKED_AT_MOST_S)
    if run.policy.policy == "fixed":
        rule = 600.0 if error.cools == "long" else 60.0
        return max(rule, asked), max(rule, asked)
    return max(15.0, asked), max(300.0, asked)


def one_trial_at_a_time(run: Run) -> Iterator[str]:
    """Under the breaker a model that failed and has not answered since is tried by one caller at a time."""
    if run.policy.policy != "breaker":
        return
    ailing: dict[str, int] = {}
    trials: dict[str, int] = {}
    for place, entry in enumerate(run.log):
        if entry.what == "begin" and entry.spec in ailing:
            ready, _, granted = entry.detail
            if ready and granted:
                if entry.spec in trials:
                    yield f"{entry.spec}: two trials at {entry.at}"
                trials[entry.spec] = place
        elif entry.what in ("succeeded", "failed", "given back"):
            begun = entry.detail[0]
            if trials.get(entry.spec, -1) == begun:
                del trials[entry.spec]
            if entry.what == "failed" and entry.detail[3].cools:
                ailing[entry.spec] = place
            elif entry.what == "succeeded" and begun > ailing.get(entry.spec, place):
                del ailing[entry.spec]
                trials.pop(entry.spec, None)  # somebody else's answer has settled what it was to find out


def the_breaker_doubles(run: Run) -> Iterator[str]:
    """Each failed trial leaves a model alone for longer, until five minutes."""
    if run.policy.policy != "breaker":
        return
    count: dict[str, int] = defaultdict(int)
    failed_at: dict[str, int] = {}
    for place, entry in enumerate(run.log):
        if entry.what == "succeeded" and entry.detail[0] > failed_at.get(entry.spec, -1):
            count[entry.spec] = 0
        elif entry.what == "failed" and entry.detail[3].cools:
            begun, before, after, error = entry.detail
            count[entry.spec] += begun > failed_at.get(entry.spec, -1) or not count[entry.spec]
            failed_at[entry.spec] = place
            rule = min(15.0 * 2 ** (count[entry.spec] - 1), 300.0)
            wanted = max(before, entry.at + max(rule, min(error.wait_s, ASKED_AT_MOST_S)))
            if abs(after - wanted) > SLACK_S:
                yield f"{entry.spec}: until {after}, not {wanted}, after {count[entry.spec]} failures"


_OF_CALLS: tuple[Rule, ...] = (
    at_most_one_answer,
    nothing_twice_and_nothing_lost,
    no_switch_after_output,
    what_was_given_is_passed_on,
    a_cancelled_caller_leaves_nothing,
    a_cancellation_arrives,
    each_attempt_gets_its_verdict,
    the_last_is_always_asked,
    all_are_asked_when_all_cool,
    a_cooling_model_is_left_alone,
    models_are_asked_in_order,
    each_model_is_asked_for_itself,
    only_what_another_may_answer_moves_on,
    the_answer_says_who_gave_it,
    the_failure_is_one_that_happened,
    retries_keep_to_their_limits,
    what_may_pass_is_asked_again,
    notices_are_said_once,
)
_OF_RUNS: tuple[Callable[[Run], Iterator[str]], ...] = (
    what_is_known_is_not_said_again,
    cooldowns_are_as_long_as_they_should_be,
    one_trial_at_a_time,
    the_breaker_doubles,
)
