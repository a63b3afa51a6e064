"""Logout ends the session and its access tokens, and accepts old tokens."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEvent
from tests.cast import Answer, Caller, signed_in

pytestmark = pytest.mark.django_db


def log_out(token: str) -> Answer:
    return Caller().post("/v1/auth/logout", {"refresh_token": token})


def test_logout_kills_the_access_token_on_the_next_request(alice: User) -> None:
    caller = signed_in(alice)
    answer = log_out(caller.refresh_token)
    assert (answer.status, answer.body) == (204, None)
    assert caller.get("/v1/whoami").code == "session_revoked"
    assert caller.refresh().code == "session_revoked"


def test_logout_of_one_session_leaves_the_others(alice: User) -> None:
    first, second = signed_in(alice), signed_in(alice)
    log_out(first.refresh_token)
    assert second.get("/v1/whoami").status == 200


def test_logout_twice_is_204_and_audited_once(alice: User) -> None:
    caller = signed_in(alice)
    assert log_out(caller.refresh_token).status == 204
    assert log_out(caller.refresh_token).status == 204
    assert AuditEvent.objects.filter(tag="api:session:delete").count() == 1


def test_logout_accepts_a_token_of_any_generation(alice: User) -> None:
    old = signed_in(alice)
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        new = old.holding(old.refresh())
        clock.shift(timedelta(seconds=60))
        assert log_out(old.refresh_token).status == 204
        assert new.get("/v1/whoami").status == 401


def test_logout_accepts_an_expired_token(alice: User) -> None:
    caller = signed_in(alice)
    with time_machine.travel(timezone.now() + timedelta(days=8)):
        assert log_out(caller.refresh_token).status == 204


def test_garbage_and_access_tokens_are_401(alice: User) -> None:
    caller = signed_in(alice)
    for token in ["garbage", "a.b.c", caller.access_token, "é" * 10]:
        answer = log_out(token)
        assert (answer.status, answer.code) == (401, "token_invalid")
    assert caller.get("/v1/whoami").status == 200
