"""`%larik VERB`: the commands, each a short text in the cell."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from larik_nb.errors import ConfigError
from larik_nb.notebook import display, failures, markdown, tables
from larik_nb.notebook.magics import MAIN
from larik_nb.notebook.options import OPTIONS

if TYPE_CHECKING:
    from larik_nb.agent.session import Route, Session, Turn
    from larik_nb.config import Config
    from larik_nb.notebook.magics import LarikMagics
    from larik_nb.notebook.meter import Report
    from larik_nb.notebook.steps import Steps
    from larik_nb.notebook.widgets._base import Panel
    from larik_nb.providers._probe import Probed
    from larik_nb.types import Message

_LONGEST_LINE = 100
_HELP_COLUMN = 34
_WITH_OPTION = re.compile(r"(\w+)\s+(--?[A-Za-z][\w-]*)")


@dataclass(frozen=True, slots=True)
class Verb:
    """A command: what it does, and what may follow it without its line being a question: so many words, or a pattern."""

    does: str
    run: Callable[[LarikMagics, str], Steps[None] | None]
    words: int = 0
    value: str = ""
    takes: str | None = None

    def fits(self, rest: str) -> bool:
        """Return whether what follows the name is meant for the command."""
        if self.takes is not None:
            return re.fullmatch(self.takes, rest) is not None
        return len(rest.split()) <= self.words


def find(line: str) -> Callable[[LarikMagics], Steps[None] | None] | None:
    """Return what `line` commands, which may return what is left to do as steps; None when it is a question ("status of the patient?")."""
    name, _, rest = line.strip().partition(" ")
    verb = VERBS.get(name)
    if verb is None or not verb.fits(rest.strip()):
        return None
    return lambda magics: verb.run(magics, rest.strip())


def check_slip(line: str) -> None:
    """Refuse what is nearly a command: nobody asks a model "histroy", or "history --all".

    Raises:
        ConfigError: A lone word, with the command that is nearest; a command with an option that it does not take.
    """
    from difflib import get_close_matches

    word = line.strip()
    if match := _WITH_OPTION.match(word):
        name = match[1]
        if name in VERBS:
            remedy = f'Write: {f"%larik {name} {VERBS[name].value}".rstrip()}. To ask it: %larik -p "…"'
            raise ConfigError(f"%larik {name} does not take {match[2]}", remedy=remedy)
    close = get_close_matches(word.lower(), VERBS, n=1, cutoff=0.75) if word.isalpha() else []
    if close:
        remedy = f'Closest: {close[0]}. To ask it: %larik -p "{word}"'
        raise ConfigError(f"no command {word}", remedy=remedy)


def say(magics: LarikMagics, plain: str, rich: str | None = None) -> None:
    """Show a text; `rich` is the same as markdown."""
    bundle = {"text/plain": plain, **({"text/markdown": rich} if rich else {})}
    magics.ip.display_pub.publish(data=bundle, metadata={})


# -- %model -------------------------------------------------------------------------------------------------------
def model(magics: LarikMagics, spec: str) -> None:
    """Show the model, or switch to `spec`."""
    session = magics.session(None)
    if spec:
        say(magics, _switched(magics, session, spec))
        return
    if _has_page(magics):
        _open_picker(magics, session)
    else:
        say(magics, _about_model(magics, session))
    magics.say_status(session)


def _switched(magics: LarikMagics, session: Session, spec: str) -> str:
    """Go on with another model, and return what is to be said of that."""
    before = _spec_or_none(magics, session)
    route = session.route(spec)
    after = route.spec
    magics.chosen = spec
    shown = f"{before} → {after}{_left_behind(session, after)}" if before not in (None, after) else after
    magics.say_status(session, running=False)
    return " · ".join([shown, *_doubts(session, route)])


def _has_page(magics: LarikMagics) -> bool:
    """Return whether a page looks on that may draw widgets; no test of one is as good as its answer."""
    from larik_nb.notebook import widgets
    from larik_nb.notebook.place import Place

    place = Place.of(magics.ip)
    return place.in_kernel and place.can_ask and widgets.available()


def _open_picker(magics: LarikMagics, session: Session) -> None:
    from larik_nb.notebook.widgets.picker import PickerPanel

    panel = PickerPanel(session.config, _about_model(magics, session), lambda spec: _switched(magics, session, spec))
    _open(magics, panel)
    panel.fill()


def _open(magics: LarikMagics, panel: Panel) -> None:
    """Show a widget beside its twin, in an output of its own."""
    from uuid import uuid4

    from larik_nb.notebook.render import ShellScreen

    panel.show(ShellScreen(magics.ip), uuid4().hex)


def _spec_or_none(magics: LarikMagics, session: Session) -> str | None:
    try:
        return magics.route(session).spec
    except ConfigError:
        return None


def _left_behind(session: Session, after: str) -> str:
    """Say what of the conversation only the model that made it may see again."""
    count = sum(
        block.type == "thinking"
        for message in session.history
        if display.answered_by(message) != after
        for block in message.blocks
    )
    if not count:
        return ""
    blocks, they, come = ("block stays", "it", "comes") if count == 1 else ("blocks stay", "they", "come")
    return f"; {count} thinking {blocks} with the old model, and {they} {come} back with it"


def _about_model(magics: LarikMagics, session: Session) -> str:
    from larik_nb.notebook import routing

    route, config = magics.route(session), session.config
    known = config.catalog.find(route.provider.name, route.model)
    parts = [route.spec, f"from {routing.shortened(_source(magics, session))}"]
    probed = _probed(route)
    window = (probed.limit if probed else None) or (known.window if known else None)
    parts.append(f"{display.tokens(window)} window" if window else "window unknown")
    price = known.price(0, datetime.now(UTC)) if known else None
    if price is not None:
        parts.append(
            f"${price.input:g}/${price.output:g} per million tokens in/out, prices {routing.prices_of(config)}"
        )
    else:
        parts.append(
            display.free(route.provider.name) if route.provider.name in config.catalog.free else "price unknown"
        )
    abilities = [word for word in ("vision", "tools", "thinking") if known and getattr(known, word)]
    if probed and probed.tools is not None:
        abilities = [word for word in abilities if word != "tools"] + ["tools" if probed.tools else "no tools"]
    return " · ".join([*parts, *filter(None, [" ".join(abilities)]), *_doubts(session, route)])


def _probed(route: Route) -> Probed | None:
    """Return what the model's server says of it; None where there is none to ask."""
    from larik_nb import portal
    from larik_nb.providers._probe import ModelProber

    return portal.wait(route.provider.probe(route.model)) if isinstance(route.provider, ModelProber) else None


def _doubts(session: Session, route: Route) -> Iterator[str]:
    """Yield why the model may not answer: it cannot be asked as things are, or its name looks like a slip.

    A name that is in no catalog is taken all the same: models come out faster than catalogs.
    """
    lacking = getattr(route.provider, "error", None)
    if isinstance(lacking, ConfigError):
        yield lacking.reason
    catalog = session.config.catalog
    if catalog.find(route.provider.name, route.model) is None:
        close = catalog.alike(route.provider.name, route.model)
        if close:
            yield f"not in the catalog; closest: {', '.join(close)}"


def _source(magics: LarikMagics, session: Session) -> str:
    return magics.chosen_by or session.config.model_source or "the first provider that can be used"


# -- the conversation ---------------------------------------------------------------------------------------------
def _of_conversation(show: Callable[[LarikMagics, Session, str], None]) -> Callable[[LarikMagics, str], None]:
    """Make a command of what is done with a conversation; a name that nobody began is told and begins none."""

    def run(magics: LarikMagics, name: str) -> None:
        session = magics.known(name)
        if session is None:
            others = ", ".join(sorted({MAIN, *magics.sessions}))
            say(magics, f"there is no conversation {display.one_line(name)}; there are: {others}")
        else:
            show(magics, session, name or MAIN)

    return run


def _reset(magics: LarikMagics, session: Session, _: str) -> None:
    from larik_nb.notebook.turn import forget_recordings

    count = len(session.history)
    session.reset()
    forget_recordings(magics, session)
    say(magics, f"forgot {_many(count, 'message')}; what they cost stays in the sum")


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _history(magics: LarikMagics, session: Session, _: str) -> None:
    lines = [_told(message) for message in session.history]
    say(magics, "\n".join(lines) or "nothing was said yet")


def _told(message: Message) -> str:
    text = " ".join(markdown.plain(message.text).split())
    shown = text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"
    who = "you" if message.role == "user" else display.answered_by(message)
    mark = " (interrupted)" if message.stop_reason == "interrupted" else ""
    return f"{who}{mark}: {shown}"


def _status(magics: LarikMagics, session: Session, name: str) -> None:
    usage = session.usage
    used = ", ".join(display.counted(usage)) if usage else "none counted"
    others = ", ".join(sorted(magics.sessions))
    lines = [
        f"model     {_about_model(magics, session)}",
        f"session   {name}: {_many(len(session.history), 'message')}, {_many(len(session.turns), 'turn')} (all: {others})",
        f"tokens    {used}",
        f"spent     {display.total(session.spent)}",
        f"settings  {display.home_short(session.config.source)}",
    ]
    if session.system:
        lines.append(f"system    {session.system}")
    say(magics, "\n".join([*lines, *session.config.notices]))


def _cost(magics: LarikMagics, session: Session, _: str) -> None:
    from larik_nb.notebook import meter
    from larik_nb.notebook.place import Place

    def report() -> meter.Report:
        return meter.Report.of(session, lambda: magics.route(session))

    if _has_page(magics):
        _open_meter(magics, session, report)
    else:
        told = report()
        say(magics, meter.text(told, cells=not Place.of(magics.ip).in_kernel), meter.rich(told))
        _plot(magics, told)


def _open_meter(magics: LarikMagics, session: Session, report: Callable[[], Report]) -> None:
    from larik_nb.notebook.widgets.meter import MeterPanel

    def turned(of: Session, running: bool) -> None:  # noqa: FBT001  # as `on_status` calls it
        if of is session:
            panel.changed(running=running)

    panel = MeterPanel(report, closed=lambda _: magics.on_status.discard(turned))
    magics.on_status.add(turned)
    _open(magics, panel)


def _plot(magics: LarikMagics, report: Report) -> None:
    """Show the spend as a picture, where somebody looks who gets no widget and matplotlib is there."""
    from larik_nb.notebook import plots
    from larik_nb.notebook.place import Place

    place = Place.of(magics.ip)
    if place.in_kernel and place.can_ask and plots.available() and plots.worth_it(report):
        magics.ip.display_pub.publish(
            data={"image/png": plots.spend(report), "text/plain": plots.words(report)}, metadata={}
        )


# -- what is set up -----------------------------------------------------------------------------------------------
def routing(magics: LarikMagics, line: str) -> None:
    """Show every role and its model, or change them."""
    from larik_nb.notebook import routing as told

    words, config = _words(line), magics.session(None).config
    if not words and _has_page(magics):
        _open_wizard(magics, config)
        return
    text, rows = told.answer(words, config, _health(magics))
    _show(magics, text, rows)
    if words:
        _refresh_wizards()
        magics.say_status(magics.session(None))


def _open_wizard(magics: LarikMagics, config: Config) -> None:
    from larik_nb.notebook import routing as told
    from larik_nb.notebook.widgets.wizard import RoutingPanel

    panel = RoutingPanel(
        config, lambda: told.answer([], magics.session(None).config, _health(magics)), lambda: _turns(magics)
    )
    _open(magics, panel)
    panel.fill()


def _refresh_wizards() -> None:
    """Let wizards that are open see what was saved; none can be where their module was never needed."""
    wizards = sys.modules.get("larik_nb.notebook.widgets.wizard")
    if wizards is not None:
        wizards.refresh()


def _turns(magics: LarikMagics) -> list[Turn]:
    return [turn for session in magics.sessions.values() for turn in session.turns]


def effort(magics: LarikMagics, line: str) -> None:
    """Show how hard models are to think, or set it for all conversations of this notebook."""
    from larik_nb.notebook import effort as told

    if line:
        magics.effort = told.read(line)
        for session in magics.sessions.values():
            session.effort = magics.effort
    session = magics.session(None)
    say(magics, told.told(magics.effort, _spec_or_none(magics, session), session.config))


def model_settings(magics: LarikMagics, line: str) -> None:
    """Show what is set for a model and what is sent of it, or change it."""
    from larik_nb.notebook import model_settings as told

    session = magics.session(None)
    text, rows = told.answer(_words(line), session.config, _spec_or_none(magics, session), magics.effort)
    _show(magics, text, rows)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ConfigError(f"cannot read the line: {error}") from None


def _health(magics: LarikMagics) -> dict[str, str]:
    """Return what is known of models: the last answer of each in this notebook, and what their chains made of them."""
    from larik_nb.routing.cooldown import ANSWERED, health

    ended = {f"{turn.provider}/{turn.model}": _ended(turn) for turn in _turns(magics)}
    return ended | {spec: words for spec, words in health().items() if words != ANSWERED or spec not in ended}


def _ended(turn: Turn) -> str:
    return "interrupted" if turn.stop_reason == "interrupted" else "answered"


def _models(magics: LarikMagics, line: str) -> None:
    from larik_nb.notebook import listing

    text, rows, whole = listing.answer(line.split(), magics.session(None).config)
    _show(magics, text, rows)
    if not whole:
        raise ConfigError("not every provider told its models", remedy="The lines above say why")


def _keys(magics: LarikMagics, line: str) -> Steps[None]:
    from larik_nb.notebook import asking, keys
    from larik_nb.notebook.place import Place

    talk = keys.talk(line.split(), magics.session(None).config, can_ask=Place.of(magics.ip).can_ask)
    text, rows = yield from asking.put(magics.ip, talk)
    _show(magics, text, rows)


def _show(magics: LarikMagics, text: str, rows: list[tuple[str, ...]]) -> None:
    if rows:
        bundle = tables.with_text(rows, text)
        say(magics, bundle["text/plain"], bundle["text/markdown"])
    else:
        say(magics, text)


# -- the rest -----------------------------------------------------------------------------------------------------
def _debug(magics: LarikMagics, _: str) -> None:
    failure = magics.last_failure
    say(magics, "nothing has failed" if failure is None else failures.whole(failure).rstrip())


def _fix(magics: LarikMagics, line: str) -> Steps[None]:
    from larik_nb.notebook import fix

    return fix.fix(magics, line)


def _explain(magics: LarikMagics, line: str) -> Steps[None]:
    from larik_nb.notebook import fix

    return fix.explain(magics, line)


_OF_CELL = r"(?:(?:(?:--cell|--model|-m)[ =]\S+|--insert)(?:\s+|$))*"


def _local(magics: LarikMagics, line: str) -> None:
    from larik_nb.notebook import local_model

    local_model.run(local_model.split(line))


def show_help(magics: LarikMagics, _: str = "") -> None:
    """Show all options and commands, and where the settings are."""
    from larik_nb.config import config_path

    path = config_path(os.environ)
    say(magics, f"{help_text()}\n\nsettings: {display.home_short(str(path)) if path else 'no home folder is known'}")


EXAMPLES = (
    "  %%larik -m anthropic/claude-opus-5 -o answer       a cell; the lines below are the question:",
    "  Why does revenue drop in March? {sales!stats}",
    "",
    "  %%larik --format table -o top                      top is a data frame",
    "  %%larik --preview                                  what would be sent, and its price",
    "  %model ollama/qwen3-coder                          go on with another model",
    "  %routing worker=groq/openai/gpt-oss-120b budget=2  a role's model, and a limit in dollars",
    "  %larik fix -m scripted/demo                        the cell that failed, set right by that model",
    "  %larik keys add anthropic                          type a key in, for this notebook",
)
"""What `help_text` shows first; a test reads each as its magic would."""


def help_text() -> str:
    """Return what `%larik help` shows, made from the tables that parsing uses."""
    options = [(f"  {option.spelled}", option.does) for option in OPTIONS]
    commands = [(f"  %larik {name} {verb.value}".rstrip(), verb.does) for name, verb in VERBS.items()]
    return "\n".join(
        [
            "%%larik [options]      ask: the question under it, {names} replaced by the notebook's values",
            "                       {df} columns and a few rows  {df!schema} no values  {fig} an image",
            "                       {err} its traceback  {f} source  {Out[3]} a result  @data.csv a file of this folder",
            "%larik [options] text  ask in one line; its value is the answer (a larik_nb.Message)",
            '                       a line that ends in ? asks IPython for help, so quote it: %larik -p "why?"',
            "",
            "examples",
            *EXAMPLES,
            "",
            "options",
            *(_beside(left, right) for left, right in options),
            "",
            "commands; model, routing, effort and model_settings also as %model … where that name is free",
            *(_beside(left, right) for left, right in commands),
        ]
    )


def _beside(left: str, right: str) -> str:
    """Return what is written and what it does, on two lines where the first is long."""
    if len(left) < _HELP_COLUMN - 1:
        return left.ljust(_HELP_COLUMN) + right
    return f"{left}\n{' ' * _HELP_COLUMN}{right}"


VERBS = {
    "model": Verb("show the model that is asked, or go on with another", model, 1, "[MODEL]"),
    "status": Verb("show the model, the conversation and what it has used", _of_conversation(_status), 1, "[SESSION]"),
    "history": Verb("show what was said", _of_conversation(_history), 1, "[SESSION]"),
    "reset": Verb("forget what was said", _of_conversation(_reset), 1, "[SESSION]"),
    "cost": Verb(
        "show what was spent, by model, role, cell and turn, beside the budget", _of_conversation(_cost), 1, "[SESSION]"
    ),
    "routing": Verb(
        "show every role with its model, or change them",
        routing,
        value="[ROLE=MODEL …|budget=USD|preset NAME [--dry-run]|suggest [ROLE [PRESET]]]",
        takes=r"(?:\S+=\S*(?:\s+|$))*|suggest(?: \S+){0,2}|preset(?: [\w-]+)?(?: --dry-run)?",
    ),
    "effort": Verb(
        "show how hard models are to think, or set it for this notebook",
        effort,
        1,
        "[LEVEL|auto]",
    ),
    "model_settings": Verb(
        "show what is set for a model and what is sent of it, or set it",
        model_settings,
        value="[MODEL] [NAME=VALUE …]",
        takes=r"\S*(?:\s+[a-z_]+=\S*)*",
    ),
    "models": Verb("list the models that providers have now, with prices", _models, 1, "[PROVIDER]"),
    "keys": Verb(
        "show where keys come from, or take one in, for now or into the system's keyring",
        _keys,
        value="[add PROVIDER [keyring]]",
        takes=r"(?:add \S+(?: keyring)?)?",
    ),
    "local": Verb("fetch, list or check the small models that run on this machine", _local, 3, "fetch|list|status"),
    "fix": Verb(
        "ask for the cell that failed set right: its change is shown, and made on a yes",
        _fix,
        value="[--cell ID] [-m MODEL] [--insert]",
        takes=_OF_CELL,
    ),
    "explain": Verb(
        "ask why the last failed cell failed, or what a cell does",
        _explain,
        value="[--cell ID] [-m MODEL]",
        takes=_OF_CELL,
    ),
    "debug": Verb("show the traceback of the last failure, keys masked", _debug),
    "help": Verb("show this", show_help),
}
