"""Roles: what each means, what is known of it, and the quick edits of the settings."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb.config import ROLES, BudgetConfig, Config, RoleOptions
from larik_nb.errors import ConfigError
from larik_nb.providers import connect, resolve, role_names
from larik_nb.routing import edits
from larik_nb.routing.roles import fallbacks, role, roles

KEY = "sk-hush-0123456789"
SETTINGS: dict[str, Any] = {
    "model": "anthropic/claude-opus-5",
    "roles": {"worker": "groq/openai/gpt-oss-120b", "Reviewer": "ollama/qwen3-coder"},
    "fallbacks": {"worker": ["gemini/gemini-3.8-flash"], "anthropic/Claude-opus-5": ["worker"]},
    "role_options": {"worker": {"isolation": "worktree"}},
}


def settings(**changes: Any) -> Config:
    return Config.load({**SETTINGS, **changes}, env={"GROQ_API_KEY": KEY})


# -- what a role means ------------------------------------------------------------------------------------------------
def test_a_role_stands_for_its_model() -> None:
    found = resolve("WORKER", settings())
    assert (found.spec, found.role) == ("groq/openai/gpt-oss-120b", "worker")
    assert found.source == "roles.worker in the settings given"
    assert resolve("reviewer", settings()).spec == "ollama/qwen3-coder"


@pytest.mark.parametrize("name", ["main", "smart", "explore", "compact"])
def test_a_role_that_is_not_set_is_the_main_model(name: str) -> None:
    found = resolve(name, settings())
    assert (found.spec, found.role) == ("anthropic/claude-opus-5", name)


@pytest.mark.parametrize("name", ["opus", "sonnet", "haiku"])
def test_some_names_stand_for_a_model_until_the_user_says_otherwise(name: str) -> None:
    assert resolve(name, settings()).spec.startswith("anthropic/claude-")
    assert resolve(name, settings(roles={name: "groq/x"})).spec == "groq/x"


def test_a_role_of_an_unknown_model_names_the_setting() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve("worker", settings(roles={"worker": "gropq/x"}))
    assert str(caught.value).startswith('roles.worker in the settings given: unknown model "gropq/x". Closest: groq/x')


@pytest.mark.parametrize("name", ["main", "smart"])
def test_the_main_model_cannot_be_a_role_that_means_it(name: str) -> None:
    with pytest.raises(ConfigError, match=f"the role {name} stands for the main model itself"):
        resolve(None, settings(model=name))
    assert resolve(None, settings(model="worker")).provider == "groq"


def test_a_slip_in_a_roles_name_is_told() -> None:
    with pytest.raises(ConfigError, match="Closest: explore"):
        resolve("explor", settings())


def test_a_model_at_an_address_is_no_role() -> None:
    found = resolve("worker", settings(), base_url="http://127.0.0.1:1/v1")
    assert (found.model, found.role) == ("worker", None)


def test_a_role_can_be_connected() -> None:
    assert connect("worker", config=settings()).name == "groq"


@given(
    st.dictionaries(
        st.sampled_from([*ROLES, "mine", "haiku"]), st.sampled_from(["groq/x", "ollama/y", "claude-opus-5"])
    )
)
def test_every_role_always_means_a_model(chosen: dict[str, str]) -> None:
    config = settings(roles=chosen)
    for name in role_names(config):
        assert resolve(name, config).spec.count("/") >= 1


# -- the table ----------------------------------------------------------------------------------------------------------
AT = datetime(2026, 12, 1, tzinfo=UTC)


def test_every_role_is_told_with_what_is_known_of_its_model() -> None:
    told = {row.name: row for row in roles(settings(), at=AT)}
    assert list(told) == ["main", "smart", "worker", "explore", "compact", "reviewer", "opus", "sonnet", "haiku"]
    main, smart, worker, reviewer = told["main"], told["smart"], told["worker"], told["reviewer"]
    assert (main.spec, main.is_main, main.window, main.has_key) == ("anthropic/claude-opus-5", False, 1_000_000, False)
    assert main.price is not None
    assert (main.price.input, main.price.output) == (5, 25)
    assert (smart.spec, smart.is_main) == ("anthropic/claude-opus-5", True)
    assert (worker.fallbacks, worker.options, worker.has_key) == (
        ("gemini/gemini-3.8-flash",),
        RoleOptions(isolation="worktree"),
        True,
    )
    assert (reviewer.free, reviewer.price, reviewer.has_key) == ("local", None, True)


def test_a_roles_own_fallbacks_go_before_those_of_its_model() -> None:
    config = settings()
    assert fallbacks("main", "anthropic/claude-opus-5", config) == ("worker",)
    assert fallbacks("worker", "groq/openai/gpt-oss-120b", config) == ("gemini/gemini-3.8-flash",)
    assert fallbacks("explore", "groq/x", config) == ()


def test_a_role_that_means_nothing_says_why() -> None:
    row = role("worker", settings(roles={"worker": "gropq/x"}))
    assert row.spec is None
    assert 'unknown model "gropq/x"' in row.problem


# -- quick edits --------------------------------------------------------------------------------------------------------
LINE = "worker=groq/openai/gpt-oss-120b explore= budget=5 worker.isolation=worktree worker.max_turns=30 worker.context=minimal"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"theme": 1, "roles": {"explore": "groq/x"}, "model": "anthropic/claude-opus-5"}))
    monkeypatch.setenv("LARIK_CONFIG", str(path))
    return path


def edit(line: str) -> list[str]:
    done = edits.apply(edits.parse(line.split(), Config.load()))
    return edits.diff(done.before, done.after)


def test_one_line_changes_roles_leashes_and_the_budget(file: Path) -> None:
    assert edit(LINE) == [
        'roles.explore: "groq/x" → (none)',
        'roles.worker: (none) → "groq/openai/gpt-oss-120b"',
        "budget.session_usd: (none) → 5",
        'role_options.worker.isolation: (none) → "worktree"',
        "role_options.worker.max_turns: (none) → 30",
        'role_options.worker.context: (none) → "minimal"',
    ]
    got = Config.load()
    assert got.roles == {"worker": "groq/openai/gpt-oss-120b"}
    assert got.role_options["worker"] == RoleOptions(isolation="worktree", max_turns=30, context="minimal")
    assert got.budget == BudgetConfig(session_usd=5)
    assert list(json.loads(file.read_text()))[:3] == ["theme", "roles", "model"]


def test_what_is_emptied_leaves_nothing_behind(file: Path) -> None:
    before = file.read_text()
    edit(LINE)
    edit("worker= explore=groq/x budget= worker.isolation= worker.max_turns= worker.context=")
    assert json.loads(file.read_text()) == json.loads(before)


def test_the_main_model_and_fallbacks_can_be_edited(file: Path) -> None:
    edit("main=gemini/gemini-3.8-flash worker.fallbacks=groq/x,ollama/y gemini/gemini-3.8-flash.fallbacks=groq/x")
    got = Config.load()
    assert (got.model, got.fallbacks) == (
        "gemini/gemini-3.8-flash",
        {"worker": ("groq/x", "ollama/y"), "gemini/gemini-3.8-flash": ("groq/x",)},
    )
    edit("worker.fallbacks= budget.allow_unpriced=true budget.warn_at=0.5 budget=$2.50")
    assert "worker" not in Config.load().fallbacks
    assert Config.load().budget == BudgetConfig(session_usd=2.5, warn_at=0.5, allow_unpriced=True)


def test_a_key_is_found_however_the_user_spelled_it(file: Path) -> None:
    file.write_text('{"roles": {"Worker": "groq/x"}}')
    edit("worker=groq/y")
    assert json.loads(file.read_text()) == {"roles": {"Worker": "groq/y"}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("worker", '"worker" is no edit'),
        ("=x", '"=x" is no edit'),
        ("worker=gropq/x", r'worker: unknown model "gropq/x"\. Closest: groq/x'),
        ("worker=smart", "worker: smart is a role itself"),
        ("woker=groq/x", r"there is no role woker\. Did you mean worker\?"),
        ("reviewer=", r"there is no role reviewer\. Roles: main"),
        ("worker.isolaton=worktree", r"worker\.isolaton: is no option\. Did you mean isolation\?"),
        ("worker.isolation=worktre", r"role_options\.worker\.isolation in .*must be one of worktree"),
        ("worker.max_turns=many", r"worker\.max_turns: must be a number"),
        ("worker.max_turns=0", r"role_options\.worker\.max_turns in .*must be more than 0"),
        ("budget=cheap", "budget: must be a number"),
        ("budget=NaN", "budget: must be a number"),
        ("budget=-1", r"budget\.session_usd in .*must not be less than 0"),
        ("budget.session=1", r"budget\.session: is no option\. Did you mean session_usd"),
        ("worker.fallbacks=groq/x,gropq/y", r'worker\.fallbacks: unknown model "gropq/y"'),
        ("new role=groq/x", "is no edit"),
    ],
)
def test_a_wrong_edit_changes_nothing(file: Path, line: str, message: str) -> None:
    before = file.read_text()
    with pytest.raises(ConfigError, match=message):
        edit(f"budget=9 {line}")
    assert file.read_text() == before


def test_a_role_of_ones_own_is_made_by_naming_a_model(file: Path) -> None:
    edit("reviewer=groq/x")
    assert resolve("reviewer", Config.load()).spec == "groq/x"
    assert json.loads(file.read_text())["roles"]["reviewer"] == "groq/x"


def test_a_diff_shows_no_key() -> None:
    before = {"providers": {"x": {"api_key": KEY, "base_url": "http://a"}}}
    after = {"providers": {"x": {"api_key": f"{KEY}2"}}, "roles": {}}
    lines = edits.diff(before, after)
    assert lines == ["providers.x.api_key: *** → ***", "providers.x.base_url: *** → (none)", "roles: (none) → {}"]


@given(
    st.lists(
        st.tuples(st.sampled_from([("a",), ("b", "c"), ("b", "d"), ("e", "f", "g")]), st.none() | st.integers(0, 3)),
        max_size=8,
    )
)
def test_changes_are_what_the_last_of_each_says(steps: list[tuple[tuple[str, ...], int | None]]) -> None:
    after = edits.changed({}, [edits.Change(path, value) for path, value in steps])
    assert dict(edits._leaves(after)) == {path: value for path, value in dict(steps).items() if value is not None}
