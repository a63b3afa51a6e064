"""Payouts: once, to a method that has rested, and never more than is payable."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from accounts.models import User
from billing import ledger, tasks
from billing.errors import PayoutRefused
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.payouts import Payout, PayoutMethod
from billing.money import UCR_PER_CENT
from billing.payouts import methods, requests
from billing.payouts.providers import PayoutOutcome, PayoutProviderUnavailable, ProviderAnswer
from environments.models import Organization
from tests.billing.support import NOW, OLGA, line, operator, store
from tests.cast import signed_in
from tests.outbox.webhooks.support import emitted, subscribe
from tests.scrape import scrape

CENT = UCR_PER_CENT
RESTED = NOW + timedelta(hours=73)
ACCOUNT = {"account": "DE00 1234 3456"}


class Bank:
    """A provider that does what the test says; ``paid`` is the money that really moved."""

    paid: ClassVar[dict[UUID, int]] = {}
    plan: ClassVar[list[str]] = []

    def checked(self, details: Any, organization_id: int) -> dict[str, Any]:
        return dict(details)

    def label(self, details: Any) -> str:
        return "bank"

    def send(self, payout: Payout) -> ProviderAnswer:
        step = self.plan.pop(0) if self.plan else "pay"
        if step == "down":
            raise PayoutProviderUnavailable
        if step == "refuse":
            return ProviderAnswer(PayoutOutcome.REFUSED, failure="The account is closed.")
        assert payout.pk not in self.paid, "paid twice"
        self.paid[payout.pk] = payout.amount_cents
        if step == "pay, then no answer":
            raise PayoutProviderUnavailable
        return ProviderAnswer(PayoutOutcome.SENT, reference="tr_1")

    def find(self, payout: Payout) -> ProviderAnswer:
        if payout.pk in self.paid:
            return ProviderAnswer(PayoutOutcome.CONFIRMED, reference="tr_1")
        return ProviderAnswer(PayoutOutcome.UNKNOWN)


@pytest.fixture
def bank(settings: Settings) -> type[Bank]:
    settings.PAYOUT_METHODS = {"bank": f"{__name__}.Bank"}
    settings.BILLING = replace(settings.BILLING, payout_minimum_cents=100)
    Bank.paid.clear()
    Bank.plan.clear()
    methods.replace(OLGA, "bank", ACCOUNT, by="user:olga", now=NOW)
    return Bank


def earn(amount_ucr: int, organization_id: int = OLGA) -> None:
    ledger.post(
        Journal.Kind.RELEASE,
        f"earned:{amount_ucr}",
        [
            Posting(AccountKind.PAYABLE, organization_id, amount_ucr),
            Posting(AccountKind.FEES, None, -amount_ucr),
        ],
    )


def requested() -> Payout:
    return requests.request(OLGA, by="user:olga", now=RESTED)


def test_whole_cents_are_paid_and_the_rest_stays(bank: type[Bank]) -> None:
    earn(250 * CENT + 7)
    payout = requested()
    assert operator() == (0, 7, 0)
    assert ProcrastinateJob.objects.get().task_name == "billing.tasks.send_payout"
    sent = requests.send(payout.pk, now=RESTED)
    assert (sent.state, sent.reference, bank.paid) == ("sent", "tr_1", {payout.pk: 250})
    assert requests.send(payout.pk, now=RESTED).state == "confirmed"
    assert ledger.balance(AccountKind.CASH, None) == 250 * CENT
    assert ledger.balance(AccountKind.SENT, None) == 0


def test_each_state_of_a_payout_is_an_event(bank: type[Bank]) -> None:
    Organization.objects.create(pk=OLGA, name="Olga's")
    subscribe(OLGA, "payout.state_changed")
    earn(250 * CENT)
    payout = requested()
    for _ in range(2):
        requests.send(payout.pk, now=RESTED)
    requests.settle_answer(
        payout.pk, ProviderAnswer(PayoutOutcome.REFUSED, failure="taken back"), now=RESTED
    )
    about = {"payout_id": str(payout.pk), "amount_cents": 250, "currency": "USD"}
    states = ("debited", "sent", "confirmed", "reversed")
    assert emitted() == [("payout.state_changed", about | {"state": state}) for state in states]


@pytest.mark.parametrize("plan", [["pay, then no answer"], ["down", "down", "pay"]])
def test_a_provider_that_does_not_answer_pays_once(bank: type[Bank], plan: list[str]) -> None:
    earn(200 * CENT)
    payout, tries = requested(), 0
    bank.plan[:] = plan
    while requests.open_payouts():
        tries += 1
        try:
            requests.send(payout.pk, now=RESTED)
        except PayoutProviderUnavailable:
            continue
    assert (bank.paid, tries) == ({payout.pk: 200}, len(plan) + 1)


def test_a_method_that_cannot_be_checked_is_not_kept(
    alice: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_bank: Bank, _details: Any, _organization_id: int) -> dict[str, Any]:
        raise PayoutProviderUnavailable

    settings.PAYOUT_METHODS = {"bank": f"{__name__}.Bank"}
    monkeypatch.setattr(Bank, "checked", away)
    answer = signed_in(alice).call(
        "PUT", "/v1/cache/payout-method", {"kind": "bank", "details": ACCOUNT}
    )
    assert (answer.status, answer.code) == (503, "payout_provider_unavailable")
    assert not PayoutMethod.objects.exists()


def test_a_method_that_is_not_offered_any_more_is_shown_and_pays_nothing(
    bank: type[Bank], alice: User, settings: Settings
) -> None:
    methods.replace(alice.organization_id, "bank", ACCOUNT, by="x", now=NOW)
    earn(200 * CENT)
    payout = requested()
    settings.PAYOUT_METHODS = {"manual": "billing.payouts.manual.Manual"}
    shown = signed_in(alice).get("/v1/cache/payout-method")
    assert (shown.status, shown.body["kind"], shown.body["is_usable"]) == (200, "bank", False)
    with pytest.raises(PayoutRefused, match="not offered"):
        requests.request(alice.organization_id, by="x", now=RESTED)
    # One that was requested before waits, stops no other one, and can still be cancelled.
    tasks.follow_payouts(timestamp=0)
    assert requests.cancel(OLGA, payout.pk, by="x", now=RESTED).state == "reversed"
    replaced = {"kind": "manual", "details": {"account": "DE00 3456"}}
    assert signed_in(alice).call("PUT", "/v1/cache/payout-method", replaced).status == 200


def test_a_refused_payout_is_payable_again(bank: type[Bank]) -> None:
    earn(200 * CENT)
    bank.plan[:] = ["refuse"]
    payout = requests.send(requested().pk, now=RESTED)
    assert (payout.state, payout.failure) == ("reversed", "The account is closed.")
    assert operator() == (0, 200 * CENT, 0)


def test_a_payment_taken_back_after_its_confirmation_is_payable_again(bank: type[Bank]) -> None:
    earn(200 * CENT)
    payout = requested()
    for _ in range(2):
        requests.send(payout.pk, now=RESTED)
    refusal = ProviderAnswer(PayoutOutcome.REFUSED, failure="returned")
    for _ in range(2):
        requests.settle_answer(payout.pk, refusal, now=RESTED)
    assert operator() == (0, 200 * CENT, 0)


@pytest.mark.parametrize("reason", ["too little", "at rest", "one is open"])
def test_a_payout_that_is_not_possible_moves_nothing(bank: type[Bank], reason: str) -> None:
    earn(99 * CENT if reason == "too little" else 300 * CENT)
    if reason == "one is open":
        requested()
        earn(150 * CENT)
    before = operator()
    with pytest.raises(PayoutRefused):
        requests.request(OLGA, by="x", now=NOW if reason == "at rest" else RESTED)
    assert operator() == before


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("too little", "99 cents are payable; the smallest payout is 100."),
        ("at rest", "The payout method cannot be used until"),
        ("not offered", "The payout method is not offered any more"),
        ("twice", "Another payout is on its way."),
    ],
)
def test_a_request_that_is_not_possible_is_a_conflict_and_moves_nothing(
    bank: type[Bank], alice: User, settings: Settings, reason: str, says: str
) -> None:
    home = alice.organization_id
    rested = timezone.now() - timedelta(days=0 if reason == "at rest" else 4)
    methods.replace(home, "bank", ACCOUNT, by="x", now=rested)
    earn((99 if reason == "too little" else 300) * CENT, home)
    if reason == "not offered":
        settings.PAYOUT_METHODS = {"manual": "billing.payouts.manual.Manual"}
    if reason == "twice":
        assert signed_in(alice).post("/v1/cache/payouts").status == 201
        earn(150 * CENT, home)
    before = operator(home), ledger.balance(AccountKind.SENT, None), Journal.objects.count()

    refused = signed_in(alice).post("/v1/cache/payouts")

    assert (refused.status, refused.code) == (409, "payout_refused")
    assert says in refused.body["detail"]
    assert before == (
        operator(home),
        ledger.balance(AccountKind.SENT, None),
        Journal.objects.count(),
    )
    assert Payout.objects.count() == (reason == "twice")


def test_an_amount_of_ones_own_is_refused(bank: type[Bank], alice: User) -> None:
    """A payout is of all that is payable, and never of more."""
    home = alice.organization_id
    methods.replace(home, "bank", ACCOUNT, by="x", now=timezone.now() - timedelta(days=4))
    earn(300 * CENT, home)
    answer = signed_in(alice).post("/v1/cache/payouts", {"amount_cents": 30_001})
    assert answer.status == 400
    assert not Payout.objects.exists()
    assert operator(home) == (0, 300 * CENT, 0)


def test_a_cancelled_payout_is_payable_again_and_not_sent(bank: type[Bank]) -> None:
    earn(200 * CENT)
    payout = requested()
    requests.cancel(OLGA, payout.pk, by="user:olga", now=RESTED)
    requests.send(payout.pk, now=RESTED)
    assert (bank.paid, operator()) == ({}, (0, 200 * CENT, 0))
    with pytest.raises(PayoutRefused):
        requests.cancel(OLGA, payout.pk, by="user:olga", now=RESTED)


def test_a_payout_on_hold_is_not_sent(bank: type[Bank]) -> None:
    earn(200 * CENT)
    payout = requested()
    requests.hold(payout.pk, reason="being checked")
    with pytest.raises(PayoutRefused):
        requests.cancel(OLGA, payout.pk, by="user:olga", now=RESTED)
    assert requests.send(payout.pk, now=RESTED).state == "debited"
    requests.hold(payout.pk, reason="")
    assert requests.send(payout.pk, now=RESTED).state == "sent"


def test_a_changed_method_rests_and_admins_get_a_mail(alice: User, settings: Settings) -> None:
    place = alice.organization_id
    first = methods.replace(place, "manual", ACCOUNT, by="x", now=NOW)
    assert methods.replace(place, "manual", ACCOUNT, by="x", now=RESTED).pk == first.pk
    second = methods.replace(place, "manual", {"account": "other"}, by="x", now=RESTED)
    assert second.usable_from == RESTED + timedelta(hours=72)
    assert PayoutMethod.objects.filter(organization_id=place, removed_at=None).count() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT template FROM outbox_delivery WHERE user_id = %s", [alice.pk])
        assert [row[0] for row in cursor.fetchall()] == ["payout_method_changed"] * 2


def test_open_payouts_are_followed_and_a_provider_that_is_down_does_not_stop_the_others(
    bank: type[Bank],
) -> None:
    earn(200 * CENT)
    payout = requested()
    bank.plan[:] = ["down"]
    states = []
    for _ in range(3):
        tasks.follow_payouts(timestamp=0)
        payout.refresh_from_db()
        states.append(payout.state)
    assert (states, bank.paid) == (["debited", "sent", "confirmed"], {payout.pk: 200})


def test_the_metrics_show_payouts_and_whether_the_ledger_adds_up(bank: type[Bank]) -> None:
    earn(250 * CENT)
    payout = requested()
    store(line(hits=1), line(hits=1))

    seen = scrape()

    assert seen.value("zonal_payouts", state="debited") == 1
    assert seen.value("zonal_ledger_unsettled_lines") == 2
    assert seen.value("zonal_ledger_out_of_balance") == 0
    requests.cancel(OLGA, payout.pk, by="user:olga", now=RESTED)
    assert scrape().value("zonal_payouts", state="reversed") == 1


def test_a_balance_that_is_wrong_shows_in_the_metrics() -> None:
    earn(250 * CENT)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE billing_account SET balance_ucr = 1 + balance_ucr")
        assert scrape().value("zonal_ledger_out_of_balance") == 1
        transaction.set_rollback(True)
    assert scrape().value("zonal_ledger_out_of_balance") == 0
