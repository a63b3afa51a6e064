"""Delete rows of the history that are too old or too many."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Count, QuerySet

from sqlgateway.models import SqlRecord

# Rows that one statement deletes, so that locks are short.
BATCH: Final = 5000

TRIM: Final = """
DELETE FROM sqlgateway_sqlrecord WHERE id IN (
    SELECT id FROM sqlgateway_sqlrecord WHERE organization_id = %s
    ORDER BY id DESC OFFSET %s LIMIT %s)
"""


def trim(organization_id: int) -> int:
    """Delete an organization's rows past ZSQL_HISTORY_ROWS, oldest first; return their number."""
    deleted = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(TRIM, [organization_id, settings.SQL.history_rows, BATCH])
            number: int = cursor.rowcount
        deleted += number
        if number < BATCH:
            return deleted


def prune(*, now: datetime) -> int:
    """Delete rows older than ZSQL_HISTORY_DAYS or above the limit; return their number."""
    oldest = first_id(now - timedelta(days=settings.SQL.history_days))
    deleted = 0
    while True:
        old = _all().filter(pk__lt=oldest).order_by("pk").values("pk")[:BATCH]
        number, _ = _all().filter(pk__in=old).delete()
        deleted += number
        if number < BATCH:
            break
    return deleted + sum(trim(organization_id) for organization_id in _overfull())


def first_id(moment: datetime) -> UUID:
    """Return the smallest UUID of version 7 of a moment (RFC 9562 §5.7): ids are in time order."""
    milliseconds = int(moment.timestamp() * 1000)
    return UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62)


def _overfull() -> Iterable[int]:
    counts = _all().values("organization_id").annotate(rows=Count("pk"))
    found = counts.filter(rows__gt=settings.SQL.history_rows)
    return list(found.values_list("organization_id", flat=True))


def _all() -> QuerySet[SqlRecord]:
    return SqlRecord.unscoped.all()  # unscoped: housekeeping for all tenants
