"""Writes of the directory: which locks they take, in which order, and what they leave behind.

Of a bucket: first its row (FOR SHARE to change keys, exclusively to purge), then its keys, by an
advisory lock each. Of bytes: their row (KEY SHARE to name them, NO KEY UPDATE to let go of them,
UPDATE to collect them). So no two of them can wait for each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from edgecache.brain.database import Connection, Database
from edgecache.brain.directory.coherence import Change
from edgecache.brain.directory.index import Name
from edgecache.brain.errors import DatabaseAway, NoSuchBucket, OriginChanged
from edgecache.brain.values import Fields, Manifest, ObjectVersion

# More keys than this, and the whole bucket is locked instead: locks are a shared, scarce table.
KEYS_LOCKED: Final = 64
HOLD_ATTEMPTS: Final = 5

LOCK_KEYS: Final = (
    "WITH bucket AS MATERIALIZED (SELECT id FROM brain_bucket WHERE id = %s FOR SHARE)"
    " SELECT pg_advisory_xact_lock(lock) FROM (SELECT DISTINCT hashtextextended(key, id) AS lock"
    " FROM bucket, unnest(%s::text[]) key ORDER BY lock) locks"
)
# A purge or deletion, a newer version, or a write to the origin that is not over. Writes make the
# version without a variant; the other variants of a key do not overtake one another.
IS_OVERTAKEN: Final = (
    "SELECT EXISTS (SELECT FROM brain_purgerecord WHERE bucket_id = %(bucket)s AND NOT is_prefix"
    " AND pattern = %(key)s AND generation > %(began)s)"
    " OR EXISTS (SELECT FROM brain_purgerecord WHERE bucket_id = %(bucket)s AND is_prefix"
    " AND generation > %(began)s AND starts_with(%(key)s, pattern))"
    " OR EXISTS (SELECT FROM brain_cachedobject WHERE bucket_id = %(bucket)s AND key = %(key)s"
    " AND variant IN ('', %(variant)s) AND generation > %(began)s)"
    " OR EXISTS (SELECT FROM brain_pendingwrite WHERE bucket_id = %(bucket)s AND key = %(key)s)"
    " AS is_overtaken"
)
OTHER_VARIANTS: Final = (
    "DELETE FROM brain_cachedobject WHERE bucket_id = %s AND key = %s AND variant <> ''"
    " RETURNING blob_id"
)
# A row of one's own is as good as locked; another's is locked. Neither: it has just been collected.
HOLD: Final = (
    "WITH made AS (INSERT INTO brain_blob (sha256, size, md5, crc32, chunks)"
    " VALUES (%(sha256)s, %(size)s, %(md5)s, %(crc32)s, %(chunks)s)"
    " ON CONFLICT DO NOTHING RETURNING sha256),"
    " held AS (SELECT sha256 FROM brain_blob WHERE sha256 = %(sha256)s FOR KEY SHARE)"
    " SELECT sha256 FROM made UNION ALL SELECT sha256 FROM held"
)
WRITE_CACHED: Final = (
    "WITH old AS (SELECT blob_id FROM brain_cachedobject"
    " WHERE bucket_id = %(bucket)s AND key = %(key)s AND variant = %(variant)s)"
    " INSERT INTO brain_cachedobject (bucket_id, key, variant, blob_id, etag, content_type,"
    " headers, metadata, checksums, parts, last_modified, generation, http)"
    " VALUES (%(bucket)s, %(key)s, %(variant)s, %(blob)s, %(etag)s, %(content_type)s, %(headers)s,"
    " %(metadata)s, %(checksums)s, %(parts)s, %(last_modified)s, nextval('brain_generation'),"
    " %(http)s)"
    " ON CONFLICT (bucket_id, key, variant) DO UPDATE SET blob_id = EXCLUDED.blob_id,"
    " etag = EXCLUDED.etag, content_type = EXCLUDED.content_type, headers = EXCLUDED.headers,"
    " metadata = EXCLUDED.metadata, checksums = EXCLUDED.checksums, parts = EXCLUDED.parts,"
    " last_modified = EXCLUDED.last_modified, generation = EXCLUDED.generation,"
    " http = EXCLUDED.http, cached_at = now()"
    " RETURNING generation, cached_at, (SELECT blob_id FROM old) AS old,"
    " EXISTS (SELECT FROM brain_cachedobject WHERE bucket_id = %(bucket)s AND key = %(key)s"
    " AND variant <> %(variant)s) AS has_variants"
)
FORGET_KEYS: Final = (
    "DELETE FROM brain_cachedobject WHERE bucket_id = %s AND key = ANY(%s) RETURNING blob_id"
)
# The lock first, in an order; the look at who names them in a statement, and so a snapshot, of
# its own: otherwise two who let go of the same bytes at once would each see the other's object.
# Hashes in binary form: a purge gives tens of thousands, and as text they take five times as long.
LOCK_BLOBS: Final = (
    "SELECT count(*) FROM (SELECT FROM brain_blob WHERE sha256 = ANY(%b)"
    " ORDER BY sha256 FOR NO KEY UPDATE) locked"
)
# In the order of their hashes, one look-up each (OFFSET 0 keeps the planner from joining, for which
# it has no idea how many are free): then the pages of large indexes are read one after the other.
RELEASE: Final = (
    "WITH free AS MATERIALIZED (SELECT sha256 FROM unnest(%b) given (sha256)"
    " WHERE NOT EXISTS (SELECT FROM brain_cachedobject c WHERE c.blob_id = sha256 OFFSET 0)),"
    " noted AS (INSERT INTO brain_release (blobs) SELECT array_agg(sha256) FROM"
    " (SELECT sha256, (row_number() OVER () - 1) / %s AS part FROM free) parts GROUP BY part)"
    " SELECT l.node_id, sum(b.size)::bigint AS bytes FROM free f"
    " CROSS JOIN LATERAL (SELECT size FROM brain_blob WHERE sha256 = f.sha256 OFFSET 0) b"
    " CROSS JOIN LATERAL (SELECT node_id FROM brain_location WHERE blob_id = f.sha256 OFFSET 0) l"
    " GROUP BY l.node_id"
)
# So many hashes fit into a row that is not compressed and stored apart.
TOGETHER: Final = 50


@dataclass(frozen=True, slots=True)
class FreedSpace:
    """Bytes that no cached object names any more, times their nodes; and these nodes."""

    bytes: int
    nodes: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class VersionRow:
    """What a cached object's row is to say."""

    bucket_id: int
    key: str
    variant: str
    manifest: Manifest
    fields: Fields
    etag: str
    last_modified: datetime
    http: Mapping[str, Any]


async def lock_keys(change: Connection, bucket_id: int, keys: Sequence[str]) -> None:
    """Have these keys to oneself until the transaction ends.

    Raises NoSuchBucket.
    """
    if len(keys) > KEYS_LOCKED:
        await lock_buckets(change, [bucket_id])
    elif not await change.all(LOCK_KEYS, [bucket_id, list(keys)]):
        raise NoSuchBucket


async def lock_buckets(change: Connection, ids: Iterable[int]) -> None:
    """Have buckets to oneself until the transaction ends; their sequence rises.

    Raises NoSuchBucket when none of them is there.
    """
    wanted = sorted(ids)
    rows = await change.all(
        "SELECT id FROM brain_bucket WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE", [wanted]
    )
    if wanted and not rows:
        raise NoSuchBucket
    await change.run("UPDATE brain_bucket SET sequence = sequence + 1 WHERE id = ANY(%s)", [wanted])


async def next_generation(change: Connection) -> int:
    """Give a number above every one given before."""
    row = await change.one("SELECT nextval('brain_generation') AS generation")
    return int(row.generation) if row is not None else 0


async def is_overtaken(connection: Connection | Database, name: Name, began: int) -> bool:
    """Tell whether something hit a key since a generation."""
    bucket_id, key, variant = name
    row = await connection.one(
        IS_OVERTAKEN, {"bucket": bucket_id, "key": key, "variant": variant, "began": began}
    )
    return row is None or bool(row.is_overtaken)


async def hold_blob(change: Connection, manifest: Manifest) -> None:
    """Have a row for these bytes that the collector leaves alone until the transaction ends."""
    for _ in range(HOLD_ATTEMPTS):
        held = await change.one(
            HOLD,
            {
                "sha256": manifest.sha256,
                "size": manifest.size,
                "md5": manifest.md5,
                "crc32": manifest.crc32,
                "chunks": manifest.chunks,
            },
        )
        if held is not None:
            return
    raise DatabaseAway


async def write_cached(
    change: Change, version: VersionRow, *, is_written: bool = False
) -> ObjectVersion:
    """Put a version into the directory; ``hold_blob`` and ``lock_keys`` came before.

    is_written: by a PUT, which takes the place of all variants that pull mode keeps of the key.
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
        },
    )
    if row is None:
        raise DatabaseAway
    gone = {row.old} - {None, version.manifest.sha256}
    if is_written and row.has_variants:
        others = await change.all(OTHER_VARIANTS, [version.bucket_id, version.key])
        gone |= {other.blob_id for other in others}
    await release(change, gone)
    # What a fetch brought takes nothing from the other variants.
    filled = () if is_written else (version.variant,)
    change.announce("key", version.bucket_id, version.key, row.generation, *filled)
    return version_of(version, generation=row.generation, cached_at=row.cached_at)


async def refresh_cached(
    change: Change, stale: ObjectVersion, http: Mapping[str, Any]
) -> ObjectVersion:
    """Note what the origin's confirmation of a version says; ``lock_keys`` came before.

    Raises OriginChanged when the directory has another version.
    """
    row = await change.one(
        "UPDATE brain_cachedobject SET http = %s, cached_at = now(),"
        " generation = nextval('brain_generation') WHERE bucket_id = %s AND key = %s"
        " AND variant = %s AND generation = %s RETURNING generation, cached_at",
        [Jsonb(dict(http)), stale.bucket_id, stale.key, stale.variant, stale.generation],
    )
    if row is None:
        raise OriginChanged
    change.announce("key", stale.bucket_id, stale.key, row.generation, stale.variant)
    return replace(stale, http=http, generation=row.generation, cached_at=row.cached_at)


def version_of(
    version: VersionRow, *, generation: int = 0, cached_at: datetime | None = None
) -> ObjectVersion:
    """Give a version as readers see it; with generation 0 the directory does not hold it."""
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
    change: Change, bucket_id: int, keys: Sequence[str]
) -> tuple[int, FreedSpace]:
    """Take keys out of the directory, and leave a record for the fills that are under way.

    Gives the number of objects that were there. ``lock_keys`` came before.
    """
    generation = await next_generation(change)
    await change.run(
        "INSERT INTO brain_purgerecord (bucket_id, generation, pattern, is_prefix)"
        " SELECT %s, %s, key, false FROM unnest(%s::text[]) key",
        [bucket_id, generation, list(keys)],
    )
    gone = await change.all(FORGET_KEYS, [bucket_id, list(keys)])
    released = await release(change, {row.blob_id for row in gone})
    announce_keys(change, bucket_id, keys, generation)
    return len(gone), released


def announce_keys(change: Change, bucket_id: int, keys: Sequence[str], generation: int) -> None:
    """Say that keys changed; of many, that the whole bucket did: memory may always forget more."""
    if len(keys) > KEYS_LOCKED:
        change.announce("prefix", bucket_id, "", generation)
        return
    for key in keys:
        change.announce("key", bucket_id, key, generation)


async def release(change: Connection, blobs: Iterable[bytes]) -> FreedSpace:
    """Let go of bytes, whose objects were taken out just now; the collector does the rest."""
    wanted = sorted(set(blobs))
    if not wanted:
        return FreedSpace(0, frozenset())
    await change.run(LOCK_BLOBS, [wanted])
    rows = await change.all(RELEASE, [wanted, TOGETHER])
    return FreedSpace(sum(row.bytes for row in rows), frozenset(row.node_id for row in rows))
