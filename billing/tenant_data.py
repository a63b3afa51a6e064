"""Billing's part in the life of an organization."""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from billing import ledger, statements
from billing.api import csv_statement
from billing.models.ledger import AccountKind, Entry
from billing.models.payouts import Payout, PayoutMethod
from billing.models.quarantines import Quarantine
from billing.models.topups import TopUp
from billing.money import cents_of
from billing.payouts.requests import OPEN
from billing.statements import Row
from common.archives import ZipWriter
from environments.models import Organization
from environments.tenant_data import TenantData

ByDay = Callable[[int, date, date], list[Row]]


class BillingData(TenantData):
    """What an organization used, paid and earned.

    The ledger stays when the organization is deleted, because others paid or were paid. Earnings
    below the smallest payout can never be paid out, and do not prevent a deletion.
    """

    def export(self, organization_id: int, archive: ZipWriter) -> None:
        """Add the ledger's entries, payouts, purchases, usage by day and the operator's statements.

        Raises ArchiveRefused.
        """
        entries = Entry.objects.filter(account__organization_id=organization_id).order_by("pk")
        lines = entries.values(
            "amount_ucr",
            account_kind=F("account__kind"),
            kind=F("journal__kind"),
            posted_at=F("journal__posted_at"),
            reason=F("journal__reason"),
        )
        archive.records("billing/ledger.ndjson", lines.iterator(chunk_size=1000))
        columns = ("id", "amount_cents", "currency", "created_at")
        payouts = Payout.objects.filter(organization_id=organization_id).order_by("pk")
        archive.records("billing/payouts.ndjson", payouts.values(*columns, "state", "changed_at"))
        top_ups = TopUp.objects.filter(organization_id=organization_id).order_by("pk")
        archive.records("billing/top_ups.ndjson", top_ups.values(*columns, "paid_at"))
        months = list(_months(organization_id))
        by_day: dict[str, ByDay] = {
            "usage": statements.used,
            "sql": statements.used_sql,
            "earnings": statements.earned,
        }
        for name, read in by_day.items():
            archive.records(f"billing/{name}.ndjson", _by_day(organization_id, months, read))
        for first in months:
            if statements.statement_totals(organization_id, first)["lines"]:
                with archive.entry(f"billing/statements/{first:%Y-%m}.csv") as write_bytes:
                    for part in csv_statement.rows(organization_id, first):
                        write_bytes(part.encode())

    def obstacles_of(self, organization_id: int) -> list[str]:
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

    def organization_erased(self, organization_id: int) -> None:
        """Remove how the organization was paid; what was paid stays."""
        PayoutMethod.objects.filter(organization_id=organization_id, removed_at=None).update(
            removed_at=timezone.now()
        )
        PayoutMethod.objects.filter(organization_id=organization_id).update(
            details={}, created_by=""
        )


def _by_day(organization_id: int, months: list[date], read: ByDay) -> Iterator[dict[str, Any]]:
    for first in months:
        yield from read(organization_id, first, _next(first) - timedelta(days=1))


def _months(organization_id: int) -> Iterator[date]:
    """Yield the first day of each month since the organization was created."""
    created_at = Organization.objects.values_list("created_at", flat=True).get(pk=organization_id)
    month, today = created_at.date().replace(day=1), timezone.now().date()
    while month <= today:
        yield month
        month = _next(month)


def _next(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)
