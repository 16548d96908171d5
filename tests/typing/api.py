"""Never run: type checkers read it, so that the public names keep the types people write against."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import assert_type

import larik_nb
from larik_nb import Block, Message, Provider, Request, Session, StreamEvent, ToolSpec, Usage, connect, errors, stream

provider = connect("anthropic/claude-opus-5", api_key="k", max_retries=1, stall_timeout_s=30.0, effort="low")
assert_type(provider, Provider)
assert_type(provider.name, str)

message = Message(role="user", blocks=[Block(type="text", text="hi")])
request = Request(model="m", messages=[message], max_tokens=10, tools=[ToolSpec(name="f")])
assert_type(message.blocks, Sequence[Block])
assert_type(provider.stream(request), AsyncGenerator[StreamEvent, None])
assert_type(stream(provider, request), Iterator[StreamEvent])

session = Session("anthropic/claude-opus-5", system="Be brief.")
assert_type(session.ask("hi"), Message)


@larik_nb.describe(dict)
def described(value: dict[str, int]) -> str:
    """A describer stays the function it is."""
    return str(value)


assert_type(described({}), str)


async def twins() -> None:
    """The async forms."""
    assert_type(await session.aask("hi"), Message)
    async for event in session.astream("hi"):
        assert_type(event, StreamEvent)
        assert_type(event.usage, Usage | None)


for event in session.stream("hi"):
    assert_type(event.text, str)

error = errors.classify(429, {}, b"", where="http")
assert_type(error, errors.APIError)
assert_type(error.retryable, bool)
assert_type(larik_nb.__version__, str)
