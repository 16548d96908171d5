"""From a resolved model to its provider: a table wire format → adapter, each imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from larik_nb.errors import ConfigError
from larik_nb.providers import credentials

if TYPE_CHECKING:
    from larik_nb.catalog import Model
    from larik_nb.config import Config
    from larik_nb.providers import Provider, Settings
    from larik_nb.providers._presets import Route
    from larik_nb.providers._resolve import Resolved
    from larik_nb.providers._wire import Adapter

    Abilities = Callable[[str], Model | None]


def build(resolved: Resolved, config: Config, *, api_key: str | None, settings: Settings) -> Provider:
    """Return the provider for one model.

    Raises:
        ConfigError: There is no key for it, or no such script.
    """
    if resolved.wire in _IN_PROCESS:
        return _IN_PROCESS[resolved.wire](resolved)
    return _wired(resolved, config, api_key, settings)


def _wired(resolved: Resolved, config: Config, api_key: str | None, settings: Settings) -> Provider:
    from larik_nb._network import Network
    from larik_nb.providers._wire import WireProvider

    credential = credentials.best(resolved.route, config, api_key=api_key)
    if not credential and not resolved.route.key_optional:
        raise credentials.missing(resolved.route)
    speaks = adapter(resolved.route, config)
    return WireProvider(
        speaks,
        name=resolved.provider,
        base_url=resolved.base_url or "",
        headers={
            **({} if credential.command else speaks.credential(credential.key)),
            **resolved.headers,
            **settings.headers,
        },
        stall_timeout_s=settings.stall_timeout_s,
        key_hint=credentials.hint(resolved.route, credential),
        transport=settings.transport,
        network=Network.of(config.env, config.network.ca_file),
        key_command=credential.command,
        **_probing(resolved.route, config),
    )


def _probing(here: Route, config: Config) -> dict[str, Any]:
    """Return how the window in force is known at a server that has words for it; at all others nothing is asked."""
    if not here.quirks.probe and here.wire != "ollama":
        return {}
    from larik_nb.providers import _probe

    async def look(model: str) -> None:
        if _probe.known(here, model) == _probe.NOTHING:
            await _probe.probe(here, model, config)

    return {"look": look, "window": lambda model: _probe.known(here, model).limit} if _probe.is_own(here) else {}


def adapter(here: Route, config: Config) -> Adapter:
    """Return the translation of a provider's wire format."""
    return _ADAPTERS[here.wire](here, partial(config.catalog.find, here.name))


def _anthropic(here: Route, abilities: Abilities) -> Adapter:
    from larik_nb.providers.anthropic import Anthropic

    return Anthropic(provider=here.name, abilities=abilities)


def _openai(here: Route, abilities: Abilities) -> Adapter:
    from larik_nb.providers.openai import OpenAI

    return OpenAI(provider=here.name, abilities=abilities)


def _gemini(here: Route, abilities: Abilities) -> Adapter:
    from larik_nb.providers.gemini import Gemini

    return Gemini(provider=here.name, abilities=abilities)


def _ollama(here: Route, abilities: Abilities) -> Adapter:
    from larik_nb.providers.ollama import Ollama

    return Ollama(provider=here.name, abilities=abilities, probed=partial(_probed, here))


def _probed(here: Route, model: str) -> int | None:
    from larik_nb.providers import _probe

    return _probe.known(here, model).limit


def _compatible(here: Route, abilities: Abilities) -> Adapter:
    from larik_nb.providers.openai_compatible import OpenAICompatible

    return OpenAICompatible(provider=here.name, quirks=here.quirks, abilities=abilities)


def _local(resolved: Resolved) -> Provider:
    from larik_nb.providers.local import LocalProvider

    return LocalProvider()


def _scripted(resolved: Resolved) -> Provider:
    from larik_nb.providers import scripted

    if resolved.model != "demo":
        raise ConfigError(f"there is no {resolved.spec}", remedy="Use scripted/demo, or ScriptedProvider for your own")
    return scripted.demo()


_ADAPTERS: Mapping[str, Callable[[Route, Abilities], Adapter]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "gemini": _gemini,
    "ollama": _ollama,
    "openai-compatible": _compatible,
}
_IN_PROCESS: Mapping[str, Callable[[Resolved], Provider]] = {"local": _local, "scripted": _scripted}
WIRES = (*_ADAPTERS, *_IN_PROCESS)
