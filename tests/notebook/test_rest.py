"""An answer that is drawn now and then is read now and then."""

from __future__ import annotations

from larik_nb import http, portal
from larik_nb.notebook.render import REST_S
from tests.fake_provider import FakeProvider


async def pieces(url: str, model: str) -> list[bytes]:
    body = {"model": model, "stream": True}
    async with http.post(f"{url}/v1/messages", headers={}, body=body, stall_timeout_s=10) as reply:
        return [piece async for piece in reply]


def test_a_rest_joins_what_came_meanwhile_and_loses_nothing(fake: FakeProvider):
    at_once = portal.wait(pieces(fake.url, "fake:n=100:d=4"))
    with http.resting(REST_S):
        rested = portal.wait(pieces(fake.url, "fake:n=100:d=4"))

    assert b"".join(rested) == b"".join(at_once)
    assert len(rested) < len(at_once) / 2
