"""With any events in any order the ledger adds up, and each µcr has a line.

The model knows what was used, paid, taken back and refunded; the ledger must match it.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pytest_django import Settings

from billing import consumer_credits, debts, holds, ledger
from billing.errors import PayoutRefused
from billing.models.ledger import Account, AccountKind
from billing.models.payouts import Payout
from billing.models.rates import Rate, UsageKind
from billing.models.usage import Charge, UsageLine
from billing.money import HOURS_PER_MONTH
from billing.payouts import methods, requests
from billing.payouts.providers import PayoutOutcome, ProviderAnswer
from billing.usage import charges_and_shares, rates
from tests.billing.support import ALICE, CHARLIE, HOUR, NOW, OLGA, line, store

pytestmark = pytest.mark.slow

STAFF = {"reason": "test", "actor": "staff"}
OTTO = 10
CONSUMERS = st.sampled_from([ALICE, CHARLIE, OLGA])
OPERATORS = st.sampled_from([OLGA, OTTO, OTTO, None])
# About a cent and more, so that payouts have whole cents to pay, and odd ends.
DATA = st.data()
OUTCOMES = st.sampled_from([PayoutOutcome.SENT, PayoutOutcome.CONFIRMED, PayoutOutcome.REFUSED])
AMOUNTS = st.integers(1, 2 * 10**12)
RESTED = NOW + timedelta(days=5)


class CrashError(Exception):
    """The process was killed before the transaction ended."""


class Ledger(RuleBasedStateMachine):
    """Usage, money in and out, disputes and crashes in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []
        self.used: dict[str, int] = {}
        self.granted = dict.fromkeys((ALICE, CHARLIE, OLGA), 0)
        self.paid = dict.fromkeys((ALICE, CHARLIE, OLGA), 0)
        self.payments: dict[str, tuple[int, int]] = {}
        self.payouts: list[UUID] = []
        self.number = 0
        self.hour = HOUR - timedelta(days=1)
        self.rates: dict[str, dict[datetime, int]] = {}

    @initialize()
    def begin(self) -> None:
        self.transaction = transaction.atomic()
        self.transaction.__enter__()
        for operator in (OLGA, OTTO):
            methods.replace(operator, "manual", {"account": "1"}, by="x", now=NOW)
        for rate in Rate.objects.all():
            self.rates.setdefault(rate.kind, {})[rate.begins_at] = rate.rate_ucr
        self.earn()

    def earn(self) -> None:
        """Have both operators earn some dollars, half of it payable, so that there is what to move.

        Else it takes four steps in the right order until the first payout can be requested.
        """
        used: dict[str, Any] = {"hits": 10**6, "bytes_served": 10**11}
        used["used_at"] = self.hour.isoformat()
        self.pay(consumer=ALICE, amount=4 * 10**12, crashes=False)
        for days in (400, 0):
            self.lines += (lines := [line(operator_id=one, **used) for one in (OLGA, OTTO)])
            store(*lines)
            charges_and_shares.settle()
            for operator in (OLGA, OTTO):
                self.release(operator=operator, days=days, crashes=False)

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.transaction.__exit__(None, None, None)

    def carry_out(self, work: Callable[[], Any], *, crashes: bool) -> Any:
        """Run some work and return its result. crashes: lose it at its end once, and run it again.

        Work that is refused raises the same the second time: the crash left no traces.
        """

        def crash() -> None:
            with transaction.atomic():
                work()
                raise CrashError

        if crashes:
            with contextlib.suppress(CrashError):
                crash()
        return work()

    def next_key(self) -> str:
        self.number += 1
        return f"key {self.number}"

    @rule(
        consumer=CONSUMERS,
        operator=OPERATORS,
        hits=st.integers(0, 10**10),
        size=st.integers(0, 10**11),
        storage=st.integers(0, 10**12),
        is_creditable=st.booleans(),
        crashes=st.booleans(),
    )
    def use(
        self,
        consumer: int,
        operator: int | None,
        hits: int,
        size: int,
        storage: int,
        *,
        is_creditable: bool,
        crashes: bool,
    ) -> None:
        made = line(
            consumer,
            operator_id=operator,
            hits=hits,
            bytes_served=size,
            storage_byte_hours=str(storage),
            is_creditable=is_creditable,
            used_at=self.hour.isoformat(),
        )
        self.lines.append(made)
        self.carry_out(lambda: store(made), crashes=crashes)
        # Often immediately, so that money moves in short runs as well.
        if hits % 3:
            charges_and_shares.settle()

    @rule(hours=st.integers(1, 8))
    def time_passes(self, hours: int) -> None:
        self.hour = min(self.hour + timedelta(hours=hours), HOUR)

    @rule(kind=st.sampled_from(["hit", "egress", "storage"]), rate=st.integers(0, 900), data=DATA)
    def change_a_rate(self, kind: str, rate: int, data: st.DataObject) -> None:
        begins_at = self.hour + timedelta(hours=data.draw(st.integers(1, 8)))
        # The database keeps rates that have begun by its own clock.
        if begins_at not in self.rates[kind]:
            rates.set_rate(UsageKind(kind), rate, begins_at=begins_at, now=self.hour)
            self.rates[kind][begins_at] = rate

    @rule(data=DATA)
    def send_lines_again(self, data: st.DataObject) -> None:
        if self.lines:
            again = data.draw(st.lists(st.sampled_from(self.lines), max_size=3))
            assert store(*again)[0] == 0

    @rule(limit=st.integers(1, 4), crashes=st.booleans())
    def settle(self, limit: int, *, crashes: bool) -> None:
        self.carry_out(lambda: charges_and_shares.settle_batch(limit), crashes=crashes)

    @rule(consumer=CONSUMERS, amount=AMOUNTS, crashes=st.booleans())
    def grant(self, consumer: int, amount: int, *, crashes: bool) -> None:
        key = self.next_key()
        self.carry_out(
            lambda: consumer_credits.grant(consumer, amount, key=key, **STAFF), crashes=crashes
        )
        self.granted[consumer] += amount

    @rule(consumer=CONSUMERS, amount=AMOUNTS, crashes=st.booleans())
    def pay(self, consumer: int, amount: int, *, crashes: bool) -> None:
        reference = self.next_key()

        def book() -> Any:
            return consumer_credits.top_up(consumer, amount, reference=reference, **STAFF)

        assert self.carry_out(book, crashes=crashes) is not None
        assert book() is None
        self.paid[consumer] += amount
        self.payments[reference] = (consumer, amount)

    @precondition(lambda self: self.payments)
    @rule(crashes=st.booleans(), data=DATA)
    def charge_back(self, data: st.DataObject, *, crashes: bool) -> None:
        reference = data.draw(st.sampled_from(sorted(self.payments)))
        consumer, amount = self.payments.pop(reference)

        def take_back() -> Any:
            return consumer_credits.charge_back(reference, **STAFF)

        assert self.carry_out(take_back, crashes=crashes) is not None
        self.paid[consumer] -= amount

    @rule(crashes=st.booleans(), data=DATA)
    def refund(self, data: st.DataObject, *, crashes: bool) -> None:
        ids = list(UsageLine.objects.order_by("pk").values_list("pk", "organization_id"))
        if ids:
            chosen, owner = data.draw(st.sampled_from(ids))
            key = self.next_key()
            self.carry_out(lambda: debts.refund(owner, [chosen], key=key, **STAFF), crashes=crashes)

    @rule(
        operator=st.sampled_from([OLGA, OTTO]),
        days=st.sampled_from([0, 400]),
        crashes=st.booleans(),
    )
    def release(self, operator: int, days: int, *, crashes: bool) -> None:
        now = NOW + timedelta(days=days, seconds=self.number)
        self.carry_out(lambda: holds.release(operator, now=now), crashes=crashes)
        self.number += 1

    @rule(
        operator=st.sampled_from([OLGA, OTTO]),
        reverses=st.booleans(),
        crashes=st.booleans(),
    )
    def forfeit(self, operator: int, *, reverses: bool, crashes: bool) -> None:
        key = self.next_key()
        self.carry_out(lambda: holds.forfeit(operator, key=key, **STAFF), crashes=crashes)
        if reverses:
            key = self.next_key()
            self.carry_out(lambda: holds.reinstate(operator, key=key, **STAFF), crashes=crashes)

    @rule(
        operator=st.sampled_from([OLGA, OTTO]),
        outcomes=st.lists(OUTCOMES, max_size=3),
        crashes=st.booleans(),
    )
    def request_payout(
        self, operator: int, outcomes: list[PayoutOutcome], *, crashes: bool
    ) -> None:
        def request() -> Payout:
            return requests.request(operator, by="x", now=RESTED)

        with contextlib.suppress(PayoutRefused):
            self.payouts.append(self.carry_out(request, crashes=crashes).pk)
            for outcome in outcomes:
                self.hear(self.payouts[-1], outcome, crashes=crashes)

    @precondition(lambda self: self.payouts)
    @rule(outcome=OUTCOMES, crashes=st.booleans(), data=DATA)
    def hear_late(self, outcome: PayoutOutcome, data: st.DataObject, *, crashes: bool) -> None:
        # Drawn by its place: ids are other ones each time.
        place = data.draw(st.integers(0, len(self.payouts) - 1))
        self.hear(self.payouts[place], outcome, crashes=crashes)

    def hear(self, payout_id: UUID, outcome: PayoutOutcome, *, crashes: bool) -> None:
        """Record what the provider says of a payout."""
        self.carry_out(
            lambda: requests.settle_answer(payout_id, ProviderAnswer(outcome), now=NOW),
            crashes=crashes,
        )

    @invariant()
    def the_ledger_adds_up(self) -> None:
        if not hasattr(self, "transaction"):
            return
        assert ledger.verify().fault == ""
        accounts = list(Account.objects.all())
        assert sum(account.balance_ucr for account in accounts) == 0
        found: dict[int | None, dict[str, int]] = defaultdict(dict)
        for account in accounts:
            found[account.organization_id][account.kind] = account.balance_ucr
        lines = list(states())
        for consumer in self.paid:
            charged = sum(
                row["granted"] + row["paid"] + row["unpaid"]
                for row in lines
                if row["organization_id"] == consumer
            )
            left = sum(found[consumer].get(kind, 0) for kind in charges_and_shares.OF_CONSUMER)
            assert left == self.granted[consumer] + self.paid[consumer] - charged
        self.operators_have_the_shares_of(lines, found)

    def operators_have_the_shares_of(
        self, lines: list[dict[str, Any]], found: Mapping[int | None, Mapping[str, int]]
    ) -> None:
        """Compare the balances and payouts of operators with the shares of their lines."""
        payouts = list(Payout.objects.exclude(state="reversed"))
        for operator in (OLGA, OTTO):
            shares = sum(row["share"] for row in lines if row["operator_id"] == operator)
            kinds = (AccountKind.HELD, AccountKind.PAYABLE, AccountKind.FORFEITED)
            paid_out = sum(row.amount_ucr for row in payouts if row.organization_id == operator)
            assert sum(found[operator].get(kind, 0) for kind in kinds) + paid_out == shares

    @invariant()
    def each_line_has_the_rate_of_its_hour(self) -> None:
        if not hasattr(self, "transaction"):
            return
        for charge in Charge.objects.select_related("line"):
            used = charge.line
            known = self.rates[used.kind]
            rate = known[max(begins_at for begins_at in known if begins_at <= used.used_at)]
            divisor = HOURS_PER_MONTH if used.kind == "storage" else 1
            expected = divided_half_even(int(used.quantity) * rate, divisor)
            assert (charge.rate_ucr, charge.charge_ucr) == (rate, expected)


def divided_half_even(numerator: int, divisor: int) -> int:
    """Return the quotient of two integers (divisor > 0), rounded half to even."""
    quotient, rest = divmod(numerator, divisor)
    if 2 * rest > divisor or (2 * rest == divisor and quotient % 2):
        quotient += 1
    return quotient


def states() -> Iterator[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM billing_linestate")
        names = [column.name for column in cursor.description or ()]
        for row in cursor.fetchall():
            state = dict(zip(names, row, strict=True))
            assert state["share"] == state["paid"] * state["share_ppm"] // 1_000_000
            assert min(state["granted"], state["paid"], state["unpaid"]) >= 0
            yield state


def test_the_ledger_adds_up_whatever_happens(
    db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that debts take several batches.
    monkeypatch.setattr(debts, "BATCH_LINES", 3)
    settings.BILLING = replace(settings.BILLING, payout_minimum_cents=1)
    run_state_machine_as_test(
        Ledger,
        settings=hypothesis_settings(
            max_examples=hypothesis_settings().max_examples // 3,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        ),
    )
