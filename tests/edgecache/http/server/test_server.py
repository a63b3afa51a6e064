"""The HTTP server: the requests it accepts and refuses, and its limits."""

import asyncio
import contextlib
import resource

import pytest

from edgecache.http.exchange import ClientGone, Exchange
from edgecache.http.response_head import HeaderRefused, response_head
from edgecache.http.scope import HttpScope
from edgecache.http.server import http_server as servers
from edgecache.http.server.limits import ServerLimits
from tests.edgecache.http.support import App, ask, connected, echo, head, run, serving


def test_a_request_is_parsed_exactly() -> None:
    async def main() -> bytes:
        async with serving(echo) as port:
            return await ask(
                port, head("PUT /a%2Fb/%FF?x=1+2 HTTP/1.1", "content-length: 3", body="abc")
            )

    answer = run(main())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"PUT /a%2Fb/%FF x=1+2 b'abc'")
    assert b"connection: close" in answer


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("http://x/a?b", "/a b"),
        ("http://X?y=/secret", "/ y=/secret"),
        ("*?u=http://h/y", "/* u=http://h/y"),
    ],
)
def test_the_path_of_any_form_of_target_is_found(target: str, path: str) -> None:
    async def main() -> bytes:
        async with serving(echo) as port:
            return await ask(port, head(f"GET {target} HTTP/1.1"))

    assert run(main()).endswith(f"GET {path} b''".encode())


def test_a_connection_is_kept_alive() -> None:
    async def main() -> None:
        async with serving(echo) as port, connected(port) as (reader, writer):
            for name in (b"/one", b"/two"):
                writer.write(b"GET " + name + b" HTTP/1.1\r\nhost: x\r\n\r\n")
                assert name in await reader.readuntil(b"b''")

    run(main())


def test_pipelined_requests_are_answered_in_their_order() -> None:
    async def slow_first(scope: HttpScope, exchange: Exchange) -> None:
        for _ in range(5 if scope.raw_path == "/0" else 0):
            await asyncio.sleep(0)
        exchange.response_str(200, [], scope.raw_path)

    async def main() -> bytes:
        async with serving(slow_first) as port:
            requests = [f"GET /{n} HTTP/1.1\r\nhost: x\r\n\r\n".encode() for n in range(9)]
            return await ask(port, b"".join(requests) + head("GET /last HTTP/1.1"))

    answer = run(main())
    bodies = [part.partition(b"HTTP/1.1")[0] for part in answer.split(b"\r\n\r\n")[1:]]
    assert bodies == [*(f"/{n}".encode() for n in range(9)), b"/last"]


BAD = [
    pytest.param(b"nonsense\r\n\r\n", 400, id="no request"),
    pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, id="no host"),
    pytest.param(b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400, id="two hosts"),
    pytest.param(
        b"PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
        400,
        id="length and chunks",
    ),
    pytest.param(
        b"PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabc",
        400,
        id="two lengths",
    ),
    pytest.param(b"GET / HTTP/1.1\r\nhost: a\r\nx : y\r\n\r\n", 400, id="blank before colon"),
    pytest.param(b"GET / HTTP/1.1\nhost: a\n\n", 400, id="bare line feeds"),
    pytest.param(
        b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", 400, id="chunks"
    ),
    pytest.param(
        b"GET / HTTP/1.1\r\nhost: a\r\n" + b"x: y\r\n" * 300 + b"\r\n", 431, id="many headers"
    ),
    pytest.param(b"GET /" + b"a" * 800_000, 431, id="endless head"),
    pytest.param(
        b"GET /" + b"a" * 8000 + b" HTTP/1.1\r\nhost: a\r\nx: " + b"b" * 8500 + b"\r\n\r\n",
        431,
        id="long target and fields",
    ),
    pytest.param(b"GET http://a/1 HTTP/1.1\r\nhost: b\r\n\r\n", 400, id="another host's target"),
    pytest.param(b"GET / HTTP/2.0\r\nhost: a\r\n\r\n", 505, id="another version"),
    pytest.param(
        b"PUT / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        400,
        id="chunks before HTTP/1.1",
    ),
]


@pytest.mark.parametrize(("request_bytes", "status"), BAD)
def test_a_malformed_request_is_refused_and_the_connection_closed(
    request_bytes: bytes, status: int
) -> None:
    async def never(_scope: HttpScope, exchange: Exchange) -> None:
        await exchange()
        exchange.response_str(200, [], "understood")

    async def main() -> bytes:
        async with serving(never) as port:
            return await ask(port, request_bytes)

    answer = run(main())
    assert b"understood" not in answer
    # After a valid head the connection is closed without a response.
    assert answer.startswith(b"HTTP/1.1 %d" % status) or answer == b""


def test_a_body_of_very_many_tiny_chunks_is_cut_off() -> None:
    heard = asyncio.Event()

    async def read(_scope: HttpScope, exchange: Exchange) -> None:
        try:
            await exchange()
        except ClientGone:
            heard.set()

    async def main() -> None:
        async with serving(read) as port:
            head = b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
            # Unread bytes are lost, so the client may get a reset.
            with contextlib.suppress(ConnectionResetError):
                assert await ask(port, head + b"1\r\nx\r\n" * 100_000) == b""
            await asyncio.wait_for(heard.wait(), 10)

    run(main())


@pytest.mark.parametrize("rest", [b"0\r\nx: ", b"1;x="], ids=["trailer", "chunk extension"])
def test_a_body_that_goes_on_without_bytes_of_its_own_is_cut_off(rest: bytes) -> None:
    async def read(_scope: HttpScope, exchange: Exchange) -> None:
        with contextlib.suppress(ClientGone):
            await exchange()

    async def main() -> None:
        async with serving(read) as port, connected(port) as (reader, writer):
            head = b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
            writer.write(head + b"1\r\na\r\n" + rest)
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"a" * 4096)
                    await writer.drain()
                    await asyncio.sleep(0)
                assert await reader.read() == b""

    run(main())


def test_small_chunks_arrive_whole_and_joined() -> None:
    pieces = list[bytes]()

    async def note(_scope: HttpScope, exchange: Exchange) -> None:
        # All chunks of this read are there.
        await asyncio.sleep(0)
        pieces.extend([piece async for piece in exchange])
        exchange.response_str(200, [], "")

    sent = [b"%d," % place for place in range(500)] + [b"x" * 5000, b"end"]
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in sent)

    async def main() -> bytes:
        async with serving(note) as port:
            lines = b"PUT / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n"
            return await ask(
                port, lines + b"transfer-encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"
            )

    assert run(main()).startswith(b"HTTP/1.1 200")
    assert b"".join(pieces) == b"".join(sent)
    assert len(pieces) < 20


def test_a_client_that_does_not_read_uses_little_memory() -> None:
    sent = asyncio.Event()

    async def endless(_scope: HttpScope, exchange: Exchange) -> None:
        exchange.response_stream(200, [("content-length", str(2**30))])
        piece = bytes(2**18)
        for _ in range(2**12):
            await exchange.send_bytes(piece)
            sent.set()

    async def main() -> int:
        async with serving(endless) as port, connected(port) as (_, writer):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await sent.wait()
            for _ in range(200):
                await asyncio.sleep(0)
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    assert run(main()) < 32 * 1024


def test_a_body_is_read_no_faster_than_it_is_used() -> None:
    taken = asyncio.Event()
    go_on = asyncio.Event()

    async def slow(_scope: HttpScope, exchange: Exchange) -> None:
        size = 0
        async for piece in exchange:
            size += len(piece)
            taken.set()
            await go_on.wait()
        exchange.response_str(200, [], f"{size} {exchange.unread_bytes}")

    async def main() -> None:
        async with serving(slow) as port, connected(port) as (reader, writer):
            size = 64 * 2**20
            writer.write(b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size)
            writer.write(bytes(size))
            await taken.wait()
            for _ in range(100):
                await asyncio.sleep(0)
            # Bytes that the server does not read stay on this side.
            assert writer.transport.get_write_buffer_size() > size // 2
            go_on.set()
            await reader.readuntil(b"\r\n\r\n%d 0" % size)

    run(main())


def test_a_100_continue_is_sent_only_when_the_body_is_read() -> None:
    async def refuse(_scope: HttpScope, exchange: Exchange) -> None:
        exchange.response_str(403, [], "no")

    async def main(app: App) -> bytes:
        async with serving(app) as port, connected(port) as (reader, writer):
            writer.write(
                b"PUT / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"
            )
            first = await reader.readuntil(b"\r\n\r\n")
            if first.startswith(b"HTTP/1.1 100"):
                writer.write(b"abc")
                return first + await reader.readuntil(b"b'abc'")
            return first + await reader.read()

    assert run(main(echo)).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    refused = run(main(refuse))
    assert refused.startswith(b"HTTP/1.1 403")
    assert b"connection: close" in refused


def test_a_client_may_wait_long_for_its_100_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "SWEEP_S", 0.05)

    async def late(scope: HttpScope, exchange: Exchange) -> None:
        await asyncio.sleep(0.3)
        await echo(scope, exchange)

    request = b"PUT /%b HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"

    async def main() -> None:
        limits = ServerLimits(send_timeout_s=0.1)
        async with serving(late, limits=limits) as port, connected(port) as (reader, writer):
            # Behind a request that runs, too.
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" + request % b"1")
            assert (await reader.readuntil(b"GET /  b''")).startswith(b"HTTP/1.1 200")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"abc")
            assert await reader.readuntil(b"b'abc'")

    run(main())


def test_a_client_of_http_1_0_gets_no_100_continue() -> None:
    async def main() -> bytes:
        async with serving(echo) as port, connected(port) as (reader, writer):
            writer.write(b"PUT / HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
            await asyncio.sleep(0.05)
            writer.write(b"abc")
            return await reader.read()

    assert run(main()).startswith(b"HTTP/1.1 200")


def test_an_early_response_reaches_a_client_that_still_sends() -> None:
    async def refuse(_scope: HttpScope, exchange: Exchange) -> None:
        exchange.response_str(403, [], "no")

    async def main() -> bytes:
        async with serving(refuse) as port, connected(port) as (reader, writer):
            size = 8 * 2**20
            writer.write(b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size)
            writer.write(bytes(size))
            return await asyncio.wait_for(reader.read(), 10)

    assert run(main()).endswith(b"\r\n\r\nno")


def test_a_body_shorter_than_announced_closes_the_connection() -> None:
    async def short(_scope: HttpScope, exchange: Exchange) -> None:
        exchange.response_stream(200, [("content-length", "10")])
        await exchange.send_bytes(b"abc")

    async def main() -> None:
        async with serving(short) as port, connected(port) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            got = b""
            with contextlib.suppress(ConnectionError):
                while piece := await reader.read(100):
                    got += piece
            assert got.endswith(b"abc") or got == b""

    run(main())


def test_a_chunked_response_is_completed_only_on_success() -> None:
    async def app(scope: HttpScope, exchange: Exchange) -> None:
        exchange.response_stream(200, [])
        await exchange.send_bytes(b"abc")
        if scope.raw_path == "/fails":
            raise OSError("broken")

    async def main() -> tuple[bytes, bytes]:
        async with serving(app) as port:
            whole = await ask(port, head("GET / HTTP/1.1"))
            async with connected(port) as (reader, writer):
                writer.write(head("GET /fails HTTP/1.1"))
                broken = b""
                try:
                    while piece := await reader.read(100):
                        broken += piece
                except ConnectionError:
                    pass
            return whole, broken

    whole, broken = run(main())
    assert whole.endswith(b"3\r\nabc\r\n0\r\n\r\n")
    assert b"0\r\n\r\n" not in broken


@pytest.mark.parametrize(
    ("request_bytes", "how"),
    [
        (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", "CancelledError"),
        (b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc", "ClientGone"),
    ],
)
def test_the_request_of_a_disconnected_client_is_cancelled(request_bytes: bytes, how: str) -> None:
    async def main() -> str:
        began = asyncio.Event()
        ended = asyncio.get_running_loop().create_future()

        async def wait(scope: HttpScope, exchange: Exchange) -> None:
            began.set()
            try:
                if scope.method == "PUT":
                    await exchange()
                await asyncio.sleep(60)
            except (asyncio.CancelledError, ClientGone) as exc:
                ended.set_result(type(exc).__name__)
                raise

        async with serving(wait) as port:
            async with connected(port) as (_, writer):
                writer.write(request_bytes)
                await began.wait()
            return str(await ended)

    assert run(main()) == how


def test_a_header_value_cannot_inject_a_header() -> None:
    for value in ("a\r\nset-cookie: b", "a\nb", "a\rb", "a\0b"):
        with pytest.raises(HeaderRefused):
            response_head(200, [("x", value)], 0, keeps_alive=True)
