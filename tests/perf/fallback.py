"""What it costs to be answered by the second model, over real sockets, against plain calls in the same run.

    python tests/perf/fallback.py [--rounds 24] [--growth 10000]

The first model answers 429 or 500, refuses the connection, or goes silent; the second is well. A plain call is the
same provider without a chain. For each trouble it prints milliseconds of CPU and of time until the answer is whole, of
two plain calls one after the other and of a chained one, their ratios, and CPU until the second model's first text.
Against the silent model the two plain calls have as long a rest between them, so that both sides wake from a sleep
once, for a processor that has slept does all more slowly; the silence is taken off the times of both and nothing off
the CPU. The chain is built once, as for a turn of an agent; retries are off, for their waits are chosen, not spent.

A figure is the least of its rounds, and a round's the median of its calls: the same code takes up to twice the time
when the machine is shared, for seconds on end, and nothing makes it faster than it is. A round takes every trouble, and
in each a pair of plain calls before each chained one, so that drift hits all alike. While a figure is over its limit
there are more rounds, up to three times as many.

Then it prints what the last four fifths of `--growth` chained calls add in memory, threads and descriptors. Each model
has a server in a process of its own. Exits 1 where a figure is over its limit.
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
CALLS = 5
"""Chained calls of one trouble in a round."""

ATTEMPTS = 3
"""How often the rounds are made at most."""

LIMIT, FIRST_TEXT_MS, GROWTH_KB = 1.5, 2.0, 500
"""Ratio to two plain calls; CPU to the first text; resident memory that 8,000 calls may add."""

Figures = dict[str, float]
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


class _Clock:
    """Milliseconds since it was made."""

    def __init__(self) -> None:
        self._cpu, self._time = time.process_time(), time.perf_counter()

    def cpu(self) -> float:
        return (time.process_time() - self._cpu) * 1e3

    def ms(self) -> float:
        return (time.perf_counter() - self._time) * 1e3


async def _read(events: AsyncIterator[StreamEvent], clock: _Clock) -> float:
    """Return the CPU of `clock` at the first text."""
    first, text = 0.0, ""
    async for event in events:
        if event.type == "text_delta":
            first = first or clock.cpu()
            text += event.text
    assert text == expected(WELL), text
    return first


async def _twice(plain: Provider, rest_s: float) -> Figures:
    request, clock = Request(model=WELL, messages=QUESTION), _Clock()
    await _read(plain.stream(request), clock)
    if rest_s:
        await asyncio.sleep(rest_s)
    await _read(plain.stream(request), clock)
    return {"plain_cpu_ms": clock.cpu(), "plain_ms": clock.ms() - rest_s * 1e3}


async def _chained(around: Provider, rest_s: float = 0.0) -> Figures:
    COOLDOWNS.forget()
    clock = _Clock()
    first = await _read(around.stream(Request(model="", messages=QUESTION)), clock)
    return {"cpu_ms": clock.cpu(), "ms": clock.ms() - rest_s * 1e3, "first_text_cpu_ms": first}


class _Trouble:
    """A chain whose first model has one, and what was measured of it."""

    def __init__(self, name: str, ill: str, well: str) -> None:
        config = _config(ill, well, name)
        self._around, self._plain = _chain(config), connect(f"openai/{WELL}", config=config)
        self._rest_s = SILENT_S if name == "silent" else 0.0
        self._rounds: list[Figures] = []

    async def round(self) -> None:
        rows = [
            await _twice(self._plain, self._rest_s) | await _chained(self._around, self._rest_s) for _ in range(CALLS)
        ]
        self._rounds.append({key: statistics.median(row[key] for row in rows) for key in rows[0]})

    def figures(self) -> Figures:
        """Return the least of each, the very first round aside, and the ratios to two plain calls."""
        least = {key: min(row[key] for row in self._rounds[1:]) for key in self._rounds[0]}
        ratios = {"ratio": least["ms"] / least["plain_ms"], "cpu_ratio": least["cpu_ms"] / least["plain_cpu_ms"]}
        return least | ratios


async def measure(ill: str, well: str, rounds: int) -> dict[str, Figures]:
    """Return the figures of each trouble."""
    troubles = {name: _Trouble(name, ill, well) for name in TROUBLES}
    found: dict[str, Figures] = {}
    for attempt in range(ATTEMPTS):
        for _ in range(rounds + (attempt == 0)):
            for trouble in troubles.values():
                await trouble.round()
        found = {name: trouble.figures() for name, trouble in troubles.items()}
        if not any(faults(name, figures) for name, figures in found.items()):
            break
    return found


def faults(name: str, figures: Figures) -> list[str]:
    """Return a line for each figure over its limit."""
    found = [f"{name}: {key} over {LIMIT}" for key in ("ratio", "cpu_ratio") if figures[key] > LIMIT]
    if figures["first_text_cpu_ms"] > FIRST_TEXT_MS:
        found.append(f"{name}: first text over {FIRST_TEXT_MS} ms")
    return found


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
        await _chained(around)
    after = _held()
    return {name: b - a for name, a, b in zip(("kb", "threads", "descriptors"), before, after, strict=True)}


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--rounds", type=int, default=24, help="rounds counted, if none of the figures is over its limit"
    )
    options.add_argument("--growth", type=int, default=10_000)
    chosen = options.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as state, in_child() as ill, in_child() as well:
        os.environ["XDG_STATE_HOME"] = state
        for trouble, figures in asyncio.run(measure(ill, well, chosen.rounds)).items():
            print(f"{trouble:<8}", json.dumps({name: round(value, 2) for name, value in figures.items()}), flush=True)
            wrong += faults(trouble, figures)
        added: dict[str, Any] = asyncio.run(growth(ill, well, chosen.growth))
        print("growth  ", json.dumps(added))
        wrong += ["it grows"] * (added["kb"] > GROWTH_KB or added["threads"] > 0 or added["descriptors"] > 0)
    print(*wrong, sep="\n" if wrong else "", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
