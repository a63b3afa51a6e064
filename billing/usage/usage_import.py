"""Importing usage lines from the brain, each once, in any order and with repetitions."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID, uuid4

import structlog
from django.conf import settings
from django.db import transaction

from billing.models.rates import UsageKind
from billing.models.usage import Progress, RejectedLine, UsageLine
from billing.usage.rates import MAX_QUANTITY
from edgecache.api import client
from sqlgateway.run import usage as sql_usage

log = structlog.get_logger(__name__)

PAGE_LINES: Final = 5000
# Tolerated difference between the brain's clock and this one.
SKEW: Final = timedelta(minutes=5)
OLDEST: Final = timedelta(days=40)
# The row of Progress with the time at which the brain's database was restored from a backup.
WENT_BACK: Final = "brain_went_back"
QUANTITIES: Final[Mapping[UsageKind, str]] = {
    UsageKind.HIT: "hits",
    UsageKind.MISS: "misses",
    UsageKind.EGRESS: "bytes_served",
    UsageKind.STORAGE: "storage_byte_hours",
}
SQL_QUANTITIES: Final[Mapping[UsageKind, str]] = {
    UsageKind.SQL_STATEMENT: "statements",
    UsageKind.SQL_TIME: "milliseconds",
    UsageKind.SQL_EGRESS: "bytes_out",
    UsageKind.SQL_STORAGE: "storage_byte_hours",
}


@dataclass(frozen=True, slots=True)
class UsageImportResult:
    """The result of one run. lines: new ones; rejected: kept aside with their reason."""

    lines: int = 0
    rejected: int = 0

    def __add__(self, other: "UsageImportResult") -> "UsageImportResult":
        return UsageImportResult(self.lines + other.lines, self.rejected + other.rejected)


def import_usage(*, now: datetime, is_complete: bool = False) -> UsageImportResult:
    """Import all new lines of the brain, and usage of SQL.

    is_complete: include all usage of the running hour; otherwise small amounts become one line when
    the hour ends.

    Raises CacheUnavailable, and ValueError for an inconsistent page. Earlier pages stay imported.
    """
    done = import_sql(now=now, is_complete=is_complete)
    while True:
        position, page = _next_page(now=now, is_complete=is_complete)
        if page["lines"]:
            done += _import_page(position, page, now=now)
        # Usage since then makes new lines for the next run.
        if len(page["lines"]) < PAGE_LINES:
            return done


def import_sql(*, now: datetime, is_complete: bool) -> UsageImportResult:
    """Import usage of SQL; its app forgets it in the same transaction."""
    with transaction.atomic():
        # Settling takes lines by their id: ids must become visible in order.
        Progress.lock("settle")
        lines: list[UsageLine] = []
        for row in sql_usage.take(now=now, is_complete=is_complete):
            lines += _sql_lines(row)
        UsageLine.objects.bulk_create(lines)
    return UsageImportResult(lines=len(lines))


def store(page: Mapping[str, Any], *, now: datetime) -> tuple[int, int]:
    """Store a page of lines; return how many were new, and how many were rejected.

    Raises ValueError for a page whose sums do not match its lines; nothing of it is stored.
    """
    _check_sums(page)
    # Settling takes lines by their id: ids must become visible in order.
    Progress.lock("settle")
    good: dict[UUID, list[UsageLine]] = {}
    given: dict[UUID, Mapping[str, Any]] = {}
    rejected: list[RejectedLine] = []
    known = _known(page)
    for line in page["lines"]:
        if line.get("line_id") in known:
            continue
        try:
            parts = list(_read(line, now=now))
            good[parts[0].line_id], given[parts[0].line_id] = parts, line
        except (ValueError, KeyError, TypeError) as exc:
            rejected.append(_rejected(line, str(exc) or type(exc).__name__))
    again = _counted_again(good, now=now)
    rejected += [_rejected(given[line_id], "charged_before_restore") for line_id in again]
    new = [one for line_id, lines in good.items() if line_id not in again for one in lines]
    UsageLine.objects.bulk_create(new)
    RejectedLine.objects.bulk_create(rejected, ignore_conflicts=True)
    return len(new), len(rejected)


def _rejected(line: Mapping[str, Any], reason: str) -> RejectedLine:
    log.warning("billing_usage_line_rejected", reason=reason)
    line_id = str(line.get("line_id", ""))[:64]
    return RejectedLine(line_id=line_id, reason=reason[:64], line=dict(line))


def _counted_again(good: Mapping[UUID, list[UsageLine]], *, now: datetime) -> set[UUID]:
    """Return the lines of hours, buckets and nodes that were charged before the brain was restored.

    Its counters from the backup become lines again, with other ids, and so does the storage of an
    hour. Usage after the restore in the same hour is not charged, either.
    """
    row = Progress.objects.filter(pk=WENT_BACK, updated_at__gt=now - OLDEST).first()
    lines = [one for parts in good.values() for one in parts]
    if row is None or not lines:
        return set()
    charged = UsageLine.objects.filter(
        organization_id__in={one.organization_id for one in lines},
        used_at__in={one.used_at for one in lines},
        created_at__lte=row.updated_at,
    ).values_list("kind", "used_at", "bucket_id", "node_id", "is_creditable")
    known = set(charged)

    def identity(one: UsageLine) -> tuple[Any, ...]:
        return one.kind, one.used_at, one.bucket_id, one.node_id, one.is_creditable

    return {
        line_id for line_id, parts in good.items() if any(identity(one) in known for one in parts)
    }


def _next_page(*, now: datetime, is_complete: bool) -> tuple[int, Mapping[str, Any]]:
    """Return the position, and the page that begins with the line of this position."""
    row = Progress.objects.filter(pk="import").first()
    position = row.position if row is not None else 0
    page = _page_after(max(position - 1, 0), is_complete=is_complete)
    if position and settings.CACHE.is_enabled and not _begins_with(page, position):
        # A brain restored from a backup reuses numbers, which may never pass the old position.
        # Known lines change nothing.
        log.error("billing_brain_counts_lines_anew", position=position)
        with transaction.atomic():
            Progress.objects.filter(pk="import", position=position).update(position=0)
            Progress.objects.update_or_create(name=WENT_BACK, defaults={"updated_at": now})
        position, page = 0, _page_after(0, is_complete=is_complete)
    return position, page


def _page_after(position: int, *, is_complete: bool) -> Mapping[str, Any]:
    page: Mapping[str, Any] = client.call(
        "GET",
        "/v1/usage",
        query={"after": position, "limit": PAGE_LINES, "cut": "all" if is_complete else "due"},
        disabled={"lines": [], "sums": {}, "next": position},
    )
    return page


def _begins_with(page: Mapping[str, Any], position: int) -> bool:
    """True if the page's first line has this number and was imported before."""
    first = page["lines"][0] if page["lines"] else {"id": 0}
    return first["id"] == position and (
        UsageLine.objects.filter(line_id=first["line_id"]).exists()
        or RejectedLine.objects.filter(line_id=first["line_id"]).exists()
    )


def _import_page(position: int, page: Mapping[str, Any], *, now: datetime) -> UsageImportResult:
    with transaction.atomic():
        progress = Progress.lock("import")
        if progress.position != position:
            return UsageImportResult()
        imported = UsageImportResult(*store(page, now=now))
        Progress.objects.filter(pk="import").update(position=int(page["next"]), updated_at=now)
        return imported


def _check_sums(page: Mapping[str, Any]) -> None:
    for name in QUANTITIES.values():
        total = sum(int(line.get(name, 0)) for line in page["lines"])
        if total != int(page["sums"].get(name, -1)):
            raise ValueError(f"the page's sum of {name} is not that of its lines")


def _known(page: Mapping[str, Any]) -> set[str]:
    """Return the ids of the page's lines that were imported before."""
    ids: set[UUID] = set()
    for line in page["lines"]:
        # A value that is not an id is rejected with its line.
        with contextlib.suppress(KeyError, ValueError):
            ids.add(UUID(line["line_id"]))
    found = UsageLine.objects.filter(line_id__in=ids).values_list("line_id", flat=True)
    return {str(line_id) for line_id in found}


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
    if not all(0 <= quantity <= MAX_QUANTITY[kind] for kind, quantity in quantities.items()):
        raise ValueError("quantity_out_of_range")
    if not any(quantities.values()):
        raise ValueError("nothing_used")
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


def _sql_lines(row: Mapping[str, Any]) -> list[UsageLine]:
    line_id = uuid4()
    return [
        UsageLine(
            line_id=line_id,
            kind=kind,
            used_at=row["hour"],
            organization_id=row["organization_id"],
            environment_pk=row["environment_pk"],
            bucket_id=0,
            quantity=Decimal(row[name]),
        )
        for kind, name in SQL_QUANTITIES.items()
        if row[name]
    ]
