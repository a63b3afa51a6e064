"""Quarantined nodes that their operators remove, and of which nothing is left to forfeit."""

from datetime import timedelta

import pytest

from accounts.models import User
from billing import quarantines
from billing.errors import ForfeitRefused
from billing.models.quarantines import Quarantine
from tests.billing.support import NODE, NOW, operator
from tests.billing.test_quarantines import (
    OTHER_NODE,
    brain,
    case,
    earned,
    event,
    listed,
    refund,
    take,
)
from tests.edgecache.api.brain import ScriptedBrain

__all__ = ["brain", "case", "earned"]


def test_the_case_of_a_removed_node_that_was_paid_can_be_closed(
    brain: ScriptedBrain, alice: User
) -> None:
    place = alice.organization_id
    listed(brain, event(place))
    quarantines.record_new(now=NOW)
    case = Quarantine.objects.get()

    def close(*, days: int) -> None:
        when = case.began_at + timedelta(days=days)
        quarantines.forfeit(case.pk, reason="removed", actor="staff:x", now=when)

    with pytest.raises(ForfeitRefused, match="not paid out"):
        close(days=2)
    # What it served in its last hours may not be charged yet.
    listed(brain, event(place), status="")
    with pytest.raises(ForfeitRefused, match="not paid out"):
        close(days=0)
    assert Quarantine.undecided_of(place).exists()
    close(days=1)
    assert not Quarantine.undecided_of(place).exists()


def test_a_refund_of_a_node_of_which_nothing_was_forfeited_leaves_what_was(
    case: Quarantine, brain: ScriptedBrain, alice: User, earned: int
) -> None:
    place = alice.organization_id
    # All that it had earned was paid.
    Quarantine.objects.filter(pk=case.pk).update(forfeited_at=NOW)
    listed(brain, event(place), event(place, 2) | {"node_id": str(OTHER_NODE)})
    quarantines.record_new(now=NOW)
    take(Quarantine.objects.get(event=2))
    assert operator(place) == (earned, 0, earned)
    refund(NODE)
    assert operator(place) == (0, 0, earned)
