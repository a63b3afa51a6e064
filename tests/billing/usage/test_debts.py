"""Paying a debt and reopening one read the lines they change, however many others there are."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from billing import consumer_credits, debts
from billing.models.usage import Charge, UsageLine
from billing.usage import charges_and_shares
from tests.billing.support import ALICE, CHARLIE, consumer, line, store

pytestmark = pytest.mark.slow

STAFF = {"reason": "test", "actor": "staff"}
OTHERS = 1000
READ = """
    SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables
    WHERE relname IN ('billing_usageline', 'billing_charge', 'billing_adjustment')
"""


def pay(organization_id: int, amount_ucr: int, reference: str) -> None:
    consumer_credits.top_up(organization_id, amount_ucr, reference=reference, **STAFF)


def use(organization_id: int, lines: int) -> None:
    store(*(line(organization_id, hits=1) for _ in range(lines)))
    charges_and_shares.settle()


def value(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[0])


def rows_read(work: Callable[[], Any]) -> int:
    """Return how many rows of lines, charges and adjustments some work reads."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE billing_usageline, billing_charge, billing_adjustment")
    before = value(READ)
    work()
    return value(READ) - before


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debts, "BATCH_LINES", 4)


@pytest.mark.usefixtures("small_batches")
def test_a_chargeback_reads_the_newest_lines_and_no_others() -> None:
    pay(ALICE, OTHERS * 100, "years of it")
    pay(ALICE, 250, "last")
    use(ALICE, OTHERS)
    use(ALICE, 2)
    pay(CHARLIE, OTHERS * 100, "another one's")
    use(CHARLIE, OTHERS)
    assert rows_read(lambda: consumer_credits.charge_back("last", **STAFF)) < OTHERS / 10
    # 50 µcr were left.
    assert consumer() == (0, 0, -200)
    assert value("SELECT count(*) FROM billing_adjustment") == 2


@pytest.mark.usefixtures("small_batches")
def test_a_debt_is_paid_without_reading_those_of_others() -> None:
    use(CHARLIE, OTHERS)
    pay(ALICE, OTHERS * 100, "years of it")
    use(ALICE, OTHERS + 2)
    assert consumer() == (0, 0, -200)
    assert rows_read(lambda: pay(ALICE, 200, "the rest")) < OTHERS / 10
    assert consumer() == (0, 0, 0)


def test_a_chargeback_of_many_lines_goes_back_batch_by_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(debts, "BATCH_LINES", 3)
    pay(ALICE, 400, "first")
    use(ALICE, 10)
    pay(ALICE, 650, "second")
    assert consumer() == (0, 50, 0)
    # Lines that were paid immediately, and lines that were paid late: the newest of both.
    consumer_credits.charge_back("second", **STAFF)
    assert consumer() == (0, 0, -600)
    with connection.cursor() as cursor:
        cursor.execute("SELECT unpaid FROM billing_linestate ORDER BY line_id")
        assert [row[0] for row in cursor.fetchall()] == [0] * 4 + [100] * 6


def test_a_charge_of_another_organizations_line_is_refused() -> None:
    pay(ALICE, 100, "payment")
    use(ALICE, 1)
    store(line(hits=1))
    known = Charge.objects.get()

    def add() -> None:
        with transaction.atomic():
            Charge.objects.create(
                line=UsageLine.objects.latest("pk"),
                organization_id=CHARLIE,
                journal=known.journal,
                rate_ucr=100,
                charge_ucr=0,
                granted_ucr=0,
                paid_ucr=0,
                unpaid_ucr=0,
                share_ppm=0,
                share_ucr=0,
            )

    with pytest.raises(IntegrityError, match="no line of its organization"):
        add()
    charges_and_shares.settle()
