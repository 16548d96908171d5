"""One question from a cell: what is asked of whom, how it is shown, and what is left when it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from larik_nb import errors, http
from larik_nb.agent.session import Route, Session, Turn
from larik_nb.notebook import asking, cells, content, display, failures, formats, local_model, preview, render, widgets
from larik_nb.notebook.interrupts import Cancels, Interrupts, at_once
from larik_nb.notebook.late_bar import LateBar
from larik_nb.providers.recorded import Recorder, ReplayProvider
from larik_nb.types import notice

if TYPE_CHECKING:
    from larik_nb.notebook.magics import LarikMagics
    from larik_nb.notebook.options import Asked
    from larik_nb.notebook.place import Place
    from larik_nb.notebook.steps import Steps
    from larik_nb.types import Block, Message

_T = TypeVar("_T")


def run(magics: LarikMagics, asked: Asked, text: str, place: Place) -> Steps[Message | None]:
    """Ask, show, and return the answer.

    Raises:
        LarikError: As the session raises it, once what had arrived is shown.
        Interrupted: The user stopped it.
    """
    if not text.strip():
        raise errors.ConfigError('nothing to ask: write the question under %%larik, or %larik -p "question"')
    if asked.preview:
        preview.show(magics, asked, text)
        return None
    session = magics.session(asked.session)
    if asked.new:
        session.reset()
        session.system = None
        forget_recordings(magics, session)
    system, told = content.instructions(asked)
    if system is not None:
        session.system = system
    with at_once():
        route = _route(magics, session, asked)
    yield from asking.put(magics.ip, local_model.offer(route, can_ask=place.can_ask))
    with at_once():
        sent = content.build(
            magics.ip, text, asked, route=route, catalog=session.config.catalog, pictures=magics.pictures
        )
    turn = _Turn(magics, session, route, place, replayed=asked.replay is not None)
    turn.note(*_slips(magics, session, asked), *told, *sent.notes)
    settings = {"effort": asked.effort} if asked.effort else {}
    message = yield from turn.run(sent.parts, settings)
    with at_once():
        formats.keep(magics, asked, message)
    return message


def _route(magics: LarikMagics, session: Session, asked: Asked) -> Route:
    """Return who is asked: the recording, or the model, through the recorder where one is named."""
    if asked.replay is not None:
        spec = asked.model or magics.chosen or magics.model
        replay = _recording(magics, session, asked.replay, ReplayProvider)
        return Route(provider=replay, model=spec.partition("/")[2] or replay.model or "")
    route = magics.route(session, asked.model)
    if asked.record is None:
        return route
    recorder = _recording(magics, session, asked.record, Recorder)
    return Route(provider=recorder.around(route.provider), model=route.model)


def _slips(magics: LarikMagics, session: Session, asked: Asked) -> list[str]:
    """Return what looks like a slip in the settings and was not told before; replayed, each run must look alike."""
    if asked.replay is not None:
        return []
    fresh = [text for text in session.config.notices if text not in magics.told]
    magics.told.update(fresh)
    return [f"⚠ {text}" for text in fresh]


def _recording(magics: LarikMagics, session: Session, path: str, make: Callable[[str], _T]) -> _T:
    """Return the conversation's recorder or player of `path`, which counts how often each question was asked."""
    key = (id(session), path, make)
    if key not in magics.recordings:
        magics.recordings[key] = make(path)
    return cast("_T", magics.recordings[key])


def forget_recordings(magics: LarikMagics, session: Session) -> None:
    """Let the conversation's recordings begin again: asked once more, a question is the first of its kind."""
    for key in [key for key in magics.recordings if key[0] == id(session)]:
        del magics.recordings[key]


def _view(place: Place, answer: render.Answer, screen: render.Screen, gauge: render.Gauge | None) -> render.Once:
    """Return what draws an answer that somebody waits for."""
    if place.captured:
        return render.Once(answer, screen)
    if not place.in_kernel:
        return render.Terminal(answer, screen)
    if not place.watched:
        return render.Once(answer, screen)
    return render.Live(answer, screen, gauge) if place.whole_cell else render.Nested(answer, screen)


class _Turn:
    """The screen's side of one question."""

    def __init__(self, magics: LarikMagics, session: Session, route: Route, place: Place, *, replayed: bool) -> None:
        self._magics = magics
        self._session = session
        self._route = route
        self._replayed = replayed
        self._turns_before = len(session.turns)
        self._noted: list[str] = []
        self._answer = render.Answer(route.spec, timed=not replayed)
        self._interrupts = Cancels() if place.awaited else Interrupts()
        screen = render.ShellScreen(magics.ip)
        if replayed and place.in_kernel:
            self._view = render.Once(self._answer, screen)
        else:
            self._view = _view(place, self._answer, screen, self._gauge(place))

    def _gauge(self, place: Place) -> render.Gauge | None:
        """Return the bar that is shown where clicks are heard while the cell runs."""
        if not place.awaited or not widgets.available():
            return None
        spent = self._session.spent
        return LateBar(self._answer, spent=f"session {display.total(spent)}" if spent.usd or spent.at_least else "")

    def note(self, *texts: str) -> None:
        """Show notices above the answer."""
        for text in texts:
            self._answer.take(notice(text))
        self._noted = list(self._answer.above)

    def run(self, question: tuple[str | Block, ...], settings: dict[str, Any]) -> Steps[Message]:
        """Ask and show; the answer, as the history has it.

        Raises:
            Interrupted: The user stopped it, or would have stopped it, had it not ended by then.
        """
        try:
            with self._interrupts as interrupts:
                return (yield from self._run(question, settings, interrupts))
        except KeyboardInterrupt:
            raise failures.Interrupted from None

    def _run(
        self, question: tuple[str | Block, ...], settings: dict[str, Any], interrupts: Interrupts
    ) -> Steps[Message]:
        self._magics.say_status(self._session, running=True)
        before = len(self._session.history)
        count = cells.number(self._magics.ip)
        with http.resting(render.REST_S, hold_s=render.HOLD_S):
            reader = self._session.stream(*question, model=self._route, cell=count, **settings)
        try:
            with reader:
                interrupts.allow()
                yield from render.watch(reader, self._answer, self._view)
                interrupts.hold()
        except BaseException:
            interrupts.hold()
            self._view.finish(self._partial(before))
            raise
        else:
            message = self._kept(before) or self._answer.message
            self._view.finish(self._bundle(message))
            return message
        finally:
            self._magics.say_status(self._session, running=False)

    def _partial(self, before: int) -> display.Bundle | None:
        """Return what is left of a turn that failed; None when nothing came and nothing was counted."""
        message = self._kept(before)
        if message is not None:
            return self._bundle(message)
        counted = self._session.turns[self._turns_before :]
        if not counted or self._replayed:
            return self._notes()
        return self._answer.shown(display.unanswered_line(counted[-1], spent=self._session.spent)).bundle()

    def _notes(self) -> display.Bundle | None:
        """Return what was to stand above the answer, which is not told again; a terminal has it already."""
        if not self._noted or isinstance(self._view, render.Terminal):
            return None
        self._answer.above[:] = self._noted
        return self._answer.shown("").bundle()

    def _kept(self, before: int) -> Message | None:
        """Return the answer, whole or in part, that the history has since it had `before` messages."""
        return next((m for m in reversed(self._session.history[before:]) if m.role == "assistant"), None)

    def _bundle(self, message: Message) -> display.Bundle:
        if self._replayed:
            line = display.replayed_line(message)
        else:
            *earlier, turn = self._session.turns
            how_to = "" if _is_told(turn, earlier) else display.how_to_price(message, self._session.config.source)
            line = display.quiet_line(message, took_s=turn.seconds, spent=self._session.spent, how_to=how_to)
        # What the history has, even where the screen had not come to see all of it.
        return replace(self._answer.shown(line), text=message.text).bundle()


def _is_told(turn: Turn, earlier: list[Turn]) -> bool:
    """Whether this conversation has said before how the model's price is made known."""
    return any(
        (other.provider, other.model) == (turn.provider, turn.model) and other.cost_usd is None and other.usage
        for other in earlier
    )
