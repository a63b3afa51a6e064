"""Responses that the CDN has stored are forgotten: those of no use any more, and an excess.

Each URL of a public bucket, with each query, may have a row, and an origin may answer any URL:
without this, anonymous clients would fill the database.
"""

from collections.abc import Mapping
from typing import Any, Final

from edgecache.brain.directory import commits
from edgecache.brain.directory.coherence import Coherence

# How long after it could be used stale a response is kept: an origin may confirm it until then.
KEPT_DAYS: Final = 7
STEP: Final = 500
STEP_TIMEOUT_S: Final = 30.0
# A response that may be used stale for many years is forgotten by its age in the directory.
EXPIRED: Final = (
    "extract(epoch FROM now()) - (http->>'at')::float8 + (http->>'age_s')::float8"
    " - (http->>'lifetime_s')::float8 - greatest((http->>'stale_while_revalidate_s')::float8,"
    " (http->>'stale_if_error_s')::float8) > %(days)s * 86400.0"
    " AND cached_at < now() - make_interval(days => %(days)s)"
)
# One bucket after another, by the index of responses. A row that is being written is in use.
FORGET: Final = (
    "DELETE FROM brain_cachedobject WHERE id IN"
    " (SELECT c.id FROM brain_bucket b CROSS JOIN LATERAL (SELECT id FROM brain_cachedobject"
    " WHERE bucket_id = b.id AND http <> '{{}}' AND {condition} LIMIT %(step)s"
    " FOR UPDATE SKIP LOCKED) c WHERE {buckets} LIMIT %(step)s)"
    " RETURNING bucket_id, key, blob_id"
)
FORGET_EXPIRED: Final = FORGET.format(condition=EXPIRED, buckets="true")
FORGET_OLD: Final = FORGET.format(
    condition="cached_at < %(before)s", buckets="b.organization_id = %(organization)s"
)
EXCESSES: Final = (
    "SELECT b.organization_id FROM brain_cachedobject c JOIN brain_bucket b ON b.id = c.bucket_id"
    " WHERE c.http <> '{}' GROUP BY b.organization_id HAVING count(*) > %s"
)
OLDEST_KEPT: Final = (
    "SELECT c.cached_at FROM brain_cachedobject c JOIN brain_bucket b ON b.id = c.bucket_id"
    " WHERE c.http <> '{}' AND b.organization_id = %s ORDER BY c.cached_at DESC OFFSET %s LIMIT 1"
)


async def forget_expired(coherence: Coherence) -> int:
    """Forget the responses that expired long ago; return their number.

    Raises DatabaseUnavailable.
    """
    return await _forget(coherence, FORGET_EXPIRED, {"days": KEPT_DAYS})


async def forget_excess(coherence: Coherence, limit: int) -> int:
    """Forget the oldest responses of organizations that have more than a limit.

    Returns the number of responses. Raises DatabaseUnavailable.
    """
    forgotten = 0
    async with coherence.transaction(wait_for_acks=False, timeout_s=STEP_TIMEOUT_S) as change:
        found = await change.all(EXCESSES, [limit])
        excesses = {
            row.organization_id: await change.one(OLDEST_KEPT, [row.organization_id, limit - 1])
            for row in found
        }
    for organization, oldest in excesses.items():
        if oldest is not None:
            values = {"organization": organization, "before": oldest.cached_at}
            forgotten += await _forget(coherence, FORGET_OLD, values)
    return forgotten


async def _forget(coherence: Coherence, statement: str, values: Mapping[str, Any]) -> int:
    forgotten = 0
    while (step := await _forget_step(coherence, statement, values)) > 0:
        forgotten += step
    return forgotten


async def _forget_step(coherence: Coherence, statement: str, values: Mapping[str, Any]) -> int:
    async with coherence.transaction(wait_for_acks=False, timeout_s=STEP_TIMEOUT_S) as change:
        rows = await change.all(statement, {**values, "step": STEP})
        await commits.release(change, {row.blob_id for row in rows})
        keys: dict[int, set[str]] = {}
        for row in rows:
            keys.setdefault(row.bucket_id, set()).add(row.key)
        for bucket_id, of_bucket in keys.items():
            generation = await commits.next_generation(change)
            commits.announce_keys(change, bucket_id, [*of_bucket], generation)
    return len(rows)
