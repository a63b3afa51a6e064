"""Payouts of an operator with a quarantined node: they wait, and do not escape a forfeiture."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from accounts.models import User
from billing import holds, quarantines
from billing.errors import ForfeitRefused, PayoutRefused
from billing.models.payouts import Payout, PayoutMethod
from billing.models.quarantines import Quarantine
from billing.payouts import manual, methods, reconciliation, requests
from billing.payouts.providers import PayoutOutcome, ProviderAnswer
from billing.usage import charges_and_shares
from tests.billing.payouts.test_payouts import ACCOUNT, CENT, RESTED, Bank
from tests.billing.support import NODE, NOW, line, operator, store
from tests.billing.test_quarantines import (
    CONSUMER,
    OTHER_NODE,
    brain,
    decide,
    earned,
    event,
    listed,
    take,
)
from tests.commands import facts
from tests.edgecache.api.brain import ScriptedBrain

__all__ = ["brain", "earned"]

BANK = f"{Bank.__module__}.Bank"
SEND = "billing.tasks.send_payout"
MANUAL = "billing.payouts.manual.Manual"


@pytest.fixture
def place(alice: User, settings: Settings, earned: int) -> int:
    """Return Alice's organization; what its two nodes earned is payable through a bank."""
    settings.PAYOUT_METHODS = {"bank": BANK, "manual": MANUAL}
    settings.BILLING = replace(settings.BILLING, payout_minimum_cents=1, hold_days=0)
    Bank.paid.clear()
    Bank.plan.clear()
    methods.replace(alice.organization_id, "bank", ACCOUNT, by="x", now=NOW)
    holds.release(alice.organization_id, now=RESTED + timedelta(days=9999))
    return alice.organization_id


def serve(place: int, node: UUID) -> None:
    """Let a node earn as much as each did before."""
    served = {"operator_id": place, "bytes_served": 10**9, "node_id": str(node)}
    store(line(CONSUMER, **served))
    charges_and_shares.settle()


def requested(place: int) -> Payout:
    return requests.request(place, by="x", now=RESTED)


def quarantined(brain: ScriptedBrain, place: int) -> Quarantine:
    """Quarantine Alice's node."""
    listed(brain, event(place))
    quarantines.record_new(now=NOW)
    return Quarantine.objects.get()


def state_of(payout: Payout) -> str:
    """Return what became of a payout."""
    payout.refresh_from_db()
    return payout.state


def test_a_requested_payout_does_not_escape_a_forfeiture(
    brain: ScriptedBrain, place: int, earned: int
) -> None:
    payout = requested(place)
    case = quarantined(brain, place)
    assert take(case).forfeited_ucr == earned
    assert (state_of(payout), operator(place)) == ("reversed", (0, earned, earned))
    # The other node's earnings can be requested again.
    assert requested(place).amount_cents == earned // CENT


def test_a_payout_of_before_a_restore_does_not_escape_a_forfeiture(
    brain: ScriptedBrain, place: int, earned: int
) -> None:
    payout = requested(place)
    case = quarantined(brain, place)
    reconciliation.begin()
    with pytest.raises(ForfeitRefused, match="reconcile"):
        take(case)
    # The bank does not know it.
    reconciliation.ask_providers(now=RESTED)
    assert take(case).forfeited_ucr == earned
    assert (state_of(payout), operator(place)) == ("reversed", (0, earned, earned))


def confirmed(place: int) -> Payout:
    """Request a payout and let the bank pay it."""
    payout = requested(place)
    for _ in range(2):
        requests.send(payout.pk, now=RESTED)
    return payout


def test_what_was_paid_out_is_not_taken_from_other_nodes(
    brain: ScriptedBrain, place: int, earned: int
) -> None:
    assert state_of(confirmed(place)) == "confirmed"
    serve(place, OTHER_NODE)
    case = quarantined(brain, place)
    with pytest.raises(ForfeitRefused, match="no earnings that are not paid out"):
        take(case)
    # What the node earns after the payout is its own to lose.
    serve(place, NODE)
    assert take(case).forfeited_ucr == earned
    assert operator(place) == (earned, 2 * earned % CENT, earned)


def test_a_payout_that_came_back_is_taken_as_if_it_had_not_been_paid(
    brain: ScriptedBrain, place: int, earned: int
) -> None:
    payout = confirmed(place)
    refusal = ProviderAnswer(PayoutOutcome.REFUSED, failure="returned")
    requests.settle_answer(payout.pk, refusal, now=RESTED)
    assert take(quarantined(brain, place)).forfeited_ucr == earned


def test_what_a_payout_left_in_the_hold_is_taken(
    brain: ScriptedBrain, place: int, earned: int, settings: Settings
) -> None:
    settings.BILLING = replace(settings.BILLING, hold_days=30)
    serve(place, NODE)
    confirmed(place)
    assert operator(place)[0] == earned
    assert take(quarantined(brain, place)).forfeited_ucr >= earned
    assert operator(place)[0] == 0


def test_a_payout_that_is_requested_beside_the_record_of_a_quarantine_is_held(
    brain: ScriptedBrain, place: int
) -> None:
    payout = requested(place)
    quarantined(brain, place)
    # As if each transaction had begun before the other was committed.
    Payout.objects.update(hold_reason="")
    assert requests.send(payout.pk, now=RESTED).hold_reason == "a node is quarantined"
    assert (state_of(payout), Bank.paid) == ("debited", {})
    # Nor can staff let it go while they have not decided.
    with pytest.raises(PayoutRefused, match="decide about it first"):
        requests.hold(payout.pk, reason="")


@pytest.mark.parametrize("is_approved", [True, False])
def test_a_payout_goes_on_when_its_quarantine_is_over(
    brain: ScriptedBrain, place: int, *, is_approved: bool
) -> None:
    payout = requested(place)
    case = quarantined(brain, place)
    requests.send(payout.pk, now=RESTED)
    if not is_approved:
        quarantines.appeal(place, case.pk, "please", by="x", now=NOW)
        decide(case, is_granted=True)
    listed(brain, status="active" if is_approved else "quarantined")
    queued = ProcrastinateJob.objects.filter(task_name=SEND).count()
    quarantines.record_new(now=NOW)
    assert ProcrastinateJob.objects.filter(task_name=SEND).count() == queued + 1
    assert requests.send(payout.pk, now=RESTED).state == "sent"


def test_a_hold_of_an_older_release_ends_and_one_of_staff_does_not(
    brain: ScriptedBrain, place: int
) -> None:
    payout = requested(place)
    listed(brain)
    for reason, then in ((f"node {NODE} is quarantined", ""), ("being checked", "being checked")):
        Payout.objects.update(hold_reason=reason)
        quarantines.record_new(now=NOW)
        payout.refresh_from_db()
        assert payout.hold_reason == then


def test_a_payout_waits_for_all_quarantines(brain: ScriptedBrain, place: int) -> None:
    payout = requested(place)
    quarantined(brain, place)
    second = event(place, 2) | {"node_id": str(OTHER_NODE)}
    listed(brain, second, status="active")
    quarantines.record_new(now=NOW)
    assert requests.send(payout.pk, now=RESTED).hold_reason == requests.QUARANTINED


@pytest.fixture
def by_hand(place: int) -> Payout:
    """Return a payout that staff has to pay: it is ``sent`` immediately."""
    methods.replace(place, "manual", ACCOUNT, by="x", now=NOW)
    return requests.send(requested(place).pk, now=RESTED)


def test_a_payout_by_hand_is_held_until_staff_pays_it(
    brain: ScriptedBrain, place: int, by_hand: Payout
) -> None:
    quarantined(brain, place)
    paid = ProviderAnswer(PayoutOutcome.CONFIRMED)
    with pytest.raises(PayoutRefused, match="held"):
        manual.settle(by_hand.pk, paid, now=RESTED)
    (row,) = facts("runpayouts", "--csv")["payouts"]
    assert (row["state"], row["hold_reason"]) == ("sent", "a node is quarantined")
    # If the bank had paid it before, staff says so.
    requests.hold(by_hand.pk, reason="")
    assert manual.settle(by_hand.pk, paid, now=RESTED).state == "confirmed"


def test_a_payout_by_hand_is_marked_before_a_forfeiture(
    brain: ScriptedBrain, place: int, by_hand: Payout, earned: int
) -> None:
    case = quarantined(brain, place)
    with pytest.raises(ForfeitRefused, match="as paid or as failed"):
        take(case)
    manual.settle(by_hand.pk, ProviderAnswer(PayoutOutcome.REFUSED, failure="stopped"), now=RESTED)
    assert take(case).forfeited_ucr == earned


def test_staff_hold_a_payout_by_hand_but_none_that_a_provider_has(
    place: int, by_hand: Payout
) -> None:
    assert requests.hold(by_hand.pk, reason="odd").hold_reason == "odd"
    PayoutMethod.objects.update(kind="bank")
    requests.hold(by_hand.pk, reason="")
    with pytest.raises(PayoutRefused, match="has been sent"):
        requests.hold(by_hand.pk, reason="odd")
