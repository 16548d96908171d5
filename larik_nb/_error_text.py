"""Words fit for a person: one line, no markup, nothing secret."""

from __future__ import annotations

import html
import re
from functools import cache

HIDDEN = "***"

#: Each pattern finds something that identifies or authorises somebody; groups named
#: `before` and `after` are kept. Ordered: whole URLs and labelled values before bare shapes.
_SECRETS: tuple[str, ...] = (
    r"(?P<before>\w://)[^\s/@:]+:[^\s/@]+(?P<after>@)",
    r"(?P<before>https?://[^\s?\"'<>]{1,300}\?)[^\s\"'<>]+",
    r"(?i)(?P<before>\b(?:bearer|basic) )(?=[^\s]*\d)[A-Za-z0-9._~+/=-]{8,}",
    r"(?i)(?P<before>(?:key|token|secret|password|passwd|authorization|credential)s?"
    r"[\"'`]*(?: provided| used)?(?:\s*[:=]|\s+is)\s*[\"'`<]*)"
    r"(?=[^\s\"'`<>,;]*[A-Za-z*])(?=[^\s\"'`<>,;]*[\d*])[^\s\"'`<>,;()]{6,}",
    r"\beyJ[\w-]{8,}(?:\.[\w-]*){0,2}",
    r"(?<![A-Za-z])(?:sk|rk|pk|xai|pplx|nvapi|fw|csk|tgp|bce-v3|bedrock-api-key)-[\w*./-]{6,}",
    r"(?<![A-Za-z])(?:gsk|hf|r8|fw|ghp|gho|ghs|github_pat|glpat|tgp|ya29)[_.-][\w*.-]{8,}",
    r"\b(?:AIza|AKIA|ASIA|ABSK)[\w-]{8,}",
    r"\b(?:org|user|usr|proj|team|acct|ak|cus|sub)[-_](?=[\w-]*[A-Z0-9])[\w-]{4,}",
    r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
    r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,63}){0,4}\.[A-Za-z]{2,10}\b",
    r"(?<![\w/+])(?=[A-Za-z/+]{0,39}\d)(?=[a-z0-9/+]{0,39}[A-Z])[A-Za-z0-9/+]{40}(?![\w/+])",
    r"(?i)(?P<before>\b(?:arn:aws[\w:-]{0,60}:|(?:accounts?|projects?|consumer)\b\D{0,30}))\d{12}(?!\d)",
)
_RUN = r"[A-Za-z0-9_+=-]{16,}(?:\.[A-Za-z0-9]{8,})?"
_PAGE = re.compile(r"<!doctype html|<html[\s>]|<head[\s>]|<title[\s>]|<body[\s>]", re.IGNORECASE)


@cache
def _secrets() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in _numbered(_SECRETS)))


def _numbered(patterns: tuple[str, ...]) -> list[str]:
    """Make the group names unique and the case flag local, so that one pass does all."""
    return [
        re.sub(r"^\(\?i\)(.*)$", r"(?i:\1)", p, flags=re.DOTALL)
        .replace("<before>", f"<before{i}>")
        .replace("<after>", f"<after{i}>")
        for i, p in enumerate(patterns)
    ]


def mask(text: str) -> str:
    """Replace keys, tokens, sign-in links and account ids by `***`: those in use, and what looks like one."""
    from larik_nb import errors  # which needs this file only when something fails

    for secret in errors.secrets():
        text = text.replace(secret, HIDDEN)
    text = _secrets().sub(_hide, text)
    return re.sub(_RUN, lambda run: HIDDEN if _is_random(run[0]) else run[0], text)


def _hide(found: re.Match[str]) -> str:
    kept = {name.rstrip("0123456789"): text or "" for name, text in found.groupdict().items() if text}
    return kept.get("before", "") + HIDDEN + kept.get("after", "")


def _is_random(run: str) -> bool:
    """Model names are short words joined by dashes; keys are long pieces mixing letters and digits."""
    return any(_is_mixed(piece) for piece in re.split(r"[_+=.-]", run))


def _is_mixed(piece: str) -> bool:
    digits = sum(char.isdigit() for char in piece)
    if not 0 < digits < len(piece):
        return False
    both_cases = piece != piece.lower() and piece != piece.upper()
    return len(piece) >= 20 or (len(piece) >= 15 and both_cases and digits >= 2)


def one_line(text: str, limit: int = 300) -> str:
    """Collapse white space, drop what does not print, cut at `limit` characters."""
    text = text[: 4 * limit + 1000]
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def sentence(text: str, limit: int) -> str:
    """Make a sentence of our own printable: one line without secrets, its double spaces before commands kept."""
    text = mask(text[: 4 * limit])
    return re.sub(r" {3,}", " ", "".join(c if c.isprintable() else " " for c in text)).strip()[:limit]


def clean(text: str, limit: int = 300) -> str:
    """One line without secrets; masked before it is cut, so that no half key remains."""
    return one_line(mask(one_line(text, 4 * limit)), limit)


def is_page(text: str) -> bool:
    """Whether the text is a web page rather than an answer of an API."""
    return bool(_PAGE.search(text[:2000]))


def page_words(text: str) -> str:
    """The title and first heading of a web page, as one line."""
    found = re.findall(r"<(title|h1)[^>]{0,200}>(.{0,400}?)</\1", text[:64_000], re.I | re.S)
    words = [one_line(html.unescape(re.sub(r"<[^>]{0,200}>", " ", inner))) for _, inner in found]
    return " · ".join(dict.fromkeys(word for word in words if word))[:300]
