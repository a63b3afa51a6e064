"""The client: kept connections, uploads, and servers that answer badly."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from edgecache.http.client import (
    ConnectionShareExhausted,
    HttpClient,
    ServerAddress,
    ShortResponse,
    request_head,
)
from edgecache.http.outgoing import OutgoingConnection, RequestFailed
from edgecache.runtime.fair_shares import ShareKey, Shares

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def serving(handle: Handler) -> AsyncIterator[ServerAddress]:
    """Serve each connection with a handler on a free port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield ServerAddress(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    """Return a client that gives a silent server up quickly."""
    one = HttpClient(connect_timeout_s=2.0, stall_s=0.1)
    yield one
    await one.stop()


async def fetch(client: HttpClient, address: ServerAddress) -> ShortResponse:
    """Send a GET for a short response."""
    head = request_head(address, "GET", "/", {})
    return await client.fetch(address, head, limit_bytes=100, timeout_s=5.0)


async def test_a_connection_is_kept_and_replaced_when_the_server_closed_it(
    client: HttpClient,
) -> None:
    connections = 0

    async def two_responses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(OK)

    async with serving(two_responses) as address:
        bodies = [(await fetch(client, address)).body for _ in range(5)]
    assert (bodies, connections) == ([b"ok"] * 5, 3)


async def test_an_early_response_ends_an_upload(client: HttpClient) -> None:
    sent = 0

    async def full(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\n\r\n")
        while await reader.read(65_536):
            pass

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield bytes(65_536)
            await asyncio.sleep(0)

    async with serving(full) as address:
        head = request_head(address, "PUT", "/", {}, length=2**40)
        answer = await client.fetch(address, head, body=endless(), limit_bytes=100, timeout_s=5.0)
    assert answer.status == 507
    assert sent > 0


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"", "closed"),
        (b"HTTP/1.1 200 OK\r\n\r\nno length", "no_length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "no_length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "ambiguous_head"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", "too_long"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1", "closed"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "head_too_long"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 3_000, "head_too_long"),
        (b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok", "malformed_head"),
        (b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\nok", "malformed_head"),
        (b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok", "malformed_head"),
        (b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok", "no_answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no_answer"),
    ],
)
async def test_a_response_that_is_not_whole_or_not_clear_is_a_failure(
    client: HttpClient, response: bytes, reason: str
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response)
        await writer.drain()

    async with serving(answer) as address:
        with pytest.raises(RequestFailed) as failure:
            await fetch(client, address)
    assert failure.value.reason == reason


async def test_bytes_that_come_after_a_response_end_the_connection(client: HttpClient) -> None:
    served: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                served.append(listener.accept()[0])
                threading.Thread(target=answer, args=(served[-1],), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with suppress(OSError):
            while connection.recv(65_536):
                connection.sendall(OK)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        address = ServerAddress(f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert (await fetch(client, address)).body == b"ok"
        # The event loop has not seen them when it sends the next request.
        served[0].sendall(OK.replace(b"ok", b"no"))
        assert (await fetch(client, address)).body == b"ok"
        assert (await fetch(client, address)).body == b"ok"
    assert len(served) == 2
    for connection in served:
        connection.close()


async def silence(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Read and say nothing."""
    while await reader.read(65_536):
        pass


async def test_a_server_that_stalls_is_given_up(client: HttpClient) -> None:
    async with serving(silence) as address:
        head = request_head(address, "GET", "/", {})
        with pytest.raises(RequestFailed, match="stalled"):
            await client.request(address, head, lambda _head: 0)


async def test_a_call_waits_for_its_own_timeout(client: HttpClient) -> None:
    async with serving(silence) as address:
        head = request_head(address, "GET", "/", {})
        with pytest.raises(RequestFailed, match="too_slow"):
            await client.fetch(address, head, limit_bytes=100, timeout_s=0.4)


async def test_a_guarded_address_must_be_public(client: HttpClient) -> None:
    async def never(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        pytest.fail("connected")

    async with serving(never) as address:
        guarded = ServerAddress(address.endpoint, is_guarded=True)
        with pytest.raises(RequestFailed, match="address_forbidden"):
            await fetch(client, guarded)


async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with the head and a half of the body."""
    while await reader.readuntil(b"\r\n\r\n"):
        writer.write(OK[:-1])


class Sharing:
    """A client with few connections. share_key: of the client that sends the next request."""

    def __init__(self, limit: int, *, wait_s: float = 0.01) -> None:
        self.share_key: ShareKey = ("bob",)
        self.running = Shares(limit, refusal=ConnectionShareExhausted, wait_s=wait_s)
        self.client = HttpClient(
            connect_timeout_s=2.0,
            stall_s=5.0,
            running=self.running,
            share_key=lambda: self.share_key,
        )

    async def begin(
        self, address: ServerAddress, *, has_no_timeout: bool = False
    ) -> OutgoingConnection:
        """Begin to read a response."""
        head = request_head(address, "GET", "/", {})
        return await self.client.request(
            address, head, lambda _head: 2, has_no_timeout=has_no_timeout
        )


@pytest.fixture
async def sharing() -> AsyncIterator[Sharing]:
    """Return a client of twelve connections."""
    one = Sharing(12)
    yield one
    await one.client.stop()


async def test_slow_readers_of_one_organization_leave_connections(sharing: Sharing) -> None:
    async with serving(half) as address:
        held = [await sharing.begin(address) for _ in range(6)]
        with pytest.raises(ConnectionShareExhausted):
            await sharing.begin(address)

        sharing.share_key = ("alice",)
        others = [await sharing.begin(address) for _ in range(3)]
        assert sharing.running.taken == 9

        for connection in (*held, *others):
            sharing.client.release(address, connection)
        assert sharing.running.taken == 0


async def test_a_failed_request_gives_its_place_back(sharing: Sharing) -> None:
    with pytest.raises(RequestFailed, match="unreachable"):
        await sharing.begin(ServerAddress("http://127.0.0.1:1"))
    with pytest.raises(RequestFailed, match="unreachable"):
        await fetch(sharing.client, ServerAddress("http://127.0.0.1:1"))
    assert sharing.running.taken == 0


async def test_a_patient_request_waits_for_a_place(sharing: Sharing) -> None:
    async with serving(half) as address:
        held = [await sharing.begin(address) for _ in range(6)]
        patient = asyncio.create_task(sharing.begin(address, has_no_timeout=True))
        with pytest.raises(ConnectionShareExhausted):
            await sharing.begin(address)
        assert not patient.done()

        sharing.client.release(address, held.pop())
        held.append(await patient)
        for connection in held:
            sharing.client.release(address, connection)


async def test_idle_connections_are_closed_when_their_room_is_needed() -> None:
    open_now, most = 0, 0

    async def ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(OK)
        finally:
            open_now -= 1

    few = Sharing(4, wait_s=5.0)

    async def fetch_from(address: ServerAddress) -> None:
        assert (await fetch(few.client, address)).body == b"ok"

    async with serving(ok) as first, serving(ok) as second:
        for address in (first, second):
            await asyncio.gather(*(fetch_from(address) for _ in range(4)))
        assert len(few.client._all) <= 4
    assert most <= 5
    await few.client.stop()
