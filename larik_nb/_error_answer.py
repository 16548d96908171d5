"""Read a failed answer: every code, sentence, status and delay that it holds, nothing judged.

The body of a failure may be JSON, a list of it, JSON within a string within JSON, lines of a
stream, plain text, a web page, nothing, or any of these cut short. All become one `Answer`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from larik_nb import _error_numbers, _error_text

#: A longer body is read at its ends only: what matters stands at the start or the end.
_WHOLE, _HEAD, _TAIL = 200_000, 48_000, 8_000
_MAX_DEPTH, _MAX_NODES, _MAX_SENTENCE, _MAX_READ = 9, 400, 2_000, 4_000

#: Where servers put machine codes, the most specific first.
CODE_KEYS = (
    "error_code", "errorCode", "errorcode", "err_code", "code", "Code", "reason", "blockReason",
    "status_code", "statusCode", "error_type", "errorType", "type", "__type", "status",
    "originalStatusCode", "upstreamStatus", "name", "err_no", "exception",
)  # fmt: skip
#: Where they put sentences.
TEXT_KEYS = (
    "message", "Message", "msg", "error", "error_msg", "errorMsg", "errorMessage", "error_message",
    "status_msg", "status_message", "statusMessage", "errmsg", "err_msg", "err", "detail", "details", "Error", "error_description",
    "errorDescription", "error_desc", "userMessage", "user_message", "description", "faultstring", "reason", "title", "raw", "originalMessage", "quotaId", "body",
    "blockReasonMessage", "response", "info", "cause",
)  # fmt: skip
#: What may hold the reason. What a request said (`input`, `messages`) is not among them.
CHILD_KEYS = (
    "error", "errors", "Error", "Errors", "response", "Response", "base_resp", "detail", "details",
    "metadata", "raw", "message", "msg", "innererror", "inner_error", "cause", "body",
    "violations", "fault", "header", "status", "upstreamResponse", "promptFeedback",
    "incomplete_details", "choices", "candidates", "delta", "data", "exception", "failure",
    "extra", "result", "output", "upstream_error",
)  # fmt: skip
TYPE_KEYS = ("error_type", "errorType", "type", "__type", "status")
REASON_KEYS = tuple(key for key in CODE_KEYS if key not in TYPE_KEYS)
STOP_KEYS = ("finish_reason", "stop_reason", "finishReason", "stopReason", "done_reason")
USED_KEYS = ("n_prompt_tokens",)
WINDOW_KEYS = ("n_ctx",)
#: Delays in a body, and what one of them counts in seconds.
RETRY_KEYS = {"retryDelay": 1.0, "retry_after": 1.0, "retryAfter": 1.0,
              "retry_after_seconds": 1.0, "retry_after_ms": 0.001, "retryAfterMs": 0.001}  # fmt: skip


#: How gateways tell what the server behind them answered.
_RELAYED = (
    r"(?:provider|upstream|backend|http(?:/[\d.]+)?|status(?: ?code)?|error code|responded with|failed with|returned)"
    r"(?: (?:status|code|error|http|response|is|was|of|a|an)){0,3}[ :=(\[]{1,3}([45]\d\d)\b(?! ?(?:tokens?|ms|s\b|[km]b))"
)


class Code(NamedTuple):
    """A machine code: how deep it stood, under which key, and in which room.

    The room is the object, or the key, that gives a bare number its meaning.
    """

    depth: int
    key: str
    room: str
    value: str


@dataclass(slots=True)
class Answer:
    """What a failed answer says.

    Sentences carry the depth at which they stood.
    """

    status: int | None
    where: str
    codes: list[Code] = field(default_factory=list)
    sentences: list[tuple[int, str]] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    is_page: bool = False
    is_empty: bool = False
    used_tokens: int | None = None
    max_tokens: int | None = None
    output_tokens: int | None = None
    retry_after: float | None = None
    should_retry: bool | None = None

    def ordered_codes(self) -> list[Code]:
        """The innermost wrapper first, and in it the most specific key."""
        return sorted(self.codes, key=lambda code: (-code.depth, CODE_KEYS.index(code.key)))

    def named(self, keys: tuple[str, ...]) -> str | None:
        """The innermost code that stood under one of `keys`."""
        return next((code.value for code in self.ordered_codes() if code.key in keys), None)

    def number(self) -> int | None:
        """The HTTP-like number that the body gives itself, innermost first."""
        numbers = (c.value for c in self.ordered_codes() if re.fullmatch(r"[45]\d\d", c.value))
        return int(next(numbers, "0")) or self._relayed()

    def _relayed(self) -> int | None:
        """The status of the server behind, where the one in front tells it in words: `Error from provider (400)`."""
        told = re.search(_RELAYED, self.text(), re.IGNORECASE)
        return int(told[1]) if told else None

    def text(self) -> str:
        """All sentences, outermost first."""
        return " | ".join(self.sentences_once())

    def sentences_once(self) -> list[str]:
        """The sentences, outermost first, each once; together no longer than is worth reading."""
        kept, left = [], _MAX_READ
        for sentence in dict.fromkeys(sentence for _, sentence in self.sentences):
            if left > 0:
                kept.append(sentence[:left])
            left -= len(sentence)
        return kept

    def best_sentence(self) -> str:
        """The innermost sentence: wrappers only say that something failed."""
        told = [(depth, text) for depth, text in self.sentences if " " in text.strip()]
        told = told or self.sentences
        deepest = max((depth for depth, _ in told), default=0)
        return next((text for depth, text in told if depth == deepest), "")


def read(status: int | None, headers: Mapping[str, str] | None, body: bytes, *, where: str) -> Answer:
    """Read status, headers and body of a failure."""
    answer = Answer(status=status, where=where)
    text = _decode(body)
    answer.is_empty = not text.strip()
    answer.is_page = not text.lstrip().startswith(("{", "[", "data:")) and _error_text.is_page(text)
    if answer.is_page:
        answer.sentences.append((0, _error_text.page_words(text)))
    else:
        _read_text(answer, text)
    _read_headers(answer, {str(k).lower(): str(v) for k, v in (headers or {}).items()})
    return answer


def _read_headers(answer: Answer, headers: Mapping[str, str]) -> None:
    for name in ("x-amzn-errortype", ":exception-type", ":error-code"):
        if code := headers.get(name, "").partition(":")[0]:
            answer.codes.append(Code(1, "code", name, code))
    if message := headers.get(":error-message"):
        answer.sentences.append((1, message[:_MAX_SENTENCE]))
    told = _error_numbers.retry_after(headers)
    answer.retry_after = answer.retry_after if told is None else told
    answer.should_retry = {"true": True, "false": False}.get(headers.get("x-should-retry", ""))


def _decode(body: bytes) -> str:
    if len(body) > _WHOLE:
        body = body[:_HEAD] + b" \n " + body[-_TAIL:]
    return body.decode("utf-8", "replace").replace("\x00", " ").removeprefix("\ufeff")


def _read_text(answer: Answer, text: str) -> None:
    walk = _Walk(answer)
    found = False
    for root in _roots(text):
        walk.visit(root, 0, "")
        found = True
    for key, value in () if found else _loose_pairs(text):
        walk.pair(key, value, 1, "")
        found = True
    if not found and text.strip():
        answer.sentences.append((0, text[:_MAX_SENTENCE]))


def _roots(text: str) -> Iterator[object]:
    """The JSON values of a body: the whole of it, or one a line of a stream."""
    value = _parse(text)
    if value is not None:
        yield value
        return
    for line in text.split("\n", 100)[:100]:
        value = _parse(line.strip().removeprefix("data:"))
        if isinstance(value, dict | list):
            yield value


def _parse(text: str) -> object:
    """A JSON value, or None; so does text that nests too deep or holds an endless number."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _loose_pairs(text: str) -> Iterator[tuple[str, str | int]]:
    """Key and value pairs of JSON that was cut short."""
    pattern = r'"(\w{1,40})"\s{0,9}:\s{0,9}(?:"((?:[^"\\]|\\.){0,2000})|(-?\d{1,9})\b)'
    for key, word, number in re.findall(pattern, text):
        yield key, int(number) if number else _unescape(word)


def _unescape(word: str) -> str:
    word = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), word)
    return word.replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")


class _Walk:
    """Visits JSON values once each and writes what it finds into the answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.left = answer, _MAX_NODES

    def visit(self, node: object, depth: int, room: str) -> None:
        """Visit a value that stood under the key `room`."""
        self.left -= 1
        if depth > _MAX_DEPTH or self.left < 0:
            return
        if isinstance(node, list):
            for item in node[:10]:
                self.visit(item, depth, room)
        elif isinstance(node, dict):
            self.visit_object(node, depth, room)
        elif isinstance(node, str) and node.strip():
            self.sentence(node, depth, room)

    def visit_object(self, node: dict[str, object], depth: int, room: str) -> None:
        """Visit the plain values of an object, then the objects within."""
        room = "object" if node.get("object") == "error" else room
        self.counts(node)
        for key, value in _with_place(node).items():
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                self.pair(key, value, depth, room)
            elif key in CHILD_KEYS:
                self.visit(value, depth + 1, key)

    def pair(self, key: str, value: str | float, depth: int, room: str) -> None:
        """Note a key with a plain value."""
        answer = self.answer
        if key in STOP_KEYS and isinstance(value, str):
            answer.stops.append(value)
        elif key in RETRY_KEYS:
            answer.retry_after = _error_numbers.delay(value, RETRY_KEYS[key])
        elif key in CODE_KEYS and (not isinstance(value, str) or 0 < len(value) <= 100):
            named = key if key == "error_code" else room
            answer.codes.append(Code(depth, key, named, str(value)))
        if key in TEXT_KEYS and isinstance(value, str) and value.strip():
            self.sentence(value, depth, room)

    def sentence(self, text: str, depth: int, room: str) -> None:
        """Note a sentence; JSON quoted in it is taken out and visited by itself."""
        found = _quoted(text)
        if found:
            value, start, end = found
            text = f"{text[:start]} {text[end:]}"
            self.visit(value, depth + 1, room)
        if _error_text.is_page(text):
            text = _error_text.page_words(text)
        if any(char.isalnum() for char in text):
            self.answer.sentences.append((depth, text[:_MAX_SENTENCE]))

    def counts(self, node: dict[str, object]) -> None:
        """Note counts of tokens that are told as numbers."""
        answer, usage = self.answer, node.get("usage")
        counted = usage if isinstance(usage, dict) else node
        answer.used_tokens = _count(node, USED_KEYS) or answer.used_tokens
        answer.max_tokens = _count(node, WINDOW_KEYS) or answer.max_tokens
        made = _count(counted, ("completion_tokens", "output_tokens", "eval_count"))
        answer.output_tokens = made if made is not None else answer.output_tokens
        if isinstance(node.get("retryDelay"), dict):
            answer.retry_after = _error_numbers.delay(node["retryDelay"])


def _with_place(node: dict[str, object]) -> dict[str, object]:
    """A validator's complaint with the field it is about: `max_tokens: Input should be less`."""
    place, told = node.get("loc"), node.get("msg")
    if not isinstance(place, list | tuple) or not isinstance(told, str):
        return node
    field_name = ".".join(str(part)[:40] for part in place[:6] if part != "body")
    return {**node, "msg": f"{field_name}: {told}"} if field_name else node


def _count(node: dict[str, object], keys: tuple[str, ...]) -> int | None:
    values = (node.get(key) for key in keys)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool)), None)


def _quoted(text: str) -> tuple[object, int, int] | None:
    """A JSON object, or Python's way to print one, inside a sentence; with where it stands."""
    start, end = text.find("{"), text.rfind("}") + 1
    if not 0 <= start < end:
        return None
    for inner in (text[start:end], text[start:end].replace('\\"', '"')):
        value = _parse(inner)
        value = _literal(inner) if value is None else value
        if isinstance(value, dict):
            return value, start, end
    return None


def _literal(text: str) -> object:
    if len(text) > _MAX_SENTENCE:
        return None
    import ast  # only gateways written in Python quote like this

    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None  # Prose that happens to hold braces.
    return value
