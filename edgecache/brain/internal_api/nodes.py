"""``/v1/nodes``: the registry of workers."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from edgecache.brain.database import Database
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.json_api import JsonCall, JsonResponse, Route
from edgecache.brain.json_errors import NodeNotFound
from edgecache.brain.nodes import registration
from edgecache.brain.nodes import rows as node_rows
from edgecache.brain.nodes.registry import Nodes
from edgecache.brain.nodes.rows import NodeRow
from edgecache.protocol.fields import Fields


def routes(
    database: Database,
    coherence: Coherence,
    nodes: Nodes,
    *,
    workers_url: str,
    is_production: bool,
) -> list[Route]:
    """Return the routes. workers_url: the brain's URL that a new node is configured with."""

    async def listing(_call: JsonCall) -> JsonResponse:
        rows = await node_rows.read_all(database)
        shown = [shape(row, nodes.interval_s) for row in rows if row.removed_at is None]
        return JsonResponse({"nodes": sorted(shown, key=lambda node: node["node_id"])})

    async def create(call: JsonCall) -> JsonResponse:
        wanted = registration.read(Fields(call.body), is_production=is_production)
        made = await registration.register(coherence, wanted)
        await nodes.refresh()
        secret = {"node_secret": made.secret, "brain_url": workers_url}
        return JsonResponse({**shape(made.row, nodes.interval_s), **secret}, 201)

    async def one(call: JsonCall) -> JsonResponse:
        return JsonResponse(shape(await find(database, call), nodes.interval_s))

    async def remove(call: JsonCall) -> JsonResponse:
        await registration.remove(coherence, node_id(call))
        await nodes.refresh()
        return JsonResponse(status=204)

    return [
        Route("GET", "/v1/nodes", listing),
        Route("POST", "/v1/nodes", create),
        Route("GET", "/v1/nodes/{node_id}", one),
        Route("DELETE", "/v1/nodes/{node_id}", remove),
        *_status_changes(coherence, nodes),
    ]


def _status_changes(coherence: Coherence, nodes: Nodes) -> list[Route]:
    def handler(change: Callable[[UUID, JsonCall], Awaitable[NodeRow]]) -> Callable[..., Any]:
        async def handle(call: JsonCall) -> JsonResponse:
            row = await change(node_id(call), call)
            await nodes.refresh()
            return JsonResponse(shape(row, nodes.interval_s))

        return handle

    def approve(node: UUID, _call: JsonCall) -> Awaitable[NodeRow]:
        return registration.approve(coherence, node)

    def drain(node: UUID, _call: JsonCall) -> Awaitable[NodeRow]:
        return registration.drain(coherence, node)

    def quarantine(node: UUID, call: JsonCall) -> Awaitable[NodeRow]:
        reason = str(call.body.get("reason") or "staff")
        return registration.quarantine(coherence, node, reason=reason)

    return [
        Route("POST", "/v1/nodes/{node_id}/approve", handler(approve)),
        Route("POST", "/v1/nodes/{node_id}/drain", handler(drain)),
        Route("POST", "/v1/nodes/{node_id}/quarantine", handler(quarantine)),
    ]


def shape(row: NodeRow, interval_s: float) -> dict[str, Any]:
    """Return a node as JSON, without its credential. interval_s: between two heartbeats."""
    return {
        "node_id": str(row.id),
        "organization_id": row.organization_id,
        "endpoint": row.endpoint,
        "region": row.region,
        "capacity_bytes": row.capacity_bytes,
        "used_bytes": row.used_bytes,
        "object_count": row.object_count,
        "evictions": row.evictions,
        "load": row.load,
        "status": row.status,
        "status_reason": row.status_reason,
        "health": row.health(interval_s=interval_s),
        "is_proved": row.proved_at is not None,
        "created_at": row.created_at.isoformat(),
        "last_seen_at": row.last_seen_at.isoformat() if row.last_seen_at else None,
    }


async def find(database: Database, call: JsonCall) -> NodeRow:
    """Return the node that the path names. Raises NodeNotFound."""
    row = await node_rows.read_one(database, node_id(call))
    if row is None or row.removed_at is not None:
        raise NodeNotFound
    return row


def node_id(call: JsonCall) -> UUID:
    """Return the id in the path. Raises NodeNotFound for a malformed one."""
    try:
        return UUID(call.captures["node_id"])
    except ValueError:
        raise NodeNotFound from None
