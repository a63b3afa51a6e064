"""``/v1/nodes``: the registry of workers."""

from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID

from edgecache.brain.audits import records
from edgecache.brain.database import Database
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.json_api import JsonCall, JsonResponse, Route
from edgecache.brain.json_errors import NodeNotFound
from edgecache.brain.nodes import registration
from edgecache.brain.nodes import rows as node_rows
from edgecache.brain.nodes.registry import Nodes
from edgecache.brain.nodes.rows import NodeRow
from edgecache.protocol.fields import Fields

PAGE: Final = 500


class NodesApi:
    """The handlers. workers_url: the brain's URL that a new node is configured with."""

    def __init__(
        self,
        database: Database,
        coherence: Coherence,
        nodes: Nodes,
        *,
        workers_url: str,
        is_production: bool,
    ) -> None:
        self._database = database
        self._coherence = coherence
        self._nodes = nodes
        self._workers_url = workers_url
        self._is_production = is_production

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("GET", "/v1/nodes", self._listing),
            Route("GET", "/v1/quarantines", self._quarantines),
            Route("POST", "/v1/nodes", self._create),
            Route("GET", "/v1/nodes/{node_id}", self._one),
            Route("GET", "/v1/nodes/{node_id}/audits", self._audits),
            Route("DELETE", "/v1/nodes/{node_id}", self._remove),
            *_status_changes(self._coherence, self._nodes),
        ]

    async def _listing(self, _call: JsonCall) -> JsonResponse:
        rows = await node_rows.read_all(self._database)
        shown = [shape(row, self._nodes.interval_s) for row in rows if row.removed_at is None]
        return JsonResponse({"nodes": sorted(shown, key=lambda node: node["node_id"])})

    async def _create(self, call: JsonCall) -> JsonResponse:
        wanted = registration.read(Fields(call.body), is_production=self._is_production)
        made = await registration.register(self._coherence, wanted)
        await self._nodes.refresh()
        secret = {"node_secret": made.secret, "brain_url": self._workers_url}
        return JsonResponse({**shape(made.row, self._nodes.interval_s), **secret}, 201)

    async def _one(self, call: JsonCall) -> JsonResponse:
        return JsonResponse(shape(await find(self._database, call), self._nodes.interval_s))

    async def _audits(self, call: JsonCall) -> JsonResponse:
        row = await find(self._database, call)
        return JsonResponse(await records.summary(self._database, row.id))

    async def _quarantines(self, call: JsonCall) -> JsonResponse:
        query = Fields(call.query, is_text=True)
        after = query.integer("after", default=0)
        limit = query.integer("limit", default=PAGE)
        query.finish()
        found = await node_rows.quarantines(self._database, after, min(limit, PAGE))
        return JsonResponse({"quarantines": found})

    async def _remove(self, call: JsonCall) -> JsonResponse:
        await registration.remove(self._coherence, node_id(call))
        await self._nodes.refresh()
        return JsonResponse(status=204)


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
        "status_at": row.status_at.isoformat() if row.status_at else None,
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
