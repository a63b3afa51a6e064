"""A client leaves in the middle of a file: what the kernel took of it counts as sent."""

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgecache.http.exchange import Exchange
from edgecache.http.files import FileBody
from edgecache.http.scope import HttpScope
from edgecache.runtime.threads import FairThreads
from tests.edgecache.http.support import App, run, serving

SIZE = 24 << 20
READ = 50_000
RESET = struct.pack("ii", 1, 0)


class SlowKernel:
    """The kernel's sendfile, which returns to its caller only when it may. Counts what it took."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        self.may_return = threading.Event()
        self._sendfile = os.sendfile
        monkeypatch.setattr(os, "sendfile", self._send)

    def _send(self, *args: int) -> int:
        count = self._sendfile(*args)
        self.taken += count
        self.may_return.wait(20)
        return count


class Counted:
    """An application that notes what its one response counted as sent."""

    def __init__(self, app: App) -> None:
        self.exchange: Exchange | None = None
        self.sent_bytes: int | None = None
        self._app = app

    async def __call__(self, scope: HttpScope, exchange: Exchange) -> None:
        self.exchange = exchange
        try:
            work = self._app(scope, exchange)
            if work is not None:
                await work
        finally:
            self.sent_bytes = exchange.sent_bytes


@pytest.fixture
def pool() -> Iterator[FairThreads]:
    """Return a pool of one thread."""
    threads = FairThreads(1, "sending")
    yield threads
    threads.stop()


def leaving_client(port: int) -> socket.socket:
    """Return a client that has read a little of its response; its close is a reset."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.connect(("127.0.0.1", port))
    client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    received = 0
    while received < READ:
        received += len(client.recv(1000))
    return client


async def until(true: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - another thread, or the kernel, changes it
            await asyncio.sleep(0.02)


def test_what_the_kernel_takes_of_a_file_while_the_client_leaves_is_counted(
    tmp_path: Path, pool: FairThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, system = tmp_path / "file", SlowKernel(monkeypatch)
    file.write_bytes(bytes(SIZE))

    async def send(_scope: HttpScope, exchange: Exchange) -> None:
        body = FileBody(os.open(file, os.O_RDONLY), 0, SIZE, pool, (1,))
        await exchange.response_file(200, [("content-length", str(SIZE))], body)

    app = Counted(send)

    async def main() -> None:
        async with serving(app) as port:
            (await asyncio.to_thread(leaving_client, port)).close()
            await until(lambda: app.exchange is not None and app.exchange.is_gone)
            system.may_return.set()
            await until(lambda: app.sent_bytes is not None)

    run(main())
    assert READ < system.taken < SIZE
    assert app.sent_bytes == system.taken
