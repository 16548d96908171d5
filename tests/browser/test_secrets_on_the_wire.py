"""A key in the settings never reaches the page: not in a widget's state, nor in what a provider says of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import RUN_CELL, wait
from tests.browser.test_turn import saved

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser
pytest.importorskip("anywidget", reason="the extra widgets is not installed")

KEYS = {"telling": "plain-words-as-a-key-0123456789", "quiet": "another-key-made-of-words-987654321"}


class _Tells(BaseHTTPRequestHandler):
    """Refuses and repeats the key that it was sent, or lists a model."""

    def do_GET(self) -> None:
        key = str(self.headers.get("authorization")).removeprefix("Bearer ")
        refuses = "telling" in self.path
        answer = {"error": {"message": f"Incorrect API key {key}"}} if refuses else {"data": [{"id": "quiet-one"}]}
        body = json.dumps(answer).encode()
        self.send_response(401 if refuses else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def host() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Tells)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_no_message_of_the_kernel_and_no_notebook_holds_a_key(lab: Lab, page: Any, host: str) -> None:
    frames: list[str] = []

    def keep(frame: str | bytes) -> None:
        frames.append(frame if isinstance(frame, str) else frame.decode("latin-1"))

    page.on("websocket", lambda socket: socket.on("framereceived", keep))
    providers = {
        name: {"type": "openai-compatible", "base_url": f"{host}/{name}", "api_key": key} for name, key in KEYS.items()
    }
    settings = lab.folder / "wire.json"
    settings.write_text(json.dumps({"model": "scripted/demo", "providers": providers}))
    setup = f"import os\nos.environ['LARIK_CONFIG'] = {str(settings)!r}\n%load_ext larik_nb"
    lines = ["%routing", "%model", "%larik cost", "%larik keys", "%larik models"]
    file = lab.notebook("wire", setup, *lines)
    lab.open(page, file)
    for index in range(len(lines)):
        lab.run(page, index)
    wait(page, RUN_CELL, len(lines))  # ends in an error that says who told nothing
    for _ in range(150):  # a panel that is scrolled away is not in the page: what the kernel told it counts
        everything = "".join(frames)
        if everything.count("Incorrect API key") > 1 and "1 model" in everything:
            break
        page.wait_for_timeout(100)

    assert "telling" in everything, everything[-3000:]
    assert "1 model" in everything
    assert "comm_open" in everything
    for key in KEYS.values():
        assert key not in everything
        assert key not in saved(lab, page, file)
