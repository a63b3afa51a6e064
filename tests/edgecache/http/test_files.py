"""Responses from files: whole and partial, over TCP and TLS, to clients that stall or leave."""

import asyncio
import errno
import os
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgecache.http.exchange import Exchange
from edgecache.http.files import LOOP_BYTES, FileBody
from edgecache.http.scope import HttpScope
from edgecache.http.server import http_server as servers
from edgecache.http.server.limits import ServerLimits
from edgecache.runtime.threads import FairThreads
from tests.edgecache.brain.certificates import issue
from tests.edgecache.http.support import App, connected, run, serving

CONTENT = os.urandom(1 << 20) * 24
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture
def pool() -> Iterator[FairThreads]:
    """Return a pool of one thread."""
    threads = FairThreads(1, "sending")
    yield threads
    threads.stop()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file that holds CONTENT."""
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    return path


def sending(file: Path, pool: FairThreads, start: int = 0, length: int = 0) -> App:
    """Return an application that sends bytes of a file."""

    async def app(_scope: HttpScope, exchange: Exchange) -> None:
        count = length or len(CONTENT) - start
        body = FileBody(os.open(file, os.O_RDONLY), start, count, pool, (1,))
        await exchange.response_file(200, [("content-length", str(count))], body)

    return app


def open_files() -> int:
    """Return the number of files that this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(true: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - the server's threads change it
            await asyncio.sleep(0.02)


async def read_answer(reader: asyncio.StreamReader, length: int) -> bytes:
    """Return the body of one response."""
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    return await reader.readexactly(length)


@pytest.mark.parametrize(("start", "length"), [(0, len(CONTENT)), (5, 3), (1 << 20, 9 << 20)])
def test_bytes_of_a_file_arrive_in_consecutive_responses(
    file: Path, pool: FairThreads, start: int, length: int
) -> None:
    async def main() -> None:
        app = sending(file, pool, start, length)
        async with serving(app) as port, connected(port) as (reader, writer):
            before = open_files()
            writer.write(GET * 3)
            for _ in range(3):
                assert await read_answer(reader, length) == CONTENT[start : start + length]
            await until(lambda: open_files() == before)

    run(main())


def test_a_small_file_in_memory_needs_no_thread(file: Path, pool: FairThreads) -> None:
    started, release = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        release.wait(20)

    async def main() -> None:
        app = sending(file, pool, 5, LOOP_BYTES)
        holding = pool.begin((2,), hold)
        await asyncio.to_thread(started.wait, 20)
        async with serving(app) as port, connected(port) as (reader, writer):
            # More than the kernel takes for a client that does not read yet.
            writer.write(GET * 8)
            for _ in range(8):
                answer = await read_answer(reader, LOOP_BYTES)
                assert answer == CONTENT[5 : 5 + LOOP_BYTES]
            assert not holding.done()
            release.set()
            await holding

    run(main())


@pytest.mark.parametrize("refusal", [errno.EAGAIN, errno.EOPNOTSUPP])
def test_a_file_that_may_have_to_come_from_the_disk_is_sent_by_a_thread(
    file: Path, pool: FairThreads, monkeypatch: pytest.MonkeyPatch, refusal: int
) -> None:
    senders, sendfile = set[str](), os.sendfile

    def refused(*_: object) -> int:
        raise OSError(refusal, "not in memory")

    def noted(*where: int) -> int:
        senders.add(threading.current_thread().name.partition("_")[0])
        return sendfile(*where)

    monkeypatch.setattr(os, "preadv", refused)
    monkeypatch.setattr(os, "sendfile", noted)

    async def main() -> None:
        app = sending(file, pool, 0, LOOP_BYTES)
        async with serving(app) as port, connected(port) as (reader, writer):
            writer.write(GET)
            assert await read_answer(reader, LOOP_BYTES) == CONTENT[:LOOP_BYTES]

    run(main())
    assert senders == {"sending"}


def test_a_file_is_sent_over_tls(file: Path, pool: FairThreads, tmp_path: Path) -> None:
    authority, tls = issue(tmp_path, "127.0.0.1")
    trusting = ssl.create_default_context(cafile=str(authority))

    async def main() -> None:
        async with serving(sending(file, pool), tls=tls) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            for _ in range(2):
                writer.write(GET)
                assert await read_answer(reader, len(CONTENT)) == CONTENT
            writer.close()

    run(main())


def test_clients_that_do_not_read_hold_no_thread_and_are_disconnected(
    file: Path, pool: FairThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "SWEEP_S", 0.05)

    async def main() -> None:
        limits = ServerLimits(take_timeout_s=1.0)
        before = open_files()
        async with serving(sending(file, pool), limits=limits) as port:
            stalled = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
            for _, writer in stalled:
                writer.transport.pause_reading()  # type: ignore[attr-defined] # a StreamWriter's transport reads, too
                writer.write(GET)
            async with connected(port) as (reader, writer):
                writer.write(GET)
                assert await read_answer(reader, len(CONTENT)) == CONTENT
            # Each client's own end of the connection remains.
            await until(lambda: open_files() <= before + 8 + 2)
            for _, writer in stalled:
                writer.close()

    run(main())


def test_a_client_that_disconnects_leaves_no_open_file(file: Path, pool: FairThreads) -> None:
    async def main() -> None:
        async with serving(sending(file, pool)) as port:
            before = open_files()
            for _ in range(10):
                async with connected(port) as (reader, writer):
                    writer.write(GET)
                    await reader.readexactly(100)
            # The event loop opens a file of its own at its first connection.
            await until(lambda: open_files() <= before + 1)

    run(main())


def test_a_file_shorter_than_announced_closes_the_connection(
    tmp_path: Path, pool: FairThreads
) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"short")

    async def main() -> bytes:
        async with serving(sending(path, pool)) as port, connected(port) as (reader, writer):
            writer.write(GET)
            answer = b""
            try:
                while piece := await reader.read(1000):
                    answer += piece
            except ConnectionError:
                pass
            return answer

    assert not run(main()).partition(b"\r\n\r\n")[2].removeprefix(b"short")
