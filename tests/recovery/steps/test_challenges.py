"""Recovery never skips the second factor, and never takes one over the recovery's own channel."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from accounts.models import Session, User
from audit.models import AuditEvent
from environments.models import Organization
from recovery.models import RecoveryChallenge
from tests.cast import PASSWORD, Caller
from tests.recovery.support import (
    NEW_PASSWORD,
    PHONE,
    challenge,
    complete,
    initiate,
    last_code,
    log_in,
    mailed_token,
    proven,
    sent,
    texted_token,
    verify,
    with_factor,
)
from tests.twofactor.holder import CHALLENGE, Holder, ask, reply
from twofactor.models import Factor

pytestmark = pytest.mark.django_db


def test_recovery_never_skips_the_second_factor(holder: Holder) -> None:
    verified = proven(holder.user)
    assert verified.body["next"] == "password_and_challenge"
    assert verified.body["methods"] == ["totp", "backup_code"]
    answer = complete(verified)
    assert (answer.status, answer.code) == (403, "recovery_challenge_required")
    assert answer.body["methods"] == ["totp", "backup_code"]
    assert log_in(holder.user, PASSWORD).status == 200
    begun = challenge(verified)
    proof = {"challenge_id": begun.body["challenge_id"], "code": holder.code()}
    assert complete(verified, **proof).status == 204
    # And the next sign-in asks for it again.
    assert log_in(holder.user, NEW_PASSWORD).body["status"] == "mfa_required"


def test_a_new_password_does_not_change_the_factors(holder: Holder) -> None:
    before = list(Factor.objects.order_by("pk").values_list("pk", "secret"))
    verified = proven(holder.user)
    begun = challenge(verified, "backup_code")
    proof = {"challenge_id": begun.body["challenge_id"], "code": holder.backup_codes[0]}
    assert complete(verified, **proof).status == 204
    assert list(Factor.objects.order_by("pk").values_list("pk", "secret")) == before


def test_a_wrong_code_is_counted_and_changes_nothing(holder: Holder) -> None:
    verified = proven(holder.user)
    begun = challenge(verified)
    for _ in range(5):
        answer = complete(
            verified, challenge_id=begun.body["challenge_id"], code=holder.wrong_code()
        )
        assert (answer.status, answer.code) == (401, "invalid_code")
    answer = complete(verified, challenge_id=begun.body["challenge_id"], code=holder.code())
    assert (answer.status, answer.code) == (410, "challenge_gone")
    assert Factor.objects.get(method="totp").failures == 5
    refused = AuditEvent.objects.filter(tag="api:challenge:verify", outcome="refused")
    assert [event.data["purpose"] for event in refused] == ["recovery"] * 5
    assert log_in(holder.user, PASSWORD).status == 200


def test_a_malformed_code_is_not_counted(holder: Holder) -> None:
    verified = proven(holder.user)
    begun = challenge(verified)
    answer = complete(verified, challenge_id=begun.body["challenge_id"], code="12345")
    assert (answer.status, answer.code) == (400, "malformed_code")
    assert RecoveryChallenge.objects.get().attempts_left == 5


def test_wrong_codes_throttle_the_factor_during_a_recovery(holder: Holder) -> None:
    with time_machine.travel(timezone.now(), tick=False):
        for _ in range(2):
            verified = proven(holder.user)
            begun = challenge(verified)
            for _ in range(5):
                complete(
                    verified, challenge_id=begun.body["challenge_id"], code=holder.wrong_code()
                )
        assert challenge(proven(holder.user)).code == "factor_slowed"
        assert ask(holder.caller).code == "factor_slowed"


def test_a_code_mailed_to_the_recovery_address_is_not_a_second_proof(alice: User) -> None:
    with_factor(alice, "email", alice.email)
    verified = proven(alice)
    assert (verified.body["next"], verified.body["methods"]) == ("password_and_challenge", [])
    for answer in (challenge(verified), challenge(verified, "email"), complete(verified)):
        assert (answer.status, answer.code) == (409, "no_independent_factor")
    assert log_in(alice, PASSWORD).status == 200


def test_beside_another_factor_the_recoverys_channel_is_not_offered(
    holder: Holder, sms: None
) -> None:
    with_factor(holder.user, "email", holder.user.email)
    with_factor(holder.user, "sms", PHONE)
    verified = proven(holder.user)
    assert verified.body["methods"] == ["totp", "sms", "backup_code"]
    answer = challenge(verified, "email")
    assert (answer.status, answer.code) == (409, "method_not_enabled")


def test_a_recovery_by_text_message_requires_another_factor_than_the_number(
    alice: User, sms: None
) -> None:
    with_factor(alice, "sms", PHONE)
    with_factor(alice, "email", alice.email)
    started = initiate(alice, method="sms")
    assert started.status == 202
    token = texted_token()
    assert len(token) == 8
    assert token.isdigit()
    # The address is notified, with a way to cancel; the token itself went to the number alone.
    assert token not in str(sent("recovery_started"))
    verified = verify(started, token)
    assert verified.body["methods"] == ["email"]
    begun = challenge(verified)
    assert begun.body["delivery"] == "queued"
    code = last_code("email_code")
    assert complete(verified, challenge_id=begun.body["challenge_id"], code=code).status == 204


def test_a_phone_number_alone_cannot_recover_an_account(alice: User, sms: None) -> None:
    with_factor(alice, "sms", PHONE)
    started = initiate(alice, method="sms")
    verified = verify(started, texted_token())
    assert verified.body["methods"] == []
    assert complete(verified).code == "no_independent_factor"


def test_a_repeated_request_for_a_challenge_sends_one_code(alice: User, sms: None) -> None:
    with_factor(alice, "sms", PHONE)
    verified = proven(alice)
    first, second = challenge(verified), challenge(verified)
    assert first.body == second.body
    assert len(sent()) == 1
    with time_machine.travel(timezone.now() + timedelta(seconds=31)):
        third = challenge(verified)
    assert third.body["challenge_id"] != first.body["challenge_id"]
    answer = complete(verified, challenge_id=first.body["challenge_id"], code="123456")
    assert answer.code == "challenge_gone"


def test_a_code_sent_for_a_recovery_answers_no_sign_in_and_the_other_way_round(
    holder: Holder,
) -> None:
    verified = proven(holder.user)
    begun = challenge(verified)
    path = f"{CHALLENGE}/{begun.body['challenge_id']}/verify"
    assert Caller().post(path, {"code": holder.code()}).code == "challenge_gone"
    step_up = ask(holder.caller)
    answer = complete(verified, challenge_id=step_up.body["challenge_id"], code=holder.code())
    assert answer.code == "challenge_gone"
    assert reply(step_up, holder.code()).status == 200


def test_one_recoverys_challenge_does_not_answer_another(holder: Holder) -> None:
    first, second = proven(holder.user), proven(holder.user)
    begun = challenge(first)
    answer = complete(second, challenge_id=begun.body["challenge_id"], code=holder.code())
    assert (answer.status, answer.code) == (410, "challenge_gone")


def test_one_time_step_is_good_for_a_recovery_or_a_sign_in_not_both(holder: Holder) -> None:
    code = holder.code()
    assert reply(ask(holder.caller), code).status == 200
    verified = proven(holder.user)
    begun = challenge(verified)
    answer = complete(verified, challenge_id=begun.body["challenge_id"], code=code)
    assert answer.code == "invalid_code"


def test_a_method_the_policy_forbids_does_not_count(holder: Holder, home: Organization) -> None:
    with_factor(holder.user, "sms", PHONE)
    Organization.objects.filter(pk=home.pk).update(mfa_allowed_methods=["totp"])
    assert proven(holder.user).body["methods"] == ["totp"]


def test_a_trusted_device_does_not_stand_in_for_the_factor(holder: Holder) -> None:
    from twofactor.trusted_devices import devices

    token = devices.token_for(devices.trust(holder.user, "Laptop", now=timezone.now()))
    verified = proven(holder.user)
    body = {"reset_token": verified.body["reset_token"], "password": NEW_PASSWORD}
    answer = Caller().post("/v1/auth/recovery/complete", body, X_DEVICE_TOKEN=token)
    assert answer.code == "recovery_challenge_required"


def test_a_factor_set_up_in_the_meantime_ends_the_recovery(alice: User) -> None:
    started, token = initiate(alice), mailed_token()
    with_factor(alice, "sms", PHONE)
    assert verify(started, token).code == "recovery_gone"


def test_a_recovery_never_opens_a_session(holder: Holder) -> None:
    verified = proven(holder.user)
    begun = challenge(verified)
    proof = {"challenge_id": begun.body["challenge_id"], "code": holder.code()}
    answer = complete(verified, **proof)
    assert answer.raw.content == b""
    assert not answer.raw.cookies
    assert not Session.objects.filter(ended_at=None).exists()
