"""The directory: which bytes a key has, and which nodes hold them. PostgreSQL is the truth.

Announced topics: ``key`` (bucket id, key, generation), ``prefix`` (bucket id, prefix, generation),
``fetches`` (bucket id: what is being fetched must not be shared any more), ``bucket`` (bucket id),
``blob`` (SHA-256 in hex: the nodes that hold it changed).
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, LiteralString
from uuid import UUID

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import NoSuchBucket
from edgecache.brain.core.shared_calls import SharedCalls
from edgecache.brain.core.values import (
    BUCKET_OPTIONS,
    BlobManifest,
    BucketInfo,
    EnvironmentKey,
    Name,
    ObjectVersion,
)
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.coherent_cache import CoherentCache
from edgecache.brain.db.database import BrainDatabase, Row
from edgecache.brain.directory.index import Holders, Index, Tombstone
from edgecache.protocol.resources import BucketOptions
from edgecache.runtime.bounded_cache import BoundedCache

# Greater than every generation. Set when announcements may have been lost, so that versions read
# before are not cached.
NEVER: Final = 2**63
# An object of 1 GiB has digests of 288 KiB.
MANIFESTS_BYTES: Final = 32 * 2**20
MANIFEST_ENTRY_BYTES: Final = 512

# Changes with the rules of a bucket's lifecycle.
LIFECYCLE_DIGEST: Final = "hashtextextended(lifecycle::text, 0)::text"
BUCKET_COLUMNS: Final = (
    "id, organization_id, environment_pk, name, public_name, origin_id, origin_prefix,"  # noqa: S608 - literals alone
    " created_at, links_generation,"
    " (SELECT o.name FROM brain_origin o WHERE o.id = origin_id) AS origin,"
    " CASE WHEN lifecycle = '[]' THEN '' ELSE " + LIFECYCLE_DIGEST + " END AS lifecycle, {options}"
)


def bucket_sql(sql: LiteralString) -> LiteralString:
    """Return SQL about buckets with the names of columns.

    ``{columns}``: those of ``bucket_of``; ``{options}``: those of BucketOptions; ``{values}``: of
    as many parameters, which ``stored_options`` gives.
    """
    values = ", ".join("%s" for _ in BUCKET_OPTIONS)
    with_columns = sql.replace("{columns}", BUCKET_COLUMNS)
    return with_columns.replace("{options}", ", ".join(BUCKET_OPTIONS)).replace("{values}", values)


BUCKET: Final = bucket_sql("SELECT {columns} FROM brain_bucket WHERE ")
# A purge hides its objects immediately and deletes them afterwards.
FIND: Final = (
    "SELECT o.bucket_id, o.key, o.variant, o.generation, o.blob_id, b.size, o.etag,"
    " o.content_type, o.headers, o.metadata, o.checksums, o.parts, o.last_modified, o.http,"
    " o.cached_at, b.crc32,"
    " ARRAY(SELECT l.node_id FROM brain_location l WHERE l.blob_id = o.blob_id"
    " ORDER BY l.node_id) AS nodes"
    " FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS wanted (bucket_id, key, variant)"
    " JOIN brain_cachedobject o USING (bucket_id, key, variant)"
    " JOIN brain_blob b ON b.sha256 = o.blob_id"
    " WHERE NOT EXISTS ("
    "SELECT FROM brain_purgerecord p WHERE p.bucket_id = o.bucket_id AND NOT p.is_done"
    " AND p.generation > o.generation"
    " AND CASE WHEN p.is_prefix THEN starts_with(o.key, p.pattern) ELSE o.key = p.pattern END"
    " AND (p.tags IS NULL OR p.tags && o.tags))"
)
# A variant begins with the query and "#"; "$" comes after that. A URL may have very many variants,
# and any one will do: one with an earlier Vary only costs a fetch, which returns the current names.
VARY: Final = (
    "SELECT o.http -> 'vary' AS names FROM (SELECT %b::bigint, %b::text, %b::text)"
    " given (bucket_id, key, query) JOIN brain_cachedobject o USING (bucket_id, key)"
    " WHERE o.variant >= given.query || '#' AND o.variant < given.query || '$' LIMIT 1"
)
HOLDERS: Final = "SELECT node_id FROM brain_location WHERE blob_id = %s ORDER BY node_id"

ALL_HOLDERS: Final = "SELECT blob_id, node_id FROM brain_location WHERE blob_id = ANY(%b)"
HOLD_BLOBS: Final = "SELECT FROM brain_blob WHERE sha256 = ANY(%b) ORDER BY sha256 FOR KEY SHARE"
ADD_LOCATIONS: Final = (
    "INSERT INTO brain_location (blob_id, node_id) SELECT b.sha256, n.id"
    " FROM unnest(%b::bytea[], %b::uuid[]) held (sha256, node_id)"
    " JOIN brain_blob b ON b.sha256 = held.sha256"
    " JOIN brain_node n ON n.id = held.node_id AND n.status <> 'removed'"
    " ON CONFLICT DO NOTHING"
)
KEEP_REPLICAS: Final = (
    "DELETE FROM brain_nodejob WHERE id IN (SELECT j.id FROM brain_nodejob j"
    " JOIN unnest(%b::bytea[], %b::uuid[]) held (sha256, node_id)"
    " ON j.sha256 = held.sha256 AND j.node_id = held.node_id AND j.kind = 'delete'"
    " ORDER BY j.id FOR UPDATE OF j)"
)

# A bucket is looked up by tenant and name, by public name or by id.
BucketName = tuple[EnvironmentKey, str] | str | int


class KeyWatch:
    """Records announcements about a name while it is read or written.

    newest: the announced generation; an older version is not remembered. moved: announced blobs.
    """

    __slots__ = ("moved", "name", "newest")

    def __init__(self, name: Name) -> None:
        self.name = name
        self.newest = 0
        self.moved: set[bytes] = set()


class Directory:
    """One brain's view of the directory; its in-memory caches are used only while current."""

    def __init__(self, database: BrainDatabase, coherence: Coherence, *, index_bytes: int) -> None:
        self._database = database
        self.coherence = coherence
        self.index = Index(index_bytes * 7 // 8)
        self.holders = Holders(index_bytes // 8)
        self._manifests: BoundedCache[bytes, BlobManifest] = BoundedCache(
            MANIFESTS_BYTES, lambda _, manifest: MANIFEST_ENTRY_BYTES + len(manifest.chunks)
        )
        self._buckets: CoherentCache[BucketName, BucketInfo] = CoherentCache(
            coherence, "bucket", row_of=lambda bucket: bucket.id
        )
        self._loads: set[KeyWatch] = set()
        # What is read together: the rows of a bucket's names that wait.
        self._wanted: dict[int, set[Name]] = {}
        self._rows: SharedCalls[int, Mapping[Name, Row]] = SharedCalls()
        self._vary_names: SharedCalls[Name, tuple[str, ...]] = SharedCalls()
        self._location_reads: SharedCalls[bytes, tuple[UUID, ...]] = SharedCalls()
        self._sweeps = BackgroundTasks()
        coherence.subscribe("key", self._on_key)
        coherence.subscribe("prefix", self._on_prefix)
        coherence.subscribe("blob", self._on_blob)
        coherence.on_loss(self._on_loss)

    # --- objects ----------------------------------------------------------------------------

    async def find(self, bucket_id: int, key: str, variant: str = "") -> ObjectVersion | None:
        """Return the current version, None if the cache has none. Raises DatabaseUnavailable."""
        name = (bucket_id, key, variant)
        may_keep = self.coherence.is_current
        found = self.index.get(name) if may_keep else None
        if found is not None:
            return found
        with self.watch(name) as watch:
            row = await self._row(name)
            while row is None and 0 < watch.newest < NEVER:
                # A fetch may have stored it while the query ran.
                watch.newest = 0
                row = await self._row(name)
            may_keep = may_keep and self.coherence.is_current
            # Another caller may have remembered it, or a fetch stored it by now.
            known = self.index.get(name) if may_keep else None
            if known is not None or row is None:
                return known
            found = version_of_row(row)
            if may_keep:
                self.remember(found, watch)
                if found.sha256 not in watch.moved and watch.newest < NEVER:
                    self.holders.put(found.sha256, tuple(row.nodes))
            return found

    async def vary_names(self, bucket_id: int, key: str, query: str) -> tuple[str, ...]:
        """Return the names of the headers that the responses of a URL vary on.

        query: as in the beginning of variants. Raises DatabaseUnavailable.
        """
        name = (bucket_id, key, query)
        return await self._vary_names.share(name, lambda: self._load_vary_names(name))

    async def locations(self, sha256: bytes) -> tuple[UUID, ...]:
        """Return the nodes that hold these bytes, in the order of their ids.

        Raises DatabaseUnavailable.
        """
        if self.coherence.is_current:
            known = self.holders.get(sha256)
            if known is not None:
                return known
        return await self._location_reads.share(sha256, lambda: self._load_locations(sha256))

    async def all_locations(self, hashes: Sequence[bytes]) -> dict[bytes, set[UUID]]:
        """Return the nodes that hold some blobs, by hash. Raises DatabaseUnavailable."""
        found: dict[bytes, set[UUID]] = {sha256: set() for sha256 in hashes}
        for row in await self._database.all(ALL_HOLDERS, [list(hashes)]):
            found[row.blob_id].add(row.node_id)
        return found

    async def add_locations(self, held: Mapping[bytes, Collection[UUID]]) -> None:
        """Store that nodes hold blobs; those that no object refers to any more are left out.

        Raises DatabaseUnavailable.
        """
        pairs = [(sha256, node_id) for sha256, nodes in held.items() for node_id in nodes]
        if not pairs:
            return
        hashes = [sha256 for sha256, _ in pairs]
        columns = [hashes, [node_id for _, node_id in pairs]]
        async with self.coherence.transaction(wait_for_acks=False, is_pipelined=True) as change:
            # The lock first: while it is held, garbage collection cannot delete the blobs.
            await change.run(HOLD_BLOBS, [sorted(set(hashes))])
            await change.run(ADD_LOCATIONS, columns)
            await change.run(KEEP_REPLICAS, columns)
            for sha256 in dict.fromkeys(hashes):
                change.announce("blob", sha256.hex())

    async def drop_location(self, sha256: bytes, node_id: UUID) -> None:
        """Store that a node does not hold a blob: a read failed there.

        Raises DatabaseUnavailable.
        """
        async with self.coherence.transaction(wait_for_acks=False) as change:
            await change.run(
                "DELETE FROM brain_location WHERE blob_id = %s AND node_id = %s", [sha256, node_id]
            )
            change.announce("blob", sha256.hex())

    async def manifest(self, sha256: bytes) -> BlobManifest | None:
        """Return the manifest of a blob, which never changes. Raises DatabaseUnavailable."""
        known = self._manifests.get(sha256)
        if known is not None:
            return known
        row = await self._database.one(
            "SELECT sha256, size, md5, crc32, chunks FROM brain_blob WHERE sha256 = %s", [sha256]
        )
        if row is None:
            return None
        manifest = BlobManifest(*row)
        self._manifests.put(sha256, manifest)
        return manifest

    def remember(self, found: ObjectVersion, watch: KeyWatch) -> None:
        """Remember a version that was just committed, unless a newer one was announced since."""
        if self.coherence.is_current and found.generation >= watch.newest:
            self.index.put(found)

    @contextmanager
    def watch(self, name: Name) -> Iterator[KeyWatch]:
        """Record the announcements about a name while the block runs."""
        watch = KeyWatch(name)
        self._loads.add(watch)
        try:
            yield watch
        finally:
            self._loads.discard(watch)

    # --- buckets ----------------------------------------------------------------------------

    def known_bucket(self, name: BucketName) -> BucketInfo | None:
        """Return a bucket if it is in memory, and that is current."""
        return self._buckets.known(name)

    async def bucket(self, tenant: EnvironmentKey, name: str) -> BucketInfo | None:
        """Return the environment's bucket of this name. Raises DatabaseUnavailable."""
        return await self._bucket(
            (tenant, name),
            BUCKET + "organization_id = %s AND environment_pk = %s AND name = %s",
            [*tenant, name],
        )

    async def bucket_by_public_name(self, public_name: str) -> BucketInfo | None:
        """Return the bucket of ``/p/{public_name}/``. Raises DatabaseUnavailable."""
        return await self._bucket(public_name, BUCKET + "public_name = %s", [public_name])

    async def bucket_by_id(self, bucket_id: int) -> BucketInfo:
        """Return a bucket by its row's id. Raises NoSuchBucket, DatabaseUnavailable."""
        bucket = await self._bucket(bucket_id, BUCKET + "id = %s", [bucket_id])
        if bucket is None:
            raise NoSuchBucket
        return bucket

    async def _bucket(
        self,
        name: BucketName,
        sql: LiteralString,
        params: list[str | int],
    ) -> BucketInfo | None:
        known = self._buckets.known(name)
        if known is not None:
            return known

        async def load() -> BucketInfo | None:
            row = await self._database.one(sql, params)
            return None if row is None else bucket_of(row)

        return await self._buckets.get(name, load)

    # --- announcements ----------------------------------------------------------------------

    def _on_key(self, bucket_id: int, key: str, generation: int, filled: str | None = None) -> None:
        """Forget a key. filled: the only variant that changed, by a fetch; None for all."""
        if filled is None:
            self.index.forget(bucket_id, key, below=generation)
        else:
            self.index.forget_variant((bucket_id, key, filled), below=generation)
        for watch in self._loads:
            is_hit = watch.name[:2] == (bucket_id, key) and filled in {None, watch.name[2]}
            if is_hit:
                self._overtake(watch, generation)

    def _on_prefix(self, bucket_id: int, prefix: str, generation: int) -> None:
        barrier = self.index.hide(bucket_id, prefix, generation)
        for watch in self._loads:
            if watch.name[0] == bucket_id and watch.name[1].startswith(prefix):
                self._overtake(watch, generation)
        self._sweeps.add(self._sweep(bucket_id, barrier))

    def _on_blob(self, sha256: str) -> None:
        self.holders.forget(bytes.fromhex(sha256))
        for watch in self._loads:
            watch.moved.add(bytes.fromhex(sha256))

    def _on_loss(self) -> None:
        self.index.clear()
        self.holders.clear()
        for watch in self._loads:
            self._overtake(watch, NEVER)

    def _overtake(self, watch: KeyWatch, generation: int) -> None:
        watch.newest = max(watch.newest, generation)

    async def _sweep(self, bucket_id: int, barrier: Tombstone) -> None:
        for _ in self.index.sweep(bucket_id, barrier):
            await asyncio.sleep(0)

    async def _load_locations(self, sha256: bytes) -> tuple[UUID, ...]:
        marks = self.holders.marks
        rows = await self._database.all(HOLDERS, [sha256])
        nodes = tuple(row.node_id for row in rows)
        if self.coherence.is_current and marks == self.holders.marks:
            self.holders.put(sha256, nodes)
        return nodes

    async def _row(self, name: Name) -> Row | None:
        bucket_id = name[0]
        self._wanted.setdefault(bucket_id, set()).add(name)
        rows = await self._rows.share(bucket_id, lambda: self._load_rows(bucket_id))
        return rows.get(name)

    async def _load_rows(self, bucket_id: int) -> Mapping[Name, Row]:
        names = self._wanted.pop(bucket_id)
        rows = await self._database.all(FIND, [list(each) for each in zip(*names, strict=True)])
        return {(row.bucket_id, row.key, row.variant): row for row in rows}

    async def _load_vary_names(self, name: Name) -> tuple[str, ...]:
        row = await self._database.one(VARY, name)
        return () if row is None else tuple(row.names or ())


def bucket_of(row: Row) -> BucketInfo:
    """Return the bucket of a row with the columns of BUCKET."""
    values = row._asdict()
    tenant = EnvironmentKey(values.pop("organization_id"), values.pop("environment_pk"))
    options = zip(BUCKET_OPTIONS, BucketOptions.__struct_defaults__, strict=True)
    for name, default in options:
        if isinstance(default, tuple):
            values[name] = tuple(filter(None, values[name].split(",")))
    return BucketInfo(tenant=tenant, **values)


def stored_options(options: BucketOptions) -> list[Any]:
    """Return the values of the columns of BucketOptions."""
    values = (getattr(options, name) for name in BUCKET_OPTIONS)
    return [",".join(value) if isinstance(value, tuple) else value for value in values]


def version_of_row(row: Row) -> ObjectVersion:
    """Return the version of a row with FIND's columns."""
    values = [*row[:11], tuple(row.parts), *row[12:16]]
    return ObjectVersion(*values)
