"""What billing sends to the brain: whom other operators' nodes serve, and operators' networks.

A decision's row and the job that sends it are one transaction. Unconfirmed decisions are sent again
after every settlement, and all of them every night, because a brain restored from a backup has
older ones. What is read from the networks of an operator's own people earns nothing.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, Q

from accounts.models import Session
from billing.models.service import ServiceState
from common.jobs import job
from edgecache.api import client
from edgecache.http.addresses import prefix_of

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Decisions sent in one run; after a long outage of the brain the next runs send the rest.
MAX_DECISIONS: Final = 1000

RECENT_SESSIONS: Final = timedelta(days=30)
# What the brain keeps for one operator.
MAX_NETWORKS: Final = 1000


def notify_later(organization_id: int) -> None:
    """Queue a decision in the caller's transaction."""
    job("billing.tasks.notify_brain").defer(organization_id=organization_id)


def notify(organization_id: int) -> None:
    """Send the current decision about an organization; twice, or late, changes nothing.

    Raises CacheUnavailable.
    """
    state = ServiceState.objects.filter(pk=organization_id).exclude(decided_at=None).first()
    if state is None or state.decided_at is None or not client.is_enabled():
        return
    version = round((state.decided_at - EPOCH).total_seconds() * 1_000_000)
    body = {"is_stopped": state.is_stopped, "version": version}
    client.call("PUT", f"/v1/organizations/{organization_id}/service", body=body)
    rows = ServiceState.objects.filter(pk=organization_id, decided_at=state.decided_at)
    rows.update(notified_at=state.decided_at)


def send_unconfirmed() -> None:
    """Send unconfirmed decisions to the brain. Raises CacheUnavailable."""
    unconfirmed = ServiceState.objects.exclude(decided_at=None).exclude(
        Q(notified_at__isnull=False) & Q(notified_at=F("decided_at"))
    )
    for organization_id in list(
        unconfirmed.order_by("decided_at").values_list("pk", flat=True)[:MAX_DECISIONS]
    ):
        notify(organization_id)


def decide_again(*, now: datetime) -> None:
    """Have every decision sent again."""
    with transaction.atomic():
        for state in ServiceState.objects.exclude(decided_at=None).select_for_update():
            state.decide(now=now)
            state.save(update_fields=["decided_at"])


def send_networks(*, now: datetime) -> None:
    """Send the networks of recent sessions of every operator's members. Raises CacheUnavailable."""
    answer = client.call("GET", "/v1/nodes", disabled={"nodes": []})
    operators = {node["organization_id"] for node in answer["nodes"]} - {None}
    for organization_id in sorted(operators):
        body = {"networks": networks(organization_id, now=now)}
        client.call("PUT", f"/v1/operators/{organization_id}/networks", body=body)


def networks(organization_id: int, *, now: datetime) -> list[str]:
    """Return the networks (/24, /56) of recent sessions of an organization's members."""
    rows = Session.objects.filter(
        organization_id=organization_id, rotated_at__gt=now - RECENT_SESSIONS
    )
    latest = rows.order_by("-rotated_at").values_list("address", flat=True)
    prefixes = dict.fromkeys(map(prefix_of, latest.iterator()))
    return [prefix for prefix in prefixes if prefix][:MAX_NETWORKS]
