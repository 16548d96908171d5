"""The budget: set aside before, written down after, shared by kernels, and never exceeded by parallel requests."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from larik_nb import _sending
from larik_nb.errors import BudgetExceeded, ConfigError, RateLimited, ServerError
from larik_nb.providers.scripted import Reply, ScriptedProvider
from larik_nb.routing.budget import Budget, BudgetLimits, WithBudget
from larik_nb.routing.ledger import HELD_S, Ledger, Spending, Sum
from larik_nb.types import Message, Request, StreamEvent, Usage, assistant, text_delta, user

REQUEST = Request(model="m", messages=(user("hi"),))


class Prices:
    """A cent a request is expected, an answer costs what its usage says in cents, a letter cut off a tenth of one."""

    def __init__(self, expected: float | None = 0.01) -> None:
        self.usual = expected

    def expected(self, request: Request) -> float | None:
        return self.usual

    def of(self, message: Message) -> float | None:
        return message.usage.output / 100 if message.usage else None

    def cut_off(self, request: Request, heard: str) -> float | None:
        return len(heard) / 1000


def cents(number: int) -> Message:
    return Message(role="assistant", blocks=assistant("well").blocks, usage=Usage(input=0, output=number))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "state" / "spend.jsonl")


class World:
    def __init__(
        self, ledger: Ledger, replies: Sequence[Reply], limit: float | None = 1.0, prices: Prices | None = None
    ):
        self.budget = Budget(ledger, "s1", limits=BudgetLimits(session_usd=limit))
        self.inner = ScriptedProvider(replies)
        self.chain = WithBudget(self.inner, budget=self.budget, prices=prices or Prices(), spec="p/m")

    async def aask(self) -> list[StreamEvent]:
        return [event async for event in self.chain.stream(REQUEST)]

    def ask(self) -> list[StreamEvent]:
        return asyncio.run(self.aask())


def lines(ledger: Ledger) -> list[dict[str, object]]:
    return [json.loads(line) for line in ledger.path.read_text().splitlines()] if ledger.path.exists() else []


def test_an_answer_is_priced_and_written_down(ledger: Ledger):
    world = World(ledger, [cents(5)])

    done = world.ask()[-1]

    assert done.message is not None
    assert done.message.cost_usd == 0.05
    held, settled = lines(ledger)
    assert (held["usd"], settled["usd"], settled["spec"]) == (0.01, 0.05, "scripted/m")
    assert held["holds"] == settled["settles"]
    assert world.budget.spent == Spending(usd=0.05)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_nothing_is_sent_once_the_money_is_spent(ledger: Ledger):
    world = World(ledger, [cents(100), "never"])
    world.ask()

    with pytest.raises(BudgetExceeded) as caught:
        world.ask()

    assert len(world.inner.requests) == 1
    assert str(caught.value) == "budget reached: $1.00 of $1.00 is spent. Nothing was sent. Raise it: %routing budget=2"


def test_nothing_is_sent_that_is_expected_to_go_beyond(ledger: Ledger):
    world = World(ledger, [cents(95), "never"], prices=Prices(0.10))
    world.ask()

    with pytest.raises(
        BudgetExceeded, match=r"\$0\.95 of \$1\.00 is spent, and this is expected to cost \$0\.1\. Nothing"
    ):
        world.ask()

    assert len(world.inner.requests) == 1


def test_requests_side_by_side_do_not_overshoot(ledger: Ledger):
    """Ten at once, each expected at 30 cents of a dollar: three go out."""
    world = World(ledger, [cents(30)] * 10, prices=Prices(0.30))

    async def all_at_once() -> list[list[StreamEvent] | BaseException]:
        return await asyncio.gather(*(world.aask() for _ in range(10)), return_exceptions=True)

    results = asyncio.run(all_at_once())

    assert sum(isinstance(result, BudgetExceeded) for result in results) == 7
    assert len(world.inner.requests) == 3
    assert world.budget.spent == Spending(usd=pytest.approx(0.9))


def test_a_raised_limit_counts_at_once(ledger: Ledger):
    world = World(ledger, [cents(100), cents(1)])
    world.ask()
    world.budget.limits = BudgetLimits(session_usd=5.0)

    assert world.ask()[-1].message is not None


def test_the_warning_comes_once_before_the_end_of_the_answer(ledger: Ledger):
    world = World(ledger, [cents(70), cents(10), cents(5), cents(5)])

    notices = [[event.text for event in world.ask() if event.type == "notice"] for _ in range(4)]

    assert notices == [
        [],
        ["⚠ 80 % of the session budget used ($0.80 of $1.00); %routing budget=2 raises it"],
        [],
        [],
    ]  # fmt: skip


def test_a_failed_request_costs_nothing(ledger: Ledger):
    world = World(ledger, [RateLimited(), ServerError(partial=assistant())])
    for _ in range(2):
        with pytest.raises((RateLimited, ServerError)):
            world.ask()

    assert world.budget.spent == Spending(usd=0.0)


def test_a_failure_in_the_middle_costs_what_was_heard(ledger: Ledger):
    world = World(ledger, [ServerError(partial=assistant("half of it"))])

    with pytest.raises(ServerError):
        world.ask()

    assert world.budget.spent == Spending(usd=0.01)


class Endless(ScriptedProvider):
    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        yield text_delta("half of it")
        await asyncio.sleep(3600)


@pytest.mark.parametrize("way", ["close", "cancel"])
def test_whoever_goes_away_pays_what_was_heard_and_holds_nothing(ledger: Ledger, way: str):
    world = World(ledger, [])
    chain = WithBudget(Endless(), budget=world.budget, prices=Prices(0.5), spec="p/m")

    async def close() -> None:
        async with aclosing(chain.stream(REQUEST)) as stream:
            async for _ in stream:
                break

    async def cancel() -> None:
        async def consume() -> None:
            async for _ in chain.stream(REQUEST):
                pass

        task = asyncio.ensure_future(consume())
        await asyncio.sleep(0.01)
        assert world.budget.spent.usd == 0.5
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(close() if way == "close" else cancel())

    assert world.budget.spent == Spending(usd=0.01)


def test_whoever_stops_before_anything_was_sent_pays_nothing(ledger: Ledger):
    class Connecting(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            _sending.begin()
            await asyncio.sleep(3600)
            yield text_delta("never")

    world = World(ledger, [])
    chain = WithBudget(Connecting(), budget=world.budget, prices=_Dear(0.5), spec="p/m")

    async def stop() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(chain.stream(REQUEST)), 0.01)

    asyncio.run(stop())

    assert world.budget.spent == Spending(usd=0.0)


class _Dear(Prices):
    def cut_off(self, request: Request, heard: str) -> float | None:
        return 0.5


def test_a_model_without_a_price_is_refused_under_a_budget_unless_allowed(ledger: Ledger):
    world = World(ledger, ["well"], prices=Prices(None))

    with pytest.raises(ConfigError, match=r'no price is known for p/m.*pricing\."p/m"'):
        world.ask()

    assert world.inner.requests == []
    world.budget.limits = BudgetLimits(session_usd=1.0, allow_unpriced=True)
    world.ask()
    assert world.budget.spent == Spending(usd=0.0, unknown=True)


def test_without_a_budget_a_model_without_a_price_is_asked(ledger: Ledger):
    world = World(ledger, ["well"], limit=None, prices=Prices(None))
    world.ask()

    assert world.budget.spent == Spending(usd=0.0, unknown=True)


def test_what_is_free_is_never_refused_nor_written_down(ledger: Ledger):
    world = World(ledger, [cents(100), cents(0)])
    world.ask()
    before = lines(ledger)
    free = WithBudget(ScriptedProvider([cents(0)]), budget=world.budget, prices=Prices(0.0), spec="local/m")

    async def run() -> list[StreamEvent]:
        return [event async for event in free.stream(REQUEST)]

    assert asyncio.run(run())[-1].message is not None
    assert lines(ledger) == before


# -- the ledger -----------------------------------------------------------------------------------------------------
def test_sessions_are_apart_and_a_day_is_the_sum_of_them(ledger: Ledger):
    noon = time.mktime((2026, 11, 30, 12, 0, 0, 0, 0, -1))
    for session, usd, at in (("s1", 0.5, noon), ("s2", 0.25, noon), ("s1", 1.0, noon + 86_400)):
        ledger.add(Sum(session=session, usd=usd, at=at), durable=True)

    assert Budget(ledger, "s1").spent == Spending(usd=1.5)
    assert Budget(ledger, "s2").spent == Spending(usd=0.25)
    assert ledger.of_day("2026-11-30") == Spending(usd=0.75)


_HOLDER = """
import os, sys; from pathlib import Path; from larik_nb.routing.budget import *; from larik_nb.routing.ledger import Ledger
budget = Budget(Ledger(Path(sys.argv[1])), "s1", limits=BudgetLimits(session_usd=1.0)); budget.reserve(0.4, "p/m")
print("held", flush=True); sys.stdin.read()
"""


def kernel(code: str, ledger: Ledger) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": "."}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code, str(ledger.path)], env=env, text=True, **pipes)


def test_a_reservation_counts_while_its_kernel_lives_and_no_longer(ledger: Ledger):
    running = kernel(_HOLDER, ledger)
    assert running.stdout is not None
    assert running.stdout.readline() == "held\n"
    mine = Budget(ledger, "s1", limits=BudgetLimits(session_usd=1.0))
    assert mine.spent == Spending(usd=0.4)
    with pytest.raises(BudgetExceeded):
        mine.reserve(0.7, "p/m")

    running.kill()
    running.communicate()

    assert mine.spent == Spending(usd=0.0)
    mine.reserve(0.7, "p/m").settle(0.7)
    assert Budget(ledger, "s1").spent == Spending(usd=0.7)


@pytest.mark.parametrize(("by", "counts"), [(f"{socket.gethostname()}:{2**22 + 1}", False), ("elsewhere:1", True)])
def test_a_reservation_of_another_machine_is_dropped_when_it_is_old(ledger: Ledger, by: str, counts: bool):
    now = [1000.0]
    held = Sum(session="s1", usd=0.4, at=1000.0, holds="1", by=by)
    ledger.add(held, durable=False)
    budget = Budget(ledger, "s1", clock=lambda: now[0])

    assert budget.spent.usd == (0.4 if counts else 0.0)
    now[0] += HELD_S + 1
    assert budget.spent == Spending(usd=0.0)


_RACER = """
import sys; from pathlib import Path; from larik_nb.routing.budget import *; from larik_nb.routing.ledger import Ledger
from larik_nb import _sending
from larik_nb.errors import BudgetExceeded
budget = Budget(Ledger(Path(sys.argv[1])), "shared", limits=BudgetLimits(session_usd=1.0))
print("ready", flush=True); sys.stdin.readline(); got = []
for _ in range(40):
    try: got.append(budget.reserve(0.1, "p/m"))
    except BudgetExceeded: pass
warned = budget.warning() is not None
print(len(got), int(warned), flush=True); sys.stdin.read()
"""


def test_kernels_at_the_same_instant_do_not_pass_the_limit_and_warn_once(ledger: Ledger):
    """S11: three kernels let loose together on one session hold its limit between them, and one of them warns."""
    kernels = [kernel(_RACER, ledger) for _ in range(3)]
    for racer in kernels:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in kernels:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    told = [racer.stdout.readline().split() for racer in kernels if racer.stdout]

    assert sum(int(held) for held, _ in told) == 10
    assert sum(int(warned) for _, warned in told) == 1
    assert Budget(ledger, "shared").spent == Spending(usd=pytest.approx(1.0))
    for racer in kernels:
        racer.communicate()
    assert Budget(ledger, "shared").spent == Spending(usd=0.0)


_WRITER = """
import sys; from pathlib import Path; from larik_nb.routing.ledger import Ledger, Sum
ledger = Ledger(Path(sys.argv[1])); print("on", flush=True); n = 0
while True:
    ledger.add(Sum(session="killed", usd=0.001, spec="p/" + "m" * 300), durable=False); n += 1
"""


def test_a_kernel_killed_in_the_middle_of_writing_leaves_whole_lines(ledger: Ledger):
    """S11: whatever is there before, after and beside it can be read, and only its owner may read it."""
    for _ in range(10):
        running = kernel(_WRITER, ledger)
        assert running.stdout is not None
        running.stdout.readline()
        ledger.add(Sum(session="mine", usd=0.25), durable=False)
        time.sleep(0.01)
        running.kill()
        running.communicate()
    torn = [line for line in ledger.path.read_bytes().split(b"\n") if line and Sum.read(line) is None]

    assert torn == []
    assert Budget(ledger, "mine").spent == Spending(usd=2.5)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(ledger.path.parent.stat().st_mode) == 0o700


def test_a_torn_line_is_left_out_and_the_next_one_is_whole(ledger: Ledger):
    ledger.add(Sum(session="s1", usd=0.5), durable=True)
    with ledger.path.open("ab") as file:
        file.write(b'{"session":"s1","usd":9')
    reading = Budget(ledger, "s1")
    assert reading.spent == Spending(usd=0.5)

    ledger.add(Sum(session="s1", usd=0.25), durable=True)

    assert reading.spent == Spending(usd=0.75)
    assert Budget(ledger, "s1").spent == Spending(usd=0.75)


@pytest.mark.parametrize(
    "line",
    [b"[]", b'{"usd":"much","session":"s1"}', b'{"usd":1}', b"\xff\xfe", b"null", b'{"session":"s1","usd":true}'],
)
def test_a_line_that_is_no_sum_is_left_out(ledger: Ledger, line: bytes):
    ledger.add(Sum(session="s1", usd=0.5), durable=True)
    with ledger.path.open("ab") as file:
        file.write(line + b"\n")

    assert Budget(ledger, "s1").spent == Spending(usd=0.5)


def test_a_later_versions_field_is_passed_over(ledger: Ledger):
    ledger.path.parent.mkdir()
    ledger.path.write_bytes(b'{"session":"s1","usd":0.5,"currency":"USD"}\n')

    assert Budget(ledger, "s1").spent == Spending(usd=0.5)


_KERNEL = """
import sys; from pathlib import Path; from larik_nb.routing.budget import *; from larik_nb.routing.ledger import Ledger
ledger = Ledger(Path(sys.argv[1])); budget = Budget(ledger, "shared", limits=BudgetLimits(session_usd=1000.0))
for _ in range(200): budget.reserve(0.5, "p/m").settle(0.25, "p/m", durable=False)
"""


def test_kernels_share_a_session_and_no_line_is_lost(ledger: Ledger):
    kernels = [
        subprocess.Popen([sys.executable, "-c", _KERNEL, str(ledger.path)], env={**os.environ, "PYTHONPATH": "."})
        for _ in range(3)
    ]
    assert [kernel.wait(60) for kernel in kernels] == [0, 0, 0]

    assert len(lines(ledger)) == 3 * 200 * 2
    assert Budget(ledger, "shared").spent == Spending(usd=150.0)


def test_two_budgets_on_one_session_see_each_others_reservations(ledger: Ledger):
    limits = BudgetLimits(session_usd=1.0)
    one, other = Budget(ledger, "s1", limits=limits), Budget(ledger, "s1", limits=limits)
    one.reserve(0.8, "p/m")

    with pytest.raises(BudgetExceeded):
        other.reserve(0.3, "p/m")


def test_a_ledger_that_cannot_be_written_costs_no_answer(tmp_path: Path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    world = World(Ledger(blocked / "spend.jsonl"), [cents(5), cents(5)], limit=None)

    events = world.ask()

    assert events[-1].message is not None
    assert [e.text[:38] for e in events if e.type == "notice"] == ["⚠ " + str(blocked / "spend.jsonl")[:36]]
    assert world.budget.spent == Spending(usd=0.05)


def test_under_a_budget_nothing_is_sent_that_cannot_be_written_down(tmp_path: Path):
    (tmp_path / "file").write_text("")
    world = World(Ledger(tmp_path / "file" / "spend.jsonl"), ["never"])

    with pytest.raises(ConfigError, match="cannot write down what is spent"):
        world.ask()

    assert world.inner.requests == []
