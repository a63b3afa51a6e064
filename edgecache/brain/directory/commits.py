"""Writes of the directory: the locks they take, in which order, and the rows they write.

Of a bucket: first its row (FOR SHARE to change keys, exclusively to purge), then its keys, by an
advisory lock each. Of a blob: its row (KEY SHARE to refer to it, NO KEY UPDATE to release it,
UPDATE to delete it). This order excludes deadlocks.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as columns_of
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from edgecache.brain.core.errors import DatabaseUnavailable, NoSuchBucket, OriginChanged
from edgecache.brain.core.values import BlobManifest, Name, ObjectVersion, WrittenFields
from edgecache.brain.db.coherence import AnnouncingTransaction
from edgecache.brain.db.database import BrainDatabase, DatabaseTransaction, Row, Statement
from edgecache.brain.http_caching import cache_tags

# For more keys the whole bucket is locked: the table of locks is shared and small.
KEYS_LOCKED: Final = 64
HOLD_ATTEMPTS: Final = 5
# A plan is kept, for tables that may have been small when it was made: look-ups by index even then.
BY_INDEX: Final = "SET LOCAL enable_seqscan = off"

LOCK_KEYS: Final = (
    "WITH bucket AS MATERIALIZED (SELECT id, versioning FROM brain_bucket"
    " WHERE id = %s FOR SHARE) SELECT pg_advisory_xact_lock(lock), versioning"
    " FROM (SELECT DISTINCT hashtextextended(key, id) AS lock, versioning"
    " FROM bucket, unnest(%s::text[]) key ORDER BY lock) locks"
)
# A purge or deletion, a newer version, or an unfinished write to the origin. Writes make the
# version without a variant; the variants of a key do not overtake one another.
IS_OVERTAKEN: Final = (
    "SELECT EXISTS (SELECT FROM brain_purgerecord WHERE bucket_id = %(bucket)s AND NOT is_prefix"
    " AND pattern = %(key)s AND generation > %(began)s)"
    " OR EXISTS (SELECT FROM brain_purgerecord WHERE bucket_id = %(bucket)s AND is_prefix"
    " AND generation > %(began)s AND starts_with(%(key)s, pattern)"
    " AND (tags IS NULL OR %(tags)s::text[] IS NULL OR tags && %(tags)s::text[]))"
    " OR EXISTS (SELECT FROM brain_cachedobject WHERE bucket_id = %(bucket)s AND key = %(key)s"
    " AND variant IN ('', %(variant)s) AND generation > %(began)s)"
    " OR EXISTS (SELECT FROM brain_pendingwrite WHERE bucket_id = %(bucket)s AND key = %(key)s)"
    " AS is_overtaken"
)
OTHER_VARIANTS: Final = (
    "DELETE FROM brain_cachedobject WHERE bucket_id = %s AND key = %s AND variant <> ''"
    " RETURNING blob_id"
)
# The INSERT locks a new row; the SELECT locks an existing one. If neither returns a row, it was
# deleted concurrently: retry. Ordered by hash, because concurrent inserts of the same hash wait for
# each other.
HOLD: Final = (
    "WITH made AS (INSERT INTO brain_blob (sha256, size, md5, crc32, chunks)"
    " SELECT * FROM unnest(%(sha256)b::bytea[], %(size)b::bigint[], %(md5)b::bytea[],"
    " %(crc32)b::bigint[], %(chunks)b::bytea[]) given (sha256) ORDER BY sha256"
    " ON CONFLICT DO NOTHING RETURNING sha256),"
    " held AS (SELECT sha256 FROM brain_blob WHERE sha256 = ANY(%(sha256)b::bytea[])"
    " ORDER BY sha256 FOR KEY SHARE)"
    " SELECT sha256 FROM made UNION ALL SELECT sha256 FROM held"
)
WRITE_CACHED: Final = (
    "WITH old AS (SELECT blob_id FROM brain_cachedobject"
    " WHERE bucket_id = %(bucket)s AND key = %(key)s AND variant = %(variant)s)"
    " INSERT INTO brain_cachedobject (bucket_id, key, variant, blob_id, etag, content_type,"
    " headers, metadata, checksums, parts, last_modified, generation, http, tags)"
    " VALUES (%(bucket)s, %(key)s, %(variant)s, %(blob)s, %(etag)s, %(content_type)s, %(headers)s,"
    " %(metadata)s, %(checksums)s, %(parts)s, %(last_modified)s, nextval('brain_generation'),"
    " %(http)s, %(tags)s)"
    " ON CONFLICT (bucket_id, key, variant) DO UPDATE SET blob_id = EXCLUDED.blob_id,"
    " etag = EXCLUDED.etag, content_type = EXCLUDED.content_type, headers = EXCLUDED.headers,"
    " metadata = EXCLUDED.metadata, checksums = EXCLUDED.checksums, parts = EXCLUDED.parts,"
    " last_modified = EXCLUDED.last_modified, generation = EXCLUDED.generation,"
    " http = EXCLUDED.http, tags = EXCLUDED.tags, cached_at = now()"
    " RETURNING generation, cached_at, (SELECT blob_id FROM old) AS old,"
    " EXISTS (SELECT FROM brain_cachedobject WHERE bucket_id = %(bucket)s AND key = %(key)s"
    " AND variant <> %(variant)s) AS has_variants"
)
RECORD_KEYS: Final = (
    "INSERT INTO brain_purgerecord (bucket_id, generation, pattern, is_prefix)"
    " SELECT %s, %s, key, false FROM unnest(%s::text[]) key"
)
# A variant begins with its query.
FORGET_QUERIES: Final = (
    "DELETE FROM brain_cachedobject o USING unnest(%s::text[], %s::text[]) given (key, query)"
    " WHERE o.bucket_id = %s AND o.key = given.key"
    " AND split_part(o.variant, '#', 1) = given.query RETURNING o.blob_id"
)
FORGET_KEYS: Final = (
    "DELETE FROM brain_cachedobject WHERE bucket_id = %s AND key = ANY(%s) RETURNING blob_id"
)
# Hashes one behind the other, as one value: to read tens of thousands as an array, and to write one
# for each statement, would keep the event loop from requests for tens of milliseconds.
HASHES: Final = (
    "SELECT substring(%(packed)b::bytea from place for 32) AS sha256"
    " FROM generate_series(1, length(%(packed)b), 32) place"
)


def noting(hashes: LiteralString) -> LiteralString:
    """Return a statement that leaves blobs to garbage collection. hashes: a query of them.

    Fifty to a row: more would be compressed and stored out of line, and are one of its steps.
    """
    return (
        "INSERT INTO brain_release (blobs) SELECT array_agg(sha256) FROM"  # noqa: S608 - literals alone
        " (SELECT sha256, (row_number() OVER () - 1) / 50 AS part FROM ("
        + hashes
        + ") given) parts"
        " GROUP BY part"
    )


# First the locks; another statement then reads the references with its own snapshot. Otherwise two
# transactions that release the same blob would each see the other's object. If the lock is taken,
# garbage collection releases the blob later, so this never waits, and transactions that release
# several times cannot deadlock.
LOCK_BLOBS: Final = (
    "WITH given AS MATERIALIZED (" + HASHES + "),"  # noqa: S608 - as above
    " locked AS MATERIALIZED (SELECT sha256 FROM brain_blob"
    " WHERE sha256 IN (SELECT sha256 FROM given) FOR NO KEY UPDATE SKIP LOCKED) "
    + noting("SELECT sha256 FROM given WHERE sha256 NOT IN (SELECT sha256 FROM locked)")
)
# In the order of the hashes, one look-up each (OFFSET 0 keeps the planner from joining: it cannot
# estimate how many are free), so that the pages of large indexes are read in sequence.
RELEASE: Final = (
    "WITH free AS MATERIALIZED (SELECT sha256 FROM (" + HASHES + " OFFSET 0) given"  # noqa: S608 - as above
    " WHERE NOT EXISTS (SELECT FROM brain_cachedobject c WHERE c.blob_id = sha256 OFFSET 0)),"
    " noted AS (" + noting("SELECT sha256 FROM free") + ")"
    " SELECT l.node_id, sum(b.size)::bigint AS bytes FROM free f"
    " CROSS JOIN LATERAL (SELECT size FROM brain_blob WHERE sha256 = f.sha256 OFFSET 0) b"
    " CROSS JOIN LATERAL (SELECT node_id FROM brain_location WHERE blob_id = f.sha256 OFFSET 0) l"
    " GROUP BY l.node_id"
)
# Their bytes belong to stored objects, even if a cached object still refers to the blob.
RELEASE_STORED: Final = noting(
    "SELECT sha256 FROM unnest(%b::bytea[]) sha256"
    " WHERE EXISTS (SELECT FROM brain_cachedobject c WHERE c.blob_id = sha256)"
    " AND (EXISTS (SELECT FROM brain_storedblob l WHERE l.blob_id = sha256)"
    " OR EXISTS (SELECT FROM brain_smallbody b WHERE b.blob_id = sha256))"
)


@dataclass(frozen=True, slots=True)
class FreedSpace:
    """Bytes of released blobs, times the nodes that held them; and these nodes."""

    bytes: int
    nodes: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class VersionRow:
    """The values of a cached object's row."""

    bucket_id: int
    key: str
    variant: str
    manifest: BlobManifest
    fields: WrittenFields
    etag: str
    last_modified: datetime
    http: Mapping[str, Any]

    @property
    def tags(self) -> list[str] | None:
        """Return its tags as they are stored, None without any."""
        return stored_tags(self.bucket_id, self.fields.headers, self.http)


def stored_tags(
    bucket_id: int, headers: Mapping[str, str], http: Mapping[str, Any]
) -> list[str] | None:
    """Return an object's tags as they are stored, None without any."""
    names = cache_tags.tags_of(headers, http).names
    return [cache_tags.stored_tag(bucket_id, name) for name in names] or None


async def lock_keys(change: DatabaseTransaction, bucket_id: int, keys: Sequence[str]) -> str:
    """Lock keys until the transaction ends; return the bucket's versioning, which cannot change.

    Raises NoSuchBucket.
    """
    if len(keys) > KEYS_LOCKED:
        rows = await lock_buckets(change, [bucket_id])
    else:
        rows = await change.all(LOCK_KEYS, [bucket_id, list(keys)])
    if not rows:
        raise NoSuchBucket
    return str(rows[0].versioning)


async def lock_buckets(change: DatabaseTransaction, ids: Iterable[int]) -> list[Row]:
    """Lock buckets until the transaction ends, and raise their sequence; return their rows.

    Raises NoSuchBucket if none of them exists.
    """
    wanted = sorted(ids)
    rows = await change.all(
        "SELECT id, versioning FROM brain_bucket WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE",
        [wanted],
    )
    if wanted and not rows:
        raise NoSuchBucket
    await change.run("UPDATE brain_bucket SET sequence = sequence + 1 WHERE id = ANY(%s)", [wanted])
    return rows


async def next_generation(change: DatabaseTransaction) -> int:
    """Return a number above all earlier ones."""
    row = await change.one("SELECT nextval('brain_generation') AS generation")
    return int(row.generation) if row is not None else 0


async def is_overtaken(
    connection: DatabaseTransaction | BrainDatabase,
    name: Name,
    began: int,
    *,
    tags: Sequence[str] | None = None,
) -> bool:
    """True if a key was changed or purged since a generation.

    tags: of what was fetched, as they are stored; None while they are not known: any may be purged.
    """
    bucket_id, key, variant = name
    values = {"bucket": bucket_id, "key": key, "variant": variant, "began": began, "tags": tags}
    row = await connection.one(IS_OVERTAKEN, values)
    return row is None or bool(row.is_overtaken)


async def hold_blob(change: DatabaseTransaction, manifest: BlobManifest) -> None:
    """Insert or lock a blob's row, so that it is not deleted before the transaction ends."""
    await hold_blobs(change, [manifest])


async def hold_blobs(change: DatabaseTransaction, manifests: Iterable[BlobManifest]) -> None:
    """Insert or lock the rows of blobs, so that none is deleted before the transaction ends."""
    wanted = {manifest.sha256: manifest for manifest in manifests}
    for _ in range(HOLD_ATTEMPTS):
        for row in await change.all(*hold_statement(wanted.values())):
            wanted.pop(row.sha256, None)
        if not wanted:
            return
    raise DatabaseUnavailable


def hold_statement(manifests: Collection[BlobManifest]) -> Statement:
    """Return one attempt of ``hold_blobs``: its rows are the blobs that are held."""
    return HOLD, {
        column.name: [getattr(manifest, column.name) for manifest in manifests]
        for column in columns_of(BlobManifest)
    }


async def write_cached(
    change: AnnouncingTransaction, version: VersionRow, *, is_written: bool = False
) -> ObjectVersion:
    """Write a version into the directory; ``hold_blob`` and ``lock_keys`` came before.

    is_written: by a PUT, which replaces all variants that the CDN keeps of the key.
    """
    fields = version.fields
    row = await change.one(
        WRITE_CACHED,
        {
            "bucket": version.bucket_id,
            "key": version.key,
            "variant": version.variant,
            "blob": version.manifest.sha256,
            "etag": version.etag,
            "content_type": fields.content_type,
            "headers": Jsonb(dict(fields.headers)),
            "metadata": Jsonb(dict(fields.metadata)),
            "checksums": Jsonb(dict(fields.checksums)),
            "parts": Jsonb(list(fields.parts)),
            "last_modified": version.last_modified,
            "http": Jsonb(dict(version.http)),
            "tags": version.tags,
        },
    )
    if row is None:
        raise DatabaseUnavailable
    gone = {row.old} - {None, version.manifest.sha256}
    if is_written and row.has_variants:
        gone |= await forget_variants(change, version.bucket_id, version.key)
    await release(change, gone)
    # A fetch does not change the other variants.
    filled = () if is_written else (version.variant,)
    change.announce("key", version.bucket_id, version.key, row.generation, *filled)
    return version_of(version, generation=row.generation, cached_at=row.cached_at)


async def forget_variants(change: AnnouncingTransaction, bucket_id: int, key: str) -> set[bytes]:
    """Delete the variants that the CDN keeps of a key; return their blobs, to be released."""
    return {row.blob_id for row in await change.all(OTHER_VARIANTS, [bucket_id, key])}


async def refresh_cached(
    change: AnnouncingTransaction, stale: ObjectVersion, http: Mapping[str, Any]
) -> ObjectVersion:
    """Store the headers of a 304 with its version; ``lock_keys`` came before.

    Raises OriginChanged when the directory has another version.
    """
    tags = stored_tags(stale.bucket_id, stale.headers, http)
    row = await change.one(
        "UPDATE brain_cachedobject SET http = %s, tags = %s, cached_at = now(),"
        " generation = nextval('brain_generation') WHERE bucket_id = %s AND key = %s"
        " AND variant = %s AND generation = %s RETURNING generation, cached_at",
        [Jsonb(dict(http)), tags, stale.bucket_id, stale.key, stale.variant, stale.generation],
    )
    if row is None:
        raise OriginChanged
    change.announce("key", stale.bucket_id, stale.key, row.generation, stale.variant)
    return replace(stale, http=http, generation=row.generation, cached_at=row.cached_at)


async def forget_version(change: AnnouncingTransaction, version: ObjectVersion) -> None:
    """Delete one version from the directory, if it has no newer one; ``lock_keys`` came before."""
    gone = await change.all(
        "DELETE FROM brain_cachedobject WHERE bucket_id = %s AND key = %s AND variant = %s"
        " AND generation = %s RETURNING blob_id",
        [version.bucket_id, version.key, version.variant, version.generation],
    )
    if gone:
        await release(change, {row.blob_id for row in gone})
        announce_keys(change, version.bucket_id, [version.key], await next_generation(change))


def version_of(
    version: VersionRow, *, generation: int = 0, cached_at: datetime | None = None
) -> ObjectVersion:
    """Return a row's version; generation 0 if the directory does not have it."""
    fields = version.fields
    return ObjectVersion(
        version.bucket_id,
        version.key,
        version.variant,
        generation,
        version.manifest.sha256,
        version.manifest.size,
        version.etag,
        fields.content_type,
        fields.headers,
        fields.metadata,
        fields.checksums,
        fields.parts,
        version.last_modified,
        version.http,
        cached_at or version.last_modified,
        version.manifest.crc32,
    )


async def forget_keys(
    change: AnnouncingTransaction,
    bucket_id: int,
    keys: Sequence[str],
    queries: Sequence[str] | None = None,
) -> tuple[int, FreedSpace]:
    """Delete keys from the directory, and leave a record for running fetches.

    queries: by key, what names the only query (``cdn.cache_keys``) whose response is deleted.

    Returns the number of objects and the freed space. Call ``lock_keys`` first.
    """
    keys = list(keys)
    generation = await next_generation(change)
    await change.run(RECORD_KEYS, [bucket_id, generation, keys])
    if queries is None:
        gone = await change.all(FORGET_KEYS, [bucket_id, keys])
    else:
        gone = await change.all(FORGET_QUERIES, [keys, list(queries), bucket_id])
    released = await release(change, {row.blob_id for row in gone})
    # Also for a single query: caches may always forget more.
    announce_keys(change, bucket_id, keys, generation)
    return len(gone), released


def announce_keys(
    change: AnnouncingTransaction, bucket_id: int, keys: Sequence[str], generation: int
) -> None:
    """Announce changed keys; for many the whole bucket: caches may always forget more."""
    if len(keys) > KEYS_LOCKED:
        change.announce("prefix", bucket_id, "", generation)
        return
    for key in keys:
        change.announce("key", bucket_id, key, generation)


async def release(change: DatabaseTransaction, blobs: Iterable[bytes]) -> FreedSpace:
    """Release blobs whose objects were deleted; garbage collection removes them."""
    return await release_packed(change, b"".join(sorted(set(blobs))))


async def release_packed(change: DatabaseTransaction, packed: bytes) -> FreedSpace:
    """Release blobs. packed: their hashes, each once, in their order."""
    if not packed:
        return FreedSpace(0, frozenset())
    await change.run(LOCK_BLOBS, {"packed": packed})
    rows = await change.all(RELEASE, {"packed": packed})
    return FreedSpace(sum(row.bytes for row in rows), frozenset(row.node_id for row in rows))


async def release_stored(change: DatabaseTransaction, blobs: Iterable[bytes]) -> None:
    """Release blobs whose stored objects were deleted."""
    wanted = sorted(set(blobs))
    if wanted:
        await release(change, wanted)
        await change.run(RELEASE_STORED, [wanted])
