"""The lifecycle of versions: those that are not current expire, and markers that hide nothing go.

Rows are walked by the index of their table backwards: keys from the last one, of each the oldest
version first, so that a deletion changes nothing that is said of the versions after it, except that
the last one of them becomes the sole one.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import parse_qsl

from edgecache.brain.core.loop_steps import in_steps
from edgecache.brain.core.paging import LAST
from edgecache.brain.core.values import TAGGING_HEADER, BucketInfo
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase, Row
from edgecache.brain.directory import commits
from edgecache.brain.directory.versions import LIFECYCLE_DIGEST
from edgecache.brain.upkeep.lifecycle_rules import LifecycleRule, after_days

READ: Final = 1000
# Newer versions are counted up to this: one of them is current, and a rule keeps a hundred others.
COUNTED: Final = 102
# newer: how many versions of the key are newer. since: when the next one came; of a marker that
# column of its row is its own time. is_sole: no version is older.
DESCRIBED: Final = (
    "SELECT v.id, v.key, v.position, v.blob_id IS NULL AS is_marker, v.last_modified, b.size,"
    " coalesce(v.headers ->> %(tagging)s, '') AS tagging,"
    " CASE WHEN v.blob_id IS NOT NULL THEN v.noncurrent_since ELSE coalesce((SELECT n.last_modified"
    " FROM brain_noncurrentversion n WHERE n.bucket_id = v.bucket_id AND n.key = v.key"
    " AND n.position > v.position ORDER BY n.position LIMIT 1), (SELECT s.last_modified"
    " FROM brain_storedobject s WHERE s.bucket_id = v.bucket_id AND s.key = v.key)) END AS since,"
    " (SELECT count(*) FROM (SELECT FROM brain_noncurrentversion n WHERE n.bucket_id = v.bucket_id"
    " AND n.key = v.key AND n.position > v.position LIMIT %(counted)s) few)"
    " + (SELECT count(*) FROM brain_storedobject s WHERE s.bucket_id = v.bucket_id"
    " AND s.key = v.key) AS newer,"
    " NOT EXISTS (SELECT FROM brain_noncurrentversion o WHERE o.bucket_id = v.bucket_id"
    " AND o.key = v.key AND o.position < v.position) AS is_sole"
    " FROM brain_noncurrentversion v LEFT JOIN brain_blob b ON b.sha256 = v.blob_id WHERE "
)
_PART: Final = (
    "(SELECT v.id, v.key, v.position FROM brain_noncurrentversion v"
    " WHERE v.bucket_id = %(bucket)s AND {} ORDER BY v.key DESC, v.position LIMIT %(limit)s)"
)
NEXT: Final = (
    _PART.format("v.key = %(key)s AND v.position > %(position)s")
    + " UNION ALL "
    + _PART.format("v.key < %(key)s")
    + " ORDER BY key DESC, position LIMIT %(limit)s"
)
BY_ID: Final = DESCRIBED + "v.id = ANY(%(ids)s) ORDER BY v.key DESC, v.position"
HAS_RULES: Final = (
    "SELECT 1 FROM brain_bucket"  # noqa: S608 - literals alone
    " WHERE id = %s AND " + LIFECYCLE_DIGEST + " = %s"
)
DELETE: Final = "DELETE FROM brain_noncurrentversion WHERE id = ANY(%s) RETURNING blob_id"

IsDue = Callable[[Row], bool]


async def expire_versions(
    database: BrainDatabase,
    coherence: Coherence,
    bucket: BucketInfo,
    rules: Sequence[LifecycleRule],
    *,
    now: datetime,
    compared: int,
) -> tuple[int, int]:
    """Delete what has expired; return the number of versions and of markers.

    compared: rules that one step of the event loop compares with versions. Raises NoSuchBucket,
    DatabaseUnavailable.
    """
    of_versions = [rule for rule in rules if rule.noncurrent_days is not None]
    of_markers = [rule for rule in rules if rule.may_remove_markers]
    versions = markers = 0

    def is_expired(row: Row) -> bool:
        return row.newer > 0 and any(_expires(rule, row, now) for rule in of_versions)

    def is_unneeded(row: Row) -> bool:
        is_sole_marker = row.is_marker and row.is_sole and row.newer == 0
        return is_sole_marker and any(_removes(rule, row, now) for rule in of_markers)

    # Markers last: the versions that they hid are gone then.
    if of_versions:
        step = max(compared // len(of_versions), 1)
        versions = await _walk(database, coherence, bucket, is_expired, step)
    if of_markers:
        step = max(compared // len(of_markers), 1)
        markers = await _walk(database, coherence, bucket, is_unneeded, step)
    return versions, markers


def _expires(rule: LifecycleRule, row: Row, now: datetime) -> bool:
    """True if a version that is not current expires by a rule."""
    if rule.noncurrent_days is None or row.newer - 1 < (rule.newer_noncurrent or 0):
        return False
    if after_days(row.since, rule.noncurrent_days) > now:
        return False
    if row.is_marker:
        return rule.fits_marker(row.key)
    tags = dict(parse_qsl(row.tagging, keep_blank_values=True))
    return rule.fits(row.key, row.size, tags)


def _removes(rule: LifecycleRule, row: Row, now: datetime) -> bool:
    """True if a marker without other versions is removed by a rule."""
    if not rule.fits_marker(row.key):
        return False
    is_old = rule.days is not None and after_days(row.last_modified, rule.days) <= now
    return bool(rule.removes_markers) or is_old


async def _walk(
    database: BrainDatabase, coherence: Coherence, bucket: BucketInfo, is_due: IsDue, step: int
) -> int:
    """Delete the rows that are due; return their number."""
    deleted, key, position = 0, LAST, 0
    while True:
        at = {"bucket": bucket.id, "key": key, "position": position, "limit": READ}
        page = await database.all(NEXT, at)
        if not page:
            return deleted
        key, position = page[-1].key, page[-1].position
        rows = await database.all(BY_ID, _described([row.id for row in page]))
        due = [
            row
            for row, is_it in zip(rows, await in_steps(is_due, rows, step=step), strict=True)
            if is_it
        ]
        for start in range(0, len(due), commits.KEYS_LOCKED):
            deleted += await _delete(coherence, bucket, due[start : start + commits.KEYS_LOCKED])


async def _delete(coherence: Coherence, bucket: BucketInfo, rows: Sequence[Row]) -> int:
    """Delete versions of which nothing has changed since, while the bucket has the same rules."""
    async with coherence.transaction() as change:
        await commits.lock_keys(change, bucket.id, sorted({row.key for row in rows}))
        if await change.one(HAS_RULES, [bucket.id, bucket.lifecycle]) is None:
            return 0
        found = await change.all(BY_ID, _described([row.id for row in rows]))
        # But for ``is_sole``: the older ones may have been deleted just before these.
        read = {row[:-1] for row in rows}
        same = [row.id for row in found if row[:-1] in read]
        gone = await change.all(DELETE, [same])
        await commits.release_stored(
            change, {row.blob_id for row in gone if row.blob_id is not None}
        )
    return len(gone)


def _described(ids: Sequence[int]) -> dict[str, object]:
    return {"ids": list(ids), "tagging": TAGGING_HEADER, "counted": COUNTED}
