"""Numbers that failures tell in headers and prose: how long to wait, how long the prompt was."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping

#: A longer delay is a slip (milliseconds, a date) rather than advice.
MAX_DELAY_S = 31 * 86_400.0

_UNIT_S = {"ms": 0.001, "毫": 0.001, "s": 1.0, "秒": 1.0, "m": 60.0, "分": 60.0,
           "h": 3600.0, "小": 3600.0, "d": 86400.0, "天": 86400.0}  # fmt: skip
_UNIT = (
    r"(?:ms|millis(?:econds?)?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)"
    r"(?![a-z])|毫秒|秒|分钟|分|小时|天"
)
_AMOUNT = rf"\d{{1,9}}(?:\.\d{{1,12}})?\s?(?:{_UNIT})"
_AMOUNTS = rf"(?:{_AMOUNT})(?:[\s,]{{0,2}}(?:and )?(?:{_AMOUNT})){{0,3}}"
_HINTS = (
    rf"(?:try|retry|retrying|wait|waiting|available|resets?|again)\b[^.;\d|]{{0,40}}?({_AMOUNTS})",
    rf"({_AMOUNTS})\s?(?:后|以后|之后)",
    r"retry[ -]after[^\w|]{0,4}(\d{1,9}(?:\.\d{1,9})?)(?![\d:-])",
)

_NUMBER = r"(?<![\w.,/@-])(\d{2,9})(?![\w/@]|\.\d)"
#: "a + b > max", "a > max - b", "a tokens > max"
_COMPARED = (
    (r"(\d+)(?: tokens?)? ?\+ ?(\d+)(?: tokens?)? ?(?:>=?|exceeds?) ?(\d+)", (1, 2), 3),
    (r"(\d+) ?>=? ?(\d+) ?- ?(\d+)", (1, 3), 2),
    (r"(\d+)(?: tokens?)? ?>=? ?(\d+)", (1,), 2),
    (
        r"\((\d{2,9})(?: tokens?)?\) (?:must|should|may|can)(?:not| not)? [^\d|;]{0,60}\((\d{2,9})(?: tokens?)?\)",
        (1,),
        2,
    ),
)
_MAX_BEFORE = (
    r"(?:maximum|max|limit|window|context (?:length|size)|at most|up to|less than|fewer than"
    r"|no more than|smaller than|<=|< |allowed|supports?|only|truncate to|not exceed|(?:less|smaller|lower) than or equal to|n_ctx"
    r"|max_model_len|\[ ?[01] ?,|上限|最大|不能超过|不超过)(?:(?!request|received|got |given|resulted|contain)[^\d|;]){0,48}?"
)
_MAX_AFTER = r"(?: tokens?)?\)? ?(?:maximum|max\b|limit\b|(?:token )?context|window)"
_USED_BEFORE = (
    r"(?:requested|required|given|got|received|contains?|contained|has|have|had|resulted in"
    r"|total of|actual(?:ly)?|sent|provided|used|was|were|length is|count is|count of|实际|当前)"
    r"[^\d|;]{0,24}?"
)
_EXCESS = r"(?:exceed\w*|over|too long|too large)[^\d|;]{0,24}? by (\d{1,9})"


def delay(value: object, scale: float = 1.0) -> float | None:
    """Seconds told by `12`, `"12"`, `"34.4s"`, `"6m0s"` or `{"seconds": 34}`; None if absurd.

    A value without a unit is multiplied by `scale`.
    """
    if isinstance(value, dict):
        value = value.get("seconds")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value) * scale
    except (ValueError, OverflowError):
        seconds = _amount(str(value)[:60].lower())
    plausible = math.isfinite(seconds) and 0 <= seconds <= MAX_DELAY_S
    return round(seconds, 6) if plausible else None


def _amount(text: str) -> float:
    """Seconds in `1h2m3.5s` or `7 minutes and 12 seconds`; NaN if there are none."""
    if not re.fullmatch(_AMOUNTS, text.strip()):
        return math.nan
    parts = re.findall(r"(\d+(?:\.\d+)?)\s?([^\W\d]*)", text)
    return sum(float(number) * _unit_s(unit) for number, unit in parts)


def _unit_s(unit: str) -> float:
    return _UNIT_S.get("ms" if unit.startswith(("ms", "milli")) else unit[:1], 1.0)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that lower-case `headers` ask for; milliseconds are the more precise."""
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (seconds := delay(headers.get(name), 0.001)) is not None:
            return seconds
    text = headers.get("retry-after", "")
    seconds = delay(text)
    return _until(text, headers.get("date", "")) if seconds is None else seconds


def _until(date: str, now: str) -> float | None:
    """Seconds until an HTTP date, by the server's own clock where it tells it."""
    if not date:
        return None
    from email.utils import parsedate_to_datetime  # pulls in sockets and calendars; dates are rare

    try:
        end = parsedate_to_datetime(date).timestamp()
        start = parsedate_to_datetime(now).timestamp() if now else time.time()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return delay(end - start)


def retry_hint(text: str) -> float | None:
    """Seconds that only the prose tells: "Please try again in 1.5s"."""
    lowered = text.lower()
    for pattern in _HINTS:
        for found in re.finditer(pattern, lowered):
            if (seconds := delay(found[1])) is not None:
                return seconds
    return None


def too_large_for_any_minute(text: str) -> bool:
    """Whether one request asks for more than the whole allowance ("Limit 30000, Requested 30601")."""
    limit = re.search(r"\blimit:? (\d+)", text)
    asked = re.search(r"\brequested:? (\d+)", text)
    return bool(limit and asked and int(asked[1]) > int(limit[1]))


def tokens(text: str) -> tuple[int | None, int | None]:
    """(used, max) tokens of an overflow, each None where the text does not tell."""
    text = _plain_numbers(text)
    if re.search(r"\d ?(?:bytes|characters|chars|[km]i?b)\b", text):
        return None, None
    for pattern, used_groups, max_group in _COMPARED:
        if found := re.search(pattern, text):
            return sum(int(found[g]) for g in used_groups), int(found[max_group])
    return _by_cue(text)


def _by_cue(text: str) -> tuple[int | None, int | None]:
    excess = re.search(_EXCESS, text)
    if excess:
        text = text.replace(excess[0], " ")
    if limit_and_sum := _added(text):
        return limit_and_sum
    numbers = [int(n) for n in re.findall(_NUMBER, text) if int(n) >= 16]
    limit = _cued(text, _MAX_BEFORE + _NUMBER) or _cued(text, _NUMBER + _MAX_AFTER)
    if excess and limit:
        return limit + int(excess[1]), limit
    used = _cued(text, _USED_BEFORE + _NUMBER, but=limit)
    if limit is None:
        return (max(numbers), min(numbers)) if len(set(numbers)) == 2 else (used, None)
    return _above(limit, used, [n for n in numbers if n != limit]), limit


def _added(text: str) -> tuple[int, int] | None:
    """Return the sum and the limit of "8421 tokens plus 1024 requested exceed 8192"."""
    added = re.search(r"(\d{2,9})(?: \w+){0,2}\)?(?: \w+){0,2} plus [^\d|]{0,30}(\d{1,9})", text)
    limit = _cued(text[added.end() :], _MAX_BEFORE + _NUMBER) if added else None
    return (int(added[1]) + int(added[2]), limit) if added and limit else None


def _above(limit: int, used: int | None, others: list[int]) -> int | None:
    """What was used: the told number, with the output asked for where only both overflow."""
    larger = [n for n in others if n > limit]
    if used is None or used <= limit:
        sums = [used + n for n in others if used and n != used and used + n > limit]
        return next(iter(larger), None) or next(iter(sums), None) or used
    return used


def _cued(text: str, pattern: str, but: int | None = None) -> int | None:
    found = (int(m[1]) for m in re.finditer(pattern, text))
    return next((n for n in found if n >= 16 and n != but), None)


def _plain_numbers(text: str) -> str:
    """Lower case, no addresses, no thousands separators; output limits are not a window."""
    text = re.sub(r"https?://\S+|[`'\"]", "", text.lower())
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"(\d+(?:\.\d+)?)k\b", lambda m: str(int(float(m[1]) * 1000)), text)
    output = r"max_?(?:new_?|completion_?|output_?)?tokens\b|max(?:imum)? (?:output|completion|new) tokens"
    return re.sub(output, "output", text)
