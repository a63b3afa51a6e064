"""Opening a store: after a crash the inventory is corrected from the files on the disk.

Files without a row are hashed first; until then they are neither served nor reported.
"""

import logging
import sqlite3
from pathlib import Path
from typing import Final

from edgecache.worker.store import inventory
from edgecache.worker.store.files import Files
from edgecache.worker.store.inventory import InventoryUnusable, open_inventory, transaction
from edgecache.worker.store.worker_store import WorkerStore

log = logging.getLogger(__name__)

# Clean shutdown leaves this in the inventory's meta; it holds for the next start alone.
CLEAN: Final = "is_clean"


def open_store(folder: Path, capacity_bytes: int) -> WorkerStore:
    """Open the store of a folder, and correct its inventory if the last worker crashed.

    Raises FolderInUse, OSError, sqlite3.Error.
    """
    files = Files(folder)
    if files.leftovers:
        log.info("half_written_files_removed", extra={"files": files.leftovers})
    try:
        db = open_inventory(folder)
    except InventoryUnusable:
        log.warning("inventory_unusable", extra={"action": "recreated from the disk"})
        inventory.remove_inventory(folder)
        db = open_inventory(folder)
    if not inventory.get_meta(db, CLEAN):
        _reconcile(files, db)
    with transaction(db):
        inventory.set_meta(db, CLEAN, 0)
    store = WorkerStore(files, db, capacity_bytes)
    store.shrink()
    return store


def verify_unlisted_files(store: WorkerStore, limit: int) -> tuple[int, int]:
    """Verify files without a row; keep or remove each. Return how many were right, and wrong."""
    with store.using() as db:
        found = db.execute("SELECT sha256 FROM strangers LIMIT ?", (limit,)).fetchall()
    right = sum(_adopt(store, sha256) for (sha256,) in found)
    store.shrink()
    return right, len(found) - right


def _adopt(store: WorkerStore, sha256: bytes) -> bool:
    state = store.files.verify(sha256)
    with store.using() as db:
        if state is not None:
            store.adopt(sha256, state.size)
        else:
            store.reject(sha256)
            log.error("stranger_corrupted", extra={"sha256": sha256.hex(), "action": "removed"})
        db.execute("DELETE FROM strangers WHERE sha256 = ?", (sha256,))
    return state is not None


def _reconcile(files: Files, db: sqlite3.Connection) -> None:
    """Drop rows without their file, and note files without a row."""
    db.execute("CREATE TEMP TABLE found (sha256 BLOB PRIMARY KEY, size INTEGER) WITHOUT ROWID")
    with transaction(db):
        db.executemany("INSERT INTO found VALUES (?, ?)", files.walk())
        gone = db.execute(
            "SELECT objects.sha256 FROM objects LEFT JOIN found USING (sha256)"
            " WHERE found.size IS NOT objects.size"
        ).fetchall()
        for (sha256,) in gone:
            files.unlink(sha256)
            inventory.remove(db, sha256, is_reported=False)
        db.executemany("DELETE FROM found WHERE sha256 = ?", gone)
        strangers = db.execute(
            "INSERT OR REPLACE INTO strangers SELECT found.sha256, found.size FROM found"
            " LEFT JOIN objects USING (sha256) WHERE objects.sha256 IS NULL"
        ).rowcount
    db.execute("DROP TABLE found")
    if gone or strangers:
        log.warning("inventory_set_right", extra={"rows_dropped": len(gone), "found": strangers})
