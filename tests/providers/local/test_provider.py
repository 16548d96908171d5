"""The provider `local`, on a real model."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from larik_nb import catalog
from larik_nb.errors import ConfigError
from larik_nb.providers.local import LocalProvider, cache, server, table
from larik_nb.providers.local import provider as provider_module
from larik_nb.types import Request, StreamEvent, ToolSpec, user

RealModel = tuple[table.Model, Path]


@pytest.fixture
def fetched(real_model: RealModel, root: Path) -> Iterator[table.Model]:
    """The real model, in the cache of this test."""
    model, path = real_model
    cache.folder("models")
    try:
        cache.path_of(model).hardlink_to(path)
    except OSError:  # another disk
        shutil.copyfile(path, cache.path_of(model))
    yield model
    server.stop()


def _ask(provider: LocalProvider, request: Request) -> list[StreamEvent]:
    async def run() -> list[StreamEvent]:
        return [event async for event in provider.stream(request)]

    return asyncio.run(run())


def _notices(events: list[StreamEvent]) -> list[str]:
    return [event.text for event in events if event.type == "notice" and "starting" not in event.text]


def test_it_answers_and_costs_nothing(fetched: table.Model) -> None:
    """Deltas, then one done with its tokens, named as the table names the model."""
    request = Request(model=fetched.name, messages=[user("Say hello.")], max_tokens=12, seed=1)
    events = _ask(LocalProvider(), request)
    done = events[-1]
    assert [event.type for event in events].count("done") == 1
    assert done.message is not None
    assert done.message.text == "".join(event.text for event in events if event.type == "text_delta") != ""
    assert (done.message.provider, done.message.model, done.message.cost_usd) == ("local", fetched.name, 0.0)
    assert done.usage is not None
    assert done.usage.output <= 12
    assert done.usage.prompt > 0


def test_it_says_how_small_it_is_once(fetched: table.Model) -> None:
    """The first answer of a process comes with the size; the next does not, whichever provider object gives it."""
    provider_module._introduced.clear()
    request = Request(model=fetched.name, messages=[user("Hi")], max_tokens=2)
    assert _notices(_ask(LocalProvider(), request)) == [f"local/{fetched.name} is small: {fetched.description}"]
    assert _notices(_ask(LocalProvider(), request)) == []


def test_the_catalog_knows_the_window_that_is_served() -> None:
    """A person reads the window off the catalog; it is what the server gives, not what the model was trained for."""
    assert {model.name: catalog.window("local", model.name) for model in table.models()} == {
        model.name: server.window(model) for model in table.models()
    }


def test_tools_are_not_sent_and_that_is_said(fetched: table.Model) -> None:
    """A model this small gets no tools; the answer is text and one notice says so."""
    tool = ToolSpec(name="add", description="Add numbers.", parameters={"type": "object", "properties": {}})
    request = Request(model=fetched.name, messages=[user("Add 1 and 2")], tools=[tool], max_tokens=4)
    events = _ask(LocalProvider(), request)
    assert _notices(events)[-1:] == [f"local/{fetched.name} is given no tools: 1 left out"]
    assert not any(event.type == "tool_use_start" for event in events)


def test_an_answer_left_early_does_not_stop_the_next(fetched: table.Model) -> None:
    """Closing the generator ends the generation; the server is free for the next question at once."""

    async def run() -> list[StreamEvent]:
        provider = LocalProvider()
        long = Request(model=fetched.name, messages=[user("Tell a long story.")])
        events = provider.stream(long)
        async for event in events:
            if event.type == "text_delta":
                break
        await events.aclose()
        short = Request(model=fetched.name, messages=[user("Hi")], max_tokens=2)
        async with asyncio.timeout(5):
            return [event async for event in provider.stream(short)]

    assert asyncio.run(run())[-1].type == "done"


def test_question_after_question_is_answered(fetched: table.Model) -> None:
    """The server drops each connection after a stream; no next question may run into that."""
    request = Request(model=fetched.name, messages=[user("Hi")], max_tokens=1)

    async def run() -> list[str]:
        provider = LocalProvider()
        return [event.type for _ in range(40) async for event in provider.stream(request) if event.type == "done"]

    assert asyncio.run(run()) == ["done"] * 40


def test_no_name_takes_the_best_that_is_here(fetched: table.Model) -> None:
    """`local` alone answers with what is on the disk."""
    events = _ask(LocalProvider(), Request(model="", messages=[user("Hi")], max_tokens=2))
    assert events[-1].message is not None
    assert events[-1].message.model == fetched.name


def test_a_file_of_ones_own_answers(real_model: RealModel, root: Path) -> None:
    """`model_path` needs no table and no cache; a path that leads nowhere is said."""
    provider = LocalProvider(model_path=real_model[1])
    events = _ask(provider, Request(model="mine", messages=[user("Hi")], max_tokens=2))
    assert events[-1].message is not None
    assert events[-1].message.model == real_model[1].stem
    assert _notices(events) == []
    server.stop()
    with pytest.raises(ConfigError, match=r"local.model_path: there is no file"):
        _ask(LocalProvider(model_path="nowhere.gguf"), Request(model="", messages=[user("Hi")]))


def test_a_model_that_was_not_fetched_names_the_command(root: Path) -> None:
    """Size, licence and the one command that brings it."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    with pytest.raises(ConfigError) as caught:
        _ask(LocalProvider(), Request(model="smollm2-135m", messages=[user("Hi")]))
    assert caught.value.message == (
        "local/smollm2-135m is not on this machine yet (98 MB, Apache-2.0). "
        "Fetch it once with: %larik local fetch smollm2-135m (in a shell: larik local fetch smollm2-135m)"
    )
