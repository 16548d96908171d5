"""Where keys come from, in which order, how commands print them, and that no key is ever shown."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb import connect, errors, portal, stream
from larik_nb.config import Config
from larik_nb.errors import ConfigError
from larik_nb.notebook import keys
from larik_nb.providers import _key_command, credentials
from larik_nb.providers._key_command import KeyCommand
from larik_nb.providers._presets import route
from larik_nb.providers.recorded import Recorder
from larik_nb.types import Request, user
from tests._serve import Answer, Server

KEY = "sk-hush-0123456789"
ASK = Request(model="m", messages=(user("hi"),))
SAID = [
    {"choices": [{"index": 0, "delta": {"content": "hello"}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
]
ANSWER = Answer(
    headers={"content-type": "text/event-stream"},
    body=b"".join(b"data: %b\n\n" % json.dumps(line).encode() for line in SAID) + b"data: [DONE]\n\n",
)
REFUSED = Answer(status=401, body=b'{"error": {"message": "bad key", "code": "invalid_api_key"}}')


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    credentials._typed.clear()
    credentials._stored.clear()
    _key_command._commands.clear()
    yield
    credentials._typed.clear()
    credentials._stored.clear()


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A keyring that is a dictionary."""
    kept: dict[str, str] = {}
    made, its_errors = ModuleType("keyring"), ModuleType("keyring.errors")
    its_errors.KeyringError = type("KeyringError", (Exception,), {})  # type: ignore[attr-defined]
    made.get_password = lambda service, name: kept.get(f"{service}:{name}")  # type: ignore[attr-defined]
    made.set_password = lambda service, name, key: kept.update({f"{service}:{name}": key})  # type: ignore[attr-defined]
    made.errors = its_errors  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", made)
    monkeypatch.setitem(sys.modules, "keyring.errors", its_errors)
    return kept


def found(settings: dict[str, Any], env: dict[str, str] | None = None, name: str = "openai", **given: Any) -> Any:
    config = Config.load(settings, env=env or {})
    here = route(name, config)
    assert here is not None
    return credentials.best(here, config, **given)


# -- the order --------------------------------------------------------------------------------------------------------
def test_the_first_place_that_has_a_key_counts(ring: dict[str, str]) -> None:
    ring["larik-nb:openai"] = "from-keyring-01"
    credentials.type_in("openai", "typed-in-0123")
    env = {"OPENAI_API_KEY": "from-preset-012", "MINE": "from-own-env-01"}
    row = {"api_key": "from-settings-1", "api_key_command": "echo x", "api_key_env": "MINE"}
    steps: list[tuple[str, str]] = []
    got = found({"providers": {"openai": row}}, env, api_key="argument-01234")
    steps.append((got.key, got.source))
    for gone in ("api_key", "api_key_command", "api_key_env"):
        got = found({"providers": {"openai": row}}, env)
        steps.append((got.key or "a command", got.source))
        del row[gone]
    for _ in range(3):
        got = found({}, env)
        steps.append((got.key, got.source))
        env.clear() if env else credentials._typed.clear()
    assert steps == [
        ("argument-01234", "the argument api_key"),
        ("from-settings-1", "providers.openai.api_key in the settings given"),
        ("a command", "providers.openai.api_key_command in the settings given"),
        ("from-own-env-01", "environment MINE"),
        ("from-preset-012", "environment OPENAI_API_KEY"),
        ("typed-in-0123", "typed into this notebook"),
        ("from-keyring-01", "the system's keyring"),
    ]


def test_without_a_keyring_there_is_no_key(monkeypatch: pytest.MonkeyPatch, ring: dict[str, str]) -> None:
    def locked(*_: str) -> None:
        raise sys.modules["keyring.errors"].KeyringError("locked")

    monkeypatch.setattr(sys.modules["keyring"], "get_password", locked)
    monkeypatch.setattr(sys.modules["keyring"], "set_password", locked)
    assert not found({})
    assert not credentials.store("openai", KEY)
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert not found({})
    assert not credentials.store("openai", KEY)


def test_a_model_is_chosen_by_a_key_in_the_keyring(ring: dict[str, str]) -> None:
    from larik_nb.providers import resolve

    ring["larik-nb:gemini"] = KEY
    chosen = resolve(None, Config.load({}, env={}))
    assert (chosen.provider, chosen.source) == ("gemini", "the system's keyring")


def test_a_provider_with_a_command_counts_as_set_up() -> None:
    from larik_nb.providers import resolve

    chosen = resolve(None, Config.load({"providers": {"groq": {"api_key_command": "exit 1"}}}, env={}))
    assert chosen.provider == "groq"


# -- commands -----------------------------------------------------------------------------------------------------------
def command(line: str, ttl_s: float = 300.0, clock: Any = time.monotonic) -> KeyCommand:
    return KeyCommand(line, ttl_s, "providers.x.api_key_command in f.json", clock=clock)


def counting(folder: Path, then: str = "") -> str:
    """Return a command that prints another key each time it runs."""
    return f'echo . >> "{folder}/runs"; {then} echo key-number-$(wc -l < "{folder}/runs" | tr -d " ")'


def runs(folder: Path) -> int:
    return (folder / "runs").read_text().count(".")


def test_a_key_is_used_until_its_time_is_up(tmp_path: Path) -> None:
    now = [0.0]
    key = command(counting(tmp_path), 10.0, lambda: now[0])

    async def ask() -> list[str]:
        told = []
        for moment in (0.0, 9.9, 10.1, 20.0, 20.2):
            now[0] = moment
            told.append(await key.current())
        return told

    assert asyncio.run(ask()) == ["key-number-1", "key-number-1", "key-number-2", "key-number-2", "key-number-3"]


def test_many_callers_run_one_command(tmp_path: Path) -> None:
    key = command(counting(tmp_path, "sleep 0.3;"))

    async def ask() -> list[str]:
        return await asyncio.gather(*(key.current() for _ in range(20)))

    other: list[str] = []
    thread = threading.Thread(target=lambda: other.append(asyncio.run(key.current())))
    thread.start()
    assert set(asyncio.run(ask())) == {"key-number-1"}
    thread.join()
    assert (other, runs(tmp_path)) == (["key-number-1"], 1)


def test_who_waits_goes_on_when_who_runs_it_is_stopped(tmp_path: Path) -> None:
    key = command(counting(tmp_path, "sleep 0.2;"))

    async def ask() -> str:
        first = asyncio.create_task(key.current())
        await asyncio.sleep(0.05)
        second = asyncio.create_task(key.current())
        third = asyncio.create_task(key.current())
        await asyncio.sleep(0.01)
        first.cancel()
        third.cancel()
        return await second

    assert asyncio.run(ask()) == "key-number-2"


def test_a_stopped_caller_leaves_no_process(tmp_path: Path) -> None:
    key = command(f'sleep 0.4; touch "{tmp_path}/done"')

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await key.current()
        await asyncio.sleep(0.5)

    asyncio.run(ask())
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("true", "printed nothing"),
        ("echo; echo ' '", "printed nothing"),
        (f"echo {KEY}; echo two", "printed more than one line"),
        (f"echo {KEY} >&2; echo {KEY}; exit 3", "failed with status 3"),
        ("no-such-command-anywhere", "failed with status 127"),
        ("yes", "prints more than a key"),
        ("echo 'two words'", "characters that no key has"),
        ("printf '\\377\\376'", "characters that no key has"),
    ],
)
def test_a_command_that_prints_no_key_is_named_and_its_words_are_not_shown(line: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        asyncio.run(command(line).current())
    text = f"{caught.value}{caught.value!r}{''.join(traceback.format_exception(caught.value))}"
    assert text.startswith("providers.x.api_key_command in f.json: ")
    assert message in text
    assert KEY not in text.replace(line, "")


def test_a_command_has_thirty_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _key_command.TIMEOUT_S == 30
    monkeypatch.setattr(_key_command, "TIMEOUT_S", 0.2)
    begun = time.monotonic()
    with pytest.raises(ConfigError, match=r"took longer than 0\.2 s"):
        asyncio.run(command("sleep 20 & sleep 20").current())
    assert time.monotonic() - begun < 2


def test_models_that_name_the_same_command_share_its_key(tmp_path: Path) -> None:
    one, two = ({"api_key_command": counting(tmp_path)} for _ in range(2))
    config = Config.load({"providers": {"groq": one, "xai": two, "deepseek": {**one, "api_key_ttl": "1m"}}}, env={})
    got = [route(name, config) for name in ("groq", "xai", "deepseek")]
    commands = [credentials.find(here, config).command for here in got if here]
    assert commands[0] is commands[1]
    assert commands[0] is not commands[2]


def gateway(server: Server, folder: Path, *answers: Answer) -> Any:
    row = {"type": "openai-compatible", "base_url": server.url(*answers), "api_key_command": counting(folder)}
    return connect("gate/m", config={"providers": {"gate": row}})


def sent_keys(server: Server) -> list[str]:
    return [got.headers["authorization"] for got in server.received]


def test_the_key_goes_with_each_request_and_a_refused_one_is_asked_for_once_more(tmp_path: Path) -> None:
    with Server() as server:
        provider = gateway(server, tmp_path, ANSWER, REFUSED, ANSWER)
        for _ in range(2):
            assert [event.type for event in stream(provider, ASK)] == ["text_delta", "done"]
        assert sent_keys(server) == ["Bearer key-number-1", "Bearer key-number-1", "Bearer key-number-2"]


def test_a_key_that_is_refused_twice_is_an_error(tmp_path: Path) -> None:
    with Server() as server:
        provider = gateway(server, tmp_path, REFUSED)
        with pytest.raises(errors.AuthError, match="api_key_command") as caught:
            list(stream(provider, ASK))
        assert sent_keys(server) == ["Bearer key-number-1", "Bearer key-number-2"]
        assert "key-number" not in str(caught.value)


def test_a_command_that_prints_the_same_key_again_is_not_tried_again() -> None:
    with Server() as server:
        row = {"type": "openai-compatible", "base_url": server.url(REFUSED), "api_key_command": f"echo {KEY}"}
        with pytest.raises(errors.AuthError):
            list(stream(connect("gate/m", config={"providers": {"gate": row}}), ASK))
        assert len(server.received) == 1


def test_a_key_of_a_file_is_never_asked_for_twice() -> None:
    with Server() as server:
        row = {"type": "openai-compatible", "base_url": server.url(REFUSED), "api_key": KEY}
        with pytest.raises(errors.AuthError):
            list(stream(connect("gate/m", config={"providers": {"gate": row}}), ASK))
        assert len(server.received) == 1


def test_a_failing_command_fails_the_call_and_not_the_building(tmp_path: Path) -> None:
    provider = connect("groq/m", config={"providers": {"groq": {"api_key_command": "exit 4"}}})
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"providers\.groq\.api_key_command .* status 4"):
            list(stream(provider, ASK))


# -- %larik keys ------------------------------------------------------------------------------------------------------
def test_where_each_key_comes_from_is_told_and_never_the_key(ring: dict[str, str]) -> None:
    ring["larik-nb:mistral"] = KEY
    credentials.type_in("xai", f"{KEY}-typed")
    settings = {
        "providers": {
            "groq": {"api_key_command": f"echo {KEY}"},
            "corp": {"type": "openai-compatible", "base_url": "http://corp.example/v1"},
            "deepseek": {"model": "m"},
        }
    }
    config = Config.load(settings, env={"OPENAI_API_KEY": KEY})
    text, rows = keys.answer([], config, can_ask=False)
    told = dict(rows)
    assert told == {
        "provider": "key",
        "groq": "providers.groq.api_key_command in the settings given, run when it is needed",
        "corp": "none, and none is needed",
        "deepseek": 'none: Type it in: %larik keys add deepseek, or set DEEPSEEK_API_KEY, in a notebook by:  os.environ["DEEPSEEK_API_KEY"] = "…"',
        "openai": "environment OPENAI_API_KEY",
        "xai": "typed into this notebook",
        "mistral": "the system's keyring",
    }
    assert "anthropic" in text
    assert KEY not in f"{text}{rows}"


def test_a_key_can_be_typed_in(ring: dict[str, str]) -> None:
    config = Config.load({}, env={})
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return f" {KEY} "

    told, _ = keys.answer(["add", "Claude"], config, can_ask=True, ask=ask)
    assert told == "the key for anthropic is used until this process ends"
    assert (found({}, name="anthropic").key, ring) == (KEY, {})
    told, _ = keys.answer(["add", "groq", "keyring"], config, can_ask=True, ask=ask)
    assert (told, ring) == ("the key for groq is in the system's keyring", {"larik-nb:groq": KEY})
    assert keys.answer(["add", "groq"], config, can_ask=True, ask=lambda _: " ")[0] == "nothing was added"
    assert KEY not in "".join(asked)


@pytest.mark.parametrize(
    ("words", "can_ask", "message"),
    [
        (["add", "anthropic"], False, "nobody can type a key here. Set ANTHROPIC_API_KEY"),
        (["add", "nobody"], True, "no provider nobody takes a key"),
        (["add", "local"], True, "no provider local takes a key"),
        (["remove", "x"], True, "that is no way to give a key"),
        (["add"], True, "that is no way to give a key"),
    ],
)
def test_what_cannot_be_typed_in_says_why(words: list[str], can_ask: bool, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        keys.answer(words, Config.load({}, env={}), can_ask=can_ask, ask=lambda _: KEY)


# -- nothing shows a key ------------------------------------------------------------------------------------------------
SECRETS = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=14, max_size=40).map("hush1{}".format)
PLACES = st.sampled_from(["argument", "settings", "command", "environment", "typed"])


@given(SECRETS, PLACES, st.sampled_from([401, 403, 400, 500]))
def test_no_key_is_shown_wherever_it_comes_from_and_whatever_fails(secret: str, place: str, status: int) -> None:
    """Not in texts of the provider, errors, tracebacks or settings, though the server sends the key back."""
    answer = Answer(status=status, body=json.dumps({"error": {"message": f"wrong key {secret}!"}}).encode())
    with Server() as server:
        row: dict[str, Any] = {"type": "openai-compatible", "base_url": server.url(answer), "api_key_env": "MINE"}
        row |= {"settings": {"api_key": secret}, "command": {"api_key_command": f"echo {secret}"}}.get(place, {})
        credentials._typed.clear()
        if place == "typed":
            credentials.type_in("gate", secret)
        config = Config.load({"providers": {"gate": row}}, env={"MINE": secret} if place == "environment" else {})
        provider = connect("gate/m", config=config, api_key=secret if place == "argument" else None)
        with pytest.raises(errors.APIError) as caught:
            list(stream(provider, ASK))
        assert server.received[0].headers["authorization"] == f"Bearer {secret}"
    told = [provider, vars(caught.value), caught.value, config, keys.answer([], config, can_ask=False)]
    told += traceback.format_exception(caught.value)
    assert secret not in "".join(f"{item!r}{item}" for item in told)


@given(SECRETS)
def test_no_key_gets_into_a_recording(tmp_path_factory: pytest.TempPathFactory, secret: str) -> None:
    path = tmp_path_factory.mktemp("kept") / "cells.jsonl"
    with Server() as server:
        row = {"type": "openai-compatible", "base_url": server.url(ANSWER), "api_key_command": f"echo {secret}"}
        provider = connect("gate/m", config={"providers": {"gate": row}})
        list(stream(Recorder(str(path)).around(provider), ASK))
    assert secret not in path.read_text()
    assert "hello" in path.read_text()


def test_the_portal_waits_for_no_command_after_a_cell_is_stopped() -> None:
    provider = connect("groq/m", config={"providers": {"groq": {"api_key_command": "sleep 20"}}})
    reader = portal.stream(provider, ASK)
    begun = time.monotonic()
    threading.Timer(0.2, reader.close).start()  # type: ignore[attr-defined]
    assert list(reader) == []
    assert time.monotonic() - begun < 2
