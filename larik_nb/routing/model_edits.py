"""Edits of a model's settings, `temperature=0.2 seed=`, as they are typed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, get_args

from larik_nb.errors import ConfigError
from larik_nb.routing.edits import Change
from larik_nb.routing.settings import ModelSettings, bare
from larik_nb.types import Effort

SETTINGS = tuple(item.name for item in fields(ModelSettings))
EFFORTS: tuple[str, ...] = get_args(Effort)
UNSET = ("", "auto", "none", "default")
_PLACE = "model_settings"


def parse(model: str, words: Sequence[str], data: Mapping[str, Any]) -> list[Change]:
    """Read edits of one model's settings.

    Args:
        model: The model's name, with or without its provider: the settings count wherever it is asked.
        words: `NAME=VALUE` each; an empty value, or auto, unsets.
        data: The settings file as JSON has it: a model that has a row there keeps its name.

    Raises:
        ConfigError: A word is no edit, names no setting, or its value is of another kind.
    """
    row = _row(model, data)
    return [Change((_PLACE, row, name), value) for name, value in map(_edit, words)]


def _row(model: str, data: Mapping[str, Any]) -> str:
    """Return the name of the row that counts for a model: the bare one, else the first of its names."""
    rows = data.get(_PLACE)
    names = sorted((name for name in rows or () if bare(name) == bare(model)), key=lambda name: "/" in name)
    return names[0] if names else bare(model)


def _edit(word: str) -> tuple[str, Any]:
    name, equals, text = (part.strip() for part in word.partition("="))
    if not equals:
        raise ConfigError(
            f'"{word}" is no edit', remedy="Write it like temperature=0.2; nothing behind the = unsets it"
        )
    name = one_of(name.lower().replace("-", "_"), SETTINGS, "there is no setting {}")
    if text.lower() in UNSET:
        return name, None
    return name, one_of(text.lower(), EFFORTS, "there is no effort {}") if name == "reasoning_effort" else _count(text)


def _count(text: str) -> Any:
    try:
        return json.loads(text.replace("_", ""))
    except ValueError:
        raise ConfigError(f"{text} is no number") from None


def one_of(word: str, words: Sequence[str], otherwise: str) -> str:
    """Return a word that is one of several.

    Raises:
        ConfigError: It is none; the message names the nearest, or all.
    """
    if word in words:
        return word
    close = get_close_matches(word, words, n=1, cutoff=0.6)
    remedy = f"Did you mean {close[0]}?" if close else f"One of: {', '.join(words)}"
    raise ConfigError(otherwise.format(word), remedy=remedy)
