"""The versions of the objects of a bucket: the current ones make way, are deleted, and come back.

The current version of a key is its row of ``brain_storedobject``; the others, and delete markers,
are rows of ``brain_noncurrentversion``. Each function is a part of a write's transaction, which has
locked the keys and read the bucket's versioning with that lock (``commits.lock_keys``): what a
brain remembers of the bucket does not count.
"""

import re
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from edgecache.brain.core.values import VERSION_HEADER, Deletion, WrittenFields
from edgecache.brain.db.database import DatabaseTransaction, Row

ENABLED: Final = "Enabled"
SUSPENDED: Final = "Suspended"
# The position in microseconds since 1970, so that a listing continues behind a version that was
# deleted since, and 72 random bits.
VERSION_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
POSITION_DIGITS: Final = 14
RANDOM_BYTES: Final = 9

NEWEST: Final = (
    "SELECT given.key, greatest((SELECT position FROM brain_storedobject s"
    " WHERE s.bucket_id = %(bucket)s AND s.key = given.key),"
    " (SELECT max(position) FROM brain_noncurrentversion v"
    " WHERE v.bucket_id = %(bucket)s AND v.key = given.key)) AS position"
    " FROM unnest(%(keys)s::text[]) given (key)"
)
# Of a suspended bucket the null version is replaced, others stay.
KEEP: Final = (
    "INSERT INTO brain_noncurrentversion (bucket_id, key, version_id, position, blob_id, etag,"
    " content_type, headers, metadata, checksums, parts, last_modified)"
    " SELECT bucket_id, key, coalesce(headers ->> 'x-amz-version-id', ''), position, blob_id, etag,"
    " content_type, headers, metadata, checksums, parts, last_modified FROM brain_storedobject"
    " WHERE bucket_id = %(bucket)s AND key = ANY(%(keys)s)"
    " AND (%(with_null)s OR headers ? 'x-amz-version-id')"
)
DELETE_NULL: Final = (
    "DELETE FROM brain_noncurrentversion WHERE bucket_id = %s AND key = ANY(%s)"
    " AND version_id = '' RETURNING blob_id"
)
MARK: Final = (
    "INSERT INTO brain_noncurrentversion (bucket_id, key, version_id, position, etag,"
    " content_type, headers, metadata, checksums, parts, last_modified)"
    " SELECT %s, key, version_id, position, '', '', '{}', '{}', '{}', '[]', %s"
    " FROM unnest(%s::text[], %s::text[], %s::bigint[]) given (key, version_id, position)"
)
DELETE_CURRENT: Final = (
    "DELETE FROM brain_storedobject s USING unnest(%s::text[], %s::text[]) given (key, version_id)"
    " WHERE s.bucket_id = %s AND s.key = given.key"
    " AND coalesce(s.headers ->> 'x-amz-version-id', '') = given.version_id"
    " RETURNING s.key, given.version_id, s.blob_id"
)
DELETE_NONCURRENT: Final = (
    "DELETE FROM brain_noncurrentversion v"
    " USING unnest(%s::text[], %s::text[]) given (key, version_id) WHERE v.bucket_id = %s"
    " AND v.key = given.key AND v.version_id = given.version_id"
    " RETURNING v.key, v.version_id, v.blob_id"
)
# What conditions of deletes are compared with: the newest version of a key, or the one of an id.
STATES: Final = (
    "SELECT given.key, given.version_id, v.etag, v.last_modified, b.size"
    " FROM unnest(%(keys)s::text[], %(ids)s::text[]) given (key, version_id) CROSS JOIN LATERAL"
    " ((SELECT etag, last_modified, blob_id, position FROM brain_storedobject"
    " WHERE bucket_id = %(bucket)s AND key = given.key AND (given.version_id IS NULL"
    " OR coalesce(headers ->> 'x-amz-version-id', '') = given.version_id))"
    " UNION ALL (SELECT etag, last_modified, blob_id, position FROM brain_noncurrentversion"
    " WHERE bucket_id = %(bucket)s AND key = given.key AND given.version_id IS NULL"
    " ORDER BY position DESC LIMIT 1)"
    " UNION ALL (SELECT etag, last_modified, blob_id, position FROM brain_noncurrentversion"
    " WHERE bucket_id = %(bucket)s AND key = given.key AND version_id = given.version_id)"
    " ORDER BY position DESC LIMIT 1) v LEFT JOIN brain_blob b ON b.sha256 = v.blob_id"
)
# Where the newest version was deleted, the next one is current, unless that is a delete marker.
PROMOTE: Final = (
    "WITH newest AS (SELECT v.id FROM unnest(%(keys)s::text[]) given (key) CROSS JOIN LATERAL"
    " (SELECT id, blob_id FROM brain_noncurrentversion WHERE bucket_id = %(bucket)s"
    " AND key = given.key ORDER BY position DESC LIMIT 1) v WHERE v.blob_id IS NOT NULL"
    " AND NOT EXISTS (SELECT FROM brain_storedobject s"
    " WHERE s.bucket_id = %(bucket)s AND s.key = given.key)),"
    " moved AS (DELETE FROM brain_noncurrentversion WHERE id IN (SELECT id FROM newest)"
    " RETURNING *)"
    " INSERT INTO brain_storedobject (bucket_id, key, position, blob_id, etag, content_type,"
    " headers, metadata, checksums, parts, last_modified)"
    " SELECT bucket_id, key, position, blob_id, etag, content_type, headers, metadata, checksums,"
    " parts, last_modified FROM moved"
)


@dataclass(frozen=True, slots=True)
class NextVersions:
    """The versions that are written next, by key: their ids and positions.

    gone: blobs of null versions that were deleted.
    """

    ids: Mapping[str, str]
    positions: Mapping[str, int]
    gone: Collection[bytes] = ()


NOT_VERSIONED: Final = NextVersions({}, {})


async def make_way(
    change: DatabaseTransaction, versioning: str, bucket_id: int, keys: Sequence[str]
) -> NextVersions:
    """Keep the current versions of keys that are written next, as the bucket's versioning says.

    The caller replaces or deletes the rows of ``brain_storedobject``.
    """
    if not versioning:
        return NOT_VERSIONED
    is_enabled = versioning == ENABLED
    gone = [] if is_enabled else await change.all(DELETE_NULL, [bucket_id, list(keys)])
    whose = {"bucket": bucket_id, "keys": list(keys)}
    now_us = time.time_ns() // 1000
    rows = await change.all(NEWEST, whose)
    positions = {row.key: max(now_us, (row.position or 0) + 1) for row in rows}
    await change.run(KEEP, {**whose, "with_null": is_enabled})
    ids = {key: _new_id(positions[key]) if is_enabled else "" for key in keys}
    return NextVersions(ids, positions, [row.blob_id for row in gone if row.blob_id])


async def mark_deleted(change: DatabaseTransaction, bucket_id: int, markers: NextVersions) -> None:
    """Write delete markers; ``make_way`` came before."""
    keys = list(markers.ids)
    now = datetime.now(UTC).replace(microsecond=0)
    ids, positions = [markers.ids[key] for key in keys], [markers.positions[key] for key in keys]
    await change.run(MARK, [bucket_id, now, keys, ids, positions])


async def differing(
    change: DatabaseTransaction, bucket_id: int, wanted: Collection[Deletion]
) -> set[Deletion]:
    """Return the deletions whose conditions do not hold; their keys are locked."""
    checked = [each for each in wanted if each.has_conditions]
    if not checked:
        return set()
    keys, ids = [each.key for each in checked], [each.version_id for each in checked]
    rows = await change.all(STATES, {"bucket": bucket_id, "keys": keys, "ids": ids})
    states = {(row.key, row.version_id): row for row in rows}
    return {each for each in checked if not _holds(each, states.get((each.key, each.version_id)))}


def _holds(wanted: Deletion, state: Row | None) -> bool:
    """True if a deletion's conditions hold. state: a delete marker's has no size.

    An absent version is deleted already. An absent object has no ETag, but as at AWS any time and
    size.
    """
    if state is None:
        return wanted.version_id is not None or wanted.etag is None
    return (
        state.size is not None
        and wanted.etag in {None, "*", state.etag}
        and wanted.last_modified in {None, state.last_modified.replace(microsecond=0)}
        and wanted.size in {None, state.size}
    )


async def delete(
    change: DatabaseTransaction, bucket_id: int, wanted: Collection[tuple[str, str | None]]
) -> tuple[dict[tuple[str, str | None], bool], set[bytes]]:
    """Delete versions and delete markers by key and id; the next ones become current.

    Returns those that existed, with True for a delete marker; and the blobs to release.
    """
    keys, ids = [key for key, _ in wanted], [version_id for _, version_id in wanted]
    rows = await change.all(DELETE_CURRENT, [keys, ids, bucket_id])
    rows += await change.all(DELETE_NONCURRENT, [keys, ids, bucket_id])
    await change.run(PROMOTE, {"bucket": bucket_id, "keys": sorted(set(keys))})
    found = {(row.key, row.version_id): row.blob_id is None for row in rows}
    return found, {row.blob_id for row in rows if row.blob_id is not None}


def with_version_id(fields: WrittenFields, version_id: str) -> WrittenFields:
    """Return the fields of a version of this id; empty for the null version."""
    if not version_id and VERSION_HEADER not in fields.headers:
        return fields
    headers = {name: text for name, text in fields.headers.items() if name != VERSION_HEADER}
    return replace(fields, headers=headers | ({VERSION_HEADER: version_id} if version_id else {}))


def position_of(version_id: str) -> int:
    return int(version_id[:POSITION_DIGITS], 16)


def marker_at(position: int) -> str:
    """Return a text in the form of an id that stands for a position in listings."""
    return f"{position:0{POSITION_DIGITS}x}{0:0{2 * RANDOM_BYTES}x}"


def _new_id(position: int) -> str:
    return f"{position:0{POSITION_DIGITS}x}{secrets.token_hex(RANDOM_BYTES)}"
