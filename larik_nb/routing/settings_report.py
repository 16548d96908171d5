"""Which settings reach a model, in which form, and why the others do not.

Nothing here knows a wire format: a setting has effect where the body that would be sent differs without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from larik_nb.routing.settings import ModelSettings
from larik_nb.types import Request, user

if TYPE_CHECKING:
    from larik_nb.catalog import Model
    from larik_nb.providers import Previews
    from larik_nb.providers._wire import Wire

Body = Callable[[Request], Mapping[str, Any]]
"""Returns the plain values of the body that asks a request, by their places ("options.seed")."""


def report(provider: Previews, settings: ModelSettings, model: str, known: Model | None) -> list[Effect]:
    """Return what becomes of each setting of a model at its provider; of one in-process nothing is known, so nothing.

    Args:
        provider: Of that one model.
        settings: Those that are set.
        model: Its id within the provider.
        known: What the catalog knows of it.
    """
    if provider.wire(_question(model)) is None:
        return []
    return effects(
        settings, model, encoded=_values(provider.encoded), sent=_values(provider.wire), known=known
    )  # fmt: skip


def _values(show: Callable[[Request], Wire | None]) -> Body:
    def body(request: Request) -> Mapping[str, Any]:
        wire = show(request)
        return dict(_leaves(wire.body)) if wire else {}

    return body


def _leaves(body: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the plain values of a body with their places; lists count as plain."""
    for key, value in body.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _question(model: str) -> Request:
    return Request(model=model, messages=(user("?"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What becomes of one setting.

    Attributes:
        name: As it is set.
        value: What it is set to.
        sent: What goes out because of it, by place in the body; empty when it is dropped.
        why: The reason for dropping it; "" when it is sent.
    """

    name: str
    value: Any
    sent: Mapping[str, Any]
    why: str = ""


def effects(settings: ModelSettings, model: str, *, encoded: Body, sent: Body, known: Model | None) -> list[Effect]:
    """Return what becomes of each setting of a model, in their order.

    Args:
        settings: Those that are set.
        model: Its id within the provider.
        encoded: The body as the wire format has it.
        sent: The same less what the server has turned down before.
        known: What the catalog knows of the model.
    """
    question = _question(model)
    return [_effect(name, value, settings, question, encoded, sent, known) for name, value in settings.set().items()]


def _effect(  # each is needed
    name: str,
    value: Any,
    settings: ModelSettings,
    question: Request,
    encoded: Body,
    sent: Body,
    known: Model | None,
) -> Effect:
    if changes := _changes(name, settings, question, sent):
        return Effect(name=name, value=value, sent=changes)
    if _changes(name, settings, question, encoded):
        return Effect(name=name, value=value, sent={}, why="the server does not take it")
    others = [other for other in settings.set() if other != name]
    rival = next((o for o in others if _changes(name, replace(settings, **{o: None}), question, encoded)), None)
    why = f"{rival} goes before it" if rival else _lack(name, value, known)
    return Effect(name=name, value=value, sent={}, why=why)


def _changes(name: str, settings: ModelSettings, question: Request, body: Body) -> dict[str, Any]:
    """Return what is in the body with the setting and not without it."""
    without = body(replace(settings, **{name: None}).into(question))
    return {place: value for place, value in body(settings.into(question)).items() if without.get(place) != value}


def _lack(name: str, value: Any, known: Model | None) -> str:
    """Return what the model lacks to take the setting."""
    if known is None:
        return _GENERAL
    match name:
        case "temperature" | "top_p":
            return _SAMPLING.get(known.sampling or "", _GENERAL)
        case "reasoning_effort" if not known.efforts:
            return "the model has no levels of effort"
        case "thinking_budget" if not known.thinking:
            return "the model does not think"
        case "thinking_budget":
            return "the model takes no number of tokens for thinking" if value else "the model always thinks"
    return _GENERAL


_GENERAL = "this provider has no such setting"
_SAMPLING = {"no": "the model takes no sampling settings", "effort_none": "the model takes it at effort none only"}
