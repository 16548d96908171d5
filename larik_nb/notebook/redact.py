"""What looks like a secret is taken out of data before it is sent, and said.

Three strengths: `literal` for the user's own words takes only what cannot be anything else, `hidden` for data also takes
values that stand behind a telling name, `dotenv` for a file of settings takes every value. Whatever is taken leaves its
kind in its place, which is how `told` finds it again: a text may be redacted before it is cut, so that no half key is
left, and its findings are still known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from larik_nb import errors

_SECRET_NAME = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
_LONG, _SHORT = 12, 8
"""Characters of a value from the environment that is a secret, and of one that is if it has a digit."""

_MARK = re.compile(r"\[redacted: ([a-zA-Z ]{1,40})\]")
_MOST_PLACES = 5

_PRIVATE = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_SURE = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:gsk|gh[oprsu]|github_pat|tgp_v1|dop_v1|xox[abeoprs])[_-][\w-]{14,}"
    r"|(?:sk-ant|sk-proj|sk-or-v1|glpat|nvapi|bedrock-api-key|bce-v3)[-_/][\w./+-]{14,}"
    r"|ya29\.[\w-]{20,}|AIza[\w-]{30,}|(?:AKIA|ASIA|ABSK)[A-Z0-9]{12,}[\w+/=]*"
    r"|SG\.[\w-]{16,100}\.[\w-]{16,}|eyJ[\w-]{10,2000}\.[\w-]{10,4000}\.[\w-]*"
    r")"
)
_LIKELY = re.compile(r"(?<![A-Za-z0-9])(?:(?:sk|rk|pk|xai|pplx|csk|tgp|fw|r8|hf|npm)[-_][\w./+-]{14,})")
"""Words joined by dashes may begin like this as well: these are looked at more closely."""
_BEARER = re.compile(r"(?i)(\bbearer\s+)(?!\[redacted)(?=\S*\d)([\w.~+/=-]{12,})")
_IN_ADDRESS = re.compile(r"(\b[a-zA-Z][\w+.-]{1,20}://[^\s/:@\"'<>]{0,100}:)(?!\[redacted)([^\s/@\"'<>]{3,200})(?=@)")
_TELLING = (
    r"(?:api_?key|access_?key|private_?key|secret|token|passw(?:or)?d|passwd|passphrase|pwd|credential|_key\b|key_)"
)
_ENV_LINE = re.compile(
    r"^([ \t>+-]*(?:export[ \t]+|set[ \t]+)?[A-Z0-9_]{0,60}(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD|PASSPHRASE|CREDENTIAL)[A-Z0-9_]{0,60}"
    r"[ \t]*[=:][ \t]*[\"']?)(?!\[redacted)([^\s\"'#]{6,})",
    re.MULTILINE,
)
_QUOTED = re.compile(
    rf"((?i:{_TELLING}\w{{0,40}})(?:\\?[\"'])?\s{{0,4}}[:=]\s{{0,4}}\\?[\"'])(?!\[redacted)([^\s\"'\\]{{8,}})(?=\\?[\"'])"
)
_UNQUOTED = re.compile(
    r"^([ \t-]*[\w.-]{0,40}(?i:passw(?:or)?d|passphrase|secret|api_?key|access_?key|token)[ \t]*([:=])[ \t]*)"
    r"(?!\[redacted)([^\s\"'(){}\[\]<>,;#]{8,})(?=[ \t]*(?:#.*)?$)",
    re.MULTILINE,
)
_LOGIN = re.compile(r"(\b(?:password|passwd)[ \t\n]+)(?!\[redacted)(\S+)", re.IGNORECASE)
_LAST_OF_FIVE = re.compile(r"^((?:[^:\n#]*:){4})(?!\[redacted)([^:\n]+)$", re.MULTILINE)
_SETTING = re.compile(r"^([ \t]*(?:export[ \t]+)?[\w.-]+[ \t]*=[ \t]*)(?!\[redacted|[ \t]*$)([^\r\n]+)", re.MULTILINE)


def is_telling(name: str) -> bool:
    """Return whether a variable's name says that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


def known() -> list[str]:
    """Return the secrets of this process: keys in use, and values of the environment named like one; longest first."""
    there = {
        value
        for name, value in os.environ.items()
        if _SECRET_NAME.search(name)
        and not value.startswith(("/", "."))
        and (len(value) >= _LONG or (len(value) >= _SHORT and any(char.isdigit() for char in value)))
    }
    return sorted(there | set(errors.secrets()), key=len, reverse=True)


def literal(text: str) -> str:
    """Return the user's own words without keys in use, private keys and what has the shape of a key."""
    for secret in known():
        if secret in text:
            text = text.replace(secret, _mark("known key"))
    text = _PRIVATE.sub(_mark("private key"), text)
    text = _SURE.sub(_mark("API key"), text)
    return _LIKELY.sub(lambda found: _mark("API key") if _is_key(found[0]) else found[0], text)


def hidden(text: str) -> str:
    """Return data without secrets: all that `literal` takes, and what stands behind a name that tells."""
    text = literal(text)
    text = _BEARER.sub(rf"\1{_mark('token')}", text)
    text = _IN_ADDRESS.sub(rf"\1{_mark('password')}", text)
    text = _ENV_LINE.sub(lambda found: found[1] + _mark("setting") if _says(found[2]) else found[0], text)
    text = _QUOTED.sub(lambda found: found[1] + _mark("secret") if _varies(found[2]) else found[0], text)
    return _UNQUOTED.sub(lambda found: found[1] + _mark("secret") if _is_value(*found.group(2, 3)) else found[0], text)


def dotenv(text: str) -> str:
    """Return a file of settings, or of logins, with its names only."""
    text = _SETTING.sub(rf"\1{_mark('setting')}", literal(text))
    return _LAST_OF_FIVE.sub(rf"\1{_mark('password')}", _LOGIN.sub(rf"\1{_mark('password')}", text))


def told(text: str, where: str) -> Iterator[str]:
    """Yield a line that says what was taken out of `text`, which is called `where`; none where nothing was."""
    found = list(_places(text))
    if found:
        more = len(found) - _MOST_PLACES
        shown = ", ".join(found[:_MOST_PLACES]) + (f" and {more} more" if more > 0 else "")
        yield f"⚠ redacted in {where}: {shown}"


def _places(text: str) -> Iterable[str]:
    lines = "\n" in text
    for match in _MARK.finditer(text):
        kind = match[1]
        yield f"{kind} (line {text.count(chr(10), 0, match.start()) + 1})" if lines else kind


def cut(text: str, limit: int) -> str:
    """Return the beginning of `text` without secrets, nor the half of one at the cut."""
    if len(text) <= limit:
        return hidden(text)
    kept = hidden(text[: limit + _OVER])[:limit]
    return _half(kept)


_OVER = 4_000
"""Characters read beyond a cut: longer than keys are, so that the one at the cut is seen whole."""


def _half(text: str) -> str:
    """Return `text` without the beginning of a known secret at its very end."""
    for secret in known():
        for size in range(min(len(secret) - 1, len(text)), _SHORT - 1, -1):
            if text.endswith(secret[:size]):
                return text[:-size]
    return text


def _mark(kind: str) -> str:
    return f"[redacted: {kind}]"


def _is_key(text: str) -> bool:
    """Return whether it is a key and not words joined by dashes ("sk-learn-notes-2024")."""
    mixed = any(char.isdigit() for char in text) and any(char.isalpha() for char in text)
    longest = max(map(len, re.split(r"[^A-Za-z0-9]", text)))
    return mixed and (longest >= 10 or len(text) >= 40)


def _says(value: str) -> bool:
    """Return whether a setting's value may be a secret: no number, no name of another variable."""
    return any(char.isalpha() for char in value) and not value.startswith(("$", "os.", "${", "<", "getpass"))


_LONGEST_WORD = 20


def _is_value(sign: str, value: str) -> bool:
    """Return whether what stands unquoted behind a telling name is its value, and no variable of a program."""
    is_variable = sign == "=" and re.fullmatch(r"[A-Za-z_][\w.]*", value) and len(value) < _LONGEST_WORD
    return _varies(value) and not is_variable and not value.startswith(("$", "os."))


def _varies(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
