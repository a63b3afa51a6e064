"""Deletion of an environment's data: buckets with their objects, origins, access keys."""

from typing import Final

from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory import buckets, commits
from edgecache.brain.directory.purges import Purges

STEP_ROWS: Final = 5_000
STEP_TIMEOUT_S: Final = 60.0

EMPTY: Final = (
    "WITH gone AS (DELETE FROM brain_storedobject WHERE id IN"
    " (SELECT id FROM brain_storedobject WHERE bucket_id = %(bucket)s LIMIT %(limit)s)"
    " RETURNING blob_id), older AS (DELETE FROM brain_noncurrentversion WHERE id IN"
    " (SELECT id FROM brain_noncurrentversion WHERE bucket_id = %(bucket)s LIMIT %(limit)s)"
    " RETURNING blob_id), both_gone AS (SELECT blob_id FROM gone UNION ALL SELECT * FROM older)"
    " SELECT count(*) AS gone, coalesce(array_agg(DISTINCT blob_id)"
    " FILTER (WHERE blob_id IS NOT NULL), '{}') AS blobs FROM both_gone"
)
REST: Final = (
    "WITH gone AS (DELETE FROM brain_storedobject WHERE bucket_id = %(bucket)s"
    " RETURNING blob_id), older AS (DELETE FROM brain_noncurrentversion"
    " WHERE bucket_id = %(bucket)s RETURNING blob_id)"
    " SELECT blob_id FROM gone UNION ALL SELECT blob_id FROM older WHERE blob_id IS NOT NULL"
)


async def drop(
    database: BrainDatabase,
    coherence: Coherence,
    purges: Purges,
    tenant: EnvironmentKey,
) -> None:
    """Delete everything of an environment; may be repeated, and then continues.

    Access keys are deleted first, so that nothing new is written. Usage lines and receipts stay.
    External origins keep their objects. Raises DatabaseUnavailable.
    """
    whose = tenant
    async with coherence.transaction() as change:
        gone = await change.all(
            "DELETE FROM brain_accesskey WHERE organization_id = %s AND environment_pk = %s"
            " RETURNING id",
            whose,
        )
        for row in gone:
            change.announce("access_key", row.id)
    await purges.purge(tenant, everything=True)
    rows = await database.all(
        "SELECT id FROM brain_bucket WHERE organization_id = %s AND environment_pk = %s", whose
    )
    for row in rows:
        await _drop_bucket(coherence, row.id)
    async with coherence.transaction() as change:
        origins = await change.all(
            "DELETE FROM brain_origin WHERE organization_id = %s AND environment_pk = %s"
            " RETURNING id",
            whose,
        )
        for origin in origins:
            change.announce("origin", origin.id)


async def _drop_bucket(coherence: Coherence, bucket_id: int) -> None:
    is_empty = False
    while not is_empty:
        async with coherence.transaction(wait_for_acks=False, timeout_s=STEP_TIMEOUT_S) as change:
            step = await change.one(EMPTY, {"bucket": bucket_id, "limit": STEP_ROWS})
            if step is not None:
                await commits.release_stored(change, step.blobs)
            is_empty = step is None or step.gone < STEP_ROWS
    async with coherence.transaction(timeout_s=STEP_TIMEOUT_S) as change:
        await change.run("SELECT FROM brain_bucket WHERE id = %s FOR UPDATE", [bucket_id])
        rest = await change.all(REST, {"bucket": bucket_id})
        await commits.release_stored(change, {row.blob_id for row in rest})
        await buckets.remove(change, bucket_id)
