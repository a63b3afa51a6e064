"""The brain's proxy to object stores: authenticated, with egress rules."""

import asyncio
import base64
import contextlib
import gc
import socket
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from edgecache.brain.origins.egress.guard import Guard
from edgecache.brain.origins.egress.proxy import Proxy
from tests.edgecache.brain.http_origin import HttpOrigin
from tests.edgecache.brain.origins.egress.names import forbidding

OWNER = 7


async def talk(proxy: Proxy, head: str, *, said: str = "{user}:{password}") -> bytes:
    """Send a request to the proxy; return the response. said: replaces the credentials."""
    parts = urlsplit(proxy.url(OWNER))
    text = said.format(user=parts.username, password=parts.password)
    token = base64.b64encode(text.encode()).decode()
    reader, writer = await asyncio.open_connection("127.0.0.1", parts.port)
    writer.write(f"{head}\r\nProxy-Authorization: Basic {token}\r\n\r\n".encode())
    answer = await reader.read(200)
    writer.close()
    return answer


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """Return a proxy as in production."""
    one = Proxy(Guard(allows_private=False))
    await one.start()
    yield one
    await one.stop()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("CONNECT 127.0.0.1:443 HTTP/1.1", b"403"),
        ("CONNECT [::1]:443 HTTP/1.1", b"403"),
        ("CONNECT localhost:8443 HTTP/1.1", b"403"),
        ("CONNECT 169.254.169.254:80 HTTP/1.1", b"403"),
        ("CONNECT nowhere.invalid:443 HTTP/1.1", b"502"),
        ("CONNECT 127.0.0.1:443 HTTP/1.0", b"405"),
        ("GET http://127.0.0.1/ HTTP/1.1", b"405"),
        ("CONNECT user@127.0.0.1 HTTP/1.1", b"405"),
    ],
)
async def test_the_proxy_refuses(proxy: Proxy, head: str, status: bytes) -> None:
    assert (await talk(proxy, head)).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize("said", ["{user}:guess", "{user}:", "{password}", "x:{password}", ""])
async def test_the_proxy_requires_the_brain_s_credentials(proxy: Proxy, said: str) -> None:
    answer = await talk(proxy, "CONNECT 8.8.8.8:443 HTTP/1.1", said=said)

    assert answer.startswith(b"HTTP/1.1 407")


async def test_lookups_are_counted_for_the_organization_in_the_credentials(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = forbidding(monkeypatch)
    assert (await talk(proxy, "CONNECT a.example:443 HTTP/1.1")).startswith(b"HTTP/1.1 403")
    assert owners == [OWNER]


Tunnel = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def tunnel(proxy: Proxy, port: int) -> Tunnel:
    """Open a tunnel to a port."""
    parts = urlsplit(proxy.url(OWNER))
    token = base64.b64encode(f"{OWNER}:{parts.password}".encode()).decode()
    reader, writer = await asyncio.open_connection("127.0.0.1", parts.port)
    writer.write(
        f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nproxy-authorization: Basic {token}\r\n\r\n".encode()
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    return reader, writer


async def test_the_proxy_forwards_in_both_directions(origin: HttpOrigin) -> None:
    origin.objects["/k"] = b"through"
    one = Proxy(Guard(allows_private=True))
    await one.start()
    reader, writer = await tunnel(one, origin.port)
    writer.write(b"GET /k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"through" in await reader.read(1000)
    writer.close()
    await one.stop()


@pytest.mark.parametrize("turns", range(12))
async def test_stopping_the_proxy_closes_both_ends(turns: int) -> None:
    accepted: asyncio.Queue[Tunnel] = asyncio.Queue()
    far = await asyncio.start_server(lambda *pair: accepted.put_nowait(pair), "127.0.0.1", 0)
    one = Proxy(Guard(allows_private=True))
    await one.start()
    near_reader, near_writer = await tunnel(one, far.sockets[0].getsockname()[1])
    far_reader, far_writer = await accepted.get()
    gc.disable()  # A connection that the proxy forgot would be closed by this.
    try:
        near_writer.write_eof()
        for _ in range(turns):
            await asyncio.sleep(0)
        await one.stop()

        async with asyncio.timeout(5):
            assert await far_reader.read() == b""
            assert await near_reader.read() == b""
    finally:
        gc.enable()
        near_writer.close()
        far_writer.close()
        far.close()


# After two turns of the loop asyncio has accepted the connection without a callback: it fails on
# this one by itself (``Server._attach``).
@pytest.mark.parametrize("turns", [0, 1, 3, 4, 5, 6])
async def test_a_connection_that_arrives_during_the_stop_is_closed(turns: int) -> None:
    one = Proxy(Guard(allows_private=True))
    await one.start()
    near = socket.create_connection(("127.0.0.1", urlsplit(one.url(OWNER)).port or 0))
    near.setblocking(False)
    gc.disable()
    try:
        for _ in range(turns):
            await asyncio.sleep(0)
        await one.stop()

        with contextlib.suppress(ConnectionError):  # Not accepted: the port was closed before.
            async with asyncio.timeout(5):
                assert await asyncio.get_running_loop().sock_recv(near, 1) == b""
    finally:
        gc.enable()
        near.close()


# --- what may be said -------------------------------------------------------------------------
