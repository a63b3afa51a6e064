"""A month of three consumers and five operators, with everything that can go wrong.

Dora's node alters files and is quarantined, Simon reads through his own node, and Leo leaves in the
middle. A rate changes, lines come twice and in any order, a payment is charged back, lines are
refunded, one payout fails and one is late. Time is an argument: nothing waits.
"""

import json
import random
import subprocess
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Sum
from django.utils import timezone
from pytest_django import Settings

from billing import (
    consumer_credits,
    debts,
    holds,
    ledger,
    quarantines,
    statements,
    verify_statement,
)
from billing.models.ledger import Account, Entry, Journal
from billing.models.payouts import Payout
from billing.models.quarantines import Quarantine
from billing.models.rates import Rate, UsageKind
from billing.models.usage import UsageLine
from billing.money import UCR_PER_CENT
from billing.payouts import methods, requests
from billing.payouts.providers import PayoutOutcome, ProviderAnswer
from billing.usage import charges_and_shares, rates
from tests.billing.support import amounts, line, store

pytestmark = pytest.mark.slow

MONTH = datetime(2026, 10, 1, tzinfo=UTC)
DAYS = 31
# Consumers: Alice pays, Bela has granted credits alone, Carla pays too late.
ALICE, BELA, CARLA = 101, 102, 103
# Operators.
HANNA, IVAN, DORA, SIMON, LEO = 201, 202, 203, 204, 205
CONSUMERS = (ALICE, BELA, CARLA)
OPERATORS = (HANNA, IVAN, DORA, SIMON, LEO)
NODES = {operator: UUID(int=operator) for operator in OPERATORS}
QUARANTINED_ON, LEFT_ON, CHANGED_ON = 18, 15, 11
STAFF = {"reason": "x", "actor": "staff:x"}


@dataclass
class Month:
    """What happened."""

    dice: random.Random = field(default_factory=lambda: random.Random(5))  # noqa: S311 - a test
    lines: int = 0
    paid_out: dict[int, int] = field(default_factory=dict)


def moment(day: int, hour: int = 0) -> datetime:
    """Return a time in the month. day: from 1 on."""
    return MONTH + timedelta(days=day - 1, hours=hour)


def served(operator: int, day: int) -> bool:
    """True if an operator's node is in use."""
    return not (
        (operator == DORA and day >= QUARANTINED_ON) or (operator == LEO and day >= LEFT_ON)
    )


def traffic(month: Month, day: int) -> list[dict[str, Any]]:
    """Return a day's lines of the brain."""
    found = []
    for operator in OPERATORS:
        if not served(operator, day):
            continue
        through = {"operator_id": operator, "node_id": str(NODES[operator])}
        used_at = moment(day, month.dice.randrange(24)).isoformat()
        readers = [*CONSUMERS, SIMON] if operator == SIMON else CONSUMERS
        for reader in readers:
            # The dishonest and the self-dealing are as busy as the others.
            size = month.dice.randrange(10**6, 10**10)
            # Some of it from networks that earn nothing, as the brain found.
            is_creditable = month.dice.random() < 0.9
            found.append(
                line(
                    reader,
                    **through,
                    used_at=used_at,
                    hits=month.dice.randrange(1, 10**5),
                    bytes_served=size,
                    is_creditable=is_creditable,
                )
            )
    for consumer in CONSUMERS:
        nowhere = {"operator_id": None, "node_id": None, "used_at": moment(day).isoformat()}
        found.append(line(consumer, misses=month.dice.randrange(1000), **nowhere))
        stored = str(month.dice.randrange(10**11))
        found.append(line(consumer, storage_byte_hours=stored, **nowhere))
    return [
        one for one in found if one["hits"] or one["misses"] or one["storage_byte_hours"] != "0"
    ]


def live_through(month: Month, day: int) -> None:
    """Import a day, twice and shuffled, and settle it."""
    lines = traffic(month, day)
    now = moment(day + 1)
    for copy in (lines, lines[: len(lines) // 2]):
        mixed = month.dice.sample(copy, len(copy))
        store(*mixed, now=now)
    month.lines += len(lines)
    charges_and_shares.settle()


def events(month: Month, day: int) -> None:
    """Carry out what staff and providers do on a day."""
    if day == 1:
        consumer_credits.top_up(ALICE, 900 * UCR_PER_CENT, reference="alice 1", **STAFF)
        consumer_credits.grant(BELA, 5000 * UCR_PER_CENT, key="bela", **STAFF)
        consumer_credits.top_up(CARLA, 40 * UCR_PER_CENT, reference="carla 1", **STAFF)
        consumer_credits.top_up(SIMON, 2000 * UCR_PER_CENT, reference="simon 1", **STAFF)
    if day == CHANGED_ON - 1:
        # Announced the day before: lines of the hours before it keep theirs.
        begins_at = moment(CHANGED_ON, 12)
        rates.set_rate(UsageKind.EGRESS, 11, begins_at=begins_at, now=moment(day))
    if day == 16:
        consumer_credits.top_up(ALICE, 4000 * UCR_PER_CENT, reference="alice 2", **STAFF)
    if day == 20:
        of_ivan = UsageLine.objects.filter(organization_id=ALICE, operator_id=IVAN)
        wrong = list(of_ivan.order_by("pk").values_list("pk", flat=True)[:4])
        for _ in range(2):
            debts.refund(ALICE, wrong, key="refund of a fault", **STAFF)
    if day == 25:
        consumer_credits.top_up(CARLA, 2500 * UCR_PER_CENT, reference="carla 2", **STAFF)
    if day == 28:
        for _ in range(2):
            consumer_credits.charge_back("carla 2", 700 * UCR_PER_CENT, **STAFF)
    if day == QUARANTINED_ON:
        Quarantine.objects.create(
            event=1, node_id=NODES[DORA], organization_id=DORA, reason="x", began_at=moment(day)
        )


def pay(month: Month, operator: int, *, fails: int = 0, is_late: bool = False) -> None:
    """Pay an operator by hand. is_late: the bank answers long after, and twice."""
    later = timezone.now() + timedelta(days=40)
    for attempt in range(fails + 1):
        payout = requests.request(operator, by="x", now=later)
        requests.send(payout.pk, now=later)
        if attempt < fails:
            refused = ProviderAnswer(PayoutOutcome.REFUSED, failure="The account is closed.")
            requests.settle_answer(payout.pk, refused, now=later)
            continue
        if is_late:
            requests.send(payout.pk, now=later + timedelta(days=9))
        answer = ProviderAnswer(PayoutOutcome.CONFIRMED, reference="bank 7")
        for _ in range(2):
            requests.settle_answer(payout.pk, answer, now=later + timedelta(days=10))
        month.paid_out[operator] = payout.amount_ucr


@pytest.fixture
def month(settings: Settings) -> Month:
    """Return a month that is over, its earnings released and paid."""
    settings.BILLING = replace(settings.BILLING, payout_minimum_cents=1)
    month = Month()
    for operator in OPERATORS:
        methods.replace(operator, "manual", {"account": f"DE{operator}"}, by="x", now=MONTH)
    for day in range(1, DAYS + 1):
        events(month, day)
        live_through(month, day)
    dora = Quarantine.objects.get()
    quarantines.forfeit(dora.pk, reason="altered files", actor="staff:x", now=moment(DAYS))
    holds.release_all(now=timezone.now() + timedelta(days=31))
    pay(month, HANNA, is_late=True)
    pay(month, IVAN, fails=1)
    pay(month, LEO)
    return month


def shares(operator: int) -> int:
    """Return what the lines of an operator earned, by the lines alone."""
    return int(statements.statement_totals(operator, date(2026, 10, 1))["amount_ucr"])


def recomputed(operator: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """Export a statement, let the script check it against the public rates; return its total."""
    capsys.readouterr()
    call_command("exportstatement", str(operator), "2026-10")
    statement, published = folder / f"{operator}.csv", folder / "rates.json"
    statement.write_text(capsys.readouterr().out)
    public: dict[str, list[Any]] = {}
    for rate in Rate.objects.all():
        public.setdefault(rate.kind, []).append([rate.begins_at.isoformat(), rate.rate_ucr])
    published.write_text(json.dumps(public))
    command = [
        sys.executable,
        "-I",
        verify_statement.__file__,
        str(statement),
        "--rates",
        str(published),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    count, wrong, total = done.stdout.replace(",", "").replace(";", "").split()[0:5:2]
    assert (int(count) > 0, int(wrong)) == (True, 0)
    return int(total)


def test_a_month_adds_up_to_the_last_microcredit(
    month: Month, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_all_adds_up(month, tmp_path, capsys)
    assert_each_party_got_what_was_due()
    assert_every_entry_is_traced()


def assert_all_adds_up(month: Month, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Compare the ledger with statements that the script recomputed, and with the lines."""
    assert ledger.verify().fault == ""
    assert Entry.objects.aggregate(total=Sum("amount_ucr"))["total"] == 0
    assert UsageLine.objects.values("line_id").distinct().count() == month.lines
    # Each statement, recomputed by the script, is what the operator has or was paid.
    for operator in OPERATORS:
        kept = sum(amounts(operator, ("held", "payable", "forfeited")))
        kept += month.paid_out.get(operator, 0)
        assert recomputed(operator, folder, capsys) == shares(operator) == kept
    # Each consumer's charges are what the credits lost, and the debts.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT organization_id, sum(granted), sum(paid), sum(unpaid) FROM billing_linestate"
            " GROUP BY 1"
        )
        charged = {row[0]: [int(part) for part in row[1:]] for row in cursor.fetchall()}
    assert set(charged) == {*CONSUMERS, SIMON}
    bought = {
        ALICE: 4900 * UCR_PER_CENT,
        BELA: 0,
        CARLA: (40 + 2500 - 700) * UCR_PER_CENT,
        SIMON: 2000 * UCR_PER_CENT,
    }
    granted = {BELA: 5000 * UCR_PER_CENT}
    for consumer, (from_granted, from_paid, unpaid) in charged.items():
        granted_left, paid_left, debt = amounts(consumer, ("granted", "paid", "debt"))
        assert from_granted == granted.get(consumer, 0) - granted_left
        assert from_paid == bought[consumer] - paid_left
        assert unpaid == -debt
    # The platform has what the operators do not get.
    fees = Account.objects.get(kind="fees").balance_ucr
    assert fees == sum(map(sum, charged.values())) - sum(map(shares, OPERATORS))


def assert_each_party_got_what_was_due() -> None:
    """Check each consumer and operator."""
    # Alice's node was refunded in part, Bela's granted credits earned nothing.
    of_bela = UsageLine.objects.filter(organization_id=BELA, operator_id=HANNA)
    assert of_bela.count() > DAYS
    assert not any(row.charge.share_ucr for row in of_bela.select_related("charge"))
    refunded = UsageLine.objects.filter(organization_id=ALICE, operator_id=IVAN).order_by("pk")
    with connection.cursor() as cursor:
        ids = [row.pk for row in refunded[:4]]
        cursor.execute(
            "SELECT sum(granted + paid + unpaid + share) FROM billing_linestate"
            " WHERE line_id = ANY(%s)",
            [ids],
        )
        assert cursor.fetchone() == (0,)
    # Both rates were charged.
    egress = UsageLine.objects.filter(kind="egress").select_related("charge")
    changed_at = moment(CHANGED_ON, 12)
    assert {(row.charge.rate_ucr, row.used_at >= changed_at) for row in egress} == {
        (9, False),
        (11, True),
    }
    # Dora loses the unpaid earnings; the two paid operators have less than a cent left.
    held, payable, forfeited = amounts(DORA, ("held", "payable", "forfeited"))
    assert (held, payable) == (0, 0)
    assert forfeited == shares(DORA) > 0
    for operator in (HANNA, IVAN, LEO):
        assert 0 <= amounts(operator, ("payable",))[0] < UCR_PER_CENT
    states = Payout.objects.order_by("pk").values_list("organization_id", "state")
    assert list(states) == [
        (HANNA, "confirmed"),
        (IVAN, "reversed"),
        (IVAN, "confirmed"),
        (LEO, "confirmed"),
    ]
    # Leo left, and was paid for the days before.
    assert not UsageLine.objects.filter(operator_id=LEO, used_at__gte=moment(LEFT_ON)).exists()
    # Simon paid more for reading through his own node than it earned: nothing.
    own = UsageLine.objects.filter(organization_id=SIMON, operator_id=SIMON)
    assert not any(row.charge.share_ucr for row in own.select_related("charge"))
    assert amounts(SIMON, ("paid",))[0] < 2000 * UCR_PER_CENT


def assert_every_entry_is_traced() -> None:
    """Find what entries say and lines do not, journal by journal and operator by operator."""
    kinds = Journal.Kind
    by_lines = {kinds.SETTLEMENT, kinds.LATE_PAYMENT, kinds.REFUND, kinds.CHARGEBACK}
    with connection.cursor() as cursor:
        # Each journal that moves fees matches its lines, operator by operator.
        cursor.execute(
            """
            WITH claimed AS (
                SELECT c.journal_id, l.operator_id, sum(c.share_ucr) AS share
                FROM billing_charge c JOIN billing_usageline l ON l.id = c.line_id GROUP BY 1, 2
                UNION ALL
                SELECT a.journal_id, l.operator_id, sum(a.share_ucr)
                FROM billing_adjustment a JOIN billing_usageline l ON l.id = a.charge_id
                GROUP BY 1, 2),
            posted AS (
                SELECT e.journal_id, a.organization_id AS operator_id, sum(e.amount_ucr) AS share
                FROM billing_entry e JOIN billing_account a ON a.id = e.account_id
                JOIN billing_journal j ON j.id = e.journal_id AND j.kind = ANY(%s)
                WHERE a.kind IN ('held', 'payable', 'forfeited') GROUP BY 1, 2)
            SELECT * FROM claimed FULL JOIN posted USING (journal_id, operator_id)
            WHERE coalesce(claimed.share, 0) <> coalesce(posted.share, 0)
            """,
            [[str(kind) for kind in by_lines]],
        )
        assert cursor.fetchall() == []
    # All others name what caused them.
    for journal in Journal.objects.exclude(kind__in=by_lines):
        assert journal.key.partition(":")[2] or journal.key == "bela"
