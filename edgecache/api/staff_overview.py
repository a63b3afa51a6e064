"""The cache of all tenants for the platform's staff, through the brain's API."""

from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest

from audit import trail
from common.errors import Conflict, InvalidRequest
from edgecache.api import client, nodes
from edgecache.api.audit_tags import CacheTag

# The decisions possible for a node, by its status.
DECISIONS: Final = {
    "pending": ("approve", "quarantine"),
    "active": ("quarantine", "drain"),
    "draining": ("approve", "quarantine"),
    "quarantined": ("approve",),
}
DECISION_TAGS: Final = {
    "approve": CacheTag.ADMIN_NODE_APPROVE,
    "quarantine": CacheTag.ADMIN_NODE_QUARANTINE,
    "drain": CacheTag.ADMIN_NODE_DRAIN,
}
NODE_FILTERS: Final = ("status", "region", "organization_id")


@dataclass(frozen=True, slots=True)
class OverviewQuery:
    """What staff look for. after: where the page begins; organization_id: digits or ''."""

    after: str = ""
    search: str = ""
    organization_id: str = ""
    status: str = ""
    region: str = ""


@dataclass(frozen=True, slots=True)
class RowPage:
    """A page of rows. following: where the next page begins, None at the end."""

    rows: list[dict[str, Any]]
    following: str | None = None


def all_nodes() -> list[dict[str, Any]]:
    """Return every node with all its fields and the possible ``decisions``."""
    rows: list[dict[str, Any]] = client.call("GET", "/v1/nodes", disabled={"nodes": []})["nodes"]
    return [row | {"decisions": DECISIONS.get(row["status"], ())} for row in rows]


def matching_nodes(wanted: OverviewQuery) -> RowPage:
    """Return the nodes that match: there are few enough for one page."""
    return RowPage([row for row in all_nodes() if _matches(row, wanted)])


def page_of(kind: str, wanted: OverviewQuery) -> RowPage:
    """Return a page of all tenants' ``buckets``, ``origins``, ``bucket-hosts``, ``access-keys``.

    Raises InvalidRequest, CacheUnavailable.
    """
    name = kind.replace("-", "_")
    query = {
        "after": wanted.after,
        "search": wanted.search,
        "organization_id": wanted.organization_id,
    }
    answer = client.call(
        "GET",
        f"/v1/everyone/{kind}",
        query={field: value for field, value in query.items() if value},
        disabled={name: [], "next": None},
    )
    return RowPage(answer[name], answer["next"])


def decide(request: HttpRequest, node_id: str, decision: str, *, reason: str) -> None:
    """Carry out a decision and record it with its reason in the audit trail.

    Raises InvalidRequest for a missing reason, NodeNotFound, and Conflict for a decision that does
    not fit the node's state, as of a form that is sent again.
    """
    if not reason.strip():
        raise InvalidRequest("A reason is required: it is kept in the audit trail.")
    node = nodes.read(node_id)
    if decision not in DECISIONS.get(node["status"], ()):
        raise Conflict(f"The node is {node['status']} by now.")
    nodes.decide(node_id, decision)
    trail.record_staff(
        request,
        DECISION_TAGS[decision],
        organization_id=node["organization_id"],
        node_id=node_id,
        reason=reason.strip()[:300],
    )


def _matches(row: dict[str, Any], wanted: OverviewQuery) -> bool:
    texts = (row["endpoint"], row["node_id"])
    return all(
        not getattr(wanted, field) or str(row[field]) == getattr(wanted, field)
        for field in NODE_FILTERS
    ) and any(wanted.search.lower() in text.lower() for text in texts)
