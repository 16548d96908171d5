"""Replay recorded answers through our adapters and compare with what a correct client reads out of them.

    python tests/corpus.py wire DIR [--chunk N] [--json] [--all]
    python tests/corpus.py errors FILE

`wire` takes a folder of cases (sub-folders too), serves each over HTTP on loopback and prints one JSON line per
difference; the last line is `passed N of M`. Differences that `wire_differences.json` explains are printed with
their reason and counted as not passed; any other makes the exit status 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from larik_nb import errors
from larik_nb.providers._wire import WireProvider
from larik_nb.types import Message, Request, StreamEvent, ToolSpec, user
from tests._serve import Answer, Server

ADAPTERS: Mapping[str, tuple[str, str]] = {
    "anthropic.messages": ("larik_nb.providers.anthropic", "Anthropic"),
    "openai.responses": ("larik_nb.providers.openai", "OpenAI"),
    "openai.chat": ("larik_nb.providers.openai_compatible", "OpenAICompatible"),
    "gemini.generate": ("larik_nb.providers.gemini", "Gemini"),
    "ollama.chat": ("larik_nb.providers.ollama", "Ollama"),
}
LATER = ("bedrock.converse", "bedrock.invoke")
"""Wire formats whose adapters are not there yet; their cases run with --all only."""

END_IS_THE_REASON = ("openai.chat", "gemini.generate")
"""Wire formats whose end is the stop reason itself: a stream without a further mark is whole."""

STALL_S = 20.0

# -- what the vendors' words mean -------------------------------------------------------------------------------
STOP: Mapping[str, Mapping[str, str]] = {
    "anthropic.messages": {
        "end_turn": "end_turn",
        "max_tokens": "max_tokens",
        "stop_sequence": "stop_sequence",
        "tool_use": "tool_use",
        "pause_turn": "pause",
        "compaction": "pause",
        "refusal": "refusal",
        "model_context_window_exceeded": "context_overflow",
    },
    "openai.responses": {"completed": "end_turn", "max_output_tokens": "max_tokens", "content_filter": "refusal"},
    "openai.chat": {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "function_call": "tool_use",
        "content_filter": "refusal",
    },
    "gemini.generate": {
        "STOP": "end_turn",
        "MAX_TOKENS": "max_tokens",
        **dict.fromkeys(
            (
                "SAFETY",
                "RECITATION",
                "BLOCKLIST",
                "PROHIBITED_CONTENT",
                "SPII",
                "MODEL_ARMOR",
                "IMAGE_SAFETY",
                "IMAGE_PROHIBITED_CONTENT",
                "IMAGE_RECITATION",
            ),
            "refusal",
        ),
    },
    "ollama.chat": {"stop": "end_turn", "length": "max_tokens"},
}

OVERFLOW = re.compile(r"too long|too many (prompt )?tokens|context (length|window)|maximum context", re.IGNORECASE)
FILTERED = re.compile(r"usage (guidelines|polic)|content[ _]?(policy|filter)|safety_check", re.IGNORECASE)
CLASSES: Mapping[int, tuple[type[errors.APIError], ...]] = {
    401: (errors.AuthError,),
    402: (errors.QuotaError,),
    403: (errors.AuthError,),
    404: (errors.ModelNotFound,),
    408: (errors.ServerError,),
    429: (errors.RateLimited, errors.QuotaError),
}


def stop_reasons(case: Case) -> tuple[str | None, ...]:
    """Return our words for why the answer ended; two where the vendor said nothing and the rest speaks for itself."""
    oracle = case.oracle
    raw = oracle.get("incomplete_reason") or oracle.get("stop_reason_raw")
    if oracle.get("refusal") or oracle.get("block_reason"):
        return ("refusal",)
    if raw is None:
        # Feedback on the prompt instead of a candidate is one API's way to say that it was blocked.
        blocked = '"promptFeedback"' in case.data["response"]["body"] and not oracle["text"]
        return (None, *(["refusal"] if blocked else ["tool_use"] if oracle["tool_calls"] else []))
    word = STOP[case.api].get(raw, "other")
    return ("tool_use" if word == "end_turn" and oracle["tool_calls"] else word,)


def error_classes(case: Case) -> tuple[type[errors.APIError], ...]:
    """Return the classes that an HTTP error may become."""
    error, body = case.oracle["error"], case.data["response"]["body"]
    status = error["http_status"]
    if status in (400, 403) and FILTERED.search(body):
        return (errors.RefusedError,)
    if status in (400, 413, 422) and OVERFLOW.search(error.get("message") or ""):
        return (errors.ContextOverflow,)
    return CLASSES.get(status) or ((errors.ServerError,) if status >= 500 else (errors.BadRequest,))


# -- cases ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Case:
    """One recorded exchange with its oracle."""

    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.data["id"])

    @property
    def api(self) -> str:
        return str(self.data["api"])

    @property
    def oracle(self) -> Mapping[str, Any]:
        oracle: Mapping[str, Any] = self.data["oracle"]
        return oracle

    def answer(self, chunk: int | None) -> Answer:
        """Return what the server sends: HTTP errors as they came, the rest in the pieces asked for."""
        response = self.data["response"]
        streamed = bool(self.data.get("stream")) and response["status"] < 400
        whole = response["status"] >= 400 or not (chunk or streamed)
        sizes = [] if whole else [chunk] if chunk else self.data.get("chunk_sizes") or []
        return Answer(
            status=response["status"],
            headers=response.get("headers") or {},
            body=response["body"].encode(),
            sizes=sizes,
            chunked=not whole,
        )

    def request(self) -> Request:
        """Return a request like the recorded one, as far as reading the answer depends on it."""
        body = self.data.get("request", {}).get("body")
        names = list(_tool_names(body.get("tools"))) if isinstance(body, dict) else []
        return Request(
            model=self.oracle.get("model") or "model",
            messages=(user("hi"),),
            tools=tuple(ToolSpec(name=name) for name in dict.fromkeys(names)),
        )


def _tool_names(value: Any) -> Iterator[str]:
    """Yield the names of the functions offered, in any vendor's form."""
    for tool in value if isinstance(value, list) else ():
        if not isinstance(tool, dict):
            continue
        declared = tool.get("functionDeclarations") or tool.get("function_declarations")
        named = declared if isinstance(declared, list) else [tool.get("function", tool)]
        yield from (item["name"] for item in named if isinstance(item, dict) and isinstance(item.get("name"), str))


def load(folder: Path) -> list[Case]:
    """Return the cases in a folder and its sub-folders."""
    found = (json.loads(path.read_bytes()) for path in sorted(folder.rglob("*.json")))
    return [Case(data) for data in found if isinstance(data, dict) and "oracle" in data and "api" in data]


# -- running ----------------------------------------------------------------------------------------------------
@dataclass
class Outcome:
    """What our adapter made of one answer."""

    events: list[StreamEvent] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def message(self) -> Message | None:
        """The answer, the partial one where it broke off."""
        if self.error is not None:
            return getattr(self.error, "partial", None)
        return self.events[-1].message if self.events else None

    def joined(self, kind: str) -> str:
        """Return the joined deltas of a kind."""
        return "".join(event.text for event in self.events if event.type == kind)


async def ask(case: Case, url: str) -> Outcome:
    """Send one request to the server that plays the case back."""
    outcome = Outcome()
    try:
        module, name = ADAPTERS[case.api]
        adapter = getattr(import_module(module), name)(provider=case.data.get("vendor") or "test")
        provider = WireProvider(adapter, name="test", base_url=url, stall_timeout_s=STALL_S)
        async for event in provider.stream(case.request()):
            outcome.events.append(event)
    except Exception as exc:  # noqa: BLE001  # whatever is raised is what is judged
        outcome.error = exc
    return outcome


# -- comparing --------------------------------------------------------------------------------------------------
Difference = tuple[str, Any, Any]
"""Field, wanted, got."""


def compare(case: Case, outcome: Outcome) -> list[Difference]:
    """Return in what the outcome differs from the oracle."""
    if "error" in case.oracle:
        return list(_compare_error(case, outcome))
    if _must_fail(case):
        return list(_compare_partial(case, outcome))
    if outcome.error is not None or outcome.message is None:
        return [("raises", None, repr(outcome.error))]
    return [*_compare_message(case.oracle, outcome.message), *_compare_end(case, outcome)]


def _must_fail(case: Case) -> bool:
    """Return whether the answer is none: an error inside it, or cut off before its end mark."""
    if "error_event" in case.oracle:
        return True
    cut = case.oracle.get("terminated") is False
    return cut and not (case.api in END_IS_THE_REASON and case.oracle.get("stop_reason_raw"))


def _compare_error(case: Case, outcome: Outcome) -> Iterator[Difference]:
    want, error = case.oracle["error"], outcome.error
    classes = error_classes(case)
    if not isinstance(error, errors.APIError):
        yield "raises", [kind.__name__ for kind in classes], repr(error)
        return
    if not isinstance(error, classes):
        yield "class", [kind.__name__ for kind in classes], type(error).__name__
    if error.status != want["http_status"]:
        yield "status", want["http_status"], error.status
    said = [want.get("message") or "", *_messages(case.data["response"]["body"])]
    if want["http_status"] == REJECTED:
        # Our own words: the vendor's may quote the key.
        said = [f"({REJECTED})"]
    if not any(_says(error.message, text) for text in said):
        yield "message", want.get("message"), error.message


REJECTED = 401
MESSAGE_CHARS = 60
"""How much of a vendor's message must be in ours; the rest may be cut."""


def _says(ours: str, theirs: str) -> bool:
    """Return whether our line holds the beginning of the vendor's, each word as it is or masked."""
    words = " ".join(theirs.split())[:MESSAGE_CHARS].rstrip(" .").split()
    return bool(re.search(r"\s+".join(rf"(?:{re.escape(word)}|\S*\*{{3}})\S*" for word in words), ours))


def _messages(value: Any) -> Iterator[str]:
    """Yield every message in an error body; gateways wrap the one that says what is wrong, as JSON in a string."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            yield from _messages(json.loads(value) if value.lstrip()[:1] in ("{", "[") else None)
    if isinstance(value, list):
        yield from (found for item in value for found in _messages(item))
    if isinstance(value, dict):
        yield from (
            item for name, item in value.items() if name in ("message", "error", "detail") and isinstance(item, str)
        )
        yield from (found for item in value.values() for found in _messages(item))


def _compare_partial(case: Case, outcome: Outcome) -> Iterator[Difference]:
    if not isinstance(outcome.error, errors.APIError):
        yield "raises", "APIError", repr(outcome.error)
    elif outcome.message is None:
        yield "partial", "what had arrived", None
    else:
        yield from _compare_message(case.oracle, outcome.message)


def _compare_message(oracle: Mapping[str, Any], message: Message) -> Iterator[Difference]:
    if not _same_words(oracle["text"], message.text):
        yield "text", oracle["text"], message.text
    if not _same_words(oracle["thinking"], message.thinking):
        yield "thinking", oracle["thinking"], message.thinking
    calls = [*oracle["tool_calls"], *([legacy] if (legacy := oracle.get("legacy_function_call")) else [])]
    wanted, got = [_wanted_call(call) for call in calls], [_call(call) for call in message.tool_calls]
    got = [(want[0] and call[0], *call[1:]) for want, call in zip(wanted, got, strict=False)] + got[len(wanted) :]
    if wanted != got:
        yield "tool_calls", wanted, got
    yield from _compare_usage(oracle, message)
    if oracle.get("model") and message.model != oracle["model"]:
        yield "model", oracle["model"], message.model
    if (signed := _signed(message)) != bool(oracle.get("has_signature")):
        yield "has_signature", bool(oracle.get("has_signature")), signed


def _compare_end(case: Case, outcome: Outcome) -> Iterator[Difference]:
    message = outcome.message
    assert message is not None
    if message.stop_reason not in stop_reasons(case):
        yield "stop_reason", stop_reasons(case), message.stop_reason
    if outcome.joined("text_delta") != message.text:
        yield "deltas", message.text, outcome.joined("text_delta")
    if [event.type for event in outcome.events].count("done") != 1:
        yield "done", 1, [event.type for event in outcome.events]


def _same_words(want: str, got: str) -> bool:
    """Compare, white space at the joints of our paragraphs ignored."""
    return want == got or bool(re.fullmatch(r"\s*".join(map(re.escape, re.split(r"\n\n+", got))), want, re.DOTALL))


def _wanted_call(call: Mapping[str, Any]) -> tuple[Any, ...]:
    if isinstance(call["arguments"], dict):
        return (call.get("id"), call["name"], call["arguments"], None)
    return (call.get("id"), call["name"], None, call.get("arguments_raw"))


def _call(block: Any) -> tuple[Any, ...]:
    return (block.id, block.name, block.input, block.input_raw)


def _compare_usage(oracle: Mapping[str, Any], message: Message) -> Iterator[Difference]:
    usage = message.usage
    got = {
        "input_tokens_total": usage.prompt if usage else None,
        "output_tokens_total": usage.output if usage else None,
        "cache_read": usage.cache_read if usage else None,
        "cache_write": usage.cache_write if usage else None,
    }
    for name, value in got.items():
        want = oracle.get(name)
        if value != want and (want is not None or value):
            yield name, want, value


def _signed(message: Message) -> bool:
    """Return whether there is an opaque value to send back."""
    return any(block.signature or _sealed(block.raw) for block in message.blocks)


def _sealed(value: Any) -> bool:
    """Return whether a vendor's JSON holds sealed reasoning."""
    if isinstance(value, list):
        return any(map(_sealed, value))
    if not isinstance(value, dict) or value.get("type") == "compaction":
        return False
    return any(
        (bool(item) if name in ("encrypted_content", "thoughtSignature", "signature", "data") else _sealed(item))
        for name, item in value.items()
        if name in ("encrypted_content", "thoughtSignature", "signature", "data", "reasoning_details")
    )


# -- the command ------------------------------------------------------------------------------------------------
@dataclass
class Score:
    """How a run went."""

    passed: int = 0
    total: int = 0
    explained: int = 0
    skipped: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def unexplained(self) -> int:
        """Cases that differ without a reason on the list."""
        return self.total - self.passed - self.explained


def known_differences() -> Mapping[str, str]:
    """Return the explained differences, case id → reason."""
    path = Path(__file__).with_name("wire_differences.json")
    listed: Mapping[str, str] = json.loads(path.read_bytes())
    return listed


async def run(cases: Sequence[Case], chunk: int | None, *, every: bool = False) -> Score:
    """Play the cases back one after the other."""
    score, reasons = Score(), known_differences()
    with Server() as server:
        for case in cases:
            if case.api in LATER and not every:
                score.skipped += 1
                continue
            score.total += 1
            found = compare(case, await ask(case, server.url(case.answer(chunk))))
            if not found:
                score.passed += 1
                continue
            why = {"explained": reasons[case.id]} if case.id in reasons else {}
            score.explained += bool(why)
            score.lines += [{"id": case.id, "field": f, "want": want, "got": got, **why} for f, want, got in found]
    return score


def wire(options: argparse.Namespace) -> int:
    """Run the command `wire`."""
    cases = load(options.folder)
    if not cases:
        print(f"no cases in {options.folder}", file=sys.stderr)
        return 2
    score = asyncio.run(run(cases, options.chunk, every=options.all))
    for line in score.lines:
        print(json.dumps(line, default=str))
    if score.skipped:
        print(f"skipped {score.skipped} of wire formats that come later (--all runs them)", file=sys.stderr)
    counts = {"passed": score.passed, "of": score.total, "explained": score.explained, "skipped": score.skipped}
    print(json.dumps(counts) if options.json else f"passed {score.passed} of {score.total}")
    return 1 if score.unexplained else 0


def main(arguments: Sequence[str]) -> int:
    """Run one of the commands."""
    if arguments[:1] == ["errors"]:
        status: int = import_module("tests.corpus_transports").main(list(arguments[1:]))
        return status
    parser = argparse.ArgumentParser(prog="corpus.py", description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("wire", help="recorded answers against their oracles")
    command.add_argument("folder", type=Path)
    command.add_argument("--chunk", type=int, help="send bodies in pieces of N bytes instead of as recorded")
    command.add_argument("--json", action="store_true", help="print the last line as JSON")
    command.add_argument("--all", action="store_true", help="also the wire formats that have no adapter yet")
    commands.add_parser("errors", help="recorded errors against their labels")
    return wire(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
