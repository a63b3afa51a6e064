"""Brains in processes of their own, as a test holds them."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 40


class Child:
    """One of them."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def hear(self) -> dict[str, Any]:
        """Return the next thing that it says."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = await self.process.stdout.readline()
        assert line, "the child is gone"
        heard: dict[str, Any] = json.loads(line)
        return heard

    async def tell(self, do: str, **rest: Any) -> None:
        """Return it an order."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **rest}).encode() + b"\n")
        await self.process.stdin.drain()

    async def do(self, do: str, **rest: Any) -> Any:
        """Return it an order and wait for its outcome."""
        await self.tell(do, **rest)
        heard = await self.hear()
        return heard.get("done", heard.get("error"))

    async def halt(self, at: str, do: str, **rest: Any) -> None:
        """Have it stop on the way through an order."""
        assert await self.do("halt", at=at) is None
        await self.tell(do, **rest)
        # Who reads has all bytes before they are kept.
        heard = await self.hear()
        if "done" in heard:
            heard = await self.hear()
        assert heard == {"halted": at}

    async def kill(self) -> None:
        """End it, without a word of warning."""
        self.process.kill()
        await self.process.wait()

    def pause(self) -> None:
        """Stop it."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def child(url: str, root: Path) -> AsyncIterator[Child]:
    """Return a brain in a process; it is dead when the block ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.edgecache.brain.child", url, str(root)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"ZLOG_LEVEL": "error"},
    )
    one = Child(process)
    try:
        assert "ready" in await one.hear()
        yield one
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()
            with contextlib.suppress(ConnectionError):
                await process.stdin.wait_closed()
