"""A provider on loopback whose answers the caller writes into the model name: `fake:n=200:d=5`.

Speaks the five streaming protocols, text only. Knobs: n deltas, d ms between them (0: all in one write), f ms before
the first byte, b characters a delta, stall after that many deltas (for ever), cut the connection after that many,
e status of an error, err in-stream error after that many deltas, json 1 for a JSON body, ra a Retry-After header.

    with FakeProvider() as fake: connect("anthropic/fake:n=3", base_url=fake.url, api_key="k")
    python tests/fake_provider.py          prints its address and serves until its input ends
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

PLAIN = {"n": 20, "d": 0, "f": 0, "b": 8, "stall": -1, "cut": -1, "e": 0, "err": -1, "json": 0, "ra": -1}
Knobs = dict[str, int]
Events = tuple[list[bytes], list[bytes], list[bytes], dict[str, Any]]


def knobs(model: str) -> Knobs:
    """Return the knobs in a model name."""
    return PLAIN | {key: int(value) for key, value in re.findall(r":([a-z]+)=(\d+)", model)}


def deltas(setting: Knobs) -> list[str]:
    """Return the texts of the deltas: their numbers, so that loss and reordering show."""
    width = setting["b"]
    return [f"{i:>{width - 1}} "[-width:] for i in range(setting["n"])]


def expected(model: str) -> str:
    """Return the text of the whole answer."""
    return "".join(deltas(knobs(model)))


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _sse(value: dict[str, Any], *, named: bool = True) -> bytes:
    name = b"event: %s\n" % value["type"].encode() if named else b""
    return name + b"data: " + _dump(value) + b"\n\n"


def _messages(model: str, texts: list[str]) -> Events:
    usage = {"input_tokens": 12, "output_tokens": 1}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    start |= {"stop_reason": None, "stop_sequence": None}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    head = [_sse({"type": "message_start", "message": start}), _sse(block), _sse({"type": "ping"})]
    body = [
        _sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
        for text in texts
    ]
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": len(texts)}}
    tail = [_sse({"type": "content_block_stop", "index": 0}), _sse(end), _sse({"type": "message_stop"})]
    content = [{"type": "text", "text": "".join(texts)}]
    full = start | {"content": content, "stop_reason": "end_turn", "usage": usage | {"output_tokens": len(texts)}}
    return head, body, tail, full


def _responses(model: str, texts: list[str]) -> Events:
    usage = {"input_tokens": 12, "output_tokens": len(texts), "total_tokens": 12 + len(texts)}
    part = {"type": "output_text", "text": "".join(texts), "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    full = {"id": "resp_1", "object": "response", "model": model, "status": "completed", "output": [item]}
    full |= {"usage": usage, "error": None, "incomplete_details": None}
    begun = full | {"status": "in_progress", "output": [], "usage": None}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    empty = item | {"content": [], "status": "in_progress"}
    head = [
        _sse({"type": "response.created", "response": begun}),
        _sse({"type": "response.output_item.added", "output_index": 0, "item": empty}),
        _sse({"type": "response.content_part.added", **at, "part": part | {"text": ""}}),
    ]
    body = [_sse({"type": "response.output_text.delta", **at, "delta": text}) for text in texts]
    tail = [
        _sse({"type": "response.output_text.done", **at, "text": part["text"]}),
        _sse({"type": "response.output_item.done", "output_index": 0, "item": item}),
        _sse({"type": "response.completed", "response": full}),
    ]
    return head, body, tail, full


def _chat(model: str, texts: list[str]) -> Events:
    usage = {"prompt_tokens": 12, "completion_tokens": len(texts), "total_tokens": 12 + len(texts)}
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _sse(base | {"choices": [choice], "usage": None}, named=False)

    message = {"role": "assistant", "content": "".join(texts)}
    full = base | {"object": "chat.completion", "usage": usage}
    full |= {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    tail = [chunk({}, "stop"), _sse(base | {"choices": [], "usage": usage}, named=False), b"data: [DONE]\n\n"]
    return [chunk({"role": "assistant", "content": ""})], [chunk({"content": text}) for text in texts], tail, full


def _gemini(model: str, texts: list[str]) -> Events:
    def reply(text: str, count: int, **more: str) -> dict[str, Any]:
        usage = {"promptTokenCount": 12, "candidatesTokenCount": count, "totalTokenCount": 12 + count}
        candidate = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0, **more}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}

    body = [_sse(reply(text, i + 1), named=False).replace(b"\n", b"\r\n") for i, text in enumerate(texts)]
    tail = [_sse(reply("", len(texts), finishReason="STOP"), named=False).replace(b"\n", b"\r\n")]
    return [], body, tail, reply("".join(texts), len(texts), finishReason="STOP")


def _ollama(model: str, texts: list[str]) -> Events:
    def line(text: str, **more: Any) -> dict[str, Any]:
        return {"model": model, "message": {"role": "assistant", "content": text}, **(more or {"done": False})}

    last = {"done": True, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": len(texts)}
    body = [_dump(line(text)) + b"\n" for text in texts]
    return [], body, [_dump(line("", **last)) + b"\n"], line("".join(texts), **last)


API = Callable[[str, list[str]], Events]
_BROKEN: dict[API, bytes] = {
    _messages: _sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    _responses: _sse({"type": "error", "code": "server_error", "message": "made to fail", "param": None}),
    _chat: _sse({"error": {"message": "made to fail", "type": "server_error", "code": None}}, named=False),
    _gemini: _sse({"error": {"code": 503, "message": "made to fail", "status": "UNAVAILABLE"}}, named=False),
    _ollama: _dump({"error": "made to fail"}) + b"\n",
}
_PATHS: dict[str, API] = {
    "/messages": _messages,
    "/responses": _responses,
    "/chat/completions": _chat,
    "/api/chat": _ollama,
}


def _api(path: str) -> API | None:
    if "enerateContent" in path:
        return _gemini
    return next((api for end, api in _PATHS.items() if path.endswith(end)), None)


def _http_error(setting: Knobs) -> bytes:
    body = _dump({"type": "error", "error": {"message": f"made to fail with {setting['e']}", "type": "fake_error"}})
    after = b"retry-after: %d\r\n" % setting["ra"] if setting["ra"] >= 0 else b""
    head = b"HTTP/1.1 %d Fake\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % (setting["e"], len(body))
    return head + after + b"\r\n" + body


@functools.lru_cache(64)
def _reply(api: API, model: str) -> tuple[bytes, list[bytes], bytes]:
    """Return an answer as HTTP bytes: what comes before the deltas, each delta, what comes after."""
    setting = knobs(model)
    if setting["e"]:
        return _http_error(setting), [], b""
    head, body, tail, full = api(model, deltas(setting))
    if setting["json"]:
        text = _dump(full)
        opening = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(text)
        return opening + text, [], b""
    kind = b"application/x-ndjson" if api is _ollama else b"text/event-stream"
    opening = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n" % kind
    if setting["err"] >= 0:
        body, tail = body[: setting["err"]], [_BROKEN[api]]
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in body]
    ending = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in tail) + b"0\r\n\r\n"
    return opening + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in head), chunks, ending


class FakeProvider:
    """The server in a thread of its own; counts what it saw.

    Attributes:
        url: Its address.
        requests: (path, headers, body) of each request in order.
        open: Connections open now.
        opened: Connections so far.
    """

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.open = 0
        self.opened = 0
        self.changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> FakeProvider:
        self._thread = threading.Thread(target=self._run, name="fake-provider", daemon=True)
        self._thread.start()
        self._up.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def wait_until(self, holds: Callable[[FakeProvider], bool], timeout_s: float = 5.0) -> bool:
        """Return whether `holds(self)` became true in time; connections opening and closing wake it."""
        with self.changed:
            return self.changed.wait_for(lambda: holds(self), timeout_s)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4096))
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._up.set()
        self._loop.run_forever()
        server.close()
        for task in list(asyncio.all_tasks(self._loop)):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    def _count(self, change: int) -> None:
        with self.changed:
            self.open += change
            self.opened += max(change, 0)
            self.changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count(1)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._exchange(reader, writer):
                pass
        writer.close()
        self._count(-1)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = urllib.parse.unquote(first.split(" ")[1].partition("?")[0])
        self.requests.append((path, headers, json.loads(body or b"{}")))
        api = _api(path)
        if api is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return True
        model = path.rpartition("/models/")[2].rpartition(":")[0] if api is _gemini else self.requests[-1][2]["model"]
        sending = asyncio.ensure_future(self._send(writer, knobs(model), _reply(api, model)))
        gone = asyncio.ensure_future(reader.read(1))
        gone.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not sending.done() or gone.done():
            sending.cancel()
            return False
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone
        return sending.result()

    async def _send(
        self, writer: asyncio.StreamWriter, setting: Knobs, reply: tuple[bytes, list[bytes], bytes]
    ) -> bool:
        opening, body, ending = reply
        await asyncio.sleep(setting["f"] / 1000)
        limit = max(setting["stall"], setting["cut"])
        if not setting["d"] and limit < 0:
            writer.write(opening + b"".join(body) + ending)
            return True
        writer.write(opening)
        for part in body if limit < 0 else body[:limit]:
            writer.write(part)
            if setting["d"]:
                await asyncio.sleep(setting["d"] / 1000)
        await writer.drain()
        if setting["stall"] >= 0:
            await asyncio.sleep(3600)
        if setting["cut"] >= 0:
            return False
        writer.write(ending)
        return True


def main() -> None:
    """Serve until standard input ends, so that a killed parent takes its server along."""
    with FakeProvider() as fake:
        sys.stdout.write(fake.url + "\n")
        sys.stdout.flush()
        sys.stdin.read()


@contextlib.contextmanager
def in_child() -> Iterator[str]:
    """Yield the address of a server in a process of its own, for measurements of this one."""
    import subprocess

    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


if __name__ == "__main__":
    main()
