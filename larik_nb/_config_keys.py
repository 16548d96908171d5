"""What each key of the settings may be. Read when there are settings to check, not at every start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, get_args

from larik_nb import catalog
from larik_nb._config_checks import (
    COUNT,
    DAY,
    DURATION,
    FLAG,
    HEADERS,
    HOURS,
    NUMBER,
    OBJECT,
    POSITIVE_OR_0,
    SHARE,
    TEXT,
    WHOLE,
    WHOLE_OR_0,
    Check,
    Fields,
    Key,
    Place,
    each,
    list_of,
    one_of,
)
from larik_nb.config import (
    ROLES,
    BudgetConfig,
    Context,
    CooldownName,
    Isolation,
    LocalConfig,
    NetworkConfig,
    ProviderConfig,
    RoleOptions,
    Transport,
    check_base_url,
    stall_limit,
)
from larik_nb.types import Effort

BASE_URL = Check(
    lambda value, place: check_base_url(TEXT(value, place), key=place.key, source=place.source),
    {"type": "string", "pattern": r"^https?://[^\s/?#@]+[^\s?#@]*$"},
)

_STALL = Check(lambda value, place: stall_limit(NUMBER(value, place)), NUMBER.schema)


def _record(fields: Fields, make: Callable[..., Any]) -> Check:
    """Return the check for an object that becomes a record with its unknown keys in `extra`."""

    def read(value: Any, place: Place) -> Any:
        known, extra = fields.read(value, place)
        return make(extra=extra, **known)

    return Check(read, fields.schema)


def _row(**keys: Any) -> Mapping[str, Any]:
    return MappingProxyType(keys)


def _policy(policy: CooldownName = "fixed") -> CooldownName:
    return policy


def _known(fields: Fields, make: Callable[..., Any]) -> Check:
    """Return the check for an object of which only the known keys are used."""
    return Check(lambda value, place: make(**fields.read(value, place)[0]), fields.schema)


_PROVIDER = Fields(
    type=Key(TEXT, "Wire format it speaks, or the provider whose ways it shares."),
    base_url=Key(BASE_URL, "Its address, such as https://host/v1."),
    model=Key(TEXT, "The model that the provider's name alone means."),
    api_key=Key(TEXT, "The key itself. A variable, a command or the system's keyring keeps it out of this file."),
    api_key_env=Key(TEXT, "The environment variable that holds the key."),
    api_key_command=Key(TEXT, "A command of the shell that prints the key, as one line."),
    api_key_ttl=Key(DURATION, 'How long what the command printed is used: seconds, or "5m".'),
    headers=Key(HEADERS, "Headers sent with each request."),
    quirks=Key(OBJECT, "How the host deviates from its wire format."),
)
_NETWORK = Fields(
    stall_timeout_seconds=Key(_STALL, "Seconds without a byte after which a request fails; 0 or less: the usual 600."),
    ca_file=Key(TEXT, "PEM file of authorities to trust beside the system's."),
    transport=Key(one_of(*get_args(Transport)), "The library that moves the bytes; aiohttp needs the extra fast."),
)
_LOCAL = Fields(
    model=Key(TEXT, "Name of the local model to use; larik local list shows them."),
    model_path=Key(TEXT, "A model file of your own."),
)
_PRICE = Fields(
    ("input", "output"),
    input=Key(POSITIVE_OR_0, "USD per million prompt tokens that touched no cache."),
    output=Key(POSITIVE_OR_0, "USD per million tokens written."),
    cache_read=Key(POSITIVE_OR_0, "USD per million tokens read from a cache; as input where left out."),
    cache_write=Key(POSITIVE_OR_0, "USD per million tokens written to a cache; as input where left out."),
    request=Key(POSITIVE_OR_0, "USD for each call on top."),
    above=Key(COUNT, "The row prices calls with more prompt tokens than this."),
    **{"from": Key(DAY, "The row holds from this day (UTC) on.")},
    hours=Key(HOURS, "The row holds within these [start, end) hours of the UTC day."),
)
_ROLE_OPTIONS = Fields(
    isolation=Key(one_of(*get_args(Isolation)), "worktree: the role's subagents work in a git worktree of their own."),
    max_turns=Key(COUNT, "Turns each of them may take; 100 where left out."),
    context=Key(one_of(*get_args(Context)), "minimal: they get the project's own instructions only."),
)
_LEASH = _known(_ROLE_OPTIONS, RoleOptions)
_BUDGET = Fields(
    session_usd=Key(POSITIVE_OR_0, "USD a session may spend, subagents included."),
    warn_at=Key(SHARE, "Share of it from which you are warned, once; 0.8 where left out."),
    allow_unpriced=Key(FLAG, "Ask models of unknown price although there is a budget."),
)
_MODEL_SETTINGS = Fields(
    temperature=Key(POSITIVE_OR_0, "Sampling temperature."),
    top_p=Key(SHARE, "Nucleus sampling."),
    max_tokens=Key(COUNT, "Limit of the answer, thinking included."),
    seed=Key(WHOLE, "Seed of the sampling."),
    reasoning_effort=Key(one_of(*get_args(Effort)), "How hard to think."),
    thinking_budget=Key(WHOLE_OR_0, "Tokens for thinking; 0: none."),
)
_LEVEL = one_of(*catalog.EFFORTS)
_MODEL = Fields(
    window=Key(COUNT, "Tokens a prompt may have."),
    max_output=Key(COUNT, "Tokens an answer may have."),
    tools=Key(FLAG, "Takes function tools."),
    vision=Key(FLAG, "Reads images."),
    pdf=Key(FLAG, "Reads PDF documents."),
    thinking=Key(list_of(TEXT), "Kinds of thinking setting it takes."),
    efforts=Key(list_of(_LEVEL), "Effort levels it takes."),
    default_effort=Key(_LEVEL, "The level it uses when none is sent."),
    sampling=Key(one_of(*get_args(catalog.Sampling)), "Takes temperature and top_p."),
)
_COOLDOWN = Fields(
    policy=Key(
        one_of(*get_args(CooldownName)),
        "fixed: 1 minute, or 10 where somebody must act. breaker: 15 s, doubling to 5 minutes.",
    ),
)


def _providers(value: Any, place: Place) -> Mapping[str, ProviderConfig]:
    found: dict[str, ProviderConfig] = {}
    for name, row in OBJECT(value, place).items():
        provider = _provider(str(name), row, place.at(name))
        if provider.name in found:
            raise place.at(name).error("is there twice; capitals make no difference in a provider's name")
        found[provider.name] = provider
    return MappingProxyType(found)


def _provider(name: str, value: Any, place: Place) -> ProviderConfig:
    if not name or "/" in name or not name.isprintable() or any(char.isspace() for char in name):
        raise place.error("a provider's name has no spaces and no /")
    known, extra = _PROVIDER.read(value, place)
    return ProviderConfig(name=name.lower(), extra=extra, **known)


def _price_row(value: Any, place: Place) -> Mapping[str, Any]:
    known, extra = _PRICE.read(value, place)
    missing = [key for key in ("input", "output") if key not in known]
    if missing:
        raise place.error(f"lacks {' and '.join(missing)}", "Prices are USD per million tokens")
    return MappingProxyType({**extra, **known})


def _price_rows(value: Any, place: Place) -> tuple[Mapping[str, Any], ...]:
    if isinstance(value, list | tuple):
        return tuple(_price_row(row, place.at(index)) for index, row in enumerate(value))
    return (_price_row(value, place),)


def _role_name(name: str, place: Place) -> str:
    if not name or "/" in name or "=" in name or "." in name or not name.isprintable() or " " in name:
        raise place.error("a role's name has no spaces and none of / . =")
    return name.lower()


def _roles(value: Any, place: Place) -> Mapping[str, str]:
    specs = {_role_name(str(name), place.at(name)): TEXT(spec, place.at(name)) for name, spec in _set(value, place)}
    for name, spec in specs.items():
        if spec.lower() in {*ROLES, *specs}:
            remedy = "A role names provider/model, never another role"
            raise place.at(name).error(f"names the role {spec.lower()}", remedy)
    return MappingProxyType(specs)


def _set(value: Any, place: Place) -> list[tuple[Any, Any]]:
    """Return the entries of an object that are not null: null is as if it were not there."""
    return [(name, item) for name, item in OBJECT(value, place).items() if item is not None]


def _role_options(value: Any, place: Place) -> Mapping[str, RoleOptions]:
    return MappingProxyType(
        {_role_name(str(name), place.at(name)): _LEASH(row, place.at(name)) for name, row in _set(value, place)}
    )


def _fallbacks(value: Any, place: Place) -> Mapping[str, tuple[str, ...]]:
    specs = list_of(TEXT)
    return MappingProxyType({str(name).lower(): specs(row, place.at(name)) for name, row in _set(value, place)})


KEYS = Fields(
    model=Key(TEXT, "The model that is asked: provider/model, a model's id, or a provider."),
    roles=Key(
        Check(_roles, each(TEXT).schema),
        "The model of each role: smart, worker, explore, compact, or one of your own. Unset: the main model.",
    ),
    fallbacks=Key(
        Check(_fallbacks, each(list_of(TEXT)).schema),
        "By role or provider/model: the models to ask next when that one fails before it answers.",
    ),
    role_options=Key(
        Check(_role_options, each(_LEASH).schema),
        "The leash of each role's subagents.",
    ),
    budget=Key(_known(_BUDGET, BudgetConfig), "What a session may spend."),
    model_settings=Key(each(_known(_MODEL_SETTINGS, _row)), "By model: how it is asked, wherever it is asked."),
    cooldown=Key(_known(_COOLDOWN, _policy), "How a model that failed is left alone."),
    max_retries=Key(WHOLE, "Further attempts after a failure that may pass; 3 where left out."),
    providers=Key(
        Check(_providers, {"type": "object", "additionalProperties": _PROVIDER.schema}),
        "What differs from a built-in provider, or a provider of your own, by name.",
    ),
    provider_order=Key(list_of(TEXT), "Providers to try, in order, when no model is named."),
    models=Key(each(_known(_MODEL, _row)), "By model: limits and abilities, over the catalog's."),
    pricing=Key(
        each(Check(_price_rows, {"anyOf": [_PRICE.schema, {"type": "array", "items": _PRICE.schema}]})),
        "By model: USD per million tokens.",
    ),
    network=Key(_record(_NETWORK, NetworkConfig), "How requests travel."),
    local=Key(_record(_LOCAL, LocalConfig), "The model that runs on this machine."),
)

ARGUMENTS = Fields(
    max_retries=Key(
        Check(lambda value, place: max(0, WHOLE(value, place)), WHOLE.schema), "Further attempts after a failure."
    ),
    stall_timeout_s=Key(_STALL, "Seconds without a byte after which a request fails."),
    effort=Key(one_of(*get_args(Effort)), "How hard to think."),
    temperature=Key(NUMBER, "Sampling temperature."),
    top_p=Key(NUMBER, "Nucleus sampling."),
    max_tokens=Key(COUNT, "Limit of the answer, thinking included."),
    seed=Key(WHOLE, "Seed of the sampling."),
    headers=Key(HEADERS, "Headers sent with each request."),
)
