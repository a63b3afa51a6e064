"""S3-FIFO: which objects are evicted when there is no room.

New objects enter a small queue (a tenth of the room). An object that is read more than once there
moves to the main queue; the others are evicted, and only their hash is remembered: if one returns,
it enters the main queue. There the oldest is evicted unless it was read since; that uses up one
read.
Source: Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023.

The queues are rows of the inventory, so they need no memory and survive a restart.
"""

import sqlite3
from dataclasses import dataclass
from typing import Final

from edgecache.worker.store import inventory
from edgecache.worker.store.inventory import MAIN, SMALL, InventoryRow

BLOCK_BYTES: Final = 4096
SMALL_SHARE: Final = 10
# In the small queue one read may be the fill's own consumer; the second shows that it is wanted.
WORTH_KEEPING: Final = 2
FEWEST_GHOSTS: Final = 1000


def footprint(size: int) -> int:
    """Return what an object takes on the disk: whole blocks, at least one."""
    return max(1, -(-size // BLOCK_BYTES)) * BLOCK_BYTES


@dataclass(slots=True)
class Totals:
    """What the queues hold: footprints and numbers. place: the last one that was assigned."""

    small_bytes: int = 0
    main_bytes: int = 0
    objects: int = 0
    evictions: int = 0
    place: int = 0

    @property
    def used_bytes(self) -> int:
        """What all objects take on the disk."""
        return self.small_bytes + self.main_bytes

    def count(self, queue: int, change_bytes: int, objects: int) -> None:
        """Note that objects were added, removed or moved to another queue."""
        if queue == SMALL:
            self.small_bytes += change_bytes
        else:
            self.main_bytes += change_bytes
        self.objects += objects

    def next_place(self) -> int:
        """Return the place at a queue's end."""
        self.place += 1
        return self.place


def read_totals(db: sqlite3.Connection) -> Totals:
    totals = Totals(evictions=inventory.get_meta(db, "evictions"))
    blocks = f"SUM(MAX(1, (size + {BLOCK_BYTES - 1}) / {BLOCK_BYTES}) * {BLOCK_BYTES})"
    for queue, used, count, place in db.execute(
        f"SELECT queue, {blocks}, COUNT(*), MAX(place) FROM objects GROUP BY queue"  # noqa: S608 - constants
    ):
        totals.count(queue, used, count)
        totals.place = max(totals.place, place)
    (ghost,) = db.execute("SELECT MAX(place) FROM ghosts").fetchone()
    totals.place = max(totals.place, ghost or 0)
    return totals


def queue_for(db: sqlite3.Connection, sha256: bytes) -> int:
    """Return the queue that a new object enters; its ghost, if any, is removed."""
    found = db.execute("DELETE FROM ghosts WHERE sha256 = ?", (sha256,)).rowcount
    return MAIN if found else SMALL


def next_victim(db: sqlite3.Connection, totals: Totals, capacity_bytes: int) -> InventoryRow | None:
    """Return the object to evict, or None; advances the queues on the way.

    Deleted objects come first. The caller removes the victim (``evict``).
    """
    unwanted = inventory.first(db, "unlink_at IS NOT NULL", "unlink_at")
    if unwanted is not None:
        return unwanted
    while totals.objects:
        is_small_full = totals.small_bytes * SMALL_SHARE >= capacity_bytes
        small = inventory.first(db, f"queue = {SMALL}", "place") if is_small_full else None
        main = None if small else inventory.first(db, f"queue = {MAIN}", "place")
        row = small or main or inventory.first(db, f"queue = {SMALL}", "place")
        if row is None:
            return None
        if not _is_spared(db, totals, row):
            return row
    return None


def evict(db: sqlite3.Connection, totals: Totals, victim: InventoryRow) -> None:
    """Remove a victim from the inventory; its hash stays as a ghost if it left the small queue."""
    inventory.remove(db, victim.sha256, is_reported=victim.is_unlink_scheduled)
    totals.count(victim.queue, -footprint(victim.size), -1)
    if victim.is_unlink_scheduled:
        return
    totals.evictions += 1
    inventory.set_meta(db, "evictions", totals.evictions)
    if victim.queue == SMALL:
        db.execute(
            "INSERT OR REPLACE INTO ghosts VALUES (?, ?)", (victim.sha256, totals.next_place())
        )
        _trim_ghosts(db, totals)


def _is_spared(db: sqlite3.Connection, totals: Totals, row: InventoryRow) -> bool:
    """Move the row on if its reads earned it; say whether they did."""
    if row.queue == SMALL:
        if row.reads < WORTH_KEEPING:
            return False
        _move(db, totals, row, reads=0)
        return True
    if row.reads == 0:
        return False
    _move(db, totals, row, reads=row.reads - 1)
    return True


def _move(db: sqlite3.Connection, totals: Totals, row: InventoryRow, *, reads: int) -> None:
    db.execute(
        "UPDATE objects SET queue = ?, place = ?, reads = ? WHERE sha256 = ?",
        (MAIN, totals.next_place(), reads, row.sha256),
    )
    totals.count(row.queue, -footprint(row.size), 0)
    totals.count(MAIN, footprint(row.size), 0)


def _trim_ghosts(db: sqlite3.Connection, totals: Totals) -> None:
    """Keep about as many ghosts as there are objects; places are given out one by one."""
    oldest = totals.place - max(FEWEST_GHOSTS, 2 * totals.objects)
    db.execute("DELETE FROM ghosts WHERE place < ?", (oldest,))
