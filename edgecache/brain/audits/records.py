"""The tables of checks: which nodes are due, what to read, what was found."""

from typing import Any, Final, LiteralString
from uuid import UUID

from edgecache.brain.audits.node_checks import CheckOutcome, CheckRequest
from edgecache.brain.db.database import BrainDatabase

KEPT_DAYS: Final = 90
# Fewer checks are planned than the limit allows: their times are random, and the limit should
# rarely cut a day off. Of 440, 374 are planned; with one in 16 forwarded, 299 direct ones are made
# on 997 days of 1,000.
PLANNED_SHARE: Final = 0.85
DAY_S: Final = 86_400
# One of this many adjacent blobs is chosen at random. A node knows the gaps between the hashes that
# it holds; this way they reveal next to nothing about the choice.
DRAWN_FROM: Final = 200
LATEST: Final = 600
RECHECKS: Final = 3

# Intervals of a Poisson process: what was says nothing of what comes.
PLAN_NEW: Final[LiteralString] = """
    INSERT INTO brain_auditplan (node_id, next_at)
    SELECT id, now() + make_interval(secs => %s * -ln(1 - random())) FROM brain_node
    WHERE organization_id IS NOT NULL AND status IN ('active', 'draining', 'quarantined')
        AND NOT EXISTS (SELECT FROM brain_auditplan p WHERE p.node_id = brain_node.id)
    ON CONFLICT DO NOTHING
"""
TAKE_DUE: Final[LiteralString] = """
    UPDATE brain_auditplan p
    SET next_at = clock_timestamp() + make_interval(secs => %s * -ln(1 - random()))
    FROM brain_node n CROSS JOIN LATERAL (
        SELECT count(*) AS checks, coalesce(sum(size), 0) AS bytes FROM brain_look
        WHERE node_id = n.id AND began_at > now() - interval '1 day') done
    WHERE n.id = p.node_id AND n.status IN ('active', 'draining') AND n.organization_id IS NOT NULL
        AND p.next_at <= clock_timestamp() AND done.checks < %s AND done.bytes < %s
    RETURNING p.node_id
"""
# If a brain is killed during a round, the next one takes the rest after a minute.
TAKE_RECHECKS: Final[LiteralString] = """
    UPDATE brain_auditplan p
    SET recheck_of = n.status_at, next_at = clock_timestamp() + interval '1 minute'
    FROM brain_node n
    WHERE n.id = p.node_id AND n.status = 'quarantined' AND n.organization_id IS NOT NULL
        AND n.removed_at IS NULL
        AND (p.recheck_of IS DISTINCT FROM n.status_at OR p.next_at <= clock_timestamp()
            AND (SELECT count(*) FROM brain_look l WHERE l.node_id = n.id AND l.is_recheck
                AND l.began_at >= n.status_at) < %s)
    RETURNING p.node_id
"""
DRAW: Final[LiteralString] = """
    WITH near AS (
        (SELECT 0 AS turn, blob_id FROM brain_location WHERE node_id = %(node)s
            AND blob_id >= %(at)s ORDER BY blob_id LIMIT %(limit)s)
        UNION ALL
        (SELECT 1, blob_id FROM brain_location WHERE node_id = %(node)s
            AND blob_id < %(at)s ORDER BY blob_id LIMIT %(limit)s)
        ORDER BY turn, blob_id LIMIT %(limit)s),
    drawn AS (SELECT blob_id FROM near ORDER BY random() LIMIT 10)
    SELECT drawn.blob_id AS sha256, b.id AS bucket_id, b.organization_id, b.environment_pk
    FROM drawn CROSS JOIN LATERAL (
        SELECT b.id, b.organization_id, b.environment_pk FROM brain_cachedobject c
        JOIN brain_bucket b ON b.id = c.bucket_id
        WHERE c.blob_id = drawn.blob_id AND (b.is_public OR b.organization_id = %(operator)s)
        LIMIT 1) b
    LIMIT 1
"""
BEGIN: Final[LiteralString] = """
    INSERT INTO brain_look (id, node_id, sha256, path, vantage, is_recheck, size)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
"""
END: Final[LiteralString] = "UPDATE brain_look SET outcome = %s WHERE id = %s"
# Only results since the node was last approved: earlier ones were judged before.
JUDGE: Final[LiteralString] = """
    SELECT count(DISTINCT sha256) FILTER (WHERE outcome = 'wrong') AS bad, count(*) AS checks
    FROM (SELECT l.sha256, l.outcome FROM brain_look l JOIN brain_node n ON n.id = l.node_id
        WHERE l.node_id = %s AND l.began_at >= n.status_at AND NOT l.is_recheck
            AND l.outcome IN ('right', 'wrong')
        ORDER BY l.began_at DESC LIMIT %s) latest
"""
FAILED_WAYS: Final[LiteralString] = """
    SELECT DISTINCT path, vantage FROM brain_look
    WHERE node_id = %s AND outcome = 'wrong' AND began_at > now() - interval '7 days'
"""
DAYS: Final[LiteralString] = """
    SELECT (began_at AT TIME ZONE 'UTC')::date::text AS day, path, is_recheck, count(*) AS looks,
        count(*) FILTER (WHERE outcome = 'right') AS "right",
        count(*) FILTER (WHERE outcome = 'wrong') AS wrong,
        count(*) FILTER (WHERE outcome = 'missing') AS missing,
        count(*) FILTER (WHERE outcome = 'unanswered') AS unanswered, sum(size)::bigint AS bytes
    FROM brain_look WHERE node_id = %s AND outcome <> ''
    GROUP BY 1, 2, 3 ORDER BY 1 DESC, 2, 3
"""
FAILURES: Final[LiteralString] = """
    SELECT encode(sha256, 'hex') AS sha256, path, is_recheck,
        to_char(began_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:00:00Z') AS hour
    FROM brain_look WHERE node_id = %s AND outcome = 'wrong' ORDER BY began_at DESC LIMIT 100
"""
FORGET: Final[LiteralString] = (
    "DELETE FROM brain_look WHERE began_at < now() - make_interval(days => %s)"
)


async def take_due(database: BrainDatabase, *, max_checks: int, limit_bytes: int) -> list[UUID]:
    """Return the nodes to check now, each to one brain only. max_checks: in a day."""
    mean_s = DAY_S / (max_checks * PLANNED_SHARE)
    await database.run(PLAN_NEW, [mean_s])
    rows = await database.all(TAKE_DUE, [mean_s, max_checks, limit_bytes])
    return [row.node_id for row in rows]


async def take_rechecks(database: BrainDatabase) -> list[UUID]:
    """Return the nodes in quarantine that were not checked three times yet."""
    return [row.node_id for row in await database.all(TAKE_RECHECKS, [RECHECKS])]


async def draw(database: BrainDatabase, node_id: UUID, operator: int | None, at: bytes) -> Any:
    """Return a blob that a node holds, and a bucket that names it, or None.

    at: a random hash.
    """
    values = {"node": node_id, "operator": operator, "at": at, "limit": DRAWN_FROM}
    return await database.one(DRAW, values)


async def begin(database: BrainDatabase, request: CheckRequest, *, is_recheck: bool) -> None:
    """Record a check before it is made: its receipt may come even if this brain is killed."""
    target, route = request.target, request.route
    values = (
        request.id,
        target.node_id,
        target.manifest.sha256,
        str(route.path),
        route.vantage.local if route.vantage else "",
        is_recheck,
        target.span.length,
    )
    await database.run(BEGIN, values)


async def end(database: BrainDatabase, check_id: UUID, outcome: CheckOutcome) -> None:
    """Record what was found."""
    await database.run(END, [str(outcome), check_id])


async def judge(database: BrainDatabase, node_id: UUID) -> tuple[int, int]:
    """Return the number of wrong blobs, and of checks, among a node's latest checks."""
    row = await database.one(JUDGE, [node_id, LATEST])
    return (row.bad, row.checks) if row else (0, 0)


async def failed_ways(database: BrainDatabase, node_id: UUID) -> set[tuple[str, str]]:
    """Return the paths and addresses over which wrong bytes recently arrived."""
    return {(row.path, row.vantage) for row in await database.all(FAILED_WAYS, [node_id])}


async def summary(database: BrainDatabase, node_id: UUID) -> dict[str, Any]:
    """Return the operator's view of its node: numbers by day, and each wrong blob.

    It has neither the minute nor the address of a check, which would reveal later ones.
    """
    days = [row._asdict() for row in await database.all(DAYS, [node_id])]
    failures = [row._asdict() for row in await database.all(FAILURES, [node_id])]
    return {"days": days, "failures": failures}


async def forget(database: BrainDatabase) -> None:
    """Delete old checks."""
    await database.run(FORGET, [KEPT_DAYS])
