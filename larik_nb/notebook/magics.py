"""The magics: read the line, ask the session, show what comes.

All else is imported when a magic is first used, so that loading stays quick.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from IPython.core.magic import MAGIC_NO_VAR_EXPAND_ATTR, Magics, magics_class
from traitlets import Unicode

from larik_nb.notebook.status import Status

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from larik_nb.agent.session import Route, Session
    from larik_nb.notebook.options import Asked
    from larik_nb.types import Message

MAIN = "main"
_MARKERS = ("# NBVAL_", "#NBVAL_", "# nbval-", "#nbval-")


@magics_class
class LarikMagics(Magics):
    """`%larik`, `%%larik` and `%model`, which `notebook.load` registers."""

    model = Unicode("", help="The model to ask: provider/model, or a name that stands for one.").tag(config=True)

    def __init__(self, shell: InteractiveShell, **traits: Any) -> None:
        super().__init__(shell, **traits)
        self.ip = shell
        self.status = Status(shell)
        self.sessions: dict[str, Session] = {}
        self.recordings: dict[tuple[int, str, Any], Any] = {}
        self.chosen: str | None = None
        self.told: set[str] = set()
        self.on_status: set[Callable[[Session, bool], None]] = set()
        self.last_failure: BaseException | None = None
        self.just_shown: tuple[Message, int] | None = None

    # -- the magics -------------------------------------------------------------------------------------------
    def larik(self, line: str, cell: str | None = None) -> Message | None:
        """Ask a model: `%%larik [options]` with the question under it, or `%larik [options] question`.

        `%larik help` shows the options and the other commands.
        """
        return self._guarded(lambda: self._line(line) if cell is None else self._cell(line, cell))

    def model_magic(self, line: str) -> None:
        """Show the model that is asked, or go on with another: `%model provider/model`."""
        from larik_nb.notebook import verbs

        self._guarded(lambda: verbs.model(self, line.strip()))

    def routing_magic(self, line: str) -> None:
        """Show every role with its model, or change them: `%routing worker=provider/model budget=5`.

        Alone on its line, in a page that draws widgets, it opens the wizard; all that one does can be written as text.
        `explore=` unsets, `worker.max_turns=30` and `worker.isolation=worktree` hold its subagents,
        `preset cheapest --dry-run` shows what a preset would change, `suggest worker` why which model comes first.
        """
        from larik_nb.notebook import verbs

        self._guarded(lambda: verbs.routing(self, line.strip()))

    for magic in (larik, model_magic, routing_magic):  # IPython is not to expand {} and $ on our lines
        setattr(magic, MAGIC_NO_VAR_EXPAND_ATTR, True)
    del magic

    def _guarded(self, act: Callable[[], Message | None]) -> Message | None:
        """Act; an error of ours shows as one line, and every failure is kept for `%larik debug`."""
        from larik_nb.errors import LarikError
        from larik_nb.notebook import failures

        try:
            return act()
        except LarikError as error:
            self.last_failure = error
            raise failures.short(error) from error.__cause__
        except KeyboardInterrupt:  # also before anything was asked
            raise failures.Interrupted from None
        except Exception as error:
            self.last_failure = error
            raise

    def _line(self, line: str) -> Message | None:
        from larik_nb.notebook import verbs
        from larik_nb.notebook.options import parse

        verb = verbs.find(line or "help")
        if verb is not None:
            verb(self)
            return None
        verbs.check_slip(line)
        asked = parse(line)
        message = self._ask(asked, "\n".join(filter(None, [asked.prompt, asked.text])))
        if message is not None:
            self.just_shown = (message, self.ip.execution_count)
        return None if asked.out else message

    def _cell(self, line: str, cell: str) -> None:
        from larik_nb.notebook.options import parse

        asked = parse(line)
        self._ask(asked, "\n\n".join(filter(None, [asked.prompt, asked.text, _body(cell)])))

    # -- a turn -----------------------------------------------------------------------------------------------
    def _ask(self, asked: Asked, text: str) -> Message | None:
        from larik_nb.notebook.turn import run
        from larik_nb.notebook.verbs import show_help

        if asked.help:
            show_help(self)
            return None
        return run(self, asked, text)

    def session(self, name: str | None) -> Session:
        """Return the conversation of that name, begun where there is none."""
        from larik_nb.agent.session import Session

        key = name or MAIN
        if key not in self.sessions:
            self.sessions[key] = Session()
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

    def say_status(self, session: Session, *, running: bool) -> None:
        """Tell the front end who is asked and what it has cost."""
        from larik_nb.errors import LarikError

        spec = None
        with suppress(LarikError):  # nothing is set up: there is no model to name
            spec = self.route(session).spec
        self.status.say(model=spec, session_usd=session.cost_usd, running=running)
        for told in list(self.on_status):
            told(session, running)


def _body(cell: str) -> str:
    """Return the cell's text without the line end IPython adds, and without marks meant for nbval."""
    body = cell.removesuffix("\n")
    lines = body.split("\n")
    kept = [line for line in lines if not line.startswith(_MARKERS)]
    return body if len(kept) == len(lines) else "\n".join(kept)
