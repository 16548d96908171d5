"""The next model: when it is asked, what is said of it, and what the failures leave behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from larik_nb import errors
from larik_nb.errors import AllModelsFailed, AuthError, ConfigError, RateLimited, ServerError
from larik_nb.providers import Provider, UnavailableProvider
from larik_nb.providers.scripted import Reply, ScriptedProvider
from larik_nb.routing.cooldown import CooldownPolicy, Cooldowns
from larik_nb.routing.fallback import Candidate, Told, WithFallback
from larik_nb.types import Message, Request, StreamEvent, assistant, text_delta, user

REQUEST = Request(model="", messages=(user("hi"),))
BREAKER = CooldownPolicy(policy="breaker")


class World:
    """A chain a/m → b/m → … of scripted providers on a clock of its own."""

    def __init__(
        self, *scripts: Sequence[Reply] | Provider | ConfigError, policy: CooldownPolicy | None = None
    ) -> None:
        self.now = 0.0
        self.cooldowns = Cooldowns(lambda: self.now)
        self.providers: list[Provider] = []
        self.told = Told()
        self.policy = policy or CooldownPolicy()
        candidates = [self._candidate(name, script) for name, script in zip("abcde", scripts, strict=False)]
        self.chain = WithFallback(candidates, cooldowns=self.cooldowns, policy=self.policy, told=self.told)

    def _candidate(self, name: str, script: Sequence[Reply] | Provider | ConfigError) -> Candidate:
        if isinstance(script, ConfigError):
            made: Provider = UnavailableProvider(name, script)
        else:
            made = ScriptedProvider(script, name=name) if isinstance(script, Sequence) else script
        self.providers.append(made)
        return Candidate(spec=f"{name}/m{name}", model=f"m{name}", build=lambda: made)

    def ask(self) -> tuple[Message, list[str]]:
        """Return the answer and the notices before it."""

        async def collect() -> list[StreamEvent]:
            return [event async for event in self.chain.stream(REQUEST)]

        *before, last = asyncio.run(collect())
        assert last.message is not None
        return last.message, [event.text for event in before if event.type == "notice"]

    def asked(self) -> list[int]:
        return [len(p.requests) if isinstance(p, ScriptedProvider) else 0 for p in self.providers]


@pytest.mark.parametrize(
    "error",
    [
        errors.classify(status, {}, b"")
        for status in (401, 402, 403, 404, 408, 429, 500, 502, 503, 529)
    ]
    + [errors.transport(ConnectionRefusedError("refused")), errors.StallError(), RateLimited(retry_after=900)],
    ids=lambda error: f"{error.status}-{error.kind}",
)  # fmt: skip
def test_a_failure_that_is_the_models_own_asks_the_next(error: errors.APIError):
    world = World([error], ["well"])

    message, _ = world.ask()

    assert (message.text, message.provider, message.model, message.replaced) == ("well", "b", "mb", "a/ma")
    assert not world.cooldowns.is_ready("a/ma")


@pytest.mark.parametrize(
    "error", [errors.ContextOverflow(), errors.BadRequest(), errors.RefusedError(), errors.BadWire()]
)
def test_a_failure_that_is_the_requests_own_does_not(error: errors.APIError):
    world = World([error], ["well"])

    with pytest.raises(type(error)):
        world.ask()

    assert (world.asked(), world.cooldowns.snapshot()) == ([1, 0], ())


def test_each_candidate_is_asked_for_its_own_model():
    world = World([RateLimited()], ["well"])
    world.ask()

    assert [provider.requests[0].model for provider in world.providers] == ["ma", "mb"]


def test_the_first_choice_is_nobodys_stand_in_and_builds_nobody_else():
    built = []

    def build() -> Provider:
        built.append("b")
        return ScriptedProvider()

    first = Candidate(spec="a/m", model="m", build=lambda: ScriptedProvider(["well"], name="a"))
    chain = WithFallback([first, Candidate(spec="b/m", model="m", build=build)], cooldowns=Cooldowns())

    async def run() -> Message | None:
        return [event async for event in chain.stream(REQUEST)][-1].message

    message = asyncio.run(run())
    assert message is not None
    assert (message.replaced, built) == (None, [])


def test_the_switch_is_said_once_and_the_return_once():
    limited = RateLimited(status=429, retry_after=42)
    world = World([limited, limited, "well", "well"], ["stand-in"] * 9)

    assert world.ask()[1] == ["⟳ a/ma is rate limited (retry in 42 s) → answering with b/mb"]
    assert world.ask()[1] == []  # passed over: it is left alone
    world.now += 61
    assert world.ask()[1] == []  # failed again: the user knows
    world.now += 61
    message, notices = world.ask()
    assert (message.text, notices) == ("well", ["✓ back on a/ma"])
    assert world.ask()[1] == []


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (errors.AuthError(status=401), "⟳ a/ma rejected the key → answering with b/mb"),
        (errors.classify(402, {}, b""), "⟳ no credit left at a/ma → answering with b/mb"),
        (errors.QuotaError(), "⟳ the quota at a/ma is used up → answering with b/mb"),
        (errors.ServerError(status=500), "⟳ a/ma failed → answering with b/mb"),
        (errors.ServerError(kind="overloaded"), "⟳ a/ma is overloaded → answering with b/mb"),
        (errors.transport(ConnectionRefusedError(111, "refused")), "⟳ a/ma refuses connections → answering with b/mb"),
        (errors.StallError(), "⟳ a/ma took too long → answering with b/mb"),
    ],
)
def test_the_switch_says_why(error: errors.APIError, line: str):
    assert World([error], ["well"]).ask()[1] == [line]


def test_a_model_that_is_left_alone_is_passed_over_without_a_word():
    world = World(["never"], ["one", "two"])
    attempt = world.cooldowns.begin("a/ma", CooldownPolicy())
    assert attempt is not None
    attempt.failed(AuthError())

    message, notices = world.ask()

    assert (message.text, message.replaced, notices, world.asked()) == ("one", "a/ma", [], [0, 1])


def test_when_all_are_left_alone_all_are_asked_in_order():
    world = World([RateLimited(), RateLimited()], [RateLimited(), RateLimited()], [RateLimited(), "well"])
    with pytest.raises(AllModelsFailed):
        world.ask()

    message, _ = world.ask()

    assert (message.text, world.asked()) == ("well", [2, 2, 2])


def test_the_last_is_always_asked():
    world = World([RateLimited(), RateLimited()], [ServerError()], [ServerError(), "well"])
    with pytest.raises(AllModelsFailed):
        world.ask()
    attempt = world.cooldowns.begin("a/ma", CooldownPolicy(), anyway=True)
    assert attempt is not None
    attempt.succeeded()

    message, _ = world.ask()

    assert (message.text, world.asked()) == ("well", [2, 1, 2])


def test_nothing_is_asked_of_another_once_something_was_shown():
    class Breaks(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            yield text_delta("half")
            raise ServerError(partial=assistant("half"))

    world = World([RateLimited()], Breaks(name="b"), ["never"])

    with pytest.raises(ServerError) as caught:
        world.ask()

    assert world.asked()[2] == 0
    assert not world.cooldowns.is_ready("b/mb")
    assert caught.value.partial is not None
    assert caught.value.partial.replaced == "a/ma"


def test_all_failures_are_told_with_when_each_is_asked_again():
    world = World(
        [RateLimited(retry_after=300)], [AuthError()], ConfigError("no key for c", remedy="Set C_KEY"), [ServerError()]
    )

    with pytest.raises(AllModelsFailed) as caught:
        world.ask()

    assert str(caught.value) == (
        "no model can answer: a/ma rate limited, again in 5 min · b/mb key rejected, again in 10 min · "
        "d/md failed, again in 60 s · c/mc cannot be used (no key for c. Set C_KEY)."
    )
    assert [type(error) for error in caught.value.exceptions] == [RateLimited, AuthError, ServerError]


def test_a_model_passed_over_is_told_too():
    world = World([AuthError(), "never"], [ServerError(), ServerError()])
    with pytest.raises(AllModelsFailed):
        world.ask()
    world.now += 60

    with pytest.raises(AllModelsFailed) as caught:
        world.ask()

    assert str(caught.value) == (
        "no model can answer: b/mb failed, again in 60 s · a/ma key rejected, again in 540 s."
    )  # fmt: skip


def test_the_only_model_fails_with_its_own_error():
    with pytest.raises(RateLimited):
        World([RateLimited()]).ask()


def test_models_that_cannot_be_built_are_left_out_and_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    world = World(ConfigError("no key for a"), ["well"])

    message, notices = world.ask()

    assert (message.text, message.replaced, notices) == ("well", "a/ma", [])
    assert "a/ma is left out: no key for a" in caplog.text


def test_when_none_can_be_built_the_first_says_why():
    with pytest.raises(ConfigError, match="no key for a"):
        World(ConfigError("no key for a"), ConfigError("no key for b")).ask()


def test_the_last_that_can_be_built_is_the_last():
    world = World([RateLimited(), "well"], ConfigError("no key for b"))
    with pytest.raises(AllModelsFailed):
        world.ask()

    assert world.ask()[0].text == "well"


def test_an_alternative_is_one_that_can_be_asked_now():
    world = World(["x"], ["y"], ConfigError("no key"))

    assert [world.chain.has_alternative(spec) for spec in ("a/ma", "b/mb", "c/mc")] == [True, False, False]
    attempt = world.cooldowns.begin("b/mb", CooldownPolicy())
    assert attempt is not None
    attempt.failed(RateLimited())
    assert not world.chain.has_alternative("a/ma")


class Endless(ScriptedProvider):
    """Shows a word, if it may, then waits."""

    def __init__(self, *, speaks: bool) -> None:
        super().__init__(name="a")
        self.speaks = speaks
        self.open = 0

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.open += 1
        try:
            if self.speaks:
                yield text_delta("well")
            await asyncio.sleep(3600)
        finally:
            self.open -= 1


def half_open(*, speaks: bool) -> World:
    """Return a chain whose first model is due for a trial."""
    world = World(Endless(speaks=speaks), ["never"], policy=BREAKER)
    attempt = world.cooldowns.begin("a/ma", BREAKER)
    assert attempt is not None
    attempt.failed(ServerError())
    world.now += 15
    return world


@pytest.mark.parametrize("speaks", [True, False])
def test_a_cancelled_caller_leaves_nothing_behind(*, speaks: bool):
    world = half_open(speaks=speaks)

    async def run() -> None:
        async def consume() -> None:
            async for _ in world.chain.stream(REQUEST):
                pass

        task = asyncio.ensure_future(consume())
        await asyncio.sleep(0.01)
        assert not world.cooldowns.is_ready("a/ma")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())

    (first, _) = world.providers
    assert isinstance(first, Endless)
    assert (first.open, world.asked()[1], world.cooldowns.is_ready("a/ma")) == (0, 0, True)
    assert world.cooldowns._entries["a/ma"].failures == 1  # neither cleared nor counted


def test_a_reader_that_stops_early_has_had_an_answer():
    world = half_open(speaks=True)

    async def run() -> None:
        async with aclosing(world.chain.stream(REQUEST)) as stream:
            async for event in stream:
                if event.type == "text_delta":
                    break

    asyncio.run(run())

    assert world.cooldowns._entries == {}


def test_a_bug_in_a_provider_is_no_verdict_on_its_model():
    class Bug(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            yield text_delta("")
            raise KeyError("oops")

    world = World(Bug(name="a"), ["never"])

    with pytest.raises(KeyError):
        world.ask()

    assert (world.asked()[1], world.cooldowns.snapshot()) == (0, ())
