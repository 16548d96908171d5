"""The models one can choose from, as a picker and the routing wizard show them: no widget, no waiting.

A `Shelf` is filled at once from the catalog; what each provider then tells of itself takes the place of the catalog's
word for it. Whoever asks the providers hands their answers in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from larik_nb.errors import ConfigError
from larik_nb.notebook import display, local_model
from larik_nb.notebook.keys import is_idle
from larik_nb.providers import credentials
from larik_nb.providers._listing import Listed, is_set_up
from larik_nb.providers._presets import names, route
from larik_nb.routing.cooldown import COOLDOWNS, Cooldowns

if TYPE_CHECKING:
    from larik_nb.catalog import Catalog, Model, Price
    from larik_nb.config import Config
    from larik_nb.providers._listing import Listing
    from larik_nb.providers._presets import Route

ABILITIES = ("vision", "tools", "thinking")
OK, NO_KEY, NOT_FETCHED = "ok", "no key", "not fetched"
_LONGEST_ID = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One model as a line: what it is called, what it can do, what it costs and whether it can be asked.

    Attributes:
        spec: "provider/model".
        window: "1M"; empty when unknown.
        price: "$2/$10", "free (plan)" or "price unknown".
        abilities: Of `ABILITIES`, those it is known to have.
        state: "ok", "cooling 38 s (rate limited)", "no key", "not fetched", or why its provider did not answer.
        is_ready: It can be asked now.
        ends: The last day on which it is served, where one is known.
    """

    spec: str
    window: str
    price: str
    abilities: tuple[str, ...]
    state: str
    is_ready: bool
    ends: str = ""

    @property
    def line(self) -> str:
        """The whole in one line."""
        last = f"until {self.ends}" if self.ends else ""
        parts = [self.spec, self.window, self.price, " ".join(self.abilities), last, self.state]
        return " · ".join(filter(None, parts))

    def to_json(self) -> dict[str, Any]:
        """Return it for the page, with `ready` for `is_ready`; what is empty is left out."""
        values = {
            "spec": self.spec,
            "window": self.window,
            "price": self.price,
            "abilities": list(self.abilities),
            "state": self.state,
            "ready": self.is_ready,
            "ends": self.ends,
        }
        return {name: value for name, value in values.items() if value not in ("", [])}


def matches(line: str, typed: str) -> bool:
    """Return whether a line has every word that was typed, in any order, capitals aside."""
    lowered = line.lower()
    return all(word in lowered for word in typed.lower().split())


class Shelf:
    """Every model there is to choose from.

    Args:
        config: The settings.
        cooldowns: Which models failed lately.
        now: The moment whose prices are wanted; UTC.

    Attributes:
        asking: Providers whose answer is waited for.
        problems: Why a provider did not tell its models, by name.
    """

    def __init__(
        self,
        config: Config,
        *,
        cooldowns: Cooldowns = COOLDOWNS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.asking: set[str] = set()
        self.problems: dict[str, str] = {}
        self._cooldowns = cooldowns
        self._now = now
        self.take_settings(config)

    def take_settings(self, config: Config) -> None:
        """Go by these settings from now on; what providers told is forgotten."""
        self._catalog: Catalog = config.catalog
        self._told: dict[str, tuple[Listed, ...]] = {}
        routes = list(self._routes(config))
        self._order = {here.name: place for place, here in enumerate(routes)}
        self._keys = {here.name: here.in_process or here.key_optional or _has_key(here, config) for here in routes}
        self._idle = [here.name for here in routes if _is_idle(here, config)]
        self._set_up = {here.name for here in routes if is_set_up(here, config)}
        self._known: dict[str, list[Listed]] = {}
        for model in self._catalog.models:
            if model.provider in self._order:
                self._known.setdefault(model.provider, []).append(self._from_catalog(model))

    def _routes(self, config: Config) -> Iterator[Route]:
        for name in names(config):
            try:
                here = route(name, config)
            except ConfigError as error:  # what the user says of one provider is wrong: the others are there
                self.problems[name] = error.message
                continue
            if here is not None:
                yield here

    def _from_catalog(self, model: Model) -> Listed:
        return Listed(
            provider=model.provider,
            id=model.id,
            window=model.window,
            max_output=model.max_output,
            tools=model.tools,
            price=model.price(0, self._now()),
            free=self._catalog.free.get(model.provider, ""),
            ends=model.ends,
        )

    # -- what providers tell ----------------------------------------------------------------------------------
    def ask(self, providers: Iterable[str]) -> None:
        """Note that providers were asked."""
        self.asking |= set(providers)

    def heard(self, listing: Listing) -> None:
        """Take what a provider told; where it told nothing the catalog's word stands."""
        self.asking.discard(listing.provider)
        if listing.error:
            self.problems[listing.provider] = listing.error
        else:
            self.problems.pop(listing.provider, None)
            self._told[listing.provider] = listing.models

    @property
    def now(self) -> datetime:
        """The moment, in UTC."""
        return self._now()

    @property
    def today(self) -> date:
        """The day, in UTC."""
        return self._now().date()

    @property
    def models(self) -> list[Listed]:
        """Every model known of, provider by provider."""
        return [model for name in self._providers() for model in self._of(name)]

    @property
    def usable(self) -> list[Listed]:
        """The models of the providers that are set up and did not fail to answer: what is chosen from."""
        names = [name for name in self._providers() if name not in self.problems]
        return [model for name in names if name in self._set_up or name in self._told for model in self._of(name)]

    def find(self, spec: str) -> Listed | None:
        """Return what is known of one model: from its provider's list, else from the catalog; None when nothing is."""
        provider, _, model = spec.partition("/")
        found = next((one for one in self._of(provider.lower()) if one.id.lower() == model.lower()), None)
        if found is not None:
            return found
        known = self._catalog.find(provider, model)
        return self._from_catalog(known) if known is not None else None

    def _of(self, provider: str) -> Sequence[Listed]:
        told: Sequence[Listed] = self._told.get(provider, ())
        return told or self._known.get(provider, ())

    def _providers(self) -> list[str]:
        have = {*self._known, *self._told}
        return sorted(have, key=lambda name: (not self._keys.get(name, False), self._order.get(name, len(self._order))))

    def providers(self) -> list[dict[str, str]]:
        """Return the providers that are set up, those that answered unasked, and how each stands: for one line."""
        shown = [name for name in self._order if name in self._set_up or name in self._told]
        shown += [name for name in self.problems if name not in shown]
        return [{"name": name, **self._standing(name)} for name in shown]

    def _standing(self, name: str) -> dict[str, str]:
        if name in self.asking:
            return {"state": "asking", "text": "asking for its models"}
        if name in self.problems:
            return {"state": "failed", "text": display.one_line(self.problems[name])}
        if name in self._told:
            count = len(self._told[name])
            return {"state": "ok", "text": f"{count} model{'s' * (count != 1)}"}
        return {"state": "ok", "text": "its models are the catalog's"}

    def without_key(self) -> list[str]:
        """Return the providers that take a key and have none: those that `%larik keys` names."""
        return self._idle

    # -- lines ------------------------------------------------------------------------------------------------
    def offers(self) -> list[Offer]:
        """Return every model as a line: those that can be asked first."""
        cooling = self.cooling()
        offers = (self.offer(model, cooling) for model in self.models if len(model.id) <= _LONGEST_ID)
        return sorted(offers, key=lambda offer: not offer.is_ready)

    def rows(self) -> list[dict[str, Any]]:
        """Return the offers as the page takes them (`Offer.to_json`)."""
        return [offer.to_json() for offer in self.offers()]

    def offer(self, model: Listed, cooling: Mapping[str, str] | None = None) -> Offer:
        """Return one model as a line."""
        known = self._catalog.find(model.provider, model.id)
        state = self.state(model.spec, cooling)
        return Offer(
            spec=model.spec,
            window=display.tokens(model.window) if model.window else "",
            price=price(model.price, model.free),
            abilities=tuple(_abilities(model, known)),
            state=state,
            is_ready=state == OK,
            ends=str(model.ends or ""),
        )

    def cooling(self) -> dict[str, str]:
        """Return the models that are left alone for now, each with how long and why."""
        return self._cooldowns.cooling()

    def state(self, spec: str, cooling: Mapping[str, str] | None = None) -> str:
        """Return whether a model can be asked: "ok", "cooling 38 s (…)", "no key", "not fetched"."""
        provider = spec.partition("/")[0].lower()
        waits = (self.cooling() if cooling is None else cooling).get(spec)
        if waits:
            return waits
        if not self._keys.get(provider, True):
            return NO_KEY
        return OK if local_model.is_here(spec) else NOT_FETCHED


def price(price: Price | None, free: str) -> str:
    """Return a price as people read it, USD per million tokens in and out: "$2/$10"."""
    if price is not None:
        return f"${price.input:g}/${price.output:g}"
    return f"free ({free})" if free else "price unknown"


def _abilities(model: Listed, known: Model | None) -> Iterator[str]:
    for word in ABILITIES:
        said = model.tools if word == "tools" else None
        if said or (said is None and known and getattr(known, word)):
            yield word


def _is_idle(here: Route, config: Config) -> bool:
    try:
        return is_idle(here, config)
    except ConfigError:  # a key that cannot be one is one that somebody gave
        return False


def _has_key(here: Route, config: Config) -> bool:
    try:
        return bool(credentials.best(here, config))
    except ConfigError:  # a key that cannot be one is none; asking the provider says so
        return False
