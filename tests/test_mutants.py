"""Every rule that is broken is missed by some test."""

from __future__ import annotations

import pytest

from tests import mutants


@pytest.mark.slow
@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_rule_is_noticed(mutant: mutants.Mutant) -> None:
    """By the test that is named beside it."""
    assert mutants.is_caught(mutant)


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_can_be_made(mutant: mutants.Mutant) -> None:
    """The source it breaks is there, once, and so is its test: the slow lane would find out months later."""
    assert (mutants.ROOT / mutant.file).read_text("utf-8").count(mutant.source) == 1
    file, _, test = mutant.test.partition("::")
    assert f"def {test.partition('[')[0]}(" in (mutants.ROOT / file).read_text("utf-8")
