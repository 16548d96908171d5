"""What `%larik models` and `larik models` say: every provider's models, their windows, prices and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from larik_nb import portal
from larik_nb.notebook import display
from larik_nb.notebook.routing import Rows, prices_of
from larik_nb.providers._listing import Listed, Listing, listings

if TYPE_CHECKING:
    from larik_nb.config import Config

HEAD = ("model", "window", "$ in/out", "until")


def answer(words: Sequence[str], config: Config) -> tuple[str, Rows, bool]:
    """Ask providers for their models and tell them.

    Args:
        words: Providers by name; none: all that are set up.
        config: The settings.

    Returns:
        The text under the table, the table's rows, and whether all providers answered.

    Raises:
        ConfigError: There is no such provider, or none is set up.
    """
    told = portal.wait(listings(config, words))
    rows = [_row(model) for listing in told for model in listing.models]
    problems = [_problem(listing) for listing in told if listing.error or not listing.models]
    foot = "\n".join([*problems, f"prices {prices_of(config)}, per million tokens"])
    return foot, [HEAD, *rows] if rows else [], not any(listing.error for listing in told)


def _problem(listing: Listing) -> str:
    return f"{listing.provider}: {listing.error or 'it lists no models'}"


def _row(model: Listed) -> tuple[str, ...]:
    price = f"{model.price.input:g}/{model.price.output:g}" if model.price else model.free or "-"
    window = display.tokens(model.window) if model.window else "-"
    tools = " (no tools)" if model.tools is False else ""
    return f"{model.spec}{tools}", window, price, str(model.ends or "")
