"""Debts: fees that no credits covered, paid later, or reopened by a chargeback.

Shares depend on the paid sum only: the operator gets its share of a line's paid sum, rounded down,
however many payments that took.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, LiteralString

from django.db import connection, transaction
from django.utils import timezone

from billing import ledger
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.usage import Adjustment
from billing.money import PPM
from billing.service import states

BATCH_LINES: Final = 20_000
LARGEST_ID: Final = 2**63 - 1

# ``billing_linestate`` is a line's charge with all its adjustments. Candidates come from indexes by
# organization, in order, and no more than a batch: other lines are not read.
COVER: Final[LiteralString] = """
WITH never_paid AS MATERIALIZED (
    SELECT c.line_id FROM billing_charge c
    WHERE c.organization_id = %(organization)s AND c.unpaid_ucr > 0 AND c.line_id > %(after)s
        AND c.unpaid_ucr + coalesce((SELECT sum(unpaid_ucr) FROM billing_adjustment
            WHERE charge_id = c.line_id), 0) > 0
    ORDER BY c.line_id LIMIT %(limit)s),
reopened AS MATERIALIZED (
    SELECT DISTINCT a.charge_id FROM billing_adjustment a
    JOIN billing_charge c ON c.line_id = a.charge_id
    WHERE a.organization_id = %(organization)s AND a.unpaid_ucr > 0 AND a.charge_id > %(after)s
        AND c.unpaid_ucr + (SELECT sum(unpaid_ucr) FROM billing_adjustment
            WHERE charge_id = a.charge_id) > 0
    ORDER BY 1 LIMIT %(limit)s),
open AS MATERIALIZED (
    SELECT s.line_id, s.paid, s.unpaid, s.share, s.share_ppm
    FROM (TABLE never_paid UNION TABLE reopened) found
    JOIN billing_linestate s USING (line_id) ORDER BY line_id LIMIT %(limit)s),
running AS (SELECT *, sum(unpaid) OVER (ORDER BY line_id) AS upto FROM open),
divided AS (SELECT *,
    least(upto, %(granted)s) - least(upto - unpaid, %(granted)s) AS from_granted,
    least(upto, %(available)s) - least(upto - unpaid, %(available)s) AS paid_now FROM running)
INSERT INTO billing_adjustment
    (charge_id, organization_id, journal_id, kind, granted_ucr, paid_ucr, unpaid_ucr, share_ucr)
SELECT line_id, %(organization)s, %(journal)s, %(kind)s,
    from_granted, paid_now - from_granted, -paid_now,
    div((paid + paid_now - from_granted) * share_ppm, %(ppm)s) - share
FROM divided WHERE paid_now > 0
"""
REOPEN: Final[LiteralString] = """
WITH paid_at_once AS MATERIALIZED (
    SELECT c.line_id FROM billing_charge c
    WHERE c.organization_id = %(organization)s AND c.paid_ucr > 0 AND c.line_id < %(before)s
        AND c.paid_ucr + coalesce((SELECT sum(paid_ucr) FROM billing_adjustment
            WHERE charge_id = c.line_id), 0) > 0
    ORDER BY c.line_id DESC LIMIT %(limit)s),
paid_late AS MATERIALIZED (
    SELECT DISTINCT a.charge_id FROM billing_adjustment a
    JOIN billing_charge c ON c.line_id = a.charge_id
    WHERE a.organization_id = %(organization)s AND a.paid_ucr > 0 AND a.charge_id < %(before)s
        AND c.paid_ucr + (SELECT sum(paid_ucr) FROM billing_adjustment
            WHERE charge_id = a.charge_id) > 0
    ORDER BY 1 DESC LIMIT %(limit)s),
newest AS MATERIALIZED (
    SELECT s.line_id, s.paid, s.share, s.share_ppm
    FROM (TABLE paid_at_once UNION TABLE paid_late) found
    JOIN billing_linestate s USING (line_id) ORDER BY line_id DESC LIMIT %(limit)s),
running AS (SELECT *, sum(paid) OVER (ORDER BY line_id DESC) AS upto FROM newest),
divided AS (SELECT *, least(upto, %(amount)s) - least(upto - paid, %(amount)s) AS taken
    FROM running),
added AS (INSERT INTO billing_adjustment
    (charge_id, organization_id, journal_id, kind, granted_ucr, paid_ucr, unpaid_ucr, share_ucr)
    SELECT line_id, %(organization)s, %(journal)s, %(kind)s, 0, -taken, taken,
        div((paid - taken) * share_ppm, %(ppm)s) - share
    FROM divided WHERE taken > 0 RETURNING charge_id, unpaid_ucr)
SELECT sum(unpaid_ucr)::bigint, min(charge_id) FROM added
"""
REFUND: Final[LiteralString] = """
INSERT INTO billing_adjustment
    (charge_id, organization_id, journal_id, kind, granted_ucr, paid_ucr, unpaid_ucr, share_ucr)
SELECT line_id, organization_id, %(journal)s, %(kind)s, -granted, -paid, -unpaid, -share
FROM billing_linestate WHERE organization_id = %(organization)s AND line_id = ANY(%(lines)s)
    AND granted + paid + unpaid > 0
"""
ADJUSTED: Final[LiteralString] = """
SELECT coalesce(sum(granted_ucr), 0)::bigint, coalesce(sum(paid_ucr), 0)::bigint,
    coalesce(sum(unpaid_ucr), 0)::bigint, max(charge_id)
FROM billing_adjustment WHERE journal_id = %s
"""
SHARES: Final[LiteralString] = """
SELECT l.operator_id, sum(a.share_ucr)::bigint,
    coalesce(sum(a.share_ucr) FILTER (WHERE EXISTS (SELECT FROM billing_quarantine q
        WHERE q.organization_id = l.operator_id AND q.node_id = l.node_id AND q.forfeited_ucr > 0
            AND q.forfeited_at >= l.used_at AND q.decision <> 'granted')), 0)::bigint
FROM billing_adjustment a JOIN billing_usageline l ON l.id = a.charge_id
WHERE a.journal_id = %s AND a.share_ucr <> 0 GROUP BY 1
"""


def cover(organization_id: int) -> None:
    """Pay an organization's debts, oldest first, while its credits last."""
    with transaction.atomic():
        kinds = (AccountKind.GRANTED, AccountKind.PAID, AccountKind.DEBT)
        ledger.locked([(kind, organization_id) for kind in kinds])
        after: int | None = 0
        while after is not None and ledger.balance(AccountKind.DEBT, organization_id) < 0:
            granted, paid = (ledger.balance(kind, organization_id) for kind in kinds[:2])
            if not granted + paid:
                break
            after = _cover_batch(organization_id, granted, paid, after)
        states.refresh(organization_id, now=timezone.now())


def reopen(journal: Journal, organization_id: int, amount_ucr: int) -> Iterator[Posting]:
    """Make the newest paid lines debts again.

    Returns the entries that reverse their shares, which the caller must post.
    """
    before = LARGEST_ID
    while amount_ucr:
        values = {
            "organization": organization_id,
            "amount": amount_ucr,
            "before": before,
            "limit": BATCH_LINES,
        }
        taken_ucr, before = _adjust(REOPEN, journal, Adjustment.Kind.CHARGEBACK, values)[0]
        if not taken_ucr:
            raise RuntimeError("more was paid than the lines say")
        amount_ucr -= taken_ucr
    return _shares(journal)


def refund(
    organization_id: int, line_ids: list[int], *, key: str, reason: str, actor: str
) -> Journal | None:
    """Refund all that lines of an organization cost; None if this key was used before.

    line_ids: primary keys of usage lines. What was refunded before is not refunded again.
    """
    with transaction.atomic():
        kinds = (AccountKind.GRANTED, AccountKind.PAID, AccountKind.DEBT)
        ledger.locked([(kind, organization_id) for kind in kinds])
        journal = ledger.open_journal(Journal.Kind.REFUND, key, reason=reason, actor=actor)
        if journal is None:
            return None
        values = {"organization": organization_id, "lines": line_ids}
        _adjust(REFUND, journal, Adjustment.Kind.REFUND, values)
        _post(journal, organization_id)
        # What was given back may pay for other lines.
        cover(organization_id)
        return journal


def _cover_batch(organization_id: int, granted_ucr: int, paid_ucr: int, after: int) -> int | None:
    """Pay some debts of the lines after an id; return the last paid line, or None."""
    number = Journal.objects.filter(key__startswith=f"late:{organization_id}:").count()
    journal = ledger.open_journal(Journal.Kind.LATE_PAYMENT, f"late:{organization_id}:{number}")
    if journal is None:
        raise RuntimeError("the accounts were not locked")
    _adjust(
        COVER,
        journal,
        Adjustment.Kind.LATE_PAYMENT,
        {
            "organization": organization_id,
            "granted": granted_ucr,
            "available": granted_ucr + paid_ucr,
            "after": after,
            "limit": BATCH_LINES,
        },
    )
    return _post(journal, organization_id)


def _adjust(
    statement: LiteralString, journal: Journal, kind: Adjustment.Kind, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Make adjustments; return the rows that the statement returns."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {**values, "journal": journal.pk, "kind": kind, "ppm": PPM})
        return cursor.fetchall() if cursor.description else []


def _post(journal: Journal, organization_id: int) -> int | None:
    """Post the sum of a journal's adjustments; return the last line, or None."""
    with connection.cursor() as cursor:
        cursor.execute(ADJUSTED, [journal.pk])
        granted, paid, unpaid, last = cursor.fetchone()
    postings = [
        Posting(AccountKind.GRANTED, organization_id, -granted),
        Posting(AccountKind.PAID, organization_id, -paid),
        Posting(AccountKind.DEBT, organization_id, -unpaid),
        # Late payments add nothing here: a debt was the platform's fee already.
        Posting(AccountKind.FEES, None, granted + paid + unpaid),
        *_shares(journal),
    ]
    ledger.add_entries(journal, postings)
    found: int | None = last
    return found


def _shares(journal: Journal) -> Iterator[Posting]:
    """Yield the entries for the operators of a journal's lines, and the platform's counter-entries.

    A share taken back for a node whose earnings were forfeited comes from the forfeited account.
    The rest comes from held earnings, then from payable ones, which may fall below zero until there
    are later earnings.
    """
    with connection.cursor() as cursor:
        cursor.execute(SHARES, [journal.pk])
        changes = cursor.fetchall()
    ledger.locked(
        [
            (kind, operator)
            for operator, _, _ in changes
            for kind in (AccountKind.HELD, AccountKind.FORFEITED)
        ]
    )
    for operator, share, forfeited in changes:
        yield Posting(AccountKind.FEES, None, -share)
        if share > 0:
            yield Posting(AccountKind.HELD, operator, share)
            continue
        left = -share
        for kind, most in ((AccountKind.FORFEITED, max(-forfeited, 0)), (AccountKind.HELD, left)):
            taken = min(left, most, ledger.balance(kind, operator))
            left -= taken
            yield Posting(kind, operator, -taken)
        yield Posting(AccountKind.PAYABLE, operator, -left)
