"""Labelled answers of real servers, sent over real connections: what a caller of our providers gets to see of them.

Each row is served on loopback the way its server sent it, and asked for through `WireProvider` with the adapter of its
wire. A row of a wire that has no adapter yet goes to the classifier itself, and so does a failed connection that
cannot be brought about here; how many is printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import socket
import ssl
import struct
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from larik_nb import errors
from larik_nb.providers._wire import Adapter, WireProvider
from larik_nb.providers.anthropic import Anthropic
from larik_nb.providers.gemini import Gemini
from larik_nb.providers.ollama import Ollama
from larik_nb.providers.openai import OpenAI
from larik_nb.providers.openai_compatible import OpenAICompatible
from larik_nb.types import Request, StreamEvent, user
from tests import corpus_errors
from tests._serve import Answer, Server
from tests.corpus_errors import Row

ADAPTERS: Mapping[str, Adapter] = {
    "messages": Anthropic(),
    "responses": OpenAI(),
    "chat_completions": OpenAICompatible(provider="host"),
    "generate_content": Gemini(),
    "ollama_chat": Ollama(),
}
ENDS = {"chat_completions": [b"[DONE]"], "messages": [b'{"type":"message_stop"}']}
"""What comes behind the last event of a stream that goes on to its end."""

TYPES = {"sse": "text/event-stream", "ndjson": "application/x-ndjson"}
PATIENCE_S = 0.5
ASKED = Request(model="m", messages=(user("hi"),))


async def events_of(adapter: Adapter, url: str, stall_s: float = 20.0) -> list[StreamEvent]:
    """Ask once."""
    provider = WireProvider(adapter, name="host", base_url=url, stall_timeout_s=stall_s)
    return [event async for event in provider.stream(ASKED)]


def outcome(adapter: Adapter, url: str, stall_s: float = 20.0) -> errors.APIError:
    """Return the error that asking comes to; a refusal is one as well for whoever keeps count of kinds."""
    try:
        last = asyncio.run(events_of(adapter, url, stall_s))[-1]
    except errors.APIError as exc:
        return exc
    if last.stop_reason == "refusal":
        return errors.RefusedError(status=200)
    return errors.APIError(f"no error but {last}", kind="answered")


def unnamed(row: Row) -> str:
    """Return the wire of a row that names none."""
    body = row.get("body")
    if row["where"] == "eventstream":
        return "eventstream"
    if row["where"] == "ndjson":
        return "ollama_chat"
    if isinstance(body, list):
        return "generate_content"
    if isinstance(body, dict) and "response" in body:
        return "responses"
    return "messages" if isinstance(body, dict) and body.get("type") == "message_delta" else "chat_completions"


def framed(row: Row, before: Sequence[Any] = ()) -> bytes:
    """Return the body as its server sends it, events before the error included."""
    body = corpus_errors.body_bytes(row)
    if row["where"] == "ndjson":
        return b"".join(json.dumps(item).encode() + b"\n" for item in before) + body + b"\n"
    if row["where"] != "sse":
        return body
    if isinstance(row["body"], str):
        return body  # as its server sent it: unframed, or cut
    ends = ENDS.get(row.get("api") or unnamed(row), ())
    items = [*(json.dumps(item).encode() for item in before), body, *ends]
    return b"".join(b"data: " + item + b"\n\n" for item in items)


def answer(row: Row, **fields: Any) -> Answer:
    """Return what the server answers for a row."""
    kind = TYPES.get(row["where"], "application/json")
    headers = {"content-type": kind, **(row.get("headers") or {})}
    return Answer(**{"status": row["status"], "headers": headers, "body": framed(row), **fields})


# -- connections that fail ------------------------------------------------------------------------------------------
@contextmanager
def served(handle: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield the address of a server that does with each connection what it is told."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        handle(connection)

        threading.Thread(target=run, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def reset(connection: socket.socket) -> None:
    """Take a request, begin to answer, and reset the connection."""
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextmanager
def cut_off() -> Iterator[str]:
    """Yield the address of a server that closes in the middle of the body."""
    with Server() as server:
        yield server.url(Answer(headers={"content-type": "text/event-stream"}, body=b'data: {"choi', cut=12))


@contextmanager
def dropped() -> Iterator[str]:
    """Yield the address of a server that resets the connection."""
    with served(reset) as host:
        yield f"http://{host}"


@contextmanager
def silent() -> Iterator[str]:
    """Yield an address whose server is too busy to take a connection."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as stack:
        address = listener.getsockname()
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        yield f"http://127.0.0.1:{address[1]}"


@contextmanager
def untrusted() -> Iterator[str]:
    """Yield the address of a TLS server whose certificate nobody signed but itself."""
    with tempfile.TemporaryDirectory() as folder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(_self_signed(Path(folder)))
        with served(lambda connection: context.wrap_socket(connection, server_side=True).close()) as host:
            yield f"https://{host}"


def _self_signed(folder: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    built = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now.replace(year=now.year + 1)
    )
    path = folder / "both.pem"
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, *private)
        + built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    return path


FAILING: Mapping[str, Callable[[], contextlib.AbstractContextManager[str]]] = {
    "incomplete chunked read": cut_off,
    "StreamReset": dropped,
    "CERTIFICATE_VERIFY_FAILED": untrusted,
    "timed out": silent,
}
"""How a failure is brought about, by a word of the exception it was recorded with."""


# -- the command ----------------------------------------------------------------------------------------------------
class Asking:
    """Turns rows into errors, and counts the ways they took."""

    def __init__(self, server: Server) -> None:
        self.ways: Counter[str] = Counter()
        self._server = server

    def __call__(self, row: Row) -> errors.APIError:
        """Return the error that a caller of our providers gets."""
        if row["where"] == "transport":
            return self._broken(row)
        api = row.get("api") or unnamed(row)
        adapter = None if row["where"] == "eventstream" else ADAPTERS.get(api)
        if adapter is None:
            self.ways[f"classified only, no adapter for {api} yet"] += 1
            return corpus_errors.directly(row)
        self.ways[f"over {row['where']}"] += 1
        return outcome(adapter, self._server.url(answer(row)))

    def _broken(self, row: Row) -> errors.APIError:
        bring = next((how for word, how in FAILING.items() if word in row["exc"]["message"]), None)
        if bring is None:
            self.ways["classified only, no such connection here"] += 1
            return corpus_errors.directly(row)
        self.ways["over a connection that failed"] += 1
        with bring() as url:
            return outcome(ADAPTERS["chat_completions"], url, PATIENCE_S)


def main(argv: Sequence[str]) -> int:
    """Print the ways, every miss and the score."""
    with Server() as server:
        asking = Asking(server)
        return corpus_errors.main(argv, asking, ways=asking.ways)
