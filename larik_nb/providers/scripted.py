"""A provider that answers from a list: for tests, demonstrations and notebooks that run without a key.

`ScriptedProvider` returns given replies in order and keeps the requests. `demo()` is `scripted/demo`, which has
something to say about any question, counts tokens from lengths and costs nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from larik_nb import errors
from larik_nb.types import Block, Message, Request, StreamEvent, Usage, assistant, done, text_delta, thinking_delta

Reply: TypeAlias = "str | Block | Message | Sequence[StreamEvent] | BaseException | Callable[[Request], Reply]"
"""What a script may hold: a text, a block, a whole message, the events themselves, an error to raise, or a function
of the request that returns one of these."""

_PIECE = re.compile(r"\s*\S+\s*|\s+")
_AFTER_THE_LAST = "Done."


class ScriptedProvider:
    """Answers with `replies` in order, then "Done." for ever.

    An error is raised as it is; what its `partial` holds is streamed first. A message may name the model that
    served it, its usage and its stop reason; what it leaves open is filled in here.

    Args:
        replies: See `Reply`.
        name: The route, stamped on messages and errors.
        model: The model that a session on this provider asks for.
        usage: Tokens of every reply that does not bring its own; None leaves them unknown.
        delay_s: Seconds before each delta.
        sleep: Waits for the delay; a test passes its own clock.

    Attributes:
        requests: Every request so far, oldest first.
    """

    def __init__(
        self,
        replies: Iterable[Reply] = (),
        *,
        name: str = "scripted",
        model: str = "script",
        usage: Usage | None = None,
        delay_s: float = 0.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.model = model
        self.requests: list[Request] = []
        self._replies = iter(list(replies))
        self._usage = usage
        self._delay_s = delay_s
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"<ScriptedProvider {self.name}/{self.model}>"

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the next reply as deltas, then its `done`.

        Raises:
            BaseException: The script holds one.
        """
        self.requests.append(request)
        reply = self.reply(request)
        if isinstance(reply, BaseException):
            partial = getattr(reply, "partial", None)
            async for event in self._paced(_deltas(partial) if partial else ()):
                yield event
            raise self._named(reply, request)
        events = self._events(reply, request)
        async for event in self._paced(events):
            yield event

    def reply(self, request: Request) -> Reply:
        """Return the next reply to `request`, functions called; what a subclass may override."""
        reply: Reply = next(self._replies, _AFTER_THE_LAST)
        while callable(reply):
            reply = reply(request)
        return reply

    async def _paced(self, events: Iterable[StreamEvent]) -> AsyncGenerator[StreamEvent, None]:
        for event in events:
            if self._delay_s and event.type != "done":
                await self._sleep(self._delay_s)
            yield event

    def _named(self, error: BaseException, request: Request) -> BaseException:
        if isinstance(error, errors.APIError) and error.provider is None:
            error.for_provider(provider=self.name, model=request.model)
        return error

    def _events(self, reply: Reply, request: Request) -> Iterator[StreamEvent]:
        if isinstance(reply, str | Block | Message):
            message = self._message(reply, request)
            yield from _deltas(message)
            yield done(message)
        else:
            yield from reply  # type: ignore[misc]  # errors and functions are gone, only events are left

    def _message(self, reply: str | Block | Message, request: Request) -> Message:
        message = reply if isinstance(reply, Message) else assistant(reply)
        blocks = tuple(block if block.provider else replace(block, provider=self.name) for block in message.blocks)
        return replace(
            message,
            blocks=blocks,
            model=message.model or request.model,
            provider=message.provider or self.name,
            requested_model=message.requested_model or request.model,
            usage=message.usage or self._usage,
            stop_reason=message.stop_reason or ("tool_use" if message.tool_calls else "end_turn"),
        )


def _deltas(message: Message) -> Iterator[StreamEvent]:
    for block in message.blocks:
        if block.type == "text":
            yield from map(text_delta, pieces(block.text or ""))
        elif block.type == "thinking":
            yield from map(thinking_delta, pieces(block.text or ""))
        elif block.type == "tool_use":
            yield from _call(block)


def _call(block: Block) -> Iterator[StreamEvent]:
    import json

    yield StreamEvent(type="tool_use_start", id=block.id, name=block.name)
    raw = block.input_raw if block.input is None else json.dumps(block.input)
    for piece in pieces(raw or ""):
        yield StreamEvent(type="tool_input_delta", id=block.id, text=piece)


def pieces(text: str) -> list[str]:
    """Cut `text` at its words, white space kept; joined they are the text again."""
    return _PIECE.findall(text)


# -- scripted/demo ------------------------------------------------------------------------------------------------
_PACE_S = 0.012
_BYTES_A_TOKEN = 4


def demo(*, delay_s: float = _PACE_S, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> ScriptedProvider:
    """Return `scripted/demo`: a made-up answer to any question, streamed in small pieces."""
    return _Demo(model="demo", delay_s=delay_s, sleep=sleep)


class _Demo(ScriptedProvider):
    """Answers every question alike; says so."""

    def reply(self, request: Request) -> Reply:
        answer = _demo_answer(request)
        usage = Usage(input=_counted(request.system or "", *_texts(request)), output=_counted(answer))
        return replace(assistant(answer), usage=usage, model=self.model)


def _texts(request: Request) -> list[str]:
    return [block.text or block.content or "" for message in request.messages for block in message.blocks]


def _counted(*texts: str) -> int:
    return sum(-(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN) for text in texts)


def _demo_answer(request: Request) -> str:
    asked = _last_question(request)
    words = re.findall(r"\w+", asked)
    turn = sum(message.role == "user" for message in request.messages)
    longest = max(words, key=len, default="nothing")
    return _DEMO.format(
        title=_shortened(asked) or "nothing yet",
        turn=f"question {turn} of this conversation",
        words=len(words),
        characters=len(asked),
        longest=longest,
        question=repr(_shortened(asked)),
    )


def _last_question(request: Request) -> str:
    asked = [message.text for message in request.messages if message.role == "user"]
    return asked[-1].strip() if asked else ""


def _shortened(text: str, limit: int = 60) -> str:
    line = " ".join(re.sub(r"[`|<>\\*_$\[\]]", "", text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


_DEMO = """\
You asked: **{title}**

This is `scripted/demo`. No model is running: the answer is written beforehand, so that you can see how one looks \
here without a key and without cost. It is {turn}.

| measured in your question | value |
|---|---:|
| words | {words} |
| characters | {characters} |
| longest word | {longest} |

Code comes in a block of its own:

```python
question = {question}
print(len(question.split()), "words")
```

Ask a real model with `%model provider/name`.
"""
