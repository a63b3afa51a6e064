"""After a restore nothing is paid before both sides agree."""

import pytest

from edgecache.billing.errors import PayoutRefused
from edgecache.billing.models import Payout
from edgecache.billing.payouts import payouts, reconciliation
from tests.commands import facts, refused
from tests.edgecache.billing.payouts.test_payouts import CENT, RESTED, Bank, bank, earn, requested
from tests.edgecache.billing.support import OLGA, operator

__all__ = ["bank"]


def _restored(payout: Payout) -> Payout:
    """Bring a payout back as it was when it was requested."""
    fields = {"state": Payout.State.DEBITED, "attempts": 0, "reference": ""}
    Payout.objects.filter(pk=payout.pk).update(**fields)
    assert reconciliation.begin() == 1
    return Payout.objects.get(pk=payout.pk)


@pytest.mark.parametrize("was_sent", [True, False])
def test_a_restored_payout_is_paid_once(bank: type[Bank], *, was_sent: bool) -> None:
    earn(250 * CENT)
    payout = requested()
    if was_sent:
        payouts.send(payout.pk, now=RESTED)
    _restored(payout)
    # Neither the task nor the operator moves it.
    assert payouts.send(payout.pk, now=RESTED).state == Payout.State.DEBITED
    with pytest.raises(PayoutRefused):
        payouts.cancel(OLGA, payout.pk, by="user:olga", now=RESTED)
    assert refused("runpayouts", "--reconciled")[1]["code"] == "payout_refused"

    [open_now] = facts("runpayouts", "--reconcile")["payouts"] or [None]
    assert (open_now is None) == was_sent
    payouts.send(payout.pk, now=RESTED)
    assert bank.paid == {payout.pk: 250}
    assert operator() == (0, 0, 0)


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
    facts("runpayouts", "--reconciled")
    assert requested().amount_cents == 200
