"""The chain under every trouble at once, on virtual time: any range of seeds, each the same run every time.

    python tests/simulate_chain.py --seeds A:B [--jobs N] [--show]

A run has some callers, each with a chain of its own over the same three to five models, one cooldown table and one
budget. Models fail in every way before and after output, stall, break off, fall silent; callers stop early or are
cancelled at random moments; whoever is ready to run is chosen at random. Everything that happens is written into a
log, and `chain_rules` says what in it may not be. Ends with `violations V of N`; exits 1 when there are any.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import hashlib
import multiprocessing
import pathlib
import random
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

sys.path[:0] = [str(pathlib.Path(__file__).parents[1])]

from larik_nb import errors
from larik_nb.routing import budget, cooldown, fallback, ledger, retry
from larik_nb.types import Message, Request, StreamEvent, Usage, done, notice, text_delta, user

STALL_S = 45.0
ANSWER_USD = 1.0
CALL: ContextVar[int] = ContextVar("call", default=-1)


class Entry(NamedTuple):
    """One thing that happened: when, in which call, what, to which model, and what more there is to say."""

    at: float
    call: int
    what: str
    spec: str = ""
    detail: Any = None


@dataclass(frozen=True)
class Parts:
    """The modules under test; a test of the simulation itself puts broken ones here."""

    retry: Any = retry
    fallback: Any = fallback
    cooldown: Any = cooldown
    budget: Any = budget


@dataclass
class Run:
    """What one seed led to.

    Attributes:
        seed: The seed.
        log: Everything that happened.
        calls: By number.
        policy: Of the cooldowns.
        max_retries: Of each model.
        cap_usd: The budget.
        left: What is wrong with the world after everybody has gone.
    """

    seed: int
    policy: cooldown.CooldownPolicy
    max_retries: int
    cap_usd: float
    log: list[Entry] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def digest(self) -> str:
        """Return a fingerprint of everything that happened."""
        text = "\n".join(f"{e.at!r} {e.call} {e.what} {e.spec} {e.detail!r}" for e in self.log)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Call:
    """One question of one caller.

    Attributes:
        number: Its number.
        caller: Who asks.
        specs: The chain, first choice first.
        stops_after: Events after which the caller goes away; None: it stays.
        error: What it failed with.
    """

    number: int
    caller: int
    specs: tuple[str, ...]
    stops_after: int | None = None
    error: BaseException | None = None


# -- virtual time and a seeded scheduler ----------------------------------------------------------------------------
class Deadlock(AssertionError):
    """Everybody waits and nothing is due."""


class _AnyOrder(collections.deque[Any]):
    """What is ready to run, taken in random order."""

    chance: random.Random

    def popleft(self) -> Any:
        place = int(self.chance.random() * len(self))
        self.rotate(-place)
        taken = super().popleft()
        self.rotate(place)
        return taken


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without sockets and threads whose clock jumps to whatever is due next."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = self
        self._ready = _AnyOrder()
        self._ready.chance = chance

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock
        self._now += timeout
        return []

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


# -- the world ------------------------------------------------------------------------------------------------------
_FAILURES: tuple[Callable[..., errors.APIError], ...] = (
    errors.RateLimited,
    errors.RateLimited,
    lambda **more: errors.RateLimited(retryable=False, **more),
    errors.ServerError,
    lambda **more: errors.ServerError(kind="overloaded", **more),
    lambda **more: errors.ServerError(kind="connection", cause="dropped", **more),
    errors.Unreachable,
    lambda **more: errors.Unreachable(retryable=False, cause="certificate", **more),
    errors.StallError,
    errors.AuthError,
    errors.QuotaError,
    lambda **more: errors.QuotaError(retryable=True, cools="short", **more),
    errors.ModelNotFound,
    errors.BadRequest,
    errors.ContextOverflow,
    errors.RefusedError,
    errors.BadWire,
)
_RETRY_AFTER = (None, None, None, None, 0.0, 1.0, 7.0, 30.0, 60.0, 61.0, 900.0, 5_000.0)
_PAUSES = (0.0, 0.0, 0.0, 0.1, 0.5, 2.0, 20.0)
_GAPS = (0.0, 0.5, 5.0, 16.0, 61.0, 320.0, 601.0)


class Bug(RuntimeError):
    """Something that is no failure of a model."""


class World:
    """One run."""

    def __init__(self, seed: int, parts: Parts) -> None:
        self.chance = chance = random.Random(seed)
        self.parts = parts
        self.loop = VirtualLoop(random.Random(chance.random()))
        policy = cooldown.CooldownPolicy(policy=chance.choice(("fixed", "breaker")))
        self.run = Run(seed, policy, chance.choice((0, 1, 3, 3)), chance.choice((2.0, 6.0, 1e9)))
        self.specs = [f"p{i}/m{i}" for i in range(chance.randint(3, 5))]
        self.moods = {spec: chance.choice((0.0, 0.2, 0.5, 0.9, 1.0)) for spec in self.specs}
        self.habits = {spec: chance.choice((None, None, *_RETRY_AFTER)) for spec in self.specs}
        self.open: collections.Counter[int] = collections.Counter()
        self.attempts = 0
        self.cooldowns = Watched(self, parts.cooldown.Cooldowns(self.loop.time))
        limits = budget.BudgetLimits(session_usd=self.run.cap_usd, warn_at=2.0)
        self.budget = parts.budget.Budget(Memory(), "s", limits=limits, clock=self.loop.time)

    def note(self, what: str, spec: str = "", detail: Any = None) -> None:
        self.run.log.append(Entry(self.loop.time(), CALL.get(), what, spec, detail))

    # -- who answers ------------------------------------------------------------------------------------------
    def chain(self, specs: tuple[str, ...]) -> Any:
        parts = self.parts
        told = parts.fallback.Told()
        chance = self.chance

        def built(spec: str) -> Any:
            def alternative() -> bool:
                ready = bool(around.has_alternative(spec))
                self.note("alternative", spec, ready)
                return ready

            return parts.retry.WithRetry(
                Model(self, spec),
                policy=retry.RetryPolicy(max_retries=self.run.max_retries),
                alternative=alternative,
                sleep=lambda seconds: self.sleep(spec, seconds),
                chance=chance.random,
            )

        candidates = [
            parts.fallback.Candidate(spec=spec, model=spec.partition("/")[2], build=lambda spec=spec: built(spec))
            for spec in specs
        ]
        around = parts.fallback.WithFallback(candidates, cooldowns=self.cooldowns, policy=self.run.policy, told=told)
        return parts.budget.WithBudget(around, budget=self.budget, prices=Prices(), spec=specs[0], aside=at_once)

    async def sleep(self, spec: str, seconds: float) -> None:
        self.note("slept", spec, seconds)
        await asyncio.sleep(seconds)

    # -- who asks ---------------------------------------------------------------------------------------------
    async def caller(self, number: int) -> None:
        specs = self.specs[:]
        self.chance.shuffle(specs)
        order = tuple(specs)
        chain = self.chain(order)
        await asyncio.sleep(self.chance.choice(_GAPS) * self.chance.random())
        for _ in range(self.chance.randint(1, 4)):
            call = Call(len(self.run.calls), number, order)
            self.run.calls.append(call)
            if self.chance.random() < 0.15:
                call.stops_after = self.chance.randint(1, 4)
            task = self.loop.create_task(self.asked(call, chain))
            if self.chance.random() < 0.25:
                self.loop.call_later(self.chance.choice(_GAPS) * self.chance.random() / 4, self.cancel, call, task)
            await asyncio.wait([task])
            await asyncio.sleep(self.chance.choice(_GAPS))

    def cancel(self, call: Call, task: asyncio.Task[None]) -> None:
        if not task.done():
            self.run.log.append(Entry(self.loop.time(), call.number, "cancel"))
            task.cancel()

    async def asked(self, call: Call, chain: Any) -> None:
        CALL.set(call.number)
        ready = {spec: self.cooldowns.is_ready(spec) for spec in call.specs}
        self.note("call", detail=ready)
        request = Request(model="", messages=(user("hi"),))
        try:
            await self.consume(call, chain, request)
        except asyncio.CancelledError:
            self.note("end", detail="cancelled")
        except (errors.LarikError, Bug) as error:
            call.error = error
            if isinstance(error, errors.ConfigError):  # nothing here is set up wrongly
                self.run.left.append(f"a question that was not asked: {error}")
            self.note("end", detail=f"failed {type(error).__name__}")
        self.note("open", detail=self.open[call.number])

    async def consume(self, call: Call, chain: Any, request: Request) -> None:
        got = 0
        async with aclosing(chain.stream(request)) as events:
            async for event in events:
                self.note("got", detail=event)
                got += 1
                if call.stops_after == got:
                    self.note("stops")
                    break
                if self.chance.random() < 0.1:
                    await asyncio.sleep(self.chance.choice(_PAUSES))
        self.note("end", detail="stopped" if call.stops_after == got else "answered")

    async def everybody(self) -> None:
        await asyncio.gather(*(self.caller(number) for number in range(self.chance.randint(2, 6))))


async def at_once(work: Callable[[], None]) -> None:
    work()


class Prices:
    """An answer costs exactly what it is expected to cost; what is cut off costs half."""

    def expected(self, _request: Request) -> float:
        return ANSWER_USD

    def of(self, _message: Message) -> float:
        return ANSWER_USD

    def cut_off(self, _request: Request, heard: str) -> float:
        return ANSWER_USD / 2 if heard else 0.0


class Memory(ledger.Ledger):
    """A ledger that is no file."""

    def __init__(self) -> None:
        super().__init__(pathlib.Path())
        self.sums: list[ledger.Sum] = []

    def add(self, entry: ledger.Sum, *, durable: bool) -> None:
        self.sums.append(entry)

    @contextmanager
    def alone(self, *, durable: bool = False) -> Iterator[Any]:
        yield self

    def write(self, entry: ledger.Sum) -> None:
        self.sums.append(entry)

    def read(self, start: int = 0, session: str | None = None) -> tuple[list[ledger.Sum], int]:
        return self.sums[start:], len(self.sums)


class Model:
    """A model that does anything, chosen anew at each request, more often well when its mood is good."""

    def __init__(self, world: World, spec: str) -> None:
        self.world = world
        self.spec = spec
        self.name = spec.partition("/")[0]

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        world, call = self.world, CALL.get()
        world.attempts += 1
        number = world.attempts
        world.open[call] += 1
        world.note("attempt", self.spec, (number, request.model))
        try:
            async for event in self.doing(number):
                if event.text or event.message:
                    world.note("gave", self.spec, (number, event.type))
                yield event
        except (errors.APIError, Bug) as error:
            world.note("error", self.spec, error)
            raise
        finally:
            world.open[call] -= 1
            world.note("closed", self.spec, number)

    async def doing(self, number: int) -> AsyncGenerator[StreamEvent, None]:
        chance = self.world.chance
        for _ in range(chance.randint(0, 2)):
            await self.pause()
            yield chance.choice((text_delta(""), notice(f"{self.spec} wakes up")))
        await self.pause()
        deed = "well" if chance.random() < self.world.moods[self.spec] else chance.choice(_DEEDS)
        texts = [f"{number}.{i} " for i in range(chance.randint(1, 4))]
        if deed in ("breaks", "stalls", "cut", "well", "bug after"):
            said = texts if deed == "well" else texts[: chance.randint(0, len(texts))]
            for text in said:
                yield text_delta(text)
                await self.pause()
        if deed == "well":
            yield done(self.message("".join(texts)))
        elif deed == "empty":
            yield done(self.message(""))
        elif deed == "stalls":
            await asyncio.sleep(STALL_S)
            raise errors.StallError(provider=self.name)
        elif deed == "cut":
            raise errors.ServerError(kind="connection", cause="dropped")
        elif deed in ("bug", "bug after"):
            raise Bug
        elif deed == "turned down":
            refusal = errors.BadRequest(said="unknown field seed")
            refusal.left_out = chance.choice(("seed", "top_p"))
            raise refusal
        elif deed in ("fails", "breaks"):
            habit = self.world.habits[self.spec]
            raise chance.choice(_FAILURES)(retry_after=chance.choice(_RETRY_AFTER) if habit is None else habit)

    def message(self, text: str) -> Message:
        return Message(
            role="assistant",
            blocks=[{"type": "text", "text": text}],
            usage=Usage(input=1, output=1),
            provider=self.name,
            stop_reason="end_turn",
        )

    async def pause(self) -> None:
        if seconds := self.world.chance.choice(_PAUSES):
            await asyncio.sleep(seconds)


_DEEDS = ("fails",) * 9 + ("breaks",) * 2 + ("stalls", "cut", "empty", "ends", "turned down", "bug", "bug after")


class Watched:
    """The cooldown table, and what it is told."""

    def __init__(self, world: World, table: Any) -> None:
        self.world = world
        self.table = table

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    def until(self, spec: str) -> float:
        return float(self.world.loop.time() + self.table.left_s(spec))

    def begin(self, spec: str, policy: cooldown.CooldownPolicy, *, anyway: bool = False) -> WatchedAttempt | None:
        ready = self.table.is_ready(spec)
        attempt = self.table.begin(spec, policy, anyway=anyway)
        self.world.note("begin", spec, (ready, anyway, attempt is not None))
        return WatchedAttempt(self, spec, attempt) if attempt is not None else None


class WatchedAttempt:
    """One attempt, and which end it was told first."""

    def __init__(self, table: Watched, spec: str, attempt: Any) -> None:
        self._table = table
        self._spec = spec
        self._attempt = attempt
        self._begun = len(table.world.run.log) - 1  # the entry "begin"
        self._over = False

    def succeeded(self) -> None:
        self._tell("succeeded", self._attempt.succeeded)

    def failed(self, error: errors.APIError) -> None:
        self._tell("failed", lambda: self._attempt.failed(error), error)

    def given_back(self) -> None:
        self._tell("given back", self._attempt.given_back)

    def _tell(self, what: str, tell: Callable[[], None], error: errors.APIError | None = None) -> None:
        before = self._table.until(self._spec)
        tell()
        if not self._over:
            self._over = True
            self._table.world.note(what, self._spec, (self._begun, before, self._table.until(self._spec), error))


def simulate(seed: int, parts: Parts | None = None) -> Run:
    """Return what happens with one seed."""
    world = World(seed, parts or Parts())
    loop, run = world.loop, world.run
    try:
        loop.run_until_complete(world.everybody())
    except Deadlock:
        run.left.append("everybody waits for nothing")
        return run
    if tasks := asyncio.all_tasks(loop):
        run.left.append(f"{len(tasks)} tasks are left")
    loop.run_until_complete(asyncio.sleep(1e7))
    loop.run_until_complete(loop.shutdown_asyncgens())
    run.left += [f"{spec} is still on trial" for spec in world.specs if not world.cooldowns.is_ready(spec)]
    held = {entry.holds for entry in world.budget.ledger.read()[0] if entry.holds}
    held -= {entry.settles for entry in world.budget.ledger.read()[0]}
    run.left += [f"{len(held)} reservations are left"] if held else []
    if world.budget.spent.usd > run.cap_usd + 1e-6:
        run.left.append(f"{world.budget.spent.usd} of {run.cap_usd} was spent")
    loop.close()
    return run


def violations(seed: int, parts: Parts | None = None) -> list[str]:
    """Return which rules the run of a seed broke."""
    from tests import chain_rules

    return [f"seed {seed}: {broken}" for broken in chain_rules.broken(simulate(seed, parts))]


def _some(seeds: range) -> tuple[int, list[str]]:
    found = [violations(seed) for seed in seeds]
    return sum(map(bool, found)), [line for lines in found for line in lines]


def _split(seeds: range, size: int = 500) -> Iterator[range]:
    for start in range(seeds.start, seeds.stop, size):
        yield range(start, min(start + size, seeds.stop))


def check(seeds: range, jobs: int = 1) -> tuple[int, list[str]]:
    """Return how many seeds broke a rule, and what they broke."""
    if jobs == 1:
        results = list(map(_some, _split(seeds)))
    else:
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            results = pool.map(_some, _split(seeds), chunksize=1)
    return sum(count for count, _ in results), [line for _, lines in results for line in lines]


def main() -> int:
    """Run the seeds that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0:2000", metavar="A:B", help="from A up to but without B")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--show", action="store_true", help="print the whole log of each run")
    options = parser.parse_args()
    first, _, last = options.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    if options.show:
        for seed in seeds:
            print(*(f"{e.at:10.3f} {e.call:3} {e.what:12} {e.spec:8} {e.detail}" for e in simulate(seed).log), sep="\n")
    count, lines = check(seeds, options.jobs)
    print(*lines[:50], f"violations {count} of {len(seeds)}", sep="\n")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
