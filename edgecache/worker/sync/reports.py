"""Reports to the brain: the inventory, its changes, and what clients read themselves.

Everything waits in the inventory until the brain has answered, so it is sent at least once.
"""

import asyncio
import logging
import sqlite3
from typing import Final

from edgecache.protocol.inventories import HeldBlob, Inventory, InventoryAnswer
from edgecache.protocol.names import INVENTORY_PAGE, RECEIPT_BATCH, worker_path
from edgecache.protocol.receipts import Receipts as ReceiptBatch
from edgecache.protocol.receipts import ReceiptsAnswer
from edgecache.worker import receipts
from edgecache.worker.brain_calls import BrainCallError, NodeRemoved
from edgecache.worker.node import CacheWorker, Status
from edgecache.worker.store import inventory

log = logging.getLogger(__name__)

PAUSE_S: Final = 0.5
HOUR_S: Final = 3600
# After a refusal or a failure the next heartbeat that is answered tries again.
BEFORE_THE_FIRST: Final = b""


async def reports(node: CacheWorker) -> None:
    """Send reports while the brain answers, until the node is removed."""
    while node.status is not Status.REMOVED:
        await node.brain_answered.wait()
        try:
            await report(node)
        except NodeRemoved:
            node.remove()
        except BrainCallError as error:
            log.warning("report_failed", extra={"reason": str(error)})
            node.brain_answered.clear()
        except (OSError, sqlite3.Error) as error:
            # Changes in the inventory are reported once the disk works again.
            node.problems.report_disk(error)
            node.brain_answered.clear()
        await asyncio.sleep(PAUSE_S)


async def report(node: CacheWorker) -> None:
    """Send everything once. Raises BrainCallError."""
    if node.wants_inventory:
        await send_inventory(node)
    while await send_changes(node):
        pass
    while await send_receipts(node):
        pass


async def send_inventory(node: CacheWorker) -> None:
    """Send the full inventory in pages; earlier changes need no report then."""
    node.wants_inventory = False
    try:
        reported = await node.run_with_inventory(inventory.last_change)
        after, number, is_last = BEFORE_THE_FIRST, 0, False
        while not is_last:
            rows = await node.run_with_inventory(inventory.page, after=after, limit=INVENTORY_PAGE)
            is_last = len(rows) < INVENTORY_PAGE
            held = tuple(HeldBlob(sha256, size) for sha256, size in rows)
            await _send(node, full=True, added=held, page=number, last=is_last)
            after, number = (rows[-1][0] if rows else after), number + 1
    except BaseException:
        node.wants_inventory = True
        raise
    await node.run_with_inventory(inventory.forget_changes, up_to=reported)
    log.info("inventory_sent", extra={"pages": number})


async def send_changes(node: CacheWorker) -> bool:
    """Send the oldest changes; return whether there were any.

    An object that was added and removed is reported as removed.
    """
    changes = await node.run_with_inventory(inventory.changes, INVENTORY_PAGE)
    if not changes:
        return False
    last = {change.sha256: change.size for change in changes}
    added = tuple(HeldBlob(sha256, size) for sha256, size in last.items() if size is not None)
    removed = tuple(sha256 for sha256, size in last.items() if size is None)
    await _send(node, full=False, added=added, removed=removed)
    await node.run_with_inventory(inventory.forget_changes, up_to=changes[-1].id)
    return True


async def send_receipts(node: CacheWorker) -> bool:
    """Send the oldest final receipts, of one hour; return whether more may wait.

    Receipts that the brain neither accepts nor refuses are sent again without the refused ones.
    """
    now, without = node.clock.now(), node.receipts.open()
    lines = await node.run_with_inventory(
        receipts.due, now=now, limit=RECEIPT_BATCH, without=without
    )
    if not lines:
        return False
    hour = lines[0][1].served_at // HOUR_S
    sent = [(ticket_id, line) for ticket_id, line in lines if line.served_at // HOUR_S == hour]
    batch = ReceiptBatch(tuple(line for _, line in sent))
    path = worker_path(node.options.node_id, "receipts")
    answer = await node.brain.call("POST", path, ReceiptsAnswer, batch)
    ids = [ticket_id for ticket_id, _ in sent]
    refused = {one.place: one.code for one in answer.refused if one.place < len(ids)}
    for place, code in refused.items():
        log.warning("receipt_refused", extra={"ticket_id": ids[place], "code": code})
    accepted = set(answer.accepted).intersection(ids)
    done = accepted | {ids[place] for place in refused}
    node.counters.add("receipts_accepted", len(accepted))
    node.counters.add("receipts_refused", len(refused))
    await node.run_with_inventory(receipts.forget, list(done))
    # With an answer about none of them, the next report tries again.
    return bool(done) and (len(done) < len(lines) or len(lines) == RECEIPT_BATCH)


async def _send(
    node: CacheWorker,
    *,
    full: bool,
    added: tuple[HeldBlob, ...] = (),
    removed: tuple[bytes, ...] = (),
    page: int = 0,
    last: bool = True,
) -> None:
    """Send one page, and let go what the brain does not know."""
    path = worker_path(node.options.node_id, "inventory")
    async with node.talking:
        message = Inventory(
            node.incarnation, node.next_sequence(), full, added, removed, page, last
        )
        answer = await node.brain.call("POST", path, InventoryAnswer, message)
    for sha256 in answer.unknown:
        if await node.run_on_disk(node.store.schedule_unlink, sha256):
            log.info("unknown_object_dropped", extra={"sha256": sha256.hex()})
