"""`larik local …`: fetch a model, see what is here."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from larik_nb import _command
from larik_nb.errors import ConfigError
from larik_nb.providers.local import cache, server, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


EXAMPLES = """examples:
  larik local fetch                  the best model that can be had from here
  larik local fetch smollm2-135m     the smallest one; needs no more than pip does
  larik local list                   names, sizes, licences, what is here
  larik local status                 whether a cell can use local/… now
  larik local path                   the model's file
"""


def cli(argv: Sequence[str]) -> int:
    """Run one command and return its exit status: 0, or 1 with one line on standard error; none shows the commands."""
    if not argv:
        _parser().print_help()
        return 0
    options = _parser().parse_args(list(argv))
    run: Callable[[argparse.Namespace], int] = options.run
    return _command.status(lambda: run(options), stopped="stopped; the same command goes on from here")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="larik local",
        description="Small open models that run on this machine, without a key and free of charge.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="fetch | list | status | path")
    fetch = commands.add_parser("fetch", help="download a model, checked by its hash", epilog="A cut download goes on.")
    fetch.add_argument("name", nargs="?", help="a name from the list; without one the best that can be had")
    fetch.add_argument("--yes", "-y", action="store_true", help="do not ask")
    fetch.set_defaults(run=_fetch)
    commands.add_parser("list", help="show the models").set_defaults(run=_list)
    commands.add_parser("status", help="show what is ready").set_defaults(run=_status)
    path = commands.add_parser("path", help="print where a model's file is")
    path.add_argument("name", nargs="?", help="a name from the list; without one the best that is here")
    path.set_defaults(run=_path)
    return parser


def _fetch(options: argparse.Namespace) -> int:
    from larik_nb.providers.local.fetch import choose, fetch_model
    from larik_nb.providers.local.progress import ProgressLine

    model = table.find(options.name) if options.name else choose(table.models())
    if cache.is_present(model):
        print(f"local/{model.name} is here: {cache.path_of(model)}")
        return 0
    print(f"{model.title}: {model.size}, licence {model.licence}. {model.description}.")
    print(f"From {model.sources[0].label} into {cache.path_of(model).parent}")
    if not (options.yes or _agrees()):
        print("Nothing was fetched.")
        return 1
    with ProgressLine(model.name) as progress:
        path = fetch_model(model, progress=progress)
    print(f"local/{model.name} is ready: {path}")
    return 0


def _agrees() -> bool:
    """Ask once; where nobody can answer, the command itself was the yes."""
    if not (sys.stdin and sys.stdin.isatty()):
        return True
    return input("Fetch it? [Y/n] ").strip().casefold() in ("", "y", "yes")


def _list(_: argparse.Namespace) -> int:
    for model in table.models():
        place = f"here: {cache.path_of(model)}" if cache.is_present(model) else f"from {model.sources[0].label}"
        print(f"local/{model.name:<20} {model.size:>7} · {model.licence} · {place}")
        print(f"{'':>26} {model.description}")
    return 0


def _status(_: argparse.Namespace) -> int:
    here = cache.best_present(table.models())
    has_extra = find_spec("xllamacpp") is not None
    extra = "installed" if has_extra else 'missing: pip install "larik-nb[local]"'
    model = f"local/{here.name} ({here.size})" if here else "none yet: larik local fetch"
    serving = ", ".join(f"{name} (process {pid})" for name, pid in server.running().items()) or "none in this process"
    print(f"extra   {extra}\nmodel   {model}\nserver  {serving}\ncache   {cache.cache_dir()}")
    return 0 if here and has_extra else 1


def _path(options: argparse.Namespace) -> int:
    known = table.models()
    model = table.find(options.name) if options.name else cache.best_present(known)
    if model is None or not cache.is_present(model):
        msg = f"local/{model.name} is not on this machine" if model else "no local model is on this machine"
        raise ConfigError(msg, remedy=f"Fetch it with: larik local fetch{f' {model.name}' if model else ''}")
    print(cache.path_of(model))
    return 0
