"""Sending the brain the networks of operators' own people: what they read earns nothing."""

from datetime import datetime, timedelta
from typing import Final

from accounts.models import Session
from edgecache.api import client
from edgecache.http.addresses import prefix_of

RECENT: Final = timedelta(days=30)
# What the brain keeps for one operator.
MAX_NETWORKS: Final = 1000


def send_networks(*, now: datetime) -> None:
    """Send the networks of recent sessions of every operator's members. Raises CacheUnavailable."""
    answer = client.call("GET", "/v1/nodes", disabled={"nodes": []})
    operators = {node["organization_id"] for node in answer["nodes"]} - {None}
    for organization_id in sorted(operators):
        body = {"networks": networks(organization_id, now=now)}
        client.call("PUT", f"/v1/operators/{organization_id}/networks", body=body)


def networks(organization_id: int, *, now: datetime) -> list[str]:
    """Return the networks (/24, /56) of recent sessions of an organization's members."""
    rows = Session.scoped.within_organization(organization_id).filter(rotated_at__gt=now - RECENT)
    latest = rows.order_by("-rotated_at").values_list("address", flat=True)
    prefixes = dict.fromkeys(map(prefix_of, latest.iterator()))
    return [prefix for prefix in prefixes if prefix][:MAX_NETWORKS]
