"""Responses that the CDN has stored are forgotten: those of no use any more, and an excess.

Each URL of a public bucket, with each query, may have a row, and an origin may answer any URL:
without this, anonymous clients would fill the database.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import Row
from edgecache.brain.directory import commits

# How long after it could be used stale a response is kept: an origin may confirm it until then.
KEPT_DAYS: Final = 7
# Rows that a step reads: most of them may be of use for a year. And those that it deletes: for more
# keys, brains would forget what they know of the whole bucket.
READ: Final = 500
STEP: Final = commits.KEYS_LOCKED
STEP_TIMEOUT_S: Final = 30.0
IS_EXPIRED: Final = (
    "extract(epoch FROM now()) - (http->>'at')::float8 + (http->>'age_s')::float8"
    " - (http->>'lifetime_s')::float8 - greatest((http->>'stale_while_revalidate_s')::float8,"
    " (http->>'stale_if_error_s')::float8) > %(days)s * 86400.0"
)
# By the index of responses; each row once in a pass, however many stay.
NEXT: Final = (
    f"SELECT id, bucket_id, cached_at, {IS_EXPIRED} AS is_expired"  # noqa: S608 - literals alone
    " FROM brain_cachedobject WHERE http <> '{}'"
    " AND cached_at < now() - make_interval(days => %(days)s)"
    " AND (bucket_id, cached_at, id) > (%(bucket)s, %(at)s::timestamptz, %(id)s)"
    " ORDER BY bucket_id, cached_at, id LIMIT %(read)s"
)
# A row that another transaction writes now is in use.
FORGET: Final = (
    "DELETE FROM brain_cachedobject WHERE id IN"  # noqa: S608 - literals alone
    f" (SELECT id FROM brain_cachedobject WHERE id = ANY(%(ids)s) AND {IS_EXPIRED}"
    " FOR UPDATE SKIP LOCKED) RETURNING bucket_id, key, blob_id"
)
# Reads one bucket after another, by the same index.
FORGET_OLD: Final = (
    "DELETE FROM brain_cachedobject WHERE id = ANY(ARRAY"
    "(SELECT c.id FROM brain_bucket b CROSS JOIN LATERAL (SELECT id FROM brain_cachedobject"
    " WHERE bucket_id = b.id AND http <> '{}' AND cached_at < %s LIMIT %s"
    " FOR UPDATE SKIP LOCKED) c WHERE b.organization_id = %s LIMIT %s))"
    " RETURNING bucket_id, key, blob_id"
)
EXCESSES: Final = (
    "SELECT b.organization_id FROM brain_cachedobject c JOIN brain_bucket b ON b.id = c.bucket_id"
    " WHERE c.http <> '{}' GROUP BY b.organization_id HAVING count(*) > %s"
)
OLDEST_KEPT: Final = (
    "SELECT c.cached_at FROM brain_cachedobject c JOIN brain_bucket b ON b.id = c.bucket_id"
    " WHERE c.http <> '{}' AND b.organization_id = %s ORDER BY c.cached_at DESC OFFSET %s LIMIT 1"
)


class Position(NamedTuple):
    """The last row that was read."""

    bucket: int
    at: datetime | str
    id: int


START: Final = Position(0, "-infinity", 0)


async def forget_expired(coherence: Coherence) -> int:
    """Forget the responses that expired long ago; return their number.

    Raises DatabaseUnavailable.
    """
    forgotten = 0
    position: Position | None = START
    while position is not None:
        position, step = await _forget_next(coherence, position)
        forgotten += step
    return forgotten


async def forget_excess(coherence: Coherence, limit: int) -> int:
    """Forget the oldest responses of organizations that have more than a limit.

    Returns the number of responses. Raises DatabaseUnavailable.
    """
    forgotten = 0
    async with coherence.transaction(wait_for_acks=False, timeout_s=STEP_TIMEOUT_S) as change:
        found = await change.all(EXCESSES, [limit])
        organizations = [row.organization_id for row in found]
        oldest = [await change.one(OLDEST_KEPT, [each, limit - 1]) for each in organizations]
    for organization, row in zip(organizations, oldest, strict=True):
        step = 1
        while row is not None and step > 0:
            step = await _forget_old(coherence, organization, row.cached_at)
            forgotten += step
    return forgotten


async def _forget_next(coherence: Coherence, after: Position) -> tuple[Position | None, int]:
    """Forget the expired ones of the next rows; return the last of these rows, and a number."""
    async with coherence.transaction(wait_for_acks=False, timeout_s=STEP_TIMEOUT_S) as change:
        page = await change.all(NEXT, {**after._asdict(), "days": KEPT_DAYS, "read": READ})
        if not page:
            return None, 0
        expired = [row for row in page if row.is_expired][:STEP]
        ids = [row.id for row in expired]
        rows = await change.all(FORGET, {"ids": ids, "days": KEPT_DAYS}) if ids else []
        await _release(change, rows)
    last = expired[-1] if len(expired) == STEP else page[-1]
    return Position(last.bucket_id, last.cached_at, last.id), len(rows)


async def _forget_old(coherence: Coherence, organization_id: int, before: datetime) -> int:
    async with coherence.transaction(wait_for_acks=False, timeout_s=STEP_TIMEOUT_S) as change:
        rows = await change.all(FORGET_OLD, [before, STEP, organization_id, STEP])
        await _release(change, rows)
    return len(rows)


async def _release(change: AnnouncingTransaction, rows: Sequence[Row]) -> None:
    """Release the blobs of forgotten responses, and tell all brains."""
    await commits.release(change, {row.blob_id for row in rows})
    keys: dict[int, set[str]] = {}
    for row in rows:
        keys.setdefault(row.bucket_id, set()).add(row.key)
    for bucket_id, of_bucket in keys.items():
        generation = await commits.next_generation(change)
        commits.announce_keys(change, bucket_id, [*of_bucket], generation)
