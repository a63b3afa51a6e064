"""What an organization used, paid and earned: sums by day, and statements line by line."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, LiteralString

from django.db import connection

# Days are UTC days, as rates begin at UTC hours.
USED: Final[LiteralString] = """
SELECT (l.used_at AT TIME ZONE 'UTC')::date AS day, l.environment_pk, l.bucket_name AS bucket,
    sum(l.quantity) FILTER (WHERE l.kind = 'hit') AS hits,
    sum(l.quantity) FILTER (WHERE l.kind = 'miss') AS misses,
    sum(l.quantity) FILTER (WHERE l.kind = 'egress') AS egress_bytes,
    sum(l.quantity) FILTER (WHERE l.kind = 'storage') AS storage_byte_hours,
    sum(s.granted + s.paid + s.unpaid) AS charged_ucr
FROM billing_usageline l LEFT JOIN billing_linestate s ON s.line_id = l.id
WHERE l.organization_id = %(organization)s AND l.used_at >= %(since)s AND l.used_at < %(until)s
    AND (%(environment)s::bigint IS NULL OR l.environment_pk = %(environment)s)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
EARNED: Final[LiteralString] = """
SELECT (l.used_at AT TIME ZONE 'UTC')::date AS day, l.node_id,
    sum(l.quantity) FILTER (WHERE l.kind = 'hit') AS hits,
    sum(l.quantity) FILTER (WHERE l.kind = 'egress') AS egress_bytes,
    sum(s.share) AS earned_ucr
FROM billing_usageline l JOIN billing_linestate s ON s.line_id = l.id
WHERE l.operator_id = %(organization)s AND l.used_at >= %(since)s AND l.used_at < %(until)s
    AND l.kind IN ('hit', 'egress')
GROUP BY 1, 2 ORDER BY 1, 2
"""
STATEMENT: Final[LiteralString] = """
SELECT l.id, l.line_id::text || '/' || l.kind AS usage_id, l.used_at, l.node_id, l.kind,
    l.quantity AS units, c.rate_ucr, c.charge_ucr, s.paid AS paid_ucr, c.share_ppm,
    s.share AS amount_ucr
FROM billing_usageline l JOIN billing_charge c ON c.line_id = l.id
JOIN billing_linestate s ON s.line_id = l.id
WHERE l.operator_id = %(organization)s AND l.used_at >= %(since)s AND l.used_at < %(until)s
    AND c.share_ppm > 0 AND l.id > %(after)s
ORDER BY l.id LIMIT %(limit)s
"""
TOTAL: Final[LiteralString] = """
WITH parts AS (
    SELECT count(*) AS lines, sum(c.paid_ucr) AS paid, sum(c.share_ucr) AS share
    FROM billing_usageline l JOIN billing_charge c ON c.line_id = l.id
    WHERE l.operator_id = %(organization)s AND l.used_at >= %(since)s AND l.used_at < %(until)s
        AND c.share_ppm > 0
    UNION ALL
    SELECT 0, sum(a.paid_ucr), sum(a.share_ucr)
    FROM billing_adjustment a JOIN billing_charge c ON c.line_id = a.charge_id
    JOIN billing_usageline l ON l.id = a.charge_id
    WHERE l.operator_id = %(organization)s AND l.used_at >= %(since)s AND l.used_at < %(until)s
        AND c.share_ppm > 0)
SELECT sum(lines), coalesce(sum(paid), 0), coalesce(sum(share), 0) FROM parts
"""
# One page of a statement; a CSV is read in such pages as well.
PAGE_LINES: Final = 1000

Row = dict[str, Any]


def used(
    organization_id: int, since: date, until: date, *, environment_pk: int | None = None
) -> list[Row]:
    """Return usage and charges by day, environment and bucket. until: the last day, included."""
    values = _days(organization_id, since, until) | {"environment": environment_pk}
    return list(_rows(USED, values))


def earned(organization_id: int, since: date, until: date) -> list[Row]:
    """Return traffic and earnings of an operator's nodes by day. until: the last day, included."""
    return list(_rows(EARNED, _days(organization_id, since, until)))


def statement_page(organization_id: int, month: date, *, after: int = 0) -> list[Row]:
    """Return the next lines of an operator's month. after: the ``id`` of the line before."""
    values = _month(organization_id, month) | {"after": after, "limit": PAGE_LINES}
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
    return {
        "organization": organization_id,
        "since": _midnight(since),
        "until": _midnight(until + timedelta(days=1)),
    }


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
