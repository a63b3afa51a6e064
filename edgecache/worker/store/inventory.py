"""The inventory: an SQLite file with the objects held, their queues, and unreported changes.

The disk is the truth for bytes: after a crash a scan corrects the rows (``recovery``). Calls are
short, and callers hold the store's lock (one connection writes), except for ``InventoryReader``,
which has its own connection.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE: Final = "inventory.sqlite3"
VERSION: Final = 1
BUSY_TIMEOUT_S: Final = 5.0
REMEMBERED_SIZES: Final = 4096
READER_CACHE_KIB: Final = 512
# What a read adds at most: S3-FIFO counts to three.
MAX_READS: Final = 3

SMALL: Final = 0
MAIN: Final = 1
ROW: Final = "sha256, size, queue, place, reads, unlink_at IS NOT NULL"

_SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    # queue, place: its position in S3-FIFO. unlink_at: Unix seconds; set on deletion.
    """CREATE TABLE objects (
        sha256 BLOB PRIMARY KEY, size INTEGER NOT NULL, queue INTEGER NOT NULL,
        place INTEGER NOT NULL, reads INTEGER NOT NULL DEFAULT 0, verified_at INTEGER NOT NULL,
        unlink_at INTEGER) WITHOUT ROWID""",
    "CREATE UNIQUE INDEX objects_queue ON objects (queue, place)",
    "CREATE INDEX objects_verified ON objects (verified_at)",
    "CREATE INDEX objects_unlink_at ON objects (unlink_at) WHERE unlink_at IS NOT NULL",
    # Hashes evicted from the small queue without a read: if one returns it was worth keeping.
    "CREATE TABLE ghosts (sha256 BLOB PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE INDEX ghosts_place ON ghosts (place)",
    # Changes that are not reported to the brain yet. size: NULL for a removed object.
    """CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT, sha256 BLOB NOT NULL, size INTEGER)""",
    # Files that were found without a row, and are not verified yet.
    "CREATE TABLE strangers (sha256 BLOB PRIMARY KEY, size INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE receipts (
        ticket_id TEXT PRIMARY KEY, ticket TEXT NOT NULL, expires_at INTEGER NOT NULL,
        cap INTEGER NOT NULL, reserved INTEGER NOT NULL, served INTEGER NOT NULL,
        started_at INTEGER NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX receipts_expired ON receipts (expires_at)",
    f"PRAGMA user_version = {VERSION}",
)


class InventoryUnusable(Exception):
    """The file is not an inventory of this version; its rows must be recreated from the disk."""


@dataclass(frozen=True, slots=True)
class InventoryRow:
    """An object that is held.

    place: in its queue; the lowest is the oldest. is_unlink_scheduled: deleted, and its file is
    removed soon.
    """

    sha256: bytes
    size: int
    queue: int
    place: int
    reads: int = 0
    is_unlink_scheduled: bool = False


@dataclass(frozen=True, slots=True)
class InventoryChange:
    """An unreported change: an object was added (size) or removed (None)."""

    id: int
    sha256: bytes
    size: int | None


def open_inventory(folder: Path) -> sqlite3.Connection:
    """Open the inventory for writing, or create it.

    Raises InventoryUnusable, and OSError or sqlite3.Error when the disk fails.
    """
    db = _open(folder)
    try:
        _prepare(db)
    except sqlite3.OperationalError:
        # The disk is full or fails, which is no reason to discard the inventory.
        db.close()
        raise
    except (sqlite3.DatabaseError, InventoryUnusable) as error:
        db.close()
        raise InventoryUnusable from error
    return db


def _prepare(db: sqlite3.Connection) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (check,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if version not in {0, VERSION} or check != "ok":
        raise InventoryUnusable
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA journal_size_limit = 4194304")
    if version == 0:
        with transaction(db):
            for statement in _SCHEMA:
                db.execute(statement)


def remove_inventory(folder: Path) -> None:
    """Remove the file and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        (folder / f"{FILE}{suffix}").unlink(missing_ok=True)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit the block's changes, or none of them."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    try:
        db.execute("COMMIT")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


class InventoryReader:
    """Looks up sizes, on the event loop's own connection: a write elsewhere does not hold it up."""

    def __init__(self, folder: Path) -> None:
        self._db = _open(folder)
        self._db.execute("PRAGMA query_only = ON")
        self._db.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
        self._sizes: dict[bytes, int] = {}

    def size(self, sha256: bytes) -> int | None:
        """Return the size of an object, None when it is not held.

        Sizes are remembered, since a name's never changes; whether the file is there is the disk's
        to say.
        """
        size = self._sizes.get(sha256)
        if size is not None:
            return size
        row = self._db.execute("SELECT size FROM objects WHERE sha256 = ?", (sha256,)).fetchone()
        if row is None:
            return None
        if len(self._sizes) >= REMEMBERED_SIZES:
            self._sizes.clear()
        self._sizes[sha256] = row[0]
        return int(row[0])

    def forget(self, sha256: bytes) -> None:
        """Ask the inventory again the next time."""
        self._sizes.pop(sha256, None)

    def receipt(self, ticket_id: str) -> tuple[int, int, int] | None:
        """Return what a ticket was used for: reserved, served, started_at."""
        found: tuple[int, int, int] | None = self._db.execute(
            "SELECT reserved, served, started_at FROM receipts WHERE ticket_id = ?", (ticket_id,)
        ).fetchone()
        return found


def get_meta(db: sqlite3.Connection, name: str) -> int:
    """Return a stored number, 0 if it does not exist."""
    row = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return row[0] if row else 0


def set_meta(db: sqlite3.Connection, name: str, value: int) -> None:
    """Keep a number under a name."""
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def add(db: sqlite3.Connection, row: InventoryRow, *, verified_at: int) -> None:
    """Note an object that has come."""
    db.execute(
        "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, NULL)",
        (row.sha256, row.size, row.queue, row.place, row.reads, verified_at),
    )
    note_change(db, row.sha256, row.size)


def remove(db: sqlite3.Connection, sha256: bytes, *, is_reported: bool) -> None:
    """Note that an object was removed. is_reported: the brain knows it already."""
    db.execute("DELETE FROM objects WHERE sha256 = ?", (sha256,))
    if not is_reported:
        note_change(db, sha256, None)


def note_change(db: sqlite3.Connection, sha256: bytes, size: int | None) -> None:
    """Record a change for the brain. size: None for a removed object."""
    db.execute("INSERT INTO changes (sha256, size) VALUES (?, ?)", (sha256, size))


def read(db: sqlite3.Connection, sha256: bytes) -> InventoryRow | None:
    """Return an object's row, None when it is not held."""
    found = db.execute(f"SELECT {ROW} FROM objects WHERE sha256 = ?", (sha256,)).fetchone()  # noqa: S608 - constants
    return InventoryRow(*found) if found else None


def first(db: sqlite3.Connection, condition: str, order: str) -> InventoryRow | None:
    """Return the first row that meets a condition. Both are SQL of ours."""
    found = db.execute(
        f"SELECT {ROW} FROM objects WHERE {condition} ORDER BY {order} LIMIT 1"  # noqa: S608 - constants
    ).fetchone()
    return InventoryRow(*found) if found else None


def set_unlink_at(db: sqlite3.Connection, sha256: bytes, unlink_at: int | None) -> None:
    """Set the time of the file's removal; None cancels it."""
    db.execute("UPDATE objects SET unlink_at = ? WHERE sha256 = ?", (unlink_at, sha256))


def due_for_unlink(db: sqlite3.Connection, *, until: int, limit: int) -> list[tuple[bytes, int]]:
    """Return hash and size of objects after their lease."""
    return db.execute(
        "SELECT sha256, size FROM objects WHERE unlink_at <= ? ORDER BY unlink_at LIMIT ?",
        (until, limit),
    ).fetchall()


def add_reads(db: sqlite3.Connection, reads: Mapping[bytes, int]) -> None:
    """Count reads, hash by hash, up to three.

    One statement for all of a count: between two statements a busy event loop may keep the
    interpreter to itself for milliseconds, while the store's lock is held.
    """
    for count in range(1, MAX_READS + 1):
        hashes = [sha256 for sha256, reads_ in reads.items() if min(reads_, MAX_READS) == count]
        if hashes:
            db.execute(
                "WITH RECURSIVE number (i) AS"
                " (SELECT 0 UNION ALL SELECT i + 1 FROM number WHERE i + 1 < :hashes)"
                " UPDATE objects SET reads = MIN(:most, reads + :count) WHERE sha256 IN"
                " (SELECT SUBSTR(:joined, i * 32 + 1, 32) FROM number)",
                {
                    "hashes": len(hashes),
                    "most": MAX_READS,
                    "count": count,
                    "joined": b"".join(hashes),
                },
            )


def page(db: sqlite3.Connection, *, after: bytes, limit: int) -> list[tuple[bytes, int]]:
    """Return hash and size of held objects that are still wanted, by hash, after a hash."""
    return db.execute(
        "SELECT sha256, size FROM objects WHERE sha256 > ? AND unlink_at IS NULL"
        " ORDER BY sha256 LIMIT ?",
        (after, limit),
    ).fetchall()


def changes(db: sqlite3.Connection, limit: int) -> list[InventoryChange]:
    """Return the oldest unreported changes."""
    rows = db.execute("SELECT id, sha256, size FROM changes ORDER BY id LIMIT ?", (limit,))
    return [InventoryChange(*row) for row in rows]


def last_change(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT MAX(id) FROM changes").fetchone()
    return row[0] or 0


def forget_changes(db: sqlite3.Connection, *, up_to: int) -> None:
    """Delete the changes that were reported to the brain."""
    db.execute("DELETE FROM changes WHERE id <= ?", (up_to,))


def oldest_verified(db: sqlite3.Connection) -> tuple[bytes, int] | None:
    """Return hash and size of the least recently verified objects."""
    found: tuple[bytes, int] | None = db.execute(
        "SELECT sha256, size FROM objects WHERE unlink_at IS NULL ORDER BY verified_at LIMIT 1"
    ).fetchone()
    return found


def set_verified(db: sqlite3.Connection, sha256: bytes, at: int) -> None:
    """Note that an object was found to be right. at: Unix seconds."""
    db.execute("UPDATE objects SET verified_at = ? WHERE sha256 = ?", (at, sha256))


def _open(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        folder / FILE, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
