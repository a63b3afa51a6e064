"""Switching environment: the same sign-in elsewhere, under the same five rules."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from accounts.models import Session, User
from accounts.sessions import refresh
from environments import environments
from tests.cast import Answer, Caller, signed_in

pytestmark = pytest.mark.django_db


def switch(caller: Caller, environment: str = "sandbox", **more: Any) -> Answer:
    body = {"refresh_token": caller.refresh_token, "environment": environment, **more}
    return Caller().post("/v1/auth/switch", body)


def works(caller: Caller) -> bool:
    return caller.get("/v1/whoami").status == 200


def test_switch_answers_tokens_for_the_target(alice: User) -> None:
    caller = signed_in(alice)
    answer = switch(caller)
    assert answer.status == 200
    assert answer.body["environment"] == {"id": "sandbox", "name": "sandbox"}
    who = caller.holding(answer).get("/v1/whoami").body
    assert who["environment"]["id"] == "sandbox"


def test_the_old_session_ends(alice: User) -> None:
    caller = signed_in(alice)
    switch(caller)
    assert not works(caller)


def test_keep_current_leaves_the_old_session_going(alice: User) -> None:
    caller = signed_in(alice)
    other = caller.holding(switch(caller, keep_current=True))
    assert works(caller)
    assert works(other)
    assert caller.refresh().status == 200


def test_one_sign_in_cannot_switch_without_end(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "SWITCHES_PER_HOUR", 3)
    caller = signed_in(alice)
    for _ in range(3):
        assert switch(caller, keep_current=True).status == 200
    answer = switch(caller, keep_current=True)
    assert (answer.status, answer.code) == (429, "switched_too_often")
    assert switch(signed_in(alice)).status == 200
    assert caller.refresh().status == 200


def test_keep_current_does_not_exceed_the_limit_of_sessions(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.sessions.sessions.SESSIONS_PER_USER", 3)
    caller = signed_in(alice)
    for _ in range(5):
        assert switch(caller, keep_current=True).status == 200
    assert Session.objects.filter(user=alice, ended_at=None).count() == 3
    # The one that is to go on is the least recently refreshed, and stays.
    assert works(caller)


def test_keep_current_is_for_another_environment(alice: User) -> None:
    caller = signed_in(alice)
    answer = switch(caller, "live", keep_current=True)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "keep_current")
    assert Session.objects.count() == 1
    assert switch(caller, "live").status == 200


def test_the_new_session_shows_where_it_was_asked_for(alice: User) -> None:
    caller = signed_in(alice)
    Session.objects.update(address="198.51.100.7", agent="Firefox/140")
    body = {"refresh_token": caller.refresh_token, "environment": "sandbox", "keep_current": True}
    assert Caller().post("/v1/auth/switch", body, USER_AGENT="curl/8").status == 200
    shown = caller.get("/v1/auth/sessions").body["results"]
    assert {(row["environment"]["id"], row["address"], row["agent"]) for row in shown} == {
        ("live", "198.51.100.7", "Firefox/140"),
        ("sandbox", "127.0.0.1", "curl/8"),
    }


def test_switch_accepts_a_name(alice: User) -> None:
    environments.create(alice.organization_id, "stage", name="The Stage")
    assert switch(signed_in(alice), "the stage").body["environment"]["id"] == "stage"


def test_switch_inherits_end_and_assurance_and_raises_neither(alice: User) -> None:
    caller = signed_in(alice)
    before = Session.objects.get()
    with time_machine.travel(timezone.now() + timedelta(hours=1)):
        switch(caller)
    after = Session.objects.exclude(pk=before.pk).get()
    assert (after.login_id, after.ends_at, after.auth_time, after.aal, after.amr) == (
        before.login_id,
        before.ends_at,
        before.auth_time,
        before.aal,
        before.amr,
    )


def test_an_unknown_environment_is_404_and_uses_nothing_up(alice: User) -> None:
    caller = signed_in(alice)
    assert switch(caller, "nowhere").code == "environment_not_found"
    assert switch(caller).status == 200


def test_another_organizations_environment_is_404(alice: User, charlie: User) -> None:
    environments.create(charlie.organization_id, "charlies-own")
    assert switch(signed_in(alice), "charlies-own").status == 404


def test_a_repeat_within_the_grace_period_returns_the_same_tokens(alice: User) -> None:
    caller = signed_in(alice)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        first = switch(caller)
        clock.shift(timedelta(seconds=9))
        assert switch(caller).body == first.body


@pytest.mark.django_db(transaction=True)
def test_twenty_parallel_switches_agree(alice: User) -> None:
    caller = signed_in(alice)

    def once(_: int) -> Answer:
        try:
            return switch(caller)
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(once, range(20)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body["refresh_token"] for answer in answers}) == 1
    assert Session.objects.filter(ended_at=None).count() == 1


def test_a_lost_answer_can_be_asked_for_again(alice: User) -> None:
    caller = signed_in(alice)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        lost = caller.holding(switch(caller))
        clock.shift(timedelta(seconds=60))
        found = caller.holding(switch(caller))
        assert works(found)
        assert not works(lost)


def test_a_lost_answer_leaves_a_way_back_by_refresh(alice: User) -> None:
    caller = signed_in(alice)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        lost = caller.holding(switch(caller))
        clock.shift(timedelta(seconds=60))
        found = caller.holding(caller.refresh())
        assert found.get("/v1/whoami").body["environment"]["id"] == "live"
        assert not works(lost)


def test_a_late_refresh_after_a_switch_ends_no_session(alice: User) -> None:
    caller = signed_in(alice)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        other = caller.holding(switch(caller))
        clock.shift(timedelta(seconds=3))
        assert caller.refresh().code == "token_superseded"
        assert works(other)
        ended = other.post("/v1/auth/logout", {"refresh_token": other.refresh_token})
        assert ended.status == 204
        assert caller.refresh().code == "session_revoked"


def test_the_token_of_a_switched_session_is_superseded_until_its_sign_in_ends(alice: User) -> None:
    caller = signed_in(alice)
    other = caller.holding(switch(caller))
    for _ in range(2):
        assert caller.get("/v1/whoami").code == "token_superseded"
        assert works(other)
    other.post("/v1/auth/logout", {"refresh_token": other.refresh_token})
    assert caller.get("/v1/whoami").code == "session_revoked"


@pytest.mark.parametrize("action", ["refresh", "switch"])
def test_a_replayed_token_of_a_switched_session_ends_the_sign_in(alice: User, action: str) -> None:
    caller = signed_in(alice)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        other = caller.holding(switch(caller))
        assert works(other)
        clock.shift(timedelta(seconds=60))
        answer = caller.refresh() if action == "refresh" else switch(caller)
        assert answer.code == "session_revoked"
        assert not works(other)


def test_an_older_generation_cannot_switch(alice: User) -> None:
    caller = signed_in(alice)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        new = caller.holding(caller.refresh())
        assert works(new)
        clock.shift(timedelta(seconds=60))
        assert switch(caller).code == "session_revoked"
        assert not works(new)


def test_a_void_generation_cannot_switch(alice: User) -> None:
    caller = signed_in(alice)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        lost = caller.holding(caller.refresh())
        clock.shift(timedelta(seconds=60))
        moved = caller.holding(switch(caller))
        assert works(moved)
        clock.shift(timedelta(seconds=60))
        assert switch(lost).code == "session_revoked"
        assert not works(moved)
