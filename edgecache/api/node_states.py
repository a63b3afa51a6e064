"""Changes of nodes' states, sent to their operators by webhook."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from edgecache.api import client
from edgecache.models import NodeState
from outbox.webhooks import events

# The status of a node that is not registered any more.
REMOVED: Final = "removed"


def record_changes(*, now: datetime) -> None:
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
            _change(row, node, now)
    for node_id in known.keys() - seen.keys():
        _change(known[node_id], {"status": REMOVED, "health": ""}, now)


def _change(row: NodeState, node: dict[str, Any], now: datetime) -> None:
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
