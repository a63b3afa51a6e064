"""TLS: the server's responses, and handshakes that are never finished."""

import asyncio
import ssl
from pathlib import Path

import pytest

from edgecache.http.server.http_server import HttpServer
from edgecache.http.server.limits import ServerLimits
from tests.edgecache.brain.certificates import issue
from tests.edgecache.http.support import connected, echo, run, serving

BODY = bytes(range(256)) * 2048


@pytest.fixture
def contexts(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS contexts of a server and of a client that trusts it."""
    authority, server = issue(tmp_path, "127.0.0.1")
    return server, ssl.create_default_context(cafile=str(authority))


def test_requests_are_served_over_tls(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async def main() -> None:
        async with serving(echo, tls=contexts[0]) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=contexts[1])
            for _ in range(2):
                writer.write(b"PUT /a HTTP/1.1\r\nhost: x\r\n")
                writer.write(b"content-length: %d\r\n\r\n" % len(BODY) + BODY)
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
                await reader.readexactly(len(f"PUT /a  {BODY!r}"))
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert (await reader.read()).endswith(b"b''")
            writer.close()

    run(main())


def test_an_unfinished_handshake_times_out(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    limits = ServerLimits(head_timeout_s=0.3)

    async def main() -> None:
        async with (
            serving(echo, tls=contexts[0], limits=limits) as port,
            connected(port) as (reader, _),
        ):
            assert await asyncio.wait_for(reader.read(), 5) == b""

    run(main())


def test_a_client_without_tls_is_disconnected(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async def main() -> bytes:
        async with serving(echo, tls=contexts[0]) as port, connected(port) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            return await asyncio.wait_for(reader.read(), 5)

    assert b"HTTP/1.1" not in run(main())


async def test_a_port_in_use_is_an_error(tmp_path: Path) -> None:
    async with serving(echo) as port:
        with pytest.raises(OSError, match="in use"):
            await HttpServer(echo, address="127.0.0.1", port=port).start()
