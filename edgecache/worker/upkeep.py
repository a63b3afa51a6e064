"""A worker's periodic tasks: write counts, delete due objects, adopt files."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Final

from edgecache.worker import receipts
from edgecache.worker.node import CacheWorker
from edgecache.worker.store.recovery import verify_unlisted_files

log = logging.getLogger(__name__)

SECOND_S: Final = 1.0
MINUTE_S: Final = 60.0
FILES_PER_STEP: Final = 500


async def every(
    node: CacheWorker, period_s: float, do: Callable[[CacheWorker], Awaitable[object]]
) -> None:
    """Repeat an action; an error of the disk is noted, and the action is repeated."""
    while True:
        await asyncio.sleep(period_s)
        try:
            await do(node)
        except (OSError, sqlite3.Error) as error:
            node.problems.report_disk(error)


async def write_receipts(node: CacheWorker) -> None:
    """Write the counts of tickets that changed."""
    uses = node.receipts.unwritten()
    rows = [use.row() for use in uses]
    if not rows:
        return
    try:
        await node.run_with_inventory(receipts.write, rows)
    except BaseException:
        node.receipts.not_written(uses)
        raise
    node.receipts.written(uses)


async def unlink_due(node: CacheWorker) -> None:
    """Remove files after their lease."""
    while await node.run_on_disk(node.store.unlink_due, time.time()):
        pass


async def write_reads(node: CacheWorker) -> None:
    """Write how often objects were read, so that a crash does not forget which are warm."""
    await node.run_on_disk(node.store.write_reads)


async def verify_unlisted(node: CacheWorker) -> None:
    """Verify the files that a crash left without a row, and take them."""
    while True:
        right, wrong = await node.run_in_background(
            verify_unlisted_files, node.store, FILES_PER_STEP
        )
        node.counters.add("corrupted_files", wrong)
        if not right and not wrong:
            return
        log.info("strangers_looked_at", extra={"right": right, "wrong": wrong})
