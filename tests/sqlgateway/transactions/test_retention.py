"""How long an ended transaction can be asked about, and of how many; what an open one holds."""

import traceback
from collections.abc import Callable
from datetime import timedelta
from unittest.mock import patch

import pytest
import time_machine
from django.utils import timezone

from common.errors import PlatformError
from sqlgateway import tasks
from sqlgateway.models import InteractiveTransaction
from sqlgateway.transactions import operations
from sqlgateway.transactions.open_transactions import OPEN_TRANSACTIONS
from tests.cast import Caller
from tests.sqlgateway.transactions.support import begin


@pytest.fixture
def admin(signed_in_as: Callable[[str], Caller]) -> Caller:
    """Return an admin."""
    return signed_in_as("admin")


def kept() -> set[str]:
    """Return the ids of all transactions."""
    found = InteractiveTransaction.objects.values_list("pk", flat=True)
    return {str(pk) for pk in found}


def test_a_rollback_is_forgotten_after_minutes_and_a_commit_after_an_hour(admin: Caller) -> None:
    rolled_back, committed, abandoned = begin(admin), begin(admin), begin(admin)
    rolled_back.roll_back()
    committed.commit()
    tasks.forget_transactions(0)
    assert kept() == {rolled_back.id, committed.id, abandoned.id}
    begun_at = timezone.now()
    with time_machine.travel(begun_at + timedelta(minutes=7)):
        tasks.forget_transactions(0)
    assert kept() == {committed.id}
    with time_machine.travel(begun_at + timedelta(minutes=62)):
        tasks.forget_transactions(0)
    assert kept() == set()


def test_a_loop_of_begin_and_rollback_cannot_grow_the_table(admin: Caller) -> None:
    committed = begin(admin)
    committed.commit()
    with patch.object(operations, "KEEP_PER_ENVIRONMENT", 3):
        ended = []
        for _ in range(6):
            ended.append(begin(admin))
            ended[-1].roll_back()
        last = begin(admin)
    assert kept() == {committed.id, *(one.id for one in ended[-2:]), last.id}
    assert committed.commit().status == 200


def test_a_repeated_error_does_not_hold_the_frames_of_its_repetitions(admin: Caller) -> None:
    ours = begin(admin)
    ours.run("SELECT nonesuch")
    frames = []

    for _ in range(3):
        assert ours.send(1, "SELECT nonesuch").body["sqlstate"] == "42703"
        error = OPEN_TRANSACTIONS._open[ours.id].answer
        assert isinstance(error, PlatformError)
        frames.append(len(list(traceback.walk_tb(error.__traceback__))))

    assert len(set(frames)) == 1
