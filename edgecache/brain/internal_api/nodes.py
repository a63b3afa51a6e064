"""``/v1/nodes``: the registry of workers."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from edgecache.brain.json_api import Answer, Call, Route
from edgecache.brain.nodes import registration
from edgecache.brain.nodes import rows as node_rows
from edgecache.brain.nodes.rows import NodeRow
from edgecache.brain.refusals import NodeMissing

if TYPE_CHECKING:
    from edgecache.brain.app import Brain


def routes(brain: "Brain") -> list[Route]:
    """Give the paths."""

    async def listing(_call: Call) -> Answer:
        rows = await node_rows.read_all(brain.database)
        shown = [shape(brain, row) for row in rows if row.removed_at is None]
        return Answer({"nodes": sorted(shown, key=lambda node: node["node_id"])})

    async def create(call: Call) -> Answer:
        wanted = registration.read(call.body, is_production=brain.settings.is_production)
        made = await registration.register(brain.coherence, wanted)
        await brain.nodes.refresh()
        secret = {"node_secret": made.secret, "brain_url": brain.settings.workers_url}
        return Answer({**shape(brain, made.row), **secret}, 201)

    async def one(call: Call) -> Answer:
        return Answer(shape(brain, await find(brain, call)))

    async def remove(call: Call) -> Answer:
        await registration.remove(brain.coherence, node_id(call))
        await brain.nodes.refresh()
        return Answer(status=204)

    return [
        Route("GET", "/v1/nodes", listing),
        Route("POST", "/v1/nodes", create),
        Route("GET", "/v1/nodes/{node_id}", one),
        Route("DELETE", "/v1/nodes/{node_id}", remove),
        *_decisions(brain),
    ]


def _decisions(brain: "Brain") -> list[Route]:
    def decision(decide: Callable[[UUID, Call], Awaitable[NodeRow]]) -> Callable[..., Any]:
        async def handle(call: Call) -> Answer:
            row = await decide(node_id(call), call)
            await brain.nodes.refresh()
            return Answer(shape(brain, row))

        return handle

    def approve(node: UUID, _call: Call) -> Awaitable[NodeRow]:
        return registration.approve(brain.coherence, node)

    def drain(node: UUID, _call: Call) -> Awaitable[NodeRow]:
        return registration.drain(brain.coherence, node)

    def quarantine(node: UUID, call: Call) -> Awaitable[NodeRow]:
        reason = str(call.body.get("reason") or "staff")
        return registration.quarantine(brain.coherence, node, reason=reason)

    return [
        Route("POST", "/v1/nodes/{node_id}/approve", decision(approve)),
        Route("POST", "/v1/nodes/{node_id}/drain", decision(drain)),
        Route("POST", "/v1/nodes/{node_id}/quarantine", decision(quarantine)),
    ]


def shape(brain: "Brain", row: NodeRow) -> dict[str, Any]:
    """Give a node as JSON, without its credential."""
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
        "health": row.health(interval_s=brain.nodes.interval_s),
        "is_proved": row.proved_at is not None,
        "created_at": row.created_at.isoformat(),
        "last_seen_at": row.last_seen_at.isoformat() if row.last_seen_at else None,
    }


async def find(brain: "Brain", call: Call) -> NodeRow:
    """Give the node that the path names. Raises NodeMissing."""
    row = await node_rows.read_one(brain.database, node_id(call))
    if row is None or row.removed_at is not None:
        raise NodeMissing
    return row


def node_id(call: Call) -> UUID:
    """Give the id in the path. Raises NodeMissing for what cannot be one."""
    try:
        return UUID(call.captures["node_id"])
    except ValueError:
        raise NodeMissing from None
