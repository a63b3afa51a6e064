"""Each usage line is charged once, at its rate; operators share what was really paid."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction
from pytest_django import Settings

from billing import consumer_credits, debts, holds, ledger
from billing.errors import JournalRefused, RateRefused
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Entry, Journal
from billing.models.rates import UsageKind
from billing.models.usage import Adjustment, Charge, RejectedLine, UsageLine
from billing.money import UCR_PER_CREDIT
from billing.usage import charges_and_shares, rates, usage_import
from tests.billing.support import (
    ALICE,
    CHARLIE,
    HOUR,
    NOW,
    OLGA,
    consumer,
    line,
    operator,
    page,
    store,
)

STAFF = {"reason": "test", "actor": "staff:sam@example.com"}
GB = 10**9


def pay(amount_ucr: int, organization_id: int = ALICE, reference: str = "payment") -> None:
    consumer_credits.top_up(organization_id, amount_ucr, reference=reference, **STAFF)


def grant(amount_ucr: int, organization_id: int = ALICE) -> None:
    consumer_credits.grant(organization_id, amount_ucr, key="gift", **STAFF)


def test_the_published_rates_hold() -> None:
    pay(100_000 * UCR_PER_CREDIT)
    store(line(hits=1, misses=1, bytes_served=GB, storage_byte_hours=str(GB * 730)))
    charges_and_shares.settle()
    charged = {charge.line.kind: charge.charge_ucr for charge in Charge.objects.all()}
    assert charged == {
        "hit": UCR_PER_CREDIT // 10_000,
        "miss": UCR_PER_CREDIT // 1_000,
        "egress": 9_000 * UCR_PER_CREDIT,
        "storage": 25_000 * UCR_PER_CREDIT,
    }


def test_lines_are_imported_and_charged_once() -> None:
    pay(10_000)
    same = line(hits=10)
    assert store(same, same) == (1, 0)
    assert store(same) == (0, 0)
    assert charges_and_shares.settle() == charges_and_shares.SettlementResult(1, 1000, 700)
    assert charges_and_shares.settle() == charges_and_shares.SettlementResult()
    assert (consumer(), operator()) == ((0, 9000, 0), (700, 0, 0))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"used_at": (NOW + timedelta(hours=1)).isoformat()}, "in_the_future"),
        ({"used_at": (NOW - timedelta(days=41)).isoformat()}, "too_old"),
        ({"hits": -1}, "quantity_out_of_range"),
        ({"bytes_served": 10**18}, "quantity_out_of_range"),
        ({"hits": 0}, "nothing_used"),
        ({"line_id": "../etc"}, "badly formed hexadecimal UUID string"),
    ],
)
def test_a_line_that_cannot_be_is_kept_aside_and_costs_nothing(
    wrong: dict[str, Any], reason: str
) -> None:
    assert store(line(hits=1) | wrong, line(hits=5)) == (1, 1)
    assert [row.reason for row in RejectedLine.objects.all()] == [reason]
    assert charges_and_shares.settle().charged_ucr == 500


def test_a_page_with_a_wrong_sum_is_refused_whole() -> None:
    wrong = page(line(hits=3))
    wrong["sums"]["hits"] = "4"
    with pytest.raises(ValueError, match="sum of hits"):
        usage_import.store(wrong, now=NOW)
    assert not UsageLine.objects.exists()


def test_charges_are_rounded_half_to_even_and_shares_down() -> None:
    pay(1000)
    # 25 µcr × 730 hours: 73 byte-hours are 2.5 µcr, 219 are 7.5.
    store(*(line(storage_byte_hours=str(73 * n)) for n in (1, 3)), line(bytes_served=1))
    charges_and_shares.settle()
    assert [c.charge_ucr for c in Charge.objects.order_by("pk")] == [2, 8, 9]
    # 0.7 × 9 µcr
    assert operator() == (6, 0, 0)


def test_a_petabyte_month_does_not_overflow() -> None:
    hours = 10**15 * 730
    store(line(storage_byte_hours=str(hours)))
    charges_and_shares.settle()
    assert consumer() == (0, 0, -25 * 10**15)


def test_granted_credits_pay_first_and_earn_nothing() -> None:
    grant(150)
    pay(100)
    store(line(hits=1), line(hits=1), line(hits=1))
    charges_and_shares.settle()
    parts = Charge.objects.order_by("pk").values_list("granted_ucr", "paid_ucr", "unpaid_ucr")
    assert list(parts) == [(100, 0, 0), (50, 50, 0), (0, 50, 50)]
    assert [c.share_ucr for c in Charge.objects.order_by("pk")] == [0, 35, 35]
    assert (consumer(), operator()) == ((0, 0, -50), (70, 0, 0))


@pytest.mark.parametrize(
    "own",
    [
        {"organization_id": OLGA},
        {"operator_id": None},
        {"is_creditable": False},
    ],
    ids=["own traffic", "the platform's node", "not creditable"],
)
def test_what_earns_nothing(own: dict[str, Any]) -> None:
    pay(10_000, own.get("organization_id", ALICE))
    store(line(hits=10, bytes_served=10) | own)
    assert charges_and_shares.settle().shares_ucr == 0


def test_misses_and_storage_earn_nothing() -> None:
    pay(10_000)
    store(line(misses=1, storage_byte_hours="730"))
    assert charges_and_shares.settle().shares_ucr == 0


def test_a_line_keeps_the_rate_of_its_hour() -> None:
    pay(10_000)
    rates.set_rate(UsageKind.HIT, 7, begins_at=HOUR + timedelta(hours=1), now=NOW)
    later = (HOUR + timedelta(hours=1)).isoformat()
    store(line(hits=1), line(hits=1, used_at=later), now=NOW + timedelta(hours=2))
    charges_and_shares.settle()
    assert [c.rate_ucr for c in Charge.objects.order_by("pk")] == [100, 7]


@pytest.mark.parametrize("kind", UsageKind)
def test_the_largest_line_at_the_highest_rate_is_charged(kind: UsageKind) -> None:
    begins_at, highest_ucr = HOUR + timedelta(hours=1), rates.highest_ucr(kind)
    with pytest.raises(RateRefused):
        rates.set_rate(kind, highest_ucr + 1, begins_at=begins_at, now=NOW)
    rates.set_rate(kind, highest_ucr, begins_at=begins_at, now=NOW)
    UsageLine.objects.create(
        line_id=uuid4(),
        kind=kind,
        used_at=begins_at,
        organization_id=ALICE,
        environment_pk=11,
        bucket_id=5,
        quantity=rates.MAX_QUANTITY[kind],
    )
    assert charges_and_shares.settle().charged_ucr > 2**62


@pytest.mark.parametrize("begins_at", [HOUR, NOW, NOW + timedelta(hours=1)])
def test_a_rate_begins_at_a_full_hour_in_the_future(begins_at: Any) -> None:
    with pytest.raises(RateRefused):
        rates.set_rate(UsageKind.HIT, 7, begins_at=begins_at, now=NOW)


def test_debts_earn_once_they_are_paid() -> None:
    store(line(hits=1), line(hits=1))
    charges_and_shares.settle()
    assert (consumer(), operator()) == ((0, 0, -200), (0, 0, 0))
    pay(150)
    assert (consumer(), operator()) == ((0, 0, -50), (105, 0, 0))
    pay(60, reference="second")
    assert (consumer(), operator()) == ((0, 10, 0), (140, 0, 0))


def test_debts_in_batches_are_paid_from_the_oldest_line_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(debts, "BATCH_LINES", 2)
    pay(300)
    store(*(line(hits=1) for _ in range(6)))
    charges_and_shares.settle()
    consumer_credits.charge_back("payment", **STAFF)
    pay(450, reference="second")
    with connection.cursor() as cursor:
        cursor.execute("SELECT unpaid FROM billing_linestate ORDER BY line_id")
        assert [row[0] for row in cursor.fetchall()] == [0, 0, 0, 0, 50, 100]
    assert (consumer(), operator()) == ((0, 0, -150), (315, 0, 0))


def test_a_chargeback_reverses_the_share_after_it_was_released() -> None:
    pay(300)
    store(line(hits=2))
    charges_and_shares.settle()
    holds.release(OLGA, now=NOW + timedelta(days=400))
    assert operator() == (0, 140, 0)
    journal = consumer_credits.charge_back("payment", **STAFF)
    assert journal is not None
    assert consumer_credits.charge_back("payment", **STAFF) is None
    assert (consumer(), operator()) == ((0, 0, -200), (0, -0, 0))
    assert ledger.balance(AccountKind.CASH, None) == 0


def test_a_chargeback_takes_the_newest_lines_and_what_was_paid_out() -> None:
    pay(1000)
    pay(50, reference="second")
    store(line(hits=10), line(hits=1))
    charges_and_shares.settle()
    assert operator() == (735, 0, 0)
    consumer_credits.charge_back("second", **STAFF)
    # 1,050 were paid for lines of 1,100: the newest paid 50 µcr are open again.
    assert (consumer(), operator()) == ((0, 0, -100), (700, 0, 0))
    with pytest.raises(JournalRefused):
        consumer_credits.charge_back("unknown", **STAFF)


def test_a_refund_gives_back_everything_once() -> None:
    grant(50)
    pay(30)
    store(line(hits=1))
    charges_and_shares.settle()
    assert (consumer(), operator()) == ((0, 0, -20), (21, 0, 0))
    lines = list(UsageLine.objects.values_list("pk", flat=True))
    assert debts.refund(CHARLIE, lines, key="a", **STAFF) is not None
    assert consumer() == (0, 0, -20)
    assert debts.refund(ALICE, lines, key="b", **STAFF) is not None
    assert debts.refund(ALICE, lines, key="c", **STAFF) is not None
    assert (consumer(), operator()) == ((50, 30, 0), (0, 0, 0))


def test_refunded_credits_pay_other_debts() -> None:
    pay(100)
    store(line(hits=1), line(hits=2))
    charges_and_shares.settle()
    assert (consumer(), operator()) == ((0, 0, -200), (70, 0, 0))
    first = UsageLine.objects.order_by("pk").values_list("pk", flat=True)[:1]
    debts.refund(ALICE, list(first), key="a", **STAFF)
    assert (consumer(), operator()) == ((0, 0, -100), (70, 0, 0))


def test_granted_credits_pay_what_a_chargeback_reopens() -> None:
    pay(100)
    store(line(hits=1))
    charges_and_shares.settle()
    grant(150)
    consumer_credits.charge_back("payment", **STAFF)
    assert (consumer(), operator()) == ((50, 0, 0), (0, 0, 0))


def test_held_earnings_become_payable_after_the_hold() -> None:
    pay(1000)
    store(line(hits=1))
    charges_and_shares.settle()
    assert holds.release_all(now=NOW) == 0
    assert holds.release(OLGA, now=NOW + timedelta(days=400)) == 70
    assert holds.release(OLGA, now=NOW + timedelta(days=400)) == 0
    assert operator() == (0, 70, 0)


def test_earnings_are_forfeited_and_given_back() -> None:
    pay(1000)
    store(line(hits=1))
    charges_and_shares.settle()
    assert holds.forfeit(OLGA, key="case 1", **STAFF) == 70
    assert operator() == (0, 0, 70)
    assert holds.reinstate(OLGA, key="appeal 1", **STAFF) == 70
    # Neither payable immediately nor held for longer than before.
    assert operator() == (70, 0, 0)
    posted_at = Journal.objects.get(kind="settlement").posted_at
    assert holds.release(OLGA, now=posted_at + timedelta(days=29)) == 0
    assert holds.release(OLGA, now=posted_at + timedelta(days=30, minutes=1)) == 70
    assert holds.forfeit(OLGA, key="case 2", **STAFF) == 70
    assert holds.reinstate(OLGA, key="appeal 2", **STAFF) == 70
    assert operator() == (0, 70, 0)


def test_reinstated_earnings_keep_their_hold_beside_others_that_were_payable() -> None:
    pay(1000)
    later = NOW + timedelta(days=400)
    for number, is_payable in ((1, True), (2, False)):
        store(line(hits=1))
        charges_and_shares.settle()
        if is_payable:
            holds.release(OLGA, now=later)
        assert holds.forfeit(OLGA, key=f"case {number}", **STAFF) == 70
    words = {"key": "appeal 2", "forfeit_key": "case 2", **STAFF}
    assert holds.reinstate(OLGA, 70, **words) == 70
    assert operator() == (70, 0, 70)
    words = {"key": "appeal 1", "forfeit_key": "case 1", **STAFF}
    assert holds.reinstate(OLGA, 70, **words) == 70
    assert operator() == (70, 70, 0)


def test_new_organizations_get_their_first_credits_once(settings: Settings) -> None:
    settings.BILLING = replace(settings.BILLING, welcome_credits=1)
    for _ in range(2):
        store(line(hits=1))
        charges_and_shares.settle()
    assert consumer() == (UCR_PER_CREDIT - 200, 0, 0)


def test_batches_together_charge_what_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    pay(1050)
    store(*(line(hits=1) for _ in range(25)))
    while charges_and_shares.settle_batch(7).lines:
        continue
    assert Journal.objects.filter(kind="settlement").count() == 4
    assert (consumer(), operator()) == ((0, 0, -1450), (735, 0, 0))


def test_the_database_refuses_what_does_not_balance() -> None:
    def unbalanced() -> None:
        with transaction.atomic():
            ledger.post(Journal.Kind.GRANT, "wrong", [Posting(AccountKind.GRANTED, ALICE, 5)])
            connection.check_constraints()

    with pytest.raises(IntegrityError, match="does not balance"):
        unbalanced()
    with pytest.raises(JournalRefused):
        ledger.post(
            Journal.Kind.GRANT,
            "overdrawn",
            [Posting(AccountKind.GRANTED, ALICE, -5), Posting(AccountKind.GRANTS, None, 5)],
        )


@pytest.mark.parametrize("model", [Journal, Entry, UsageLine, Charge, Adjustment])
@pytest.mark.parametrize(
    "statement", ["UPDATE {0} SET {1} = {1}", "DELETE FROM {0}", "TRUNCATE {0} CASCADE"]
)
def test_records_cannot_be_changed(model: Any, statement: str) -> None:
    key = "line_id" if model is Charge else "id"

    def run() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement.format(model._meta.db_table, key))

    with pytest.raises(ProgrammingError, match="append-only"):
        run()
