"""Payouts by Stripe: once, to a verified account, whatever Stripe answers."""

import traceback
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from accounts.models import User
from billing import conf, ledger
from billing.ledger import Posting
from billing.models.ledger import AccountKind, Journal
from billing.models.payouts import Payout, PayoutMethod
from billing.money import UCR_PER_CENT
from billing.payouts import methods, requests
from billing.payouts.providers import PayoutProviderUnavailable
from billing.stripe.connect import StripeConnect
from billing.tenant_data import BillingData
from common.settings.env import Env, SettingError
from tests.billing.stripe.server import ACCOUNT, KEY, WEBHOOK_SECRET, Stripe
from tests.billing.stripe.support import delivered, own
from tests.billing.support import NOW, OLGA, operator
from tests.cast import signed_in
from tests.commands import facts

RESTED = NOW + timedelta(hours=73)
EARNED = 2500 * UCR_PER_CENT


@pytest.fixture
def payout(stripe: Stripe) -> Payout:
    """Let Olga ask for 25.00 of her earnings."""
    own(OLGA)
    methods.replace(OLGA, "stripe", {"account": ACCOUNT}, by="user:olga", now=NOW)
    earned = Posting(AccountKind.PAYABLE, OLGA, EARNED)
    ledger.post(Journal.Kind.RELEASE, "earned", [earned, Posting(AccountKind.FEES, None, -EARNED)])
    return requests.request(OLGA, by="user:olga", now=RESTED)


def sent_until_settled(payout: Payout) -> tuple[Payout, int]:
    """Send as the queue does; return the payout and how often Stripe was unreachable."""
    for away in range(20):
        try:
            return requests.send(payout.pk, now=RESTED), away
        except PayoutProviderUnavailable:
            continue
    raise AssertionError("it never ends")


def set_method(alice: User, account: str) -> Any:
    own(alice.organization_id)
    body = {"kind": "stripe", "details": {"account": account}}
    return signed_in(alice).call("PUT", "/v1/cache/payout-method", body)


def test_an_account_that_can_be_paid_is_taken_and_shortened(stripe: Stripe, alice: User) -> None:
    answer = set_method(alice, f" {ACCOUNT} ")
    assert (answer.status, answer.body["account"]) == (200, "acct_…Olga")
    assert PayoutMethod.objects.get().details == {"account": ACCOUNT}


@pytest.mark.parametrize(
    "state",
    [
        {"payouts_enabled": False},
        {"capabilities": {"transfers": "pending"}},
        {"capabilities": {}},
        {"id": "acct_somebodyElse"},
        None,
    ],
)
def test_an_account_that_cannot_be_paid_is_refused(
    stripe: Stripe, alice: User, state: dict[str, Any] | None
) -> None:
    stripe.connect(**state or {})
    if state is None:
        stripe.accounts.clear()
    answer = set_method(alice, ACCOUNT)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "details.account")
    assert "stripe says" not in str(answer.body)
    assert not PayoutMethod.objects.exists()


@pytest.mark.parametrize(
    "account", ["", "acct_", "acct_1/../transfers", "ba_12345678", "acct_1?x=1"]
)
def test_what_is_no_accounts_id_never_reaches_stripe(
    stripe: Stripe, alice: User, account: str
) -> None:
    assert set_method(alice, account).status == 400
    assert stripe.requests == []


def test_without_a_key_there_is_no_such_method(alice: User) -> None:
    assert set_method(alice, ACCOUNT).status == 400


def test_a_key_that_stripe_refuses_is_not_the_operators_fault(
    stripe: Stripe, alice: User, settings: Settings
) -> None:
    settings.STRIPE = replace(settings.STRIPE, secret_key="sk_test_rolled_over_and_gone")
    answer = set_method(alice, ACCOUNT)
    assert (answer.status, answer.code) == (503, "payout_provider_unavailable")


def test_a_payout_is_one_transfer(stripe: Stripe, payout: Payout) -> None:
    done = requests.send(payout.pk, now=RESTED)
    assert (done.state, done.reference, operator()) == ("confirmed", "tr_0", (0, 0, 0))
    (transfer,) = stripe.transfers
    assert (transfer["amount"], transfer["currency"]) == (2500, "usd")
    assert (transfer["destination"], transfer["transfer_group"]) == (ACCOUNT, str(payout.pk))
    assert list(stripe.results) == [str(payout.pk)]


@pytest.mark.parametrize(
    "plan",
    [
        ["unanswered"],
        ["lost", "unanswered"],
        ["rate limit", "broken", "concurrent"],
        ["wrong key", "no permission", "nonsense"],
    ],
)
def test_whatever_goes_wrong_in_between_is_paid_once(
    stripe: Stripe, payout: Payout, plan: list[str]
) -> None:
    stripe.plan[:] = plan
    done, away = sent_until_settled(payout)
    assert (done.state, away, len(stripe.transfers)) == ("confirmed", len(plan), 1)
    assert ledger.balance(AccountKind.CASH, None) == EARNED


def test_stripes_text_is_not_logged(
    stripe: Stripe, payout: Payout, caplog: pytest.LogCaptureFixture
) -> None:
    stripe.plan[:] = ["broken"]
    with pytest.raises(PayoutProviderUnavailable) as raised:
        requests.send(payout.pk, now=RESTED)
    stripe.plan[:] = ["poor"]
    requests.send(payout.pk, now=RESTED)
    # What the queue logs of a job that failed.
    logged = "".join(traceback.format_exception(raised.value)) + caplog.text
    assert "billing_stripe_failed" in logged
    assert "stripe says" not in logged
    assert KEY not in logged


def test_a_transfer_is_found_after_stripe_forgot_its_key(stripe: Stripe, payout: Payout) -> None:
    stripe.plan[:] = ["unanswered"]
    with pytest.raises(PayoutProviderUnavailable):
        requests.send(payout.pk, now=RESTED)
    stripe.results.clear()
    assert requests.send(payout.pk, now=RESTED).state == "confirmed"
    assert len(stripe.transfers) == 1


def test_a_key_that_comes_again_is_answered_as_before(stripe: Stripe, payout: Payout) -> None:
    # As if the lookup did not see the transfer yet.
    answers = [StripeConnect().send(payout) for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(stripe.transfers) == 1


@pytest.mark.parametrize("fault", ["poor", "unknown account", "other refusal"])
def test_what_stripe_refuses_is_payable_again(stripe: Stripe, payout: Payout, fault: str) -> None:
    stripe.plan[:] = [fault]
    done = requests.send(payout.pk, now=RESTED)
    assert (done.state, operator()) == ("reversed", (0, EARNED, 0))
    assert done.failure.endswith(".")
    assert "stripe says" not in done.failure


def test_a_transfer_that_was_reversed_is_payable_again(stripe: Stripe, payout: Payout) -> None:
    stripe.plan[:] = ["unanswered"]
    with pytest.raises(PayoutProviderUnavailable):
        requests.send(payout.pk, now=RESTED)
    stripe.transfers[0]["reversed"] = True
    done = requests.send(payout.pk, now=RESTED)
    assert (done.state, operator()) == ("reversed", (0, EARNED, 0))


@pytest.mark.parametrize("field", ["amount", "destination", "currency"])
def test_a_transfer_that_differs_settles_nothing(
    stripe: Stripe, payout: Payout, field: str
) -> None:
    stripe.plan[:] = ["unanswered"]
    for change in ({}, {field: "x"}):
        for transfer in stripe.transfers:
            transfer.update(change)
        with pytest.raises(PayoutProviderUnavailable):
            requests.send(payout.pk, now=RESTED)
    assert (len(stripe.transfers), requests.open_payouts()[0].state) == (1, "debited")


def test_a_currency_without_cents_is_refused_with_a_key(settings: Settings) -> None:
    billing = replace(settings.BILLING, currency="JPY")
    assert conf.stripe(Env({}), billing).secret_key == ""
    keys = {"ZSTRIPE_SECRET_KEY": KEY, "ZSTRIPE_WEBHOOK_SECRET": WEBHOOK_SECRET}
    with pytest.raises(SettingError, match="cents"):
        conf.stripe(Env(keys), billing)


def test_a_key_without_the_webhooks_secret_is_refused(settings: Settings) -> None:
    with pytest.raises(SettingError, match="ZSTRIPE_WEBHOOK_SECRET"):
        conf.stripe(Env({"ZSTRIPE_SECRET_KEY": KEY}), settings.BILLING)


def reversed_at_stripe(stripe: Stripe, **fields: Any) -> int:
    """Reverse the transfer; deliver the event twice and return the last status."""
    (transfer,) = stripe.transfers
    transfer |= {"reversed": True, "amount_reversed": transfer["amount"]} | fields
    assert delivered("transfer.reversed", transfer).status == 204
    return delivered("transfer.reversed", transfer).status


def test_a_reversal_after_the_confirmation_makes_it_payable_again(
    stripe: Stripe, payout: Payout
) -> None:
    requests.send(payout.pk, now=RESTED)
    assert reversed_at_stripe(stripe) == 204
    payout.refresh_from_db()
    assert (payout.state, payout.failure) == ("reversed", "Stripe reversed the transfer.")
    assert (operator(), ledger.balance(AccountKind.CASH, None)) == ((0, EARNED, 0), 0)


def test_a_reversal_that_is_heard_of_before_the_transfer_counts_as_well(
    stripe: Stripe, payout: Payout
) -> None:
    stripe.plan[:] = ["unanswered"]
    with pytest.raises(PayoutProviderUnavailable):
        requests.send(payout.pk, now=RESTED)
    assert reversed_at_stripe(stripe) == 204
    assert requests.send(payout.pk, now=RESTED).state == "reversed"
    assert (len(stripe.transfers), operator()) == (1, (0, EARNED, 0))


def test_a_reversal_for_an_erased_organization_is_booked(stripe: Stripe, payout: Payout) -> None:
    requests.send(payout.pk, now=RESTED)
    BillingData().organization_erased(OLGA)
    assert reversed_at_stripe(stripe) == 204
    payout.refresh_from_db()
    assert (payout.state, operator()) == ("reversed", (0, EARNED, 0))


def test_a_reversal_of_a_payment_that_staff_recorded_is_booked(
    stripe: Stripe, payout: Payout, caplog: pytest.LogCaptureFixture
) -> None:
    # The payout is from before the backup, which has not got the one that was paid.
    requests.cancel(OLGA, payout.pk, by="user:olga", now=RESTED)
    lost = {"id": "tr_9", "object": "transfer", "amount": 2500, "currency": "usd"}
    lost |= {"destination": "acct_1Former", "transfer_group": str(uuid4()), "reversed": True}
    assert delivered("transfer.reversed", lost).status == 204
    assert (operator(), "unknown_transfer" in caplog.text) == ((0, EARNED, 0), True)

    facts("runpayouts", "--record", str(OLGA), "--cents", "2500", "--reference", "tr_9")
    assert operator() == (0, 0, 0)
    for _ in range(2):
        assert delivered("transfer.reversed", lost).status == 204
    assert Payout.objects.get(reference="tr_9").state == "reversed"
    assert (operator(), ledger.balance(AccountKind.CASH, None)) == ((0, EARNED, 0), 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"reversed": False, "amount_reversed": 100},
        {"amount": 100},
        {"destination": "acct_somebodyElse"},
        {"transfer_group": "order 17"},
        {"transfer_group": None},
        {"transfer_group": "01a2048c-f077-7117-a3a9-52065e8028db"},
    ],
)
def test_a_reversal_of_something_else_changes_nothing(
    stripe: Stripe, payout: Payout, fields: dict[str, Any]
) -> None:
    requests.send(payout.pk, now=RESTED)
    assert reversed_at_stripe(stripe, **fields) == 204
    payout.refresh_from_db()
    assert (payout.state, operator()) == ("confirmed", (0, 0, 0))
