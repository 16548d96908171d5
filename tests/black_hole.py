"""A connection whose packets vanish: a stream in a network of its own whose far end is taken away without a word.

    unshare -rn python tests/black_hole.py [--transport h11|aiohttp] [--scale N]

Two network namespaces and a cable between them. Once the first words of an answer are there, the server's namespace
drops every packet, as a lost VPN or a forgetful router does. Prints how long it took until the stream failed, and how.
With --scale the waiting times of the keep-alive are divided by N.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from larik_nb import _transports, errors, http  # noqa: E402  # run by itself, it first finds the package

HERE, THERE = "10.9.0.1", "10.9.0.2"
SERVER = """
import asyncio
async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n6\\r\\nwords\\n\\r\\n")
    await writer.drain()
    await asyncio.sleep(3600)
async def main():
    server = await asyncio.start_server(answer, "0.0.0.0", 8000)
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def ip(words: str, inside: int | None = None) -> str:
    """Run `ip`, in the namespace of a process where one is given."""
    enter = ["nsenter", "-t", str(inside), "-n"] if inside else []
    return subprocess.run([*enter, "ip", *words.split()], check=True, capture_output=True, text=True).stdout


def cable() -> subprocess.Popen[str]:
    """Start the server in a namespace at the other end of a cable."""
    holder = subprocess.Popen(
        ["unshare", "-n", sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1, text=True
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    ip("link add here type veth peer name there")
    ip(f"link set there netns {holder.pid}")
    ip(f"addr add {HERE}/24 dev here")
    ip("link set here up")
    ip(f"addr add {THERE}/24 dev there", holder.pid)
    ip("link set there up", holder.pid)
    hardware = ip("link show there", holder.pid).split("link/ether ")[1].split()[0]
    ip(f"neigh replace {THERE} lladdr {hardware} dev here nud permanent")
    return holder


async def until_it_fails(transport: http.TransportName, inside: int) -> tuple[float, errors.APIError]:
    """Return the seconds from the loss of the far end to the error, and the error."""
    async with http.post(f"http://{THERE}:8000/", headers={}, body={}, transport=transport) as reply:
        pieces = aiter(reply)
        await anext(pieces)
        ip(f"addr del {THERE}/24 dev there", inside)
        lost = time.monotonic()
        try:
            await anext(pieces)
        except Exception as exc:  # noqa: BLE001  # whatever it is, it is what this measures
            return time.monotonic() - lost, errors.transport(exc)
    raise AssertionError("the stream did not fail")


def main() -> None:
    """Lay the cable, cut it, and measure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--transport", choices=["h11", "aiohttp"], default="h11")
    options.add_argument("--scale", type=int, default=1)
    asked = options.parse_args()
    for name, value in _transports._KEEPALIVE.items():
        if name != "TCP_KEEPCNT":
            _transports._KEEPALIVE[name] = max(1, value // asked.scale)
    holder = cable()
    command = ["nsenter", "-t", str(holder.pid), "-n", sys.executable, "-c", SERVER]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        seconds, error = asyncio.run(until_it_fails(asked.transport, holder.pid))
    finally:
        server.kill()
        holder.kill()
    print(f"{seconds:.1f} {type(error).__name__} {error.retryable}")


if __name__ == "__main__":
    main()
