"""The built-in origin: objects are rows; their bytes are rows as well, or in the managed store."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from psycopg.types.json import Jsonb

from edgecache.brain.core.errors import OriginMissing
from edgecache.brain.core.paging import LAST, after
from edgecache.brain.core.values import (
    TAGGING_HEADER,
    BlobManifest,
    BucketInfo,
    Conditions,
    DeleteMarker,
    Deletion,
    KeyPage,
    ListedObject,
    ObjectVersion,
    WrittenFields,
)
from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase, DatabaseTransaction, Row
from edgecache.brain.directory import commits
from edgecache.brain.directory.versions import LIFECYCLE_DIGEST
from edgecache.brain.objects import object_versions
from edgecache.brain.objects.stored_writes import check_conditions

STORED: Final = (
    "SELECT s.blob_id, b.size, b.md5, b.crc32, b.chunks, s.etag, s.content_type, s.headers,"
    " s.metadata, s.checksums, s.parts, s.last_modified"
    " FROM brain_storedobject s JOIN brain_blob b ON b.sha256 = s.blob_id"
    " WHERE s.bucket_id = %s AND s.key = %s"
)
# A version by its id, in one statement: it may become current meanwhile, or no longer be that.
VERSION: Final = (
    STORED + " AND coalesce(s.headers ->> 'x-amz-version-id', '') = %s"  # noqa: S608 - literals
    " UNION ALL SELECT v.blob_id, b.size, b.md5, b.crc32, b.chunks, v.etag, v.content_type,"
    " v.headers, v.metadata, v.checksums, v.parts, v.last_modified"
    " FROM brain_noncurrentversion v LEFT JOIN brain_blob b ON b.sha256 = v.blob_id"
    " WHERE v.bucket_id = %s AND v.key = %s AND v.version_id = %s"
)
NEWEST_MARKER: Final = (
    "SELECT v.version_id, v.last_modified FROM (SELECT version_id, last_modified, blob_id"
    " FROM brain_noncurrentversion WHERE bucket_id = %(bucket)s AND key = %(key)s"
    " ORDER BY position DESC LIMIT 1) v WHERE v.blob_id IS NULL AND NOT EXISTS"
    " (SELECT FROM brain_storedobject WHERE bucket_id = %(bucket)s AND key = %(key)s)"
)
HAS_BYTES: Final = (
    "SELECT 1 WHERE EXISTS (SELECT FROM brain_smallbody WHERE blob_id = %(blob)s)"
    " OR EXISTS (SELECT FROM brain_storedblob WHERE blob_id = %(blob)s"
    " AND organization_id = %(organization)s AND environment_pk = %(environment)s)"
)
HOLD: Final = "SELECT 1 FROM brain_blob WHERE sha256 = %s FOR KEY SHARE"

LIST_ALL: Final = (
    "SELECT s.key, NULL AS grouped, b.size, s.etag, s.last_modified"
    " FROM brain_storedobject s JOIN brain_blob b ON b.sha256 = s.blob_id"
    " WHERE s.bucket_id = %(bucket)s AND s.key > %(after)s AND s.key >= %(prefix)s"
    " AND s.key <= %(last)s ORDER BY s.key LIMIT %(limit)s"
)
# One index step for each key or group: a group's keys are skipped, however many there are.
LIST_STEP: Final = (
    "SELECT s.id, s.key, CASE WHEN strpos(substr(s.key, %(skip)s), %(delimiter)s) > 0"
    " THEN left(s.key, %(skip)s - 1 + strpos(substr(s.key, %(skip)s), %(delimiter)s)"
    " + length(%(delimiter)s) - 1) END AS grouped FROM brain_storedobject s"
    " WHERE s.bucket_id = %(bucket)s AND s.key <= %(last)s AND s.key > "
)
LIST_GROUPED: Final = (
    "WITH RECURSIVE walk AS ((SELECT found.*, 1 AS place FROM ("  # noqa: S608 - literals alone
    + LIST_STEP
    + "%(after)s AND s.key >= %(prefix)s ORDER BY s.key LIMIT 1) found)"
    " UNION ALL SELECT found.*, walk.place + 1 FROM walk, LATERAL ("
    + LIST_STEP
    + "coalesce(walk.grouped || %(leap)s, walk.key) ORDER BY s.key LIMIT 1) found"
    " WHERE walk.place < %(limit)s)"
    " SELECT walk.key, walk.grouped, b.size, s.etag, s.last_modified"
    " FROM walk JOIN brain_storedobject s ON s.id = walk.id"
    " JOIN brain_blob b ON b.sha256 = s.blob_id ORDER BY walk.place"
)
WRITE_STORED: Final = (
    "INSERT INTO brain_storedobject (bucket_id, key, blob_id, etag, content_type, headers,"
    " metadata, checksums, parts, position, last_modified)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (bucket_id, key) DO UPDATE SET blob_id = EXCLUDED.blob_id,"
    " etag = EXCLUDED.etag, content_type = EXCLUDED.content_type, headers = EXCLUDED.headers,"
    " metadata = EXCLUDED.metadata, checksums = EXCLUDED.checksums, parts = EXCLUDED.parts,"
    " position = EXCLUDED.position, last_modified = EXCLUDED.last_modified"
)
TAG: Final = (
    "UPDATE brain_storedobject SET headers = (headers - %s) || %s WHERE bucket_id = %s AND key = %s"
)
IS_VERSION: Final = " AND coalesce(headers ->> 'x-amz-version-id', '') = %s"
TAG_NONCURRENT: Final = (
    "UPDATE brain_noncurrentversion SET headers = (headers - %s) || %s"
    " WHERE bucket_id = %s AND key = %s AND version_id = %s AND blob_id IS NOT NULL"
)


EXPIRED_COLUMNS: Final = ("key", "etag", "last_modified", "tagging")
# Objects that are still as they were read, while their bucket's rules are, too.
UNCHANGED: Final = (
    "SELECT s.key FROM"
    " unnest(%s::text[], %s::text[], %s::timestamptz[], %s::text[])"
    " given (key, etag, last_modified, tagging) JOIN brain_storedobject s ON s.bucket_id = %s"
    " AND s.key = given.key AND s.etag = given.etag AND s.last_modified = given.last_modified"
    " AND coalesce(s.headers ->> %s, '') = given.tagging"
    " JOIN brain_bucket b ON b.id = s.bucket_id AND " + LIFECYCLE_DIGEST + " = %s"
)


async def copy(
    coherence: Coherence,
    source: tuple[BucketInfo, str],
    bucket: BucketInfo,
    key: str,
    describe: Callable[[ObjectVersion], WrittenFields],
    conditions: Conditions,
    *,
    version_id: str | None = None,
) -> ObjectVersion | None:
    """Write an object with the bytes of another object of the built-in origin.

    source: bucket and key. version_id: of the source; None for the current version.
    describe: returns the copy's fields for a version.

    Returns None if the source was overwritten concurrently. Raises OriginMissing, TargetMissing,
    PreconditionFailed, NoSuchBucket, DatabaseUnavailable, and what ``describe`` raises.
    """
    async with coherence.transaction() as change:
        versioning = await commits.lock_keys(change, bucket.id, [key])
        current = await change.one(STORED, [bucket.id, key])
        check_conditions(current, conditions)
        row = await _find(change, *source, version_id)
        if row is None or row.blob_id is None:
            raise OriginMissing
        # While the row of the bytes is locked, garbage collection cannot delete the bytes.
        if await change.one(HOLD, [row.blob_id]) is None:
            return None
        organization_id, environment_pk = bucket.tenant
        wanted = {
            "blob": row.blob_id,
            "organization": organization_id,
            "environment": environment_pk,
        }
        # Another environment's object may name the same blob, whose bytes are not this one's.
        if await change.one(HAS_BYTES, wanted) is None:
            return None
        version = _stored(*source, row)
        fields = describe(commits.version_of(version))
        return await _write(change, bucket, key, version.manifest, fields, current, versioning)


async def head(database: BrainDatabase, bucket: BucketInfo, key: str) -> ObjectVersion | None:
    """Return the object's fields. Raises DatabaseUnavailable."""
    row = await database.one(STORED, [bucket.id, key])
    return None if row is None else commits.version_of(_stored(bucket, key, row))


async def version(
    database: BrainDatabase, bucket: BucketInfo, key: str, version_id: str
) -> ObjectVersion | DeleteMarker | None:
    """Return a version or a delete marker by its id. Raises DatabaseUnavailable."""
    row = await _find(database, bucket, key, version_id)
    if row is None:
        return None
    if row.blob_id is None:
        return DeleteMarker(version_id, row.last_modified)
    return commits.version_of(_stored(bucket, key, row))


async def newest_marker(
    database: BrainDatabase, bucket: BucketInfo, key: str
) -> DeleteMarker | None:
    """Return the delete marker that is the newest version of a key; None if that is no marker.

    Raises DatabaseUnavailable.
    """
    row = await database.one(NEWEST_MARKER, {"bucket": bucket.id, "key": key})
    return None if row is None else DeleteMarker(*row)


async def list_keys(
    database: BrainDatabase,
    bucket_id: int,
    *,
    prefix: str,
    start_after: str,
    delimiter: str,
    limit: int,
) -> KeyPage:
    """Return a page of at most ``limit`` keys and groups after ``start_after``.

    Raises DatabaseUnavailable.
    """
    if limit <= 0:
        return KeyPage((), (), None)
    wanted = {
        "bucket": bucket_id,
        "prefix": prefix,
        "last": prefix + LAST,
        "after": after(prefix, start_after, delimiter),
        "skip": len(prefix) + 1,
        "delimiter": delimiter,
        "leap": LAST,
        "limit": limit + 1,
    }
    rows = await database.all(LIST_GROUPED if delimiter else LIST_ALL, wanted)
    return _page_of(rows, limit)


async def adopt(coherence: Coherence, bucket: BucketInfo, key: str) -> ObjectVersion | None:
    """Put an object into the directory again after a purge; None if it does not exist.

    Raises NoSuchBucket, DatabaseUnavailable.
    """
    async with coherence.transaction(wait_for_acks=False) as change:
        await commits.lock_keys(change, bucket.id, [key])
        row = await change.one(STORED, [bucket.id, key])
        if row is None:
            return None
        version = _stored(bucket, key, row)
        await commits.hold_blob(change, version.manifest)
        return await commits.write_cached(change, version)


async def tag_version(
    coherence: Coherence, bucket: BucketInfo, key: str, tagging: str, version_id: str
) -> ObjectVersion | DeleteMarker | None:
    """Replace the tags of a version by its id; return the version, or the marker that has none.

    Raises NoSuchBucket, DatabaseUnavailable.
    """
    async with coherence.transaction() as change:
        await commits.lock_keys(change, bucket.id, [key])
        tags = {TAGGING_HEADER: tagging} if tagging else {}
        whose = [TAGGING_HEADER, Jsonb(tags), bucket.id, key, version_id]
        if await change.run(TAG + IS_VERSION, whose):
            await commits.forget_keys(change, bucket.id, [key])
        await change.run(TAG_NONCURRENT, whose)
        row = await _find(change, bucket, key, version_id)
        if row is None:
            return None
        if row.blob_id is None:
            return DeleteMarker(version_id, row.last_modified)
        return commits.version_of(_stored(bucket, key, row))


async def tag(
    coherence: Coherence, bucket: BucketInfo, key: str, tagging: str
) -> ObjectVersion | None:
    """Replace an object's tags only; None if the object does not exist.

    tagging: the header's value, empty for no tags. Raises NoSuchBucket, DatabaseUnavailable.
    """
    async with coherence.transaction() as change:
        await commits.lock_keys(change, bucket.id, [key])
        tags = {TAGGING_HEADER: tagging} if tagging else {}
        await change.run(TAG, [TAGGING_HEADER, Jsonb(tags), bucket.id, key])
        row = await change.one(STORED, [bucket.id, key])
        if row is None:
            return None
        version = _stored(bucket, key, row)
        await commits.hold_blob(change, version.manifest)
        return await commits.write_cached(change, version)


async def delete(
    coherence: Coherence, bucket: BucketInfo, keys: Sequence[str]
) -> Mapping[str, str]:
    """Delete objects, ignoring absent ones; return the ids of the delete markers by key.

    Raises NoSuchBucket, DatabaseUnavailable.
    """
    async with coherence.transaction() as change:
        versioning = await commits.lock_keys(change, bucket.id, keys)
        return await _delete(change, bucket, keys, versioning)


async def delete_versions(
    coherence: Coherence, bucket: BucketInfo, wanted: Collection[Deletion]
) -> tuple[set[Deletion], dict[tuple[str, str | None], bool]]:
    """Delete versions whose conditions hold, ignoring absent ones; the next ones become current.

    Returns those whose conditions do not hold; and those that existed, by key and id, with True for
    a delete marker. Raises NoSuchBucket, DatabaseUnavailable.
    """
    keys = sorted({each.key for each in wanted})
    async with coherence.transaction() as change:
        await commits.lock_keys(change, bucket.id, keys)
        differing = await object_versions.differing(change, bucket.id, wanted)
        matching = {(each.key, each.version_id) for each in wanted if each not in differing}
        found, gone = await object_versions.delete(change, bucket.id, matching)
        if found:
            await commits.forget_keys(change, bucket.id, sorted({key for key, _ in found}))
            await commits.release_stored(change, gone)
        return differing, found


async def delete_matching(
    coherence: Coherence, bucket: BucketInfo, wanted: Collection[Deletion]
) -> tuple[set[Deletion], Mapping[str, str]]:
    """Delete objects whose conditions hold.

    Returns those whose conditions do not hold, and delete markers by key. Raises NoSuchBucket,
    DatabaseUnavailable.
    """
    keys = sorted({each.key for each in wanted})
    async with coherence.transaction() as change:
        versioning = await commits.lock_keys(change, bucket.id, keys)
        differing = await object_versions.differing(change, bucket.id, wanted)
        matching = sorted({each.key for each in wanted if each not in differing})
        markers = await _delete(change, bucket, matching, versioning) if matching else {}
        return differing, markers


async def expire(coherence: Coherence, bucket: BucketInfo, objects: Sequence[Row]) -> int:
    """Delete objects that nothing has changed since; return their number.

    objects: key, etag, last_modified and tagging of each, read when the bucket had these rules.
    Raises NoSuchBucket, DatabaseUnavailable.
    """
    columns = [[getattr(row, name) for row in objects] for name in EXPIRED_COLUMNS]
    async with coherence.transaction() as change:
        versioning = await commits.lock_keys(change, bucket.id, columns[0])
        values = [*columns, bucket.id, TAGGING_HEADER, bucket.lifecycle]
        same = [row.key for row in await change.all(UNCHANGED, values)]
        if same:
            await _delete(change, bucket, same, versioning)
    return len(same)


async def _find(
    reads: DatabaseTransaction | BrainDatabase, bucket: BucketInfo, key: str, version_id: str | None
) -> Row | None:
    """Return the row of a version, without a blob for a delete marker; None: the current one."""
    if version_id is None:
        return await reads.one(STORED, [bucket.id, key])
    return await reads.one(VERSION, [bucket.id, key, version_id] * 2)


async def _delete(
    change: AnnouncingTransaction, bucket: BucketInfo, keys: Sequence[str], versioning: str
) -> Mapping[str, str]:
    """Delete objects whose keys are locked; return the ids of the delete markers by key."""
    markers = await object_versions.make_way(change, versioning, bucket.id, keys)
    gone = await change.all(
        "DELETE FROM brain_storedobject WHERE bucket_id = %s AND key = ANY(%s) RETURNING blob_id",
        [bucket.id, list(keys)],
    )
    if versioning:
        await object_versions.mark_deleted(change, bucket.id, markers)
    await commits.forget_keys(change, bucket.id, keys)
    await commits.release_stored(change, {*markers.gone, *(row.blob_id for row in gone)})
    return markers.ids


async def _write(
    change: AnnouncingTransaction,
    bucket: BucketInfo,
    key: str,
    manifest: BlobManifest,
    fields: WrittenFields,
    current: Row | None,
    versioning: str,
) -> ObjectVersion:
    now = datetime.now(UTC).replace(microsecond=0)
    made = await object_versions.make_way(change, versioning, bucket.id, [key])
    fields = object_versions.with_version_id(fields, made.ids.get(key, ""))
    version = commits.VersionRow(
        bucket.id, key, "", manifest, fields, fields.etag or manifest.md5.hex(), now, {}
    )
    await change.run(
        WRITE_STORED,
        [
            bucket.id,
            key,
            manifest.sha256,
            version.etag,
            fields.content_type,
            Jsonb(dict(fields.headers)),
            Jsonb(dict(fields.metadata)),
            Jsonb(dict(fields.checksums)),
            Jsonb(list(fields.parts)),
            made.positions.get(key, 0),
            now,
        ],
    )
    found = await commits.write_cached(change, version, is_written=True)
    gone = {*made.gone} | ({current.blob_id} if current is not None else set())
    await commits.release_stored(change, gone - {manifest.sha256})
    return found


def _stored(bucket: BucketInfo, key: str, row: Row) -> commits.VersionRow:
    manifest = BlobManifest(row.blob_id, row.size, row.md5, row.crc32, row.chunks)
    fields = WrittenFields(
        row.content_type, row.headers, row.metadata, row.checksums, tuple(row.parts), row.etag
    )
    return commits.VersionRow(bucket.id, key, "", manifest, fields, row.etag, row.last_modified, {})


def _page_of(rows: list[Row], limit: int) -> KeyPage:
    """Return the page of rows; there may be one row more than the limit."""
    page = rows[:limit]
    last = page[-1] if len(rows) > limit else None
    return KeyPage(
        tuple(
            ListedObject(r.key, r.size, r.etag, r.last_modified) for r in page if r.grouped is None
        ),
        tuple(r.grouped for r in page if r.grouped is not None),
        None if last is None else last.grouped or last.key,
    )
