"""What a worker does by itself, again and again: write counts, drop what is due, adopt files."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Final

from edgecache.worker.node import Node
from edgecache.worker.store.recovery import adopt_some
from edgecache.worker.sync import receipts

log = logging.getLogger(__name__)

POLL_S: Final = 0.1
SECOND_S: Final = 1.0
MINUTE_S: Final = 60.0
ADOPTED_AT_ONCE: Final = 500


async def watch_answers(node: Node) -> None:
    """See what clients have taken, a few times a second."""
    while True:
        await asyncio.sleep(POLL_S)
        if len(node.acknowledged):
            node.acknowledged.poll()


async def every(node: Node, period_s: float, do: Callable[[Node], Awaitable[object]]) -> None:
    """Do something again and again; an error of the disk is noted, and it goes on."""
    while True:
        await asyncio.sleep(period_s)
        try:
            await do(node)
        except (OSError, sqlite3.Error) as error:
            node.problems.report_disk(error)


async def write_receipts(node: Node) -> None:
    """Write the counts of tickets that changed."""
    uses = node.receipts.unwritten()
    rows = [use.row() for use in uses]
    if not rows:
        return
    try:
        await node.in_inventory(receipts.write, rows)
    except BaseException:
        node.receipts.not_written(uses)
        raise
    node.receipts.written(uses)


async def unlink_due(node: Node) -> None:
    """Remove the files whose lease is over."""
    while await node.on_disk(node.store.unlink_due, time.time()):
        pass


async def write_reads(node: Node) -> None:
    """Write how often objects were read, so that a crash does not forget which are warm."""
    await node.on_disk(node.store.write_reads)


async def adopt_strangers(node: Node) -> None:
    """Verify the files that a crash left without a row, and take them."""
    while True:
        right, wrong = await node.slowly(adopt_some, node.store, ADOPTED_AT_ONCE)
        node.counters.add("corrupted_files", wrong)
        if not right and not wrong:
            return
        log.info("strangers_looked_at", extra={"right": right, "wrong": wrong})
