"""The sentence a person reads: who failed, why, in the provider's words, and what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from larik_nb.errors import APIError


class Sentence(NamedTuple):
    """Templates of `str.format`: what happened, whether to quote the provider, what to do."""

    what: str
    remedy: str
    quotes: bool = True
    short: str = ""


_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")

_TRY_AGAIN = "Try again, or choose another model:  %model"
_OTHER = "Choose another model:  %model"

#: By cause where there is one, else by kind. Names in braces are those of `_facts`.
SENTENCES: dict[str, Sentence] = {
    "auth": Sentence("{who} rejected the key{status}", "Check {key}{set_it}", quotes=False, short="key rejected"),
    "expired": Sentence("{who} rejected the key{status}", "Renew {key}{set_it}", short="key expired"),
    "permission": Sentence("{who} does not allow this{status}", "Ask for access with this key, or choose another model:  %model", short="not allowed"),
    "quota": Sentence("the quota at {who} is used up{status}{wait}", "Wait for it, or choose another model:  %model", short="quota used up"),
    "billing": Sentence("no credit left at {who}{status}", "Add credit there, or choose another model:  %model", short="no credit left"),
    "not_found_model": Sentence("{who} has no {model}{status}", "{near}Choose another model:  %model", short="no such model"),
    "address": Sentence("nothing answers at this address of {who}{status}", "Check base_url: many servers want it to end in /v1", short="wrong address"),
    "rate_limit": Sentence("{who} is rate limited{status}{wait}", _TRY_AGAIN, short="rate limited"),
    "too_large": Sentence("this one request is larger than {who} allows in a minute{status}", "Lower max_tokens, shorten the conversation, or choose another model:  %model", short="request larger than the allowance per minute"),
    "overloaded": Sentence("{who} is overloaded{status}{wait}", _TRY_AGAIN, short="overloaded"),
    "server_error": Sentence("{who} failed{status}{wait}", _TRY_AGAIN, short="failed{status}"),
    "empty": Sentence("{who} ended its answer without a word", _TRY_AGAIN, short="said nothing"),
    "timeout": Sentence("{who} took too long{status}", _TRY_AGAIN, short="took too long"),
    "context_overflow": Sentence("the conversation is too long for {model}{status}{tokens}", "Shorten it, or begin anew:  %larik reset", short="conversation too long{tokens}"),
    "probably": Sentence("the conversation is probably too long for {model}{status}{tokens}", "Shorten it, or begin anew:  %larik reset", short="conversation probably too long{tokens}"),
    "bad_request": Sentence("{who} refused the request{status}", "Change what it names and ask again", short="refused the request{status}"),
    "content_filter": Sentence("{who} refused the content{status}", "Word it differently, or choose another model:  %model", short="content refused"),
    "wire": Sentence("{who} sent something that could not be read{status}", "Check that base_url is a model API", short="unreadable answer"),
    "certificate": Sentence("the certificate of {host} cannot be trusted", "Behind a company's proxy, set network.ca_file to its CA file", short="certificate not trusted"),
    "proxy_login": Sentence("the proxy wants a user and password{status}", "Put them in HTTPS_PROXY", short="proxy wants a password"),
    "proxy": Sentence("the proxy cannot be used", "Check HTTPS_PROXY and NO_PROXY", short="proxy failed"),
    "plain_http": Sentence("{host} does not speak TLS", "If it is a local server, begin base_url with http://", short="does not speak TLS"),
    "dns": Sentence("there is no host {host}", "Check base_url and the network", quotes=False, short="no such host"),
    "refused": Sentence("{host} refuses connections", "Is the server running at {host}?", quotes=False, short="not running"),
    "connect_timeout": Sentence("{host} does not answer", "Check base_url, the network and any firewall", quotes=False, short="does not answer"),
    "network": Sentence("{host} cannot be reached", "Check base_url and the network", short="cannot be reached"),
    "connection": Sentence("{host} cannot be reached", "Check base_url and the network", short="cannot be reached"),
    "pool": Sentence("too many requests to {host} are open at once", "Close some, or ask fewer at a time", short="too many at once"),
    "silent": Sentence("{who} sent nothing for the stall limit", "Try again, or raise stall_timeout_s", quotes=False, short="stopped responding"),
    "dropped": Sentence("{host} closed the connection before the answer was complete", "Try again", short="dropped the connection"),
}  # fmt: skip


def compose(error: APIError) -> str:
    """One line: what happened, in the provider's words where they add something, and the remedy."""
    sentence = _sentence(error)
    facts = _facts(error)
    what = sentence.what.format(**facts)
    said = f": {error.said.rstrip('.')}" if sentence.quotes and error.said else ""
    return f"{what}{said}. {sentence.remedy.format(**facts).rstrip()}"


def reason(error: APIError) -> str:
    """The same in a few words, without whose failure it is, and when to try again where that is known."""
    wait = max(filter(None, (error.again_in_s, _asked(error))), default=None)
    return why(error) + _wait(wait)


def why(error: APIError) -> str:
    """What is wrong in a few words."""
    return _sentence(error).short.format(**_facts(error))


def happened(error: APIError, who: str) -> str:
    """What happened to `who`, as the beginning of a longer sentence: "a/b is rate limited (retry in 42 s)"."""
    wait = _wait(_asked(error)).removeprefix(", again ")
    facts = {**_facts(error), "who": who, "host": who, "status": "", "wait": f" (retry {wait})" if wait else ""}
    return _sentence(error).what.format(**facts)


def _asked(error: APIError) -> float | None:
    return error.retry_after if error.retry_after is not None else error.retry_hint


def _sentence(error: APIError) -> Sentence:
    if error.kind == "auth" and "expire" in error.said.lower():
        return SENTENCES["expired"]
    return SENTENCES.get(error.cause) or SENTENCES.get(error.kind) or SENTENCES["server_error"]


def _facts(error: APIError) -> dict[str, str]:
    who = error.provider or "the provider"
    model = f"model {error.model}" if error.model else "such model"
    if error.kind == "context_overflow":
        model = error.model or "the model"
    return {
        "who": who,
        "model": model,
        "host": error.host or who,
        "key": error.key_hint or "its key",
        "set_it": f":  {assignment(error.key_hint)}" if _VARIABLE.fullmatch(error.key_hint or "") else "",
        "near": _near(error),
        # An error inside an answer that began well has the status of that beginning, which says nothing of it.
        "status": f" ({error.status})" if error.status and error.status >= 300 else "",
        "wait": _wait(_asked(error)),
        "tokens": _tokens(error.used_tokens, error.max_tokens),
    }


def assignment(variable: str | None) -> str:
    """Return the line of Python that sets an environment variable for this process, notebooks included."""
    return f'os.environ["{variable}"] = "…"'


def _near(error: APIError) -> str:
    """Return the catalog's names like the one that was refused, as a sentence."""
    if error.kind != "not_found_model" or not error.model:
        return ""
    from larik_nb import catalog

    close = catalog.shipped().alike(error.provider or "", error.model)
    return f"Closest: {', '.join(close)}. " if close else ""


def _wait(seconds: float | None) -> str:
    """`, again in 42 s`, in the largest unit that reads well."""
    if not seconds:
        return ""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f", again in {round(seconds / size)} {unit}"
    return f", again in {max(1, round(seconds))} s"


def _tokens(used: int | None, limit: int | None) -> str:
    if used and limit:
        return f", {used:,} of {limit:,} tokens"
    return f", {limit:,} tokens" if limit else ""
