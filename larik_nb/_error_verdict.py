"""Decide what a failed answer means. The knowledge is in `_error_rules`, the order is here.

1. why it stopped   2. codes that decide   3. numbers of a vendor   4. sentences: money, rates,
overload, size, policy, credentials, names, rights   5. codes that name a class   6. the status
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Literal

from larik_nb import _error_languages as languages
from larik_nb import _error_numbers
from larik_nb import _error_rules as rules
from larik_nb._error_answer import Answer
from larik_nb._error_rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The meaning of a failure; None leaves the policy of the kind as it is."""

    kind: str
    status: int | None
    retryable: bool | None = None
    cools: Literal["short", "long"] | None = None
    cause: str = ""
    used_tokens: int | None = None
    max_tokens: int | None = None
    retry_hint: float | None = None


def decide(answer: Answer) -> Verdict:
    """What the answer means for retry, fallback and cooling."""
    phrases = [as_phrase(sentence) for sentence in answer.sentences_once()]
    status = _status_in_force(answer)
    kind = (
        _by_stop(answer)
        or _by_code(answer, phrases)
        or _by_text(phrases, status)
        or _by_weak_code(answer, status)
        or _by_status(answer, status)
    )
    return _refined(kind, answer, phrases, status)


def as_phrase(text: str) -> str:
    """Lower-case words: CamelCase and snake_case split, no addresses, no quotes."""
    text = re.sub(r"Received Model Group.*|https?://\S+|[`'\"“”‘’*]", "", text, flags=re.DOTALL)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])|_", " ", text)
    text = re.sub(r"(?<=[A-Za-z])-(?=[A-Za-z])", " ", text)
    text = re.sub(r"(?i)input validation error|invalid input\b", " ", text)
    return " ".join(text.lower().translate(languages.SIMPLIFIED).split())


def matches(rule: Rule, phrases: Iterable[str]) -> bool:
    """Whether the rule holds for any of the phrases."""
    found, unless = _searches(rule)
    return any(found(phrase) and not unless(phrase) for phrase in phrases)


Search = Callable[[str], object]


@cache
def _searches(rule: Rule) -> tuple[Search, Search]:
    """Return what finds a rule's patterns and its exceptions; on first use, for to compile takes longer than to search."""
    return _compiled(rule.patterns).search, _compiled(rule.unless).search if rule.unless else _nowhere


def _nowhere(_phrase: str) -> None:
    """Find nothing."""


def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(re.sub(r"<(\w[\w ]*)>", _any_word, "|".join(patterns)))


def _any_word(found: re.Match[str]) -> str:
    return f"(?:{'|'.join(rules.WORDS[found[1]])})"


def _first(candidates: tuple[Rule, ...], phrases: Iterable[str]) -> str | None:
    return next((rule.kind for rule in candidates if matches(rule, phrases)), None)


def _status_in_force(answer: Answer) -> int | None:
    """The HTTP status, or the one that an error inside a 200 or a relayed one gives itself."""
    told, status = answer.number(), answer.status
    vague = status is None or status < 400 or status in (500, 502)
    narrower = status == 400 and told is not None and 401 <= told <= 429
    return told if told is not None and (vague or narrower) else status


def _by_stop(answer: Answer) -> str | None:
    if "length" in answer.stops and answer.output_tokens == 0:
        return "context_overflow"  # The prompt left no room for a single token.
    return _first(rules.STOPS, [as_phrase(stop) for stop in answer.stops])


def stop(reason: str) -> str | None:
    """The kind of failure that a reason to stop tells of, by itself."""
    return _first((*rules.STOPS, rules.FAILED_STOP), [as_phrase(reason)])


def _by_code(answer: Answer, phrases: list[str]) -> str | None:
    """The innermost code that decides on its own; words first, bare numbers after."""
    codes = answer.ordered_codes()
    for code in codes:
        phrase = _code_phrase(code.value)
        if kind := _exhausted(phrase, phrases) or _by_phrase(rules.CODES, phrase):
            return kind
    number = _business(answer)
    return None if number in _VAGUE else number


#: Codes whose meaning is kept: servers have few, and one in trouble sends the same again and again.
_CODES_KEPT = 256

#: Kinds that name a class of failure only: a sentence says more.
_VAGUE = ("bad_request", "server_error")


def _business(answer: Answer) -> str | None:
    """What a vendor's own number means; the room it stands in tells whose it is."""
    general = rules.BUSINESS_CODES[""]
    found = (rules.BUSINESS_CODES.get(c.room, general).get(c.value) for c in answer.ordered_codes())
    return next((kind for kind in found if kind), None)


@lru_cache(_CODES_KEPT)
def _by_phrase(candidates: tuple[Rule, ...], phrase: str) -> str | None:
    return _first(candidates, [phrase])


@lru_cache(_CODES_KEPT)
def _code_phrase(code: str) -> str:
    """`com.amazon#ExpiredTokenException` is "expired token exception"."""
    return as_phrase(re.sub(r"[.:/]", " ", code.rpartition("#")[2]))


@cache
def _exhaustion() -> Search:
    return _compiled((rules.EXHAUSTED,)).search


def _exhausted(phrase: str, phrases: list[str]) -> str | None:
    if not _exhaustion()(phrase):
        return None
    return "quota" if matches(rules.QUOTA, phrases) else "rate_limit"


def _by_text(phrases: list[str], status: int | None) -> str | None:
    if status == 402:
        return "billing"
    for rule in rules.TEXT:
        allowed = rules.STATUSES.get(rule)
        if (allowed is None or status is None or status in allowed) and matches(rule, phrases):
            return "quota" if rule is rules.RATE and matches(rules.QUOTA, phrases) else rule.kind
    return None


def _by_weak_code(answer: Answer, status: int | None) -> str | None:
    """What a vague code says where the status says less."""
    edge = re.search(r"error code:? (1\d{3})\b", answer.text().lower())
    if edge and edge[1] in rules.EDGE_CODES:
        return rules.EDGE_CODES[edge[1]]
    if number := _business(answer):
        return number
    if status is not None and status >= 400:
        return None
    return _first(rules.WEAK_CODES, [_code_phrase(code.value) for code in answer.ordered_codes()])


def _by_status(answer: Answer, status: int | None) -> str:
    if status is None or status < 300:
        return "not_found_model" if answer.is_page else "server_error"
    known = rules.STATUS.get(status)
    return known or ("bad_request" if status < 500 else "server_error")


def _refined(kind: str, answer: Answer, phrases: list[str], status: int | None) -> Verdict:
    """Add what the kind alone does not tell: periods, sizes, delays."""
    kind = _sharper(kind, phrases)
    if kind == "context_overflow":
        return _overflow(answer, status)
    hint = _error_numbers.retry_hint(answer.text()) if kind in _WAITING else None
    verdict = Verdict(kind=kind, status=status, retry_hint=hint, cause=_cause(kind, answer, phrases, status))
    if kind == "quota" and not _is_long(answer, phrases):
        return replace(verdict, retryable=True, cools="short")
    if kind == "rate_limit" and any(map(_error_numbers.too_large_for_any_minute, phrases)):
        return replace(verdict, retryable=False, cause="too_large")
    return replace(verdict, retryable=False) if status == 407 else verdict


def _sharper(kind: str, phrases: list[str]) -> str:
    """The kind that sentences make of a code's: money, a verdict on the content, a long period."""
    if kind in ("rate_limit", "quota", "auth", "permission") and matches(rules.BILLING, phrases):
        return "billing"
    if kind == "permission" and matches(rules.REFUSED, phrases):
        return "content_filter"
    if kind == "rate_limit" and _is_named_long(phrases):
        return "quota"
    return kind


def _cause(kind: str, answer: Answer, phrases: list[str], status: int | None) -> str:
    """What finer than the kind decides the remedy."""
    if status == 407:
        return "proxy_login"
    elsewhere = status is not None and (300 <= status < 400 or status == 405 or (status < 300 and answer.is_page))
    if elsewhere or (status == 404 and matches(rules.WRONG_ADDRESS, phrases)):
        return "address"
    return _blame(phrases) if kind == "bad_request" else ""


def _blame(phrases: list[str]) -> str:
    """What a refused request is refused for: the reasoning sent back, something that is named, or nothing that is."""
    if matches(rules.REASONING, phrases):
        return "reasoning"
    return "" if matches(rules.EXPLAINED, phrases) else "unexplained"


#: Kinds after which waiting may help.
_WAITING = ("rate_limit", "quota", "overloaded", "server_error", "timeout")


def _is_long(answer: Answer, phrases: list[str]) -> bool:
    """Whether a quota comes back later than a person waits; unknown periods count as long."""
    if _is_named_long(phrases):
        return True
    exhausted = any(_exhausted(_code_phrase(code.value), phrases) for code in answer.codes)
    return not (exhausted or matches(rules.SHORT_PERIOD, phrases))


def _is_named_long(phrases: list[str]) -> bool:
    return matches(rules.LONG_PERIOD, phrases) or matches(rules.PLAN, phrases)


def _overflow(answer: Answer, status: int | None) -> Verdict:
    used, limit = answer.used_tokens, answer.max_tokens
    if used is None and limit is None:
        used, limit = _error_numbers.tokens(answer.best_sentence())
    return Verdict(kind="context_overflow", status=status, used_tokens=used, max_tokens=limit)
