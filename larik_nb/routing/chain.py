"""From a model or a role to what answers for it: budget(fallback(settings(retry(model))))."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from larik_nb import estimate
from larik_nb.errors import ConfigError
from larik_nb.providers import Provider, UnavailableProvider, connect, resolve
from larik_nb.routing import _config
from larik_nb.routing.budget import Budget, WithBudget, unpriced
from larik_nb.routing.cooldown import COOLDOWNS, Cooldowns
from larik_nb.routing.fallback import Candidate, Told, WithFallback
from larik_nb.routing.ledger import Ledger
from larik_nb.routing.retry import WithRetry
from larik_nb.routing.roles import MAIN, fallbacks
from larik_nb.routing.settings import NOTHING, Table, WithSettings, bare
from larik_nb.types import Effort, Message, Request, Usage

if TYPE_CHECKING:
    from larik_nb.catalog import Catalog
    from larik_nb.config import Config
    from larik_nb.providers import Resolved

EXPECTED_OUTPUT = 1_000
"""Tokens that an answer is taken to have before it is there; most turns of an agent are shorter."""


NO_SETTINGS: Table = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a conversation brings to its chains and what outlives them.

    Attributes:
        budget: What it spends.
        told: What it was told of who answers.
        effort: Returns its own effort, None where it has none.
        cooldowns: Which models failed lately.
    """

    budget: Budget
    told: Told
    effort: Callable[[], Effort | None] = lambda: None
    cooldowns: Cooldowns = COOLDOWNS

    @classmethod
    def of(cls, session: str, config: Config, effort: Callable[[], Effort | None] = lambda: None) -> Surroundings:
        """Return those of a new conversation, which the ledger knows as `session`."""
        budget = Budget(Ledger(_config.ledger_path(config)), session)
        return cls(budget=budget, told=Told(), effort=effort)


def chain(wanted: str | None, config: Config, around: Surroundings) -> WithBudget:
    """Return what answers for a model or a role, its fallbacks behind it; each is built when it is needed.

    Args:
        wanted: A role, or what `resolve` takes; None: the main model.
        config: The settings.
        around: What the conversation brings.

    Raises:
        ConfigError: There is no such model. That one cannot be built is said when it is asked.
    """
    around.budget.limits = _config.budget_limits(config)
    first = resolve(wanted, config)
    others = fallbacks(wanted or MAIN, first.spec, config)
    fallback: WithFallback

    def built(resolved: Resolved) -> Provider:
        return _built(resolved, config, around, lambda: fallback.has_alternative(resolved.spec))

    candidates = [_candidate(first, built), *_others(others, first.spec, config, around, built)]
    fallback = WithFallback(
        candidates, cooldowns=around.cooldowns, policy=_config.cooldown_policy(config), told=around.told
    )  # fmt: skip
    prices = CatalogPrices(config.catalog, first.provider, first.model, _config.model_settings(config))
    return WithBudget(fallback, budget=around.budget, prices=prices, spec=first.spec)


def _built(resolved: Resolved, config: Config, around: Surroundings, alternative: Callable[[], bool]) -> Provider:
    model = connect(resolved.spec, config=config)
    if isinstance(model, UnavailableProvider):
        return model
    retried = WithRetry(model, policy=_config.retry_policy(config, resolved.route), alternative=alternative)
    return WithSettings(retried, settings=lambda: _config.model_settings(config), effort=around.effort)


def _candidate(resolved: Resolved, built: Callable[[Resolved], Provider]) -> Candidate:
    return Candidate(spec=resolved.spec, model=resolved.model, build=lambda: built(resolved))


def _others(
    names: Sequence[str], first: str, config: Config, around: Surroundings, built: Callable[[Resolved], Provider]
) -> Iterator[Candidate]:
    """Yield the candidates after the first, each model once; those of a name nobody knows fail when they are due."""
    seen = {first}
    for name in names:
        try:
            resolved = resolve(name, config)
        except ConfigError as error:
            yield _refusing(name, error)
            continue
        if resolved.spec in seen:
            continue
        seen.add(resolved.spec)
        yield (
            _candidate(resolved, built)
            if _affordable(resolved, config, around)
            else _refusing(resolved.spec, unpriced(resolved.spec))
        )


def _affordable(resolved: Resolved, config: Config, around: Surroundings) -> bool:
    """Return whether the model may be asked at all: one of unknown price may not where there is a limit."""
    limits = around.budget.limits
    if limits.session_usd is None or limits.allow_unpriced:
        return True
    return config.catalog.cost(Usage(input=1, output=1), resolved.provider, resolved.model) is not None


def _refusing(spec: str, error: ConfigError) -> Candidate:
    provider = UnavailableProvider(spec, error)
    return Candidate(spec=spec, model=spec.partition("/")[2], build=lambda: provider)


def expected_output(model: str, settings: Table, asked: int | None = None) -> int:
    """Return the tokens that an answer is taken to have: no more than `asked`, else what is set for the model, allows."""
    limit = asked or settings.get(bare(model), NOTHING).max_tokens
    return min(limit or EXPECTED_OUTPUT, EXPECTED_OUTPUT)


class CatalogPrices:
    """What requests cost by the catalog (`budget.Prices`).

    Args:
        catalog: Knows the prices.
        provider: The route that is asked first.
        model: The model that is.
        settings: What is set for each model, by bare names: a limit there is one of the answer's too.
    """

    def __init__(self, catalog: Catalog, provider: str, model: str, settings: Table = NO_SETTINGS) -> None:
        self._settings = settings
        self._catalog = catalog
        self._provider = provider
        self._model = model

    def expected(self, request: Request) -> float | None:
        """Return what the request is likely to cost at the model that is asked first."""
        output = expected_output(self._model, self._settings, request.max_tokens)
        return self._cost(Usage(input=estimate.request_tokens(request), output=output))

    def of(self, message: Message) -> float | None:
        """Return what an answer cost, by the model that gave it."""
        provider, model = message.provider or self._provider, message.model or self._model
        return self._catalog.cost(message.usage, provider, model)

    def cut_off(self, request: Request, heard: str) -> float | None:
        """Return what the request is likely to have cost though only `heard` was waited for."""
        return self._cost(Usage(input=estimate.request_tokens(request), output=estimate.text_tokens(heard)))

    def _cost(self, usage: Usage) -> float | None:
        return self._catalog.cost(usage, self._provider, self._model)
