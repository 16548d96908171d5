"""What can go wrong, what each failure means for routing, and the sentence a person reads.

LarikError
├─ ConfigError            a setting: names the key, where it was read, what would do
├─ APIError               a model did not answer; one line with the remedy
│  ├─ AuthError           key or permission refused     falls back, cools long
│  ├─ QuotaError          quota or money used up        falls back, cools long
│  ├─ ModelNotFound       no such model or address      falls back, cools long
│  ├─ Unreachable         refused, no such host         retried, falls back, cools long
│  ├─ RateLimited         slow down                     retried, falls back, cools short
│  ├─ ServerError         overloaded, broken, dropped   retried, falls back, cools short
│  ├─ StallError          no bytes for the stall limit  retried, falls back, cools short
│  ├─ BadRequest          it would fail anywhere        neither
│  │  └─ ContextOverflow  the agent compacts and asks again
│  ├─ RefusedError        a content filter said no      neither
│  └─ BadWire             bytes we could not read       neither
├─ AllModelsFailed        an ExceptionGroup of the above, one reason each
├─ BudgetExceeded         spent_usd, session_usd
├─ ToolError              its text goes to the model
└─ ReplayMiss             a recording has no such request; carries the difference

The class carries the policy; an instance overrides it only where one kind has two
meanings: a quota per minute is worth a retry, a certificate failure never is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Cools = Literal["short", "long"]
Where = Literal["http", "sse", "ndjson", "eventstream", "json_200"]


class LarikError(Exception):
    """Anything this package raises on purpose; `message` is one line with the remedy."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self._message = " ".join(message.split())

    @property
    def message(self) -> str:
        return self._message

    def __str__(self) -> str:
        return self.message


class ConfigError(LarikError):
    """A setting cannot be used: names the key, where it was read and what would do."""

    def __init__(self, message: str, *, key: str = "", source: str = "", remedy: str = "") -> None:
        place = " in ".join(part for part in (key, source) if part)
        parts = (f"{place}: {message}" if place else message, remedy)
        super().__init__(". ".join(part.rstrip(".") for part in parts if part))
        self.key, self.source, self.remedy = key, source, remedy


class APIError(LarikError):
    """A model did not answer."""

    kinds: ClassVar[tuple[str, ...]] = ()
    retryable: bool = False
    falls_back: bool = False
    cools: Cools | None = None

    def __init__(
        self,
        message: str = "",
        *,
        kind: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        retry_hint: float | None = None,
        provider: str | None = None,
        model: str | None = None,
        code: str | None = None,
        type: str | None = None,
        used_tokens: int | None = None,
        max_tokens: int | None = None,
        partial: Any = None,
        retryable: bool | None = None,
        cools: Cools | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind or self.kinds[0]
        self.status, self.code, self.type = status, code, type
        self.retry_after, self.retry_hint = retry_after, retry_hint
        self.provider, self.model = provider, model
        self.used_tokens, self.max_tokens = used_tokens, max_tokens
        self.partial = partial
        if retryable is not None:
            self.retryable = retryable
        if cools is not None:
            self.cools = cools

    def for_provider(
        self, *, provider: str | None = None, model: str | None = None, key_hint: str | None = None
    ) -> Self:
        """Say whose failure this is; the message names provider, model and key."""
        self.provider, self.model = provider or self.provider, model or self.model
        self.key_hint = key_hint
        return self


class AuthError(APIError):
    kinds = ("auth", "permission")
    falls_back, cools = True, "long"


class QuotaError(APIError):
    kinds = ("quota", "billing")
    falls_back, cools = True, "long"


class ModelNotFound(APIError):
    kinds = ("not_found_model",)
    falls_back, cools = True, "long"


class Unreachable(APIError):
    kinds = ("connection",)
    retryable, falls_back, cools = True, True, "long"


class RateLimited(APIError):
    kinds = ("rate_limit",)
    retryable, falls_back, cools = True, True, "short"


class ServerError(APIError):
    kinds = ("server_error", "overloaded", "timeout")
    retryable, falls_back, cools = True, True, "short"


class StallError(APIError):
    kinds = ("timeout",)
    retryable, falls_back, cools = True, True, "short"


class BadRequest(APIError):
    kinds = ("bad_request",)


class ContextOverflow(BadRequest):
    kinds = ("context_overflow",)


class RefusedError(APIError):
    kinds = ("content_filter",)


class BadWire(APIError):
    kinds = ("wire",)


class AllModelsFailed(LarikError, ExceptionGroup[APIError]):
    """No candidate answered; holds one error per candidate."""

    def __new__(cls, errors: Sequence[APIError]) -> Self:
        return super().__new__(cls, "no model can answer", list(errors))

    def __init__(self, errors: Sequence[APIError]) -> None:
        super().__init__("no model can answer: " + " · ".join(error.message for error in errors))


class BudgetExceeded(LarikError):
    """The session has spent what it may."""

    def __init__(self, spent_usd: float, session_usd: float) -> None:
        super().__init__(
            f"budget reached: ${spent_usd:.2f} of ${session_usd:.2f}. Nothing was sent."
        )
        self.spent_usd, self.session_usd = spent_usd, session_usd


class ToolError(LarikError):
    """A tool could not do its work; the text goes to the model."""


class ReplayMiss(LarikError):
    """A recording has no such request; `diff` shows the nearest one it has."""

    def __init__(self, message: str, *, diff: str = "") -> None:
        super().__init__(message)
        self.diff = diff


def classify(
    status: int | None, headers: Mapping[str, str], body: bytes, *, where: Where = "http"
) -> APIError:
    """Turn what a server answered into the error to raise."""
    text = " ".join(body[:500].decode("utf-8", "replace").split())
    match status:
        case 401 | 403:
            return AuthError(text, status=status)
        case 402:
            return QuotaError(text, status=status)
        case 404:
            return ModelNotFound(text, status=status)
        case 429:
            return RateLimited(text, status=status)
        case int() if 400 <= status < 500 and status != 408:
            return BadRequest(text, status=status)
    return ServerError(text, status=status)


def transport(error: BaseException, *, host: str = "") -> APIError:
    """Turn a connection failure into the error to raise."""
    return Unreachable(f"cannot reach {host or 'the server'}: {error}")
