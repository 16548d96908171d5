"""CPU per streamed delta, ours against a hand-written client, in one run.

    python tests/perf/streaming.py [--runs N] [--only FORMAT] [--json]

The reference is httpx, `aiter_lines` and `json.loads`. For each wire format it prints the microseconds of CPU a delta
costs the reference, our provider over each transport, and our plain iterator, for 5,000 deltas in one write ("bulk")
and 1,000 deltas a millisecond apart ("paced"), with the ratio to the reference. The server is another process. Exits 1
where a figure is over its limit.

A figure is the least of its rounds: the same code takes up to twice the time when the machine is shared, for seconds
on end, and nothing makes it faster than it is. While one is over its limit there are more rounds, up to three times as
many.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import pathlib
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

sys.path[:0] = [str(pathlib.Path(__file__).parents[2]), str(pathlib.Path(__file__).parents[1])]

from fake_provider import deltas, expected, in_child, knobs

import larik_nb
from larik_nb.http import TransportName
from larik_nb.providers._wire import Adapter, WireProvider
from larik_nb.providers.anthropic import Anthropic
from larik_nb.providers.gemini import Gemini
from larik_nb.providers.ollama import Ollama
from larik_nb.providers.openai import OpenAI
from larik_nb.providers.openai_compatible import OpenAICompatible
from larik_nb.types import Request, user

BULK, PACED = "fake:n=5000", "fake:n=1000:d=1"
LIMITS = {"h11": 0.9, "aiohttp": 0.5}
"""Ratio to the reference."""

BULK_ROUNDS = 5
"""Rounds in bulk for one paced: they are short, and so hit harder by what else the machine does."""

ATTEMPTS = 3
"""How often the rounds are made at most."""

PLAIN_LIMIT = 1.3
"""Ratio of the plain iterator in bulk to our async figure."""

PLAIN_EXTRA_US = 60.0
"""What the plain iterator may add to a paced read."""

Figures = dict[str, dict[str, float]]
TextOf = Callable[[dict[str, Any]], str]


def _messages(event: dict[str, Any]) -> str:
    return str(event["delta"].get("text", "")) if event["type"] == "content_block_delta" else ""


def _responses(event: dict[str, Any]) -> str:
    return str(event["delta"]) if event["type"] == "response.output_text.delta" else ""


def _chat(event: dict[str, Any]) -> str:
    return (event["choices"][0]["delta"].get("content") or "") if event["choices"] else ""


def _gemini(event: dict[str, Any]) -> str:
    return str(event["candidates"][0]["content"]["parts"][0]["text"])


def _ollama(event: dict[str, Any]) -> str:
    return str(event["message"]["content"])


FORMATS: dict[str, tuple[Callable[[], Adapter], str, str, TextOf]] = {
    "anthropic": (Anthropic, "", "/v1/messages", _messages),
    "openai": (OpenAI, "/v1", "/v1/responses", _responses),
    "gemini": (Gemini, "/v1beta", "/v1beta/models/{model}:streamGenerateContent", _gemini),
    "ollama": (Ollama, "", "/api/chat", _ollama),
    "chat": (lambda: OpenAICompatible(provider="chat"), "/v1", "/v1/chat/completions", _chat),
}


async def by_hand(client: Any, url: str, name: str, model: str) -> str:
    """Read an answer as people do without a library for it."""
    _, _, path, text = FORMATS[name]
    parts = []
    body = {"model": model, "stream": True}
    async with client.stream("POST", url + path.format(model=model), json=body) as response:
        async for line in response.aiter_lines():
            data = line.removeprefix("data:").strip()
            if data.startswith("{"):
                parts.append(text(json.loads(data)))
    return "".join(parts)


def provider(name: str, url: str, transport: TransportName) -> WireProvider:
    """Return our provider for a format."""
    adapter, base, _, _ = FORMATS[name]
    return WireProvider(adapter(), name=name, base_url=url + base, transport=transport)


def ask(model: str) -> Request:
    """Return the smallest request."""
    return Request(model=model, messages=(user("hi"),))


async def read(source: AsyncIterator[larik_nb.StreamEvent]) -> str:
    """Read an answer from our provider."""
    return "".join([event.text async for event in source if event.type == "text_delta"])


class _Clock:
    """Takes one figure after the other in microseconds of CPU a delta, and checks every text."""

    def __init__(self, model: str) -> None:
        self._wanted, self._count = expected(model), len(deltas(knobs(model)))

    async def take(self, run: Callable[[], Awaitable[str]]) -> float:
        begun = time.process_time()
        got = await run()
        spent = time.process_time() - begun
        assert got == self._wanted, "deltas were lost"
        return spent / self._count * 1e6


async def rounds(url: str, name: str, model: str, runs: int) -> list[dict[str, float]]:
    """Return the figures of `runs` rounds, each taking every reader in turn so that drift hits all alike."""
    import httpx

    async def plain() -> str:
        events = larik_nb.stream(stock, ask(model))
        return "".join([event.text for event in events if event.type == "text_delta"])

    stock, clock = provider(name, url, "h11"), _Clock(model)
    async with httpx.AsyncClient(timeout=60) as client:
        readers: dict[str, Callable[[], Awaitable[str]]] = {
            "reference": lambda: by_hand(client, url, name, model),
            "h11": lambda: read(stock.stream(ask(model))),
            "plain": plain,
        }
        if importlib.util.find_spec("aiohttp"):
            fast = provider(name, url, "aiohttp")
            readers["aiohttp"] = lambda: read(fast.stream(ask(model)))
        taken = [{key: await clock.take(run) for key, run in readers.items()} for _ in range(runs + 1)]
    return taken[1:]


def measure(url: str, name: str, runs: int) -> Figures:
    """Return the figures of one format, bulk and paced, and under "x …" their ratios to the reference."""
    taken: dict[str, list[dict[str, float]]] = {"bulk": [], "paced": []}
    for _ in range(ATTEMPTS):
        taken["bulk"] += asyncio.run(rounds(url, name, BULK, runs * BULK_ROUNDS))
        taken["paced"] += asyncio.run(rounds(url, name, PACED, runs))
        figures = {pace: _least(rows) for pace, rows in taken.items()}
        if not faults(name, figures):
            break
    return figures


def _least(rows: list[dict[str, float]]) -> dict[str, float]:
    least = {key: min(row[key] for row in rows) for key in rows[0]}
    return least | {f"x {key}": value / least["reference"] for key, value in least.items()}


def faults(name: str, figures: Figures) -> list[str]:
    """Return a line for each figure over its limit."""
    bulk, paced = figures["bulk"], figures["paced"]
    found = [
        f"{name}: {transport} is over {limit} x the reference"
        for transport, limit in LIMITS.items()
        if bulk.get(f"x {transport}", 0) > limit
    ]
    if bulk["plain"] > PLAIN_LIMIT * bulk["h11"]:
        found.append(f"{name}: the plain iterator is over {PLAIN_LIMIT} x the async one in bulk")
    if paced["plain"] > paced["h11"] + PLAIN_EXTRA_US:
        found.append(f"{name}: the plain iterator adds over {PLAIN_EXTRA_US:g} us to a paced read")
    return found


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=7, help="paced rounds counted; in bulk five times as many")
    options.add_argument("--only", choices=FORMATS, help="one format")
    options.add_argument("--json", action="store_true", help="one JSON line a format instead of a table")
    chosen = options.parse_args()
    wrong: list[str] = []
    with in_child() as url:
        for name in [chosen.only] if chosen.only else FORMATS:
            figures = measure(url, name, chosen.runs)
            wrong += faults(name, figures)
            if chosen.json:
                print(json.dumps({"format": name, **figures}))
                continue
            for pace, row in figures.items():
                readers = [key for key in row if not key.startswith("x ")]
                shown = "  ".join(f"{key} {row[key]:6.1f} us ({row['x ' + key]:.2f})" for key in readers)
                print(f"{name:<10} {pace:<6} {shown}", flush=True)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
