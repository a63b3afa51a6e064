"""Brains in separate processes, and the test's handles on them."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgecache.brain.conf.stores import StoreSettings
from tests.edgecache.brain.brains import Rows
from tests.edgecache.forks import Fork, fork_server

PATIENCE_S = 40


class Child:
    """A brain in a separate process."""

    def __init__(
        self,
        process: Fork,
        url: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """reader, writer: its standard output and input."""
        self.process = process
        self.url = url
        self._reader, self._writer = reader, writer
        self.brain_id = ""

    async def hear(self) -> dict[str, Any]:
        """Return its next response line."""
        async with asyncio.timeout(PATIENCE_S):
            line = await self._reader.readline()
        assert line, "the child is gone"
        heard: dict[str, Any] = json.loads(line)
        return heard

    async def tell(self, do: str, **rest: Any) -> None:
        """Send it a command."""
        self._writer.write(json.dumps({"do": do, **rest}).encode() + b"\n")
        await self._writer.drain()

    async def do(self, do: str, **rest: Any) -> Any:
        """Send it a command and return the result."""
        await self.tell(do, **rest)
        heard = await self.hear()
        return heard.get("done", heard.get("error"))

    async def halt(self, at: str, do: str, **rest: Any) -> None:
        """Send it a command during which it halts in a function."""
        assert await self.do("halt", at=at) is None
        await self.tell(do, **rest)
        # A reader has all bytes before they are committed.
        heard = await self.hear()
        if "done" in heard:
            heard = await self.hear()
        assert heard == {"halted": at}

    async def kill(self) -> None:
        """Kill it and end its lease, for which every test would wait for seconds."""
        self.process.kill()
        self.process.wait()
        ended = "UPDATE brain_braininstance SET lease_until = clock_timestamp() WHERE id = %s"
        Rows(self.url).run(ended, [self.brain_id])

    def pause(self) -> None:
        """Suspend it."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it."""
        self.process.send_signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def child(
    url: str, root: Path, *, stores: Sequence[StoreSettings] = (StoreSettings(),)
) -> AsyncIterator[Child]:
    """Yield a brain in a separate process that is killed at the end of the block."""
    command = ["tests.edgecache.brain.child", url, str(root)]
    chosen = {"ZLOG_LEVEL": "error", "TEST_STORES": json.dumps([asdict(one) for one in stores])}
    ours, theirs = socket.socketpair()
    with theirs:
        streams = dict.fromkeys((0, 1), theirs.fileno())
        # In a thread: the server may have to start first, and brains renew their leases meanwhile.
        fork = fork_server().fork
        process = await asyncio.to_thread(fork, command, os.environ | chosen, streams)
    reader, writer = await asyncio.open_connection(sock=ours)
    one = Child(process, url, reader, writer)
    try:
        one.brain_id = (await one.hear())["ready"]
        yield one
    finally:
        process.kill()
        process.wait()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
