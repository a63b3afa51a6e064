"""Settling: each usage line is charged once, at the rate of its time.

Credits are used in the order of the lines: granted ones first, then paid ones; the rest is a debt.
The arithmetic is PostgreSQL's, on NUMERIC: byte-hours times a rate pass 64 bits near a
petabyte-month. ``edgecache/recompute.py`` does the same from a statement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from django.conf import settings
from django.db import connection, transaction

from edgecache.billing import consumer_credits, ledger
from edgecache.billing.ledger import Posting
from edgecache.billing.models import AccountKind, Journal, Progress, UsageLine
from edgecache.billing.money import HOURS_PER_MONTH, PPM
from edgecache.billing.progress import lock_progress

BATCH_LINES: Final = 20_000
OF_CONSUMER: Final = (AccountKind.GRANTED, AccountKind.PAID, AccountKind.DEBT)

CHARGE: Final[LiteralString] = """
WITH priced AS (
    SELECT l.id, l.organization_id, r.rate_ucr,
        -- Rounded half to even: div and mod are exact where a division of NUMERIC is not.
        (div(product.n, product.d) + CASE WHEN 2 * mod(product.n, product.d) > product.d
            OR (2 * mod(product.n, product.d) = product.d
                AND mod(div(product.n, product.d), 2) = 1) THEN 1 ELSE 0 END) AS charge,
        CASE WHEN l.kind IN ('hit', 'egress') AND l.is_creditable
            AND l.operator_id <> l.organization_id THEN %(share_ppm)s ELSE 0 END AS share_ppm
    FROM billing_usageline l
    CROSS JOIN LATERAL (SELECT rate_ucr FROM billing_rate
        WHERE kind = l.kind AND begins_at <= l.used_at ORDER BY begins_at DESC LIMIT 1) r
    CROSS JOIN LATERAL (SELECT l.quantity * r.rate_ucr AS n,
        CASE l.kind WHEN 'storage' THEN %(hours)s ELSE 1 END AS d) product
    WHERE l.id > %(after)s AND l.id <= %(upto)s),
running AS (
    SELECT p.*, sum(charge) OVER (PARTITION BY p.organization_id ORDER BY p.id) AS upto,
        granted.balance_ucr AS granted, granted.balance_ucr + paid.balance_ucr AS covered
    FROM priced p
    JOIN billing_account granted
        ON granted.organization_id = p.organization_id AND granted.kind = 'granted'
    JOIN billing_account paid
        ON paid.organization_id = p.organization_id AND paid.kind = 'paid'),
divided AS (
    SELECT id, rate_ucr, charge, share_ppm,
        least(upto, granted) - least(upto - charge, granted) AS granted_part,
        least(upto, covered) - least(upto - charge, covered) AS covered_part
    FROM running)
INSERT INTO billing_charge (line_id, journal_id, rate_ucr, charge_ucr, granted_ucr, paid_ucr,
    unpaid_ucr, share_ppm, share_ucr)
SELECT id, %(journal)s, rate_ucr, charge, granted_part, covered_part - granted_part,
    charge - covered_part, share_ppm, div((covered_part - granted_part) * share_ppm, %(ppm)s)
FROM divided
"""
CONSUMED: Final[LiteralString] = """
SELECT l.organization_id, sum(c.granted_ucr)::bigint, sum(c.paid_ucr)::bigint,
    sum(c.unpaid_ucr)::bigint
FROM billing_charge c JOIN billing_usageline l ON l.id = c.line_id
WHERE c.line_id > %(after)s AND c.line_id <= %(upto)s GROUP BY 1
"""
EARNED: Final[LiteralString] = """
SELECT l.operator_id, sum(c.share_ucr)::bigint
FROM billing_charge c JOIN billing_usageline l ON l.id = c.line_id
WHERE c.line_id > %(after)s AND c.line_id <= %(upto)s AND c.share_ucr > 0 GROUP BY 1
"""
CONSUMERS: Final[LiteralString] = """
SELECT DISTINCT organization_id FROM billing_usageline WHERE id > %s AND id <= %s
"""


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of one run: lines charged, and the sums of their charges and shares in µcr."""

    lines: int = 0
    charged_ucr: int = 0
    shares_ucr: int = 0

    def __add__(self, other: "Settled") -> "Settled":
        return Settled(
            self.lines + other.lines,
            self.charged_ucr + other.charged_ucr,
            self.shares_ucr + other.shares_ucr,
        )


def settle() -> Settled:
    """Charge every line that was imported and not charged yet; a second run changes nothing.

    Each batch is a transaction of its own: after a crash the next run goes on.
    """
    done = Settled()
    while (batch := settle_batch()).lines:
        done += batch
    return done


def settle_batch(limit: int = BATCH_LINES) -> Settled:
    """Charge the next lines, at most ``limit``, as one journal."""
    with transaction.atomic():
        progress = lock_progress("settle")
        ids = UsageLine.objects.filter(pk__gt=progress.position).order_by("pk")
        upto = ids.values_list("pk", flat=True)[limit - 1 : limit].first()
        upto = upto or ids.order_by("-pk").values_list("pk", flat=True).first()
        if upto is None:
            return Settled()
        span = {"after": progress.position, "upto": upto}
        _prepare_accounts(progress.position, upto)
        journal = ledger.open_journal(Journal.Kind.SETTLEMENT, f"settlement:{upto}")
        if journal is None:
            raise RuntimeError("lines were settled and not counted as such")
        settled = _charge(journal, span)
        Progress.objects.filter(pk="settle").update(position=upto)
        return settled


def _prepare_accounts(after: int, upto: int) -> None:
    """Make and lock the accounts of all consumers in a batch; new ones get their first credits."""
    with connection.cursor() as cursor:
        cursor.execute(CONSUMERS, [after, upto])
        consumers = sorted(row[0] for row in cursor.fetchall())
    welcomed = {f"welcome:{consumer}" for consumer in consumers}
    welcomed -= set(Journal.objects.filter(key__in=welcomed).values_list("key", flat=True))
    for key in sorted(welcomed):
        consumer_credits.welcome(int(key.partition(":")[2]))
    ledger.locked([(kind, consumer) for consumer in consumers for kind in OF_CONSUMER])


def _charge(journal: Journal, span: Mapping[str, int]) -> Settled:
    values: dict[str, Any] = {
        **span,
        "journal": journal.pk,
        "share_ppm": settings.BILLING.share_ppm,
        "hours": HOURS_PER_MONTH,
        "ppm": PPM,
    }
    with connection.cursor() as cursor:
        cursor.execute(CHARGE, values)
        lines = cursor.rowcount
        cursor.execute(CONSUMED, span)
        consumed = cursor.fetchall()
        cursor.execute(EARNED, span)
        earned = cursor.fetchall()
    charged_ucr = sum(sum(parts) for _, *parts in consumed)
    shares_ucr = sum(share for _, share in earned)
    postings = [Posting(AccountKind.FEES, None, charged_ucr - shares_ucr)]
    for consumer, *parts in consumed:
        postings += [
            Posting(kind, consumer, -part) for kind, part in zip(OF_CONSUMER, parts, strict=True)
        ]
    postings += [Posting(AccountKind.HELD, operator, share) for operator, share in earned]
    ledger.add_entries(journal, postings)
    return Settled(lines, charged_ucr, shares_ucr)
