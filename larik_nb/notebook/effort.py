"""What `%effort` says: how hard the models of this notebook are to think, and what becomes of it at the one asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from larik_nb.errors import ConfigError
from larik_nb.notebook import model_settings
from larik_nb.routing.model_edits import EFFORTS, one_of
from larik_nb.routing.settings import ModelSettings

if TYPE_CHECKING:
    from larik_nb.config import Config
    from larik_nb.types import Effort

AUTO = "auto"
WORDS = (*EFFORTS, AUTO)


def read(word: str) -> Effort | None:
    """Return the level that a word means; None for auto.

    Raises:
        ConfigError: It means none.
    """
    level = one_of(word.strip().lower(), WORDS, "there is no effort {}")
    return None if level == AUTO else cast("Effort", level)


def told(effort: Effort | None, spec: str | None, config: Config) -> str:
    """Return the effort in force and what is sent because of it.

    Args:
        effort: Of this notebook.
        spec: The model that is asked, "provider/model"; None: there is none yet.
        config: The settings.
    """
    own = model_settings.set_for(spec, config).reasoning_effort if spec else None
    level = effort or own
    if level is None:
        usual = _usual(spec, config)
        return f"effort {AUTO}: the model's own{f', {usual}' if usual else ''}. Levels: {', '.join(EFFORTS)}"
    source = "for this notebook" if effort else f"from model_settings in {config.origin('model_settings')}"
    return " · ".join(filter(None, [f"effort {level} {source}", _becomes(level, spec, config)]))


def _usual(spec: str | None, config: Config) -> str:
    provider, _, model = (spec or "").partition("/")
    known = config.catalog.find(provider, model) if model else None
    return (known.default_effort or "") if known else ""


def _becomes(level: Effort, spec: str | None, config: Config) -> str:
    if spec is None:
        return ""
    try:
        effects = model_settings.effects(spec, config, ModelSettings(reasoning_effort=level))
    except ConfigError:  # a provider made by hand has a name that the settings do not know
        effects = None
    return f"{spec}: {model_settings.sent(effects[0])}" if effects else ""
