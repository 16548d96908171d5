"""Imports go one way: notebook, cli, bench → agent → routing → providers → http. Leaves import no room."""

from __future__ import annotations

import ast
import pathlib

import larik_nb

PACKAGE = pathlib.Path(larik_nb.__file__).parent
ROOMS = ["http", "providers", "routing", "agent", "notebook"]
"""Each may import those before it."""

LEAVES = {
    "_command",
    "_sending",
    "types",
    "errors",
    "config",
    "catalog",
    "estimate",
    "frames",
    "portal",
    "_imports",
    "_version",
}
"""Anybody may import them; among themselves they may, but they never import a room."""


def room(name: str) -> str:
    """Return the room of a dotted module name: errors' and config's private files are theirs, the transports are http's."""
    part = name.split(".")[1] if "." in name else ""
    part = "errors" if part.startswith("_error") else part
    part = "config" if part.startswith("_config") else part
    return {"_transports": "http", "_network": "http", "_proxies": "http", "cli": "notebook", "bench": "notebook"}.get(
        part, part
    )


def imports(path: pathlib.Path) -> set[str]:
    """Return the package's modules that a file imports when it runs, wherever in it; types alone do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} if node.module != "larik_nb" else {f"larik_nb.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("larik_nb.")}


def test_no_arrow_turns_back() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        own = room(".".join(("larik_nb", *path.relative_to(PACKAGE).with_suffix("").parts)))
        for name in sorted(imports(path)):
            other = room(name)
            if other == own or other in LEAVES:
                continue
            allowed = ROOMS[: ROOMS.index(own)] if own in ROOMS else ROOMS if own == "__init__" else []
            if other not in allowed:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")

    assert wrong == []


def test_vendor_libraries_are_imported_where_they_are_used() -> None:
    """A module-level import of a library would make everybody pay for it."""
    allowed = {"_transports.py": {"h11"}, "_serve.py": {"xllamacpp"}, "_base.py": {"anywidget"}}
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = {a.name for a in node.names} if isinstance(node, ast.Import) else set()
            names |= {node.module or ""} if isinstance(node, ast.ImportFrom) else set()
            for name in {name.partition(".")[0] for name in names} - {"larik_nb", "__future__", "IPython", "traitlets"}:
                import sys

                if name not in sys.stdlib_module_names and name not in allowed.get(path.name, set()):
                    wrong.append(f"{path.relative_to(PACKAGE)}: {name}")

    assert wrong == []
