"""A kernel that knows a provider on loopback, shared by the tests of a module."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.fake_provider import FakeProvider
from tests.notebook._kernel import Kernel
from tests.notebook._shell import Cells

KEY = "sk-test-0123456789abcdefXYZ"


@pytest.fixture(scope="session")
def fake() -> Iterator[FakeProvider]:
    with FakeProvider() as server:
        yield server


@pytest.fixture(scope="session")
def settings(fake: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A settings file with the fake as `fake/…`, at a priced model and at one without."""
    path = tmp_path_factory.mktemp("settings") / "config.json"
    provider = {"type": "anthropic", "base_url": fake.url, "api_key": KEY}
    pricing = {"fake/fake:n=20": {"input": 10, "output": 100}}
    path.write_text(json.dumps({"providers": {"fake": provider}, "pricing": pricing, "max_retries": 0}))
    return path


@pytest.fixture(scope="module")
def kernel(settings: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    running = Kernel(tmp_path_factory.mktemp("cwd"), {"LARIK_CONFIG": str(settings)})
    running.run("%load_ext larik_nb")
    yield running
    running.close()


@pytest.fixture
def asked(kernel: Kernel) -> Kernel:
    """The kernel with a fresh conversation on a provider that keeps what it is asked."""
    setup = """
        from larik_nb.providers.scripted import ScriptedProvider
        magics = get_ipython().magics_manager.magics["cell"]["larik"].__self__
        provider = ScriptedProvider()
        magics.sessions.clear()
        magics.recordings.clear()
        magics.chosen = None
        magics.session(None).model = provider
    """
    ran = kernel.run("\n".join(line.strip() for line in setup.splitlines()))
    assert not ran.error
    return kernel


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cells]:
    """A shell of this process in an empty folder."""
    monkeypatch.chdir(tmp_path)
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    yield Cells(shell)
    shell.run_line_magic("unload_ext", "larik_nb")
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()
