"""The cache of all tenants for the platform's staff, through the brain's API."""

from dataclasses import dataclass
from typing import Any, Final, cast

from django.http import HttpRequest

from accounts.audit import audit
from edgecache.api import client, nodes
from edgecache.api.audit_tags import CacheTag
from platform_site.lib.errors import InvalidRequest
from platform_site.lib.principals import PlatformRequest

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


def all_nodes() -> list[dict[str, Any]]:
    """Return every node with all its fields and the possible ``decisions``."""
    rows: list[dict[str, Any]] = client.call("GET", "/v1/nodes", disabled={"nodes": []})["nodes"]
    return [row | {"decisions": DECISIONS.get(row["status"], ())} for row in rows]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of rows. following: where the next page begins, None at the end."""

    rows: list[dict[str, Any]]
    following: str | None = None


def all_buckets(after: str = "") -> Page:
    """Return a page of all tenants' buckets.

    Raises InvalidRequest, CacheUnavailable.
    """
    return _page_of("buckets", after)


def all_keys(after: str = "") -> Page:
    """Return a page of all tenants' access keys, without their secrets.

    Raises InvalidRequest, CacheUnavailable.
    """
    return _page_of("access-keys", after)


def decide(request: HttpRequest, node_id: str, decision: str, *, reason: str) -> None:
    """Carry out a decision and record it with its reason in the audit trail.

    Raises InvalidRequest for an unknown decision or a missing reason, and NodeNotFound.
    """
    if decision not in DECISION_TAGS:
        raise InvalidRequest.for_field("decision", "There is no such decision.")
    if not reason.strip():
        raise InvalidRequest("A reason is required: it is kept in the audit trail.")
    nodes.decide(node_id, decision)
    audit.add(
        cast(PlatformRequest, request),
        DECISION_TAGS[decision],
        actor_id=request.user.pk,
        actor=str(request.user),
        data={"node_id": node_id, "reason": reason.strip()[:300]},
    )


def _page_of(kind: str, after: str) -> Page:
    name = kind.replace("-", "_")
    answer = client.call(
        "GET",
        f"/v1/everyone/{kind}",
        query={"after": after} if after else None,
        disabled={name: [], "next": None},
    )
    return Page(answer[name], answer["next"])
