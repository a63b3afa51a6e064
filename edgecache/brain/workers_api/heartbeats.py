"""``POST /v1/workers/{id}/heartbeat``: a worker reports that it is alive and gets instructions."""

import time

import structlog
from psycopg.errors import UniqueViolation

from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.json_api.errors import NodeRemoved
from edgecache.brain.nodes import node_jobs, node_rows
from edgecache.brain.nodes.endpoints import normalize
from edgecache.brain.nodes.health import Health
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.workers_api.dependencies import WorkersApiDependencies
from edgecache.http.addresses import prefix_of
from edgecache.protocol.heartbeats import Heartbeat, HeartbeatAnswer, Problem

log = structlog.get_logger(__name__)


def routes(dependencies: WorkersApiDependencies) -> list[Route]:
    async def heartbeat(call: JsonCall) -> JsonResponse:
        beat = call.read(Heartbeat)
        node: NodeRow = call.caller
        if beat.problems:
            log.warning("node_has_problems", node_id=str(node.id), problems=list(beat.problems))
        interval_s = dependencies.nodes.interval_s
        await node_rows.write_heartbeat(dependencies.database, node.id, beat, interval_s=interval_s)
        await _move(dependencies, node, beat)
        if node.organization_id is not None:
            address = dependencies.proxies.client_behind(call.client, call.headers)
            await dependencies.networks.note(node.organization_id, prefix_of(address))
        row = await node_rows.read_one(dependencies.database, node.id)
        if row is None:
            raise NodeRemoved
        if Problem.DRAINING in beat.problems or dependencies.nodes.health(node) != Health.ONLINE:
            # A node has been added or removed: use that immediately.
            await dependencies.nodes.refresh()
        dependencies.proofs.ask_for(row)
        return JsonResponse(await _answer(dependencies, row, beat))

    return [Route("POST", "/v1/workers/{node_id}/heartbeat", heartbeat)]


async def _move(dependencies: WorkersApiDependencies, node: NodeRow, beat: Heartbeat) -> None:
    """Accept a new endpoint of a platform's node; others would need another proof."""
    if not beat.endpoint or node.organization_id is not None:
        return
    production = dependencies.settings.is_production
    endpoint = normalize(beat.endpoint, is_trusted=True, is_production=production)
    if endpoint == node.endpoint:
        return
    try:
        async with dependencies.coherence.transaction(wait_for_acks=False) as change:
            await node_rows.move(change, node.id, endpoint)
    except UniqueViolation:
        log.warning("node_endpoint_taken", node_id=str(node.id), endpoint=endpoint)
        return
    log.info("node_moved", node_id=str(node.id), endpoint=endpoint)


async def _answer(
    dependencies: WorkersApiDependencies, row: NodeRow, beat: Heartbeat
) -> HeartbeatAnswer:
    return HeartbeatAnswer(
        now=time.time(),
        keys=dependencies.tickets.node_keys(row.id),
        status=row.status,
        wants_inventory=row.status in {"active", "draining"}
        and row.inventory_of != beat.incarnation,
        jobs=await node_jobs.waiting(dependencies.database, row.id),
        interval_s=dependencies.nodes.interval_s,
    )
