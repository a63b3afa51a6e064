"""Importing usage lines from the brain: each once, in whatever order and how often they come."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction

from edgecache.api import client
from edgecache.billing.models import Progress, RejectedLine, UsageKind, UsageLine
from edgecache.billing.progress import lock_progress

log = structlog.get_logger(__name__)

PAGE_LINES: Final = 5000
# Tolerated difference between the brain's clock and this one.
SKEW: Final = timedelta(minutes=5)
OLDEST: Final = timedelta(days=40)
QUANTITIES: Final[Mapping[UsageKind, str]] = {
    UsageKind.HIT: "hits",
    UsageKind.MISS: "misses",
    UsageKind.EGRESS: "bytes_served",
    UsageKind.STORAGE: "storage_byte_hours",
}
LARGEST: Final = 10**30


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of one run. lines: new ones; rejected: kept aside with their reason."""

    lines: int = 0
    rejected: int = 0


def import_usage(*, now: datetime) -> Imported:
    """Import every line that the brain has and this platform has not.

    Raises CacheUnavailable; what was imported before stays.
    """
    lines = rejected = 0
    while True:
        position, page = _next_page()
        if not page["lines"]:
            return Imported(lines, rejected)
        with transaction.atomic():
            progress = lock_progress("import")
            if progress.position == position:
                added, refused = store(page, now=now)
                lines, rejected = lines + added, rejected + refused
                Progress.objects.filter(pk="import").update(
                    position=int(page["next"]), updated_at=now
                )


def store(page: Mapping[str, Any], *, now: datetime) -> tuple[int, int]:
    """Store a page of lines; return how many were new, and how many were rejected.

    Raises ValueError for a page whose sums are not those of its lines: nothing of it is stored.
    """
    _check_sums(page)
    # Settling takes lines by their id: ids must become visible in order.
    lock_progress("settle")
    good: list[UsageLine] = []
    rejected: list[RejectedLine] = []
    for line in page["lines"]:
        try:
            good += _read(line, now=now)
        except (ValueError, KeyError, TypeError) as exc:
            reason = str(exc) or type(exc).__name__
            log.warning("billing_usage_line_rejected", reason=reason)
            line_id = str(line.get("line_id", ""))[:64]
            rejected.append(RejectedLine(line_id=line_id, reason=reason[:64], line=dict(line)))
    known = set(
        UsageLine.objects.filter(line_id__in={line.line_id for line in good}).values_list(
            "line_id", "kind"
        )
    )
    new = {
        (line.line_id, line.kind): line for line in good if (line.line_id, line.kind) not in known
    }
    UsageLine.objects.bulk_create(new.values())
    RejectedLine.objects.bulk_create(rejected, ignore_conflicts=True)
    return len(new), len(rejected)


def _next_page() -> tuple[int, Mapping[str, Any]]:
    row = Progress.objects.filter(pk="import").first()
    position = row.position if row is not None else 0
    page = client.call(
        "GET",
        "/v1/usage",
        query={"after": position, "limit": PAGE_LINES},
        disabled={"lines": [], "sums": {}, "next": position},
    )
    return position, page


def _check_sums(page: Mapping[str, Any]) -> None:
    for name in QUANTITIES.values():
        total = sum(int(line.get(name, 0)) for line in page["lines"])
        if total != int(page["sums"].get(name, -1)):
            raise ValueError(f"the page's sum of {name} is not that of its lines")


def _read(line: Mapping[str, Any], *, now: datetime) -> Iterator[UsageLine]:
    """Return the kinds of usage in a line of the brain.

    Raises ValueError with the reason to reject it.
    """
    used_at = datetime.fromisoformat(line["used_at"]).astimezone(UTC)
    if used_at > now + SKEW:
        raise ValueError("in_the_future")
    if used_at < now - OLDEST:
        raise ValueError("too_old")
    quantities = {kind: int(line[name]) for kind, name in QUANTITIES.items()}
    if not all(0 <= quantity <= LARGEST for quantity in quantities.values()):
        raise ValueError("quantity_out_of_range")
    node_id = line["node_id"]
    common = {
        "line_id": UUID(line["line_id"]),
        "used_at": used_at,
        "organization_id": int(line["organization_id"]),
        "environment_pk": int(line["environment_pk"]),
        "bucket_id": int(line["bucket_id"]),
        "bucket_name": str(line["bucket_name"]),
        "node_id": UUID(node_id) if node_id else None,
        "operator_id": line["operator_id"],
        "is_creditable": bool(line["is_creditable"]),
    }
    return iter(
        [
            UsageLine(kind=kind, quantity=Decimal(quantity), **common)
            for kind, quantity in quantities.items()
            if quantity
        ]
    )
