"""The store: files and inventory together, one budget, safe to use from several threads.

Every write that concerns both happens under one lock, the file before the row is committed. So a
crash leaves at worst a file without a row, which the next start finds, or a row without a file,
which the first read or the next start drops.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edgecache.protocol.tickets import LEEWAY_S, LIFETIME_LIMIT_S
from edgecache.runtime.verified_files import FileState
from edgecache.worker.store import eviction, inventory
from edgecache.worker.store.eviction import footprint
from edgecache.worker.store.files import Files
from edgecache.worker.store.inventory import InventoryRow, transaction

log = logging.getLogger(__name__)

# A deleted object's file is kept until every ticket for it has expired.
LEASE_S: Final = LIFETIME_LIMIT_S + LEEWAY_S
UNLINK_BATCH: Final = 200
# Reads are counted in memory, and written when room is made or when there are this many.
READS_LIMIT: Final = 10_000


class StoreFull(Exception):
    """There is no room within the budget, and eviction cannot make enough."""


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A complete file that is being stored, under a temporary name."""

    path: Path
    sha256: bytes
    size: int


@dataclass(frozen=True, slots=True)
class StoreUsage:
    """What the store takes and has taken. used_bytes: on the disk, whole blocks."""

    used_bytes: int
    objects: int
    evictions: int


class WorkerStore:
    """What a worker holds."""

    def __init__(self, files: Files, db: sqlite3.Connection, capacity_bytes: int) -> None:
        """Wrap open files and an inventory that fits them (``recovery.open_store``)."""
        self.files = files
        self.capacity_bytes = capacity_bytes
        self._db = db
        self._lock = threading.RLock()
        self._totals = eviction.read_totals(db)
        self._reserved = 0
        self._reads: dict[bytes, int] = {}

    def held(self) -> StoreUsage:
        totals = self._totals
        return StoreUsage(totals.used_bytes, totals.objects, totals.evictions)

    def count_read(self, sha256: bytes) -> None:
        """Note a read, which keeps an object longer. For the event loop's thread alone."""
        reads = self._reads
        if len(reads) < READS_LIMIT:
            reads[sha256] = reads.get(sha256, 0) + 1

    def has(self, sha256: bytes) -> bool:
        """True if an object is held and wanted; its scheduled deletion is cancelled."""
        with self._writing():
            row = inventory.read(self._db, sha256)
            if row is None or self.files.size(sha256) != row.size:
                return False
            if row.is_unlink_scheduled:
                inventory.set_unlink_at(self._db, sha256, None)
                inventory.note_change(self._db, sha256, row.size)
            return True

    def reserve(self, size: int) -> int:
        """Make room for this many bytes and reserve it; return what to ``release`` or ``keep``.

        Raises StoreFull.
        """
        room = footprint(size)
        with self._lock:
            most = self.capacity_bytes - self._reserved - room
            if most < 0 or not self._shrink_to(most):
                raise StoreFull
            self._reserved += room
        return room

    def release(self, room: int) -> None:
        """Release room that was reserved."""
        with self._lock:
            self._reserved -= room

    def keep(self, arrived: Sequence[IncomingFile], *, room: int) -> list[bytes]:
        """Move complete files, verified and synced, into their reserved room; all or none.

        Returns the new objects; the files of those that were held before are deleted. The room is
        released in every case. Raises OSError or sqlite3.Error; then nothing was stored.
        """
        new: list[bytes] = []
        with self._lock:
            self._reserved -= room
            try:
                with self._writing():
                    for each in arrived:
                        if self.has(each.sha256):
                            each.path.unlink()
                            continue
                        self._drop(each.sha256)
                        self._add(each.sha256, each.size)
                        self.files.keep(each.path, each.sha256)
                        new.append(each.sha256)
            except BaseException:
                # Their rows are not there, so the files must not be, either.
                for sha256 in new:
                    self.files.unlink(sha256)
                raise
        # Files of one folder become durable together.
        for sha256 in {sha256[:1]: sha256 for sha256 in new}.values():
            self.files.sync(sha256)
        return new

    def missing(self, hashes: Sequence[bytes]) -> list[bytes]:
        """Return the objects that are not held; scheduled deletions of the others are cancelled."""
        with self._writing():
            return [sha256 for sha256 in hashes if not self.has(sha256)]

    def adopt(self, sha256: bytes, size: int) -> None:
        """Note a file that was found in its place and verified."""
        with self._writing():
            if inventory.read(self._db, sha256) is None:
                self._add(sha256, size)

    def reject(self, sha256: bytes) -> None:
        """Remove a file that was found in a place and is not what its name says."""
        with self._writing():
            if inventory.read(self._db, sha256) is None:
                self.files.unlink(sha256)

    def schedule_unlink(self, sha256: bytes) -> bool:
        """Delete an object at the end of its lease; return whether it was held.

        The brain is notified immediately; until then tickets still read it, and a PUT restores it.
        """
        with self._writing():
            row = inventory.read(self._db, sha256)
            if row is None:
                return False
            if not row.is_unlink_scheduled:
                inventory.set_unlink_at(self._db, sha256, int(time.time()) + LEASE_S)
                inventory.note_change(self._db, sha256, None)
            return True

    def unlink_due(self, now: float) -> int:
        """Remove files after their lease; return how many. now: Unix seconds."""
        with self._writing():
            due = inventory.due_for_unlink(self._db, until=int(now), limit=UNLINK_BATCH)
            for sha256, _ in due:
                self._drop(sha256)
        return len(due)

    def discard(self, sha256: bytes, wrong: FileState | None) -> bool:
        """Remove an object immediately: its bytes are wrong or missing.

        wrong: the state of its file when that was noticed. If the file was stored or altered since,
        it stays, and the result is False.
        """
        with self._writing():
            if self.files.state(sha256) != wrong:
                return False
            self.files.unlink(sha256)
            self._drop(sha256)
            return True

    def is_wanted(self, sha256: bytes) -> bool:
        """True if an object is held, and not about to go."""
        with self._lock:
            row = inventory.read(self._db, sha256)
            return row is not None and not row.is_unlink_scheduled

    def shrink(self) -> None:
        """Evict until the budget is kept: it may have been lowered, or files been found."""
        with self._lock:
            self._shrink_to(self.capacity_bytes - self._reserved)

    def write_reads(self) -> None:
        """Write the reads that were counted in memory."""
        with self._writing():
            reads, self._reads = self._reads, {}
            if reads:
                inventory.add_reads(self._db, reads)

    @contextmanager
    def using(self) -> Iterator[sqlite3.Connection]:
        """Lend the writing connection inside a transaction, to modules with their own rows."""
        with self._writing():
            yield self._db

    def close(self) -> None:
        """Close all; the next start need not scan."""
        with self._lock:
            with suppress(sqlite3.Error):
                self.write_reads()
                with transaction(self._db):
                    inventory.set_meta(self._db, "is_clean", 1)
            self._db.close()
            self.files.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the lock and a transaction; one inside another joins it."""
        with self._lock:
            if self._db.in_transaction:
                yield
                return
            try:
                with transaction(self._db):
                    yield
            except BaseException:
                # What the totals counted was not written.
                self._reload_totals()
                raise

    def _reload_totals(self) -> None:
        with suppress(sqlite3.Error):
            totals = eviction.read_totals(self._db)
            totals.place = max(totals.place, self._totals.place)
            self._totals = totals

    def _shrink_to(self, max_bytes: int) -> bool:
        """Evict until at most this much is used; return whether that was reached.

        What was evicted is written even when it was not enough: the files are deleted.
        """
        if self._totals.used_bytes <= max_bytes:
            return True
        with self._writing():
            self.write_reads()
            while self._totals.used_bytes > max_bytes:
                if not self._evict_one():
                    return False
        return True

    def _add(self, sha256: bytes, size: int) -> None:
        queue = eviction.queue_for(self._db, sha256)
        row = InventoryRow(sha256, size, queue, self._totals.next_place())
        inventory.add(self._db, row, verified_at=int(time.time()))
        self._totals.count(queue, footprint(size), 1)

    def _drop(self, sha256: bytes) -> None:
        """Remove file and row of what may be there."""
        row = inventory.read(self._db, sha256)
        if row is None:
            return
        self.files.unlink(sha256)
        inventory.remove(self._db, sha256, is_reported=row.is_unlink_scheduled)
        self._totals.count(row.queue, -footprint(row.size), -1)

    def _evict_one(self) -> bool:
        victim = eviction.next_victim(self._db, self._totals, self.capacity_bytes)
        if victim is None:
            return False
        self.files.unlink(victim.sha256)
        eviction.evict(self._db, self._totals, victim)
        log.debug("evicted", extra={"sha256": victim.sha256.hex(), "size": victim.size})
        return True
