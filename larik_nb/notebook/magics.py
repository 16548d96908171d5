"""The magics: read the line, ask the session, show what comes.

All else is imported when a magic is first used, so that loading stays quick.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from IPython.core.magic import MAGIC_NO_VAR_EXPAND_ATTR, Magics, magics_class
from traitlets import Unicode

from larik_nb.notebook.pictures import Pictures
from larik_nb.notebook.status import State, Status

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from larik_nb.agent.session import Route, Session
    from larik_nb.notebook.fix import Failed
    from larik_nb.notebook.options import Asked
    from larik_nb.notebook.place import Place
    from larik_nb.notebook.steps import Steps
    from larik_nb.types import Effort, Message

MAIN = "main"
_MARKERS = ("# NBVAL_", "#NBVAL_", "# nbval-", "#nbval-")


@magics_class
class LarikMagics(Magics):
    """`%larik`, `%%larik` and `%model`, which `notebook.load` registers."""

    model = Unicode("", help="The model to ask: provider/model, or a name that stands for one.").tag(config=True)

    def __init__(self, shell: InteractiveShell, **traits: Any) -> None:
        super().__init__(shell, **traits)
        self.ip = shell
        self.status = Status(shell, {"models": self._models, "choose": self._choose}, self._first_state)
        self.sessions: dict[str, Session] = {}
        self.recordings: dict[tuple[int, str, Any], Any] = {}
        self.chosen: str | None = None
        self.effort: Effort | None = None
        self.told: set[str] = set()
        self.on_status: set[Callable[[Session, bool], None]] = set()
        self.last_failure: BaseException | None = None
        self.just_shown: tuple[Message, int] | None = None
        self.pictures = Pictures(shell)
        self.failed: OrderedDict[str, Failed] = OrderedDict()
        self.is_awaiting = False
        self.blocking_form: tuple[str, str] | None = None

    # -- the magics -------------------------------------------------------------------------------------------
    def larik(self, line: str, cell: str | None = None) -> Message | None:
        """Ask a model: `%%larik [options]` with the question under it, or `%larik [options] question`.

        `%larik help` shows the options and the other commands.
        """
        from larik_nb.notebook import steps

        with self._told():
            return steps.run(self._steps(line, cell, awaited=False))

    async def awaited(self, line: str, cell: str | None = None) -> Message | None:
        """Do what `larik` does, for a cell that awaits it: see `cells`."""
        from larik_nb.notebook import cells, steps

        cells.keep_history(self.ip, self.blocking_form)
        self.is_awaiting = True
        try:
            with self._told():
                return await steps.arun(self._steps(line, cell, awaited=True))
        finally:
            self.is_awaiting = False

    def model_magic(self, line: str) -> None:
        """Show the model that is asked, or go on with another: `%model provider/model`."""
        from larik_nb.notebook import verbs

        with self._told():
            verbs.model(self, line.strip())

    def routing_magic(self, line: str) -> None:
        """Show every role with its model, or change them: `%routing worker=provider/model budget=5`.

        Alone on its line, in a page that draws widgets, it opens the wizard; all that one does can be written as text.
        `explore=` unsets, `worker.max_turns=30` and `worker.isolation=worktree` hold its subagents,
        `preset cheapest --dry-run` shows what a preset would change, `suggest worker` why which model comes first.
        """
        from larik_nb.notebook import verbs

        with self._told():
            verbs.routing(self, line.strip())

    def effort_magic(self, line: str) -> None:
        """Show how hard models are to think in this notebook, or set it: `%effort high`, `%effort auto`."""
        from larik_nb.notebook import verbs

        with self._told():
            verbs.effort(self, line.strip())

    def model_settings_magic(self, line: str) -> None:
        """Show what is set for a model and what is sent of it, or set it: `%model_settings [MODEL] temperature=0.2`."""
        from larik_nb.notebook import verbs

        with self._told():
            verbs.model_settings(self, line.strip())

    def short_names(self) -> dict[str, Callable[[str], None]]:
        """Return the magics that are registered where their names are free."""
        return {
            "model": self.model_magic,
            "routing": self.routing_magic,
            "effort": self.effort_magic,
            "model_settings": self.model_settings_magic,
        }

    for magic in (
        larik,
        model_magic,
        routing_magic,
        effort_magic,
        model_settings_magic,
    ):  # IPython is not to expand {} and $ on our lines
        setattr(magic, MAGIC_NO_VAR_EXPAND_ATTR, True)
    del magic

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Let an error of ours show as one line, and keep every failure for `%larik debug`."""
        from larik_nb.errors import LarikError
        from larik_nb.notebook import failures

        try:
            yield
        except LarikError as error:
            self.last_failure = error
            raise failures.short(error) from error.__cause__
        except KeyboardInterrupt:  # also before anything was asked
            raise failures.Interrupted from None
        except Exception as error:
            self.last_failure = error
            raise

    def _steps(self, line: str, cell: str | None, *, awaited: bool) -> Steps[Message | None]:
        from larik_nb.notebook.place import Place

        place = Place.of(self.ip, awaited=awaited)
        return self._line(line, place) if cell is None else self._cell(line, cell, place)

    def _line(self, line: str, place: Place) -> Steps[Message | None]:
        from larik_nb.notebook import interrupts, verbs
        from larik_nb.notebook.options import parse

        verb = verbs.find(line or "help")
        if verb is not None:
            with interrupts.at_once():
                more = verb(self)
            if more is not None:
                yield from more
            return None
        verbs.check_slip(line)
        asked = parse(line)
        message = yield from self._ask(asked, "\n".join(filter(None, [asked.prompt, asked.text])), place)
        if message is not None:
            self.just_shown = (message, self.ip.execution_count)
        return None if asked.out else message

    def _cell(self, line: str, cell: str, place: Place) -> Steps[None]:
        from larik_nb.notebook.options import parse

        asked = parse(line)
        yield from self._ask(asked, "\n\n".join(filter(None, [asked.prompt, asked.text, _body(cell)])), place)

    # -- a turn -----------------------------------------------------------------------------------------------
    def _ask(self, asked: Asked, text: str, place: Place) -> Steps[Message | None]:
        from larik_nb.notebook.turn import run
        from larik_nb.notebook.verbs import show_help

        if asked.help:
            show_help(self)
            return None
        return (yield from run(self, asked, text, place))

    def session(self, name: str | None) -> Session:
        """Return the conversation of that name, begun where there is none."""
        from larik_nb.agent.session import Session

        key = name or MAIN
        if key not in self.sessions:
            self.sessions[key] = Session()
            self.sessions[key].effort = self.effort
        return self.sessions[key]

    def known(self, name: str | None) -> Session | None:
        """Return the conversation of that name, None where nobody has begun it; the main one is always there."""
        key = name or MAIN
        return self.session(key) if key == MAIN or key in self.sessions else None

    @property
    def chosen_by(self) -> str:
        """What the user chose the model with; empty where the settings do."""
        return "%model" if self.chosen else "%config LarikMagics.model" if self.model else ""

    def route(self, session: Session, spec: str | None = None) -> Route:
        """Return who is asked: `spec`, the model chosen by `%model` or `%config`, or what the settings say.

        Raises:
            ConfigError: There is no such model; the message says where its name came from.
        """
        from larik_nb.errors import ConfigError

        if spec:
            return session.route(spec)
        try:
            return session.route(self.chosen or self.model or None)
        except ConfigError as error:
            if not self.chosen_by:
                raise
            raise ConfigError(error.message, source=self.chosen_by) from error

    def say_status(self, session: Session, *, running: bool | None = None) -> None:
        """Tell the front end who is asked and what it has cost; whether a turn runs stays where nothing is said of it."""
        from larik_nb.errors import LarikError
        from larik_nb.routing._config import budget_limits
        from larik_nb.routing.budget import BudgetLimits

        spec, limits = None, BudgetLimits()
        with suppress(LarikError):  # nothing is set up, or the settings cannot be read: there is no model to name
            limits = budget_limits(session.config)
            spec = self.route(session).spec
        spent = session.spent
        state = State(
            model=spec,
            session_usd=spent.usd,
            at_least=spent.at_least,
            budget_usd=limits.session_usd,
            level=limits.level(spent.usd),
            running=self.status.state.running if running is None else running,
        )
        self.status.say(state)
        for told in list(self.on_status):
            told(session, self.status.state.running)

    def _first_state(self) -> State:
        """Return what is known before the first turn, by settings and keys alone: no server is looked for."""
        from larik_nb.errors import LarikError
        from larik_nb.providers._resolve import configured
        from larik_nb.routing._config import budget_limits

        state = State()
        with suppress(LarikError):  # as in `say_status`
            session = self.session(None)
            state = State(budget_usd=budget_limits(session.config).session_usd)
            found = self.route(session) if self.chosen_by else configured(session.config)
            state = replace(state, model=found.spec if found else None)
        return state

    def _models(self, data: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        from larik_nb.notebook import picking

        return picking.models(self, data)

    def _choose(self, data: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        from larik_nb.notebook import picking

        return picking.choose(self, data)


def _body(cell: str) -> str:
    """Return the cell's text without the line end IPython adds, and without marks meant for nbval."""
    body = cell.removesuffix("\n")
    lines = body.split("\n")
    kept = [line for line in lines if not line.startswith(_MARKERS)]
    return body if len(kept) == len(lines) else "\n".join(kept)
