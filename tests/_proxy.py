"""A proxy on loopback that leads every name to one port of this machine: HTTP (forwarding and CONNECT) and SOCKS5.

Also certificates of an authority that no system knows. Standard library and `cryptography` only.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import ipaddress
import ssl
import threading
from pathlib import Path
from typing import Any

SOCKS_VERSION = 5


class Proxy:
    """Leads what it is asked for to `port`, whatever name was asked for.

    Args:
        port: Where it leads.
        login: "user:password" it wants; None: nothing.

    Attributes:
        asked: What it was asked for: "GET http://…", "CONNECT host:port" or "SOCKS host:port".
        logins: What it was told as the login, in clear.
    """

    def __init__(self, port: int, login: str | None = None) -> None:
        self.asked: list[str] = []
        self.logins: list[str] = []
        self._port = port
        self._login = login
        self._tasks: set[object] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self.port = 0

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def url(self) -> str:
        """Its address as an HTTP proxy."""
        return f"http://127.0.0.1:{self.port}"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connection, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())  # else the collector may take it while it waits
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            first = await reader.readexactly(1)
            if first[0] == SOCKS_VERSION:
                await self._socks(reader, writer)
            else:
                await self._http(first, reader, writer)
        writer.close()

    async def _http(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = first + await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b" ", 2)
        self.asked.append(f"{method.decode()} {target.decode()}")
        if not self._welcome(head):
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
            return
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            head = b""
        else:
            path = b"/" + target.split(b"/", 3)[3]
            head = head.replace(target, path, 1)
        await self._lead(head, reader, writer)

    def _welcome(self, head: bytes) -> bool:
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b": ")
            if name.lower() == b"proxy-authorization":
                self.logins.append(base64.b64decode(value.split()[1]).decode())
        return self._login is None or self._login in self.logins

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        offered = await reader.readexactly((await reader.readexactly(1))[0])
        wanted = 2 if self._login else 0
        writer.write(bytes([SOCKS_VERSION, wanted if wanted in offered else 0xFF]))
        if wanted not in offered or (wanted and not await self._logged_in(reader, writer)):
            await writer.drain()
            return
        kind = (await reader.readexactly(4))[3]
        size = (await reader.readexactly(1))[0] if kind == 3 else 4
        host = await reader.readexactly(size)
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"SOCKS {host.decode() if kind == 3 else ipaddress.ip_address(host)}:{port}")
        writer.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        await self._lead(b"", reader, writer)

    async def _logged_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.readexactly(1)
        words = [await reader.readexactly((await reader.readexactly(1))[0]) for _ in range(2)]
        self.logins.append(b":".join(words).decode())
        fits = self.logins[-1] == self._login
        writer.write(bytes([1, not fits]))
        return fits

    async def _lead(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        back.write(head)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pipe(reader, back))
                group.create_task(_pipe(there, writer))
        finally:
            back.close()


async def _pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while part := await source.read(1 << 16):
            sink.write(part)
            await sink.drain()
        sink.write_eof() if sink.can_write_eof() else sink.close()


def authority(folder: Path, *names: str) -> tuple[ssl.SSLContext, Path]:
    """Return a server's context for `names`, and the file of the authority that signed for it.

    Args:
        folder: Where the files go.
        names: Host names and addresses.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def certificate(subject: str, key: Any, signer: Any, *, is_ca: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        builder = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name("a test's authority"))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - day).not_valid_after(now + day)
        builder = builder.add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        ).add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        if not is_ca:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general(item) for item in names]), critical=False
            )
        return builder.sign(signer, hashes.SHA256())

    def _general(text: str) -> x509.GeneralName:
        try:
            return x509.IPAddress(ipaddress.ip_address(text))
        except ValueError:
            return x509.DNSName(text)

    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM
    root, own, secret = folder / "authority.pem", folder / "server.pem", folder / "server.key"
    root.write_bytes(certificate("a test's authority", root_key, root_key, is_ca=True).public_bytes(pem))
    own.write_bytes(certificate(names[0], key, root_key, is_ca=False).public_bytes(pem))
    secret.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own, secret)
    return context, root
