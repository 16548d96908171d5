"""What `%model_settings` says: what is set for a model, how it is sent, and why the rest is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from larik_nb.errors import ConfigError
from larik_nb.notebook import display
from larik_nb.notebook.routing import Rows, saved_lines
from larik_nb.providers import Previews, UnavailableProvider, connect, resolve
from larik_nb.routing import _config, edits, model_edits, settings_report
from larik_nb.routing.settings import NOTHING, ModelSettings, bare

if TYPE_CHECKING:
    from larik_nb.config import Config
    from larik_nb.routing.settings_report import Effect
    from larik_nb.types import Effort

HEAD = ("setting", "value", "sent as", "from")
SESSION = "%effort"


def answer(words: Sequence[str], config: Config, asked: str | None, effort: Effort | None) -> tuple[str, Rows]:
    """Show what is set for a model, or change it.

    Args:
        words: A model or none for the one that is asked, then `NAME=VALUE` edits.
        config: The settings.
        asked: The model that is asked now, "provider/model"; None: that of the settings.
        effort: That of this notebook.

    Returns:
        The text, and the rows of a table to show before it.

    Raises:
        ConfigError: There is no such model or setting, or the settings cannot be saved.
    """
    named = [word for word in words if "=" not in word]
    if len(named) > 1:
        raise ConfigError(
            f"{' '.join(named)} are several models", remedy="Write %model_settings [MODEL] [NAME=VALUE …]"
        )
    spec = resolve(named[0] if named else asked, config).spec
    if changes := [word for word in words if "=" in word]:
        return _changed(spec, changes, config), []
    return _told(spec, config, effort)


def _changed(spec: str, words: Sequence[str], config: Config) -> str:
    from larik_nb.config import Config, current

    data, _ = current(config.env)
    changes = model_edits.parse(spec, words, data)
    told = "\n".join(saved_lines(edits.apply(changes, env=config.env), config))
    after = Config.load(env=config.env)
    dropped = [effect for effect in effects(spec, after, set_for(spec, after)) or () if not effect.sent]
    edited = {change.path[-1] for change in changes}
    notes = [f"{effect.name} is not sent to {spec}: {effect.why}" for effect in dropped if effect.name in edited]
    return "\n".join([told, *notes])


def _told(spec: str, config: Config, effort: Effort | None) -> tuple[str, Rows]:
    own = set_for(spec, config)
    wanted = replace(own, reasoning_effort=effort) if effort else own
    source = config.origin("model_settings")
    others = _others(spec, config)
    if not wanted.set():
        how = f"nothing is set for {spec}: it is asked as its provider likes. Set: %model_settings temperature=0.2"
        return "\n".join([how, *others]), []
    known = effects(spec, config, wanted)
    rows = [_row(effect, effort, source) for effect in known] if known else _unknown(wanted, effort, source)
    line = f"{spec}" if known else f"{spec} runs in this process: what it does with these is its own affair"
    return "\n".join([line, *others]), [HEAD, *rows]


def _row(effect: Effect, effort: Effort | None, source: str) -> tuple[str, ...]:
    return effect.name, _shown(effect.value), sent(effect), _place(effect.name, effort, source)


def _unknown(settings: ModelSettings, effort: Effort | None, source: str) -> Rows:
    return [(name, _shown(value), "unknown", _place(name, effort, source)) for name, value in settings.set().items()]


def _place(name: str, effort: Effort | None, source: str) -> str:
    return SESSION if effort and name == "reasoning_effort" else display.home_short(source)


def sent(effect: Effect) -> str:
    """Return how a setting goes out, "reasoning.effort = high", or why it does not."""
    if not effect.sent:
        return f"not sent: {effect.why}"
    return ", ".join(f"{place} = {_shown(value)}" for place, value in effect.sent.items())


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _others(spec: str, config: Config) -> list[str]:
    """Return what is set for other models, a line each."""
    rows = _config.model_settings(config).items()
    return [
        f"also set for {name}: {', '.join(f'{key}={_shown(value)}' for key, value in settings.set().items())}"
        for name, settings in rows
        if name != bare(spec) and settings.set()
    ]


def set_for(spec: str, config: Config) -> ModelSettings:
    """Return what the settings say of a model."""
    return _config.model_settings(config).get(bare(spec), NOTHING)


def effects(spec: str, config: Config, settings: ModelSettings) -> list[Effect] | None:
    """Return what becomes of settings at a model; None where nothing goes over a wire. Nothing is sent."""
    provider = connect(spec, config=config)
    if isinstance(provider, UnavailableProvider):
        provider = connect(spec, config=config, api_key="-")  # what would be sent does not depend on the key
    if not isinstance(provider, Previews):
        return None
    route, _, model = spec.partition("/")
    return settings_report.report(provider, settings, model, config.catalog.find(route, model)) or None
