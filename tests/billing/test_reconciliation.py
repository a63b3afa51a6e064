"""After a restore nothing is paid before both sides agree."""

import pytest

from audit.models import AuditEvent
from billing.errors import PayoutRefused
from billing.models.payouts import Payout
from billing.payouts import reconciliation, requests
from tests.billing.payouts.test_payouts import CENT, RESTED, Bank, bank, earn, requested
from tests.billing.support import OLGA, operator
from tests.commands import facts, refused

__all__ = ["bank"]


def _restored(payout: Payout) -> Payout:
    """Restore a payout to its state at the request."""
    fields = {"state": Payout.State.DEBITED, "attempts": 0, "reference": ""}
    Payout.objects.filter(pk=payout.pk).update(**fields)
    assert reconciliation.begin() == 1
    return Payout.objects.get(pk=payout.pk)


def test_a_restored_payout_that_was_paid_is_confirmed(bank: type[Bank]) -> None:
    earn(250 * CENT)
    payout = requested()
    requests.send(payout.pk, now=RESTED)
    _restored(payout)
    # Neither the task nor the operator moves it.
    assert requests.send(payout.pk, now=RESTED).state == Payout.State.DEBITED
    with pytest.raises(PayoutRefused):
        requests.cancel(OLGA, payout.pk, by="user:olga", now=RESTED)
    assert refused("runpayouts", "--reconciled")[1]["code"] == "payout_refused"

    assert facts("runpayouts", "--reconcile")["payouts"] == []
    payout.refresh_from_db()
    assert (payout.state, bank.paid) == (Payout.State.CONFIRMED, {payout.pk: 250})
    assert operator() == (0, 0, 0)


@pytest.mark.parametrize("hold_reason", ["", requests.QUARANTINED])
def test_what_was_reversed_and_paid_since_the_backup_is_not_paid_again(
    bank: type[Bank], hold_reason: str
) -> None:
    earn(250 * CENT)
    # The operator cancelled it after the backup, and was paid by another payout, which is lost.
    payout = requested()
    Payout.objects.update(hold_reason=hold_reason)
    assert reconciliation.begin() == 1
    requests.release_cleared()

    assert facts("runpayouts", "--reconcile")["payouts"] == []
    requests.send(payout.pk, now=RESTED)
    payout.refresh_from_db()
    assert (payout.state, bank.paid, operator()) == ("reversed", {}, (0, 250 * CENT, 0))
    facts("runpayouts", "--record", str(OLGA), "--cents", "250", "--reference", "tr_9")
    facts("runpayouts", "--reconciled")
    with pytest.raises(PayoutRefused, match="0 cents are payable"):
        requested()


def test_a_hold_of_staff_outlasts_a_restore(bank: type[Bank]) -> None:
    earn(250 * CENT)
    payout = requested()
    requests.hold(payout.pk, reason="being checked")
    assert reconciliation.begin() == 0
    [row] = facts("runpayouts", "--reconcile")["payouts"]
    assert (row["hold_reason"], requests.send(payout.pk, now=RESTED).state) == (
        "being checked",
        "debited",
    )


def test_what_staff_held_and_was_paid_otherwise_since_the_backup_is_not_paid_again(
    bank: type[Bank],
) -> None:
    earn(250 * CENT)
    # It was taken back after the backup, and paid by another payout, which is lost.
    payout = requested()
    requests.hold(payout.pk, reason="being checked")
    assert reconciliation.begin() == 0
    facts("runpayouts", "--reconciled")
    record = ("runpayouts", "--record", str(OLGA), "--cents", "250", "--reference", "tr_9")
    assert refused(*record)[1]["code"] == "payout_refused"

    [row] = facts("runpayouts", "--release", str(payout.pk))["payouts"]
    requests.send(payout.pk, now=RESTED)
    assert (row["hold_reason"], bank.paid) == (reconciliation.REASON, {})
    assert refused("runpayouts", "--release", str(payout.pk))[1]["code"] == "payout_refused"
    assert facts("runpayouts", "--reconcile")["payouts"] == []
    facts(*record)
    payout.refresh_from_db()
    assert (payout.state, bank.paid, operator()) == ("reversed", {}, (0, 0, 0))


def test_what_staff_held_and_approved_since_the_backup_is_confirmed(bank: type[Bank]) -> None:
    earn(250 * CENT)
    payout = requested()
    requests.send(payout.pk, now=RESTED)
    fields = {"state": Payout.State.DEBITED, "attempts": 0, "hold_reason": "being checked"}
    Payout.objects.filter(pk=payout.pk).update(**fields)
    assert reconciliation.begin() == 0
    facts("runpayouts", "--release", str(payout.pk))
    assert facts("runpayouts", "--reconcile")["payouts"] == []
    payout.refresh_from_db()
    assert (payout.state, payout.hold_reason) == (Payout.State.CONFIRMED, "")


def test_no_payout_is_requested_before_all_is_accounted_for(bank: type[Bank]) -> None:
    # The backup is from before the payout, which was paid.
    earn(250 * CENT)
    assert reconciliation.begin() == 0
    with pytest.raises(PayoutRefused):
        requested()
    words = ("--record", str(OLGA), "--cents", "200", "--reference", "tr_9")
    for _ in range(2):
        facts("runpayouts", *words)
    assert refused("runpayouts", *words[:2])[1]["code"] == "record_incomplete"
    earn(150 * CENT)
    for _ in range(2):
        facts("runpayouts", "--reconciled", "--reason", "compared with the bank")
    event = AuditEvent.objects.get(tag="admin:payout:reconcile")
    assert (event.actor, event.data) == ("command", {"reason": "compared with the bank"})
    assert requested().amount_cents == 200


def test_a_payment_that_was_recorded_with_a_wrong_amount_is_corrected(bank: type[Bank]) -> None:
    earn(250 * CENT)
    words = ("runpayouts", "--record", str(OLGA), "--reference", "tr_9", "--cents")
    facts(*words, "25")
    assert refused(*words, "250")[1]["code"] == "payout_refused"
    assert operator() == (0, 225 * CENT, 0)
    facts("runpayouts", "--failed", str(Payout.objects.get().pk), "--reason", "typed wrong")
    for _ in range(2):
        facts(*words, "250")
    assert operator() == (0, 0, 0)
    # A payout that the platform sent is its provider's to take back.
    earn(100 * CENT)
    payout = requested()
    for _ in range(2):
        requests.send(payout.pk, now=RESTED)
    assert refused("runpayouts", "--failed", str(payout.pk))[1]["code"] == "payout_refused"
