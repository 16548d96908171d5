"""What holds for every test: no network beyond this machine, no keys, no home of the user's."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_PRIVATE = re.compile(
    r"(_KEY|_KEY_ID|_TOKEN|_SECRET|_CREDENTIALS|_BASE_URL|_PROXY|_proxy)$|^(AWS|IPYTHON|JUPYTER|LARIK|OLLAMA)",
)
_PLACES = {
    "HOME": "",
    "USERPROFILE": "",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "IPYTHONDIR": ".ipython",
    "JUPYTER_CONFIG_DIR": ".jupyter",
    "JUPYTER_DATA_DIR": ".local/share/jupyter",
    "JUPYTER_RUNTIME_DIR": ".local/share/jupyter/runtime",
    "MPLCONFIGDIR": ".config/matplotlib",
}


class NetworkTouchedError(AssertionError):
    """A test reached for something beyond this machine."""


def _is_local(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host or "")
    if name in {"", "localhost", socket.gethostname()}:
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _guard(event: str, args: tuple[object, ...]) -> None:
    """Let nothing leave the machine, whichever library asks: Python reports every socket's doings here."""
    if event == "socket.getaddrinfo":
        host = args[0]
        if str(host).endswith(".invalid"):  # reserved for names that do not exist: the answer is known
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    elif event in {"socket.connect", "socket.sendto"}:
        address = args[1]
        if not isinstance(address, tuple):  # a path: a local socket
            return
        host = address[0]
    else:
        return
    if not _is_local(host):
        raise NetworkTouchedError(f"{event} to {host!r}: tests talk to this machine only")


sys.addaudithook(_guard)

# A busy machine is no failure, and CI does not fail one change for what another brought.
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("house")


def _places(root: Path) -> dict[str, str]:
    return {name: str(root / below) for name, below in _PLACES.items()}


_OUTSIDE = {name: value for name, value in os.environ.items() if not _PRIVATE.search(name)}


def pytest_configure(config: pytest.Config) -> None:
    """Close the user's home and keys off for the whole run, notebooks' kernels included."""
    for name in set(os.environ) - set(_OUTSIDE):
        del os.environ[name]
    home = tempfile.TemporaryDirectory(prefix="larik-home-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    os.environ.update(_places(Path(home.name)))
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # the kernel python3 is this Python
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # else each kernel warns about frozen modules


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test an empty home, through which nothing of the user's shows."""
    root = tmp_path_factory.mktemp("home")
    for name, place in _places(root).items():
        monkeypatch.setenv(name, place)
    return root


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no model server that happens to run on this machine answer where a test has set up nothing."""
    from larik_nb.providers import _probe

    monkeypatch.setattr(_probe, "_servers", lambda _config: [])


@pytest.fixture(scope="session")
def outside() -> dict[str, str]:
    """Hand out the environment with the user's own home and caches, without keys: for build tools and models."""
    return dict(_OUTSIDE)
