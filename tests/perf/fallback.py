"""What it costs to be answered by the second model, over real sockets, against plain calls in the same run.

    python tests/perf/fallback.py [--calls 200] [--growth 10000]

The first model answers 429 or 500, refuses the connection, or goes silent; the second is well. A plain call is the
same provider without a chain. For each trouble it prints medians: milliseconds of CPU and of time until the answer is
whole, both against two plain calls (the silence taken off, plain calls after as long a rest), and CPU until the second
model's first text, from which what the processor needs to wake from a silence, as a plain call shows it, is taken off
before it is held against its limit. The chain is built once, as for a turn of an agent; retries are off, for their waits are chosen,
not spent. Then it prints what the last four fifths of `--growth` such calls add in memory, threads and descriptors.
Each model has a server in a process of its own. Exits 1 where a figure is over its limit.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import pathlib
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

sys.path[:0] = [str(pathlib.Path(__file__).parents[2]), str(pathlib.Path(__file__).parents[1])]

from fake_provider import expected, in_child

from larik_nb.config import Config
from larik_nb.providers import Provider, connect
from larik_nb.routing.chain import Surroundings, chain
from larik_nb.routing.cooldown import COOLDOWNS
from larik_nb.types import Request, StreamEvent, user

WELL = "fake:n=20"
SILENT_S = 0.05
WARM, AWAKE = 10, 4
LIMIT, FIRST_TEXT_MS, GROWTH_KB = 1.5, 2.0, 500
"""Ratio to two plain calls; CPU to the first text; resident memory that 8,000 calls may add."""

TROUBLES = {"429": "fake:e=429", "500": "fake:e=500", "refused": WELL, "silent": "fake:f=3600000"}
QUESTION = (user("hi"),)


def _nowhere() -> str:
    """Return an address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def _config(ill: str, well: str, trouble: str) -> Config:
    first = _nowhere() if trouble == "refused" else ill
    return Config.load(
        {
            "model": f"anthropic/{TROUBLES[trouble]}",
            "fallbacks": {"main": [f"openai/{WELL}"]},
            "providers": {
                "anthropic": {"base_url": first, "api_key": "k"},
                "openai": {"base_url": well, "api_key": "k"},
            },
            "network": {"stall_timeout_seconds": SILENT_S if trouble == "silent" else 60.0},
            "max_retries": 0,
        },
        env={"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]},
    )


def _chain(config: Config) -> Provider:
    return chain(None, config, Surroundings.of("perf", config))


async def _read(events: AsyncIterator[StreamEvent]) -> tuple[float, float, float]:
    """Return milliseconds of CPU and time until the end, and of CPU until the first text."""
    cpu, began, first = time.process_time(), time.perf_counter(), 0.0
    text = ""
    async for event in events:
        if event.type == "text_delta":
            first = first or time.process_time() - cpu
            text += event.text
    assert text == expected(WELL), text
    return (time.process_time() - cpu) * 1e3, (time.perf_counter() - began) * 1e3, first * 1e3


async def _chained(around: Provider) -> AsyncIterator[StreamEvent]:
    COOLDOWNS.forget()
    async for event in around.stream(Request(model="", messages=QUESTION)):
        yield event


async def measure(ill: str, well: str, trouble: str, calls: int) -> dict[str, float]:
    """Return the medians of one trouble, plain calls and chained ones in turn, so that a busy machine slows both."""
    config = _config(ill, well, trouble)
    around, plain = _chain(config), connect(f"openai/{WELL}", config=config)
    request = Request(model=WELL, messages=QUESTION)
    silence_s = SILENT_S if trouble == "silent" else 0.0
    rows = []
    for _ in range(calls + WARM):
        await asyncio.sleep(silence_s)  # a processor that has slept does all more slowly
        alone = await _read(plain.stream(request))
        for _ in range(AWAKE):
            awake, _, _ = await _read(plain.stream(request))
        rows.append((*alone, *await _read(_chained(around)), alone[0] - awake))
    cpu, ms, _, both_cpu, both_ms, first, waking = (statistics.median(row) for row in zip(*rows[WARM:], strict=True))
    both_ms -= silence_s * 1e3
    return {
        "plain_cpu_ms": cpu,
        "cpu_ms": both_cpu,
        "cpu_ratio": both_cpu / (2 * cpu),
        "plain_ms": ms,
        "ms": both_ms,
        "ratio": both_ms / (2 * ms),
        "first_text_cpu_ms": first,
        "waking_cpu_ms": waking if silence_s else 0.0,
    }


def _held() -> tuple[int, int, int]:
    gc.collect()
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return (
        pages * resource.getpagesize() // 1024,
        threading.active_count(),
        len(list(pathlib.Path("/proc/self/fd").iterdir())),
    )


async def growth(ill: str, well: str, calls: int) -> dict[str, int]:
    """Return what the last four fifths of many calls add."""
    config = _config(ill, well, "429")
    around = _chain(config)
    before = _held()
    for number in range(calls):
        if number == calls // 5:
            before = _held()
        await _read(_chained(around))
    after = _held()
    return {name: b - a for name, a, b in zip(("kb", "threads", "descriptors"), before, after, strict=True)}


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=200)
    options.add_argument("--growth", type=int, default=10_000)
    chosen = options.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as state, in_child() as ill, in_child() as well:
        os.environ["XDG_STATE_HOME"] = state
        for trouble in TROUBLES:
            calls = min(chosen.calls, 50) if trouble == "silent" else chosen.calls
            found = asyncio.run(measure(ill, well, trouble, calls))
            print(f"{trouble:<8}", json.dumps({name: round(value, 2) for name, value in found.items()}), flush=True)
            wrong += [f"{trouble}: {name} over {LIMIT}" for name in ("ratio", "cpu_ratio") if found[name] > LIMIT]
            late = found["first_text_cpu_ms"] - found["waking_cpu_ms"] > FIRST_TEXT_MS
            wrong += [f"{trouble}: first text over {FIRST_TEXT_MS} ms"] * late
        added: dict[str, Any] = asyncio.run(growth(ill, well, chosen.growth))
        print("growth  ", json.dumps(added))
        wrong += ["it grows"] * (added["kb"] > GROWTH_KB or added["threads"] > 0 or added["descriptors"] > 0)
    print(*wrong, sep="\n" if wrong else "", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
