"""``GET /v1/workers/{id}/jobs`` and ``POST …/jobs/done``: work for a node."""

import time

import structlog

from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.nodes import node_jobs
from edgecache.brain.nodes.node_jobs import JobRow
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.tickets import TicketGrant
from edgecache.brain.workers_api.dependencies import WorkersApiDependencies
from edgecache.protocol.jobs import Job, JobKind, Jobs, JobsDone, JobSource
from edgecache.protocol.names import JOB_BATCH
from edgecache.protocol.tickets import TicketKind

log = structlog.get_logger(__name__)


def routes(dependencies: WorkersApiDependencies) -> list[Route]:
    async def waiting(call: JsonCall) -> JsonResponse:
        node: NodeRow = call.caller
        limit = call.query.get("limit", "")
        count = int(limit) if limit.isdecimal() and len(limit) < 6 else JOB_BATCH
        tasks = await node_jobs.take(
            dependencies.database, node.id, limit=min(max(count, 1), JOB_BATCH)
        )
        pointless = [task.id for task in tasks if _is_pointless(node, task)]
        await node_jobs.drop(dependencies.database, pointless)
        jobs = [_job(dependencies, node, task) for task in tasks if task.id not in pointless]
        later = [job.id for job in jobs if not _can_be_done(job)]
        await node_jobs.postpone(dependencies.database, node.id, later)
        return JsonResponse(Jobs(tuple(job for job in jobs if _can_be_done(job))))

    async def done(call: JsonCall) -> JsonResponse:
        message = call.read(JobsDone)
        node: NodeRow = call.caller
        await node_jobs.finish(
            dependencies.coherence, node.id, [job.id for job in message.jobs if job.ok]
        )
        failed = [job for job in message.jobs if not job.ok]
        for job in failed:
            log.warning("node_job_failed", node_id=str(node.id), job=job.id, error=job.error)
        await node_jobs.postpone(dependencies.database, node.id, [job.id for job in failed])
        return JsonResponse({})

    return [
        Route("GET", "/v1/workers/{node_id}/jobs", waiting),
        Route("POST", "/v1/workers/{node_id}/jobs/done", done),
    ]


def _is_pointless(node: NodeRow, task: JobRow) -> bool:
    """True if a job is not needed any more."""
    if task.kind == JobKind.DELETE:
        # Noted as a holder again since, of bytes that an object names: they are wanted after all.
        return node.id in task.holders and task.bucket_id is not None
    return task.kind == JobKind.REPLICATE and task.bucket_id is None


def _can_be_done(job: Job) -> bool:
    """True if another node can provide the bytes right now."""
    return job.kind is not JobKind.REPLICATE or bool(job.sources)


def _job(dependencies: WorkersApiDependencies, node: NodeRow, task: JobRow) -> Job:
    if task.kind != JobKind.REPLICATE:
        return Job(task.id, JobKind(task.kind), task.sha256, task.size)
    sources = _sources(dependencies, node, task)
    return Job(task.id, JobKind.REPLICATE, task.sha256, task.size, sources)


def _sources(
    dependencies: WorkersApiDependencies, node: NodeRow, task: JobRow
) -> tuple[JobSource, ...]:
    holders = dependencies.nodes.sources(
        task.sha256,
        (holder for holder in task.holders if holder != node.id),
        node.region,
        organization_id=task.organization_id,
        is_public=task.is_public,
    )
    tenant = EnvironmentKey(task.organization_id, task.environment_pk)
    grant = TicketGrant(tenant, task.bucket_id or 0, task.sha256, task.size)
    now = time.time()
    return tuple(
        JobSource(
            source.endpoint,
            dependencies.tickets.sign(TicketKind.REPLICATE, source.node_id, grant, now=now),
            is_guarded=dependencies.nodes.is_guarded(source.node_id),
        )
        for source in holders[:3]
    )
