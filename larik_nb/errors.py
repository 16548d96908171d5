"""What can go wrong, what each failure means for routing, and the sentence a person reads.

LarikError
├─ ConfigError            a setting: names the key, where it was read, what would do
├─ APIError               a model did not answer; one line with the remedy
│  ├─ AuthError           key or right refused          falls back, cools long
│  ├─ QuotaError          quota or money used up        falls back, cools long
│  ├─ ModelNotFound       no such model or address      falls back, cools long
│  ├─ Unreachable         refused, no such host         retried, falls back, cools long
│  ├─ RateLimited         slow down                     retried, falls back, cools short
│  ├─ ServerError         overloaded, broken, dropped   retried, falls back, cools short
│  ├─ StallError          no bytes for the stall limit  retried, falls back, cools short
│  ├─ BadRequest          it would fail anywhere        neither
│  │  └─ ContextOverflow  the agent compacts and asks   neither
│  ├─ RefusedError        a content filter said no      neither
│  └─ BadWire             bytes we could not read       neither
├─ AllModelsFailed        an ExceptionGroup of the above, one reason each
├─ BudgetExceeded         spent_usd, session_usd
├─ AnswerError            an answer is not what was asked for; `raw` keeps it
├─ ToolError              its text goes to the model; any other exception in a tool is a bug
└─ ReplayMiss             a recording has no such request; carries the difference

The class carries the policy. An instance overrides it only where one kind has two meanings: a
quota per minute is worth a retry, a certificate failure never is. `classify` and `transport` are
the only places that know statuses, codes and vendors' sentences; what those mean is data, in
`_error_rules`, and is read on the first failure, so that importing this module costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from larik_nb._error_answer import Answer
    from larik_nb._error_verdict import Verdict
    from larik_nb.types import Message

Cools = Literal["short", "long"]
Where = Literal["http", "sse", "ndjson", "eventstream", "json_200"]


_secrets: set[str] = set()
"""The keys in use and their usual disguises: a server may send back in its error what it was sent."""

_LONG_SECRET, _SHORT_SECRET = 12, 8
"""Characters of a key that is hidden, and of one that is hidden if it has a digit: "ollama" and "none" are no keys."""


def keep_secret(key: str) -> None:
    """Let no message of this package show `key`, neither as it is nor quoted for an address nor in base64."""
    if len(key) < _SHORT_SECRET or (len(key) < _LONG_SECRET and not any(char.isdigit() for char in key)):
        return
    if key not in _secrets:
        import base64
        from urllib.parse import quote

        _secrets.update({key, quote(key, safe=""), base64.b64encode(key.encode()).decode().rstrip("=")})


def secrets() -> list[str]:
    """Return what `keep_secret` was told, the longest first."""
    return sorted(_secrets, key=len, reverse=True)


def shown(text: str, limit: int = 300) -> str:
    """Return a stranger's text as one line of at most `limit` characters, keys masked before it is cut."""
    if not text:
        return ""
    from larik_nb import _error_text

    return _error_text.clean(text, limit)


class LarikError(Exception):
    """Anything this package raises on purpose; `message` is one line with the remedy.

    Whatever text comes in, what is shown is one line, and keys in it are masked.
    """

    def __init__(self, message: str = "") -> None:
        from larik_nb import _error_text

        self._message = _error_text.sentence(message, 1_000) if message else ""
        super().__init__(self._message)

    @property
    def message(self) -> str:
        """One line: what happened, and what to do about it."""
        return self._message

    def __str__(self) -> str:
        return self.message


class ConfigError(LarikError):
    """A setting cannot be used.

    Args:
        message: What is wrong with the value.
        key: The setting's full name, `network.ca_file`.
        source: Where it was read: a file, an environment variable, an argument.
        remedy: What would do, as an imperative sentence.
        reason: The whole in a few words, for a line that says more: "no key: set WORK_KEY". By default the message.
    """

    def __init__(self, message: str, *, key: str = "", source: str = "", remedy: str = "", reason: str = "") -> None:
        place = " in ".join(part for part in (key, source) if part)
        parts = (f"{place}: {message}" if place else message, remedy)
        super().__init__(". ".join(part.rstrip(".") if part is not parts[-1] else part for part in parts if part))
        self.key, self.source, self.remedy = key, source, remedy
        self.reason = reason or self.message


class APIError(LarikError):
    """A model did not answer.

    Attributes:
        kind: Why, finer than the class; one of the class's `kinds`.
        status: HTTP status, or the one an error inside a 200 gives itself; None without an answer.
        retryable: The same request may succeed on the same model.
        falls_back: Another model may succeed.
        cools: How long to leave this model alone: "short" (it recovers), "long" (a human must act), None.
        retry_after: Seconds the provider asks for, by header or by a field of the body.
        retry_hint: Seconds that only its prose tells.
        used_tokens, max_tokens: Of an overflow, where the provider tells them.
        code, type: The provider's own machine codes.
        said: The provider's own sentence, one line, keys masked.
        cause: What finer than the kind decides the remedy, such as "certificate"; "" if nothing.
        host: Where the connection was to go.
        provider, model, key_hint: Whose failure it is and where its key is kept; see `for_provider`.
        partial: What had arrived before a stream failed.
        again_in_s: Seconds for which routing leaves the model alone; None while it does not.
        left_out: A field of the request that the server does not take and that is left out from now on; "" if none.

    A `message` given here is shown as it is; without one it is composed from kind and `said`.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    retryable: bool = False
    falls_back: bool = False
    cools: Cools | None = None

    def __init__(  # each is one independent fact about the failure
        self,
        message: str = "",
        *,
        kind: str | None = None,
        status: int | None = None,
        said: str = "",
        cause: str = "",
        host: str = "",
        retry_after: float | None = None,
        retry_hint: float | None = None,
        provider: str | None = None,
        model: str | None = None,
        key_hint: str | None = None,
        code: str | None = None,
        type: str | None = None,  # the wire's word
        used_tokens: int | None = None,
        max_tokens: int | None = None,
        partial: Message | None = None,
        retryable: bool | None = None,
        cools: Cools | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind or (self.kinds[0] if self.kinds else "server_error")
        self.status = status
        self.code, self.type = code and shown(code, 100), type and shown(type, 100)
        self.said, self.cause, self.host = shown(said), cause, shown(host)
        self.retry_after, self.retry_hint = retry_after, retry_hint
        self.provider, self.model, self.key_hint = provider, model, key_hint
        self.used_tokens, self.max_tokens = used_tokens, max_tokens
        self.partial = partial
        self.again_in_s: float | None = None
        self.left_out = ""
        if retryable is not None:
            self.retryable = retryable
        if cools is not None:
            self.cools = cools

    @property
    def message(self) -> str:
        """One line: who failed, why, in the provider's words, and what to do."""
        if self._message:
            return self._message
        from larik_nb import _error_sentences

        return _error_sentences.compose(self)

    @property
    def reason(self) -> str:
        """A few words for a list of failures: "rate limited, again in 42 s"."""
        from larik_nb import _error_sentences

        return _error_sentences.reason(self)

    @property
    def why(self) -> str:
        """The same without the time, which passes: "rate limited"."""
        from larik_nb import _error_sentences

        return _error_sentences.why(self)

    def happened(self, who: str) -> str:
        """What happened to `who`, to be gone on with: "a/b is rate limited (retry in 42 s)"."""
        from larik_nb import _error_sentences

        return _error_sentences.happened(self, who)

    @property
    def wait_s(self) -> float:
        """Seconds the provider asks for, wherever it says so; 0 when it does not."""
        return self.retry_after or self.retry_hint or 0.0

    def for_provider(
        self, *, provider: str | None = None, model: str | None = None, key_hint: str | None = None
    ) -> Self:
        """Say whose failure this is, and what its key is called; the message then names them."""
        self.provider = provider or self.provider
        self.model = model or self.model
        self.key_hint = key_hint or self.key_hint
        return self


class AuthError(APIError):
    """The key is missing, wrong or expired ("auth"), or has no right to this ("permission")."""

    kinds = ("auth", "permission")
    falls_back, cools = True, "long"


class QuotaError(APIError):
    """An allowance is used up ("quota") or there is no money ("billing").

    A quota per minute is retried and cools short: the instance says so.
    """

    kinds = ("quota", "billing")
    falls_back, cools = True, "long"


class ModelNotFound(APIError):
    """The provider has no such model, or there is no provider at this address."""

    kinds = ("not_found_model",)
    falls_back, cools = True, "long"


class Unreachable(APIError):
    """No connection: refused, no such host, a bad certificate (never retried), a silent host."""

    kinds = ("connection", "timeout")
    retryable, falls_back, cools = True, True, "long"


class RateLimited(APIError):
    """The provider asks us to slow down.

    A single request larger than the whole allowance is not retried: the instance says so.
    """

    kinds = ("rate_limit",)
    retryable, falls_back, cools = True, True, "short"


class ServerError(APIError):
    """The provider is overloaded, broken or too slow, or dropped the connection."""

    kinds = ("server_error", "overloaded", "timeout", "connection")
    retryable, falls_back, cools = True, True, "short"


class StallError(APIError):
    """No byte came for the stall limit.

    Attributes:
        limit_s: That limit, where it is known.
    """

    kinds = ("timeout",)
    retryable, falls_back, cools = True, True, "short"
    limit_s: float | None = None

    @property
    def message(self) -> str:
        """One line. It is made when it is read: a chain that goes on with another model never does."""
        if self._message or self.limit_s is None:
            return super().message
        return f"the model API stopped responding: no data for {self.limit_s:g} s (the limit is stall_timeout_s)"


class BadRequest(APIError):
    """The request is at fault; it would fail anywhere."""

    kinds = ("bad_request",)


class ContextOverflow(BadRequest):
    """The conversation does not fit into the model's window. The agent compacts and asks again."""

    kinds = ("context_overflow",)


class RefusedError(APIError):
    """A content filter refused the request or the answer."""

    kinds = ("content_filter",)


class BadWire(APIError):
    """The provider sent bytes that we could not read."""

    kinds = ("wire",)


class AllModelsFailed(LarikError, ExceptionGroup[APIError]):
    """No candidate answered; `exceptions` holds one error per candidate asked, in that order.

    Args:
        errors: Of the candidates that were asked.
        not_asked: Why the others were not, by their full names.
    """

    def __new__(cls, errors: Sequence[APIError], not_asked: Mapping[str, str] | None = None) -> Self:
        """Make the group; its text for tracebacks is the short head of the message."""
        return super().__new__(cls, "no model can answer", list(errors))

    def __init__(self, errors: Sequence[APIError], not_asked: Mapping[str, str] | None = None) -> None:
        reasons = [f"{shown(_named(error))} {error.reason}" for error in errors]
        reasons += [f"{shown(name)} {shown(why)}" for name, why in (not_asked or {}).items()]
        super().__init__(f"no model can answer: {' · '.join(reasons)}.")
        self.not_asked = dict(not_asked or {})

    def derive(self, excs: Sequence[Any], /) -> ExceptionGroup[Any]:
        """Return the group that holds only `excs`, as `except*` and `split` want it."""
        chosen = [exc for exc in excs if isinstance(exc, APIError)]
        return AllModelsFailed(chosen) if len(chosen) == len(excs) else ExceptionGroup(self.message, excs)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.exceptions, self.not_asked)


def _named(error: APIError) -> str:
    return "/".join(part for part in (error.provider, error.model) if part) or "the model"


class BudgetExceeded(LarikError):
    """The session has spent what it may, or would with this request; nothing was sent.

    Args:
        spent_usd: USD spent and set aside so far.
        session_usd: USD it may spend.
        expected_usd: USD the request was expected to cost; 0 where that made no difference.
    """

    def __init__(self, spent_usd: float, session_usd: float, expected_usd: float = 0.0) -> None:
        beyond = spent_usd < session_usd and expected_usd
        reached = "budget too small for this" if beyond else "budget reached"
        wanted = f", and this is expected to cost ${expected_usd:.2g}" if beyond else ""
        super().__init__(
            f"{reached}: ${spent_usd:.2f} of ${session_usd:.2f} is spent{wanted}. Nothing was sent. "
            f"Raise it: %routing budget={max(2 * session_usd, 1):g}"
        )
        self.args = (spent_usd, session_usd, expected_usd)
        self.spent_usd, self.session_usd, self.expected_usd = spent_usd, session_usd, expected_usd


class AnswerError(LarikError):
    """An answer is not of the kind that was asked for.

    Args:
        message: What it lacks, and what would do.
        raw: The answer as it came.
    """

    def __init__(self, message: str, *, raw: str) -> None:
        super().__init__(message)
        self.raw = raw


class ToolError(LarikError):
    """A tool could not do its work; `text` goes to the model whole, which may try otherwise."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class ReplayMiss(LarikError):
    """A recording has no such request.

    Args:
        message: Which recording, and what to do.
        diff: How the request differs from the nearest one recorded; may have many lines.
    """

    def __init__(self, message: str, *, diff: str = "") -> None:
        super().__init__(message)
        self.diff = diff


_BY_KIND: dict[str, type[APIError]] = {
    "auth": AuthError,
    "permission": AuthError,
    "quota": QuotaError,
    "billing": QuotaError,
    "not_found_model": ModelNotFound,
    "connection": Unreachable,
    "rate_limit": RateLimited,
    "server_error": ServerError,
    "overloaded": ServerError,
    "timeout": ServerError,
    "bad_request": BadRequest,
    "context_overflow": ContextOverflow,
    "content_filter": RefusedError,
}


def classify(status: int | None, headers: Mapping[str, str] | None, body: bytes, *, where: Where = "http") -> APIError:
    """Turn what a server answered into the error to raise. Never raises itself.

    Machine codes decide before sentences, sentences before the status: "no credit" comes as 400,
    402, 403, 412 and 429, and an overflow may hide in a 500 or in a stream that began with 200.

    Args:
        status: The HTTP status; 200 for an error inside a stream or a JSON body.
        headers: Those of the answer, in any case of letters; `:exception-type` and the like for
            an event-stream message.
        body: The body, or the one event of the stream that is the error. May be cut, huge, a web
            page, not UTF-8, or empty.
        where: What kind of answer it came in.

    Returns:
        The error, not raised, without provider and model: see `APIError.for_provider`.
    """
    from larik_nb import _error_answer, _error_verdict

    answer = _error_answer.read(status, headers, body, where=where)
    return _as_error(answer, _error_verdict.decide(answer))


def stopped(reason: str) -> APIError | None:
    """Return what a server's reason to end an answer tells of, where it is a failure; None where it is an end."""
    from larik_nb import _error_verdict

    kind = _error_verdict.stop(reason)
    return _BY_KIND[kind](kind=kind, said=reason) if kind else None


def _as_error(answer: Answer, verdict: Verdict) -> APIError:
    from larik_nb import _error_answer

    retryable = verdict.retryable
    if answer.should_retry is False:
        retryable = False
    return _BY_KIND[verdict.kind](
        kind=verdict.kind,
        status=verdict.status,
        said=answer.best_sentence(),
        cause=verdict.cause,
        retry_after=answer.retry_after,
        retry_hint=verdict.retry_hint,
        code=answer.named(_error_answer.REASON_KEYS),
        type=answer.named(_error_answer.TYPE_KEYS),
        used_tokens=verdict.used_tokens,
        max_tokens=verdict.max_tokens,
        retryable=retryable,
        cools=verdict.cools,
    )


def transport(error: BaseException, *, host: str = "") -> APIError:
    """Turn a failure to connect, send or receive into the error to raise. Never raises itself.

    Args:
        error: The exception of the HTTP library, of `ssl` or of `socket`; its causes are read too.
        host: Where we wanted to go, for the message: "localhost:11434".

    Returns:
        Unreachable (no connection), ServerError (dropped) or StallError (silence), not raised.
    """
    from larik_nb import _error_transport

    failure = _error_transport.judge(error)
    made: type[APIError] = {"ServerError": ServerError, "StallError": StallError}.get(failure.error, Unreachable)
    return made(
        kind=failure.kind,
        cause=failure.cause,
        said=_error_transport.words(error),
        host=host,
        retryable=False if failure.final else None,
        cools="short" if failure.kind == "timeout" else None,
    )
