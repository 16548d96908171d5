"""What it means when no answer came at all.

Exceptions of HTTP libraries are known by the names of their classes and by their words, along
the whole chain of causes: this file imports no HTTP library, so any of them may be used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Failure(NamedTuple):
    """What a connection failure means: which class of error, for what cause, and is it final."""

    error: str
    kind: str
    cause: str
    pattern: str
    final: bool = False


#: Matched against "Name: words" of the exception and its causes, joined; the first match decides.
FAILURES: tuple[Failure, ...] = (
    Failure("Unreachable", "connection", "certificate", r"certificate|self.signed|unknown_?ca|hostname mismatch|issuer", final=True),
    Failure("Unreachable", "connection", "proxy_login", r"proxy.{0,80}(?:407|auth|credential|forbidden|denied)|407 proxy", final=True),
    Failure("Unreachable", "connection", "proxy", r"\b(?:client|http|https)?proxy|socks"),
    Failure("Unreachable", "connection", "address", r"unsupportedprotocol|invalidurl|localprotocolerror: .{0,20}(?:header|scheme)|invalid (?:url|scheme)|missing an? 'https?:", final=True),
    Failure("ServerError", "connection", "dropped", r"^(?:readerror|writeerror|clientpayloaderror|clientoserror|remoteprotocolerror|serverdisconnectederror)\b"),
    Failure("ServerError", "connection", "dropped", r"clientresponseerror|badhttpmessage|badstatusline|invalidheader|linetoolong|transferencodingerror|contentlengtherror"),
    Failure("Unreachable", "connection", "plain_http", r"wrong_version_number|wrong version number|http_request|unknown_?protocol|record_?layer"),
    Failure("Unreachable", "connection", "dns", r"gaierror|getaddrinfo|name or service|nodename nor|name resolution|no address associated|resolve host|name not resolved|unknown host|dns"),
    Failure("Unreachable", "connection", "refused", r"refused|connect call failed|all connection attempts failed|errno (?:111|61)\b|winerror 10061|cannot connect to host"),
    Failure("Unreachable", "timeout", "connect_timeout", r"connect(?:ion|ing)?_?time?out|connectiontimeout|connect timed out|connection timed out|etimedout|errno 110\b"),
    Failure("ServerError", "timeout", "pool", r"pooltimeout"),
    Failure("StallError", "timeout", "silent", r"time?out|timed out"),
    Failure("ServerError", "connection", "dropped", r"remoteprotocol|readerror|writeerror|reset|broken pipe|brokenpipe|disconnect|closed connection|connection (?:was )?(?:closed|lost|aborted)|incomplete|payloaderror|streamreset|goaway|terminated|eof|unexpected end|protocol ?error|closederror|stream (?:was )?closed"),
    Failure("Unreachable", "connection", "network", r"unreachable|no route|network is down|connecterror|connecterror|clientconnector|connectionerror|oserror|ssl|tls"),
)  # fmt: skip
ANYTHING_ELSE = Failure("Unreachable", "connection", "network", "")


def judge(error: BaseException) -> Failure:
    """What the failure means, judged by names and words."""
    told = " | ".join(_told(one) for one in _chain(error)).lower()[:4_000]
    return next((f for f in FAILURES if re.search(f.pattern, told)), ANYTHING_ELSE)


def words(error: BaseException) -> str:
    """The words of the exception, or its class's name where it has none."""
    return _text(error) or type(error).__name__


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {_text(error)}"


def _text(error: BaseException) -> str:
    try:
        text = str(error)[:1_000]
        # An object in the place of words: half a response with its headers, for one.
        return "" if text.startswith("<") and text.endswith(">") else text
    except Exception:  # noqa: BLE001  # an exception that cannot be printed still has to be classified
        return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes, at most eight, each once."""
    seen: list[BaseException] = []
    todo = [error]
    while todo and len(seen) < 8:
        one = todo.pop(0)
        if any(one is other for other in seen):
            continue
        seen.append(one)
        yield one
        inner = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        todo += [e for e in (one.__cause__, one.__context__, *inner) if e is not None]
