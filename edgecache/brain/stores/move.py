"""Moving everything to another store while it is read and written (``manage.py movestore``).

First every brain sends new writes to the target; then each blob and each part is copied, checked
and committed by compare-and-set: a move names the old value, so a row that was changed concurrently
stays as it is. The old bytes stay for a day, because readers may have looked up their location
before. An interrupted move is continued by the next one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, LiteralString

from edgecache.brain.core.errors import OriginChanged, StoreMissing, StoreUnavailable
from edgecache.brain.core.values import EnvironmentKey, Span, StagedFile
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase, Row, Statement
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.stores import stored_blobs
from edgecache.brain.stores.reachable_stores import LOCK, TOPIC, KnownStore, Stores

BLOBS: Final[LiteralString] = (
    "SELECT l.id, l.organization_id, l.environment_pk, l.store_id, l.name, b.sha256, b.size"
    " FROM brain_storedblob l JOIN brain_blob b ON b.sha256 = l.blob_id"
    " WHERE l.store_id <> %s AND l.id > %s ORDER BY l.id LIMIT %s"
)
PARTS: Final[LiteralString] = (
    "SELECT p.id, k.organization_id, k.environment_pk, p.store_id, p.file AS name, p.size, p.etag"
    " FROM brain_uploadpart p JOIN brain_upload u ON u.id = p.upload_id"
    " JOIN brain_bucket k ON k.id = u.bucket_id"
    " WHERE p.store_id <> %s AND p.id > %s ORDER BY p.id LIMIT %s"
)
MOVE_BLOB: Final = (
    "UPDATE brain_storedblob SET store_id = %s, name = %s, stored_at = now()"
    " WHERE id = %s AND store_id = %s AND name = %s RETURNING id"
)
IS_STORED: Final = (
    "SELECT 1 FROM (SELECT bucket_id, blob_id FROM brain_storedobject"
    " UNION ALL SELECT bucket_id, blob_id FROM brain_noncurrentversion) s"
    " JOIN brain_bucket k ON k.id = s.bucket_id"
    " WHERE s.blob_id = %s AND k.organization_id = %s AND k.environment_pk = %s LIMIT 1"
)
IS_PART: Final = "SELECT 1 FROM brain_uploadpart WHERE id = %s AND file = %s"
MOVE_PART: Final = (
    "UPDATE brain_uploadpart SET store_id = %s, file = %s"
    " WHERE id = %s AND store_id = %s AND file = %s RETURNING id"
)
DISCARD: Final = (
    "INSERT INTO brain_discardedbytes (store_id, name, due_at)"
    " VALUES (%s, %s, now() + make_interval(secs => %s))"
)
LEFT: Final = (
    "SELECT count(*) AS objects, coalesce(sum(b.size), 0)::bigint AS bytes"
    " FROM brain_storedblob l JOIN brain_blob b ON b.sha256 = l.blob_id WHERE l.store_id <> %s"
)
LEFT_PARTS: Final = (
    "SELECT count(*) AS parts, coalesce(sum(size), 0)::bigint AS bytes FROM brain_uploadpart"
    " WHERE store_id <> %s"
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
        self._permits = asyncio.Semaphore(at_once)
        self._on_progress = on_progress
        self._failures = 0

    async def left(self) -> Remainder:
        """Return what the target does not have yet. Raises DatabaseUnavailable."""
        async with self._database.transaction(timeout_s=COUNT_TIMEOUT_S) as connection:
            blobs = await connection.one(LEFT, [self.target.id])
            parts = await connection.one(LEFT_PARTS, [self.target.id])
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
        await self._each(BLOBS, self._move_blob)
        await self._each(PARTS, self._move_part)

    async def _each(self, rows_of: LiteralString, move: MoveOne) -> None:
        after = 0
        while rows := await self._database.all(rows_of, [self.target.id, after, STEP]):
            after = rows[-1].id
            await asyncio.gather(*(self._one(row, move) for row in rows))
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
                self.progress.fail(f"{row.name}: the store does not answer")
            except (StoreMissing, OriginChanged):
                self.progress.fail(f"{row.name}: its bytes are missing or altered")
            else:
                self._failures = 0
                if is_moved:
                    self.progress.moved += 1
                    self.progress.moved_bytes += row.size

    async def _move_blob(self, row: Row) -> bool:
        tenant = EnvironmentKey(row.organization_id, row.environment_pk)
        async with self._copied(row, (IS_STORED, [row.sha256, *tenant])) as staged:
            if staged is None:
                return False
            if staged.manifest.sha256 != row.sha256:
                raise StoreMissing
            return await self._commit(row, MOVE_BLOB, stored_blobs.OBJECTS, staged)

    async def _move_part(self, row: Row) -> bool:
        async with self._copied(row, (IS_PART, [row.id, row.name])) as staged:
            if staged is None:
                return False
            if staged.manifest.md5.hex() != row.etag:
                raise StoreMissing
            return await self._commit(row, MOVE_PART, stored_blobs.PARTS, staged)

    @asynccontextmanager
    async def _copied(self, row: Row, wanted: Statement) -> AsyncIterator[StagedFile | None]:
        """Yield bytes as a file; None if they were deleted concurrently (``wanted`` has no row)."""
        staged = None
        try:
            body = self._stores.known(row.store_id).store.read(row.name, Span(0, row.size))
            staged = await self._data_directory.take(body)
        except StoreMissing:
            if await self._database.one(*wanted) is not None:
                raise
        try:
            yield staged
        finally:
            if staged is not None:
                await self._data_directory.discard(staged)

    async def _commit(self, row: Row, move: LiteralString, kind: str, staged: StagedFile) -> bool:
        """Write bytes to the target, and their row if it is still the one that was read."""
        began = stored_blobs.clock()
        tenant = EnvironmentKey(row.organization_id, row.environment_pk)
        name = stored_blobs.new_name(self.target.tag, tenant, kind)
        await self.target.store.put(name, staged, staged.manifest.size)
        async with self._coherence.transaction(
            wait_for_acks=False, timeout_s=COMMIT_TIMEOUT_S
        ) as change:
            stored_blobs.check_fresh(began)
            new = [self.target.id, name]
            moved = await change.one(move, [*new, row.id, row.store_id, row.name])
            if moved is not None:
                old = [row.store_id, row.name]
                await change.run(DISCARD, [*old, stored_blobs.STRAY_AFTER_S])
        return moved is not None
