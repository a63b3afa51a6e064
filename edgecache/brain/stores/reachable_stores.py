"""The stores that this brain reaches, and the one that new writes go to.

Which one that is, the database says: ``movestore`` changes it while brains run. Each brain notes
which stores it reaches, and the one that all its writes go to.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from common.machine.errors import StartError
from edgecache.brain.conf.stores import DATA_FOLDER, StoreSettings
from edgecache.brain.core.background import PeriodicTask, wait_for_wakeup
from edgecache.brain.core.errors import DatabaseUnavailable, StorageFull, StoreUnavailable
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase, Row
from edgecache.brain.disk.data_directory import objects_folder
from edgecache.brain.stores.byte_store import ByteStore
from edgecache.brain.stores.folder_store import FolderStore
from edgecache.brain.stores.object_store import open_object_store
from edgecache.brain.stores.stored_blobs import BlobLocation
from edgecache.runtime.threads import FairThreads

log = structlog.get_logger(__name__)

TOPIC: Final = "store"
EVERY_S: Final = 2.0
TAG_BYTES: Final = 8

ADD: Final = (
    "INSERT INTO brain_store (name, tag) SELECT name, tag"
    " FROM unnest(%s::text[], %s::text[]) given (name, tag) ON CONFLICT (name) DO NOTHING"
)
ROWS: Final = "SELECT id, name, tag, is_active FROM brain_store ORDER BY id"
LOCK: Final = "SELECT pg_advisory_xact_lock(7313002)"
CHOOSE: Final = (
    "UPDATE brain_store SET is_active = true"
    " WHERE NOT EXISTS (SELECT FROM brain_store WHERE is_active) AND name = %s"
)
CONFIRM: Final = (
    "UPDATE brain_braininstance SET stores = %(stores)s::integer[],"
    " store_id = %(confirmed)s::integer WHERE id = %(brain)s"
    " AND (stores <> %(stores)s::integer[] OR store_id IS DISTINCT FROM %(confirmed)s::integer)"
)


class StoreError(StartError):
    """A store that holds objects, or takes them, is not configured."""


@dataclass(frozen=True, slots=True)
class KnownStore:
    """A store that this brain reaches."""

    id: int
    name: str
    tag: str
    store: ByteStore

    @property
    def is_local(self) -> bool:
        """True if its bytes are in the data directory, whose disk has a budget."""
        return self.name == DATA_FOLDER


class Stores(PeriodicTask):
    """This brain's stores."""

    def __init__(
        self,
        database: BrainDatabase,
        coherence: Coherence,
        data_dir: Path,
        configured: Sequence[StoreSettings] = (StoreSettings(),),
        *,
        threads: FairThreads | None = None,
    ) -> None:
        """threads: for the files of folders."""
        self._database = database
        self._coherence = coherence
        self._configured = configured
        self._opened = {each.name: open_store(each, data_dir, threads) for each in configured}
        self._known: dict[int, KnownStore] = {}
        self._active: KnownStore | None = None
        self._writing: Counter[int | None] = Counter()
        self._wakeup = asyncio.Event()
        super().__init__("stores", self.refresh, lambda: wait_for_wakeup(self._wakeup, EVERY_S))
        coherence.subscribe(TOPIC, self._wakeup.set)

    async def start(self) -> None:
        """Read which store is written to; without PostgreSQL continue in the background.

        Raises StoreError.
        """
        try:
            await self.refresh()
        except DatabaseUnavailable:
            log.warning("stores_not_read")
            self._wakeup.set()
        await super().start()

    async def stop(self) -> None:
        """Stop, and close the stores' connections."""
        await super().stop()
        for store in self._opened.values():
            if store is not None:
                await store.close()

    async def refresh(self) -> None:
        """Follow the database, and note what this brain reaches and where its writes go.

        Raises StoreError, DatabaseUnavailable.
        """
        rows = await self._read()
        self._known = {
            row.id: KnownStore(row.id, row.name, row.tag, self._opened[row.name])
            for row in rows
            if row.name in self._opened
        }
        active = next((row for row in rows if row.is_active), None)
        if active is None or active.id not in self._known:
            self._active = None
            raise StoreError(
                f"Objects are written to {active.name if active else 'no store'}: name that store "
                "in ZBRAIN_STORE_URL or ZBRAIN_STORE_NEXT_URL. manage.py movestore changes it."
            )
        self._active = self._known[active.id]
        others = sum(self._writing.values()) - self._writing[active.id]
        confirmed = None if others else active.id
        await self._database.run(
            CONFIRM,
            {
                "stores": sorted(self._known),
                "confirmed": confirmed,
                "brain": self._coherence.brain_id,
            },
        )

    @property
    def active(self) -> KnownStore | None:
        """Return what new writes go to; None while it is not known."""
        return self._active

    @contextmanager
    def open_write(self) -> Iterator[KnownStore]:
        """Return the store of a write; the write ends with the block.

        Raises StoreUnavailable while the store is not known.
        """
        target = self._active
        if target is None:
            raise StoreUnavailable
        self._writing[target.id] += 1
        try:
            yield target
        finally:
            self._writing[target.id] -= 1
            if self._active is not None and target.id != self._active.id:
                self._wakeup.set()

    def known(self, store_id: int) -> KnownStore:
        """Return a store. Raises StoreUnavailable for one that is not configured here."""
        found = self._known.get(store_id)
        if found is None:
            raise StoreUnavailable("A store that this needs is not configured here.")
        return found

    @property
    def has_folders(self) -> bool:
        """True if a store is a folder, so that its bytes are files."""
        return any(isinstance(known.store, FolderStore) for known in self._known.values())

    def file(self, at: BlobLocation) -> Path | None:
        """Return the file of some bytes, which may not exist; None if they are in no folder."""
        known = self._known.get(at.store_id)
        return None if known is None else known.store.file(at.name)

    def all(self) -> Sequence[KnownStore]:
        """Return every store that this brain reaches."""
        return tuple(self._known.values())

    async def _read(self) -> list[Row]:
        rows = await self._database.all(ROWS)
        names = {row.name for row in rows}
        is_chosen = any(row.is_active for row in rows)
        if is_chosen and names.issuperset(self._opened):
            return rows
        wanted = [*self._opened]
        async with self._database.transaction() as connection:
            await connection.run(LOCK)
            tags = [secrets.token_hex(TAG_BYTES) for _ in wanted]
            await connection.run(ADD, [wanted, tags])
            await connection.run(CHOOSE, [self._configured[0].name])
            return await connection.all(ROWS)


def open_store(
    chosen: StoreSettings, data_dir: Path = Path(), threads: FairThreads | None = None
) -> ByteStore:
    """Return the driver of a store.

    data_dir: for ``file://`` alone, which is in it. threads: for files; a brain has some.
    """
    if chosen.url == DATA_FOLDER:
        return FolderStore(objects_folder(data_dir), StorageFull, threads=threads)
    if chosen.parts.scheme == "file":
        return FolderStore(Path(chosen.parts.path), threads=threads)
    return open_object_store(chosen)
