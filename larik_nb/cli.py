"""The shell's door: `larik VERB …`, as thin as the magics."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from larik_nb._version import __version__
from larik_nb.config import config_path

if TYPE_CHECKING:
    from larik_nb.config import Config

USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        argv: The arguments after the program's name; None takes the process's own.

    Returns:
        The exit status: 0 when it went well, 1 when it failed, 2 for a wrong command line.
    """
    from larik_nb import _command

    asked = _parser().parse_args(argv)
    if asked.verb is None:
        _parser().print_help()
        return USAGE
    run, _ = _VERBS[asked.verb]
    return _command.status(lambda: run(asked.rest))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="larik",
        description="Any model in a notebook cell, and from the shell.",
        epilog=f"settings: {config_path(os.environ) or 'no home folder is known'}",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # a path is not to be wrapped
    )
    parser.add_argument("--version", action="version", version=f"larik-nb {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    for name, (_, does) in _VERBS.items():
        verb = verbs.add_parser(name, help=does, add_help=False, prefix_chars="\0")
        verb.add_argument("rest", nargs="*")
    return parser


def _wants_help(words: Sequence[str]) -> bool:
    return any(word in ("-h", "--help") for word in words)


def _config() -> Config:
    from larik_nb.config import Config

    return Config.load()


def _print(text: str, rows: Sequence[Sequence[str]] = ()) -> None:
    from larik_nb.notebook import tables

    parts = [tables.aligned(rows, numbers=False)] if rows else []
    print("\n\n".join([*parts, *([text] if text else [])]))


# -- the verbs --------------------------------------------------------------------------------------------------------
def _local(words: Sequence[str]) -> int:
    from larik_nb.providers.local import cli

    return cli(words)


def _models(words: Sequence[str]) -> int:
    from larik_nb.errors import ConfigError
    from larik_nb.notebook import listing

    if _wants_help(words):
        print("larik models [PROVIDER …]: the models that providers have now, with prices; 1 where one does not answer")
        return 0
    try:
        text, rows, whole = listing.answer(words, _config())
    except ConfigError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return USAGE
    _print(text, rows)
    return 0 if whole else 1


def _routing(words: Sequence[str]) -> int:
    from larik_nb.notebook import routing

    if _wants_help(words):
        print("larik routing                        every role with its model")
        print("larik routing worker=MODEL explore=  change and unset; budget=5, worker.max_turns=30, …")
        print("larik routing preset NAME --dry-run  what a preset would change; without --dry-run it does")
        print("larik routing suggest                what each preset would choose, and why")
        return 0
    _print(*routing.answer(words, _config(), {}))
    return 0


def _keys(words: Sequence[str]) -> int:
    from larik_nb.errors import ConfigError
    from larik_nb.notebook import keys

    if _wants_help(words):
        print("larik keys                         where each provider's key comes from")
        print("larik keys add PROVIDER keyring    take a key into the system's keyring")
        return 0
    if list(words[:1]) == [keys.ADD] and len(words) == 2:
        raise ConfigError("a key typed here would end with this command", remedy=f"larik keys add {words[1]} keyring")
    _print(*keys.answer(words, _config(), can_ask=sys.stdin is not None and sys.stdin.isatty()))
    return 0


def _settings(words: Sequence[str]) -> int:
    import json
    import os

    from larik_nb import config

    shown = {
        "schema": lambda: json.dumps(config.schema(), indent=2),
        "path": lambda: str(config.config_path(os.environ) or "no home folder is known: set LARIK_CONFIG"),
        "show": lambda: "\n".join(
            [json.dumps(config.masked(config.current(os.environ)[0]), indent=2), *_config().notices]
        ),
    }
    if len(words) != 1 or words[0] not in shown:
        print("larik config show     the settings file, keys masked")
        print("larik config path     where it is, or would be")
        print("larik config schema   what may stand in it, as JSON Schema")
        return 0 if _wants_help(words) else USAGE
    print(shown[words[0]]())
    return 0


_VERBS: dict[str, tuple[Callable[[Sequence[str]], int], str]] = {
    "config": (_settings, "the settings file: show, path, schema"),
    "keys": (_keys, "where each provider's key comes from"),
    "local": (_local, "the model on this machine: fetch, list, status"),
    "models": (_models, "the models that providers have now, with prices"),
    "routing": (_routing, "which model each role is: show, change, presets"),
}


if __name__ == "__main__":
    sys.exit(main())
