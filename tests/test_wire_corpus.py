"""Every recorded answer reads as its oracle says, however the network cut it."""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import corpus

OWN = Path(__file__).parent / "wire"
SHARED = Path(__file__).parents[2] / "shared" / "wire"
WHOLE = 1 << 30


def run(folder: Path, chunk: int | None) -> corpus.Score:
    """Play back the cases whose adapter is there."""
    cases = [
        case for case in corpus.load(folder) if case.api in corpus.LATER or find_spec(corpus.ADAPTERS[case.api][0])
    ]
    return asyncio.run(corpus.run(cases, chunk))


@pytest.mark.parametrize("chunk", [WHOLE, 7, 1])
def test_own_cases_pass(chunk: int) -> None:
    """The sample written for the purpose passes to the last case."""
    score = run(OWN, chunk)
    assert score.lines == []
    assert score.passed == score.total > 30


@pytest.mark.parametrize(
    "chunk", [None, WHOLE, pytest.param(7, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.slow)]
)
def test_recorded_cases_pass(chunk: int | None) -> None:
    """Of the recorded traffic 99 % passes, and what does not is explained."""
    if not SHARED.is_dir():
        pytest.skip("no recorded traffic beside this repository (../shared/wire)")
    score = run(SHARED, chunk)
    assert score.unexplained == 0, score.lines
    assert score.passed >= 0.99 * score.total


def test_own_cases_are_named_as_their_files() -> None:
    """A case's id leads to its file."""
    for path in OWN.rglob("*.json"):
        assert json.loads(path.read_bytes())["id"] == f"{path.parent.name.replace('.', '-')}-{path.stem}"


def test_differences_are_seen() -> None:
    """The comparison is no rubber stamp: each field of an oracle that is changed is reported."""
    case = next(case for case in corpus.load(OWN) if case.id == "anthropic-messages-thinking")
    for name, wrong in [
        ("text", "57"),
        ("thinking", "Eight times seven."),
        ("tool_calls", [{"id": "x", "name": "f", "arguments": {}}]),
        ("input_tokens_total", 13),
        ("output_tokens_total", 8),
        ("cache_read", 1),
        ("model", "another"),
        ("has_signature", False),
        ("stop_reason_raw", "max_tokens"),
        ("error_event", {"type": "error"}),
    ]:
        changed = corpus.Case({**case.data, "oracle": {**case.oracle, name: wrong}})
        assert asyncio.run(corpus.run([changed], 7)).lines, name
