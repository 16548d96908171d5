"""The cooldown table: how long, for whom, and what ends it."""

from __future__ import annotations

import threading

import pytest

from larik_nb import errors
from larik_nb.routing.cooldown import CooldownPolicy, Cooldowns, Cooling

FIXED, BREAKER = CooldownPolicy(), CooldownPolicy(policy="breaker")
SPEC = "p/m"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def table(clock: Clock) -> Cooldowns:
    return Cooldowns(clock)


def fail(table: Cooldowns, error: errors.APIError, policy: CooldownPolicy = FIXED, spec: str = SPEC) -> None:
    attempt = table.begin(spec, policy, anyway=True)
    assert attempt is not None
    attempt.failed(error)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (errors.RateLimited(), 60),
        (errors.ServerError(), 60),
        (errors.StallError(), 60),
        (errors.QuotaError(retryable=True, cools="short"), 60),
        (errors.QuotaError(), 600),
        (errors.AuthError(), 600),
        (errors.ModelNotFound(), 600),
        (errors.Unreachable(), 600),
        (errors.BadRequest(), 0),
        (errors.ContextOverflow(), 0),
        (errors.RefusedError(), 0),
        (errors.BadWire(), 0),
        (errors.RateLimited(retry_after=90), 90),
        (errors.RateLimited(retry_after=5), 60),
        (errors.RateLimited(retry_hint=120), 120),
        (errors.RateLimited(retry_after=86_400), 3600),
        (errors.QuotaError(retry_after=90), 600),
    ],
)
def test_how_long(table: Cooldowns, clock: Clock, error: errors.APIError, seconds: float):
    fail(table, error)

    assert table.left_s(SPEC) == seconds
    assert table.is_ready(SPEC) is (seconds == 0)
    clock.now += max(0, seconds - 0.01)
    assert table.is_ready(SPEC) is (seconds == 0)
    clock.now += 0.01
    assert table.is_ready(SPEC)


def test_another_model_of_the_same_provider_is_another(table: Cooldowns):
    fail(table, errors.RateLimited())

    assert table.is_ready("p/other")


def test_a_later_failure_never_shortens(table: Cooldowns, clock: Clock):
    fail(table, errors.AuthError())
    clock.now += 10

    fail(table, errors.RateLimited())

    assert table.left_s(SPEC) == 590


def test_an_answer_ends_it(table: Cooldowns):
    fail(table, errors.AuthError())
    attempt = table.begin(SPEC, FIXED, anyway=True)
    assert attempt is not None

    attempt.succeeded()

    assert (table.is_ready(SPEC), table.snapshot()) == (True, ())


def test_an_answer_asked_for_before_the_failure_does_not(table: Cooldowns):
    early = table.begin(SPEC, FIXED)
    assert early is not None
    fail(table, errors.RateLimited(retry_after=3000))

    early.succeeded()

    assert table.left_s(SPEC) == 3000


def test_the_breaker_doubles_with_each_failed_trial_up_to_five_minutes(table: Cooldowns, clock: Clock):
    waits = []
    for _ in range(7):
        fail(table, errors.ServerError(), BREAKER)
        waits.append(table.left_s(SPEC))
        clock.now += waits[-1]

    assert waits == [15, 30, 60, 120, 240, 300, 300]


def test_the_breaker_begins_anew_after_an_answer(table: Cooldowns, clock: Clock):
    for _ in range(3):
        fail(table, errors.ServerError(), BREAKER)
        clock.now += 300
    trial = table.begin(SPEC, BREAKER)
    assert trial is not None
    trial.succeeded()

    fail(table, errors.ServerError(), BREAKER)

    assert table.left_s(SPEC) == 15


def test_callers_who_fail_at_the_same_time_are_one_failure(table: Cooldowns):
    attempts = [table.begin(SPEC, BREAKER) for _ in range(5)]
    for attempt in attempts:
        assert attempt is not None
        attempt.failed(errors.ServerError())

    assert table.left_s(SPEC) == 15


def test_the_breaker_lets_one_through_when_the_time_is_up(table: Cooldowns, clock: Clock):
    fail(table, errors.ServerError(), BREAKER)
    clock.now += 15

    assert table.begin(SPEC, BREAKER) is not None
    assert table.is_ready(SPEC) is False
    assert table.begin(SPEC, BREAKER) is None


@pytest.mark.parametrize("end", ["given_back", "overflow"])
def test_a_trial_that_proves_nothing_is_given_back(table: Cooldowns, clock: Clock, end: str):
    fail(table, errors.ServerError(), BREAKER)
    clock.now += 15
    trial = table.begin(SPEC, BREAKER)
    assert trial is not None

    if end == "overflow":
        trial.failed(errors.ContextOverflow())
    else:
        trial.given_back()

    assert table.begin(SPEC, BREAKER) is not None


def test_only_the_first_end_counts(table: Cooldowns, clock: Clock):
    fail(table, errors.ServerError(), BREAKER)
    clock.now += 15
    trial = table.begin(SPEC, BREAKER)
    assert trial is not None
    trial.given_back()
    other = table.begin(SPEC, BREAKER)

    trial.given_back()
    trial.failed(errors.AuthError())
    trial.succeeded()

    assert other is not None
    assert table.begin(SPEC, BREAKER) is None


def test_the_fixed_policy_lets_everybody_through_when_the_time_is_up(table: Cooldowns, clock: Clock):
    fail(table, errors.ServerError())
    clock.now += 60

    assert table.begin(SPEC, FIXED) is not None
    assert table.begin(SPEC, FIXED) is not None


def test_the_table_can_be_read(table: Cooldowns, clock: Clock):
    fail(table, errors.AuthError(), spec="b/n")
    fail(table, errors.RateLimited(), spec="a/m")
    clock.now += 18

    assert table.snapshot() == (
        Cooling(spec="a/m", left_s=42, reason="rate limited"),
        Cooling(spec="b/n", left_s=582, reason="key rejected"),
    )
    table.forget()
    assert table.snapshot() == ()


def test_threads_may_share_it(clock: Clock, table: Cooldowns):
    """One trial is handed out, however many ask at the same moment."""
    fail(table, errors.ServerError(), BREAKER)
    clock.now += 15
    gate, got = threading.Barrier(8), []

    def ask() -> None:
        gate.wait(5)
        got.append(table.begin(SPEC, BREAKER))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)

    assert sum(attempt is not None for attempt in got) == 1


def test_what_is_known_of_each_model_is_told_in_words():
    now = [100.0]
    table = Cooldowns(lambda: now[0])
    policy = CooldownPolicy(policy="breaker", first_s=40.0)
    first, second, third = (table.begin(spec, policy) for spec in ("a/limited", "a/well", "a/wrong"))
    assert first
    assert second
    assert third
    first.failed(errors.RateLimited(retry_after=40))
    second.succeeded()
    third.failed(errors.BadRequest())
    now[0] += 2

    assert table.health() == {
        "a/limited": "cooling 38 s (rate limited)", "a/well": "answered", "a/wrong": "refused the request"
    }  # fmt: skip
    now[0] += 40
    assert table.health()["a/limited"] == "rate limited"
    trial = table.begin("a/limited", policy)
    assert trial is not None
    assert table.health()["a/limited"] == "being tried again (rate limited)"
    trial.succeeded()
    assert table.health()["a/limited"] == "answered"
