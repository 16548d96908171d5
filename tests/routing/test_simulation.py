"""The chain under every trouble at once, on virtual time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import simulate_chain
from tests.simulate_chain import check, simulate, violations

ORDINARY, NIGHTLY = range(2_000), range(100_000)


def test_no_rule_is_broken() -> None:
    count, lines = check(ORDINARY)

    assert (count, lines) == (0, [])


@pytest.mark.slow
def test_no_rule_is_broken_in_a_hundred_thousand_runs() -> None:
    count, lines = check(NIGHTLY, jobs=os.cpu_count() or 1)

    assert (count, lines[:20]) == (0, [])


def test_everything_happens() -> None:
    """A simulation in which something never happens proves nothing about it."""
    runs = [simulate(seed) for seed in range(400)]
    ends = {entry.detail for run in runs for entry in run.log if entry.what == "end"}
    whats = {entry.what for run in runs for entry in run.log}
    failures = {type(entry.detail).__name__ for run in runs for entry in run.log if entry.what == "error"}
    policies = {run.policy.policy for run in runs}

    assert {"answered", "stopped", "cancelled", "failed AllModelsFailed", "failed BudgetExceeded", "failed Bug"} <= ends
    assert {"slept", "cancel", "stops", "given back", "succeeded", "failed", "alternative"} <= whats
    assert {
        "AuthError", "BadRequest", "BadWire", "ContextOverflow", "ModelNotFound", "QuotaError", "RateLimited",
        "RefusedError", "ServerError", "StallError", "Unreachable",
    } <= failures  # fmt: skip
    assert policies == {"fixed", "breaker"}


def test_a_seed_is_the_same_run_every_time_and_everywhere() -> None:
    """Also in another process, where sets and hashes have another order."""
    seeds = range(100, 120)
    code = f"from tests.simulate_chain import simulate\nfor s in {seeds!r}: print(simulate(s).digest())"
    here = [simulate(seed).digest() for seed in seeds]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONHASHSEED": "4711"}
    there = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout

    assert [simulate(seed).digest() for seed in seeds] == here == there.split()
    assert len(set(here)) == len(here)


def test_the_command_says_what_it_found() -> None:
    command = [sys.executable, simulate_chain.__file__, "--seeds", "7:17"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == "violations 0 of 10\n"


def test_a_violation_is_named_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(run: simulate_chain.Run) -> list[str]:
        return [f"so many calls: {len(run.calls)}"] if run.seed == 3 else []

    monkeypatch.setattr("tests.chain_rules.broken", broken)

    assert violations(2) == []
    assert violations(3) == [f"seed 3: so many calls: {len(simulate(3).calls)}"]
    assert check(range(5))[0] == 1
