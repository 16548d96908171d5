"""The notebook's door: what `%load_ext larik_nb` registers, and what takes it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from larik_nb.notebook.magics import LarikMagics

_loaded: WeakKeyDictionary[InteractiveShell, list[Callable[[], None]]] = WeakKeyDictionary()
"""For each shell what undoes its registrations, last first."""


def load(shell: InteractiveShell) -> None:
    """Register magics, completion and the display of messages; a second time does nothing."""
    if shell in _loaded:
        return
    from larik_nb.notebook.magics import LarikMagics
    from larik_nb.notebook.status import State

    magics = LarikMagics(shell)
    configurables: list[Any] = shell.configurables
    undo = _loaded[shell] = [magics.status.close, lambda: configurables.remove(magics)]
    undo.append(_add_magic(shell, "larik", magics.larik, kinds=("line", "cell")))
    for name, act in magics.short_names().items():
        if name not in shell.magics_manager.magics["line"]:
            undo.append(_add_magic(shell, name, act, kinds=("line",)))
    undo.append(_add_completion(shell, magics))
    undo.append(_add_display(shell, magics))
    undo.append(_add_empty_body(shell))
    undo.append(_add_async_cells(shell, magics))
    undo.append(_add_failed_cells(shell, magics))
    undo.append(magics.pictures.listen())
    magics.status.say(State())


def unload(shell: InteractiveShell) -> None:
    """Take back what `load` registered; nothing where it was not loaded."""
    for undo in reversed(_loaded.pop(shell, [])):
        undo()


def _add_magic(shell: InteractiveShell, name: str, act: Any, *, kinds: tuple[str, ...]) -> Callable[[], None]:
    table = shell.magics_manager.magics
    for kind in kinds:
        table[kind][name] = act

    def remove() -> None:
        for kind in kinds:
            if table[kind].get(name) == act:
                del table[kind][name]

    return remove


def _add_empty_body(shell: InteractiveShell) -> Callable[[], None]:
    """Let `%%larik -p "text"` stand alone: IPython refuses a cell magic without a body before we hear of it."""

    def with_body(lines: list[str]) -> list[str]:
        alone = len(lines) == 1 and lines[0].startswith("%%larik") and not lines[0].rstrip().endswith("?")
        return [*lines, "\n"] if alone else lines

    with_body.has_side_effects = True  # type: ignore[attr-defined]  # a terminal is not to think the cell complete
    transforms: list[Any] = shell.input_transformers_cleanup
    transforms.append(with_body)
    return lambda: transforms.remove(with_body)


def _add_async_cells(shell: InteractiveShell, magics: LarikMagics) -> Callable[[], None]:
    """Let a cell that is wholly ours be awaited, where somebody watches it and the kernel can."""

    def awaited(lines: list[str]) -> list[str]:
        if not lines or not lines[0].startswith("get_ipython().run_"):
            return lines
        from larik_nb.notebook import cells

        return cells.awaited(magics, lines)

    transforms: list[Any] = shell.input_transformers_post
    transforms.append(awaited)
    return lambda: transforms.remove(awaited)


def _add_failed_cells(shell: InteractiveShell, magics: LarikMagics) -> Callable[[], None]:
    """Keep what failed, for `%larik fix` and `%larik explain`."""

    def note(result: Any) -> None:
        if result.error_in_exec is not None or result.error_before_exec is not None:
            from larik_nb.notebook import fix

            fix.note(magics, result)

    shell.events.register("post_run_cell", note)
    return lambda: shell.events.unregister("post_run_cell", note)


def _add_completion(shell: InteractiveShell, magics: LarikMagics) -> Callable[[], None]:
    def answer(context: Any) -> Any:
        from larik_nb.notebook.complete import Completer
        from larik_nb.notebook.content import visible
        from larik_nb.notebook.verbs import VERBS

        completer = Completer(names=lambda: visible(shell), verbs=VERBS, sessions=lambda: magics.sessions)
        return completer(context)

    from IPython.core.completer import context_matcher

    matchers = shell.Completer.custom_matchers
    matcher = context_matcher(identifier="larik_nb", priority=100)(answer)
    matchers.append(matcher)
    return lambda: matchers.remove(matcher)


def _add_display(shell: InteractiveShell, magics: LarikMagics) -> Callable[[], None]:
    """Let messages show as their text, once where the magic that made one has just shown it."""

    def once(message: Any) -> None:
        shown, magics.just_shown = magics.just_shown, None
        if shown != (message, shell.execution_count):
            raise NotImplementedError  # tells IPython that the next formatter shall do it

    def bundle(message: Any) -> dict[str, str]:
        from larik_nb.notebook.display import message_bundle

        return message_bundle(message)

    formatter: Any = shell.display_formatter
    name = ("larik_nb.types", "Message")
    formatter.ipython_display_formatter.for_type_by_name(*name, once)
    formatter.mimebundle_formatter.for_type_by_name(*name, bundle)

    def remove() -> None:
        for kind in (formatter.ipython_display_formatter, formatter.mimebundle_formatter):
            kind.deferred_printers.pop(name, None)
            kind.type_printers.pop(_message_type(), None)

    return remove


def _message_type() -> Any:
    from larik_nb.types import Message

    return Message
