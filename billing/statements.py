"""What an organization used, paid and earned: sums by day, and statements line by line."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, LiteralString

from django.db import connection

USED: Final[LiteralString] = """
SELECT day, environment_pk, bucket_name AS bucket, hits::bigint, misses::bigint,
    egress_bytes::bigint, storage_byte_hours::bigint, charged_ucr::bigint
FROM billing_consumerday
WHERE organization_id = %(organization)s AND day BETWEEN %(since)s AND %(until)s
    AND (%(environment)s::bigint IS NULL OR environment_pk = %(environment)s)
ORDER BY 1, 2, 3
"""
HOURLY: Final[LiteralString] = """
SELECT date_trunc('hour', used_at, 'UTC') AS hour,
    sum(quantity) FILTER (WHERE kind = 'hit') AS hits,
    sum(quantity) FILTER (WHERE kind = 'miss') AS misses,
    sum(quantity) FILTER (WHERE kind = 'egress') AS egress_bytes
FROM billing_usageline
WHERE organization_id = %(organization)s AND environment_pk = %(environment)s
    AND used_at >= %(since)s AND kind IN ('hit', 'miss', 'egress')
GROUP BY 1 ORDER BY 1
"""
USED_SQL: Final[LiteralString] = """
SELECT day, environment_pk, statements, milliseconds, egress_bytes, storage_byte_hours, charged_ucr
FROM billing_sqlday WHERE organization_id = %(organization)s AND day BETWEEN %(since)s AND %(until)s
ORDER BY 1, 2
"""
EARNED: Final[LiteralString] = """
SELECT day, node_id, hits, egress_bytes, share_ucr AS earned_ucr FROM billing_operatorday
WHERE operator_id = %(organization)s AND day BETWEEN %(since)s AND %(until)s ORDER BY 1, 2
"""
# The lines of an hour have the same time, so a page begins after a line's time and number: every
# page costs the same.
STATEMENT: Final[LiteralString] = """
SELECT l.id, l.line_id::text || '/' || l.kind AS usage_id, l.used_at, l.node_id, l.kind,
    l.quantity AS units, c.rate_ucr, c.charge_ucr, s.paid AS paid_ucr, c.share_ppm,
    s.share AS amount_ucr
FROM billing_usageline l JOIN billing_charge c ON c.line_id = l.id
JOIN billing_linestate s ON s.line_id = l.id
WHERE l.operator_id = %(organization)s AND l.used_at < %(until)s
    AND (l.used_at, l.id) > (coalesce((SELECT used_at FROM billing_usageline
        WHERE id = %(after)s AND operator_id = %(organization)s AND used_at >= %(since)s),
        %(since)s), %(after)s)
    AND c.share_ppm > 0
ORDER BY l.used_at, l.id LIMIT %(limit)s
"""
TOTAL: Final[LiteralString] = """
SELECT coalesce(sum(lines), 0), coalesce(sum(paid_ucr), 0), coalesce(sum(share_ucr), 0)
FROM billing_operatorday
WHERE operator_id = %(organization)s AND day BETWEEN %(since)s AND %(until)s
"""
SPENT: Final[LiteralString] = """
SELECT coalesce(sum(charged_ucr), 0)
FROM (SELECT organization_id, day, charged_ucr FROM billing_consumerday
    UNION ALL SELECT organization_id, day, charged_ucr FROM billing_sqlday) days
WHERE organization_id = %(organization)s AND day BETWEEN %(since)s AND %(until)s
"""
# One page of a statement; a CSV is read in such pages as well.
PAGE_LINES: Final = 1000

Row = dict[str, Any]


def used(
    organization_id: int, since: date, until: date, *, environment_pk: int | None = None
) -> list[Row]:
    """Return usage and charges by day, environment and bucket. until: the last day, inclusive."""
    values = _days(organization_id, since, until) | {"environment": environment_pk}
    return list(_rows(USED, values))


def hourly(organization_id: int, environment_pk: int, since: datetime) -> list[Row]:
    """Return an environment's traffic by hour, the hours with any."""
    values = {"organization": organization_id, "environment": environment_pk, "since": since}
    return list(_rows(HOURLY, values))


def used_sql(organization_id: int, since: date, until: date) -> list[Row]:
    """Return usage of SQL and charges by day and environment. until: the last day, inclusive."""
    return list(_rows(USED_SQL, _days(organization_id, since, until)))


def earned(organization_id: int, since: date, until: date) -> list[Row]:
    """Return traffic and earnings of an operator's nodes by day. until: the last day, inclusive."""
    return list(_rows(EARNED, _days(organization_id, since, until)))


def spent(organization_id: int, month: date) -> int:
    """Return what an organization's usage of a month cost by now, in µcr."""
    with connection.cursor() as cursor:
        cursor.execute(SPENT, _month(organization_id, month))
        return int(cursor.fetchone()[0])


def statement_page(organization_id: int, month: date, *, after: int = 0) -> list[Row]:
    """Return the next lines of an operator's month. after: the ``id`` of the line before."""
    days = _month(organization_id, month)
    values = days | {
        "since": _midnight(days["since"]),
        "until": _midnight(days["until"] + timedelta(days=1)),
        "after": after,
        "limit": PAGE_LINES,
    }
    return list(_rows(STATEMENT, values))


def statement_lines(organization_id: int, month: date) -> Iterator[Row]:
    """Yield every line of an operator's month, page by page."""
    after = 0
    while page := statement_page(organization_id, month, after=after):
        yield from page
        after = page[-1]["id"]


def statement_totals(organization_id: int, month: date) -> Row:
    """Return how many lines a month's statement has, and their sums."""
    with connection.cursor() as cursor:
        cursor.execute(TOTAL, _month(organization_id, month))
        lines, paid_ucr, amount_ucr = cursor.fetchone()
    return {"lines": int(lines), "paid_ucr": int(paid_ucr), "amount_ucr": int(amount_ucr)}


def _days(organization_id: int, since: date, until: date) -> dict[str, Any]:
    return {"organization": organization_id, "since": since, "until": until}


def _month(organization_id: int, month: date) -> dict[str, Any]:
    first = month.replace(day=1)
    following = (first + timedelta(days=31)).replace(day=1)
    return _days(organization_id, first, following - timedelta(days=1))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _rows(statement: LiteralString, values: Mapping[str, Any]) -> Iterator[Row]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        names = [column.name for column in cursor.description or ()]
        for row in cursor.fetchall():
            yield dict(zip(names, row, strict=True))
