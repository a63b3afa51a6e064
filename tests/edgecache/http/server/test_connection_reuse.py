"""Which requests of a connection are served, one after another, and when it ends."""

import asyncio
import contextlib

import pytest

from edgecache.http.exchange import Exchange
from edgecache.http.scope import HttpScope
from tests.edgecache.http.support import ask, connected, echo, head, run, serving


def at_once(scope: HttpScope, exchange: Exchange) -> None:
    """Respond before the parser goes on."""
    exchange.response_str(200, [], scope.path)


def test_a_refused_request_is_read_to_its_end() -> None:
    async def main() -> None:
        async with serving(echo) as port, connected(port) as (reader, writer):
            writer.write(b"PUT / HTTP/1.1\r\ncontent-length: 8000000\r\n\r\n" + bytes(8_000_000))
            await asyncio.wait_for(writer.drain(), 2)
            assert (await reader.read()).startswith(b"HTTP/1.1 400")

    run(main())


@pytest.mark.parametrize("asked", ["GET / HTTP/1.1\r\nupgrade: h2c", "CONNECT h:80 HTTP/1.1"])
def test_a_request_for_another_protocol_ends_the_connection(asked: str) -> None:
    async def main() -> bytes:
        async with serving(at_once) as port:
            lines = f"{asked}\r\nhost: x\r\nconnection: upgrade\r\n\r\n"
            return await ask(port, lines.encode())

    answer = run(main())
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer


def test_a_request_behind_the_last_response_does_not_run() -> None:
    asked = []

    def refuse(scope: HttpScope, exchange: Exchange) -> None:
        asked.append(scope.method)
        exchange.response_str(403, [], "no")

    async def main() -> bytes:
        async with serving(refuse) as port:
            first = b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc"
            return await ask(port, first + head("DELETE / HTTP/1.1"))

    assert run(main()).count(b"HTTP/1.1") == 1
    assert asked == ["PUT"]


def test_many_requests_behind_a_chunked_body_are_served() -> None:
    async def main() -> bytes:
        async with serving(echo) as port, connected(port) as (reader, writer):
            writer.write(
                b"PUT / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n"
            )
            long = b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"a" * 4000 + b"\r\n\r\n"
            # In a read of its own.
            await asyncio.sleep(0.05)
            writer.write(b"0\r\n\r\n" + long * 5)
            for _ in range(6):
                assert b"HTTP/1.1 200" in await reader.readuntil(b"\r\n\r\n")
            writer.write(head("GET /last HTTP/1.1"))
            return await reader.read()

    assert b"GET /last" in run(main())


@pytest.mark.parametrize("sized", [True, False])
def test_a_stream_of_no_bytes_keeps_the_connection_of_a_head_request(*, sized: bool) -> None:
    async def stream(scope: HttpScope, exchange: Exchange) -> None:
        exchange.response_stream(200, [("content-length", "9")] if sized else [])
        if scope.method != "HEAD":
            await exchange.send_bytes(b"abcdefghi")

    async def main() -> bytes:
        async with serving(stream) as port, connected(port) as (reader, writer):
            writer.write(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n" + head("HEAD / HTTP/1.1"))
            return await reader.read()

    said = run(main())
    assert said.count(b"HTTP/1.1 200") == 2
    # Heads alone.
    assert said.split(b"\r\n\r\n")[2:] == [b""]


@pytest.mark.parametrize(
    ("method", "status", "length", "pieces", "arrives"),
    [
        ("GET", 200, "3", [b"hel", b"lo"], b"hel"),
        ("GET", 200, "3", [b"hello"], b""),
        ("GET", 200, "0", [b"hello"], b""),
        ("HEAD", 200, "5", [b"hello"], b""),
        ("HEAD", 200, "", [b"hello"], b""),
        ("GET", 204, "", [b"hello"], b""),
        ("GET", 304, "", [b"hello"], b""),
    ],
)
def test_a_stream_never_sends_more_than_its_head_says(
    method: str, status: int, length: str, pieces: list[bytes], arrives: bytes
) -> None:
    async def stream(_scope: HttpScope, exchange: Exchange) -> None:
        exchange.response_stream(status, [("content-length", length)] if length else [])
        for piece in pieces:
            await exchange.send_bytes(piece)

    async def main() -> bytes:
        async with serving(stream) as port, connected(port) as (reader, writer):
            request = f"{method} / HTTP/1.1\r\nhost: x\r\n\r\n".encode()
            writer.write(request * 2)
            got = b""
            with contextlib.suppress(ConnectionError):
                while piece := await reader.read(1000):
                    got += piece
            return got

    got = run(main())
    # The connection ends with it, so that nothing becomes the next answer.
    assert got.count(b"HTTP/1.1") <= 1
    assert got.partition(b"\r\n\r\n")[2] in {arrives, b""}


@pytest.mark.parametrize(
    "headers",
    [
        [("content-length", "2"), ("content-length", "9")],
        [("content-length", "2"), ("Content-Length", "2")],
        [("content-length", "2"), ("transfer-encoding", "chunked")],
        [("content-length", "9")],
        [("content-length", "1")],
    ],
)
def test_a_head_that_says_another_end_than_the_body_s_is_not_sent(
    headers: list[tuple[str, str]],
) -> None:
    async def respond(_scope: HttpScope, exchange: Exchange) -> None:
        exchange.response_bytes(200, headers, b"ok")

    async def main() -> bytes:
        async with serving(respond) as port, connected(port) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                return await reader.read()
            return b""

    assert run(main()) == b""
