"""The repository keeps its own promises: one version, nothing of one machine's, whole packages."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from larik_nb._version import __version__

ROOT = Path(__file__).resolve().parents[1]
BUNDLE = ROOT / "larik_nb" / "labextension" / "static" / "style.js"


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """List the files that git knows, relative to the root."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, outside: dict[str, str]) -> set[str]:
    """Build the wheel with what lies here and list the files in it."""
    out = tmp_path_factory.mktemp("wheel")
    environment = outside if BUNDLE.exists() else outside | {"LARIK_SKIP_LABEXTENSION": "1"}
    _build("wheel", ROOT, out, environment)
    (built,) = out.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


def _build(target: str, source: Path, out: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_version() -> None:
    """The extension and the installed package carry the version of `_version.py`."""
    extension = json.loads((ROOT / "labextension" / "package.json").read_text())["version"]

    assert {extension, metadata.version("larik-nb")} == {__version__}


def test_changelog_has_room_for_the_next_change() -> None:
    """Whoever changes something finds where to say so."""
    assert re.search(r"^## \[?Unreleased\]?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_no_address_of_a_registry_is_tracked(tracked: list[Path]) -> None:
    """Packages come from wherever the user's own tools are set to get them."""
    hosts = [
        ".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("yarnpkg", "com"))
    ]

    assert _containing(tracked, "|".join(map(re.escape, hosts))) == []


def test_no_place_on_one_machine_is_tracked(tracked: list[Path]) -> None:
    """A path that exists on one machine only has no business here; recorded answers may name some."""
    written = [path for path in tracked if not path.is_relative_to("tests/wire")]

    assert _containing(written, r"(?<![\w.\-*])/(?:work|root|home|Users)/\w") == []


def _containing(paths: list[Path], pattern: str) -> list[str]:
    search = re.compile(pattern.encode()).search
    return [str(path) for path in paths if search((ROOT / path).read_bytes())]


def test_every_extra_is_by_ability() -> None:
    """The extras that users install never pull in what only this repository's work needs."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    tools = {"pytest", "ruff", "mypy", "hypothesis", "nbval", "anthropic", "openai", "google-genai"}
    asked = {re.split(r"[^\w-]", need)[0] for name in set(extras) - {"test", "dev"} for need in extras[name]}

    assert asked & tools == set()


def test_the_wheel_holds_every_file_of_the_package(tracked: list[Path], wheel: set[str]) -> None:
    """Data files ship: the catalog, the presets, the type marker."""
    package = {path.as_posix() for path in tracked if path.is_relative_to("larik_nb")}

    assert package - wheel == set()


def test_the_wheel_holds_nothing_else(tracked: list[Path], wheel: set[str]) -> None:
    """What lies about in a checkout stays there."""
    own = {path.as_posix() for path in tracked}
    shared = f"larik_nb-{__version__}.data/data/share/jupyter/labextensions/larik-nb/"
    strays = {name for name in wheel if not name.startswith((shared, f"larik_nb-{__version__}.dist-info/"))}

    assert strays - own == set()


def test_the_wheel_brings_the_extension(wheel: set[str]) -> None:
    """JupyterLab finds the bundle as shared data, once."""
    if not BUNDLE.exists():
        pytest.skip("the JupyterLab extension was not built here")
    shared = f"larik_nb-{__version__}.data/data/share/jupyter/labextensions/larik-nb/"
    brought = {name.removeprefix(shared) for name in wheel if name.startswith(shared)}

    assert {"package.json", "install.json", "static/style.js"} <= brought
    assert not any(name.startswith("larik_nb/labextension") for name in wheel)


@pytest.mark.slow
def test_the_source_package_is_small_and_builds_the_wheel(tmp_path: Path, outside: dict[str, str]) -> None:
    """A build from the source package needs no Node: the bundle lies in it."""
    if not BUNDLE.exists():
        pytest.skip("the JupyterLab extension was not built here")
    _build("sdist", ROOT, tmp_path, outside)
    (source,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(source, tmp_path, filter="data")

    _build("wheel", tmp_path / source.name.removesuffix(".tar.gz"), tmp_path, outside | {"PATH": ""})
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        assert any(name.endswith("labextensions/larik-nb/static/style.js") for name in archive.namelist())
    assert source.stat().st_size < 2_000_000


def test_the_readme_names_only_commands_that_exist() -> None:
    """Every `make …` in the documents is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    documents = [(ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md")]
    named = {name for text in documents for name in re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE)}

    assert named - targets == set()
    assert {"demo", "test"} <= named


def test_ci_runs_the_readmes_test_command() -> None:
    """What CI runs can be run at home in the same words."""
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "make test"


def test_binder_reads_its_folder(outside: dict[str, str]) -> None:
    """Binder's own tool makes a plan of `binder/`, and the plan runs our script."""
    if shutil.which("jupyter-repo2docker", path=Path(sys.executable).parent) is None:
        pytest.skip("jupyter-repo2docker is not installed")
    plan = subprocess.run(
        [
            sys.executable,
            "-m",
            "repo2docker",
            "--no-build",
            "--debug",
            "--user-id",
            "1000",
            "--user-name",
            "jovyan",
            ".",
        ],
        cwd=ROOT,
        env=outside,
        capture_output=True,
        text=True,
    )

    assert plan.returncode == 0, plan.stderr
    assert "binder/postBuild" in plan.stdout + plan.stderr


def test_binder_opens_the_quickstart() -> None:
    """The script Binder runs can be run, is sound, and names a notebook that exists."""
    script = ROOT / "binder" / "postBuild"

    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    assert re.findall(r"/lab/tree/([\w/.]+)", script.read_text()) == ["notebooks/01_quickstart.ipynb"]


def test_nothing_leaves_this_machine() -> None:
    """The guard in conftest stops a connection before a packet is sent, and a name before it is looked up."""
    with socket.socket() as plain, pytest.raises(AssertionError, match="this machine only"):
        plain.connect(("192.0.2.1", 80))
    with pytest.raises(AssertionError, match="this machine only"):
        socket.getaddrinfo("example.com", 443)
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("no-such-host.invalid", 443)


def test_this_machine_can_be_reached() -> None:
    """Servers of our own work."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
        socket.create_connection(("localhost", server.getsockname()[1]), timeout=5).close()


def test_no_key_and_no_home_shows_through(home: Path) -> None:
    """What the user has set does not change a test's outcome."""
    assert Path.home() == home
    assert [name for name in os.environ if name.endswith("_API_KEY")] == []
