"""What happens when credits run out: a notice, a grace, then other operators' nodes stop serving.

The organization's data stays readable: from the platform's nodes, its own ones, and the origin.
Paying all debts ends the stop in the transaction of the payment.
"""

from datetime import datetime, timedelta
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from accounts.organization_admins import notify_admins
from billing import ledger
from billing.models.ledger import Account, AccountKind
from billing.models.service import ServiceState
from billing.service import brain_notifications, spend_caps
from outbox.webhooks import events

log = structlog.get_logger(__name__)

# The second notice comes this long before the end of the grace, or after half of a short one.
WARNING: Final = timedelta(days=2)


def current(organization_id: int) -> ServiceState:
    """Return an organization's state; the one of an organization that always paid is empty."""
    known = ServiceState.objects.filter(pk=organization_id).first()
    return known or ServiceState(organization_id=organization_id)


def grace_until(state: ServiceState) -> datetime | None:
    """Return when the grace ends, None if none is running."""
    if state.stopped_at is not None or state.ran_out_at is None:
        return None
    return state.ran_out_at + _grace()


def refresh_all(*, now: datetime) -> None:
    """Take every step that is due; running it again changes nothing."""
    for organization_id in sorted(_due(now) | spend_caps.due(now=now)):
        refresh(organization_id, now=now)


def refresh(organization_id: int, *, now: datetime) -> None:
    """Take the steps that are due for one organization, each of them once."""
    with transaction.atomic():
        # Payments, and others that do this, wait here.
        ledger.locked([(AccountKind.DEBT, organization_id)])
        state = current(organization_id)
        was_stopped = state.is_stopped
        if ledger.balance(AccountKind.DEBT, organization_id) < 0 and _is_enforced():
            _go_on(state, now=now)
        else:
            state.ran_out_at = state.warned_at = state.stopped_at = None
        spend_caps.apply(state, now=now)
        if state.is_stopped != was_stopped:
            state.decide(now=now)
            brain_notifications.notify_later(organization_id)
            log.info(
                "billing_service_changed", organization_id=organization_id, status=state.status
            )
        state.save()


def _go_on(state: ServiceState, *, now: datetime) -> None:
    """Take the next step of an organization with debts."""
    state.ran_out_at = begun = state.ran_out_at or now
    end = begun + _grace()
    organization_id, moment = state.organization_id, f"{end:%Y-%m-%d %H:%M} UTC"
    if state.stopped_at is not None:
        return
    if end <= now:
        state.stopped_at = now
        notify_admins(organization_id, "service_stopped")
        _emit(organization_id, "stopped", end)
    elif begun == now:
        notify_admins(organization_id, "credits_ran_out", stops_at=moment)
        _emit(organization_id, "ran_out", end)
    elif state.warned_at is None and begun + _unwarned() <= now:
        state.warned_at = now
        notify_admins(organization_id, "service_stops_soon", stops_at=moment)
        _emit(organization_id, "stops_soon", end)


def _emit(organization_id: int, status: str, stops_at: datetime) -> None:
    data = {"status": status, "stops_at": stops_at.isoformat()}
    events.emit(organization_id, "credits.running_out", data)


def _is_enforced() -> bool:
    """True if running out of credits has consequences here."""
    return settings.BILLING.grace_days is not None


def _grace() -> timedelta:
    return timedelta(days=settings.BILLING.grace_days or 0)


def _unwarned() -> timedelta:
    """Return the time between the first notice and the second one."""
    return max(_grace() - WARNING, _grace() / 2)


def _due(now: datetime) -> set[int]:
    """Return the organizations with a step to take for their debts."""
    known = ServiceState.objects.exclude(ran_out_at=None)
    if not _is_enforced():
        return set(known.values_list("pk", flat=True))
    owing = Account.objects.filter(kind=AccountKind.DEBT, balance_ucr__lt=0)
    debtors = owing.values("organization_id")
    step = Q(ran_out_at__lte=now - _grace()) | Q(warned_at=None, ran_out_at__lte=now - _unwarned())
    begun = owing.exclude(organization_id__in=known.values("pk"))
    return {
        *(int(owner or 0) for owner in begun.values_list("organization_id", flat=True)),
        *known.filter(step, stopped_at=None).values_list("pk", flat=True),
        *known.exclude(pk__in=debtors).values_list("pk", flat=True),
    }
