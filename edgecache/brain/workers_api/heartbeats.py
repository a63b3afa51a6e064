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
from edgecache.http.addresses import FORWARDED_FOR, client_behind, prefix_of
from edgecache.protocol.fields import FieldReader
from edgecache.protocol.heartbeats import Heartbeat, HeartbeatAnswer, Problem

log = structlog.get_logger(__name__)


def routes(parts: WorkersApiDependencies) -> list[Route]:
    async def heartbeat(call: JsonCall) -> JsonResponse:
        beat = Heartbeat.read(FieldReader(call.body))
        node: NodeRow = call.caller
        if beat.problems:
            log.warning("node_has_problems", node_id=str(node.id), problems=list(beat.problems))
        interval_s = parts.nodes.interval_s
        await node_rows.write_heartbeat(parts.database, node.id, beat, interval_s=interval_s)
        await _move(parts, node, beat)
        if node.organization_id is not None:
            forwarded = call.headers.get_all(FORWARDED_FOR)
            edges = parts.settings.geography.trusted_edges
            address = client_behind(call.client, forwarded, edges)
            await parts.networks.note(node.organization_id, prefix_of(address))
        row = await node_rows.read_one(parts.database, node.id)
        if row is None:
            raise NodeRemoved
        if Problem.DRAINING in beat.problems or parts.nodes.health(node) != Health.ONLINE:
            # A node has been added or removed: use that immediately.
            await parts.nodes.refresh()
        parts.proofs.ask_for(row)
        return JsonResponse((await _answer(parts, row, beat)).as_json())

    return [Route("POST", "/v1/workers/{node_id}/heartbeat", heartbeat)]


async def _move(parts: WorkersApiDependencies, node: NodeRow, beat: Heartbeat) -> None:
    """Accept a new endpoint of a platform's node; others would need another proof."""
    if beat.endpoint is None or node.organization_id is not None:
        return
    production = parts.settings.is_production
    endpoint = normalize(beat.endpoint, is_trusted=True, is_production=production)
    if endpoint == node.endpoint:
        return
    try:
        async with parts.coherence.transaction(wait_for_acks=False) as change:
            await node_rows.move(change, node.id, endpoint)
    except UniqueViolation:
        log.warning("node_endpoint_taken", node_id=str(node.id), endpoint=endpoint)
        return
    log.info("node_moved", node_id=str(node.id), endpoint=endpoint)


async def _answer(parts: WorkersApiDependencies, row: NodeRow, beat: Heartbeat) -> HeartbeatAnswer:
    return HeartbeatAnswer(
        now=time.time(),
        keys=parts.tickets.node_keys(row.id),
        status=row.status,
        wants_inventory=row.status in {"active", "draining"}
        and row.inventory_of != beat.incarnation,
        jobs=await node_jobs.waiting(parts.database, row.id),
        interval_s=parts.nodes.interval_s,
    )
