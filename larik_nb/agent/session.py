"""A conversation: its messages, what it has used, and the doors to ask the next question.

The history is independent of the model, so each turn may go to another one. A turn ends in one of three ways, and in
each the next question can be asked: answered; failed or stopped with part of an answer, which stays, marked
`interrupted`; failed or stopped before any of it, in which case the question is taken back too.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from larik_nb import _sending, errors, estimate, portal
from larik_nb.types import Block, Effort, Message, Request, StreamEvent, Usage, done, tool_result, user

if TYPE_CHECKING:
    from larik_nb.config import Config
    from larik_nb.providers import Provider
    from larik_nb.routing.chain import Surroundings

_SETTINGS = {field.name for field in fields(Request)} - {"model", "messages", "system"}
MAIN = "main"
_NOT_RUN = "not run: the user went on before it was answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Who is asked.

    Attributes:
        provider: Streams the answer.
        model: Id within the provider.
        role: The role it was asked as.
    """

    provider: Provider
    model: str
    role: str = MAIN

    @property
    def spec(self) -> str:
        """The route as people write it."""
        return f"{self.provider.name}/{self.model}" if self.model else self.provider.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A sum of money that knows whether it is whole.

    Attributes:
        usd: The sum of what is known.
        at_least: A part is unknown, so that the sum is a lower bound.
        estimated: A part was paid for tokens that nobody counted.
    """

    usd: float = 0.0
    at_least: bool = False
    estimated: bool = False

    @classmethod
    def of(cls, turns: Iterable[Turn]) -> Spent:
        """Return what `turns` cost."""
        turns = list(turns)
        return cls(
            usd=sum(turn.cost_usd or 0.0 for turn in turns),
            at_least=any(turn.cost_usd is None for turn in turns),
            estimated=any(turn.cost_usd and turn.usage is not None and turn.usage.estimated for turn in turns),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one question took.

    Attributes:
        model: The model that answered, or was asked where none did.
        provider: The route.
        usage: Its tokens; None when unknown.
        cost_usd: Its cost; None when unknown.
        seconds: From the question to the end of the answer.
        stop_reason: Why the answer ended.
        cell: Where it was asked: the number of a cell, as its prompt shows it.
        role: The role that was asked.
        notices: What was said on the way: another model stepped in, the budget is nearly spent.
    """

    model: str
    provider: str
    usage: Usage | None
    cost_usd: float | None
    seconds: float
    stop_reason: str | None = None
    cell: int | None = None
    role: str = MAIN
    notices: tuple[str, ...] = ()


class Session:
    """A conversation with one model at a time.

    Args:
        model: "provider/model", a role, a bare model id, or a provider; None takes the configured or first usable one.
        system: Instructions ahead of the conversation.
        config: Settings, as `Config.load` takes them; None reads the user's at each turn.
        clock: Seconds, for `Turn.seconds`.

    Attributes:
        model: What `model` said; assign it to go on with another model.
        system: The instructions; may be assigned.
        effort: How hard to think, before what the settings say of a model; may be assigned.
        id: Its name in the ledger of what was spent.
        history: The messages, oldest first.
        turns: One record per question that was answered or paid for.
    """

    def __init__(
        self,
        model: str | Provider | Route | None = None,
        *,
        system: str | None = None,
        config: Config | Mapping[str, Any] | str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self.system = system
        self.effort: Effort | None = None
        self.id = uuid.uuid4().hex[:12]
        self.history: list[Message] = []
        self.turns: list[Turn] = []
        self._config = config
        self._clock = clock
        self._busy = threading.Lock()
        self._around: Surroundings | None = None

    def __repr__(self) -> str:
        return f"<Session {self.model or 'default model'}: {len(self.history)} messages>"

    # -- the doors --------------------------------------------------------------------------------------------
    def ask(self, *content: str | Block, **options: Any) -> Message:
        """Ask, and return the whole answer. Takes and raises what `astream` does."""
        return portal.wait(self.aask(*content, **options))

    async def aask(self, *content: str | Block, **options: Any) -> Message:
        """Ask, and return the whole answer. Takes and raises what `astream` does."""
        async with aclosing(self.astream(*content, **options)) as events:
            async for event in events:
                if event.message is not None:
                    return event.message
        raise _no_end()

    def stream(self, *content: str | Block, **options: Any) -> portal._Reader[StreamEvent]:
        """Ask, and yield the answer's events to plain code. Leaving the loop stops the turn."""
        return portal.iterate(self.astream(*content, **options))

    async def astream(
        self,
        *content: str | Block,
        model: str | Provider | Route | None = None,
        cell: int | None = None,
        **settings: Any,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Ask, and yield the answer's events; the last is `done` with the message as the history keeps it.

        Args:
            content: The question: texts and blocks (images, documents, tool results).
            model: Answers this turn only; None takes the session's.
            cell: Kept in the turn's record.
            settings: Fields of `Request`: effort, max_tokens, temperature, tools, …

        Raises:
            APIError: The model did not answer; `partial` is what had arrived, and stays in the history.
            ConfigError: No such model, or no key for it.
            RuntimeError: Another turn of this session is still running.
            TypeError: A setting that a request does not have, or content that is neither text nor Block.
        """
        with self._one_turn(), _sending.watched() as sending:
            route = self.route(model)
            turn = _Turn(self, route, self._request(route, content, settings), cell, sending)
            try:
                async with aclosing(route.provider.stream(turn.request)) as events:
                    async for event in events:
                        heard = turn.heard(event)
                        try:
                            yield heard
                        except GeneratorExit:
                            # Before the provider is closed: a loop that shuts down may make that fail.
                            turn.stopped()
                            raise
                        if turn.over:
                            return
                raise _no_end()
            except errors.APIError as error:
                turn.failed(error)
                raise
            except (GeneratorExit, asyncio.CancelledError):
                turn.stopped()
                raise
            except BaseException:
                turn.taken_back()
                raise

    @contextmanager
    def _one_turn(self) -> Iterator[None]:
        if not self._busy.acquire(blocking=False):
            msg = "this session is still answering: wait for it or interrupt it, or use a second Session"
            raise RuntimeError(msg)
        try:
            yield
        finally:
            self._busy.release()

    # -- what is asked ----------------------------------------------------------------------------------------
    def route(self, model: str | Provider | Route | None = None) -> Route:
        """Return who would be asked now, `model` before the session's own.

        Raises:
            ConfigError: No such model, or no key for it.
        """
        chosen = self.model if model is None else model
        if isinstance(chosen, Route):
            return chosen
        role = MAIN
        if chosen is None or isinstance(chosen, str):
            config = self.config
            role = _role(chosen, config)
            chosen = self._chain(chosen, config)
        # A provider made from a name fills in its own model where a request names none.
        return Route(provider=chosen, model=getattr(chosen, "model", ""), role=role)

    def _chain(self, wanted: str | None, config: Config) -> Provider:
        from larik_nb.routing import chain

        if self._around is None:
            self._around = chain.Surroundings.of(self.id, config, lambda: self.effort)
        return chain.chain(wanted, config, self._around)

    @property
    def config(self) -> Config:
        """The settings as they are now: a key that was set since the last turn counts."""
        from larik_nb.config import Config

        return Config.load(self._config)

    def _request(self, route: Route, content: tuple[str | Block, ...], settings: Mapping[str, Any]) -> Request:
        unknown = sorted(settings.keys() - _SETTINGS)
        if unknown:
            msg = f"a request has no {', '.join(unknown)}; it has {', '.join(sorted(_SETTINGS))}"
            raise TypeError(msg)
        _check_content(content)
        question = user(*self._unanswered(content), *content)
        if self.effort is not None:
            settings = {"effort": self.effort, **settings}
        return Request(model=route.model, messages=(*self.history, question), system=self.system, **settings)

    def _unanswered(self, content: tuple[str | Block, ...]) -> Iterator[Block]:
        """Yield a result for each call of the last answer that `content` leaves open: no vendor takes an open call."""
        given = {item.id for item in content if isinstance(item, Block) and item.type == "tool_result"}
        last = self.history[-1] if self.history else None
        for call in last.tool_calls if last is not None else ():
            if call.id not in given:
                yield tool_result(call.id or "", _NOT_RUN, is_error=True)

    # -- what it took -----------------------------------------------------------------------------------------
    @property
    def usage(self) -> Usage | None:
        """Tokens of all turns whose count is known; None when none is."""
        known = [turn.usage for turn in self.turns if turn.usage is not None]
        return reduce(add, known) if known else None

    @property
    def spent(self) -> Spent:
        """What all turns cost."""
        return Spent.of(self.turns)

    @property
    def cost_usd(self) -> float | None:
        """What all turns cost; None when a part is unknown (`spent` has the lower bound)."""
        return None if self.spent.at_least else self.spent.usd

    def reset(self) -> None:
        """Forget the conversation. What it has cost stays in `turns`."""
        self.history.clear()


def _role(wanted: str | None, config: Config) -> str:
    """Return the role that a name is; a model by its own name is asked as the main one."""
    from larik_nb.providers import role_names

    name = (wanted or MAIN).strip().lower()
    return name if name in role_names(config) else MAIN


def _check_content(content: tuple[Any, ...]) -> None:
    for item in content:
        if not isinstance(item, str | Block):
            msg = f"a question is made of texts and Blocks, not of {type(item).__name__}: put it into words first"
            raise TypeError(msg)


def _no_end() -> errors.BadWire:
    return errors.BadWire("the provider's answer had no end", kind="wire")


class _Turn:
    """One question on its way: what was heard so far, and how it goes into the session."""

    def __init__(
        self, session: Session, route: Route, request: Request, cell: int | None, sending: _sending.Sending
    ) -> None:
        from larik_nb.providers._wire import Draft

        self.request = request
        self._session = session
        self._route = route
        self._cell = cell
        self._sending = sending
        self._catalog = session.config.catalog
        self._draft = Draft(request, route.provider.name)
        self._started = session._clock()
        self._notices: list[str] = []
        self.over = False
        session.history.append(request.messages[-1])

    def heard(self, event: StreamEvent) -> StreamEvent:
        """Take an event in; the `done` comes back priced."""
        match event.type:
            case "text_delta":
                self._draft.text(event.text)
            case "thinking_delta":
                self._draft.thinking(event.text)
            case "notice":
                self._notices.append(event.text)
            case "done" if event.message is not None:
                return done(self._keep(event.message))
        return event

    def failed(self, error: errors.APIError) -> None:
        """End with an error: what had arrived stays, or the question goes."""
        self._cut_off(error.partial if isinstance(error.partial, Message) else self._draft.message(), billed=False)

    def stopped(self) -> None:
        """End because the caller went away: what was heard stays, and is billed though nobody counted, once it was sent."""
        self._cut_off(self._draft.message(), billed=not self._sending.is_unsent)

    def taken_back(self) -> None:
        """End as if it had not been asked."""
        if not self.over:
            self.over = True
            if (place := self._place()) is not None:
                del self._session.history[place]

    def _cut_off(self, partial: Message, *, billed: bool) -> None:
        """Keep the readable part. A call cut off is left out, and opaque items that belong to what never came."""
        if self.over:
            return
        kept = tuple(block for block in partial.blocks if block.type in ("text", "thinking") and block.text)
        usage = partial.usage or estimate.answer_usage(self.request, partial)
        message = replace(partial, blocks=kept, usage=usage, stop_reason="interrupted")
        if any(block.type == "text" for block in kept):
            self._keep(message)
            return
        self.taken_back()
        if billed or kept:
            self._record(self._priced(message))

    def _keep(self, message: Message) -> Message:
        self.over = True
        priced = self._priced(message)
        if self._place() is not None:
            self._session.history.append(priced)
        self._record(priced)
        return priced

    def _place(self) -> int | None:
        """Return where in the history the question is; None where the conversation was reset meanwhile.

        The same words may have been asked before: this question is the object, not its value.
        """
        question, history = self.request.messages[-1], self._session.history
        return next((at for at in reversed(range(len(history))) if history[at] is question), None)

    def _priced(self, message: Message) -> Message:
        if message.cost_usd is not None:
            return message
        provider, model = (message.provider or self._route.provider.name, message.model or self._route.model)
        return replace(message, cost_usd=self._catalog.cost(message.usage, provider, model))

    def _record(self, message: Message) -> None:
        self._session.turns.append(
            Turn(
                model=message.model or self._route.model,
                provider=message.provider or self._route.provider.name,
                usage=message.usage,
                cost_usd=message.cost_usd,
                seconds=self._session._clock() - self._started,
                stop_reason=message.stop_reason,
                cell=self._cell,
                role=self._route.role,
                notices=tuple(self._notices),
            )
        )
