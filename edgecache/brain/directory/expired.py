"""Responses that the CDN has stored and that are of no use any more are forgotten.

Each query of a public bucket's URLs may have a row: without this, those of its anonymous clients
would fill the database.
"""

from typing import Final

from edgecache.brain.directory import commits
from edgecache.brain.directory.coherence import Coherence

# How long after it could be used stale a response is kept: an origin may confirm it until then.
KEPT_DAYS: Final = 7
STEP: Final = commits.KEYS_LOCKED
STEP_TIMEOUT_S: Final = 30.0
# By the index of variants. What another transaction writes now is in use.
FORGET: Final = (
    "DELETE FROM brain_cachedobject WHERE id IN (SELECT id FROM brain_cachedobject"
    " WHERE variant > '' AND cached_at < now() - make_interval(days => %(days)s)"
    " AND extract(epoch FROM now()) - (http->>'at')::float8 + (http->>'age_s')::float8"
    " - (http->>'lifetime_s')::float8 - greatest((http->>'stale_while_revalidate_s')::float8,"
    " (http->>'stale_if_error_s')::float8) > %(days)s * 86400.0"
    " LIMIT %(step)s FOR UPDATE SKIP LOCKED) RETURNING bucket_id, key, blob_id"
)


async def forget_expired(coherence: Coherence) -> int:
    """Forget the responses that expired long ago; return their number.

    Raises DatabaseUnavailable.
    """
    forgotten = 0
    while (step := await _forget_step(coherence)) > 0:
        forgotten += step
    return forgotten


async def _forget_step(coherence: Coherence) -> int:
    async with coherence.transaction(wait_for_acks=False, timeout_s=STEP_TIMEOUT_S) as change:
        rows = await change.all(FORGET, {"days": KEPT_DAYS, "step": STEP})
        await commits.release(change, {row.blob_id for row in rows})
        keys: dict[int, set[str]] = {}
        for row in rows:
            keys.setdefault(row.bucket_id, set()).add(row.key)
        for bucket_id, of_bucket in keys.items():
            generation = await commits.next_generation(change)
            commits.announce_keys(change, bucket_id, [*of_bucket], generation)
    return len(rows)
