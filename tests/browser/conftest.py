"""One JupyterLab for all browser tests, and a page per test in the system's Chromium."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ARTIFACTS = Path(__file__).resolve().parents[2] / "test-artifacts"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# Root in a container has no sandbox, CI no graphics card; the rest keeps the browser from calling home.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The Python whose JupyterLab is looked at: this one, or one of another environment with another JupyterLab in it.
PYTHON_OF_LAB = os.environ.get("LARIK_LAB_PYTHON", sys.executable)
EXTENSION = Path(PYTHON_OF_LAB).parents[1] / "share" / "jupyter" / "labextensions" / "larik-nb" / "package.json"
START_S = 60
STEP_MS = 60_000
NOT_OURS = (
    "Canceled future for ",  # JupyterLab drops its questions to a kernel that restarts without catching that
    "Cannot read properties of undefined (reading 'schema')",  # Notebook 7 while it loads, without extensions as well
    "Command 'filebrowser:open-path' not registered",  # Notebook 7 where JupyterLab has left a workspace
)
PYTHON = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}

IS_OPEN = "() => window.jupyterapp?.shell?.currentWidget?.sessionContext"
IS_READY = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  const panel = app.shell.currentWidget;
  await panel.context.ready;
  await panel.sessionContext.ready;
  await panel.sessionContext.session.kernel.info;
}"""
RUN_CELL = """async index => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.deselectAll();
  notebook.activeCellIndex = index;
  await window.jupyterapp.commands.execute('notebook:run-cell');
}"""
OUTPUTS = "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.outputs.toJSON()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A running JupyterLab: its address, its token and the folder it shows."""

    url: str
    token: str
    folder: Path

    def notebook(self, name: str, *cells: str) -> str:
        """Write a notebook of code cells, each test its own, since a path keeps its kernel; return its file name."""
        file = f"{name}.ipynb"
        content = new_notebook(cells=list(map(new_code_cell, cells)), metadata=PYTHON)
        nbformat.write(content, self.folder / file)
        return file

    def open(self, page: Any, file: str, *, at: str = "lab/tree") -> None:
        """Open a notebook in a page and wait until its kernel answers; at "notebooks" it is Notebook 7 that opens it."""
        page.goto(f"{self.url}/{at}/{file}?token={self.token}&reset")
        page.wait_for_function(IS_OPEN)
        wait(page, IS_READY)

    def run(self, page: Any, index: int) -> list[dict[str, Any]]:
        """Run one cell to its end, by command since keys get lost under load; return its outputs, none an error."""
        wait(page, RUN_CELL, index)
        outputs: list[dict[str, Any]] = page.evaluate(OUTPUTS, index)
        assert [output for output in outputs if output["output_type"] == "error"] == []
        return outputs


def wait(page: Any, function: str, argument: object = None) -> Any:
    """Call an async JavaScript function and wait for what it promises, but not for ever as the page itself would."""
    return page.evaluate(
        """async ([source, argument, limit]) => {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error(`nothing after ${limit} ms: ${source}`)), limit));
  return Promise.race([eval(`(${source})`)(argument), late]);
}""",
        [function, argument, STEP_MS],
    )


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, outside: dict[str, str]) -> Iterator[Lab]:
    """Start JupyterLab with settings and folders of its own."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    if not EXTENSION.exists():
        pytest.skip("the JupyterLab extension is not installed in this environment: make labextension")
    root = tmp_path_factory.mktemp("lab")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (root / "work").mkdir()
    it = Lab(url=f"http://127.0.0.1:{port}", token=secrets.token_hex(16), folder=root / "work")
    log = root / "lab.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [PYTHON_OF_LAB, "-m", "jupyterlab"],
            env=outside | _settings(root, it, port),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(it, process, log)
        yield it
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _settings(root: Path, it: Lab, port: int) -> dict[str, str]:
    """Write the server's settings below `root` and return the variables that name them."""
    (root / "config").mkdir()
    (root / "config" / "jupyter_lab_config.py").write_text(
        f"""
c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port = {port}
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
c.ServerApp.allow_root = True
c.ServerApp.root_dir = {str(it.folder)!r}
c.IdentityProvider.token = {it.token!r}
c.LabApp.extension_manager = "readonly"
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.expose_app_in_browser = True
c.KernelManager.shutdown_wait_time = 1.0
"""
    )
    (root / "config" / "jupyter_notebook_config.py").write_text("c.JupyterNotebookApp.expose_app_in_browser = True\n")
    news = root / "settings" / "@jupyterlab" / "apputils-extension"
    news.mkdir(parents=True)
    (news / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')  # else a pop-up covers the corner
    folders = {
        "HOME": "home",
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "run",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    return {name: str(root / folder) for name, folder in folders.items()} | {"JUPYTER_PREFER_ENV_PATH": "1"}


def _wait_for(it: Lab, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{it.url}/api?token={it.token}", timeout=5):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(errors='replace')}")


@pytest.fixture(scope="module")
def browser(lab: Lab) -> Iterator[Any]:
    """Start Chromium. One a module, for while it runs no other test on this thread could run an event loop."""
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Open an empty page; afterwards keep a picture of it, and fail on an error that no code caught."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(STEP_MS / 4)
    uncaught: list[str] = []
    page.on("pageerror", lambda error: uncaught.append(str(error)))
    yield page
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{request.node.name}.png")
    context.close()
    assert [error for error in uncaught if not error.removeprefix("Error: ").startswith(NOT_OURS)] == []
