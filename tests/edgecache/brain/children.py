"""Brains in separate processes, and the test's handles on them."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgecache.brain.conf.stores import StoreSettings
from tests.edgecache.brain.brains import Rows

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 40


class Child:
    """A brain in a separate process."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url
        self.brain_id = ""

    async def hear(self) -> dict[str, Any]:
        """Return its next response line."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = await self.process.stdout.readline()
        assert line, "the child is gone"
        heard: dict[str, Any] = json.loads(line)
        return heard

    async def tell(self, do: str, **rest: Any) -> None:
        """Send it a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **rest}).encode() + b"\n")
        await self.process.stdin.drain()

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
        await self.process.wait()
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
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.edgecache.brain.child",
        url,
        str(root),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=os.environ
        | {"ZLOG_LEVEL": "error", "TEST_STORES": json.dumps([asdict(each) for each in stores])},
    )
    one = Child(process, url)
    try:
        one.brain_id = (await one.hear())["ready"]
        yield one
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()
            with contextlib.suppress(ConnectionError):
                await process.stdin.wait_closed()
