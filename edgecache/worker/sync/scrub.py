"""Scrubbing: files are hashed again, a few each hour, to find corruption before a client does."""

import asyncio
import logging
import sqlite3
import time
from typing import Final

from edgecache.protocol.heartbeats import Problem
from edgecache.worker.node import CacheWorker, Status
from edgecache.worker.store import inventory

log = logging.getLogger(__name__)

HOUR_S: Final = 3600.0


async def scrub(node: CacheWorker, *, per_hour: int, rate_bytes: int) -> None:
    """Hash this many files each hour, forever, the least recently verified first."""
    while per_hour:
        await asyncio.sleep(HOUR_S / per_hour)
        if node.status is Status.SERVING:
            try:
                await node.run_in_background(scrub_one, node, rate_bytes)
            except (OSError, sqlite3.Error) as error:
                log.warning("scrub_failed", extra={"reason": str(error)})


def scrub_one(node: CacheWorker, rate_bytes: int) -> bool | None:
    """Verify the least recently verified file; None if there are no files."""
    with node.store.using() as db:
        oldest = inventory.oldest_verified(db)
    if oldest is None:
        return None
    node.counters.add("scrubbed_files")
    return verify(node, *oldest, rate_bytes=rate_bytes)


def verify(node: CacheWorker, sha256: bytes, expected: int, *, rate_bytes: int) -> bool:
    """Hash a file again, and remove it if it is not what its name says. Raises OSError."""
    store = node.store
    state = store.files.state(sha256)
    verified = store.files.verify(sha256, rate_bytes=rate_bytes)
    if verified is not None and verified.size == expected:
        with store.using() as db:
            inventory.set_verified(db, sha256, int(time.time()))
        return True
    # A file that was altered during the read is checked again, and counts then.
    if store.is_wanted(sha256) and store.discard(sha256, state):
        node.counters.add("corrupted_files")
        node.problems.report(Problem.CORRUPTION)
        log.error("object_corrupted", extra={"sha256": sha256.hex(), "action": "removed"})
    return False
