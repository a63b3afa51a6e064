"""Charges and operators' shares: each usage line is settled once, at the rate of its time.

Credits are used in the order of the lines: granted ones first, then paid ones; the rest is a debt.
The arithmetic is PostgreSQL's, on NUMERIC: byte-hours times a rate pass 64 bits near a
petabyte-month. ``billing/verify_statement.py`` does the same from a statement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from django.conf import settings
from django.db import connection, transaction

from billing import consumer_credits, ledger
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.usage import Progress, UsageLine
from billing.money import HOURS_PER_MONTH, PPM, UCR_PER_CREDIT

BATCH_LINES: Final = 20_000
OF_CONSUMER: Final = (AccountKind.GRANTED, AccountKind.PAID, AccountKind.DEBT)

# The bounds limit every plan to the lines of one batch, however large the table is.
SPLIT_INTO_SHARES: Final[LiteralString] = """
WITH rate AS (
    SELECT kind, rate_ucr, begins_at, coalesce(lead(begins_at)
        OVER (PARTITION BY kind ORDER BY begins_at), 'infinity') AS ends_at
    FROM billing_rate),
priced AS (
    SELECT l.id, l.organization_id, l.operator_id, r.rate_ucr,
        CASE WHEN l.kind IN ('storage', 'sql_storage') THEN stored.charge
            ELSE l.quantity * r.rate_ucr END::bigint AS charge,
        CASE WHEN l.kind IN ('hit', 'egress') AND l.is_creditable
            AND l.operator_id <> l.organization_id THEN %(share_ppm)s ELSE 0 END AS share_ppm
    FROM billing_usageline l
    JOIN rate r ON r.kind = l.kind AND l.used_at >= r.begins_at AND l.used_at < r.ends_at
    CROSS JOIN LATERAL (SELECT l.quantity * r.rate_ucr AS n, %(hours)s AS d) product
    -- Rounded half to even: div and mod are exact where a division of NUMERIC is not.
    CROSS JOIN LATERAL (SELECT div(n, d) + CASE WHEN 2 * mod(n, d) > d
        OR (2 * mod(n, d) = d AND mod(div(n, d), 2) = 1) THEN 1 ELSE 0 END AS charge) stored
    WHERE l.id > %(after)s AND l.id <= %(upto)s),
running AS (
    SELECT p.*, sum(charge) OVER (PARTITION BY p.organization_id ORDER BY p.id) AS upto,
        coalesce(granted.balance_ucr, %(welcome)s) AS granted,
        coalesce(granted.balance_ucr, %(welcome)s)::numeric + coalesce(paid.balance_ucr, 0)
            AS covered
    FROM priced p
    LEFT JOIN billing_account granted
        ON granted.organization_id = p.organization_id AND granted.kind = 'granted'
    LEFT JOIN billing_account paid
        ON paid.organization_id = p.organization_id AND paid.kind = 'paid'),
parts AS (
    SELECT id, organization_id, operator_id, rate_ucr, charge, share_ppm,
        (least(upto, granted) - least(upto - charge, granted))::bigint AS granted_part,
        (least(upto, covered) - least(upto - charge, covered))::bigint AS covered_part
    FROM running),
divided AS (
    SELECT *, covered_part - granted_part AS paid_part, charge - covered_part AS unpaid_part,
        CASE WHEN share_ppm = 0 THEN 0 ELSE
            div((covered_part - granted_part)::numeric * share_ppm, %(ppm)s)::bigint END AS share
    FROM parts)
"""
# Returns for each consumer what its lines used, and for each operator what they earned it.
CHARGE: Final[LiteralString] = (
    SPLIT_INTO_SHARES  # noqa: S608 - both are literals
    + """,
charged AS (
    INSERT INTO billing_charge (line_id, organization_id, journal_id, rate_ucr, charge_ucr,
        granted_ucr, paid_ucr, unpaid_ucr, share_ppm, share_ucr)
    SELECT id, organization_id, %(journal)s, rate_ucr, charge, granted_part, paid_part,
        unpaid_part, share_ppm, share
    FROM divided)
SELECT true AS is_consumer, organization_id, count(*), sum(granted_part)::bigint,
    sum(paid_part)::bigint, sum(unpaid_part)::bigint
FROM divided GROUP BY organization_id
UNION ALL
SELECT false, operator_id, 0, sum(share)::bigint, 0, 0
FROM divided WHERE share > 0 GROUP BY operator_id
"""
)
PREVIEW: Final[LiteralString] = (
    SPLIT_INTO_SHARES
    + """
SELECT count(*), coalesce(sum(charge), 0), coalesce(sum(share), 0) FROM divided
"""
)
CONSUMERS: Final[LiteralString] = """
SELECT DISTINCT organization_id FROM billing_usageline WHERE id > %s AND id <= %s
"""


@dataclass(frozen=True, slots=True)
class SettlementResult:
    """The result of one run: lines charged, and the sums of their charges and shares in µcr."""

    lines: int = 0
    charged_ucr: int = 0
    shares_ucr: int = 0

    def __add__(self, other: "SettlementResult") -> "SettlementResult":
        return SettlementResult(
            self.lines + other.lines,
            self.charged_ucr + other.charged_ucr,
            self.shares_ucr + other.shares_ucr,
        )


def settle() -> SettlementResult:
    """Charge every line that was imported and not charged yet; a second run changes nothing.

    Each batch is a separate transaction: after a crash the next run continues.
    """
    done = SettlementResult()
    while (batch := settle_batch()).lines:
        done += batch
    return done


def preview() -> SettlementResult:
    """Return what ``settle`` would do now; nothing is locked or kept."""
    row = Progress.objects.filter(pk="settle").first()
    upto = UsageLine.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    with connection.cursor() as cursor:
        cursor.execute(PREVIEW, _values({"after": row.position if row else 0, "upto": upto}))
        return SettlementResult(*map(int, cursor.fetchone()))


def settle_batch(limit: int = BATCH_LINES) -> SettlementResult:
    """Charge the next lines, at most ``limit``, as one journal."""
    with transaction.atomic():
        progress = Progress.lock("settle")
        ids = UsageLine.objects.filter(pk__gt=progress.position).order_by("pk")
        upto = ids.values_list("pk", flat=True)[limit - 1 : limit].first()
        upto = upto or ids.order_by("-pk").values_list("pk", flat=True).first()
        if upto is None:
            return SettlementResult()
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


def _values(span: Mapping[str, int]) -> dict[str, Any]:
    return {
        **span,
        "share_ppm": settings.BILLING.share_ppm,
        "hours": HOURS_PER_MONTH,
        "ppm": PPM,
        "welcome": settings.BILLING.welcome_credits * UCR_PER_CREDIT,
    }


def _charge(journal: Journal, span: Mapping[str, int]) -> SettlementResult:
    with connection.cursor() as cursor:
        cursor.execute(CHARGE, _values(span) | {"journal": journal.pk})
        sums = cursor.fetchall()
    settled, postings = SettlementResult(), []
    for is_consumer, owner, lines, *parts in sums:
        if is_consumer:
            settled += SettlementResult(lines, charged_ucr=sum(parts))
            sides = zip(OF_CONSUMER, parts, strict=True)
            postings += [Posting(kind, owner, -part) for kind, part in sides]
        else:
            settled += SettlementResult(shares_ucr=parts[0])
            postings.append(Posting(AccountKind.HELD, owner, parts[0]))
    fees_ucr = settled.charged_ucr - settled.shares_ucr
    ledger.add_entries(journal, [Posting(AccountKind.FEES, None, fees_ucr), *postings])
    return settled
