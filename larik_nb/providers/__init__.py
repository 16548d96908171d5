"""Named services that stream a model's answer, and how a name becomes one of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Protocol, runtime_checkable

from larik_nb._imports import collector_paused
from larik_nb.config import Config, Transport, check_arguments
from larik_nb.errors import ConfigError
from larik_nb.providers._build import build
from larik_nb.providers._presets import Quirks, Route
from larik_nb.providers._resolve import Resolved, resolve
from larik_nb.types import Effort, Request, StreamEvent

__all__ = ["Provider", "Quirks", "Resolved", "Route", "Settings", "UnavailableProvider", "connect", "count", "resolve"]


class Provider(Protocol):
    """Answers a request with events: any number of deltas, then exactly one done."""

    @property
    def name(self) -> str:
        """The route, stamped on messages and errors."""

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of one answer; closing the generator cancels the request.

        Raises:
            LarikError: It did not come.
        """


@runtime_checkable
class Counts(Protocol):
    """A provider that may know the tokens of a request before it answers it."""

    async def count(self, request: Request) -> int | None:
        """Return them; None where the vendor does not count beforehand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the caller of `connect` sets beside the model; None leaves the request's or the provider's own.

    Attributes:
        max_retries: Further attempts after a failure that may pass.
        stall_timeout_s: Seconds without a byte after which a request fails.
        effort: How hard to think.
        temperature: Sampling temperature.
        top_p: Nucleus sampling.
        max_tokens: Limit of the answer, thinking included.
        seed: Seed of the sampling.
        headers: Sent with each request, over the settings' own.
        transport: The library that moves the bytes.
    """

    max_retries: int
    stall_timeout_s: float
    effort: Effort | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    transport: Transport = "h11"


def connect(
    spec: str | None = None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    config: Config | Mapping[str, Any] | str | PathLike[str] | None = None,
    **settings: Any,
) -> Provider:
    """Return the provider that `spec` means, ready to stream: exactly one model, without a chain.

    A request that names no model, or this one's full name, goes to the resolved model. What the request leaves open
    is taken from `settings`.

    Args:
        spec: "provider/model", a provider, a model id, or None for the model of the settings (`resolve`).
        base_url: Address in place of the provider's.
        api_key: Key in place of the one in the settings or the environment.
        config: The settings, as `Config.load` takes them; the user's own by default.
        **settings: The fields of `Settings`.

    Returns:
        A provider. One that cannot be built (no key, say) says why at every call, not here.

    Raises:
        ConfigError: The model, a setting or the settings file cannot be used.
    """
    config = Config.load(config)
    chosen = _settings(settings, config)
    resolved = resolve(spec, config, base_url=base_url)
    try:
        with collector_paused():
            provider = build(resolved, config, api_key=api_key, settings=chosen)
    except ConfigError as exc:
        return UnavailableProvider(resolved, exc)
    return _Defaults(provider, resolved, chosen)


async def count(provider: Provider, request: Request) -> int | None:
    """Return how many tokens the prompt of `request` has, by the vendor's own count; nothing is answered or billed.

    Returns:
        The tokens; None where nobody counts, for which there is `estimate.request_tokens`.

    Raises:
        APIError: The vendor would not say.
        ConfigError: The provider could not be built.
    """
    return await provider.count(request) if isinstance(provider, Counts) else None


class UnavailableProvider:
    """Stands in for a provider that could not be built: it knows its model, and every call raises the reason."""

    def __init__(self, resolved: Resolved, error: ConfigError) -> None:
        self.name = resolved.provider
        self.model = resolved.model
        self.resolved = resolved
        self.error = error

    def __repr__(self) -> str:
        return f"<UnavailableProvider {self.resolved.spec}: {self.error}>"

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Raise the reason.

        Raises:
            ConfigError: Always.
        """
        yield self._reason()

    async def count(self, _request: Request) -> int | None:
        """Raise the reason.

        Raises:
            ConfigError: Always.
        """
        self._reason()
        return None

    def _reason(self) -> StreamEvent:
        raise self.error.with_traceback(None)


class _Defaults:
    """Fills what a request leaves open: the model's id within its provider, and the settings of `connect`."""

    def __init__(self, provider: Provider, resolved: Resolved, settings: Settings) -> None:
        self.name = provider.name
        self.model = resolved.model
        self.resolved = resolved
        self._provider = provider
        self._open = {name: value for name in _REQUEST_FIELDS if (value := getattr(settings, name)) is not None}

    def __repr__(self) -> str:
        return f"<Provider {self.resolved.spec}>"

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        return self._provider.stream(self._filled(request))

    async def count(self, request: Request) -> int | None:
        return await count(self._provider, self._filled(request))

    def _filled(self, request: Request) -> Request:
        changes = {name: value for name, value in self._open.items() if getattr(request, name) is None}
        if request.model.lower() in ("", self.resolved.spec.lower()):
            changes["model"] = self.resolved.model
        return replace(request, **changes) if changes else request


_REQUEST_FIELDS = ("effort", "temperature", "top_p", "max_tokens", "seed")


def _settings(given: Mapping[str, Any], config: Config) -> Settings:
    ours = {
        "max_retries": config.max_retries,
        "stall_timeout_s": config.network.stall_timeout_seconds,
        "transport": config.network.transport,
    }
    return Settings(**{**ours, **check_arguments(given)})
