"""The refresh chain: lossless for its owner; theft ends the sign-in."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from accounts.models import Session, User
from audit.models import AuditEvent
from environments.models import Environment
from outbox.models import Delivery
from tests.cast import Answer, Caller, session_of, signed_in

pytestmark = pytest.mark.django_db


def works(caller: Caller) -> bool:
    return caller.get("/v1/whoami").status == 200


def test_refresh_rotates_both_tokens_and_carries_no_environment(alice: User) -> None:
    old = signed_in(alice)
    with time_machine.travel(timezone.now() + timedelta(seconds=60)):
        answer = old.refresh()
    assert set(answer.body) == {
        "access_token",
        "refresh_token",
        "access_expires_at",
        "refresh_expires_at",
    }
    assert answer.body["access_token"] != old.access_token
    assert answer.body["refresh_token"] != old.refresh_token


def test_the_old_access_token_ends_with_the_grace(alice: User) -> None:
    old = signed_in(alice)
    start = timezone.now()
    with time_machine.travel(start + timedelta(seconds=20), tick=False) as clock:
        new = old.holding(old.refresh())
        clock.shift(timedelta(seconds=10))
        assert works(old)
        clock.shift(timedelta(seconds=1))
        assert old.get("/v1/whoami").code == "token_superseded"
        assert works(new)
        new.post("/v1/auth/logout", {"refresh_token": new.refresh_token})
        assert old.get("/v1/whoami").code == "session_revoked"


def test_a_repeat_within_the_grace_period_returns_the_same_tokens(alice: User) -> None:
    caller = signed_in(alice)
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        first = caller.refresh()
        clock.shift(timedelta(seconds=9))
        assert caller.refresh().body == first.body


@pytest.mark.django_db(transaction=True)
def test_twenty_parallel_refreshes_all_succeed_and_end_on_one_generation(alice: User) -> None:
    caller = signed_in(alice)

    def once(_: int) -> Answer:
        try:
            return caller.refresh()
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(once, range(20)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body["refresh_token"] for answer in answers}) == 1
    assert Session.objects.get().generation == 2


@pytest.mark.parametrize("seconds", [1, 30, 600])
def test_a_lost_response_does_not_count_as_theft(alice: User, seconds: int) -> None:
    caller = signed_in(alice)
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        caller.refresh()
        clock.shift(timedelta(seconds=seconds))
        found = caller.holding(caller.refresh())
        assert works(found)
        clock.shift(timedelta(seconds=30))
        assert found.refresh().status == 200


def test_the_answer_that_was_lost_is_void_afterwards(alice: User) -> None:
    caller = signed_in(alice)
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        lost = caller.holding(caller.refresh())
        clock.shift(timedelta(seconds=60))
        found = caller.holding(caller.refresh())
        assert lost.refresh().code == "session_revoked"
        # A client that has the lost answer is a thief: the whole sign-in has ended.
        assert not works(found)


def test_theft_is_detected_when_the_owner_refreshes_after_the_thief(alice: User) -> None:
    owner = thief = signed_in(alice)
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        stolen = thief.holding(thief.refresh())
        assert works(stolen)
        clock.shift(timedelta(seconds=60))
        assert owner.refresh().code == "session_revoked"
        assert not works(stolen)
        assert stolen.refresh().status == 401


def test_theft_is_detected_when_the_thief_refreshes_after_the_owner(alice: User) -> None:
    owner = thief = signed_in(alice)
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        own = owner.holding(owner.refresh())
        assert works(own)
        clock.shift(timedelta(seconds=60))
        assert thief.refresh().code == "session_revoked"
        assert not works(own)
    event = AuditEvent.objects.get(tag="api:session:refresh_reuse_detected")
    assert (event.actor_id, event.outcome) == (alice.pk, "refused")


@pytest.mark.parametrize("path", ["/v1/auth/refresh", "/v1/auth/switch"])
def test_a_token_newer_than_the_database_ends_its_own_session_quietly(
    alice: User, path: str
) -> None:
    caller, elsewhere = signed_in(alice), signed_in(alice)
    body = {"refresh_token": caller.refresh_token}
    further = caller.holding(
        caller.post("/v1/auth/switch", {**body, "environment": "sandbox", "keep_current": True})
    )
    newer = caller.holding(caller.refresh())
    # A failover that loses the rotation.
    lost = Session.objects.get(generation=2)
    lost.generation, lost.previous_generation = 1, 0
    lost.save()
    mails = Delivery.objects.count()
    sent = {"refresh_token": newer.refresh_token}
    if path.endswith("switch"):
        sent["environment"] = "sandbox"
    assert newer.post(path, sent).code == "session_revoked"
    assert not works(newer)
    assert works(elsewhere)
    assert works(further)
    assert Delivery.objects.count() == mails
    event = AuditEvent.objects.get(tag="api:session:rotation_lost")
    assert (event.actor_id, event.outcome) == (alice.pk, "refused")


def test_a_stolen_token_is_detected_at_the_second_rotation(alice: User) -> None:
    owner = thief = signed_in(alice)
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        # The thief refreshes and uses nothing; the owner's late return looks like a lost answer.
        stolen = thief.holding(thief.refresh())
        clock.shift(timedelta(seconds=60))
        own = owner.holding(owner.refresh())
        assert works(own)
        assert not works(stolen)
        assert stolen.refresh().code == "session_revoked"
        assert not works(own)


def test_a_replay_ends_every_session_of_the_sign_in_and_no_other(alice: User) -> None:
    caller, elsewhere = signed_in(alice), signed_in(alice)
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        sibling = caller.holding(
            caller.post(
                "/v1/auth/switch",
                {
                    "refresh_token": caller.refresh_token,
                    "environment": "sandbox",
                    "keep_current": True,
                },
            )
        )
        new = caller.holding(caller.refresh())
        assert works(new)
        clock.shift(timedelta(seconds=60))
        assert caller.refresh().status == 401
        assert not works(new)
        assert not works(sibling)
        assert works(elsewhere)


def test_a_refresh_token_ends_with_the_sign_in(alice: User) -> None:
    caller = signed_in(alice)
    ends = int(Session.objects.get().ends_at.timestamp())
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        for _ in range(5):
            clock.shift(timedelta(days=5, hours=23))
            answer = caller.refresh()
            caller = caller.holding(answer)
        assert answer.body["refresh_expires_at"] == ends
        clock.shift(timedelta(days=1))
        assert caller.refresh().code == "token_expired"


def test_a_disabled_user_cannot_refresh(alice: User) -> None:
    caller = signed_in(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert caller.refresh().code == "session_revoked"


def test_a_session_in_a_deleted_environment_cannot_be_refreshed(alice: User) -> None:
    caller = signed_in(alice, "sandbox")
    Environment.objects.filter(slug="sandbox").update(deleted_at=timezone.now())
    assert caller.refresh().code == "session_revoked"


def test_the_least_recent_session_ends_when_there_are_too_many(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.sessions.sessions.SESSIONS_PER_USER", 3)
    callers = [signed_in(alice) for _ in range(5)]
    assert [works(caller) for caller in callers] == [False, False, True, True, True]
    assert session_of(alice).ended_at is None
