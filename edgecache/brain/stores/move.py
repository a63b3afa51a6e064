"""Moving everything to another store while it is read and written (``manage.py movestore``).

First every brain sends new writes to the target; then each blob and each part is copied, checked
and committed by compare-and-set: a move names the old value, so a row that was changed concurrently
stays as it is. The old bytes stay for a day, because readers may have looked up their location
before. An interrupted move is continued by the next one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, LiteralString

from edgecache.brain.core.errors import OriginChanged, StoreMissing, StoreUnavailable
from edgecache.brain.core.values import EnvironmentKey, Span, StagedFile
from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase, Row, Statement
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.reachable_stores import LOCK, TOPIC, KnownStore, Stores
from edgecache.brain.stores.stored_blobs import BlobLocation, NewBlob

# The data directory's id is NULL: its bytes have no row, or one without a store.
BLOBS: Final[LiteralString] = (
    "SELECT l.id, l.organization_id, l.environment_pk, l.store_id, l.name,"
    " l.name AS source, b.sha256, b.size"
    " FROM brain_storedblob l JOIN brain_blob b ON b.sha256 = l.blob_id"
    " WHERE l.store_id <> %s AND l.id > %s ORDER BY l.id LIMIT %s"
)
FILES: Final[LiteralString] = (
    "SELECT s.id, k.organization_id, k.environment_pk, NULL AS store_id, '' AS name,"
    " encode(s.blob_id, 'hex') AS source, b.sha256, b.size"
    " FROM brain_storedobject s JOIN brain_bucket k ON k.id = s.bucket_id"
    " JOIN brain_blob b ON b.sha256 = s.blob_id"
    " WHERE s.id > %s AND NOT EXISTS (SELECT FROM brain_storedblob l"
    " WHERE l.blob_id = s.blob_id AND l.organization_id = k.organization_id"
    " AND l.environment_pk = k.environment_pk) ORDER BY s.id LIMIT %s"
)
PARTS: Final[LiteralString] = (
    "SELECT p.id, k.organization_id, k.environment_pk, p.store_id, p.file AS name,"
    " p.file AS source, p.size, p.etag"
    " FROM brain_uploadpart p JOIN brain_upload u ON u.id = p.upload_id"
    " JOIN brain_bucket k ON k.id = u.bucket_id"
    " WHERE p.store_id IS DISTINCT FROM %s AND p.id > %s ORDER BY p.id LIMIT %s"
)
MOVE_BLOB: Final = (
    "UPDATE brain_storedblob SET store_id = %s, name = %s, stored_at = now()"
    " WHERE id = %s AND store_id = %s AND name = %s RETURNING id"
)
MOVE_BLOB_TO_FILE: Final = (
    "DELETE FROM brain_storedblob WHERE id = %s AND store_id = %s AND name = %s RETURNING id"
)
IS_STORED: Final = (
    "SELECT 1 FROM brain_storedobject s JOIN brain_bucket k ON k.id = s.bucket_id"
    " WHERE s.blob_id = %s AND k.organization_id = %s AND k.environment_pk = %s LIMIT 1"
)
IS_PART: Final = "SELECT 1 FROM brain_uploadpart WHERE id = %s AND file = %s"
HOLD: Final = "SELECT 1 FROM brain_blob WHERE sha256 = %s FOR KEY SHARE"
MOVE_PART: Final = (
    "UPDATE brain_uploadpart SET store_id = %s, file = %s"
    " WHERE id = %s AND store_id IS NOT DISTINCT FROM %s AND file = %s RETURNING id"
)
DISCARD: Final = (
    "INSERT INTO brain_discardedbytes (store_id, name, due_at)"
    " VALUES (%s, %s, now() + make_interval(secs => %s))"
)
LEFT: Final = (
    "SELECT count(*) AS objects, coalesce(sum(b.size), 0)::bigint AS bytes FROM"
    " (SELECT DISTINCT s.blob_id, k.organization_id, k.environment_pk"
    " FROM brain_storedobject s JOIN brain_bucket k ON k.id = s.bucket_id) held"
    " JOIN brain_blob b ON b.sha256 = held.blob_id"
    " LEFT JOIN brain_storedblob l ON l.blob_id = held.blob_id"
    " AND l.organization_id = held.organization_id AND l.environment_pk = held.environment_pk"
    " WHERE l.store_id IS DISTINCT FROM %s"
)
LEFT_PARTS: Final = (
    "SELECT count(*) AS parts, coalesce(sum(size), 0)::bigint AS bytes FROM brain_uploadpart"
    " WHERE store_id IS DISTINCT FROM %s"
)
BRAINS: Final = (
    "SELECT id, %(target)s = ANY(stores) AS reaches, store_id IS NOT DISTINCT FROM %(target)s"
    " AS writes FROM brain_braininstance WHERE lease_until > clock_timestamp() ORDER BY id"
)


STEP: Final = 200
# The move ends after this many consecutive failures of the store.
FAILURES_LIMIT: Final = 20
COMMIT_TIMEOUT_S: Final = 60.0
COUNT_TIMEOUT_S: Final = 600.0
POLL_S: Final = 0.2

# True: moved; False: there was nothing left to move.
MoveOne = Callable[[Row], Awaitable[bool]]


@dataclass(slots=True)
class MoveProgress:
    """What a move has done. failed: names of what could not be moved, the first ones."""

    moved: int = 0
    moved_bytes: int = 0
    failed: int = 0
    reasons: list[str] = field(default_factory=list)

    def fail(self, reason: str) -> None:
        self.failed += 1
        if len(self.reasons) < FAILURES_LIMIT:
            self.reasons.append(reason)


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is not in the target yet."""

    objects: int
    parts: int
    bytes: int


class Move:
    """One run of a move."""

    def __init__(
        self,
        database: BrainDatabase,
        coherence: Coherence,
        data_directory: DataDirectory,
        stores: Stores,
        target: KnownStore,
        *,
        at_once: int = 4,
        on_progress: Callable[[MoveProgress], None] = lambda _progress: None,
    ) -> None:
        self.progress = MoveProgress()
        self._database = database
        self._coherence = coherence
        self._data_directory = data_directory
        self._stores = stores
        self.target = target
        # The id of the store in rows; None for the data directory.
        self._target_id = None if target.store is None else target.id
        self._permits = asyncio.Semaphore(at_once)
        self._on_progress = on_progress
        self._failures = 0

    async def left(self) -> Remainder:
        """Return what the target does not have yet. Raises DatabaseUnavailable."""
        async with self._database.transaction(timeout_s=COUNT_TIMEOUT_S) as connection:
            blobs = await connection.one(LEFT, [self._target_id])
            parts = await connection.one(LEFT_PARTS, [self._target_id])
        if blobs is None or parts is None:
            return Remainder(0, 0, 0)
        return Remainder(blobs.objects, parts.parts, blobs.bytes + parts.bytes)

    async def brains(self) -> list[Row]:
        """Return the running brains: id, whether it reaches the target, and writes only there.

        Raises DatabaseUnavailable.
        """
        return await self._database.all(BRAINS, {"target": self.target.id})

    async def redirect(self, *, timeout_s: float) -> bool:
        """Send new writes to the target; False when a brain has not confirmed it in time.

        Raises DatabaseUnavailable.
        """
        async with self._coherence.transaction(wait_for_acks=False) as change:
            await change.run(LOCK)
            # In two statements: at no moment may two rows be active.
            await change.run("UPDATE brain_store SET is_active = false WHERE is_active")
            await change.run(
                "UPDATE brain_store SET is_active = true WHERE id = %s", [self.target.id]
            )
            change.announce(TOPIC)
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not all(row.writes for row in await self.brains()):
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def run(self) -> None:
        """Move everything; what fails is counted and stays in its store.

        Raises StoreUnavailable after consecutive failures of a store, DatabaseUnavailable.
        """
        if self.target.store is not None:
            await self._each(FILES, (), self._move_blob)
        await self._each(BLOBS, (self._target_id or 0,), self._move_blob)
        await self._each(PARTS, (self._target_id,), self._move_part)

    async def _each(
        self, rows_of: LiteralString, params: Sequence[int | None], move: MoveOne
    ) -> None:
        after = 0
        while rows := await self._database.all(rows_of, [*params, after, STEP]):
            after = rows[-1].id
            # Several keys may share a file.
            distinct = {(row.organization_id, row.environment_pk, row.source): row for row in rows}
            await asyncio.gather(*(self._one(row, move) for row in distinct.values()))
            self._on_progress(self.progress)
            if self._failures >= FAILURES_LIMIT:
                raise StoreUnavailable("A store does not answer.")

    async def _one(self, row: Row, move: MoveOne) -> None:
        async with self._permits:
            if self._failures >= FAILURES_LIMIT:
                return
            try:
                is_moved = await move(row)
            except StoreUnavailable:
                self._failures += 1
                self.progress.fail(f"{row.source}: the store does not answer")
            except (StoreMissing, OriginChanged, FileNotFoundError):
                self.progress.fail(f"{row.source}: its bytes are missing or altered")
            else:
                self._failures = 0
                if is_moved:
                    self.progress.moved += 1
                    self.progress.moved_bytes += row.size

    # --- blobs ------------------------------------------------------------------------------

    async def _move_blob(self, row: Row) -> bool:
        tenant = EnvironmentKey(row.organization_id, row.environment_pk)
        body = self._bytes(row, self._data_directory.origin_path(row.sha256))
        wanted = (IS_STORED, [row.sha256, *tenant])
        async with self._copied(body, wanted) as staged:
            if staged is None:
                return False
            if staged.manifest.sha256 != row.sha256:
                raise StoreMissing
            if self.target.store is None:
                return await self._commit_file(row, staged)
            async with self._written(tenant, stored_blobs.OBJECTS, staged) as new:
                return await self._commit_blob(row, new)

    async def _commit_blob(self, row: Row, new: NewBlob) -> bool:
        async with self._coherence.transaction(
            wait_for_acks=False, timeout_s=COMMIT_TIMEOUT_S
        ) as change:
            if row.store_id is None:
                if not await self._hold(change, row):
                    return False
                await stored_blobs.record(change, [new])
                return True
            stored_blobs.check_fresh(new.began)
            moved = await change.one(MOVE_BLOB, [*new.at, row.id, row.store_id, row.name])
            if moved is not None:
                await self._discard(change, row)
        return moved is not None

    async def _commit_file(self, row: Row, staged: StagedFile) -> bool:
        async with self._coherence.transaction(
            wait_for_acks=False, timeout_s=COMMIT_TIMEOUT_S
        ) as change:
            if not await self._hold(change, row):
                return False
            moved = await change.one(MOVE_BLOB_TO_FILE, [row.id, row.store_id, row.name])
            if moved is not None:
                path = self._data_directory.origin_path(row.sha256)
                await self._data_directory.run(self._data_directory.place, staged, path)
                await self._discard(change, row)
        return moved is not None

    async def _hold(self, change: AnnouncingTransaction, row: Row) -> bool:
        """Keep garbage collection from the blob; False if the environment no longer needs it."""
        held = await change.one(HOLD, [row.sha256])
        tenant = [row.organization_id, row.environment_pk]
        return held is not None and await change.one(IS_STORED, [row.sha256, *tenant]) is not None

    # --- parts ------------------------------------------------------------------------------

    async def _move_part(self, row: Row) -> bool:
        tenant = EnvironmentKey(row.organization_id, row.environment_pk)
        body = self._bytes(row, self._data_directory.part_path(row.name))
        async with self._copied(body, (IS_PART, [row.id, row.name])) as staged:
            if staged is None:
                return False
            if staged.manifest.md5.hex() != row.etag:
                raise StoreMissing
            if self.target.store is None:
                return await self._commit_part(
                    row, None, await self._data_directory.keep_part(staged)
                )
            async with self._written(tenant, stored_blobs.PARTS, staged) as new:
                return await self._commit_part(row, *new.at)

    async def _commit_part(self, row: Row, store_id: int | None, name: str) -> bool:
        async with self._coherence.transaction(
            wait_for_acks=False, timeout_s=COMMIT_TIMEOUT_S
        ) as change:
            moved = await change.one(MOVE_PART, [store_id, name, row.id, row.store_id, row.name])
            # A file of the data directory is removed when it is older than any upload.
            if moved is not None and row.store_id is not None:
                await self._discard(change, row)
        return moved is not None

    # --- both -------------------------------------------------------------------------------

    def _bytes(self, row: Row, path: Path) -> AsyncIterator[bytes]:
        """Return the bytes of a row. path: where they are if they are in no store."""
        span = Span(0, row.size)
        if row.store_id is None:
            return self._data_directory.read(path, span)
        known = self._stores.known(row.store_id)
        if known.store is None:
            raise StoreMissing
        return known.store.read(row.name, span)

    @asynccontextmanager
    async def _copied(
        self, body: AsyncIterator[bytes], wanted: Statement
    ) -> AsyncIterator[StagedFile | None]:
        """Yield bytes as a file; None if they were deleted concurrently (``wanted`` has no row)."""
        staged = None
        try:
            staged = await self._data_directory.take(body)
        except (StoreMissing, FileNotFoundError):
            if await self._database.one(*wanted) is not None:
                raise
        try:
            yield staged
        finally:
            if staged is not None:
                await self._data_directory.discard(staged)

    @asynccontextmanager
    async def _written(
        self, tenant: EnvironmentKey, kind: str, staged: StagedFile
    ) -> AsyncIterator[NewBlob]:
        """Write bytes to the target; the block commits their row."""
        if self.target.store is None:
            raise StoreMissing
        began = stored_blobs.clock()
        name = stored_blobs.new_name(self.target.tag, tenant, kind)
        await self.target.store.put(name, staged.path, staged.manifest.size)
        at = BlobLocation(self.target.id, name)
        yield NewBlob(tenant, staged.manifest.sha256, at, began)

    async def _discard(self, change: AnnouncingTransaction, row: Row) -> None:
        await change.run(DISCARD, [row.store_id, row.name, stored_blobs.STRAY_AFTER_S])
