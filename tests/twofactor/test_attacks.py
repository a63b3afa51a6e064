"""Attacks on the second factor: concurrent, interrupted, and by probing."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Session, User
from audit.models import AuditEvent
from common.models import Throttle
from environments.models import Organization
from tests import inbox
from tests.cast import PASSWORD, Answer, Caller, member, signed_in
from tests.parallel import at_once
from tests.twofactor.holder import Holder, ask, log_in, pending, reply, with_totp
from tests.twofactor.webauthn.authenticator import Authenticator
from tests.twofactor.webauthn.holder import begin_sign_in, end_sign_in, with_passkey
from twofactor.models import Challenge, Enrolment, Factor, PendingSignIn, TrustedDevice

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.mark.django_db(transaction=True)
def test_requesting_a_challenge_during_an_answer_does_not_deadlock(alice: User) -> None:
    """An answer holds its challenge, a new request ends that one, and both want the factor."""
    holder = with_totp(alice)
    start = timezone.now()
    for minutes in range(6):
        moment = start + timedelta(minutes=minutes)
        with time_machine.travel(moment, tick=False):
            caller = pending(log_in())
            challenge = ask(caller)
        again = partial(ask, caller)
        answer = partial(reply, challenge, holder.wrong_code())
        with time_machine.travel(moment + timedelta(seconds=31), tick=False):
            statuses = {each.status for each in at_once(*[again, answer] * 4)}
        assert statuses <= {200, 401, 410, 429}


class Cut:
    """Cuts the connection that sends the statement of a number, at the server's side."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.seen += 1
        if self.seen == self.at:
            pid = context["connection"].connection.info.backend_pid
            other = context["connection"].copy()
            with other.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
            other.close()
        return execute(sql, params, many, context)


def cut_at(number: int, action: Callable[[], Answer]) -> tuple[Answer, bool]:
    """Do an action whose connection is cut; return the answer, and whether it got that far."""
    cut = Cut(number)

    def run() -> Answer:
        connection.ensure_connection()
        with connection.execute_wrapper(cut):
            return action()

    return at_once(run)[0], cut.seen >= number


@pytest.mark.django_db(transaction=True)
def test_losing_the_database_during_an_answer_returns_503_and_uses_nothing_up(
    alice: User,
) -> None:
    holder = with_totp(alice)
    for number in range(1, 30):
        Factor.objects.update(last_step=0)
        challenge = ask(pending(log_in()))
        code = holder.code()
        before = Session.objects.count()
        answer, was_cut = cut_at(number, partial(reply, challenge, code))
        if not was_cut:
            assert answer.status == 200
            break
        assert (answer.status, answer.code) == (503, "database_unavailable"), number
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.headers["Retry-After"]
        assert Session.objects.count() == before
        Factor.objects.update(last_step=0)
        assert reply(challenge, holder.code()).status == 200, number
    else:
        pytest.fail("It never got through.")
    assert number > 5


def _login(holder: Holder) -> Callable[[], Answer]:
    return log_in


def _refresh(holder: Holder) -> Callable[[], Answer]:
    return signed_in(holder.user).refresh


def _challenge(holder: Holder) -> Callable[[], Answer]:
    caller = pending(log_in())
    return lambda: ask(caller)


def _passkey(holder: Holder) -> Callable[[], Answer]:
    key = Authenticator(origin="http://localhost:8000")
    user = member(holder.user.organization, f"{uuid4()}@example.com")
    key = with_passkey(user, key).key
    begun = begin_sign_in()
    return lambda: end_sign_in(begun, key.get(begun.body["request_options"]))


@pytest.mark.parametrize("prepare", [_login, _refresh, _challenge, _passkey])
@pytest.mark.django_db(transaction=True)
def test_losing_the_database_returns_503_everywhere(
    alice: User, prepare: Callable[[Holder], Callable[[], Answer]]
) -> None:
    holder = with_totp(alice)
    for number in range(1, 40):
        answer, was_cut = cut_at(number, prepare(holder))
        if not was_cut:
            assert answer.status == 200
            break
        # The caller is looked up once more on a new connection, since nothing was written yet.
        assert answer.status == 200 or answer.code == "database_unavailable", number
    else:
        pytest.fail("It never got through.")
    assert number > 2


@pytest.fixture
def device(holder: Holder) -> str:
    """Return the token of a device that was just trusted."""
    answer = reply(ask(pending(log_in())), holder.code(), trust_device=True, device_name="Laptop")
    return str(answer.body["device_token"])


def test_a_trusted_device_satisfies_a_policy_that_requires_a_factor(
    device: str, holder: Holder, home: Organization
) -> None:
    """It stands for the factor that was proven on it, or it would be worth nothing there."""
    Organization.objects.filter(pk=home.pk).update(mfa_required=True, mfa_grace_period_days=0)
    answer = log_in(X_DEVICE_TOKEN=device)
    assert answer.body["status"] == "authenticated"
    caller = Caller(answer.body["access_token"])
    assert caller.get("/v1/whoami").status == 200
    # It dies with the policy, on what it has signed in as well.
    body = {"grace_period_days": 0, "required": True}
    assert holder.caller.call("PUT", "/v1/auth/2fa/policy", body).status == 200
    assert caller.get("/v1/whoami").code == "second_factor_due"
    # Which is repaired where it is due: by the factor itself.
    assert reply(ask(caller), holder.code(steps=1)).status == 200
    assert caller.get("/v1/whoami").status == 200


@pytest.mark.parametrize("allowed", [["sms"], ["webauthn"], ["sms", "backup_codes"]])
def test_a_policy_of_methods_that_cannot_be_set_up_here_locks_out(
    holder: Holder, settings: Settings, allowed: list[str]
) -> None:
    settings.SMS_BACKEND = ""
    settings.TWOFACTOR = replace(settings.TWOFACTOR, webauthn_origins=())
    body = {"required": True, "allowed_methods": allowed, "grace_period_days": 7}
    answer = holder.caller.call("PUT", "/v1/auth/2fa/policy", body)
    assert (answer.status, answer.code) == (409, "policy_locks_out")


def test_a_grace_period_that_is_over_leaves_no_time_to_add_a_factor(
    holder: Holder, home: Organization
) -> None:
    body: dict[str, Any] = {"required": True, "grace_period_days": 7}
    assert holder.caller.call("PUT", "/v1/auth/2fa/policy", body).status == 200
    earlier = timezone.now() - timedelta(days=30)
    Organization.objects.filter(pk=home.pk).update(mfa_required_since=earlier)
    User.objects.update(created_at=earlier)
    body = {"allowed_methods": ["webauthn"]}
    answer = holder.caller.call("PUT", "/v1/auth/2fa/policy", body)
    assert (answer.status, answer.code) == (409, "policy_locks_out")


def test_no_secret_of_a_second_factor_is_in_a_log_line_a_row_or_a_later_answer(
    holder: Holder,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings.SMS_BACKEND = "file"
    caplog.set_level(logging.DEBUG)
    number = "+4915123456789"
    texted = holder.caller.post("/v1/auth/2fa/sms/setup", {"phone_number": number})
    sms = {"verification_id": texted.body["verification_id"], "code": inbox.sms_code()}
    assert holder.caller.post("/v1/auth/2fa/sms/verify", sms).status == 200
    login = log_in()
    challenge = ask(pending(login))
    reply(challenge, holder.wrong_code())
    first = reply(challenge, holder.code(), trust_device=True, device_name="Laptop")
    second = log_in(X_DEVICE_TOKEN=first.body["device_token"])
    later = [
        holder.caller.get("/v1/auth/2fa/status"),
        holder.caller.get("/v1/auth/2fa/trusted-devices"),
        holder.caller.get("/v1/auth/2fa/compliance"),
        holder.caller.get("/v1/whoami"),
    ]
    secrets = [
        holder.seed,
        *holder.backup_codes,
        number,
        sms["verification_id"],
        login.body["mfa_token"],
        challenge.body["challenge_id"],
        first.body["device_token"].partition(".")[2],
        second.body["device_token"].partition(".")[2],
        first.body["access_token"],
        first.body["refresh_token"],
    ]
    captured = capsys.readouterr()
    places = [caplog.text, captured.out, captured.err, *(str(answer.body) for answer in later)]
    for model in (Challenge, Factor, Enrolment, PendingSignIn, TrustedDevice, AuditEvent, Session):
        places += [str(row) for row in model._default_manager.values()]
    # The unfinished code and seed are in no row either.
    for secret in secrets:
        found = [place[:300] for place in places if secret in place]
        assert not found, found
    assert not any(sms["code"] in place for place in (caplog.text, captured.out, captured.err))


@pytest.mark.django_db(transaction=True)
def test_one_device_token_used_twice_concurrently_has_one_successor(alice: User) -> None:
    holder = with_totp(alice)
    answer = reply(ask(pending(log_in())), holder.code(), trust_device=True)
    token = answer.body["device_token"]
    answers = at_once(*[partial(log_in, X_DEVICE_TOKEN=token)] * 4)
    assert {answer.body["status"] for answer in answers} == {"authenticated"}
    assert len({answer.body["device_token"] for answer in answers}) == 1


@pytest.mark.django_db(transaction=True)
def test_a_factor_removed_while_it_is_answered_signs_in_or_is_410(alice: User) -> None:
    for _ in range(4):
        Factor.objects.all().delete()
        holder = with_totp(alice)
        challenge = ask(pending(log_in()))
        answered, removed = at_once(
            partial(reply, challenge, holder.code()),
            partial(holder.caller.call, "DELETE", "/v1/auth/2fa/method/totp"),
        )
        assert removed.status == 204
        assert answered.status in {200, 410}


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_of_one_user_do_not_deadlock(alice: User, home: Organization) -> None:
    """An admin's reset, a new password, a sign-in and a set-up of one user, all at one moment."""
    bob = member(home, "bob@example.com", role="reader", password=PASSWORD)
    admin = signed_in(alice)
    path = f"/v1/members/{bob.pk}/factors/reset"
    for _ in range(5):
        Factor.objects.filter(user=bob).delete()
        Throttle.objects.all().delete()
        holder = with_totp(bob)
        challenge = ask(pending(log_in("bob@example.com")))
        body = {"method": "totp"}
        statuses = {
            answer.status
            for answer in at_once(
                partial(reply, challenge, holder.code()),
                partial(admin.post, path, {"reason": "lost"}),
                partial(holder.caller.post, "/v1/auth/2fa/backup-codes", None),
                partial(holder.caller.call, "PUT", "/v1/auth/2fa/default", body),
                partial(log_in, "bob@example.com"),
                holder.caller.refresh,
            )
        }
        assert statuses <= {200, 204, 401, 403, 409, 410}, statuses
