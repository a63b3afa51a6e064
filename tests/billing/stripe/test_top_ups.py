"""Credits are booked once for the paid amount, and taken back in any order of events."""

from itertools import permutations
from typing import Any

import pytest

from accounts.models import User
from billing import consumer_credits, ledger
from billing.models.ledger import AccountKind, Journal
from billing.models.topups import TopUp
from billing.money import UCR_PER_CENT
from billing.topups import requests
from tests.billing.stripe.server import Stripe
from tests.billing.stripe.support import delivered
from tests.cast import Answer, signed_in
from tests.commands import facts

PATH = "/v1/balance/top-ups"
COMPLETED = "checkout.session.completed"
BODY = {"amount_cents": 2000}


def begin(user: User, cents: int = 2000) -> Answer:
    return signed_in(user).post(PATH, {"amount_cents": cents})


def paid_cents(user: User) -> int:
    return ledger.balance(AccountKind.PAID, user.organization_id) // UCR_PER_CENT


@pytest.fixture
def session(stripe: Stripe, alice: User) -> dict[str, Any]:
    """Let Alice begin to buy for 20.00; return the session as it is once she has paid."""
    assert begin(alice).status == 201
    return stripe.sessions[0] | {"payment_intent": "pi_1", "payment_status": "paid"}


def test_a_purchase_is_begun_at_stripe_and_books_nothing(stripe: Stripe, alice: User) -> None:
    answer = begin(alice)
    assert answer.body["url"] == "https://checkout.stripe.com/c/pay/cs_0"
    (session,) = stripe.sessions
    assert (session["amount_total"], session["currency"]) == (2000, "usd")
    assert list(stripe.results) == [answer.body["id"]] == [session["metadata"]["top_up"]]
    _, _, params = stripe.requests[-1]
    assert params["success_url"] == "http://localhost:8000/console/usage#top_up=paid"
    assert (paid_cents(alice), Journal.objects.count()) == (0, 0)


def test_an_amount_that_cannot_be_bought_is_refused(stripe: Stripe, alice: User) -> None:
    wrong: list[Any] = [0, 499, 1_000_001, -1, "x", None, 5.5]
    for cents in wrong:
        assert begin(alice, cents).status == 400
        assert stripe.requests == []


def test_without_a_provider_nothing_can_be_bought(alice: User) -> None:
    answer = begin(alice)
    assert (answer.status, answer.code) == (409, "top_ups_unavailable")
    assert not TopUp.objects.exists()


@pytest.mark.parametrize("fault", ["lost", "broken", "rate limit", "other refusal", "nonsense"])
def test_a_provider_that_is_away_is_said(stripe: Stripe, alice: User, fault: str) -> None:
    stripe.plan[:] = [fault]
    answer = begin(alice)
    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    assert "stripe says" not in str(answer.body)
    assert begin(alice).status == 201


def test_purchases_that_are_only_begun_are_limited_by_organization(
    stripe: Stripe, alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MAX_TOP_UPS_AN_HOUR", 1)
    assert begin(alice).status == 201
    answer = begin(alice)
    assert (answer.status, answer.code) == (429, "top_ups_too_often")
    assert begin(charlie).status == 201


def test_a_payment_is_booked_once(stripe: Stripe, alice: User, session: dict[str, Any]) -> None:
    for _ in range(2):
        assert delivered(COMPLETED, session).status == 204
    assert delivered("checkout.session.async_payment_succeeded", session).status == 204
    assert paid_cents(alice) == 2000
    top_up = TopUp.objects.get()
    assert (top_up.payment, top_up.session, top_up.paid_at is None) == ("pi_1", "cs_0", False)


def test_money_that_is_on_its_way_is_booked_when_it_arrives(
    stripe: Stripe, alice: User, session: dict[str, Any]
) -> None:
    delivered(COMPLETED, session | {"payment_status": "unpaid"})
    assert paid_cents(alice) == 0
    delivered("checkout.session.async_payment_succeeded", session)
    assert paid_cents(alice) == 2000


def test_a_payment_is_booked_although_its_session_was_never_answered(
    stripe: Stripe, alice: User
) -> None:
    stripe.plan[:] = ["unanswered"]
    assert begin(alice).status == 503
    session = stripe.sessions[0] | {"payment_intent": "pi_1", "payment_status": "paid"}
    delivered(COMPLETED, session)
    assert paid_cents(alice) == 2000


@pytest.mark.parametrize(
    "fields",
    [
        {"amount_total": 2_000_000},
        {"currency": "idr"},
        {"id": "cs_other"},
        {"metadata": {}},
        {"metadata": None},
        {"metadata": {"top_up": "x", "organization": "1"}},
        {"payment_status": "no_payment_required"},
    ],
)
def test_a_payment_of_something_else_books_nothing(
    stripe: Stripe, alice: User, session: dict[str, Any], fields: dict[str, Any]
) -> None:
    assert delivered(COMPLETED, session | fields).status == 204
    assert Journal.objects.count() == 0


def test_a_payment_is_not_booked_for_another_organization(
    stripe: Stripe, alice: User, charlie: User, session: dict[str, Any]
) -> None:
    metadata = session["metadata"] | {"organization": str(charlie.organization_id)}
    delivered(COMPLETED, session | {"metadata": metadata})
    assert (paid_cents(alice), paid_cents(charlie)) == (0, 0)


def test_one_top_up_is_not_booked_for_two_payments(
    stripe: Stripe, alice: User, session: dict[str, Any]
) -> None:
    for payment in ("pi_1", "pi_2"):
        delivered(COMPLETED, session | {"payment_intent": payment})
    assert paid_cents(alice) == 2000


@pytest.mark.parametrize("fields", [{"account": "acct_1Mallory"}, {"livemode": True}])
def test_events_of_connected_accounts_and_of_the_other_mode_count_for_nothing(
    stripe: Stripe, alice: User, session: dict[str, Any], fields: dict[str, Any]
) -> None:
    assert delivered(COMPLETED, session, **fields).status == 204
    assert paid_cents(alice) == 0


def refund(cents: int) -> tuple[str, dict[str, Any]]:
    charge = {"id": "ch_1", "payment_intent": "pi_1", "amount_refunded": cents}
    return "charge.refunded", charge


def dispute(kind: str, cents: int, status: str = "needs_response") -> tuple[str, dict[str, Any]]:
    fields = {"id": "du_1", "payment_intent": "pi_1", "amount": cents, "status": status}
    return f"charge.dispute.{kind}", fields


@pytest.mark.slow
@pytest.mark.parametrize(
    ("events", "left"),
    [
        ([refund(500), refund(1500)], 500),
        ([dispute("created", 2000), dispute("funds_withdrawn", 2000)], 0),
        ([refund(500), dispute("created", 1500)], 0),
        ([refund(2000), dispute("created", 2000)], 0),
        ([dispute("created", 2000, "warning_needs_response")], 2000),
        ([refund(0)], 2000),
    ],
)
def test_what_is_given_back_is_taken_back_in_any_order(
    stripe: Stripe, alice: User, events: list[tuple[str, dict[str, Any]]], left: int
) -> None:
    for number, order in enumerate(permutations(range(len(events) + 1))):
        # Each order has a payment of its own; each report comes twice.
        begin(alice)
        payment, before = {"payment_intent": f"pi_{number}"}, paid_cents(alice)
        reports = [(COMPLETED, stripe.sessions[-1] | {"payment_status": "paid"} | payment)]
        for kind, thing in events:
            reports.append((kind, thing | payment | {"id": f"{thing['id']}_{number}"}))
        for index in (*order, *reversed(order)):
            assert delivered(*reports[index]).status == 204
        assert paid_cents(alice) - before == left, order


def test_a_refund_of_a_payment_that_staff_booked_takes_its_credits(
    stripe: Stripe, alice: User
) -> None:
    consumer_credits.top_up(
        alice.organization_id, 2000 * UCR_PER_CENT, reference="pi_1", reason="x", actor="command"
    )
    for _ in range(2):
        assert delivered(*refund(1500)).status == 204
    assert paid_cents(alice) == 500


def test_a_refund_of_another_payment_takes_nothing(
    stripe: Stripe, alice: User, session: dict[str, Any]
) -> None:
    delivered(COMPLETED, session)
    kind, charge = refund(2000)
    for payment in ("pi_other", None):
        assert delivered(kind, charge | {"payment_intent": payment}).status == 204
    assert paid_cents(alice) == 2000


def test_what_was_given_back_before_staff_booked_the_payment_is_taken_back(
    stripe: Stripe, alice: User
) -> None:
    # After a restore: the payment is not known, and its dispute arrives.
    assert delivered(*dispute("created", 1500)).status == 204
    words = (str(alice.organization_id), "2000000", "--paid", "--reference", "pi_1")
    for _ in range(2):
        booked = facts("grantcredits", *words, "--reason", "restore")
        assert booked["paid_ucr"] == 500 * UCR_PER_CENT
    assert paid_cents(alice) == 500
