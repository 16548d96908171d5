"""Settings: what is read from where, and what is said of what cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb import _config_file
from larik_nb.catalog import OVERRIDABLE
from larik_nb.config import BudgetConfig, Config, RoleOptions, check_arguments, config_path, schema
from larik_nb.errors import ConfigError

SECRET = "sk-hush-0123456789"

WHOLE: dict[str, Any] = {
    "model": "corp/big",
    "roles": {"Worker": "corp/small", "reviewer": "corp/big"},
    "fallbacks": {"worker": ["corp/big"], "corp/Big": ["corp/small"]},
    "role_options": {"worker": {"isolation": "worktree", "max_turns": 40, "context": "minimal"}},
    "budget": {"session_usd": 2, "warn_at": 0.5, "allow_unpriced": True},
    "model_settings": {"corp/big": {"temperature": 0.2, "seed": 7, "reasoning_effort": "low", "thinking_budget": 0}},
    "cooldown": {"policy": "breaker"},
    "providers": {
        "Corp": {
            "type": "openai-compatible",
            "base_url": "http://corp.example:8000/v1/",
            "api_key": SECRET,
            "api_key_env": "CORP_KEY",
            "api_key_command": f"echo {SECRET}",
            "api_key_ttl": "1h30m",
            "headers": {"x-team": SECRET},
            "quirks": {"stream_options": False},
            "model": "big",
            "region": "north",
        }
    },
    "provider_order": ["groq", "anthropic"],
    "models": {"corp/big": {"window": 32000, "tools": False, "efforts": ["low", "high"]}},
    "pricing": {
        "corp/big": {"input": 1, "output": 2.5},
        "x": [{"input": 1, "output": 1}, {"input": 2, "output": 2, "above": 9}],
    },
    "network": {"stall_timeout_seconds": 5, "ca_file": "/ca.pem", "transport": "aiohttp"},
    "max_retries": 1,
    "local": {"model": "small", "model_path": "/m.gguf"},
    "theme": {"dark": True},
}


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# -- where settings come from -----------------------------------------------------------------------------------------


def test_every_key_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "config.json", json.dumps(WHOLE))
    got = Config.load(path, env={})
    corp = got.providers["corp"]
    assert (got.model, got.provider_order, got.max_retries) == ("corp/big", ("groq", "anthropic"), 1)
    assert (corp.type, corp.base_url, corp.model) == ("openai-compatible", "http://corp.example:8000/v1", "big")
    assert (corp.api_key, corp.api_key_env, corp.headers) == (SECRET, "CORP_KEY", {"x-team": SECRET})
    assert corp.quirks == {"stream_options": False}
    assert (corp.api_key_command, corp.api_key_ttl) == (f"echo {SECRET}", 5400)
    assert got.roles == {"worker": "corp/small", "reviewer": "corp/big"}
    assert got.fallbacks == {"worker": ("corp/big",), "corp/big": ("corp/small",)}
    assert got.role_options == {"worker": RoleOptions(isolation="worktree", max_turns=40, context="minimal")}
    assert got.budget == BudgetConfig(session_usd=2, warn_at=0.5, allow_unpriced=True)
    assert got.model_settings["corp/big"] == {
        "temperature": 0.2,
        "seed": 7,
        "reasoning_effort": "low",
        "thinking_budget": 0,
    }
    assert got.cooldown == "breaker"
    assert (got.network.stall_timeout_seconds, got.network.ca_file, got.network.transport) == (5, "/ca.pem", "aiohttp")
    assert (got.local.model, got.local.model_path) == ("small", "/m.gguf")
    assert got.catalog.window("corp", "big") == 32000
    assert (got.source, got.model_source) == (str(path), f"model in {path}")


def test_keys_of_a_later_version_are_kept() -> None:
    got = Config.load(WHOLE, env={})
    assert got.extra == {"theme": {"dark": True}}
    assert got.providers["corp"].extra == {"region": "north"}
    assert got.notices == ()


def test_a_slip_of_the_pen_is_noted() -> None:
    got = Config.load({"modle": "x", "network": {"ca_flie": "x"}}, env={})
    assert got.extra == {"modle": "x"}
    assert sorted(got.notices) == [
        'modle in the settings given is not a setting; did you mean "model"?',
        'network.ca_flie in the settings given is not a setting; did you mean "ca_file"?',
    ]


@pytest.mark.parametrize(
    ("platform", "env", "folder"),
    [
        ("linux", {"HOME": "/h"}, "/h/.config"),
        ("linux", {"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x"),
        ("darwin", {"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/h/Library/Application Support"),
        ("win32", {"USERPROFILE": "/u"}, "/u/AppData/Roaming"),
        ("win32", {"USERPROFILE": "/u", "APPDATA": "/a"}, "/a"),
        ("linux", {}, None),
    ],
)
def test_each_platform_has_its_folder(platform: str, env: dict[str, str], folder: str | None) -> None:
    got = _config_file.config_folder(env, platform)
    assert got == (Path(folder) if folder else None)


def test_the_users_own_file_need_not_be_there(home: Path) -> None:
    assert Config.load(env={"HOME": str(home)}).model is None
    path = config_path({"HOME": str(home)})
    assert path is not None
    path.parent.mkdir(parents=True)
    write(path, '\ufeff{"model": "a/b"}')
    assert Config.load(env={"HOME": str(home)}).model == "a/b"


def test_a_file_that_was_named_has_to_be_there(tmp_path: Path) -> None:
    missing = tmp_path / "no.json"
    for load in (lambda: Config.load(missing, env={}), lambda: Config.load(env={"LARIK_CONFIG": str(missing)})):
        with pytest.raises(ConfigError, match=r"no\.json: cannot read the settings file: No such file"):
            load()


def test_the_environment_outranks_a_file_but_not_what_the_caller_hands_over(tmp_path: Path) -> None:
    file, env = tmp_path / "config.json", {"LARIK_MODEL": " c/d "}
    file.write_text('{"model": "a/b"}')
    named, handed = Config.load(file, env=env), Config.load({"model": "a/b"}, env=env)
    assert (named.model, named.model_source) == ("c/d", "environment LARIK_MODEL")
    assert (handed.model, Config.load({}, env=env).model) == ("a/b", "c/d")
    assert Config.load(file, env={}).model == "a/b"


def test_the_process_environment_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", " value ")
    got = Config.load({})
    monkeypatch.setenv("SOME_KEY", "other")
    assert got.env_value("SOME_KEY") == "value"
    assert got.env_value("EMPTY") is None


def test_a_snapshot_loads_as_itself() -> None:
    got = Config.load({}, env={})
    assert Config.load(got) is got


def test_nothing_in_a_snapshot_can_be_changed() -> None:
    got = Config.load(WHOLE, env={"A": "b"})
    for mapping in (got.providers, got.models, got.models["corp/big"], got.pricing, got.extra, got.env):
        with pytest.raises(TypeError):
            mapping["x"] = "y"  # type: ignore[index]


def test_limits_below_their_least_mean_the_usual() -> None:
    got = Config.load({"max_retries": -4, "network": {"stall_timeout_seconds": 0}}, env={})
    assert (got.max_retries, got.network.stall_timeout_seconds) == (0, 600)


# -- what cannot be used ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"model": "a/b",}', "not valid JSON at line 1, column 17"),
        ("", "not valid JSON at line 1, column 1"),
        (b'{"model": "\xff"}', "not readable as JSON text"),
        ("[" * 100_000, "not readable as JSON text"),
        ("[1]", "the settings must be a JSON object, not a list"),
        ("null", "the settings must be a JSON object, not null"),
    ],
)
def test_a_broken_file_is_named_and_left_alone(tmp_path: Path, text: str | bytes, reason: str) -> None:
    path = write(tmp_path / "config.json", text)
    before = path.read_bytes()
    with pytest.raises(ConfigError) as caught:
        Config.load(path, env={})
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": 5}, "model in the settings given: must be text, not a number"),
        ({"model": " "}, "model in the settings given: must be text, not empty text"),
        ({"max_retries": True}, "max_retries in the settings given: must be a whole number, not true or false"),
        ({"max_retries": 1.5}, "max_retries in the settings given: must be a whole number, not a number"),
        (
            {"network": {"stall_timeout_seconds": 10**400}},
            "network.stall_timeout_seconds in the settings given: must be a finite number",
        ),
        ({"provider_order": "groq"}, "provider_order in the settings given: must be a list, not text"),
        ({"provider_order": ["a", None]}, "provider_order.1 in the settings given: must be text, not null"),
        ({"network": []}, "network in the settings given: must be an object, not a list"),
        (
            {"network": {"transport": "aiohtp"}},
            "network.transport in the settings given: must be one of h11, aiohttp. Did you mean aiohttp?",
        ),
        (
            {"network": {"stall_timeout_seconds": float("nan")}},
            "network.stall_timeout_seconds in the settings given: must be a finite number",
        ),
        (
            {"providers": {"x": {"base_url": "x.example"}}},
            "providers.x.base_url in the settings given: is not an http:// or https:// address. Write it like https://host/v1",
        ),
        (
            {"providers": {"x": {"base_url": "https://me:pw@x.example"}}},
            "providers.x.base_url in the settings given: holds a user name or password. Use api_key or headers",
        ),
        ({"providers": {"a b": {}}}, "providers.a b in the settings given: a provider's name has no spaces and no /"),
        (
            {"providers": {"x": {}, "X": {}}},
            "providers.X in the settings given: is there twice; capitals make no difference in a provider's name",
        ),
        (
            {"providers": {"x": {"headers": {"a": "b\nc"}}}},
            "providers.x.headers.a in the settings given: holds characters that no HTTP header can carry",
        ),
        (
            {"roles": {"worker": "Smart"}},
            "roles.worker in the settings given: names the role smart. A role names provider/model, never another role",
        ),
        (
            {"roles": {"reviewer": "worker", "a": "b/c"}},
            "roles.reviewer in the settings given: names the role worker. A role names provider/model, never another role",
        ),
        ({"roles": {"a b": "x/y"}}, "roles.a b in the settings given: a role's name has no spaces and none of / . ="),
        ({"fallbacks": {"worker": "a/b"}}, "fallbacks.worker in the settings given: must be a list, not text"),
        (
            {"role_options": {"worker": {"isolation": "worktre"}}},
            "role_options.worker.isolation in the settings given: must be one of worktree. Did you mean worktree?",
        ),
        (
            {"role_options": {"worker": {"max_turns": 0}}},
            "role_options.worker.max_turns in the settings given: must be more than 0",
        ),
        ({"budget": {"session_usd": -1}}, "budget.session_usd in the settings given: must not be less than 0"),
        (
            {"budget": {"warn_at": 80}},
            "budget.warn_at in the settings given: must be a share above 0 and up to 1, such as 0.8",
        ),
        (
            {"model_settings": {"m": {"thinking_budget": -1}}},
            "model_settings.m.thinking_budget in the settings given: must not be less than 0",
        ),
        (
            {"cooldown": {"policy": "braker"}},
            "cooldown.policy in the settings given: must be one of fixed, breaker. Did you mean breaker?",
        ),
        (
            {"providers": {"x": {"api_key_ttl": "5 minutes"}}},
            'providers.x.api_key_ttl in the settings given: must be a time such as "5m", "1h30m" or a number of seconds',
        ),
        ({"models": {"a/b": {"window": 0}}}, "models.a/b.window in the settings given: must be more than 0"),
        (
            {"models": {"a/b": {"efforts": ["hgih"]}}},
            "models.a/b.efforts.0 in the settings given: must be one of none, minimal, low, medium, high, xhigh, max. Did you mean high?",
        ),
        (
            {"pricing": {"a/b": {"input": 1}}},
            "pricing.a/b in the settings given: lacks output. Prices are USD per million tokens",
        ),
        (
            {"pricing": {"a/b": [{"input": 1, "output": -1}]}},
            "pricing.a/b.0.output in the settings given: must not be less than 0",
        ),
        (
            {"pricing": {"a/b": {"input": 1, "output": 1, "from": "soon"}}},
            'pricing.a/b.from in the settings given: must be a day such as "2027-01-01"',
        ),
        (
            {"pricing": {"a/b": {"input": 1, "output": 1, "hours": [[4, 1]]}}},
            "pricing.a/b.hours in the settings given: must hold pairs of hours such as [1, 4]",
        ),
    ],
)
def test_a_wrong_value_is_named_by_key_and_place(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load(settings, env={})
    assert str(caught.value) == message


ONLY_THE_LOADER = ("network.stall", "providers.X", "providers.a b", "roles.", "pricing.a/b.hours")
"""What JSON Schema cannot say: names, order, numbers beyond JSON."""


@pytest.mark.parametrize("row", test_a_wrong_value_is_named_by_key_and_place.pytestmark[0].args[1])
def test_an_editor_with_the_schema_sees_the_same_mistakes(row: tuple[dict[str, Any], str]) -> None:
    settings, message = row
    if message.startswith(ONLY_THE_LOADER):
        return
    assert list(jsonschema.Draft202012Validator(schema()).iter_errors(settings)), message


def test_the_schema_takes_what_the_loader_takes() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(WHOLE, schema())


def test_the_schema_tells_what_every_key_is_for() -> None:
    missing: list[str] = []

    def walk(part: Any, path: str) -> None:
        for name, below in part.get("properties", {}).items():
            missing.extend([f"{path}{name}"] if not below.get("description") else [])
            walk(below, f"{path}{name}.")
        if isinstance(part.get("additionalProperties"), dict):
            walk(part["additionalProperties"], f"{path}*.")

    walk(schema(), "")
    assert missing == []
    assert set(schema()["properties"]) == set(WHOLE) - {"theme"}


def test_the_role_main_is_another_word_for_the_model() -> None:
    alone = Config.load({"roles": {"main": "a/b"}}, env={})
    both = Config.load({"model": "c/d", "roles": {"main": "a/b"}}, env={})
    assert (alone.model, alone.model_source) == ("a/b", "roles.main in the settings given")
    assert both.model == "c/d"


def test_each_ability_a_user_may_set_is_checked() -> None:
    """The catalog takes over exactly the keys that are checked here."""
    for key in OVERRIDABLE:
        with pytest.raises(ConfigError, match=f"models.m.{key} "):
            Config.load({"models": {"m": {key: object()}}}, env={})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"efort": "low"}, "efort in the arguments: is no setting of a model. Did you mean effort?"),
        ({"max_tokens": 0}, "max_tokens in the arguments: must be more than 0"),
        ({"temperature": "hot"}, "temperature in the arguments: must be a number, not text"),
        ({"stall_timeout_s": "5"}, "stall_timeout_s in the arguments: must be a number, not text"),
    ],
)
def test_a_wrong_argument_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_arguments(given)
    assert str(caught.value) == message


def test_arguments_left_at_none_are_not_set() -> None:
    assert check_arguments({"effort": None, "seed": 3, "max_retries": -1}) == {"seed": 3, "max_retries": 0}


# -- secrets ------------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(SECRET),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(sorted(WHOLE))


@given(st.dictionaries(KEYS, JSON, max_size=4) | JSON)
def test_settings_of_any_shape_load_or_are_refused(data: Any) -> None:
    """Nothing but ConfigError comes out, and it shows no value."""
    shown = _shown(data if isinstance(data, dict) else {"providers": data})
    assert SECRET not in shown


def _shown(settings: dict[str, Any]) -> str:
    try:
        return Config.load(settings, env={}).source
    except ConfigError as exc:
        return f"{exc}{exc!r}"


@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_what_the_schema_refuses_only_for_its_kind_the_loader_refuses_too(data: dict[str, Any]) -> None:
    """A value of the wrong JSON type never gets into a snapshot; null counts as left out."""
    data = {key: value for key, value in data.items() if value is not None}
    wrong = [
        error
        for error in jsonschema.Draft202012Validator(schema()).iter_errors(data)
        if error.validator == "type" and len(error.path) == 1
    ]
    if wrong:
        with pytest.raises(ConfigError):
            Config.load(data, env={})


@given(st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=12, max_size=40))
def test_no_text_form_of_the_settings_shows_a_secret(letters: str) -> None:
    secret = f"hush{letters}"
    provider = {
        "type": "x",
        "api_key": secret,
        "api_key_command": secret,
        "headers": {"authorization": secret},
        "token": secret,
    }
    got = Config.load({"providers": {"corp": provider}, "extra": secret}, env={"CORP_KEY": secret})
    assert secret not in f"{got}{got!r}{got.providers}{got.providers['corp']!r}{got.network}{got.local}"


@pytest.mark.parametrize(
    "url",
    ["http://bücher.example/v1", "http://x.example/é", "http://a..b/v1", f"http://{'a' * 70}.example/v1"],
)
def test_an_address_that_no_request_could_carry_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"providers\.x\.base_url in the settings given: "):
        Config.load({"providers": {"x": {"base_url": url}}}, env={})


@pytest.mark.parametrize("name", ["x\ny: z", "", "a b", "é", "x:"])
def test_a_header_that_no_request_could_carry_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="a name that no HTTP header can have"):
        Config.load({"providers": {"x": {"headers": {name: "v"}}}}, env={})
    with pytest.raises(ConfigError, match="a name that no HTTP header can have"):
        check_arguments({"headers": {name: "v"}})


def test_a_file_of_a_user_who_is_not_there_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match="cannot read the settings file"):
        Config.load("~no-such-user/config.json", env={})
