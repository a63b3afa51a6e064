"""Usage lines for billing: made from the counters on request, and once an hour for storage.

A bucket and node get one line for each hour, made when the hour is over. Large amounts get a line
with the next pull; ``cuts_all`` makes lines of all amounts.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, LiteralString

from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.metering.meters import LINES_LOCK, hour_of

KEPT_DAYS: Final = 400
# Of the sum of all objects' bytes: ten million take half a minute of a processor.
STORAGE_TIMEOUT_S: Final = 1800.0
# From these amounts on a bucket and node get a line within the running hour.
MUCH_RESPONSES: Final = 100_000
MUCH_BYTES: Final = 10**9
SUMMED: Final = ("hits", "misses", "bytes_served", "storage_byte_hours")

CUT: Final[LiteralString] = """
    WITH gone AS (DELETE FROM brain_usagecounter
        -- Brains write the end of an hour some seconds after it.
        WHERE %s OR hour <= now() - interval '61 minutes' OR hits + misses >= %s
            OR bytes_served >= %s RETURNING *)
    INSERT INTO brain_usageline (line_id, organization_id, environment_pk, bucket_id, bucket_name,
                                 node_id, operator_id, is_creditable, used_at, hits, misses,
                                 bytes_served)
    SELECT gen_random_uuid(), gone.organization_id, gone.environment_pk, gone.bucket_id,
        coalesce(b.name, ''), gone.node_id, n.organization_id, gone.is_creditable, gone.hour,
        gone.hits, gone.misses, gone.bytes_served
    FROM gone LEFT JOIN brain_bucket b ON b.id = gone.bucket_id
    LEFT JOIN brain_node n ON n.id = gone.node_id
"""
PAGE: Final[LiteralString] = (
    "SELECT id, line_id, organization_id, environment_pk, bucket_id, bucket_name, node_id,"
    " operator_id, is_creditable, used_at, hits, misses, bytes_served,"
    " storage_byte_hours::text AS storage_byte_hours"
    " FROM brain_usageline WHERE id > %s ORDER BY id LIMIT %s"
)
CLAIM_HOUR: Final[LiteralString] = (
    "INSERT INTO brain_storagehour (hour) VALUES (%s) ON CONFLICT DO NOTHING"
)
# Objects of the built-in origin with all their versions, and copies of external origins' objects:
# each once for its bucket. The lock comes after the sums, which the count has read to the end, and
# before the lines: meanwhile the brains write their counters.
ADD_STORAGE: Final[LiteralString] = """
    WITH held AS MATERIALIZED (
    SELECT b.organization_id, b.environment_pk, b.id, b.name, sum(stored.size) AS bytes
    FROM brain_bucket b JOIN (
        SELECT o.bucket_id, blob.size FROM brain_storedobject o
        JOIN brain_blob blob ON blob.sha256 = o.blob_id
        UNION ALL
        SELECT v.bucket_id, blob.size FROM brain_noncurrentversion v
        JOIN brain_blob blob ON blob.sha256 = v.blob_id
        UNION ALL
        SELECT c.bucket_id, blob.size FROM brain_cachedobject c
        JOIN brain_blob blob ON blob.sha256 = c.blob_id
        WHERE NOT EXISTS (SELECT FROM brain_storedobject o
            WHERE o.bucket_id = c.bucket_id AND o.key = c.key)) stored ON stored.bucket_id = b.id
    GROUP BY b.id HAVING sum(stored.size) > 0),
    locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(%s), count(*) FROM held)
    INSERT INTO brain_usageline (line_id, organization_id, environment_pk, bucket_id, bucket_name,
                                 used_at, storage_byte_hours)
    SELECT gen_random_uuid(), held.organization_id, held.environment_pk, held.id, held.name, %s,
        held.bytes
    FROM locked CROSS JOIN held
"""
OLD_LINES: Final[LiteralString] = (
    "DELETE FROM brain_usageline WHERE created_at < now() - make_interval(days => %s)"
)
OLD_BATCHES: Final[LiteralString] = (
    "DELETE FROM brain_usagebatch WHERE created_at < now() - interval '1 day'"
)
OLD_HOURS: Final[LiteralString] = (
    "DELETE FROM brain_storagehour WHERE created_at < now() - interval '7 days'"
)


async def page(database: BrainDatabase, after: int, limit: int, *, cuts_all: bool) -> list[Any]:
    """Return the lines after an id, oldest first, after making lines of the counters.

    cuts_all: include small amounts of the running hour.

    Raises DatabaseUnavailable.
    """
    async with database.transaction() as connection:
        await connection.run("SELECT pg_advisory_xact_lock(%s)", [LINES_LOCK])
        await connection.run(CUT, [cuts_all, MUCH_RESPONSES, MUCH_BYTES])
    return await database.all(PAGE, [after, limit])


async def add_storage(database: BrainDatabase, *, clock: Callable[[], float]) -> None:
    """Add the lines of the last full hour's storage, unless a brain has done so.

    The bytes stored now count for the whole hour. Raises DatabaseUnavailable.
    """
    hour = hour_of(clock()) - timedelta(hours=1)
    async with database.transaction(timeout_s=STORAGE_TIMEOUT_S) as connection:
        # Another brain's claim waits for the end of this transaction.
        if await connection.run(CLAIM_HOUR, [hour]):
            await connection.run(ADD_STORAGE, [LINES_LOCK, hour])


async def forget(database: BrainDatabase) -> None:
    """Delete old lines and marks; billing has pulled them long ago. Raises DatabaseUnavailable."""
    await database.run(OLD_LINES, [KEPT_DAYS])
    await database.run(OLD_BATCHES)
    await database.run(OLD_HOURS)
