"""Jobs for nodes: a node fetches its jobs, does them and reports them done."""

from collections.abc import Sequence
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase, DatabaseTransaction
from edgecache.brain.nodes.replica_plan import request_check
from edgecache.protocol.jobs import JobKind

# A job that was handed out and not reported is handed out again after this.
GIVEN_OUT_S: Final = 60
FIRST_WAIT_S: Final = 5
# Handed out together: a worker does two at a time, and tickets are valid for 30 seconds. A job that
# came too late for its ticket would count as failed.
MIN_TAKEN: Final = 2
TAKEN_BYTES: Final = 128 << 20
ATTEMPTS: Final = 6

INSERT: Final[LiteralString] = """
    INSERT INTO brain_nodejob (node_id, kind, sha256)
    SELECT node_id, %s, sha256 FROM unnest(%s::uuid[], %s::bytea[]) AS wanted (node_id, sha256)
    JOIN brain_node node ON node.id = wanted.node_id AND node.status <> 'removed'
    ON CONFLICT (node_id, kind, sha256) DO NOTHING
"""
# The bucket is one of those that refer to the bytes: a ticket names a tenant.
TAKE: Final[LiteralString] = """
    WITH due AS (
        SELECT job.id, CASE WHEN job.kind = 'delete' THEN 0 ELSE coalesce(blob.size, 0) END AS size
        FROM brain_nodejob job LEFT JOIN brain_blob blob ON blob.sha256 = job.sha256
        WHERE job.node_id = %s AND job.not_before <= clock_timestamp()
        ORDER BY job.id LIMIT %s FOR UPDATE OF job SKIP LOCKED),
    taken AS (
        -- Counted here, because a node may never report the result.
        UPDATE brain_nodejob SET attempts = least(attempts + 1, 1000),
            not_before = clock_timestamp() + make_interval(secs => %s)
        WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER earlier AS place,
                                            sum(size) OVER earlier - size AS before_bytes
                                     FROM due WINDOW earlier AS (ORDER BY id)) counted
                     WHERE place <= %s OR before_bytes < %s)
        RETURNING id, kind, sha256)
    SELECT taken.id, taken.kind, taken.sha256, coalesce(blob.size, 0) AS size,
           bucket.id AS bucket_id, bucket.organization_id, bucket.environment_pk,
           coalesce(bucket.is_public, false) AS is_public,
           ARRAY(SELECT node_id FROM brain_location WHERE blob_id = taken.sha256) AS holders
    FROM taken
    LEFT JOIN brain_blob blob ON blob.sha256 = taken.sha256
    LEFT JOIN LATERAL (SELECT b.id, b.organization_id, b.environment_pk, b.is_public
                       FROM brain_cachedobject c JOIN brain_bucket b ON b.id = c.bucket_id
                       WHERE c.blob_id = taken.sha256 LIMIT 1) bucket ON true
    ORDER BY taken.id
"""
POSTPONE: Final[LiteralString] = """
    UPDATE brain_nodejob
    SET not_before = clock_timestamp() + make_interval(secs => %s * (2 ^ greatest(attempts - 1, 0)))
    WHERE id = ANY(%s) AND node_id = %s
"""
GIVE_UP: Final[LiteralString] = """
    DELETE FROM brain_nodejob WHERE id = ANY(%s) AND node_id = %s AND attempts > %s
"""
# In the order in which others lock them (``directory.KEEP_REPLICAS``).
FINISH: Final[LiteralString] = """
    DELETE FROM brain_nodejob WHERE id IN (
        SELECT id FROM brain_nodejob WHERE id = ANY(%s) AND node_id = %s AND kind = ANY(%s)
        ORDER BY id FOR UPDATE)
    RETURNING kind, sha256
"""
LOSE: Final[LiteralString] = """
    DELETE FROM brain_location WHERE node_id = %s AND blob_id = ANY(%s) RETURNING blob_id
"""
GAIN: Final[LiteralString] = """
    INSERT INTO brain_location (blob_id, node_id)
    SELECT sha256, %s FROM brain_blob WHERE sha256 = ANY(%s) ORDER BY sha256 FOR KEY SHARE
    ON CONFLICT DO NOTHING
"""


class JobRow(NamedTuple):
    """A job to hand out. bucket_id: None when no object refers to the bytes any more."""

    id: int
    kind: str
    sha256: bytes
    size: int
    bucket_id: int | None
    organization_id: int
    environment_pk: int
    is_public: bool
    holders: list[UUID]


async def add(
    connection: DatabaseTransaction, kind: JobKind, wanted: Sequence[tuple[UUID, bytes]]
) -> int:
    """Add jobs, each a node and a hash; return how many were new."""
    if not wanted:
        return 0
    nodes, hashes = [row[0] for row in wanted], [row[1] for row in wanted]
    return await connection.run(INSERT, [str(kind), nodes, hashes])


async def verify(coherence: Coherence, node_id: UUID, sha256: bytes) -> None:
    """Stop using a node's copy, and have the node verify it and remove it if it is wrong.

    Raises DatabaseUnavailable.
    """
    async with coherence.transaction(wait_for_acks=False) as change:
        await change.run(
            "DELETE FROM brain_location WHERE blob_id = %s AND node_id = %s", [sha256, node_id]
        )
        await add(change, JobKind.VERIFY, [(node_id, sha256)])
        change.announce("blob", sha256.hex())


async def take(database: BrainDatabase, node_id: UUID, *, limit: int) -> list[JobRow]:
    """Return a node's oldest due jobs; they are not handed out again for a minute.

    At most ``limit``, and fewer of large blobs.
    """
    rows = await database.all(TAKE, [node_id, limit, GIVEN_OUT_S, MIN_TAKEN, TAKEN_BYTES])
    return [JobRow(*row) for row in rows]


async def waiting(database: BrainDatabase, node_id: UUID) -> int:
    """Count the jobs that are due."""
    row = await database.one(
        "SELECT count(*) AS jobs FROM (SELECT 1 FROM brain_nodejob WHERE node_id = %s"
        " AND not_before <= clock_timestamp() LIMIT 1000) due",
        [node_id],
    )
    return int(row.jobs) if row else 0


async def drop(database: BrainDatabase, ids: Sequence[int]) -> None:
    if ids:
        await database.run("DELETE FROM brain_nodejob WHERE id = ANY(%s)", [list(ids)])


async def finish(coherence: Coherence, node_id: UUID, ids: Sequence[int]) -> None:
    """Delete jobs that were done, and record their results in the locations.

    Does nothing for those that are not, or no longer, this node's jobs.
    Raises DatabaseUnavailable: some may have been recorded.
    """
    left = len(ids)
    # Apart, because they wait for others in different orders: one adds locations, the others remove
    # them. Most messages have jobs of one kind only.
    for kinds in ((JobKind.DELETE, JobKind.VERIFY), (JobKind.REPLICATE,)):
        if left:
            async with coherence.transaction(wait_for_acks=False) as change:
                left -= await _finish(change, node_id, ids, kinds)


async def _finish(
    change: AnnouncingTransaction, node_id: UUID, ids: Sequence[int], kinds: Sequence[JobKind]
) -> int:
    """Finish the jobs of some kinds; return how many there were."""
    jobs = await change.all(FINISH, [list(ids), node_id, list(kinds)])
    hashes = {kind: sorted({job.sha256 for job in jobs if job.kind == kind}) for kind in kinds}
    due = {sha256 for kind, each in hashes.items() if kind != JobKind.DELETE for sha256 in each}
    if deleted := hashes.get(JobKind.DELETE):
        # The location is usually deleted together with the creation of the job. If one exists, it
        # was added afterwards, so the node deleted bytes that it should keep.
        due.update(row.blob_id for row in await change.all(LOSE, [node_id, deleted]))
    if added := hashes.get(JobKind.REPLICATE):
        await change.run(GAIN, [node_id, added])
    # A replica is missing, or another node may have returned with its own.
    request_check(change, sorted(due))
    for sha256 in sorted(due):
        change.announce("blob", sha256.hex())
    return len(jobs)


async def postpone(database: BrainDatabase, node_id: UUID, ids: Sequence[int]) -> None:
    """Postpone failed jobs, longer each time; after six failures they are deleted."""
    if ids:
        await database.run(GIVE_UP, [list(ids), node_id, ATTEMPTS])
        await database.run(POSTPONE, [FIRST_WAIT_S, list(ids), node_id])
