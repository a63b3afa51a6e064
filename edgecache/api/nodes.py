"""Worker nodes: who sees which fields, and what is reported of their states to their operators.

Everyone sees the public fields, a node's operator all of them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from common.principals import Principal
from edgecache.api import client
from edgecache.api.errors import NodeNotFound
from edgecache.models import NodeState
from outbox.webhooks import events

# Its endpoint and its load are for its operator only.
PUBLIC: Final = (
    "node_id",
    "region",
    "status",
    "health",
    "capacity_bytes",
    "used_bytes",
    "created_at",
    "last_seen_at",
)
# The status of a node that is not registered any more.
REMOVED: Final = "removed"


def all_seen_by(organization_id: int) -> list[dict[str, Any]]:
    """Return every registered node; those of other organizations with their public fields only."""
    answer = client.call("GET", "/v1/nodes", disabled={"nodes": []})
    return [_seen_by(organization_id, node) for node in answer["nodes"]]


def find(organization_id: int, node_id: str) -> dict[str, Any]:
    """Return one node; another organization's with its public fields only. Raises NodeNotFound."""
    return _seen_by(organization_id, read(node_id))


def register(principal: Principal, body: Mapping[str, Any]) -> dict[str, Any]:
    """Register a worker of the caller's organization; it serves once the platform approved it.

    Returns the node with ``brain_url`` and ``node_secret``, which no later answer holds.
    Raises NodeEndpointTaken, InvalidRequest and, with too many that wait, CacheLimitReached.
    """
    fields = {
        **body,
        "organization_id": principal.organization_id,
        "is_trusted": False,
        **client.creator(principal),
    }
    node: dict[str, Any] = client.call("POST", "/v1/nodes", body=fields)
    return node | {"is_own": True}


def remove(organization_id: int, node_id: str) -> None:
    """Deregister a node of the organization; its objects are moved in the background.

    Raises NodeNotFound, also for another organization's.
    """
    _check_own(organization_id, node_id)
    client.call("DELETE", f"/v1/nodes/{node_id}")


def read(node_id: str) -> dict[str, Any]:
    """Return any node with all its fields, for the platform's staff.

    Raises NodeNotFound, also while the cache is switched off.
    """
    node: dict[str, Any] | None = client.call("GET", f"/v1/nodes/{_checked(node_id)}")
    if node is None:
        raise NodeNotFound
    return node


def discard(node_id: str) -> None:
    """Deregister any node, for the platform's staff. Raises NodeNotFound."""
    client.call("DELETE", f"/v1/nodes/{_checked(node_id)}")


def metrics(organization_id: int, node_id: str) -> dict[str, Any]:
    """Return the metrics of a node of the organization.

    Raises NodeNotFound, also for another organization's.
    """
    return _part(organization_id, node_id, "metrics")


def audits(organization_id: int, node_id: str) -> dict[str, Any]:
    """Return what the platform's checks of the organization's node found.

    Raises NodeNotFound, also for another organization's.
    """
    return _part(organization_id, node_id, "audits")


def decide(node_id: str, decision: str) -> None:
    """Carry out a decision of the platform's staff: ``approve``, ``quarantine`` or ``drain``.

    Raises NodeNotFound.
    """
    client.call("POST", f"/v1/nodes/{_checked(node_id)}/{decision}", body={})


def record_state_changes(*, now: datetime) -> None:
    """Emit an event for each node whose state has changed since the last check.

    A new node does not count as a change. Raises CacheUnavailable.
    """
    nodes = client.call("GET", "/v1/nodes", disabled={"nodes": []})["nodes"]
    seen = {UUID(node["node_id"]): node for node in nodes if node["organization_id"] is not None}
    known = {row.node_id: row for row in NodeState.objects.all()}
    for node_id, node in seen.items():
        row = known.get(node_id)
        if row is None:
            NodeState.objects.get_or_create(
                node_id=node_id,
                defaults={
                    "organization_id": node["organization_id"],
                    "status": node["status"],
                    "health": node["health"],
                    "changed_at": now,
                },
            )
        elif (row.status, row.health) != (node["status"], node["health"]):
            _record_change(row, node, now)
    for node_id in known.keys() - seen.keys():
        _record_change(known[node_id], {"status": REMOVED, "health": ""}, now)


def _part(organization_id: int, node_id: str, part: str) -> dict[str, Any]:
    _check_own(organization_id, node_id)
    answer: dict[str, Any] = client.call("GET", f"/v1/nodes/{node_id}/{part}")
    return answer


def _check_own(organization_id: int, node_id: str) -> None:
    if read(node_id)["organization_id"] != organization_id:
        raise NodeNotFound


def _checked(node_id: str) -> str:
    """Return the id; anything else must not become part of a path of the brain.

    Raises NodeNotFound.
    """
    try:
        return str(UUID(node_id))
    except ValueError:
        raise NodeNotFound from None


def _seen_by(organization_id: int, node: Mapping[str, Any]) -> dict[str, Any]:
    is_own = node["organization_id"] == organization_id
    shown = dict(node) if is_own else {name: node[name] for name in PUBLIC}
    shown.pop("organization_id", None)
    return shown | {"is_own": is_own}


def _record_change(row: NodeState, node: dict[str, Any], now: datetime) -> None:
    with transaction.atomic():
        # If two processes have seen the change, only one emits it.
        mine = NodeState.objects.filter(pk=row.pk, status=row.status, health=row.health)
        if node["status"] == REMOVED:
            is_first = bool(mine.delete()[0])
        else:
            is_first = bool(
                mine.update(status=node["status"], health=node["health"], changed_at=now)
            )
        if not is_first:
            return
        data = {
            "node_id": str(row.node_id),
            "status": node["status"],
            "health": node["health"],
            "before": {"status": row.status, "health": row.health},
        }
        events.emit(row.organization_id, "node.state_changed", data)
