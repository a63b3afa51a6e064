"""Billing's part in the deletion of an organization.

The ledger stays, because others paid or were paid. Earnings below the smallest payout can never be
paid out and do not prevent a deletion.
"""

from django.conf import settings
from django.utils import timezone

from billing import ledger
from billing.models.ledger import AccountKind
from billing.models.payouts import Payout, PayoutMethod
from billing.models.quarantines import Quarantine
from billing.money import cents_of
from billing.payouts.requests import OPEN


def obstacles_of(organization_id: int) -> list[str]:
    """Return what must be settled before the organization is deleted, as sentences."""
    found = []
    if Payout.objects.filter(organization_id=organization_id, state__in=OPEN).exists():
        found.append("A payout is on its way: wait until it is confirmed, or cancel it.")
    if Quarantine.undecided_of(organization_id).exists():
        found.append("A node is quarantined: its earnings wait for the platform's decision.")
    balances = ledger.balances(organization_id)
    owed = balances.get(AccountKind.PAYABLE, 0) + balances.get(AccountKind.HELD, 0)
    if cents_of(owed) >= max(settings.BILLING.payout_minimum_cents, 1):
        cents = cents_of(owed)
        found.append(
            f"{cents} cents of earnings are owed to the organization: have them paid out first."
        )
    return found


def on_organization_erased(organization_id: int) -> None:
    """Remove how the organization was paid; what was paid stays."""
    PayoutMethod.objects.filter(organization_id=organization_id, removed_at=None).update(
        removed_at=timezone.now()
    )
    PayoutMethod.objects.filter(organization_id=organization_id).update(details={}, created_by="")
