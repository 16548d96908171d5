"""An answer that is drawn now and then is read now and then."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from larik_nb import errors, http, portal
from larik_nb.notebook.render import HOLD_S, REST_S
from tests.fake_provider import FakeProvider


async def pieces(url: str, model: str) -> list[bytes]:
    body = {"model": model, "stream": True}
    async with http.post(f"{url}/v1/messages", headers={}, body=body, stall_timeout_s=10) as reply:
        return [piece async for piece in reply]


def test_a_rest_joins_what_came_meanwhile_and_loses_nothing(fake: FakeProvider):
    at_once = portal.wait(pieces(fake.url, "fake:n=100:d=4"))
    with http.resting(REST_S, hold_s=HOLD_S):
        rested = portal.wait(pieces(fake.url, "fake:n=100:d=4"))

    assert b"".join(rested) == b"".join(at_once)
    assert len(rested) < len(at_once) / 2


def test_what_is_held_goes_on_when_a_pause_follows(fake: FakeProvider):
    with http.resting(0.02, hold_s=60.0):
        *pieces, last = list(portal.iterate(paused(fake.url)))

    assert b"".join(pieces).count(b"text_delta") == 60
    assert last == b"timeout"


async def paused(url: str) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of an answer that stops coming after a while, and then its error's name."""
    body = {"model": "fake:n=100:d=4:stall=60", "stream": True}
    try:
        async with http.post(f"{url}/v1/messages", headers={}, body=body, stall_timeout_s=1.0) as reply:
            async for piece in reply:
                yield piece
    except errors.StallError as error:
        yield error.kind.encode()
