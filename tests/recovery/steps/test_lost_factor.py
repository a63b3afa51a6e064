"""A lost second factor: two independent proofs, a delay that can be cancelled, an enrolment."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Session, User
from accounts.signin import credentials
from audit.models import AuditEvent
from tests.cast import PASSWORD, Answer, Caller
from tests.recovery.support import (
    NEW_PASSWORD,
    PHONE,
    PREFIX,
    challenge,
    complete,
    initiate,
    log_in,
    proven,
    sent,
    texted_token,
    verify,
    with_factor,
)
from tests.rules.routes import api_routes
from tests.twofactor.holder import Holder, ask, pending, reply, set_up
from tests.twofactor.webauthn.authenticator import Authenticator
from tests.twofactor.webauthn.holder import prove as prove_by_key
from tests.twofactor.webauthn.holder import sign_in, with_passkey
from twofactor.models import EnrolmentDue, Factor

pytestmark = pytest.mark.django_db

LATER = timedelta(hours=24, seconds=1)
Travel = Callable[[timedelta], Any]


def prove(verified: Answer, password: str = PASSWORD, **more: Any) -> Answer:
    """Prove the first factor."""
    body = {"reset_token": verified.body["reset_token"], "password": password}
    return Caller().post(f"{PREFIX}/prove", body | more)


def finish(delayed: Answer) -> Answer:
    """Complete after the delay."""
    body = {"reset_token": delayed.body["reset_token"]}
    return Caller().post(f"{PREFIX}/complete", body)


def delayed(user: User) -> Answer:
    """Return a recovery whose delay has begun."""
    answer = prove(proven(user, purpose="second_factor"))
    assert answer.status == 202, answer.body
    return answer


def cancel(token: str) -> Answer:
    """Cancel with the token of a notice."""
    return Caller().post(f"{PREFIX}/cancel", {"token": token})


def cancel_token() -> str:
    """Return the token of the last notice."""
    return str(sent("recovery_started")[-1]["context"]["cancel_token"])


def in_time(moment: timedelta) -> Any:
    """Go that far from now."""
    return time_machine.travel(timezone.now() + moment)


def test_password_and_mailed_token_allow_an_enrolment_after_a_day(holder: Holder) -> None:
    verified = proven(holder.user, purpose="second_factor")
    assert (verified.body["next"], verified.body["methods"]) == ("first_factor", [])
    begun = prove(verified)
    assert begun.status == 202
    assert set(begun.body) == {"status", "reset_token", "effective_at", "expires_at"}
    day = begun.body["effective_at"] - int(timezone.now().timestamp())
    assert 86395 <= day <= 86400
    with in_time(LATER):
        answer = finish(begun)
        assert answer.status == 200
        assert set(answer.body) == {
            "status",
            "mfa_token",
            "mfa_expires_at",
            "allowed_methods",
        }
        assert answer.body["status"] == "mfa_enrollment_required"
        assert not Factor.objects.exists()
        caller = Caller(answer.body["mfa_token"])
        seed = set_up(caller).body
        code = Holder(holder.user, caller, seed["secret"]).code()
        body = {"secret_id": seed["secret_id"], "code": code}
        enrolled = caller.post("/v1/auth/2fa/totp/verify", body)
        assert enrolled.status == 200
        who = Caller(enrolled.body["access_token"]).get("/v1/whoami").body
        assert (who["aal"], who["amr"]) == (2, ["pwd", "otp", "mfa"])


def test_a_user_who_did_not_enrol_has_to_at_the_next_sign_in(holder: Holder) -> None:
    begun = delayed(holder.user)
    with in_time(LATER):
        assert finish(begun).body["status"] == "mfa_enrollment_required"
        for _ in range(2):
            login = log_in(holder.user)
            assert login.body["status"] == "mfa_enrollment_required"
            assert "access_token" not in login.body
        caller = Caller(login.body["mfa_token"])
        assert caller.get("/v1/auth/2fa/status").body["required"] is True
        seed = set_up(caller).body
        again = Holder(holder.user, caller, seed["secret"])
        body = {"secret_id": seed["secret_id"], "code": again.code()}
        assert caller.post("/v1/auth/2fa/totp/verify", body).status == 200
        assert log_in(holder.user).body["status"] == "mfa_required"
        assert not EnrolmentDue.objects.exists()


def test_the_returned_token_allows_only_an_enrolment(holder: Holder) -> None:
    begun = delayed(holder.user)
    with in_time(LATER):
        caller = Caller(finish(begun).body["mfa_token"])
        for route in api_routes():
            for method in route.methods:
                access = route.access_of(method)
                if access.kind == "public" or "enrol" in access.pending:
                    continue
                path = route.filled(dict.fromkeys(route.placeholders, "x"))
                answer = caller.call(method, path, {})
                assert (answer.status, answer.code) == (401, "token_invalid"), path
        assert not Session.objects.filter(ended_at=None).exists()


def test_nothing_changes_before_the_delay_has_passed(holder: Holder) -> None:
    begun = delayed(holder.user)
    answer = finish(begun)
    assert (answer.status, answer.code) == (409, "recovery_not_due")
    assert answer.body["effective_at"] == begun.body["effective_at"]
    assert Factor.objects.filter(method="totp").exists()
    assert holder.caller.get("/v1/whoami").status == 200
    assert log_in(holder.user).body["status"] == "mfa_required"


def test_the_delay_is_a_setting(holder: Holder, settings: Settings) -> None:
    settings.RECOVERY = replace(settings.RECOVERY, delay_s=3600)
    begun = delayed(holder.user)
    with in_time(timedelta(hours=1, seconds=1)):
        assert finish(begun).status == 200


def test_every_address_is_notified_and_each_can_cancel(holder: Holder, sms: None) -> None:
    with_factor(holder.user, "email", "alice@elsewhere.example")
    with_factor(holder.user, "sms", PHONE)
    begun = delayed(holder.user)
    notices = [mail for mail in sent("recovery_started") if "effective_at" in mail["context"]]
    assert {mail["to"] for mail in notices} == {"alice@example.com", "alice@elsewhere.example"}
    token = notices[0]["context"]["cancel_token"]
    assert sent()[-1]["to"] == PHONE
    assert sent()[-1]["text"].count(token) == 1
    assert cancel(f" {token.lower()} ").status == 204
    with in_time(LATER):
        answer = finish(begun)
        assert (answer.status, answer.code) == (410, "recovery_gone")
    assert Factor.objects.filter(method="totp").exists()


def test_a_cancel_link_works_once_and_a_get_does_not_use_it(holder: Holder) -> None:
    delayed(holder.user)
    token = cancel_token()
    assert Caller().get(f"{PREFIX}/cancel?token={token}").status == 405
    assert cancel("0" * 26).code == "recovery_gone"
    assert cancel("short").code == "malformed_recovery_token"
    assert cancel("12345678").code == "malformed_recovery_token"
    assert cancel(token).status == 204
    assert cancel(token).code == "recovery_gone"
    assert AuditEvent.objects.filter(tag="api:recovery:cancel").count() == 1


def test_a_recovery_by_text_message_can_be_cancelled_by_mail(alice: User, sms: None) -> None:
    with_factor(alice, "sms", PHONE)
    with_factor(alice, "totp", "JBSWY3DPEHPK3PXP")
    started = initiate(alice, method="sms")
    assert cancel(cancel_token()).status == 204
    assert verify(started, texted_token()).code == "recovery_gone"


def test_the_mail_alone_is_not_enough(holder: Holder) -> None:
    verified = proven(holder.user, purpose="second_factor")
    assert prove(verified, "").code == "invalid_request"
    assert prove(verified, "wrong password").code == "invalid_credentials"
    assert finish(verified).code == "recovery_gone"
    with in_time(timedelta(minutes=9)):
        assert finish(verified).code == "recovery_gone"
    assert Factor.objects.filter(method="totp").exists()


def test_guessing_the_password_here_is_limited_as_at_login(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.credentials.LOGINS_PER_ACCOUNT", 2)
    verified = proven(holder.user, purpose="second_factor")
    for _ in range(2):
        assert prove(verified, "wrong password").code == "invalid_credentials"
    assert prove(verified).code == "invalid_credentials"


def test_a_password_changed_during_its_proof_is_refused(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify_ = credentials.verify

    def overtaken(*args: Any, **more: Any) -> User:
        user = verify_(*args, **more)
        User.objects.filter(pk=user.pk).update(password="!changed")
        return user

    monkeypatch.setattr(credentials, "verify", overtaken)
    assert prove(proven(holder.user, purpose="second_factor")).code == "recovery_gone"


def test_a_new_password_cannot_be_smuggled_in(holder: Holder) -> None:
    verified = proven(holder.user, purpose="second_factor")
    assert complete(verified, NEW_PASSWORD).code == "invalid_request"
    begun = prove(verified)
    with in_time(LATER):
        assert complete(begun, NEW_PASSWORD).code == "invalid_request"
        assert finish(begun).status == 200
    assert log_in(holder.user, PASSWORD).status == 200


def test_a_password_recovery_cannot_become_a_factor_recovery(
    holder: Holder,
) -> None:
    assert prove(proven(holder.user)).code == "recovery_gone"


def test_a_second_reset_token_invalidates_the_first(holder: Holder) -> None:
    verified = proven(holder.user, purpose="second_factor")
    begun = prove(verified)
    assert prove(verified).code == "recovery_gone"
    assert prove(begun).code == "recovery_gone"
    assert challenge(begun).code == "recovery_gone"
    with in_time(LATER):
        assert finish(verified).code == "recovery_gone"
        assert finish(begun).status == 200
        assert finish(begun).code == "recovery_gone"


def test_a_delayed_recovery_expires_three_days_after_the_delay(holder: Holder) -> None:
    begun = delayed(holder.user)
    with in_time(LATER + timedelta(hours=72)):
        assert finish(begun).code == "recovery_gone"


def test_using_the_factor_during_the_delay_ends_the_recovery(holder: Holder) -> None:
    begun = delayed(holder.user)
    with in_time(timedelta(hours=1)):
        assert reply(ask(pending(log_in(holder.user))), holder.code()).status == 200
    with in_time(LATER):
        assert finish(begun).code == "recovery_gone"
    assert Factor.objects.filter(method="totp").exists()


@pytest.mark.parametrize("is_alone", [True, False])
def test_using_a_passkey_during_the_delay_ends_the_recovery(alice: User, is_alone: bool) -> None:
    key = with_passkey(alice, Authenticator(origin="http://localhost:8000")).key
    begun = delayed(alice)
    with in_time(timedelta(hours=1)):
        used = sign_in(key) if is_alone else prove_by_key(ask(pending(log_in(alice))), key)
        assert used.status == 200, used.body
    with in_time(LATER):
        assert finish(begun).code == "recovery_gone"
    assert Factor.objects.filter(method="webauthn").exists()


def test_a_change_of_password_ends_a_delayed_recovery(holder: Holder) -> None:
    begun = delayed(holder.user)
    User.objects.filter(pk=holder.user.pk).update(password="!changed")
    with in_time(LATER):
        assert finish(begun).code == "recovery_gone"


def test_disabling_the_user_ends_a_delayed_recovery(holder: Holder) -> None:
    begun = delayed(holder.user)
    User.objects.filter(pk=holder.user.pk).update(is_active=False)
    with in_time(LATER):
        assert finish(begun).code == "recovery_gone"


def test_the_channel_of_the_only_factor_is_not_a_second_proof(alice: User, sms: None) -> None:
    with_factor(alice, "email", alice.email)
    assert initiate(alice, purpose="second_factor").status == 202
    assert sent("recovery_token") == []
    Factor.objects.all().delete()
    with_factor(alice, "sms", PHONE)
    assert initiate(alice, purpose="second_factor", method="sms").status == 202
    assert sent() == []


def test_a_passkey_replaces_the_password(alice: User) -> None:
    key = with_passkey(alice, Authenticator(origin="http://localhost:8000"))
    with_factor(alice, "totp", "JBSWY3DPEHPK3PXP")
    verified = proven(alice, purpose="second_factor")
    assert verified.body["methods"] == ["webauthn"]
    assert challenge(verified, "totp").code == "method_not_enabled"
    begun = challenge(verified)
    credential = key.key.get(begun.body["request_options"])
    wrong = prove(verified, "", challenge_id="unknown", credential=credential)
    assert wrong.code == "challenge_gone"
    elsewhere = key.key.get(begun.body["request_options"] | {"challenge": "AAAA"})
    wrong = prove(verified, "", challenge_id=begun.body["challenge_id"], credential=elsewhere)
    assert (wrong.status, wrong.code) == (401, "invalid_code")
    answer = prove(verified, "", challenge_id=begun.body["challenge_id"], credential=credential)
    assert answer.status == 202, answer.body
    with in_time(LATER):
        assert finish(answer).status == 200


def test_only_one_of_two_recoveries_completes(holder: Holder) -> None:
    first, second = delayed(holder.user), delayed(holder.user)
    with in_time(LATER):
        assert finish(first).status == 200
        assert finish(second).code == "recovery_gone"


@pytest.mark.django_db(transaction=True)
def test_parallel_completions_start_one_enrolment(holder: Holder) -> None:
    begun = delayed(holder.user)

    def once(_: int) -> int:
        try:
            return finish(begun).status
        finally:
            connection.close()

    with in_time(LATER), ThreadPoolExecutor(4) as pool:
        statuses = sorted(pool.map(once, range(8)))
    assert statuses == [200] + [410] * 7
