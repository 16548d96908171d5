"""What is known of models: window, limits, abilities, prices. Data with a date; the file is read on first use.

The rows are in `catalog.json`, whose `about` says what they mean. `Catalog` adds the user's own rows (config keys
`models` and `pricing`); the plain functions below ask the catalog as it ships.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from larik_nb.types import Usage

UNKNOWN_WINDOW = 128_000
"""Tokens assumed to fit into a model nothing is known of (specification C1)."""

STALE_DAYS = 90
"""Days after which prices may have changed: vendors reprice every few months (specification C5)."""

Sampling = Literal["yes", "no", "effort_none"]
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

_PER_MILLION = 1_000_000
_TELLING = 3
"""Characters from which on the beginning of a name says something."""
_DATED = re.compile(r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2})|-latest)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One row of a model's prices, in USD per million tokens.

    Attributes:
        input: Of prompt tokens that touched no cache.
        output: Of tokens written, thinking included.
        cache_read: Of prompt tokens read from a cache; None: as `input`.
        cache_write: Of prompt tokens written to it; None: as `input`.
        request: USD for each call on top.
        above: The row holds for calls with more prompt tokens than this, and then prices all of the call.
        since: The row holds from this day (UTC) on.
        hours: The row holds within these [start, end) hours of the UTC day.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    request: float = 0.0
    above: int = 0
    since: date | None = None
    hours: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Price:
        """Build a price from a row of the file, where `since` is called `from`."""
        values = {key: value for key, value in row.items() if key in _PRICE_FIELDS}
        values["since"] = date.fromisoformat(row["from"]) if "from" in row else None
        values["hours"] = tuple((start, end) for start, end in row.get("hours", ()))
        return cls(**values)

    def holds(self, prompt: int, at: datetime) -> bool:
        """Return whether the row prices a call of `prompt` tokens made at `at` (UTC)."""
        return (
            (not self.above or prompt > self.above)
            and (self.since is None or at.date() >= self.since)
            and (not self.hours or any(start <= at.hour < end for start, end in self.hours))
        )

    def of(self, usage: Usage) -> float:
        """Return the USD that `usage` costs by this row."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        tokens = (
            usage.input * self.input + usage.output * self.output + usage.cache_read * read + usage.cache_write * write
        )
        return tokens / _PER_MILLION + self.request


_PRICE_FIELDS = {field.name for field in fields(Price)} - {"since", "hours"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is known of one model at one provider. None means unknown; adapters then send what was asked for.

    Attributes:
        provider: Name of the provider.
        id: The provider's id for it.
        window: Tokens a prompt may have; None when unknown (`Catalog.window` then assumes a size).
        max_output: Tokens an answer may have.
        prices: Price rows in order; the last that holds applies. Empty: unknown.
        tools: Takes function tools.
        vision: Reads images.
        pdf: Reads PDF documents.
        thinking: Kinds of thinking setting the wire takes: adaptive, enabled, disabled, between_tools (Claude),
            level, budget (Gemini), effort (others). Empty: it has none.
        thinking_on: It thinks when the request says nothing of it.
        disable_max_effort: Highest effort at which "disabled" is taken; None: at any.
        bound_thinking: Old thinking is refused once what stood before it has changed.
        efforts: Effort levels it takes, "none" included where that is one.
        default_effort: The level it uses when none is sent.
        sampling: Takes temperature and top_p: yes, no, or only at effort "none".
        sampling_api_version: API version that must be asked for to send them.
        forced_tools: Takes a tool choice that forces a call.
        prefill: Takes a conversation that ends with an assistant turn.
        refusal_fallback: The provider can hand a refused request to another model.
        tool_images: Takes images inside a tool result.
        signed_calls: Wants the signature back with each tool call of the turn.
        shared_window: Prompt and answer share the window.
        continues: A long answer arrives in several requests.
        ends: Last day on which it is served, or the first without it; the vendor's own date.
    """

    provider: str
    id: str
    window: int | None = None
    max_output: int | None = None
    prices: tuple[Price, ...] = ()
    tools: bool | None = None
    vision: bool | None = None
    pdf: bool | None = None
    thinking: tuple[str, ...] | None = None
    thinking_on: bool | None = None
    disable_max_effort: str | None = None
    bound_thinking: bool = False
    efforts: tuple[str, ...] | None = None
    default_effort: str | None = None
    sampling: Sampling | None = None
    sampling_api_version: str | None = None
    forced_tools: bool = True
    prefill: bool = True
    refusal_fallback: bool = False
    tool_images: bool | None = None
    signed_calls: bool = False
    shared_window: bool = False
    continues: bool = False
    ends: date | None = None

    @property
    def spec(self) -> str:
        """The name that `resolve` takes: provider/id."""
        return f"{self.provider}/{self.id}"

    def effort(self, wanted: str) -> str | None:
        """Return the level nearest to `wanted` that the model has, the higher of two equally near.

        Returns:
            `wanted` itself when the levels are unknown, None when the model has none.
        """
        if self.efforts is None:
            return wanted
        place = EFFORTS.index(wanted)
        return min(self.efforts, key=lambda level: _distance(level, place), default=None)

    def price(self, prompt: int, at: datetime) -> Price | None:
        """Return the row for a call of `prompt` tokens made at `at`; None when no price is known."""
        return next((row for row in reversed(self.prices) if row.holds(prompt, at)), None)


def _distance(level: str, place: int) -> tuple[int, int]:
    here = EFFORTS.index(level)
    return abs(here - place), -here


MOST_FOUND = 512
"""Models whose entries are kept at hand: names come from users and servers, of which there is no end."""

OVERRIDABLE = ("window", "max_output", "tools", "vision", "pdf", "thinking", "efforts", "default_effort", "sampling")
"""What a row of the config key `models` may say; `config` checks the values."""


class Catalog:
    """Models by provider and id, the user's rows over the shipped ones.

    Args:
        models: The shipped rows, in the file's order.
        free: Providers that cost nothing, each with the word that says why ("local", "plan").
        released: The day the rows were read.
        own: Rows of the config key `models`: "provider/id" or "id" → the fields to set.
        pricing: Rows of the config key `pricing`: "provider/id" or "id" → a price row or a list of them.
    """

    def __init__(
        self,
        models: Sequence[Model],
        *,
        free: Mapping[str, str],
        released: date,
        own: Mapping[str, Mapping[str, Any]] | None = None,
        pricing: Mapping[str, Any] | None = None,
    ) -> None:
        self.models = tuple(models)
        self.free = free
        self.date = released
        self._given = tuple(dict.fromkeys([*(own or ()), *(pricing or ())]))
        self._own = {key.lower(): _own_fields(row) for key, row in (own or {}).items()}
        self._pricing = {key.lower(): _rows(value) for key, value in (pricing or {}).items()}
        self._exact = {(model.provider, model.id.lower()): model for model in self.models}
        self._found: dict[tuple[str, str], Model | None] = {}
        self._bare: dict[str, Model] = {}
        for model in self.models:
            self._bare.setdefault(_bare(model.id), model)

    def is_stale(self, today: date) -> bool:
        """Return whether the prices were read so long ago that some will have changed."""
        return (today - self.date).days > STALE_DAYS

    def with_own(self, models: Mapping[str, Mapping[str, Any]], pricing: Mapping[str, Any]) -> Catalog:
        """Return this catalog with the user's rows over it."""
        return Catalog(self.models, free=self.free, released=self.date, own=models, pricing=pricing)

    def find(self, provider: str, model: str) -> Model | None:
        """Return what is known of a model, None when nothing is.

        An id with a date or "latest" at its end is the model without. Another provider's name for a known model
        ("anthropic/claude-…" at a router, "accounts/…/models/…" at a host) has that model's abilities and no price,
        for the host sets its own. Nothing else matches: an id that only begins like a known one is unknown.
        """
        key = (provider.lower(), model)
        try:
            return self._found[key]  # a request asks for its model half a dozen times
        except KeyError:
            found = self._find(*key)
        if len(self._found) >= MOST_FOUND:
            self._found.clear()
        self._found[key] = found
        return found

    def _find(self, provider: str, model: str) -> Model | None:
        found = self._sold(provider, model) or self._known(provider, model)
        own = self._lookup(self._own, provider, model)
        if own:
            found = replace(found or Model(provider=provider, id=model), **own)
        prices = self._lookup(self._pricing, provider, model)
        if prices is not None:
            found = replace(found or Model(provider=provider, id=model), prices=prices)
        return found

    def sellers(self, model: str) -> tuple[Model, ...]:
        """Return the entries whose id is `model` itself, dated or not: the user's own first, then in the file's order."""
        names = set(_names(model))
        rows = (key.partition("/") for key in self._given)
        own = [Model(provider=head.lower(), id=rest) for head, _, rest in rows if rest.lower() in names]
        return (*own, *(entry for entry in self.models if entry.id.lower() in names))

    def window(self, provider: str, model: str) -> int:
        """Return the tokens a prompt may have; an assumed size when that is unknown."""
        found = self.find(provider, model)
        return (found.window if found else None) or UNKNOWN_WINDOW

    def cost(self, usage: Usage | None, provider: str, model: str, *, at: datetime | None = None) -> float | None:
        """Return what an answer cost.

        Args:
            usage: Its tokens; None when unknown.
            provider: Who answered.
            model: The model that answered, as the response named it.
            at: When it was asked, for prices that change; now by default. Without a zone it is taken as UTC.

        Returns:
            USD; 0.0 for what runs on the user's own machine or plan; None when the tokens or the price are unknown.
        """
        found = self.find(provider, model)
        if usage is None:  # what costs nothing need not be counted
            return 0.0 if provider.lower() in self.free and not (found and found.prices) else None
        moment = _utc(at)
        row = found.price(usage.prompt, moment) if found else None
        if row is not None:
            return row.of(usage)
        return 0.0 if provider.lower() in self.free else None

    def nearest(self, name: str, *, limit: int = 3) -> tuple[str, ...]:
        """Return the specs that look most like `name`, best first; empty when none comes near."""
        by_form = {form: model.spec for model in self.models for form in (model.id.lower(), model.spec)}
        close = _likest(name.lower(), by_form, n=2 * limit, cutoff=0.6)
        return tuple(dict.fromkeys(by_form[form] for form in close))[:limit]

    def having(self, word: str, *, limit: int = 3) -> tuple[str, ...]:
        """Return the specs of models that people call by `word`, a word of their id: "opus" of "claude-opus-5"."""
        word = word.lower()
        found = (m.spec for m in self.models if word.isalpha() and word in _words(m.id))
        return tuple(dict.fromkeys(found))[:limit]

    def alike(self, provider: str, model: str, *, limit: int = 3) -> tuple[str, ...]:
        """Return the provider's own specs that look most like the id `model`, best first; itself is none of them."""
        name, provider = model.lower(), provider.lower()
        ids = {m.id.lower(): m.spec for m in self.models if m.provider == provider and m.id.lower() != name}
        return tuple(ids[close] for close in _likest(name, ids, n=limit, cutoff=0.7))

    def _sold(self, provider: str, model: str) -> Model | None:
        return next((hit for name in _names(model) if (hit := self._exact.get((provider, name)))), None)

    def _known(self, provider: str, model: str) -> Model | None:
        hit = next((hit for name in _names(model) if (hit := self._bare.get(_bare(name)))), None)
        return replace(hit, provider=provider, id=model, prices=(), ends=None) if hit else None

    @staticmethod
    def _lookup(rows: Mapping[str, Any], provider: str, model: str) -> Any:
        names = _names(model)
        keys = [f"{provider}/{name}" for name in names] + list(names)
        return next((rows[key] for key in keys if key in rows), None)


def _names(model: str) -> tuple[str, ...]:
    """Return the forms under which an id may be listed: itself, and without its date."""
    name = model.lower().removeprefix("models/")
    undated = _DATED.sub("", name)
    return (name,) if undated == name else (name, undated)


def _bare(model: str) -> str:
    """Return an id without the vendor before it and the variant after it, dots as dashes, as routers vary them."""
    return model.lower().rpartition("/")[2].partition(":")[0].replace(".", "-")


def _words(model: str) -> list[str]:
    return re.findall(r"[a-z]{3,}", model.lower())


def _likest(name: str, known: Iterable[str], *, n: int, cutoff: float) -> list[str]:
    """Return what looks most like `name`, best first; before all others what only says more: "gpt-6-sol" of "gpt-6"."""
    from difflib import SequenceMatcher, get_close_matches

    known = list(known)
    longer = [form for form in known if len(name) >= _TELLING and re.match(rf"{re.escape(name)}[-.:@]", form)]
    longer.sort(key=lambda form: (form[len(name)] == ".", -SequenceMatcher(None, form, name).ratio()))
    return list(dict.fromkeys([*longer, *get_close_matches(name, known, n=n, cutoff=cutoff)]))[:n]


def _utc(at: datetime | None) -> datetime:
    if at is None:
        return datetime.now(UTC)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _rows(value: Any) -> tuple[Price, ...]:
    return tuple(map(Price.from_dict, [value] if isinstance(value, Mapping) else value))


def _own_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _frozen(value) for key, value in row.items() if key in OVERRIDABLE}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _model(row: dict[str, Any], abilities: Mapping[str, Mapping[str, Any]]) -> Model:
    values = {key: _frozen(value) for key, value in {**abilities[row.pop("abilities")], **row}.items()}
    values["prices"] = _rows(row.get("prices", ()))
    values["ends"] = date.fromisoformat(row["ends"]) if "ends" in row else None
    return Model(**values)


@cache
def shipped() -> Catalog:
    """Return the catalog of this release."""
    import json

    data = json.loads(Path(__file__).with_name("catalog.json").read_bytes())
    models = [_model(row, data["abilities"]) for row in data["models"]]
    return Catalog(models, free=data["free"], released=date.fromisoformat(data["date"]))


def find(provider: str, model: str) -> Model | None:
    """Return what the shipped catalog knows of a model (`Catalog.find`)."""
    return shipped().find(provider, model)


def window(provider: str, model: str) -> int:
    """Return the tokens a prompt may have (`Catalog.window`)."""
    return shipped().window(provider, model)


def cost(usage: Usage | None, provider: str, model: str, *, at: datetime | None = None) -> float | None:
    """Return what an answer cost by the shipped prices (`Catalog.cost`)."""
    return shipped().cost(usage, provider, model, at=at)


def nearest(name: str, *, limit: int = 3) -> tuple[str, ...]:
    """Return the specs that look most like `name` (`Catalog.nearest`)."""
    return shipped().nearest(name, limit=limit)
