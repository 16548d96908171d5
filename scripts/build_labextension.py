"""Build the JupyterLab extension when the Python package is built, or say why not.

The build backend calls `build`. A released package always carries the extension; an editable install on a
machine without Node goes on without it, for everything but the status bar works the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SKIP = "LARIK_SKIP_LABEXTENSION"
BUNDLE = Path("larik_nb/labextension")


def node_problem() -> str | None:
    """Say in a sentence why the extension cannot be built here; None when it can.

    The bundler needs Node 20.19 or later in line 20, or 22.12 and later.
    """
    node = shutil.which("node")
    if node is None:
        return "Node.js was not found; install Node 20.19 or newer to have the JupyterLab status bar"
    shown = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    major, minor = (int(part) for part in shown.removeprefix("v").split(".")[:2])
    if (major == 20 and minor >= 19) or (major, minor) >= (22, 12):
        return None
    return f"Node.js {shown} is too old; the JupyterLab status bar needs 20.19, or 22.12 and newer"


def build(target: str, version: str, build_cmd: str) -> None:
    """Build `larik_nb/labextension`.

    Args:
        target: What is being built, `wheel` or `sdist`.
        version: `editable` or `standard`.
        build_cmd: The script of `labextension/package.json` to run.

    Raises:
        RuntimeError: A package meant for others cannot have the extension, and nobody asked to leave it out.
    """
    reason = f"{SKIP} is set" if os.environ.get(SKIP) else node_problem()
    if reason is None:
        from hatch_jupyter_builder import npm_builder

        npm_builder(target, version, path="labextension", build_cmd=build_cmd, npm=["jlpm"])
    elif version == "editable" or os.environ.get(SKIP):
        print(f"larik-nb: the JupyterLab extension is left out: {reason}.", file=sys.stderr)
        BUNDLE.mkdir(exist_ok=True)  # the build backend insists that shared data exists
    else:
        raise RuntimeError(f"{reason}. To build without it: {SKIP}=1")


def main() -> int:
    """Print why the extension cannot be built here; exit 0 when it can, 3 when not."""
    reason = node_problem()
    if reason is None:
        return 0
    print(reason)
    return 3


if __name__ == "__main__":
    sys.exit(main())
