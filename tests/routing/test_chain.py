"""The whole chain over real sockets: what the settings file says is what happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from larik_nb import Session
from larik_nb.config import Config
from larik_nb.errors import AllModelsFailed, BudgetExceeded, ConfigError, ContextOverflow, RateLimited
from larik_nb.providers import _refused, resolve
from larik_nb.routing._config import retry_policy
from larik_nb.routing.cooldown import COOLDOWNS
from larik_nb.types import Block
from tests.fake_provider import FakeProvider, expected

PRICES = {"input": 1_000.0, "output": 10_000.0}
"""USD a million tokens: a cent an output token, and 12 tokens of prompt at a tenth of a cent."""


@pytest.fixture(autouse=True)
def _nobody_cools() -> Iterator[None]:
    COOLDOWNS.forget()
    yield
    COOLDOWNS.forget()
    _refused.forget()


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeProvider]:
    with FakeProvider() as server:
        yield server


def settings(fake: FakeProvider, **more: Any) -> dict[str, Any]:
    row = {"base_url": fake.url, "api_key": "k"}
    return {"providers": {"anthropic": row, "openai": row, "gemini": row}, "max_retries": 0, **more}


def notices(session: Session, question: str = "hi") -> list[str]:
    return [event.text for event in session.stream(question) if event.type == "notice"]


def asked(fake: FakeProvider, since: int) -> list[str]:
    return [path for path, _, _ in fake.requests[since:]]


def test_a_failing_model_is_replaced_and_the_answer_says_so(fake: FakeProvider):
    rows = {"main": ["openai/fake:n=3"]}
    session = Session(config=settings(fake, model="anthropic/fake:e=429:ra=42", fallbacks=rows))

    told = notices(session)
    answer = session.history[-1]

    assert told == ["⟳ anthropic/fake:e=429:ra=42 is rate limited (retry in 42 s) → answering with openai/fake:n=3"]
    assert (answer.text, answer.provider, answer.model) == (expected("fake:n=3"), "openai", "fake:n=3")
    assert answer.replaced == "anthropic/fake:e=429:ra=42"
    assert session.turns[-1].provider == "openai"


def test_what_is_known_of_a_failure_outlives_the_turn_and_the_session(fake: FakeProvider):
    config = settings(fake, model="anthropic/fake:e=500", fallbacks={"main": ["openai/fake:n=3"]})
    session = Session(config=config)
    session.ask("hi")
    begun = len(fake.requests)

    assert notices(session) == []
    assert notices(Session(config=config)) == []

    assert asked(fake, begun) == ["/responses"] * 2


@pytest.mark.parametrize("key", ["worker", "anthropic/fake:e=500", "ANTHROPIC/FAKE:e=500"])
def test_fallbacks_go_by_role_or_by_model(fake: FakeProvider, key: str):
    roles = {"worker": "anthropic/fake:e=500"}
    config = settings(fake, roles=roles, fallbacks={key: ["openai/fake:n=3"]}, model="gemini/fake:n=1")

    assert Session("worker", config=config).ask("hi").provider == "openai"


def test_a_role_goes_before_its_model(fake: FakeProvider):
    rows = {"worker": ["openai/fake:n=3"], "anthropic/fake:e=500": ["gemini/fake:n=3"]}
    config = settings(fake, roles={"worker": "anthropic/fake:e=500"}, fallbacks=rows)

    assert Session("worker", config=config).ask("hi").provider == "openai"
    COOLDOWNS.forget()
    assert Session("anthropic/fake:e=500", config=config).ask("hi").provider == "gemini"


def test_a_role_that_is_not_set_is_the_main_model(fake: FakeProvider):
    assert Session("explore", config=settings(fake, model="openai/fake:n=3")).ask("hi").provider == "openai"


def test_fallbacks_that_cannot_be_built_are_passed_over_and_named_at_the_end(fake: FakeProvider):
    names = ["no-such-provider/x", "groq/keyless", "anthropic/fake:e=500", "openai/fake:e=401"]
    session = Session(config=settings(fake, model="anthropic/fake:e=500", fallbacks={"main": names}))

    with pytest.raises(AllModelsFailed) as caught:
        session.ask("hi")

    told = str(caught.value)
    assert told.startswith(
        "no model can answer: anthropic/fake:e=500 failed (500), again in 60 s · "
        "openai/fake:e=401 key rejected, again in 10 min · "
    )
    assert 'no-such-provider/x cannot be used (unknown model "no-such-provider/x"' in told
    assert "groq/keyless cannot be used (" in told
    assert session.history == []


def test_the_only_model_fails_as_itself(fake: FakeProvider):
    with pytest.raises(RateLimited) as caught:
        Session(config=settings(fake, model="anthropic/fake:e=429")).ask("hi")

    assert (caught.value.provider, caught.value.model) == ("anthropic", "fake:e=429")


def test_a_model_without_a_key_says_so_when_it_is_asked():
    session = Session("anthropic/claude-opus-5", config={})

    assert session.route().spec == "anthropic/claude-opus-5"
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        session.ask("hi")


def test_retries_follow_the_settings(fake: FakeProvider):
    """One retry, half a second later; the key of the settings is the same that the transport used to read."""
    config = settings(fake, model="anthropic/fake:err=0") | {"max_retries": 1}
    begun = len(fake.requests)

    with pytest.raises(Exception, match="overloaded"):
        Session(config=config).ask("hi")

    assert len(asked(fake, begun)) == 2


def test_the_cooldown_policy_follows_the_settings(fake: FakeProvider):
    model = "anthropic/fake:e=503"
    for policy, seconds in (("breaker", 15), ("fixed", 60)):
        COOLDOWNS.forget()
        config = settings(fake, model=model, fallbacks={"main": ["openai/fake:n=1"]}, cooldown={"policy": policy})
        Session(config=config).ask("hi")
        assert seconds - 5 < COOLDOWNS.left_s(model) <= seconds


def test_settings_are_those_of_the_model_that_answers(fake: FakeProvider):
    """A stand-in has its own settings, not those of the model it stands in for."""
    rows = {"fake:e=500": {"max_tokens": 1111}, "openai/fake:n=2": {"max_tokens": 2222, "reasoning_effort": "low"}}
    config = settings(
        fake, model="anthropic/fake:e=500", fallbacks={"main": ["openai/fake:n=2"]}, model_settings=rows
    )  # fmt: skip
    begun = len(fake.requests)

    session = Session(config=config)
    session.ask("hi")
    session.effort = "high"
    session.ask("hi")

    first, second, third = [body for _, _, body in fake.requests[begun:]]
    assert first["max_tokens"] == 1111
    assert (second["max_output_tokens"], second["reasoning"]["effort"]) == (2222, "low")
    assert third["reasoning"]["effort"] == "high"


def test_the_budget_stops_the_session_and_a_raised_one_lets_it_go_on(fake: FakeProvider, tmp_path: Path):
    file = tmp_path / "config.json"
    data = settings(fake, model="anthropic/fake:n=90", pricing={"anthropic/fake:n=90": PRICES})
    data["budget"] = {"session_usd": 20.0}
    file.write_text(json.dumps(data))
    session = Session(config=str(file))
    answer = session.ask("hi", max_tokens=100)
    assert answer.cost_usd == pytest.approx(0.912)
    begun = len(fake.requests)

    data["budget"] = {"session_usd": 1.0}
    file.write_text(json.dumps(data))
    with pytest.raises(BudgetExceeded):
        session.ask("hi", max_tokens=100)
    assert asked(fake, begun) == []

    data["budget"] = {"session_usd": 5.0}
    file.write_text(json.dumps(data))
    session.ask("hi", max_tokens=100)
    assert len(asked(fake, begun)) == 1


def test_the_ledger_knows_the_model_that_answered(fake: FakeProvider, home: Path):
    config = settings(
        fake,
        model="anthropic/fake:e=500",
        fallbacks={"main": ["openai/fake:n=10"]},
        pricing={"openai/fake:n=10": PRICES},
    )
    session = Session(config=config)
    session.ask("hi")

    (line,) = [json.loads(line) for path in home.rglob("spend.jsonl") for line in path.read_text().splitlines()]
    assert (line["session"], line["spec"], line["usd"]) == (session.id, "openai/fake:n=10", pytest.approx(0.112))


def test_a_stand_in_without_a_price_is_not_asked_under_a_budget(fake: FakeProvider):
    config = settings(
        fake,
        model="anthropic/fake:e=500",
        fallbacks={"main": ["openai/fake:n=3"]},
        pricing={"anthropic/fake:e=500": PRICES},
        budget={"session_usd": 100.0},
    )
    begun = len(fake.requests)

    with pytest.raises(AllModelsFailed, match=r"openai/fake:n=3 cannot be used \(no price is known"):
        Session(config=config).ask("hi", max_tokens=100)

    assert asked(fake, begun) == ["/v1/messages"]


def test_an_overflow_is_for_the_agent_and_not_for_the_next_model(fake: FakeProvider):
    config = settings(fake, model="anthropic/fake:e=413", fallbacks={"main": ["openai/fake:n=3"]})
    begun = len(fake.requests)

    with pytest.raises(ContextOverflow):
        Session(config=config).ask("hi")

    assert len(asked(fake, begun)) == 1


@pytest.mark.parametrize(("provider", "first_s", "longest_s"), [("anthropic", 0.5, 8.0), ("gemini", 1.0, 30.0)])
def test_a_provider_may_have_waits_of_its_own(provider: str, first_s: float, longest_s: float):
    config = Config.load({"max_retries": -1})

    policy = retry_policy(config, resolve(provider, config).route)

    assert (policy.max_retries, policy.first_s, policy.longest_s) == (0, first_s, longest_s)


def test_a_limit_in_the_settings_of_a_model_is_one_of_what_an_answer_is_expected_to_cost(fake: FakeProvider):
    """A thousand tokens of answer are $10 here, ten are 10 cents."""
    rows = {"pricing": {"anthropic/fake:n=3": PRICES}, "budget": {"session_usd": 1.0}}
    with pytest.raises(BudgetExceeded):
        Session("anthropic/fake:n=3", config=settings(fake, **rows)).ask("hi")

    limited = settings(fake, **rows, model_settings={"fake:n=3": {"max_tokens": 10}})
    assert Session("anthropic/fake:n=3", config=limited).ask("hi").text == expected("fake:n=3")


def test_what_a_stand_in_does_not_see_is_told_once_it_answers(fake: FakeProvider):
    image = Block(type="image", media_type="image/png", data="QUJD", name="fig")
    rows = {
        "fallbacks": {"main": ["openai/fake:n=3"]},
        "models": {"openai/fake:n=3": {"vision": False}, "anthropic/fake:e=429:ra=42": {"vision": True}},
    }
    session = Session(config=settings(fake, model="anthropic/fake:e=429:ra=42", **rows))

    told = [event.text for event in session.stream("see", image) if event.type == "notice"]

    assert told[1:] == ["left out for openai/fake:n=3: image fig"]
    assert session.turns[-1].notices == tuple(told)
    seen = Session("openai/fake:n=4", config=settings(fake))
    assert [event.text for event in seen.stream("see", image) if event.type == "notice"] == []
