"""Quarantined nodes: their operators are mailed, staff may forfeit earnings, operators may appeal.

While staff has not decided, payouts of the operator wait: they would pay what may be forfeited.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction

from accounts.organization_admins import notify_admins
from audit import trail
from audit.tags import AuditTag
from billing import holds
from billing.audit_tags import BillingTag
from billing.errors import AppealRefused, ForfeitRefused, QuarantineNotFound
from billing.models.ledger import Journal
from billing.models.quarantines import Quarantine
from billing.models.usage import Progress
from billing.money import credits_text
from billing.payouts import requests
from common.principals import PlatformRequest
from edgecache.api import client

log = structlog.get_logger(__name__)

PAGE: Final = 500
# Usage becomes a line when its hour ends, and a direct read some hours later at most.
ALL_IS_CHARGED: Final = timedelta(days=1)
EARNED: Final = """
    SELECT coalesce(sum(share.ucr), 0)::bigint
    FROM billing_usageline l
    CROSS JOIN LATERAL (
        SELECT journal_id, share_ucr AS ucr FROM billing_charge WHERE line_id = l.id
        UNION ALL
        SELECT journal_id, share_ucr FROM billing_adjustment WHERE charge_id = l.id) share
    JOIN billing_journal j ON j.id = share.journal_id
    WHERE l.operator_id = %s AND l.node_id = %s AND j.posted_at > %s
"""


def record_new(*, now: datetime) -> int:
    """Record the brain's new quarantines, and those that ended; return how many are new.

    Payouts that waited for quarantines which are decided by now go on.

    Raises CacheUnavailable.
    """
    with transaction.atomic():
        progress = Progress.lock("quarantines")
        # Includes the last known event, to see that the brain still has it.
        events = _events_after(max(progress.position - 1, 0))
        if progress.position and settings.CACHE.is_enabled and not _is_known(events, progress):
            # A brain restored from a backup reuses numbers, which may never pass the position.
            log.error("billing_brain_counts_quarantines_anew", position=progress.position)
            progress.position, events = 0, _events_after(0)
        new = [row for row in events if _record(row)]
        progress.position = events[-1]["id"] if events else progress.position
        progress.updated_at = now
        progress.save(update_fields=["position", "updated_at"])
    _end(now=now)
    requests.release_cleared()
    return len(new)


def forfeit(quarantine_id: UUID, *, reason: str, actor: str, now: datetime) -> Quarantine:
    """Take a quarantined node's earnings that are not paid out yet.

    After a rejected appeal the amount may be 0, which closes the case, and so for a node that is
    gone, a day after the quarantine began.

    Raises QuarantineNotFound, ForfeitRefused (done before, an appeal was granted, a payout by hand
    may have been paid, or nothing is left), and CacheUnavailable if nothing is left.
    """
    with transaction.atomic():
        row = _locked(quarantine_id)
        _check_undecided(row)
        # A requested payout that is not sent counts as not paid out; otherwise it would escape.
        requests.reverse_unsent(row.organization_id, requests.QUARANTINED, actor=actor, now=now)
        amount_ucr = holds.forfeit(
            row.organization_id,
            forfeitable_ucr(row),
            key=f"forfeit:{row.pk}",
            reason=reason,
            actor=actor,
        )
        if not amount_ucr and not row.decision and not _is_gone(row, now=now):
            # After a rejected appeal only this ends the wait of the operator's payouts, and so for
            # a node that can never be approved again.
            raise ForfeitRefused(
                "The node has no earnings that are not paid out. The case of a removed node can be "
                "closed a day after it began."
            )
        row.forfeited_ucr, row.forfeit_reason = amount_ucr, reason
        row.forfeited_at, row.forfeited_by = now, actor
        row.save()
        notify_admins(
            row.organization_id,
            "earnings_forfeited",
            node=str(row.node_id),
            credits=credits_text(amount_ucr),
            reason=reason,
        )
        return row


def _check_undecided(row: Quarantine) -> None:
    """Raise ForfeitRefused if a quarantine was decided, or a payout may yet have been paid."""
    if row.forfeited_at or row.decision == Quarantine.Decision.GRANTED:
        raise ForfeitRefused("This was decided already.")
    if requests.waits_for_answer(row.organization_id):
        raise ForfeitRefused(
            "Mark the operator's payout by hand as paid or as failed first; reconcile one that "
            "is held since a restore."
        )


def forfeitable_ucr(row: Quarantine) -> int:
    """Return a node's earnings that were neither paid out nor forfeited."""
    same = Quarantine.objects.filter(node_id=row.node_id, organization_id=row.organization_id)
    taken = same.exclude(decision=Quarantine.Decision.GRANTED).values_list("pk", flat=True)
    forfeits = Journal.objects.filter(key__in=[f"forfeit:{pk}" for pk in taken])
    since = max(
        [holds.paid_until(row.organization_id), *forfeits.values_list("posted_at", flat=True)]
    )
    with connection.cursor() as cursor:
        cursor.execute(EARNED, [row.organization_id, row.node_id, since])
        return max(int(cursor.fetchone()[0]), 0)


def appeal(
    organization_id: int, quarantine_id: UUID, text: str, *, by: str, now: datetime
) -> Quarantine:
    """Record an operator's appeal, once.

    Raises QuarantineNotFound, also for another organization's, and AppealRefused.
    """
    with transaction.atomic():
        row = _locked(quarantine_id)
        if row.organization_id != organization_id:
            raise QuarantineNotFound
        if row.appealed_at or row.decision:
            raise AppealRefused("There is an appeal, or a decision, already.")
        row.appeal, row.appealed_at, row.appealed_by = text, now, by
        row.save()
        return row


def decide(
    quarantine_id: UUID, *, is_granted: bool, reason: str, actor: str, now: datetime
) -> Quarantine:
    """Grant an appeal, which returns the forfeited earnings, or reject it.

    Raises QuarantineNotFound, and AppealRefused if it was decided, or without an appeal.
    """
    with transaction.atomic():
        row = _locked(quarantine_id)
        if row.decision or not row.appealed_at:
            raise AppealRefused("There is no appeal that waits for a decision.")
        returned_ucr = 0
        if is_granted and row.forfeited_ucr:
            returned_ucr = holds.reinstate(
                row.organization_id,
                row.forfeited_ucr,
                key=f"reinstate:{row.pk}",
                forfeit_key=f"forfeit:{row.pk}",
                reason=reason,
                actor=actor,
            )
        decisions = Quarantine.Decision
        row.decision = decisions.GRANTED if is_granted else decisions.REJECTED
        row.decision_reason, row.decided_at, row.decided_by = reason, now, actor
        row.save()
        notify_admins(
            row.organization_id,
            "appeal_decided",
            node=str(row.node_id),
            decision=str(row.decision),
            credits=credits_text(returned_ucr),
            reason=reason,
        )
        return row


def record(
    request: PlatformRequest | None, tag: AuditTag, row: Quarantine, *, actor: str, reason: str
) -> None:
    """Record what staff did in the operator's audit trail. request: None for a command."""
    trail.add(
        request,
        tag,
        organization_id=row.organization_id,
        actor=actor,
        data={
            "quarantine_id": str(row.pk),
            "node_id": str(row.node_id),
            "forfeited_ucr": row.forfeited_ucr,
            "reason": reason[:300],
        },
    )


def _events_after(position: int) -> list[dict[str, Any]]:
    answer = client.call(
        "GET",
        "/v1/quarantines",
        query={"after": position, "limit": PAGE},
        disabled={"quarantines": []},
    )
    events: list[dict[str, Any]] = answer["quarantines"]
    return events


def _is_known(events: list[dict[str, Any]], progress: Progress) -> bool:
    """True if the first event is the one that was recorded last."""
    if not events or events[0]["id"] != progress.position:
        return False
    began_at = datetime.fromisoformat(events[0]["began_at"])
    return Quarantine.objects.filter(node_id=events[0]["node_id"], began_at=began_at).exists()


def _record(event: dict[str, Any]) -> bool:
    row, is_new = Quarantine.objects.get_or_create(
        node_id=UUID(event["node_id"]),
        began_at=datetime.fromisoformat(event["began_at"]),
        defaults={
            "event": event["id"],
            "organization_id": event["organization_id"],
            "reason": event["reason"],
        },
    )
    if not is_new:
        return False
    requests.hold_unsent(row.organization_id)
    notify_admins(row.organization_id, "node_quarantined", node=str(row.node_id), reason=row.reason)
    trail.add(
        None,
        BillingTag.SYNC_NODE_QUARANTINE,
        organization_id=row.organization_id,
        data={"node_id": str(row.node_id), "reason": row.reason},
    )
    return True


def _end(*, now: datetime) -> None:
    """Note which nodes were approved again; a node that was removed stays under suspicion.

    A brain whose database was restored from a backup may not know of a quarantine: an approval is
    later than the quarantine's beginning.
    """
    open_rows = Quarantine.objects.filter(ended_at=None)
    suspects = {str(node_id) for node_id in open_rows.values_list("node_id", flat=True)}
    if not suspects:
        return
    nodes = client.call("GET", "/v1/nodes", disabled={"nodes": []})["nodes"]
    for node in nodes:
        if node["node_id"] in suspects and node["status"] in {"active", "draining"}:
            open_rows.filter(node_id=node["node_id"], began_at__lt=node["status_at"]).update(
                ended_at=now
            )


def _is_gone(row: Quarantine, *, now: datetime) -> bool:
    """True if a node was removed, and all that it served before its quarantine is charged."""
    if not settings.CACHE.is_enabled or now - row.began_at < ALL_IS_CHARGED:
        return False
    nodes = client.call("GET", "/v1/nodes", disabled={"nodes": []})["nodes"]
    return str(row.node_id) not in {node["node_id"] for node in nodes}


def _locked(quarantine_id: UUID) -> Quarantine:
    row = Quarantine.objects.select_for_update().filter(pk=quarantine_id).first()
    if row is None:
        raise QuarantineNotFound
    return row
