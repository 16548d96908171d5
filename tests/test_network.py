"""The way out: proxies, hosts without one, authorities of one's own, and connections whose far end is gone."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from larik_nb import connect, errors, http, stream
from larik_nb._network import Network
from larik_nb.config import Config
from larik_nb.types import Request, user
from tests._proxy import Proxy, authority
from tests._serve import Answer, Server

ROOT = Path(__file__).resolve().parents[1]
TRANSPORTS = ["h11", "aiohttp"]
HELLO = Answer(body=b"hello", sizes=(2,))
NAME = "models.test"
"""A host that only the proxy knows: asking this machine for it fails the test."""


@pytest.fixture
def plain() -> Iterator[Server]:
    with Server() as server:
        server.url(HELLO)
        yield server


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    return authority(tmp_path_factory.mktemp("authority"), NAME, "127.0.0.1")


@pytest.fixture
def secure(signed: tuple[ssl.SSLContext, Path]) -> Iterator[Server]:
    with Server(signed[0]) as server:
        server.url(HELLO)
        yield server


def fetch(url: str, network: Network, transport: http.TransportName = "h11", times: int = 1) -> list[bytes]:
    async def all_of_it() -> list[bytes]:
        bodies = []
        for _ in range(times):
            async with http.request("POST", url, {}, b"{}", 5.0, transport, network) as reply:
                bodies.append(await reply.read())
        return bodies

    got = asyncio.run(all_of_it())
    gc.collect()
    return got


# -- proxies ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_plain_requests_go_through_the_proxy_of_the_environment(plain: Server, transport: Any, variable: str) -> None:
    with Proxy(plain.port) as proxy:
        network = Network.of({variable: proxy.url})
        assert fetch(f"http://{NAME}/0/x", network, transport, times=2) == [b"hello", b"hello"]
        assert proxy.asked[0] == f"POST http://{NAME}/0/x"
    assert [got.path for got in plain.received] == ["/0/x", "/0/x"]
    assert plain.received[0].headers["host"] == NAME


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_secure_requests_go_through_a_tunnel(
    secure: Server, signed: tuple[ssl.SSLContext, Path], transport: Any, variable: str
) -> None:
    with Proxy(secure.port) as proxy:
        network = Network.of({variable: proxy.url.removeprefix("http://")}, str(signed[1]))
        assert fetch(f"https://{NAME}/0/x", network, transport, times=2) == [b"hello", b"hello"]
        assert proxy.asked == [f"CONNECT {NAME}:443"]
    assert [got.path for got in secure.received] == ["/0/x", "/0/x"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_proxys_password_is_used_and_never_shown(plain: Server, transport: Any) -> None:
    with Proxy(plain.port, login="me:pa ss/word-0123") as proxy:
        address = proxy.url.replace("http://", "http://me:pa%20ss%2Fword-0123@")
        network = Network.of({"HTTP_PROXY": address})
        assert fetch(f"http://{NAME}/0/x", network, transport) == [b"hello"]
        assert proxy.logins == ["me:pa ss/word-0123"]
        assert "0123" not in f"{network}{network!r}{network.proxy('http://a.b/')}"
    assert "0123" not in errors.LarikError(f"proxy said {address} and pa ss/word-0123").message


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_proxys_password_opens_the_tunnel(
    secure: Server, signed: tuple[ssl.SSLContext, Path], transport: Any
) -> None:
    with Proxy(secure.port, login="me:pa ss/word-0123") as proxy:
        address = proxy.url.replace("http://", "http://me:pa%20ss%2Fword-0123@")
        network = Network.of({"HTTPS_PROXY": address}, str(signed[1]))
        assert fetch(f"https://{NAME}/0/x", network, transport) == [b"hello"]
        assert proxy.logins == ["me:pa ss/word-0123"]
    assert "proxy-authorization" not in secure.received[0].headers


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_proxy_that_refuses_says_so(secure: Server, transport: Any) -> None:
    with Proxy(secure.port, login="me:word") as proxy, pytest.raises(errors.Unreachable) as caught:
        fetch(f"https://{NAME}/0/x", Network.of({"HTTPS_PROXY": proxy.url}), transport)
    assert "proxy" in caught.value.message.lower()
    assert not caught.value.retryable


def test_a_server_behind_a_proxy_that_hangs_up_is_an_error_and_not_tried_for_ever() -> None:
    """What the proxy said of the tunnel does not make the connection a kept one that may be tried again."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async def go() -> int:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            with Proxy(server.sockets[0].getsockname()[1]) as proxy:
                network = Network.of({"ALL_PROXY": f"socks5://127.0.0.1:{proxy.port}"})
                with pytest.raises(errors.ServerError):
                    async with (
                        asyncio.timeout(5),
                        http.request("GET", f"http://{NAME}/", {}, None, 2.0, "h11", network),
                    ):
                        pass
                return len(proxy.asked)

    assert asyncio.run(go()) == 1


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_this_machine_is_reached_straight(plain: Server, transport: Any) -> None:
    """A model that runs here answers behind any company's proxy."""
    network = Network.of({"ALL_PROXY": "http://proxy.invalid:1"})
    for host in ("127.0.0.1", "localhost"):
        assert fetch(f"http://{host}:{plain.port}/0/x", network, transport) == [b"hello"]


@pytest.mark.parametrize(
    ("no_proxy", "url", "straight"),
    [
        ("models.test", "http://models.test/v1", True),
        ("models.test", "http://eu.models.test/v1", True),
        (".models.test", "http://eu.models.test/v1", True),
        (".models.test", "http://models.test/v1", True),
        ("*.models.test", "http://eu.models.test/v1", True),
        ("models.test", "http://notmodels.test/v1", False),
        ("other.test, MODELS.TEST", "https://Models.Test./v1", True),
        ("other.test models.test", "http://models.test/v1", True),
        ("*", "http://models.test/v1", True),
        ("models.test:8080", "http://models.test:8080/v1", True),
        ("models.test:8080", "http://models.test/v1", False),
        ("models.test:443", "https://models.test/v1", True),
        ("10.0.0.0/8", "http://10.1.2.3/v1", True),
        ("10.0.0.0/8", "http://11.1.2.3/v1", False),
        ("10.0.0.0/8", "http://models.test/v1", False),
        ("10.1.2.3", "http://10.1.2.3:9/v1", True),
        ("10.1.2.3:9", "http://10.1.2.3:9/v1", True),
        ("fd00::/8", "http://[fd00::1]/v1", True),
        ("fd00::1", "http://[fd00::1]:9/v1", True),
        ("[fd00::1]:9", "http://[fd00::1]:9/v1", True),
        ("[fd00::1]:8", "http://[fd00::1]:9/v1", False),
        ("nonsense/99", "http://10.1.2.3/v1", False),
        ("", "http://models.test/v1", False),
        ("", "http://[::1]:11434/v1", True),
        ("", "http://127.8.8.8/v1", True),
        ("", "http://llama.localhost/v1", True),
    ],
)
def test_hosts_without_a_proxy(no_proxy: str, url: str, straight: bool) -> None:
    network = Network.of({"ALL_PROXY": "proxy.test:3128", "no_proxy": no_proxy})
    assert (network.proxy(url) is None) is straight


def test_small_letters_go_before_capitals_and_the_special_before_all() -> None:
    env = {"HTTP_PROXY": "http://b.test:1", "http_proxy": "http://a.test:1", "ALL_PROXY": "http://c.test:1"}
    network = Network.of(env)
    assert (network.http_proxy, network.https_proxy) == ("http://a.test:1", "http://c.test:1")


@pytest.mark.parametrize("address", ["ftp://x.test", "http://", "http://x.test:port", "http://[::1"])
def test_an_address_that_is_none_names_its_variable(address: str) -> None:
    with pytest.raises(errors.ConfigError, match="environment HTTPS_PROXY or ALL_PROXY: is no proxy's address"):
        Network.of({"HTTPS_PROXY": address}).proxy("https://models.test/")


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize("login", ["", "me:word-0123"])
def test_a_socks_proxy_looks_the_name_up_itself(
    secure: Server, signed: tuple[ssl.SSLContext, Path], scheme: str, login: str
) -> None:
    with Proxy(secure.port, login or None) as proxy:
        address = f"{scheme}://{login}{'@' if login else ''}127.0.0.1:{proxy.port}"
        network = Network.of({"ALL_PROXY": address}, str(signed[1]))
        assert fetch(f"https://{NAME}/0/x", network, times=2) == [b"hello", b"hello"]
        assert proxy.asked == [f"SOCKS {NAME}:443"]
        assert proxy.logins == [login] * bool(login)


def test_a_socks_proxy_leads_to_plain_http_and_to_addresses(plain: Server) -> None:
    with Proxy(plain.port) as proxy:
        network = Network.of({"HTTP_PROXY": f"socks5://127.0.0.1:{proxy.port}"})
        assert fetch("http://10.1.2.3/0/x", network) == [b"hello"]
        assert proxy.asked == ["SOCKS 10.1.2.3:80"]


def test_a_socks_proxy_that_refuses_says_so(secure: Server) -> None:
    with Proxy(secure.port, login="me:word-0123") as proxy:
        for login in ("", "me:wrong-0123@"):
            network = Network.of({"ALL_PROXY": f"socks5://{login}127.0.0.1:{proxy.port}"})
            with pytest.raises(errors.Unreachable, match="proxy"):
                fetch(f"https://{NAME}/0/x", network)
        assert proxy.asked == []


def test_aiohttp_goes_through_no_socks_proxy_and_says_what_does() -> None:
    network = Network.of({"ALL_PROXY": "socks5://127.0.0.1:1"})
    with pytest.raises(errors.ConfigError, match=r'network\.transport: aiohttp cannot .* Set it to "h11"'):
        fetch(f"http://{NAME}/0/x", network, "aiohttp")


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 500 No\r\n\r\n", b"nonsense", b"HTTP/1.1 200", b"\x05\xff", b"\x00" * 70_000]
)
@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_proxy_that_talks_nonsense_is_an_error(said: bytes, scheme: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)
        writer.close()

    async def go() -> None:
        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            network = Network.of({"ALL_PROXY": f"{scheme}://127.0.0.1:{port}"})
            with pytest.raises(errors.APIError) as caught:
                async with http.request("GET", f"https://{NAME}/", {}, None, 2.0, "h11", network):
                    pass
            assert caught.value.falls_back

    asyncio.run(go())


# -- authorities --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_file_of_authorities_is_added_to_the_systems(
    secure: Server, signed: tuple[ssl.SSLContext, Path], transport: Any
) -> None:
    url = f"https://127.0.0.1:{secure.port}/0/x"
    with pytest.raises(errors.Unreachable, match="certificate"):
        fetch(url, Network(), transport)
    assert fetch(url, Network(ca_file=str(signed[1])), transport) == [b"hello"]
    own, systems = http.tls_context(str(signed[1])), http.tls_context()
    assert own.cert_store_stats()["x509"] == systems.cert_store_stats()["x509"] + 1


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file or directory"), (b"not a certificate", "it holds no certificates")]
)
def test_a_file_of_authorities_that_cannot_be_used_is_a_notice_once(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    network = Network(ca_file=str(file))
    assert http.ca_warning("http://models.test/", network) is None
    warning = http.ca_warning("https://models.test/", network)
    assert warning == f"⚠ network.ca_file {file} is not used: {reason}; the system's authorities are"
    assert http.ca_warning("https://models.test/", network) is None


SAID = [
    {"choices": [{"index": 0, "delta": {"content": "hello"}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
]
BODY = b"".join(b"data: %b\n\n" % json.dumps(line).encode() for line in SAID) + b"data: [DONE]\n\n"


def test_a_whole_answer_comes_from_a_gateway_of_ones_own(signed: tuple[ssl.SSLContext, Path], tmp_path: Path) -> None:
    """An unknown model at a private address with a path, an own authority and a proxy: the request goes exactly there."""
    with Server(signed[0]) as gateway, Proxy(gateway.port) as proxy:
        path = gateway.url(Answer(headers={"content-type": "text/event-stream"}, body=BODY)).rpartition("/")[2]
        settings = {
            "providers": {"gate": {"type": "openai-compatible", "base_url": f"https://{NAME}/{path}/team/v1"}},
            "network": {"ca_file": str(signed[1])},
        }
        config = Config.load(settings, env={"HTTPS_PROXY": proxy.url})
        provider = connect("gate/our-own-model", config=config)
        events = list(stream(provider, Request(model="our-own-model", messages=(user("hi"),))))
    assert [event.type for event in events] == ["text_delta", "done"]
    assert [got.path for got in gateway.received] == [f"/{path}/team/v1/chat/completions"]
    assert proxy.asked == [f"CONNECT {NAME}:443"]
    assert config.catalog.cost(events[-1].usage, "gate", "our-own-model") is None


def test_an_answer_says_that_the_file_of_authorities_is_not_used(tmp_path: Path) -> None:
    settings = {
        "providers": {"gate": {"type": "openai-compatible", "base_url": "https://127.0.0.1:1/v1"}},
        "network": {"ca_file": str(tmp_path / "gone.pem")},
    }
    events = stream(connect("gate/m", config=settings), Request(model="m", messages=(user("hi"),)))
    assert "gone.pem is not used" in next(events).text
    with pytest.raises(errors.Unreachable):
        next(events)


# -- a far end that is gone ------------------------------------------------------------------------------------------
def black_hole(*arguments: str) -> tuple[float, str]:
    """Return the seconds until a vanished far end is noticed, and the error."""
    if sys.platform != "linux" or shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("network namespaces need Linux with unshare and ip")
    able = subprocess.run(
        ["unshare", "-rn", "ip", "link", "add", "near", "type", "veth", "peer", "name", "far"], capture_output=True
    )
    if able.returncode:
        pytest.skip("this user may not make network namespaces")
    command = ["unshare", "-rn", sys.executable, "tests/black_hole.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    seconds, error, _ = done.stdout.split()
    return float(seconds), error


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_far_end_that_is_gone_is_noticed(transport: str) -> None:
    """At a fifteenth of the waiting times; a slow server that still is there is not cut off (test_http)."""
    seconds, error = black_hole("--transport", transport, "--scale", "15")
    assert 1 < seconds < 60 / 15
    assert error in ("Unreachable", "ServerError")


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_far_end_that_is_gone_is_noticed_in_less_than_a_minute(transport: str) -> None:
    seconds, _ = black_hole("--transport", transport)
    assert 30 < seconds < 60
