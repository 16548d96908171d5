"""What a server really has loaded: the window in force and whether the model takes tools. Asked aside, never in the way.

A server on this machine also answers here which models it has, for the moment when no key is set.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from larik_nb.errors import LarikError
from larik_nb.providers import _listing
from larik_nb.providers._presets import names, route

if TYPE_CHECKING:
    from larik_nb.config import Config
    from larik_nb.providers._presets import Route

TIMEOUT_S = 2.0
"""For each question; all of a server are asked at once (specification P4)."""
FOUND_S = 5.0
KEPT_S = 60.0
"""For how long an answer is used: what is loaded changes when somebody loads another model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What a server says of one model; None and empty: it does not say.

    Attributes:
        window: Tokens of the window that is loaded now.
        max_window: Tokens that the model itself allows.
        tools: It takes tools.
        asked: Tokens of the window that it loads the model with for us, where a request says so.
    """

    window: int | None = None
    max_window: int | None = None
    tools: bool | None = None
    asked: int | None = None

    @property
    def limit(self) -> int | None:
        """Tokens that a prompt of ours may have; None when the server does not say."""
        return self.asked or self.window


NOTHING = Probed()


@runtime_checkable
class ModelProber(Protocol):
    """A provider that can say what is loaded behind it."""

    async def probe(self, model: str = "") -> Probed:
        """Return what the server says of a model, its own where none is named. Never fails."""


async def probe(here: Route, model: str, config: Config) -> Probed:
    """Return what a server says of a model; an unreachable or strange one says nothing."""
    ask = _WAYS.get(here.quirks.probe or here.wire)
    if not ask or not is_own(here):
        return NOTHING
    found = await ask(_Server(here, config), model)
    if found != NOTHING:
        with _lock:
            _known[here.base_url or "", model] = found
    return found


def known(here: Route, model: str) -> Probed:
    """Return what was last heard of a model; nothing is asked."""
    with _lock:
        return _known.get((here.base_url or "", model), NOTHING)


def is_own(here: Route) -> bool:
    """Return whether a server is the user's: one that runs here, or at an address they gave."""
    return not here.in_process and (here.own_address or is_here(here.base_url or ""))


def look(wanted: Iterable[tuple[Route, str]], config: Config) -> None:
    """Ask the user's own servers of models, all at once, for who is about to show them; `known` has it afterwards."""
    asked = {(here.base_url, model): (here, model) for here, model in wanted if is_own(here)}
    if asked:
        from larik_nb import portal

        portal.apart(_all(list(asked.values()), config))


async def _all(wanted: list[tuple[Route, str]], config: Config) -> None:
    await asyncio.gather(*(probe(here, model, config) for here, model in wanted))


class _Server:
    """Answers of one server, kept for a while by its address."""

    def __init__(self, here: Route, config: Config) -> None:
        self._here = here
        self._config = config
        self.base_url = here.base_url or ""
        self.root = self.base_url.removesuffix("/v1")

    async def all(self, *questions: str | tuple[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the objects that addresses answer, asked at once; an empty one where none came."""
        return list(await asyncio.gather(*(self._kept(question) for question in questions)))

    async def _kept(self, question: str | tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
        url, body = question if isinstance(question, tuple) else (question, None)
        key = (url, str(body))
        with _lock:
            until, answer = _answers.get(key, (0.0, {}))
        if until > time.monotonic():
            return answer
        answer = await self._asked(url, body)
        with _lock:
            _answers[key] = (time.monotonic() + (KEPT_S if answer else FOUND_S), answer)
        return answer

    async def _asked(self, url: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        from larik_nb.providers import credentials
        from larik_nb.providers._build import adapter

        try:
            async with asyncio.timeout(TIMEOUT_S):
                key = await credentials.key(self._here, self._config)
                headers = adapter(self._here, self._config).credential(key)
                data = await _listing.get(url, headers, self._config, body, TIMEOUT_S)
        except (LarikError, TimeoutError):
            return {}
        return data if isinstance(data, dict) else {}


_answers: dict[tuple[str, str], tuple[float, dict[str, Any]]] = {}
_known: dict[tuple[str, str], Probed] = {}
_lock = threading.Lock()


def forget() -> None:
    """Ask every server anew."""
    global _found  # as `running`
    with _lock:
        _answers.clear()
        _known.clear()
        _found = (0.0, [], None)


# -- how each server is asked -----------------------------------------------------------------------------------------
async def _ollama(server: _Server, model: str) -> Probed:
    shown, running = await server.all((f"{server.base_url}/api/show", {"model": model}), f"{server.base_url}/api/ps")
    names = {model, f"{model}:latest"}
    loaded = next((row for row in _rows(running, "models") if names & {row.get("name"), row.get("model")}), {})
    abilities = shown.get("capabilities")
    window = _listing.first_count(loaded, ("context_length",))
    most = next((value for name, value in _info(shown) if name.endswith(".context_length")), None)
    return Probed(
        window=window,
        max_window=most,
        tools="tools" in abilities if isinstance(abilities, list) else None,
        asked=num_ctx(window, most) if window or most else None,
    )


def num_ctx(loaded: int | None, most: int | None) -> int:
    """Return the window to ask for: the usual one, a larger one that is loaded already, never more than the model has."""
    from larik_nb.providers.ollama import NUM_CTX

    return min(max(NUM_CTX, loaded or 0), most or max(NUM_CTX, loaded or 0))


def _info(shown: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    info = shown.get("model_info")
    return (
        (str(name), value) for name, value in (info if isinstance(info, dict) else {}).items() if type(value) is int
    )


async def _lmstudio(server: _Server, model: str) -> Probed:
    new, old = await server.all(f"{server.root}/api/v1/models", f"{server.root}/api/v0/models")
    for row in _rows(new, "models"):
        instances = [one for one in row.get("loaded_instances") or () if isinstance(one, dict)]
        if model in (row.get("key"), *(one.get("id") for one in instances)):
            chosen = next((one for one in instances if one.get("id") == model), instances[0] if instances else {})
            able = row.get("capabilities")
            tools = able.get("trained_for_tool_use") if isinstance(able, dict) else None
            return Probed(
                window=_listing.first_count(_part(chosen, "config"), ("context_length",)),
                max_window=_listing.first_count(row, ("max_context_length",)),
                tools=tools if isinstance(tools, bool) else None,
            )
    row = next((row for row in _rows(old, "data") if row.get("id") == model), {})
    able = row.get("capabilities")
    return Probed(
        window=_listing.first_count(row, ("loaded_context_length",)),
        max_window=_listing.first_count(row, ("max_context_length",)),
        tools="tool_use" in able if isinstance(able, list) else None,
    )


async def _llamacpp(server: _Server, model: str) -> Probed:
    props, listed = await server.all(f"{server.root}/props", f"{server.base_url}/models")
    row = _of_model(listed, model)
    tools = _part(props, "chat_template_caps").get("supports_tools")
    return Probed(
        window=_listing.first_count(_part(props, "default_generation_settings"), ("n_ctx",)),
        max_window=_listing.window(row),
        tools=tools if isinstance(tools, bool) else None,
    )


async def _vllm(server: _Server, model: str) -> Probed:
    (listed,) = await server.all(f"{server.base_url}/models")
    loaded = _listing.first_count(_of_model(listed, model), ("max_model_len",))
    return Probed(window=loaded, max_window=loaded)


async def _others(server: _Server, model: str) -> Probed:
    (listed,) = await server.all(f"{server.base_url}/models")
    return Probed(window=_listing.first_count(_of_model(listed, model), ("max_model_len", "context_length")))


def _of_model(listed: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    """Return a model's row; a server that has only one answers to any name."""
    rows = list(_rows(listed, "data"))
    return next((row for row in rows if row.get("id") == model), rows[0] if len(rows) == 1 else {})


def _rows(data: Mapping[str, Any], place: str) -> Iterator[dict[str, Any]]:
    rows = data.get(place)
    return (row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict))


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = data.get(name)
    return part if isinstance(part, dict) else {}


_WAYS: Mapping[str, Callable[[_Server, str], Awaitable[Probed]]] = {
    "ollama": _ollama,
    "lmstudio": _lmstudio,
    "llamacpp": _llamacpp,
    "vllm": _vllm,
    "openai-compatible": _others,
}


# -- servers that run here --------------------------------------------------------------------------------------------
def is_here(url: str) -> bool:
    """Return whether an address is this machine's."""
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def running(config: Config) -> tuple[Route, str] | None:
    """Return the first server that runs here and a model it has, one that is loaded before others.

    What was found holds for a while, so that the few questions of one turn ask once.
    """
    global _found  # one machine, one answer
    until, routes, found = _found
    here = _servers(config)
    if time.monotonic() > until or routes != here:
        from larik_nb import portal

        found = portal.apart(_first(here, config)) if here else None
        _found = (time.monotonic() + FOUND_S, here, found)
    return found


_found: tuple[float, list[Route], tuple[Route, str] | None] = (0.0, [], None)


def _servers(config: Config) -> list[Route]:
    routes = (route(name, config) for name in names(config))
    return [here for here in routes if here and here.key_optional and is_here(here.base_url or "")]


async def _first(routes: list[Route], config: Config) -> tuple[Route, str] | None:
    asked = await asyncio.gather(*(_first_model(here, config) for here in routes))
    return next(((here, model) for here, model in zip(routes, asked, strict=True) if model), None)


async def _first_model(here: Route, config: Config) -> str | None:
    listing, loaded = await asyncio.gather(_listing.listing(here, config, TIMEOUT_S), _loaded(here, config))
    ids = [model.id for model in listing.models]
    return next((model for model in loaded if model in ids), ids[0] if ids else None)


async def _loaded(here: Route, config: Config) -> list[str]:
    """Return the models that are loaded, for a server that has more than those."""
    server = _Server(here, config)
    if here.wire == "ollama":
        (data,) = await server.all(f"{server.base_url}/api/ps")
        return [str(row.get("name")) for row in _rows(data, "models")]
    if here.quirks.probe == "lmstudio":
        (data,) = await server.all(f"{server.root}/api/v0/models")
        return [str(row.get("id")) for row in _rows(data, "data") if row.get("state") == "loaded"]
    return []
