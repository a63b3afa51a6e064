"""Recovery under races, cut off, and beside everything else that one person does."""

from functools import partial
from itertools import pairwise

import pytest

from accounts.models import Session, User
from recovery.models import Recovery
from tests.cast import PASSWORD, Caller, signed_in
from tests.parallel import at_once
from tests.recovery.steps.test_lost_factor import (
    LATER,
    cancel,
    cancel_token,
    delayed,
    finish,
    in_time,
)
from tests.recovery.support import (
    NEW_PASSWORD,
    complete,
    initiate,
    log_in,
    mailed_token,
    proven,
    verify,
)
from tests.twofactor.holder import with_totp
from tests.twofactor.test_attacks import cut_at
from twofactor.models import Factor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_of_a_concurrent_completion_and_cancellation_one_succeeds(alice: User) -> None:
    for _ in range(3):
        Factor.objects.all().delete()
        holder = with_totp(alice)
        begun = delayed(holder.user)
        token = cancel_token()
        with in_time(LATER):
            finished, cancelled = at_once(partial(finish, begun), partial(cancel, token))
        assert sorted([finished.status, cancelled.status]) in ([200, 410], [204, 410])
        assert Factor.objects.exists() == (cancelled.status == 204)


def test_a_sign_in_at_the_moment_of_a_recovery_does_not_outlive_it(alice: User) -> None:
    """A sign-in with the old password comes before the recovery and ends with it, or fails."""
    passwords = [PASSWORD, *(f"{NEW_PASSWORD} {number}" for number in range(4))]
    for old, new in pairwise(passwords):
        completed, entered = at_once(
            partial(complete, proven(alice), new), partial(log_in, alice, old)
        )
        assert completed.status == 204
        if entered.status == 200:
            assert Caller(entered.body["access_token"]).get("/v1/whoami").code == "session_revoked"
        assert not Session.objects.filter(ended_at=None).exists()


def test_a_refresh_or_switch_at_the_moment_of_a_recovery_does_not_outlive_it(alice: User) -> None:
    for number in range(4):
        caller = signed_in(alice)
        verified = proven(alice)
        body = {
            "refresh_token": caller.refresh_token,
            "environment": "sandbox",
            "keep_current": bool(number % 2),
        }
        at_once(
            partial(complete, verified, f"{NEW_PASSWORD} {number}"),
            partial(caller.post, "/v1/auth/switch", body),
            caller.refresh,
        )
        assert not Session.objects.filter(ended_at=None).exists()


def test_a_lost_database_during_a_recovery_uses_no_attempt_up(alice: User) -> None:
    started = initiate(alice)
    token = mailed_token()
    for number in range(1, 30):
        answer, was_cut = cut_at(number, partial(verify, started, token))
        if not was_cut:
            break
        assert (answer.status, answer.code) == (503, "database_unavailable")
        assert Recovery.objects.get().verified_at is None
    assert answer.status == 200
    for number in range(1, 40):
        completed, was_cut = cut_at(number, partial(complete, answer))
        if not was_cut:
            break
        assert (completed.status, completed.code) == (503, "database_unavailable")
        assert log_in(alice).status == 200
    assert completed.status == 204
    assert log_in(alice, NEW_PASSWORD).status == 200
