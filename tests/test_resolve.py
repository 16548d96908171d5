"""From what a person writes to one model of one provider, and where its key comes from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from larik_nb import providers
from larik_nb.config import Config
from larik_nb.errors import ConfigError
from larik_nb.providers import UnavailableProvider, _resolve, connect, credentials, resolve
from larik_nb.providers._build import WIRES
from larik_nb.providers._presets import Quirks, host_url, names, presets, route
from larik_nb.types import Request, StreamEvent, assistant, done, user

SECRET = "sk-hush-0123456789"
PRESETS = tuple(presets().providers)
CORP = {"type": "openai-compatible", "base_url": "http://corp.example:8000/v1"}


def settings(data: Mapping[str, Any] | None = None, **env: str) -> Config:
    return Config.load(data or {}, env=env)


def spec_of(spec: str | None, data: Mapping[str, Any] | None = None, **env: str) -> str:
    return resolve(spec, settings(data, **env)).spec


def refusal(spec: str | None, data: Mapping[str, Any] | None = None, **env: str) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve(spec, settings(data, **env))
    return str(caught.value)


# -- presets --------------------------------------------------------------------------------------------------------


def test_presets_hold_together() -> None:
    """Aliases, order, conventions and wire formats name what exists; no name means two things."""
    data = presets()
    known = set(data.providers)
    assert set(data.aliases.values()) | set(data.order) <= known
    assert {owner for _, owner in data.conventions if owner} <= known
    assert {row["wire"] for row in data.providers.values()} == set(WIRES)
    assert not known & (set(data.aliases) | set(data.retired))


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_resolves_and_can_be_connected(name: str) -> None:
    """With a key where one is needed, any host takes a model with slashes and comes back as itself."""
    config = settings({"providers": {name: {"api_key": SECRET}}})
    address = None if route(name, config).base_url or name in ("local", "scripted") else "http://host.example/v1"  # type: ignore[union-attr]
    found = resolve(f"{name.upper()}/Some/Model:x", config, base_url=address)
    assert (found.provider, found.model) == (name, "Some/Model:x")
    assert found.quirks == Quirks(**presets().providers[name].get("quirks", {}))


@pytest.mark.parametrize("name", [name for name in PRESETS if "default_model" in presets().providers[name]])
def test_a_provider_alone_means_its_default_model(name: str) -> None:
    found = resolve(name, settings())
    assert found.model == presets().providers[name]["default_model"]
    assert resolve(found.spec, settings()).spec == found.spec


@pytest.mark.parametrize("name", ["anthropic", "openai", "gemini", "xai", "deepseek", "moonshot", "zai", "mistral"])
def test_a_vendors_default_model_is_in_the_catalog_and_served(name: str) -> None:
    config = settings()
    model = config.catalog.find(name, resolve(name, config).model)
    assert model is not None
    assert model.prices
    assert model.ends is None


def test_a_host_that_was_switched_off_says_so() -> None:
    assert refusal("github/gpt-4o").startswith("github: GitHub Models was switched off on 2026-07-30")
    own = {"providers": {"github": CORP}}
    assert spec_of("github/gpt-4o", own) == "github/gpt-4o"


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "full"),
    [
        ("anthropic", "anthropic/claude-opus-5"),
        ("anthropic/", "anthropic/claude-opus-5"),
        (" Anthropic / claude-opus-5 ", "anthropic/claude-opus-5"),
        ("ANTHROPIC/Claude-Opus-5", "anthropic/claude-opus-5"),
        ("anthropic/claude-of-tomorrow", "anthropic/claude-of-tomorrow"),
        ("google/gemini-3.8-flash", "gemini/gemini-3.8-flash"),
        ("x-ai/grok-4.7", "xai/grok-4.7"),
        ("openrouter/anthropic/claude-sonnet-5", "openrouter/anthropic/claude-sonnet-5"),
        ("openai/anthropic/claude-sonnet-5", "openai/anthropic/claude-sonnet-5"),
        ("huggingface/openai/gpt-oss-120b:groq", "huggingface/openai/gpt-oss-120b:groq"),
        ("claude-opus-5", "anthropic/claude-opus-5"),
        ("CLAUDE-OPUS-5", "anthropic/claude-opus-5"),
        ("claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5-20250929"),
        ("claude-of-tomorrow", "anthropic/claude-of-tomorrow"),
        ("gemini-9-neon", "gemini/gemini-9-neon"),
        ("gpt-6", "openai/gpt-6"),
        ("o3-pro", "openai/o3-pro"),
        ("o4-mini", "openai/o4-mini"),
        ("some-codex-model", "openai/some-codex-model"),
        ("grok-9", "xai/grok-9"),
        ("GLM-9", "zai/GLM-9"),
        ("kimi-k3", "moonshot/kimi-k3"),
        ("deepseek-chat", "deepseek/deepseek-chat"),
        ("mistral-large-9", "mistral/mistral-large-9"),
        ("qwen/qwen3.8-27b", "groq/qwen/qwen3.8-27b"),
        ("scripted/demo", "scripted/demo"),
    ],
)
def test_a_name_means_one_model(spec: str, full: str) -> None:
    assert spec_of(spec) == full


def test_a_model_sold_by_several_goes_to_the_one_with_a_key() -> None:
    sellers = {"models": {"sambanova/gpt-oss-120b": {}, "together/Other": {}}}
    assert spec_of("gpt-oss-120b", sellers) == "sambanova/gpt-oss-120b"
    assert spec_of("gpt-oss-120b", sellers, CEREBRAS_API_KEY="k") == "cerebras/gpt-oss-120b"


def test_a_model_of_the_users_own_is_found_by_its_bare_id() -> None:
    own = {"providers": {"corp": CORP}, "models": {"corp/Tiger": {"window": 9}}}
    assert spec_of("tiger", own) == "corp/Tiger"


@pytest.mark.parametrize(
    ("spec", "closest"),
    [
        ("claud-sonnet", "anthropic/claude-sonnet-5"),
        ("antropic/claude-opus-5", "anthropic/claude-opus-5"),
        ("openruter/a/b", "openrouter/a/b"),
        ("gpt5", "openai/gpt-5"),
        ("antropic", "anthropic"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(spec: str, closest: str) -> None:
    text = refusal(spec)
    assert text.startswith(f'unknown model "{spec}". Closest: ')
    assert closest in text.partition("Closest: ")[2].partition(". List:")[0].split(", ")
    assert text.endswith("List: %larik models")


def test_a_name_like_nothing_is_told_the_form() -> None:
    assert refusal("zzzz") == 'unknown model "zzzz". Write it as provider/model. List: %larik models'


def test_a_key_typed_as_a_model_is_not_repeated() -> None:
    for text in (refusal(SECRET), refusal(None, {"model": SECRET})):
        assert "looks like an API key" in text
        assert SECRET not in text


def test_the_default_provider_takes_any_name_only_if_it_serves_any() -> None:
    """A bare id goes to Ollama when that is the user's own; to a vendor with a fixed list it would be a slip."""
    assert spec_of("qwen3:4b", {"model": "ollama/llama3"}) == "ollama/qwen3:4b"
    assert refusal("claud-sonnet", {"model": "ollama/llama3"}).startswith("unknown model")
    assert refusal("qwen3:4b", {"model": "anthropic/claude-opus-5"}).startswith("unknown model")
    assert refusal("qwen3:4b", ANTHROPIC_API_KEY="k").startswith("unknown model")


@pytest.mark.parametrize(
    ("spec", "closest"),
    [
        ("antropic", "anthropic"),
        ("openia", "openai"),
        ("Opnerouter", "openrouter"),
        ("claude-opus-55", None),
    ],
)
def test_a_slip_is_not_sent_to_a_provider_that_takes_any_name(spec: str, closest: str | None) -> None:
    """A word near a provider's name, or one that people call models by, is answered with what it may mean."""
    ours = {"model": "ollama/llama3"}
    if closest is None:
        assert spec_of(spec, ours) == f"anthropic/{spec}"  # by its beginning; %model tells the nearest
        return
    assert closest in refusal(spec, ours).partition("Closest: ")[2].partition(". List")[0].split(", ")


@pytest.mark.parametrize("spec", ["mixtral", "llama3", "qwen3", "gemma4", "phi5", "nomic"])
def test_models_named_like_others_are_still_taken(spec: str) -> None:
    assert spec_of(spec, {"model": "ollama/llama3"}) == f"ollama/{spec}"


def test_a_local_server_has_no_default_model() -> None:
    assert refusal("ollama") == "ollama has no default model. Name one: ollama/MODEL"
    assert spec_of("ollama", {"providers": {"ollama": {"model": "qwen3"}}}) == "ollama/qwen3"


# -- nothing named ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "full"),
    [
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}, "anthropic/claude-opus-5"),
        ({"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "GROQ_API_KEY": "k"}, "openai/gpt-6.1-sol"),
        ({"GOOGLE_API_KEY": "k", "GROQ_API_KEY": "k"}, "gemini/gemini-3.8-flash"),
        ({"GROQ_API_KEY": "k"}, "groq/openai/gpt-oss-120b"),
        ({"ANTHROPIC_API_KEY": "  ", "XAI_API_KEY": "k"}, "xai/grok-4.7"),
        ({"OLLAMA_API_KEY": "k", "XAI_API_KEY": "k"}, "xai/grok-4.7"),
    ],
)
def test_the_first_provider_with_a_key_answers(env: dict[str, str], full: str) -> None:
    assert spec_of("", **env) == full


def test_the_order_is_a_setting() -> None:
    order = {"provider_order": ["Groq", "openai"]}
    assert spec_of(None, order, ANTHROPIC_API_KEY="k", GROQ_API_KEY="k") == "groq/openai/gpt-oss-120b"
    assert spec_of(None, order, ANTHROPIC_API_KEY="k") == "anthropic/claude-opus-5"
    wrong = refusal(None, {"provider_order": ["grok1"]})
    assert wrong == "provider_order in the settings given: no provider is called grok1. Did you mean groq?"


def test_a_provider_without_a_key_answers_only_where_it_was_put_into_the_order() -> None:
    ollama = {"providers": {"ollama": {"model": "qwen3"}}}
    assert spec_of(None, {**ollama, "provider_order": ["ollama"]}, OPENAI_API_KEY="k") == "ollama/qwen3"
    assert spec_of(None, ollama, OPENAI_API_KEY="k") == "openai/gpt-6.1-sol"


def test_a_provider_of_the_users_own_with_a_key_answers() -> None:
    own = {"providers": {"corp": {**CORP, "model": "tiger", "api_key_env": "CORP_KEY"}}}
    assert spec_of(None, own, CORP_KEY="k") == "corp/tiger"


def test_the_settings_model_comes_before_any_key_and_says_where_it_was_read() -> None:
    found = resolve("", settings({"model": "groq"}, ANTHROPIC_API_KEY="k"))
    assert (found.spec, found.source) == ("groq/openai/gpt-oss-120b", "model in the settings given")
    assert resolve(None, settings(LARIK_MODEL="kimi-k3")).source == "environment LARIK_MODEL"
    assert resolve(None, settings(OPENAI_API_KEY="k")).source == "environment OPENAI_API_KEY"


def test_what_is_configured_is_told_without_a_look_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_resolve, "_running", lambda _: pytest.fail("a server was looked for"))
    told = [_resolve.configured(settings(LARIK_MODEL="kimi-k3")), _resolve.configured(settings(OPENAI_API_KEY="k"))]
    assert [found and found.source for found in told] == ["environment LARIK_MODEL", "environment OPENAI_API_KEY"]
    assert _resolve.configured(settings()) is None


def test_a_wrong_model_in_the_settings_names_the_place() -> None:
    assert refusal(None, {"model": "zzzz"}).startswith('model in the settings given: unknown model "zzzz"')
    assert refusal("", LARIK_MODEL="zzzz").startswith('environment LARIK_MODEL: unknown model "zzzz"')


def test_without_anything_three_ways_are_offered() -> None:
    text = refusal(None)
    assert all(way in text for way in ("ANTHROPIC_API_KEY", "%model ollama/NAME", 'pip install "larik-nb[local]"'))


# -- addresses ------------------------------------------------------------------------------------------------------------


def test_an_address_makes_any_name_a_model_of_a_compatible_server() -> None:
    found = resolve("meta-llama/Llama-9", settings(), base_url="http://localhost:9/v1/")
    assert (found.provider, found.model) == ("openai-compatible", "meta-llama/Llama-9")
    assert (found.base_url, found.route.key_optional) == ("http://localhost:9/v1", True)


def test_an_address_moves_a_known_provider() -> None:
    found = resolve("anthropic/claude-opus-5", settings(), base_url="http://localhost:9")
    assert (found.spec, found.base_url) == ("anthropic/claude-opus-5", "http://localhost:9")


@pytest.mark.parametrize(
    "address", ["localhost:9", "ftp://x", "http://", "http://a b", "http://x:99999", "", "http://u:p@x"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="base_url in the arguments"):
        resolve("openai/x", settings(), base_url=address)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("box", "http://box:11434"),
        ("box:80", "http://box:80"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":5000", "http://127.0.0.1:5000"),
        ("http://box", "http://box:80"),
        ("https://box.example/ollama", "https://box.example:443/ollama"),
        ("[::1]:99", "http://[::1]:99"),
        ("[::1]", "http://[::1]:11434"),
    ],
)
def test_a_host_may_lack_scheme_and_port(host: str, url: str) -> None:
    assert host_url(host, 11434) == url
    assert resolve("ollama/x", settings(OLLAMA_HOST=host)).base_url == url


def test_a_variable_moves_an_address() -> None:
    assert resolve("openai", settings(OPENAI_BASE_URL="http://proxy/v1/")).base_url == "http://proxy/v1"
    assert "OPENAI_BASE_URL in the environment: is not an http" in refusal("openai", OPENAI_BASE_URL="proxy")


def test_a_provider_of_the_users_own_needs_format_and_address() -> None:
    assert "providers.corp.type in the settings given: is missing" in refusal("corp/x", {"providers": {"corp": {}}})
    wrong = {"providers": {"corp": {**CORP, "type": "openai-compatable"}}}
    assert refusal("corp/x", wrong).endswith("Did you mean openai-compatible?")
    placeless = {"providers": {"corp": {"type": "openai-compatible"}}}
    assert refusal("corp/x", placeless).startswith("providers.corp.base_url: corp needs an address")


def test_quirks_of_the_users_own_lie_over_the_presets() -> None:
    own = {"providers": {"groq": {"quirks": {"stream_options": False}}}}
    found = resolve("groq/x", settings(own))
    assert found.quirks == Quirks(max_tokens="max_completion_tokens", probe="groq", stream_options=False)
    wrong = {"providers": {"groq": {"quirks": {"stream_options": "no"}}}}
    assert refusal("groq/x", wrong).startswith("providers.groq.quirks.stream_options in the settings given")
    unknown = {"providers": {"groq": {"quirks": {"nope": 1}}}}
    assert "is no quirk known here" in refusal("groq/x", unknown)


# -- keys ---------------------------------------------------------------------------------------------------------------


def key_of(name: str, data: Mapping[str, Any] | None = None, api_key: str | None = None, **env: str) -> tuple[Any, str]:
    config = settings(data, **env)
    here = route(name, config)
    assert here is not None
    found = credentials.find(here, config, api_key=api_key)
    return found.key, found.source


def test_the_first_place_with_a_key_wins() -> None:
    own = {"providers": {"groq": {"api_key": "set", "api_key_env": "MINE"}}}
    env_only = {"providers": {"groq": {"api_key_env": "MINE"}}}
    env = {"MINE": "mine", "GROQ_API_KEY": "preset"}
    assert key_of("groq", own, "given", **env) == ("given", "the argument api_key")
    assert key_of("groq", own, **env) == ("set", "providers.groq.api_key in the settings given")
    assert key_of("groq", env_only, **env) == ("mine", "environment MINE")
    assert key_of("groq", env_only, GROQ_API_KEY=" preset\n") == ("preset", "environment GROQ_API_KEY")
    assert key_of("groq") == (None, "no key")


def test_gemini_prefers_its_own_variable() -> None:
    assert key_of("gemini", GEMINI_API_KEY="a", GOOGLE_API_KEY="b") == ("a", "environment GEMINI_API_KEY")
    assert key_of("google", GOOGLE_API_KEY="b") == ("b", "environment GOOGLE_API_KEY")


def test_settings_under_an_alias_are_the_presets() -> None:
    assert key_of("gemini", {"providers": {"google": {"api_key": "k"}}})[0] == "k"


def test_a_vendors_key_is_not_sent_to_a_provider_that_only_borrows_its_format() -> None:
    own = {"providers": {"corp": {"type": "anthropic", "base_url": "https://corp.example"}}}
    assert key_of("corp", own, ANTHROPIC_API_KEY="k") == (None, "no key")
    second = {"providers": {"second": {"type": "anthropic"}}}
    assert key_of("second", second, ANTHROPIC_API_KEY="k")[0] == "k"


@pytest.mark.parametrize("key", ["sk hush", "sk-hush\nx", "sk-hüsh", "sk-\u200bhush"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key: str) -> None:
    with pytest.raises(ConfigError, match="environment GROQ_API_KEY: the key holds characters") as caught:
        key_of("groq", GROQ_API_KEY=key)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "env", "hint"),
    [
        ("gemini", {"GOOGLE_API_KEY": "k"}, "GOOGLE_API_KEY"),
        ("gemini", {}, "GEMINI_API_KEY"),
        ("scripted", {}, None),
    ],
)
def test_a_refused_key_is_looked_for_where_it_came_from(name: str, env: dict[str, str], hint: str | None) -> None:
    config = settings(**env)
    here = route(name, config)
    assert here is not None
    assert credentials.hint(here, credentials.find(here, config)) == hint


# -- connect ------------------------------------------------------------------------------------------------------------


def events_of(provider: providers.Provider, request: Request) -> list[StreamEvent]:
    async def collect() -> list[StreamEvent]:
        return [event async for event in provider.stream(request)]

    return asyncio.run(collect())


ASK = Request(model="", messages=(user("hi"),))


def test_a_missing_key_is_said_at_each_call_and_not_before() -> None:
    provider = connect("anthropic", config=settings())
    assert isinstance(provider, UnavailableProvider)
    assert provider.name == "anthropic"
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            events_of(provider, ASK)
        assert str(caught.value) == (
            "no key for anthropic. Type it in: %larik keys add anthropic, or set ANTHROPIC_API_KEY, in a notebook by:  "
            'os.environ["ANTHROPIC_API_KEY"] = "…"'
        )


def test_a_model_without_a_key_keeps_its_full_name() -> None:
    """Window and price are known by it."""
    provider = connect("openai/gpt-6-sol", config=settings())
    assert isinstance(provider, UnavailableProvider)
    assert (provider.name, provider.model, provider.spec) == ("openai", "gpt-6-sol", "openai/gpt-6-sol")
    assert provider.error.reason == "no key: set OPENAI_API_KEY"


def test_a_variable_named_for_the_key_must_hold_one() -> None:
    """An address of one's own needs no key, unless the settings say where it is."""
    named = {"providers": {"corp": {**CORP, "model": "tiger", "api_key_env": "CORP_KEY"}}}
    without = connect("corp", config=settings(named))
    assert isinstance(without, UnavailableProvider)
    assert without.error.reason == "no key: set CORP_KEY"
    assert not isinstance(connect("corp", config=settings(named, CORP_KEY="k")), UnavailableProvider)
    assert not isinstance(connect("corp", api_key="k", config=settings(named)), UnavailableProvider)
    open_door = {"providers": {"corp": {**CORP, "model": "tiger"}}}
    assert not isinstance(connect("corp", config=settings(open_door)), UnavailableProvider)


@pytest.mark.parametrize("name", ["anthropic", "openai", "gemini", "ollama", "groq", "local", "scripted"])
def test_every_wire_can_be_built(name: str) -> None:
    provider = connect(f"{name}/demo", api_key="k", config=settings())
    assert not isinstance(provider, UnavailableProvider)
    assert provider.name == name


def test_an_own_address_needs_no_key() -> None:
    provider = connect("anthropic/x", base_url="http://127.0.0.1:9", config=settings())
    assert not isinstance(provider, UnavailableProvider)


def test_a_wrong_name_or_setting_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="unknown model"):
        connect("zzzz", config=settings())
    with pytest.raises(ConfigError, match="efort in the arguments: is no setting of a model"):
        connect("scripted/demo", config=settings(), efort="low")


def test_the_demo_answers_from_the_box() -> None:
    last = events_of(connect("scripted", config=settings()), ASK)[-1]
    assert last.type == "done"
    assert last.message is not None
    assert last.message.text


def test_what_a_request_leaves_open_is_filled() -> None:
    """The settings of `connect` fill empty fields only; the full name becomes the id that the wire knows."""
    seen: list[Request] = []

    class Spy:
        name = "groq"

        async def stream(self, request: Request) -> Any:
            seen.append(request)
            yield done(assistant("ok"))

    chosen = providers.Settings(max_retries=0, stall_timeout_s=1, effort="low", temperature=0.5, seed=7)
    provider = providers._Defaults(Spy(), resolve("groq", settings()), chosen, settings())
    for model in ("", "groq/openai/gpt-oss-120b", "other"):
        events_of(provider, replace(ASK, model=model, temperature=0.0))
    assert [request.model for request in seen] == ["openai/gpt-oss-120b", "openai/gpt-oss-120b", "other"]
    assert {(r.effort, r.temperature, r.seed, r.max_tokens) for r in seen} == {("low", 0.0, 7, None)}


def test_no_text_form_shows_a_key() -> None:
    own = {"providers": {"anthropic": {"api_key": SECRET, "headers": {"x-extra": SECRET}}}}
    config = settings(own, OPENAI_API_KEY=SECRET)
    found = resolve("anthropic", config)
    credential = credentials.find(found.route, config)
    provider = connect("anthropic", config=config, headers={"x-more": SECRET})
    chosen = providers.Settings(max_retries=0, stall_timeout_s=1, headers={"x-more": SECRET})
    assert credential.key == SECRET
    assert SECRET not in f"{found!r}{credential!r}{credential}{provider!r}{provider}{chosen!r}{config!r}"


# -- properties -----------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [*PRESETS, *presets().aliases, "claude-opus-5", "gpt-5", "corp", "github", "x", "", " ", SECRET]
)
SPECS = st.one_of(
    st.text(max_size=30),
    st.lists(WORDS | st.text(max_size=6), max_size=4).map("/".join),
)
ENVIRONMENTS = st.dictionaries(
    st.sampled_from(["ANTHROPIC_API_KEY", "GROQ_API_KEY", "HF_TOKEN", "OLLAMA_HOST", "OPENAI_BASE_URL", "LARIK_MODEL"]),
    st.just(SECRET) | SPECS,
    max_size=3,
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "model": SPECS.filter(str.strip),
        "provider_order": st.lists(WORDS.filter(str.strip), max_size=3),
        "providers": st.dictionaries(
            st.sampled_from(["corp", "ollama", "google", "github", "anthropic"]),
            st.fixed_dictionaries(
                {},
                optional={
                    "type": st.sampled_from([*WIRES, "groq", "nonsense"]),
                    "base_url": st.just("http://corp.example/v1"),
                    "model": st.just("tiger"),
                    "api_key": st.just(SECRET),
                },
            ),
            max_size=2,
        ),
    },
)


@given(SPECS, SETTINGS, ENVIRONMENTS, st.none() | st.just("http://127.0.0.1:9/v1") | st.text(max_size=12))
@example("anthropic/x", {}, {"OLLAMA_HOST": "http://["}, None)
@example("ollama/x", {}, {"OLLAMA_HOST": "http://["}, None)
@example("", {"providers": {"github": {}}}, {}, None)
@example("", {"provider_order": ["github"]}, {"GROQ_API_KEY": "k"}, None)
def test_any_text_resolves_or_is_refused(
    spec: str, data: dict[str, Any], env: dict[str, str], base_url: str | None
) -> None:
    """Only ConfigError comes out, on one line; what resolves, resolves again from its full name; no key shows."""
    config = settings(data, **env)
    shown, again = _outcome(spec, config, base_url)
    assert SECRET not in shown.replace(spec, "")
    assert "\n" not in shown
    assert again


def _outcome(spec: str, config: Config, base_url: str | None) -> tuple[str, bool]:
    try:
        found = resolve(spec, config, base_url=base_url)
    except ConfigError as exc:
        return str(exc), True
    return repr(found), resolve(found.spec, config, base_url=base_url).spec.lower() == found.spec.lower()


def test_every_name_is_known_to_itself() -> None:
    config = settings({"providers": {"corp": CORP, "google": {}}})
    assert names(config)[0] == "corp"
    for name in names(config):
        found = route(name, config)
        assert found is not None
        assert found.name == name


def test_presets_are_json_that_a_person_can_read() -> None:
    """Each preset says its keys, so that a missing one can be named."""
    path = Path(providers.__file__).with_name("presets.json")
    rows = json.loads(path.read_text("utf-8"))["providers"]
    assert all(row["keys"] or row["key_optional"] for row in rows.values())
