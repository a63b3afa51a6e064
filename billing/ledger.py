"""Posting to the ledger, and checking it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.db import IntegrityError, connection, transaction
from django.db.models import Q

from billing.errors import JournalRefused
from billing.models.ledger import Account, AccountKind, Entry, Journal

UNBALANCED: Final = """
    SELECT j.key, sum(e.amount_ucr) AS total
    FROM billing_journal j JOIN billing_entry e ON e.journal_id = j.id
    GROUP BY j.id, j.key, j.posted_at HAVING sum(e.amount_ucr) <> 0
    ORDER BY j.posted_at, j.id LIMIT 1
"""
WRONG_BALANCE: Final = """
    SELECT a.kind, a.organization_id, a.balance_ucr, coalesce(sum(e.amount_ucr), 0) AS total
    FROM billing_account a LEFT JOIN billing_entry e ON e.account_id = a.id
    GROUP BY a.id HAVING a.balance_ucr <> coalesce(sum(e.amount_ucr), 0)
    ORDER BY a.id LIMIT 1
"""
# What the lines say, journal by journal, against what its entries moved to the fees.
WRONG_FEES: Final = """
    WITH parts AS (
        SELECT journal_id, sum(charge_ucr - share_ucr) AS fees FROM billing_charge GROUP BY 1
        UNION ALL
        SELECT journal_id, sum(granted_ucr + paid_ucr + unpaid_ucr - share_ucr)
        FROM billing_adjustment GROUP BY 1),
    claimed AS (SELECT journal_id, sum(fees) AS fees FROM parts GROUP BY 1),
    posted AS (SELECT e.journal_id, sum(e.amount_ucr) AS fees FROM billing_entry e
        JOIN billing_account a ON a.id = e.account_id AND a.kind = 'fees' GROUP BY 1)
    SELECT j.key, coalesce(p.fees, 0) AS posted, c.fees AS claimed
    FROM claimed c JOIN billing_journal j ON j.id = c.journal_id
    LEFT JOIN posted p USING (journal_id)
    WHERE coalesce(p.fees, 0) <> c.fees ORDER BY j.posted_at, j.id LIMIT 1
"""

UNCHARGED: Final = """
    SELECT l.line_id::text || '/' || l.kind
    FROM billing_usageline l JOIN billing_progress p ON p.name = 'settle' AND l.id <= p.position
    WHERE NOT EXISTS (SELECT FROM billing_charge c WHERE c.line_id = l.id)
    ORDER BY l.id LIMIT 1
"""
WRONG_DEBT: Final = """
    WITH parts AS (
        SELECT line_id, unpaid_ucr FROM billing_charge WHERE unpaid_ucr > 0
        UNION ALL SELECT charge_id, unpaid_ucr FROM billing_adjustment WHERE unpaid_ucr <> 0),
    claimed AS (SELECT l.organization_id, sum(parts.unpaid_ucr) AS unpaid
        FROM parts JOIN billing_usageline l ON l.id = parts.line_id GROUP BY 1)
    SELECT a.organization_id, -a.balance_ucr, coalesce(c.unpaid, 0)
    FROM billing_account a LEFT JOIN claimed c USING (organization_id)
    WHERE a.kind = 'debt' AND -a.balance_ucr <> coalesce(c.unpaid, 0) ORDER BY a.id LIMIT 1
"""
WRONG_DAY: Final = """
    WITH charged AS (
        SELECT line_id, charge_ucr AS amount, share_ucr AS share FROM billing_charge
        UNION ALL SELECT charge_id, granted_ucr + paid_ucr + unpaid_ucr, share_ucr
        FROM billing_adjustment),
    claimed AS (SELECT l.organization_id AS owner, sum(c.amount) AS amount
        FROM charged c JOIN billing_usageline l ON l.id = c.line_id GROUP BY 1
        UNION ALL SELECT l.operator_id, sum(c.share)
        FROM charged c JOIN billing_usageline l ON l.id = c.line_id AND c.share <> 0 GROUP BY 1),
    kept AS (SELECT organization_id AS owner, sum(charged_ucr) AS amount
        FROM billing_consumerday GROUP BY 1
        UNION ALL SELECT organization_id, sum(charged_ucr) FROM billing_sqlday GROUP BY 1
        UNION ALL SELECT operator_id, sum(share_ucr) FROM billing_operatorday GROUP BY 1)
    SELECT owner, sum(kept), sum(claimed)
    FROM (SELECT owner, amount AS kept, 0 AS claimed FROM kept
        UNION ALL SELECT owner, 0, amount FROM claimed) both_sides
    GROUP BY owner HAVING sum(kept) <> sum(claimed) ORDER BY owner LIMIT 1
"""

OVERDRAWN: Final = frozenset(("account_not_overdrawn", "account_debt_not_positive"))
# Held by a transaction from its first use of the ledger on. Almost every journal changes an account
# of the platform, so that journals wait for each other anyway; with row locks alone, transactions
# that need accounts in several steps would lock them in different orders.
LEDGER_LOCK_KEY: Final = 0x5A0C_0002


class Posting(NamedTuple):
    """One entry to be. organization_id: None for the platform's accounts."""

    kind: AccountKind
    organization_id: int | None
    amount_ucr: int


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a check: how many rows it read, and the first fault ('' without one)."""

    journals: int
    entries: int
    fault: str


def post(
    kind: Journal.Kind,
    key: str,
    postings: Sequence[Posting],
    *,
    reason: str = "",
    actor: str = "task",
) -> Journal | None:
    """Post a journal once; None if a journal with this key is there already.

    postings: they add up to zero; those of zero are left out. The caller's transaction decides.
    Raises JournalRefused if an account would be overdrawn.
    """
    with transaction.atomic():
        journal = open_journal(kind, key, reason=reason, actor=actor)
        if journal is not None:
            add_entries(journal, postings)
        return journal


def open_journal(
    kind: Journal.Kind, key: str, *, reason: str = "", actor: str = "task"
) -> Journal | None:
    """Return a new journal without entries, which follow in the same transaction.

    None if a journal with this key is there already. The commit fails if its entries do not add up.
    """
    _lock_ledger()
    journal, is_new = Journal.objects.get_or_create(
        key=key, defaults={"kind": kind, "reason": reason, "actor": actor}
    )
    return journal if is_new else None


def add_entries(journal: Journal, postings: Iterable[Posting]) -> None:
    """Add entries to a journal of this transaction, one for each account.

    Raises JournalRefused if an account would be overdrawn.
    """
    sums: dict[tuple[AccountKind, int | None], int] = defaultdict(int)
    for posting in postings:
        sums[posting.kind, posting.organization_id] += posting.amount_ucr
    accounts = locked([name for name, amount in sums.items() if amount])
    try:
        with transaction.atomic():
            Entry.objects.bulk_create(
                Entry(journal=journal, account_id=accounts[name], amount_ucr=amount)
                for name, amount in sums.items()
                if amount
            )
    except IntegrityError as exc:
        if OVERDRAWN.intersection(str(exc).split('"')):
            raise JournalRefused from exc
        raise


def locked(
    names: Sequence[tuple[AccountKind, int | None]],
) -> dict[tuple[AccountKind, int | None], int]:
    """Return the ids of accounts, made where needed; no other transaction changes them now."""
    _lock_ledger()
    Account.objects.bulk_create(
        (Account(kind=kind, organization_id=owner) for kind, owner in names), ignore_conflicts=True
    )
    wanted = set(names)
    rows = (
        Account.objects.select_for_update()
        .filter(kind__in={kind for kind, _ in names})
        .filter(_owned_by({owner for _, owner in names}))
        .order_by("id")
    )
    found = {(AccountKind(row.kind), row.organization_id): row.pk for row in rows}
    return {name: found[name] for name in wanted}


def balance(kind: AccountKind, organization_id: int | None) -> int:
    """Return an account's balance in µcr; 0 if the account does not exist yet."""
    row = Account.objects.filter(kind=kind, organization_id=organization_id).first()
    return row.balance_ucr if row is not None else 0


def balances(organization_id: int) -> dict[AccountKind, int]:
    """Return an organization's balances in µcr, those that it has."""
    rows = Account.objects.filter(organization_id=organization_id)
    return {AccountKind(row.kind): row.balance_ucr for row in rows}


def verify() -> Verification:
    """Check the whole ledger, and name the first fault.

    Every journal balances, every balance is the sum of its entries, the fees of every journal and
    the debt of every consumer are those of the usage lines, and every settled line has a charge.
    """
    # Each statement has its own snapshot, in which the ledger has to add up.
    with connection.cursor() as cursor:
        fault = ""
        for statement, sentence in (
            (UNBALANCED, "Journal {0} adds up to {1} µcr instead of 0."),
            (WRONG_BALANCE, "The {0} account of {1} shows {2} µcr; its entries add up to {3}."),
            (WRONG_FEES, "Journal {0} moved {1} µcr to the fees; its usage lines say {2}."),
            (UNCHARGED, "Usage line {0} was passed over by a settlement."),
            (WRONG_DEBT, "Organization {0} owes {1} µcr; its usage lines say {2}."),
            (WRONG_DAY, "The days of organization {0} add up to {1} µcr; its lines say {2}."),
        ):
            cursor.execute(statement)
            if row := cursor.fetchone():
                fault = sentence.format(*row)
                break
    return Verification(Journal.objects.count(), Entry.objects.count(), fault)


def _lock_ledger() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LEDGER_LOCK_KEY])


def _owned_by(owners: set[int | None]) -> Q:
    known = Q(organization_id__in=owners - {None})
    return known | Q(organization_id=None) if None in owners else known
