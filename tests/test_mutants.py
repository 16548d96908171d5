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
    """The source it breaks is there, once, so that the slow lane does not find out months later."""
    assert (mutants.ROOT / mutant.file).read_text("utf-8").count(mutant.source) == 1
