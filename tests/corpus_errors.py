"""Score `errors.classify` on a file of labelled answers of real servers.

A row is one JSON object as `../shared/errors/README.md` describes it. A row passes a field when it
equals the label; a label's `accept_kinds` are right too, and its `lenient` fields are not scored.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from larik_nb import errors

#: How long "short" and "long" are in the labels. The package knows them in its fallback alone.
COOLS_S = {None: None, "short": 60, "long": 600}

Row = dict[str, Any]
Judge = Callable[[Row], errors.APIError]


def body_bytes(row: Row) -> bytes:
    """The bytes that the server sent."""
    body = row.get("body")
    if body is None:
        return b""
    return body.encode() if isinstance(body, str) else json.dumps(body, ensure_ascii=False).encode()


def directly(row: Row) -> errors.APIError:
    """Give the row to the classifier itself, without a server."""
    if row["where"] == "transport":
        return errors.transport(raised(row["exc"]))
    return errors.classify(row["status"], row.get("headers") or {}, body_bytes(row), where=row["where"])


def raised(exc: dict[str, str]) -> BaseException:
    """An exception that looks as the row tells: a class of that name and module."""
    module, _, name = exc["type"].rpartition(".")
    made: type[Exception] = type(name, (Exception,), {"__module__": module})
    return made(exc["message"])


@dataclass
class Score:
    """How one row was judged."""

    row: Row
    got: errors.APIError
    wrong: dict[str, str] = field(default_factory=dict)

    @property
    def wants_overflow(self) -> bool:
        return bool(self.row["expect"]["kind"] == "context_overflow")

    @property
    def false_overflow(self) -> bool:
        allowed = {self.row["expect"]["kind"], *(self.row.get("accept_kinds") or ())}
        return self.got.kind == "context_overflow" and "context_overflow" not in allowed


def score(row: Row, got: errors.APIError) -> Score:
    """Compare one error with its label, field by field."""
    expect, lenient = row["expect"], set(row.get("lenient") or ())
    result = Score(row, got)

    def check(name: str, want: object, have: object, same: bool) -> None:
        if name in expect and name not in lenient and not same:
            result.wrong[name] = f"wanted {want}, got {have}"

    kinds = {expect["kind"], *(row.get("accept_kinds") or ())}
    check("kind", sorted(kinds), got.kind, got.kind in kinds)
    for name, have in (
        ("retryable", got.retryable),
        ("should_fall_back", got.falls_back),
        ("cooldown_s", COOLS_S[got.cools]),
    ):
        check(name, expect.get(name), have, expect.get(name) == have)
    for name, seconds in (("retry_after_s", got.retry_after), ("retry_hint_s", got.retry_hint)):
        want = expect.get(name)
        check(name, want, seconds, want is None or close(want, seconds))
    counts = {"used": got.used_tokens, "max": got.max_tokens}
    context = expect.get("context") or {}
    check("context", context, counts, all(counts[key] == context[key] for key in context))
    return result


def close(want: float, have: float | None) -> bool:
    """Equal to a tenth of a second."""
    return have is not None and abs(want - have) <= 0.1


def report(scores: Sequence[Score]) -> str:
    """The last line: overflow recall, false overflows, and the share right of each judgement."""
    wanted = [s for s in scores if s.wants_overflow]
    found = sum(s.got.kind == "context_overflow" for s in wanted)
    total = len(scores)

    def right(*names: str) -> int:
        return sum(not any(name in s.wrong for name in names) for s in scores)

    return (
        f"overflow {found}/{len(wanted)} false {sum(s.false_overflow for s in scores)} "
        f"kinds {right('kind')}/{total} fallback {right('should_fall_back')}/{total} "
        f"retry {right('retryable', 'retry_after_s', 'retry_hint_s')}/{total} "
        f"cooldown {right('cooldown_s')}/{total}"
    )


def judge(rows: Iterable[Row], ask: Judge = directly) -> list[Score]:
    """Score every row; `ask` is what turns a row into an error."""
    return [score(row, ask(row)) for row in rows]


def read_rows(path: Path) -> list[Row]:
    """The rows of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def main(argv: Sequence[str], ask: Judge = directly, ways: Mapping[str, int] | None = None) -> int:
    """Print every miss, the ways the answers took, and the score; 0 when there is no miss."""
    parser = argparse.ArgumentParser(prog="corpus.py errors", description=__doc__)
    parser.add_argument("file", type=Path)
    scores = judge(read_rows(parser.parse_args(argv).file), ask)
    missed = [s for s in scores if s.wrong]
    for miss in missed:
        told = " · ".join(f"{name}: {what}" for name, what in miss.wrong.items())
        sys.stdout.write(f"miss {miss.row['id']}  {told}  | {miss.got.message}\n")
    for way, count in sorted((ways or {}).items()):
        sys.stdout.write(f"{count:4} {way}\n")
    sys.stdout.write(f"rows right in every field {len(scores) - len(missed)}/{len(scores)}\n")
    sys.stdout.write(report(scores) + "\n")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
