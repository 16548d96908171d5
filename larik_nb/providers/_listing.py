"""Which models a provider has now: asked of all at once, with what each list tells and the catalog knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from larik_nb import errors
from larik_nb._network import Network
from larik_nb.catalog import Price
from larik_nb.errors import ConfigError, LarikError
from larik_nb.providers import credentials
from larik_nb.providers._presets import names, route

if TYPE_CHECKING:
    from larik_nb.catalog import Model
    from larik_nb.config import Config
    from larik_nb.providers._presets import Route
    from larik_nb.providers._wire import ModelList

TIMEOUT_S = 20.0
"""For one provider, all its pages together (specification C3)."""
MOST_BYTES = 1 << 25
MOST_PAGES = 50
_LONGEST_ID = 256
"""Characters: what is longer is no model's name, and would make every row of a table as long."""
_PER_MILLION = 1_000_000
_WINDOWS = (
    "max_input_tokens",
    "inputTokenLimit",
    "context_length",
    "context_window",
    "max_context_length",
    "max_model_len",
)
_OUTPUTS = ("max_output_tokens", "outputTokenLimit", "max_completion_tokens")
_ENDS = ("retires_at", "shutdown_date", "deprecation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A model that a provider has.

    Attributes:
        provider: Its name.
        id: The model's id there.
        window: Tokens a prompt may have; None when unknown.
        max_output: Tokens an answer may have; None when unknown.
        tools: It takes tools; None when unknown.
        price: What it costs now; None when unknown.
        free: Why it costs nothing: "local", "plan"; "" when it does cost.
        ends: The last day on which it is served, where one is known.
        size_b: Its size in billions of parameters, where the list tells.
    """

    provider: str
    id: str
    window: int | None = None
    max_output: int | None = None
    tools: bool | None = None
    price: Price | None = None
    free: str = ""
    ends: date | None = None
    size_b: float | None = None

    @property
    def spec(self) -> str:
        """The name that `resolve` takes: provider/id."""
        return f"{self.provider}/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A provider's models, or why it did not tell.

    Attributes:
        provider: Its name.
        models: What it has, in its own order.
        error: One line; "" when it answered.
    """

    provider: str
    models: tuple[Listed, ...] = ()
    error: str = ""


async def listings(config: Config, wanted: Sequence[str] = (), *, timeout_s: float = TIMEOUT_S) -> tuple[Listing, ...]:
    """Ask providers for their models, all at once.

    Args:
        config: The settings.
        wanted: Providers by name; none: every one that is set up, and every server that runs here.
        timeout_s: For each.

    Returns:
        One entry per provider, in order; a server that nobody set up and that does not run is left out.

    Raises:
        ConfigError: There is no such provider, or none is set up.
    """
    chosen, guests = asked_of(config, wanted)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(listing(here, config, timeout_s)) for here in [*chosen, *guests]]
    told = [task.result() for task in asked]
    found = (*told[: len(chosen)], *(listing for listing in told[len(chosen) :] if not listing.error))
    if not found:
        remedy = "Type a key in: %larik keys add anthropic, set one such as ANTHROPIC_API_KEY, or start a local server"
        raise ConfigError("no provider is set up", remedy=remedy)
    return found


def asked_of(config: Config, wanted: Sequence[str] = ()) -> tuple[list[Route], list[Route]]:
    """Return the providers to ask: those that are wanted or set up, and the servers that may run here.

    Raises:
        ConfigError: There is no such provider.
    """
    chosen = [_named(name, config) for name in wanted] or [here for here in _routes(config) if is_set_up(here, config)]
    guests = [] if wanted else [here for here in _routes(config) if _is_guest(here) and here not in chosen]
    return chosen, guests


async def arriving(config: Config, *, timeout_s: float = TIMEOUT_S) -> AsyncGenerator[Listing, None]:
    """Ask as `listings` does, and yield each provider's answer as it comes; a guest that does not run is left out."""
    chosen, guests = asked_of(config)
    tasks = [asyncio.ensure_future(listing(here, config, timeout_s)) for here in [*chosen, *guests]]
    unasked = {here.name for here in guests}
    try:
        for next_one in asyncio.as_completed(tasks):
            told = await next_one
            if not (told.error and told.provider in unasked):
                yield told
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def is_set_up(here: Route, config: Config) -> bool:
    """Return whether the user has given the provider what it needs: a key, or an address of their own."""
    if here.in_process:
        return False
    own = here.key_optional and (here.own_address or here.name in (config.provider_order or ()))
    try:
        return own or bool(credentials.best(here, config))
    except ConfigError:  # a key that cannot be one: asking the provider tells so, and the others are asked as well
        return True


def _routes(config: Config) -> Iterator[Route]:
    return (here for name in names(config) if (here := route(name, config)) and here.base_url)


def _is_guest(here: Route) -> bool:
    """Return whether it may run on this machine though nobody said so."""
    from larik_nb.providers._probe import is_here

    return here.key_optional and is_here(here.base_url or "")


def _named(name: str, config: Config) -> Route:
    here = route(name, config)
    if here is None:
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), names(config), n=1)
        remedy = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(names(config))}"
        raise ConfigError(f"no provider is called {name}", remedy=remedy)
    return here


async def listing(here: Route, config: Config, timeout_s: float) -> Listing:
    """Ask one provider for its models; what goes wrong is told in the result."""
    try:
        async with asyncio.timeout(timeout_s):
            rows = [row async for row in _rows(here, config)]
    except TimeoutError:
        return Listing(provider=here.name, error=f"no answer within {timeout_s:g} s")
    except errors.APIError as error:
        hint = credentials.hint(here, credentials.find(here, config))
        return Listing(provider=here.name, error=error.for_provider(provider=here.name, key_hint=hint).message)
    except LarikError as error:
        return Listing(provider=here.name, error=error.message)
    models = (_listed(here, row, config) for row in rows)
    return Listing(provider=here.name, models=tuple(model for model in models if model is not None))


async def _rows(here: Route, config: Config) -> Any:
    """Yield the rows of every page."""
    from larik_nb.providers._build import adapter

    if here.in_process:
        for row in _in_process(here, config):
            yield row
        return
    speaks = adapter(here, config)
    pages = speaks.model_list
    if pages.path is None:
        raise ConfigError(f"{here.name} has no list of models", remedy="Name them as its documentation does")
    headers = {**speaks.credential(await credentials.key(here, config)), **pages.headers}
    if here.settings:
        headers |= here.settings.headers
    path: str | None = pages.path
    for _ in range(MOST_PAGES):
        data = await get(f"{here.base_url}{path}", headers, config)
        for row in _items(data):
            yield row
        path = _next(pages, data)
        if path is None:
            return


def _in_process(here: Route, config: Config) -> Iterator[dict[str, Any]]:
    return ({"id": model.id} for model in config.catalog.models if model.provider == here.name)


def _next(pages: ModelList, data: Any) -> str | None:
    from urllib.parse import quote

    if pages.after is None or not isinstance(data, dict) or data.get("has_more") is False:
        return None
    field, query = pages.after
    mark = data.get(field)
    return f"{pages.path}&{query}={quote(mark, safe='')}" if isinstance(mark, str) and mark else None


async def get(
    url: str, headers: Mapping[str, str], config: Config, body: Any = None, timeout_s: float = TIMEOUT_S
) -> Any:
    """Return the JSON that an address answers; with a body it is posted.

    Raises:
        APIError: It did not answer, or not with JSON.
    """
    from larik_nb import http

    method, content = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
    network = Network.of(config.env, config.network.ca_file)
    sent = {"accept": "application/json", "content-type": "application/json", **headers}
    async with http.request(method, url, sent, content, timeout_s, config.network.transport, network) as reply:
        text = await reply.read(MOST_BYTES)
        if reply.status >= 300:
            raise errors.classify(reply.status, reply.headers, text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise errors.BadWire("the list of models is not JSON") from None


def _items(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, whichever of the usual places it is in."""
    for place in ("data", "models"):
        if isinstance(data, dict) and isinstance(data.get(place), list):
            data = data[place]
    if not isinstance(data, list):
        raise errors.BadWire("the list of models has an unknown shape")
    return (row for row in data if isinstance(row, dict))


# -- one row ------------------------------------------------------------------------------------------------------------
def _listed(here: Route, row: Mapping[str, Any], config: Config) -> Listed | None:
    """Return the model of a row, the catalog's word before the list's; None for what is no model to talk to."""
    name = row.get("id") or row.get("name") or row.get("model")
    if not isinstance(name, str) or len(name) > _LONGEST_ID or not name.isprintable() or not _talks(row):
        return None
    model = name.removeprefix("models/")
    known = config.catalog.find(here.name, model)
    return Listed(
        provider=here.name,
        id=model,
        window=(known.window if known else None) or window(row),
        max_output=(known.max_output if known else None) or first_count(row, _OUTPUTS),
        tools=_tools(row, known),
        price=known.price(0, datetime.now(UTC)) if known and known.prices else _price(row),
        free=config.catalog.free.get(here.name, ""),
        ends=(known.ends if known else None) or _ends(row),
        size_b=_size(row),
    )


def _talks(row: Mapping[str, Any]) -> bool:
    methods = row.get("supportedGenerationMethods")
    if isinstance(methods, list) and "generateContent" not in methods:
        return False
    return (
        row.get("lifecycle") != "retired"
        and "embed" not in f"{row.get('id')} {row.get('name')} {row.get('type')}".lower()
    )


def window(row: Mapping[str, Any]) -> int | None:
    """Return the window that a row of a list tells, by any of its usual names."""
    meta = row.get("meta")
    return first_count(row, _WINDOWS) or (first_count(meta, ("n_ctx_train",)) if isinstance(meta, dict) else None)


def first_count(row: Mapping[str, Any], fields: Iterable[str]) -> int | None:
    """Return the first of the fields that holds a count."""
    values = (row.get(field) for field in fields)
    return next((value for value in values if isinstance(value, int) and value > 0 and value is not True), None)


def _tools(row: Mapping[str, Any], known: Model | None) -> bool | None:
    if known is not None and known.tools is not None:
        return known.tools
    takes = row.get("supported_parameters")
    if isinstance(takes, list):
        return "tools" in takes
    can = row.get("capabilities")
    if isinstance(can, dict):
        said = can.get("function_calling", can.get("trained_for_tool_use"))
        return said if isinstance(said, bool) else None
    return "tools" in can or "tool_use" in can if isinstance(can, list) else None


def _price(row: Mapping[str, Any]) -> Price | None:
    """Return the price in a row, which routers give per token."""
    pricing = row.get("pricing")
    try:
        given, written = float(pricing["prompt"]), float(pricing["completion"])  # type: ignore[index]
    except (TypeError, KeyError, ValueError):
        return None
    return Price(input=given * _PER_MILLION, output=written * _PER_MILLION) if given >= 0 and written >= 0 else None


def _ends(row: Mapping[str, Any]) -> date | None:
    said = next((row[field] for field in _ENDS if isinstance(row.get(field), str)), "")
    try:
        return date.fromisoformat(said[:10])
    except ValueError:
        return None


def _size(row: Mapping[str, Any]) -> float | None:
    """Return the billions of parameters that a list tells: "7.6B", "494.03M"."""
    details = row.get("details")
    said = details.get("parameter_size") if isinstance(details, dict) else None
    try:
        return float(said[:-1]) * {"B": 1.0, "M": 0.001, "T": 1000.0}[said[-1:].upper()]  # type: ignore[index]
    except (TypeError, KeyError, ValueError):
        return None
