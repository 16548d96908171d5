"""Settings per model: put into a copy of each request, as they are when it is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from larik_nb.routing._around import Around
from larik_nb.types import Effort, Request, StreamEvent

if TYPE_CHECKING:
    from larik_nb.providers import Provider
    from larik_nb.providers._wire import Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """What the user wants of one model, wherever it is asked; None leaves it to the provider.

    Attributes:
        temperature: Sampling temperature.
        top_p: Nucleus sampling.
        max_tokens: Limit of the answer, thinking included.
        seed: Seed of the sampling.
        reasoning_effort: How hard to think.
        thinking_budget: Tokens for thinking; 0: none.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    reasoning_effort: Effort | None = None
    thinking_budget: int | None = None

    def into(self, request: Request, effort: Effort | None = None) -> Request:
        """Return the request with these settings where it leaves something open, `effort` before the model's own."""
        wanted = {**self.set(), **({"reasoning_effort": effort} if effort else {})}
        values = {_FIELDS.get(name, name): value for name, value in wanted.items()}
        changes = {name: value for name, value in values.items() if getattr(request, name) is None}
        return replace(request, **changes) if changes else request

    def set(self) -> dict[str, Any]:
        """Return the settings that are set, by name."""
        return {item.name: value for item in fields(self) if (value := getattr(self, item.name)) is not None}


_FIELDS = {"reasoning_effort": "effort"}
"""What a request calls a setting, where that differs."""

Table = Mapping[str, ModelSettings]
NOTHING = ModelSettings()


def bare(model: str) -> str:
    """Return a model's name without providers and vendors before it: "openai/gpt-5" and "gpt-5" are one."""
    return model.rpartition("/")[2].lower()


def by_name(rows: Table) -> Table:
    """Return the rows under bare names. Where several come together, the one written bare wins, else the first."""
    ordered = sorted(rows.items(), key=lambda row: "/" in row[0])
    table: dict[str, ModelSettings] = {}
    for key, settings in ordered:
        table.setdefault(bare(key), settings)
    return table


class WithSettings(Around):
    """A provider whose requests carry the settings of the model they are for.

    What the request says itself stays. The settings are looked up at each request, so a change counts from the next.

    Args:
        provider: Answers.
        settings: Returns the rows of the configuration, by model, as `by_name` makes them.
        effort: Returns the effort of this session, which goes before the model's own; None: it has none.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        settings: Callable[[], Table],
        effort: Callable[[], Effort | None] = lambda: None,
    ) -> None:
        super().__init__(provider)
        self._settings = settings
        self._effort = effort

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Stream the answer to the request with its settings."""
        return self.inner.stream(self.settled(request))

    async def count(self, request: Request) -> int | None:
        """Count the request with its settings."""
        return await super().count(self.settled(request))

    def encoded(self, request: Request) -> Wire | None:
        """Return the request with its settings as the wire format has it."""
        return super().encoded(self.settled(request))

    def wire(self, request: Request) -> Wire | None:
        """Return what would be sent for the request with its settings."""
        return super().wire(self.settled(request))

    def settled(self, request: Request) -> Request:
        """Return the request as it goes on."""
        own = self._settings().get(bare(request.model), NOTHING)
        return own.into(request, self._effort())
