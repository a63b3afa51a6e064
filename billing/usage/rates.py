"""Rates: the current ones, and from when a new rate applies."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction

from billing.errors import RateRefused
from billing.models.rates import Rate, UsageKind
from billing.money import HOURS_PER_MONTH, MAX_UCR

# What one line may have at most: far above what one bucket can use in an hour. Its charge fits into
# 64 bits at every rate that may be set, so that no line can stop the settling of all others.
MAX_QUANTITY: Final[Mapping[UsageKind, int]] = {
    UsageKind.HIT: 10**12,
    UsageKind.MISS: 10**12,
    UsageKind.EGRESS: 10**16,
    UsageKind.STORAGE: 10**18,
    UsageKind.SQL_STATEMENT: 10**12,
    UsageKind.SQL_TIME: 10**12,
    UsageKind.SQL_EGRESS: 10**16,
    UsageKind.SQL_STORAGE: 10**18,
}


def set_rate(
    kind: UsageKind,
    rate_ucr: int,
    *,
    begins_at: datetime,
    now: datetime,
    is_dry_run: bool = False,
) -> None:
    """Add a rate; one for the same hour that has not begun is replaced.

    begins_at: aware, a full UTC hour in the future.
    Raises RateRefused.
    """
    if begins_at <= now:
        raise RateRefused("A rate begins in the future.")
    if begins_at.timestamp() % 3600:
        raise RateRefused("A rate begins at a full hour (UTC).")
    if rate_ucr > highest_ucr(kind):
        raise RateRefused(f"The highest rate is {highest_ucr(kind)} µcr.")
    try:
        with transaction.atomic():
            Rate.objects.update_or_create(
                kind=kind, begins_at=begins_at, defaults={"rate_ucr": rate_ucr}
            )
            transaction.set_rollback(is_dry_run)
    except IntegrityError as exc:
        raise RateRefused("A rate is not negative.") from exc


def highest_ucr(kind: UsageKind) -> int:
    """Return the highest rate that can be set."""
    hours = HOURS_PER_MONTH if kind in {UsageKind.STORAGE, UsageKind.SQL_STORAGE} else 1
    return hours * (MAX_UCR // MAX_QUANTITY[kind])


def in_force(*, now: datetime) -> dict[UsageKind, int]:
    """Return the rate of each kind in µcr at a moment."""
    rows = Rate.objects.filter(begins_at__lte=now).order_by("kind", "begins_at")
    return {UsageKind(row.kind): row.rate_ucr for row in rows}
