"""Bytes that arrive, from the brain or another worker, until they are kept."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from edgecache.protocol.heartbeats import Problem
from edgecache.worker.node import CacheWorker
from edgecache.worker.store.incoming import Incoming

# Pieces are gathered up to this before a thread hashes and writes them.
GATHER_BYTES: Final = 1 << 20


async def receive(
    node: CacheWorker, pieces: AsyncIterator[bytes], sha256: bytes, size: int
) -> bool:
    """Keep an object; return whether it is new to the store.

    Raises WrongBytes, StoreFull, OSError, sqlite3.Error, and what ``pieces`` raises; then nothing
    was kept.
    """
    incoming = await node.run_on_disk(Incoming, node.store, sha256, size)
    try:
        gathered = bytearray()
        async for piece in pieces:
            if gathered and len(gathered) + len(piece) > GATHER_BYTES:
                await node.run_on_disk(incoming.write, gathered)
                gathered = bytearray()
            gathered += piece
        is_new = await node.run_on_disk(incoming.finish, gathered)
    except BaseException:
        # Even if this is cancelled, too, no room may stay reserved.
        await asyncio.shield(node.run_on_disk(incoming.discard))
        raise
    node.problems.clear(Problem.DISK_FULL, Problem.DISK_FAILING)
    if is_new:
        node.counters.add("stores")
        node.counters.add("stored_bytes", size)
    return is_new
