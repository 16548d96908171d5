"""The scenarios of the research that concern models: money across processes, the switch with its transcript, live settings."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from larik_nb import Session
from larik_nb.catalog import shipped
from larik_nb.errors import APIError, RateLimited, ServerError
from larik_nb.providers.scripted import ScriptedProvider
from larik_nb.routing.budget import Budget, BudgetLimits, WithBudget
from larik_nb.routing.chain import CatalogPrices
from larik_nb.routing.cooldown import COOLDOWNS, Cooldowns
from larik_nb.routing.fallback import Candidate, WithFallback
from larik_nb.routing.ledger import Ledger
from larik_nb.types import Block, Message, Request, ToolSpec, Usage, assistant, text_block, tool_result, user
from tests.fake_provider import FakeProvider, expected


@pytest.fixture(autouse=True)
def _nobody_cools() -> Iterator[None]:
    COOLDOWNS.forget()
    yield
    COOLDOWNS.forget()


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeProvider]:
    with FakeProvider() as server:
        yield server


# -- S14: what a session cost ---------------------------------------------------------------------------------------
PRICES = {
    "a/big": {"input": 10.0, "output": 20.0, "cache_read": 1.0, "cache_write": 12.5},
    "b/small": {"input": 1.0, "output": 2.0},
}
FIRST = Usage(input=1_000, output=500, cache_read=40_000, cache_write=8_000)
SECOND = Usage(input=2_000, output=100, cache_read=10_000)
HALF = Usage(input=3_000, output=50)
BY_HAND = [
    (1_000 * 10 + 500 * 20 + 40_000 * 1 + 8_000 * 12.5) / 1e6,
    (2_000 * 1 + 100 * 2 + 10_000 * 1) / 1e6,
    (3_000 * 10 + 50 * 20) / 1e6,
]


def said(usage: Usage) -> Message:
    return Message(role="assistant", blocks=assistant("well").blocks, usage=usage)


def test_s14_a_session_costs_what_a_hand_computes_whoever_answered_and_whichever_process_asks(tmp_path: Path) -> None:
    """Caches, a stand-in in the middle, a failure that was counted, and another kernel that goes on."""
    ledger = Ledger(tmp_path / "spend.jsonl")
    catalog = shipped().with_own({}, PRICES)
    failed = ServerError(partial=Message(role="assistant", blocks=(text_block("ha"),), model="big", usage=HALF))
    big = ScriptedProvider([said(FIRST), RateLimited(), failed], name="a", model="big")
    small = ScriptedProvider([said(SECOND)], name="b", model="small")

    def kernel() -> tuple[Budget, WithBudget]:
        candidates = [
            Candidate(spec="a/big", model="big", build=lambda: big),
            Candidate(spec="b/small", model="small", build=lambda: small),
        ]
        budget = Budget(ledger, "s", limits=BudgetLimits(session_usd=10.0))
        chain = WithFallback(candidates, cooldowns=Cooldowns())
        return budget, WithBudget(chain, budget=budget, prices=CatalogPrices(catalog, "a", "big"), spec="a/big")

    async def ask(chain: WithBudget) -> None:
        try:
            async for _ in chain.stream(Request(model="big", messages=(user("hi"),))):
                pass
        except APIError:
            pass

    sums = []
    for number in range(3):
        budget, chain = kernel()  # a new process knows the session by its ledger alone
        asyncio.run(ask(chain))
        sums.append(budget.spent.usd)
        assert sums[-1] == pytest.approx(sum(BY_HAND[: number + 1]))
    assert sums == sorted(sums)
    specs = [json.loads(line)["spec"] for line in ledger.path.read_text().splitlines() if '"settles"' in line]
    assert specs == ["a/big", "b/small", "a/big"]


# -- S15: the switch ------------------------------------------------------------------------------------------------
TOOLS = (ToolSpec(name="read", description="", parameters={"type": "object"}),)


def transcript() -> list[Message]:
    """Return a turn in which three tools have run."""
    messages = [user("look")]
    for number in range(3):
        call = Block(type="tool_use", id=f"call{number}", name="read", input={"n": number})
        messages += [Message(role="assistant", blocks=(call,)), user(tool_result(f"call{number}", f"file {number}"))]
    return messages


def test_s15_a_stand_in_gets_the_whole_transcript_and_no_tool_runs_again(fake: FakeProvider) -> None:
    row = {"base_url": fake.url, "api_key": "k"}
    rows = {"main": ["openai/fake:n=3"]}
    settings = {"providers": {"anthropic": row, "openai": row}, "fallbacks": rows, "max_retries": 0}
    session = Session(config=settings | {"model": "anthropic/fake:e=429"})
    session.history.extend(transcript())
    begun = len(fake.requests)

    events = list(session.stream("go on", tools=TOOLS))

    (refused, _, first), (answered, _, second) = fake.requests[begun:]
    assert (refused, answered) == ("/v1/messages", "/responses")
    results = [b for m in first["messages"] for b in m["content"] if isinstance(b, dict) and b["type"] == "tool_result"]
    calls = [item for item in second["input"] if item.get("type") == "function_call_output"]
    assert len(results) == len(calls) == 3
    assert [item["output"] for item in calls] == ["file 0", "file 1", "file 2"]
    notice = next(event.text for event in events if event.type == "notice")
    answer = session.history[-1]
    assert second["model"] == answer.model == session.turns[-1].model == "fake:n=3"
    assert notice.endswith("→ answering with openai/fake:n=3")
    assert not any(event.type.startswith("tool") for event in events)


def test_s15_after_the_first_word_a_failure_is_an_error_and_nobody_else_is_asked(fake: FakeProvider) -> None:
    row = {"base_url": fake.url, "api_key": "k"}
    settings = {"providers": {"anthropic": row, "openai": row}, "fallbacks": {"main": ["openai/fake:n=3"]}}
    session = Session(config=settings | {"model": "anthropic/fake:n=9:cut=2"})
    begun = len(fake.requests)

    with pytest.raises(APIError):
        session.ask("hi")

    assert [path for path, _, _ in fake.requests[begun:]] == ["/v1/messages"]
    assert session.history[-1].text == expected("fake:n=2")


# -- S16: what is set while a session lives ---------------------------------------------------------------------------
def test_s16_a_role_without_a_model_follows_the_live_settings_and_the_live_effort(
    fake: FakeProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.json"
    row = {"base_url": fake.url, "api_key": "k"}
    monkeypatch.setenv("LARIK_CONFIG", str(file))

    def save(model: str) -> None:
        file.write_text(json.dumps({"model": model, "providers": {"openai": row}, "max_retries": 0}))

    save("openai/fake:n=1")
    child = Session("worker")
    child.ask("hi")
    save("openai/gpt-5")
    child.effort = "low"
    child.ask("hi")

    *_, (_, _, before), (_, _, after) = fake.requests
    assert before["model"] == "fake:n=1"
    assert (after["model"], after["reasoning"]["effort"]) == ("gpt-5", "low")


# -- notebooks: one's own gateway, and two users ----------------------------------------------------------------------
def test_s7_an_unknown_model_at_ones_own_gateway_is_asked_there_and_nowhere_else(fake: FakeProvider) -> None:
    own = {"type": "openai-compatible", "base_url": f"{fake.url}/gate/v1", "api_key": "k"}
    begun = len(fake.requests)

    answer = Session("gate/my-own-7b:n=2", config={"providers": {"gate": own}}).ask("hi")

    assert [path for path, _, _ in fake.requests[begun:]] == ["/gate/v1/chat/completions"]
    assert (answer.provider, answer.cost_usd) == ("gate", None)


_TURNS = """
import sys, json
from larik_nb import Session
session = Session(config=json.loads(sys.argv[1])); session.id = sys.argv[2]
print("ready", flush=True); sys.stdin.readline(); asked = 0
for _ in range(20):
    try: session.ask("hi"); asked += 1
    except Exception as error: print(repr(error), flush=True); break
print(asked, flush=True); sys.stdin.read()
"""


def kernels(fake: FakeProvider, tmp_path: Path, *users: str) -> list[tuple[list[str], Path]]:
    """Return what kernels said that asked at once, each under its user's account, and where their ledgers are."""
    row = {"base_url": fake.url, "api_key": "k"}
    pricing = {"openai/fake:n=1": {"input": 0.0, "output": 10_000.0}}
    settings: dict[str, Any] = {"model": "openai/fake:n=1", "providers": {"openai": row}, "pricing": pricing}
    settings["budget"] = {"session_usd": 25.0}
    running = []
    for user_ in users:
        home = tmp_path / user_
        env = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "PYTHONPATH": "."}
        command = [sys.executable, "-c", _TURNS, json.dumps(settings), "shared"]
        process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append((process, home / "state" / "larik" / "spend.jsonl"))
    for process, _ in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process, _ in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = []
    for process, ledger in running:
        out, _ = process.communicate(timeout=60)
        told.append((out.split(), ledger))
    return told


def test_s11_two_kernels_of_one_account_share_what_they_may_spend(fake: FakeProvider, tmp_path: Path) -> None:
    """An answer costs a cent and $10 are set aside for it, so that $25 are enough for two at once."""
    told = kernels(fake, tmp_path, "one", "one")
    spent = Budget(Ledger(told[0][1]), "shared").spent

    assert [words for words, _ in told] == [["20"], ["20"]]
    assert spent.usd == pytest.approx(40 * 0.01)
    assert stat.S_IMODE(told[0][1].stat().st_mode) == 0o600
    assert all(json.loads(line)["session"] == "shared" for line in told[0][1].read_text().splitlines())


def test_s11_two_accounts_know_nothing_of_each_other(fake: FakeProvider, tmp_path: Path) -> None:
    (mine, first), (theirs, second) = kernels(fake, tmp_path, "one", "two")

    assert mine == theirs == ["20"]
    assert Budget(Ledger(first), "shared").spent.usd == Budget(Ledger(second), "shared").spent.usd == pytest.approx(0.2)
