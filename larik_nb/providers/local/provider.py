"""The provider `local`: answers with a small model on this machine."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from larik_nb.errors import ConfigError
from larik_nb.providers.local import cache, server, table
from larik_nb.types import done, notice

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from os import PathLike

    from larik_nb.providers import Provider
    from larik_nb.providers.local.table import Model
    from larik_nb.types import Request, StreamEvent

NOTICE_AFTER_S = 1.0
MAX_TOKENS = 1024  # a model this small may never stop by itself
_introduced: set[str] = set()  # once a process is enough: the providers themselves are made anew for each turn


class LocalProvider:
    """Answers from a child process on this machine, free of charge, without tools.

    The model must have been fetched; nothing is downloaded here. The first answer says how small the model is.

    Args:
        model_path: A model file of the user's own, which then answers whatever model is asked for.
    """

    name = "local"

    def __init__(self, *, model_path: str | PathLike[str] | None = None) -> None:
        self._model_path = Path(model_path).expanduser() if model_path else None

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Answer with events; the `done` costs nothing and names the model as the table does.

        Raises:
            ConfigError: The extra is not installed, there is no such model, or it was not fetched.
            Unreachable: Its server did not start.
            APIError: It broke while it answered.
        """
        model, path = ready(request.model, self._model_path)
        for text in self._notices(model, request):
            yield notice(text)
        starting = asyncio.ensure_future(server.endpoint(model, path))
        try:
            if not (await asyncio.wait({starting}, timeout=NOTICE_AFTER_S))[0]:
                yield notice(f"starting local model {model.name} … (the first time takes a moment)")
            served = await starting
        finally:
            starting.cancel()
        async with aclosing(_chat(served, server.window(model)).stream(_fit(request, served))) as events:
            async for event in events:
                yield _stamp(event, model, request)

    def _notices(self, model: Model, request: Request) -> Iterator[str]:
        if self._model_path is None and model.name not in _introduced:
            _introduced.add(model.name)
            yield f"local/{model.name} is small: {model.description}"
        if request.tools:
            yield f"local/{model.name} is given no tools: {len(request.tools)} left out"


def ready(name: str, model_path: Path | None = None) -> tuple[Model, Path]:
    """Return the model and its file, when all is there to serve it.

    Args:
        name: A name of the table; empty takes the best that is here.
        model_path: A file of the user's own in place of the table's.

    Raises:
        ConfigError: Something is missing; the message says the one command that brings it.
    """
    model = table.own(model_path) if model_path else _named(name)
    if find_spec("xllamacpp") is None:
        msg = f"local/{model.name} needs the extra `local`, which is not installed"
        raise ConfigError(msg, remedy='Install it with: pip install "larik-nb[local]"')
    if model_path:
        return model, model_path
    if not cache.is_present(model):
        msg = f"local/{model.name} is not on this machine yet ({model.size}, {model.licence})"
        shell = f"larik local fetch {model.name}"
        raise ConfigError(msg, remedy=f"Fetch it once with: %{shell} (in a shell: {shell})")
    return model, cache.path_of(model)


def _named(name: str) -> Model:
    known = table.models()
    return table.find(name) if name else cache.best_present(known) or known[-1]


def _fit(request: Request, served: server.Endpoint) -> Request:
    """Leave out what a model this small does not have, and bound the answer."""
    limit = MAX_TOKENS if request.max_tokens is None else request.max_tokens
    return replace(request, model=served.model, tools=(), effort=None, thinking_budget=None, max_tokens=limit)


def _stamp(event: StreamEvent, model: Model, request: Request) -> StreamEvent:
    if event.message is None:
        return event
    name = LocalProvider.name
    return done(replace(event.message, provider=name, model=model.name, requested_model=request.model, cost_usd=0.0))


def _chat(served: server.Endpoint, window: int) -> Provider:
    """Return the provider that speaks the server's format, and knows how many tokens it was given room for."""
    from larik_nb.providers._presets import Quirks
    from larik_nb.providers._wire import WireProvider
    from larik_nb.providers.openai_compatible import OpenAICompatible

    adapter = OpenAICompatible(provider=LocalProvider.name, quirks=Quirks(tools=False))
    # The server promises to keep a connection after a stream and closes it: one in seven next requests met that.
    headers = {**adapter.credential(served.api_key), "Connection": "close"}
    return WireProvider(
        adapter, name=LocalProvider.name, base_url=served.base_url, headers=headers, window=lambda _model: window
    )
