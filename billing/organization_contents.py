"""What an organization used, paid and earned (settings.ORGANIZATION_CONTENTS)."""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

from django.db.models import F
from django.utils import timezone

from billing import statements
from billing.api import csv_statement
from billing.models.ledger import Entry
from billing.models.payouts import Payout
from billing.models.topups import TopUp
from billing.statements import Row
from common.archives import ZipWriter
from environments.models import Organization

ByDay = Callable[[int, date, date], list[Row]]


def write(organization_id: int, archive: ZipWriter) -> None:
    """Add the ledger's entries, payouts, purchases, usage by day and the operator's statements.

    Raises ArchiveRefused.
    """
    entries = Entry.objects.filter(account__organization_id=organization_id).order_by("pk")
    ledger = entries.values(
        "amount_ucr",
        account_kind=F("account__kind"),
        kind=F("journal__kind"),
        posted_at=F("journal__posted_at"),
        reason=F("journal__reason"),
    )
    archive.records("billing/ledger.ndjson", ledger.iterator(chunk_size=1000))
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
