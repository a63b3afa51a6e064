"""``/v1/nodes``: the registry of workers."""

from typing import Any, Final
from uuid import UUID

from edgecache.brain.audits import records
from edgecache.brain.core.errors import NodeNotFound
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.nodes import node_rows, registration
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.registration import NodeRequest
from edgecache.protocol.fields import Count, Message, Text

PAGE: Final = 500


class PageQuery(Message, frozen=True):
    """A page of rows after an id."""

    after: Count = 0
    limit: Count = PAGE


class Quarantine(Message, frozen=True):
    """Why a node is quarantined."""

    reason: Text = "staff"


class NodesApi:
    def __init__(self, dependencies: InternalApiDependencies) -> None:
        self._dependencies = dependencies

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/v1/nodes", self._listing),
            Route("GET", "/v1/quarantines", self._quarantines),
            Route("POST", "/v1/nodes", self._create),
            Route("GET", "/v1/nodes/{node_id}", self._one),
            Route("GET", "/v1/nodes/{node_id}/audits", self._audits),
            Route("DELETE", "/v1/nodes/{node_id}", self._remove),
            Route("POST", "/v1/nodes/{node_id}/approve", self._approve),
            Route("POST", "/v1/nodes/{node_id}/drain", self._drain),
            Route("POST", "/v1/nodes/{node_id}/quarantine", self._quarantine),
        ]

    async def _listing(self, _call: JsonCall) -> JsonResponse:
        rows = await node_rows.read_all(self._dependencies.database)
        shown = [
            shape(row, self._dependencies.nodes.interval_s)
            for row in rows
            if row.removed_at is None
        ]
        return JsonResponse({"nodes": sorted(shown, key=lambda node: node["node_id"])})

    async def _create(self, call: JsonCall) -> JsonResponse:
        dependencies = self._dependencies
        row, secret = await registration.register(
            dependencies.coherence,
            call.read(NodeRequest),
            is_production=dependencies.settings.is_production,
        )
        shown = await self._refreshed(row)
        return JsonResponse(
            {**shown, "node_secret": secret, "brain_url": dependencies.settings.workers_url}, 201
        )

    async def _one(self, call: JsonCall) -> JsonResponse:
        return JsonResponse(
            shape(
                await find(self._dependencies.database, call), self._dependencies.nodes.interval_s
            )
        )

    async def _audits(self, call: JsonCall) -> JsonResponse:
        row = await find(self._dependencies.database, call)
        return JsonResponse(await records.summary(self._dependencies.database, row.id))

    async def _quarantines(self, call: JsonCall) -> JsonResponse:
        query = call.read_query(PageQuery)
        found = await node_rows.quarantines(
            self._dependencies.database, query.after, min(query.limit, PAGE)
        )
        return JsonResponse({"quarantines": found})

    async def _remove(self, call: JsonCall) -> JsonResponse:
        await registration.remove(self._dependencies.coherence, node_id(call))
        await self._dependencies.nodes.refresh()
        return JsonResponse(status=204)

    async def _approve(self, call: JsonCall) -> JsonResponse:
        return await self._decide(call, "active")

    async def _drain(self, call: JsonCall) -> JsonResponse:
        return await self._decide(call, "draining")

    async def _quarantine(self, call: JsonCall) -> JsonResponse:
        reason = call.read(Quarantine).reason
        return await self._decide(call, "quarantined", reason=reason)

    async def _decide(self, call: JsonCall, status: str, *, reason: str = "") -> JsonResponse:
        coherence = self._dependencies.coherence
        row = await registration.decide(coherence, node_id(call), status, reason=reason)
        return JsonResponse(await self._refreshed(row))

    async def _refreshed(self, row: NodeRow) -> dict[str, Any]:
        """Have this brain know the change, and return the node as JSON."""
        await self._dependencies.nodes.refresh()
        return shape(row, self._dependencies.nodes.interval_s)


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
        "created_by": row.created_by,
        "created_at": row.created_at.isoformat(),
        "last_seen_at": row.last_seen_at.isoformat() if row.last_seen_at else None,
    }


async def find(database: BrainDatabase, call: JsonCall) -> NodeRow:
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
