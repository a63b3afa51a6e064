"""An organization's payout method: set with a fresh proof, mailed about, and rested before use."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.organization_admins import notify_admins
from billing import ledger
from billing.errors import PayoutMethodNotFound, PayoutMethodUnchecked
from billing.models.ledger import AccountKind
from billing.models.payouts import PayoutMethod
from billing.payouts.providers import PayoutProviderUnavailable, provider_of

# Of a new method, before it is used.
REST: Final = timedelta(hours=72)


def current(organization_id: int) -> PayoutMethod:
    """Return the method in use or at rest. Raises PayoutMethodNotFound."""
    row = PayoutMethod.objects.filter(organization_id=organization_id, removed_at=None).first()
    if row is None:
        raise PayoutMethodNotFound
    return row


def replace(
    organization_id: int, kind: str, details: Mapping[str, Any], *, by: str, now: datetime
) -> PayoutMethod:
    """Set the method; an unchanged one has no effect, another one is usable after a waiting period.

    Raises InvalidRequest, PayoutMethodUnchecked.
    """
    try:
        checked = provider_of(kind).checked(details, organization_id)
    except PayoutProviderUnavailable as exc:
        raise PayoutMethodUnchecked from exc
    with transaction.atomic():
        # The second of two concurrent changes waits here, and replaces the first one's method.
        ledger.locked([(AccountKind.PAYABLE, organization_id)])
        rows = PayoutMethod.objects.filter(organization_id=organization_id, removed_at=None)
        known = rows.first()
        if known is not None:
            if (known.kind, known.details) == (kind, checked):
                return known
            PayoutMethod.objects.filter(pk=known.pk).update(removed_at=now)
        method = PayoutMethod.objects.create(
            organization_id=organization_id,
            kind=kind,
            details=checked,
            created_by=by,
            created_at=now,
            usable_from=now + REST,
        )
        _notify_admins(method)
        return method


def remove(organization_id: int, *, now: datetime) -> None:
    """Remove the method; a payout that was debited is still sent to it.

    Raises PayoutMethodNotFound.
    """
    rows = PayoutMethod.objects.filter(organization_id=organization_id, removed_at=None)
    if not rows.update(removed_at=now):
        raise PayoutMethodNotFound


def creator_of(user_id: UUID | None) -> str:
    """Return how rows of billing name the user who made them."""
    return f"user:{user_id}"


def shown(method: PayoutMethod, *, now: datetime) -> dict[str, Any]:
    """Return a method as its owner sees it."""
    # One that the platform has switched off is shown all the same, so that it can be replaced.
    offered = is_offered(method)
    return {
        "kind": method.kind,
        "account": provider_of(method.kind).label(method.details) if offered else "",
        "created_at": method.created_at,
        "usable_from": method.usable_from,
        "is_usable": offered and method.usable_from <= now,
    }


def is_offered(method: PayoutMethod) -> bool:
    """True if the platform pays by this kind of method now."""
    return method.kind in settings.PAYOUT_METHODS


def _notify_admins(method: PayoutMethod) -> None:
    label = provider_of(method.kind).label(method.details)
    notify_admins(
        method.organization_id,
        "payout_method_changed",
        method=f"{method.kind}, {label}",
        usable_from=f"{method.usable_from:%Y-%m-%d %H:%M} UTC",
    )
