"""Signing in with a second factor: nothing is open before it was proven, on any way in."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from accounts.models import Session, User
from tests.cast import Caller, signed_in
from tests.rules.routes import api_routes
from tests.twofactor.holder import Holder, ask, log_in, pending, reply, set_up, with_totp
from twofactor.models import Factor

pytestmark = pytest.mark.django_db


def test_a_login_without_a_factor_is_authenticated(alice: User) -> None:
    assert log_in().body["status"] == "authenticated"


def test_a_login_with_a_factor_asks_for_it(holder: Holder) -> None:
    body = log_in().body
    assert set(body) == {
        "status",
        "mfa_token",
        "mfa_expires_at",
        "methods",
        "trusted_device_allowed",
    }
    assert body["status"] == "mfa_required"
    assert body["methods"] == [
        {"method": "totp", "label": "Authenticator app", "default": True},
        {"method": "backup_code", "label": "Backup code", "default": False},
    ]


def test_the_right_code_gives_the_token_pair(holder: Holder) -> None:
    challenge = ask(pending(log_in()))
    assert challenge.status == 200
    assert set(challenge.body) == {
        "challenge_id",
        "method",
        "methods",
        "expires_at",
        "attempts_left",
        "delivery_hint",
    }
    answer = reply(challenge, holder.code())
    assert answer.status == 200
    assert answer.body["status"] == "authenticated"
    assert answer.body["environment"]["id"] == "live"
    who = Caller(answer.body["access_token"]).get("/v1/whoami").body
    assert (who["aal"], who["amr"]) == (2, ["pwd", "otp", "mfa"])


def test_a_backup_code_signs_in(holder: Holder) -> None:
    challenge = ask(pending(log_in()), "backup_code")
    assert reply(challenge, holder.backup_codes[0].lower()).status == 200


def test_the_mfa_token_opens_nothing_but_challenge_and_status(holder: Holder) -> None:
    caller = pending(log_in())
    open_to_it = set()
    for route in api_routes():
        path = route.filled(dict.fromkeys(route.placeholders, "x"))
        for method in route.methods:
            if route.access_of(method).kind == "public":
                continue
            answer = caller.call(method, path, {})
            if (answer.body or {}).get("code") != "token_invalid":
                open_to_it.add(route.path)
    assert open_to_it == {"v1/auth/2fa/status", "v1/auth/2fa/challenge"}


def test_the_mfa_token_is_not_a_refresh_token(holder: Holder) -> None:
    token = log_in().body["mfa_token"]
    assert Caller(refresh_token=token).refresh().code == "token_invalid"


def test_an_access_token_of_another_cannot_answer(holder: Holder, charlie: User) -> None:
    challenge = ask(pending(log_in()))
    path = f"/v1/auth/2fa/challenge/{challenge.body['challenge_id']}/verify"
    answer = signed_in(charlie).post(path, {"code": holder.code()})
    assert (answer.status, answer.code) == (410, "challenge_gone")
    assert reply(challenge, holder.code()).status == 200


def test_a_pending_sign_in_leads_to_one_session(holder: Holder) -> None:
    caller = pending(log_in())
    first = ask(caller)
    second = ask(caller, "backup_code")
    assert reply(first, holder.code()).status == 200
    answer = reply(second, holder.backup_codes[0])
    assert (answer.status, answer.code) == (410, "challenge_gone")


def test_the_mfa_token_ends_with_its_sign_in_and_after_ten_minutes(holder: Holder) -> None:
    caller, other = pending(log_in()), pending(log_in())
    reply(ask(caller), holder.code())
    assert ask(caller).code == "token_expired"
    with time_machine.travel(timezone.now() + timedelta(minutes=10, seconds=1)):
        assert ask(other).code == "token_expired"


@pytest.mark.django_db(transaction=True)
def test_one_challenge_answered_in_parallel_gives_one_session(alice: User) -> None:
    holder = with_totp(alice)
    challenge = ask(pending(log_in()))
    code = holder.code()
    before = Session.objects.count()

    def once(_: int) -> int:
        try:
            return reply(challenge, code).status
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(once, range(8)))
    assert statuses == [200, *[410] * 7]
    assert Session.objects.count() == before + 1


def test_a_disabled_user_cannot_answer(holder: Holder) -> None:
    challenge = ask(pending(log_in()))
    User.objects.update(is_active=False)
    assert reply(challenge, holder.code()).code == "challenge_gone"


def test_set_up_needs_the_factor_that_is_there(holder: Holder) -> None:
    """An attacker with the password alone must not add a factor of his own."""
    fresh = signed_in(holder.user)
    answer = set_up(fresh)
    assert (answer.status, answer.code) == (403, "step_up_required")
    assert answer.body["proof"] == "second_factor"
    assert Factor.objects.filter(method="totp").count() == 1
