"""The shell's door: `larik VERB …`, as thin as the magics."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import cast

from larik_nb._version import __version__
from larik_nb.config import config_path

_VERBS = {
    "local": ("larik_nb.providers.local", "the model on this machine: fetch, list, status"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        argv: The arguments after the program's name; None takes the process's own.

    Returns:
        The exit status: 0 when it went well, 1 when it failed, 2 for a wrong command line.
    """
    asked = _parser().parse_args(argv)
    if asked.verb is None:
        _parser().print_help()
        return 2
    module, _ = _VERBS[asked.verb]
    run = cast(Callable[[Sequence[str]], int], import_module(module).cli)
    return run(asked.rest)


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


if __name__ == "__main__":
    sys.exit(main())
