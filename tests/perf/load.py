"""Many answers at once, and many in a row, in one run with what others need for the same.

    python tests/perf/load.py [--streams 1000] [--skip-sdk]

Prints: CPU and memory of 1,000 concurrent async streams of 100 deltas over each transport, over the plain anthropic
SDK and over plain aiohttp; the errors of 64 threads with 4 streams each on one provider object; and what the second
thousand of 2,000 calls adds in memory, descriptors and threads. Each is a process of its own, against a server in
another. Exits 1 where a figure is over its limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pathlib
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

sys.path[:0] = [str(pathlib.Path(__file__).parents[2]), str(pathlib.Path(__file__).parents[1])]

from fake_provider import expected, in_child

DELTAS, MODEL = 100, "fake:n=100:d=20"
MEMORY_MB, GROWTH_KB = 100, 100
FAST_LIMIT = 1.3
"""Ratio of our CPU over the fast transport to plain aiohttp's."""


def _spent(begun: float) -> dict[str, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_s": round(time.process_time() - begun, 2), "peak_mb": round(usage.ru_maxrss / 1024, 1)}


async def _all(one: Callable[[], Awaitable[str]], count: int) -> int:
    """Return how many of `count` concurrent answers were wrong or failed."""
    results = await asyncio.gather(*(one() for _ in range(count)), return_exceptions=True)
    bad = [result for result in results if result != expected(MODEL)]
    if bad:
        print(f"first wrong answer: {bad[0]!r:.300}", file=sys.stderr)
    return len(bad)


async def _ours(url: str, count: int, transport: Any) -> int:
    from larik_nb.providers._wire import WireProvider
    from larik_nb.providers.anthropic import Anthropic
    from larik_nb.types import Request, user

    provider = WireProvider(Anthropic(), name="anthropic", base_url=url, transport=transport)
    request = Request(model=MODEL, messages=(user("hi"),))

    async def one() -> str:
        return "".join([event.text async for event in provider.stream(request) if event.type == "text_delta"])

    return await _all(one, count)


async def _sdk(url: str, count: int) -> int:
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(api_key="k", base_url=url, max_retries=0)

    async def one() -> str:
        message: Any = {"role": "user", "content": "hi"}
        async with client.messages.stream(model=MODEL, max_tokens=100, messages=[message]) as stream:
            return "".join([text async for text in stream.text_stream])

    return await _all(one, count)


async def _aiohttp(url: str, count: int) -> int:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one() -> str:
            parts = []
            async with session.post(url + "/v1/messages", json={"model": MODEL, "stream": True}) as response:
                async for line in response.content:
                    if line.startswith(b"data:"):
                        event = json.loads(line[5:])
                        if event["type"] == "content_block_delta":
                            parts.append(event["delta"]["text"])
            return "".join(parts)

        return await _all(one, count)


def streams(who: str, url: str, count: int) -> dict[str, Any]:
    """Return errors, CPU and memory of `count` concurrent streams."""
    runs: dict[str, Callable[[], Any]] = {
        "h11": lambda: _ours(url, count, "h11"),
        "aiohttp": lambda: _ours(url, count, "aiohttp"),
        "sdk": lambda: _sdk(url, count),
        "plain-aiohttp": lambda: _aiohttp(url, count),
    }
    begun = time.process_time()
    return {"errors": asyncio.run(runs[who]()), **_spent(begun)}


def threads(url: str) -> dict[str, Any]:
    """Return the errors of 64 threads reading 4 answers each from one provider object."""
    import larik_nb
    from larik_nb.providers._wire import WireProvider
    from larik_nb.providers.anthropic import Anthropic
    from larik_nb.types import Request, user

    provider = WireProvider(Anthropic(), name="anthropic", base_url=url)
    request, bad = Request(model=MODEL, messages=(user("hi"),)), []

    def read() -> None:
        for _ in range(4):
            try:
                got = "".join([e.text for e in larik_nb.stream(provider, request) if e.type == "text_delta"])
            except larik_nb.errors.LarikError as exc:
                got = repr(exc)
            if got != expected(MODEL):
                bad.append(got)

    begun = time.process_time()
    workers = [threading.Thread(target=read) for _ in range(64)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {"errors": len(bad), "first": bad[:1], **_spent(begun)}


def _resident_kb() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


def calls(url: str) -> dict[str, Any]:
    """Return what the second thousand of 2,000 calls adds: resident kB, descriptors, threads."""
    import gc

    import larik_nb
    from larik_nb.providers._wire import WireProvider
    from larik_nb.providers.anthropic import Anthropic
    from larik_nb.types import Request, user

    provider = WireProvider(Anthropic(), name="anthropic", base_url=url)
    request = Request(model="fake:n=20", messages=(user("hi"),))

    def thousand() -> tuple[int, int, int]:
        for _ in range(1000):
            assert sum(1 for _ in larik_nb.stream(provider, request)) == 21
        gc.collect()
        return _resident_kb(), len(list(pathlib.Path("/proc/self/fd").iterdir())), threading.active_count()

    first, second = thousand(), thousand()
    return dict(zip(("kb", "descriptors", "threads"), (b - a for a, b in zip(first, second, strict=True)), strict=True))


def _child(what: str, *more: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", what, *more]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    print(f"{what:<14} {found}", flush=True)
    return found


def compare(url: str, count: int, skip_sdk: bool) -> list[str]:  # an option of the command line
    """Measure everything and return a line for each figure over its limit."""
    kinds = ["h11", "aiohttp", "plain-aiohttp", *([] if skip_sdk else ["sdk"])]
    found = {kind: _child(kind, url, str(count)) for kind in kinds}
    wrong = [f"{kind}: {found[kind]['errors']} errors" for kind in ("h11", "aiohttp") if found[kind]["errors"]]
    wrong += [f"{kind}: over {MEMORY_MB} MB" for kind in ("h11", "aiohttp") if found[kind]["peak_mb"] > MEMORY_MB]
    if found["aiohttp"]["cpu_s"] > FAST_LIMIT * found["plain-aiohttp"]["cpu_s"]:
        wrong.append(f"aiohttp: over {FAST_LIMIT} x plain aiohttp")
    if not skip_sdk and found["h11"]["cpu_s"] > found["sdk"]["cpu_s"]:
        wrong.append("h11: more CPU than the SDK")
    if _child("threads", url)["errors"]:
        wrong.append("threads: errors")
    growth = _child("calls", url)
    if growth["kb"] > GROWTH_KB or growth["descriptors"] > 0 or growth["threads"] > 0:
        wrong.append("calls: the second thousand grows")
    return wrong


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--streams", type=int, default=1000)
    options.add_argument("--skip-sdk", action="store_true", help="leave the anthropic SDK out")
    options.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    if chosen.child:
        what, url, *count = chosen.child
        runs: dict[str, Callable[[], dict[str, Any]]] = {"threads": lambda: threads(url), "calls": lambda: calls(url)}
        print(json.dumps(runs[what]() if what in runs else streams(what, url, int(count[0]))))
        return 0
    with in_child() as url:
        wrong = compare(url, chosen.streams, chosen.skip_sdk)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
