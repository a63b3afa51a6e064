"""A passkey as second factor: each check of an assertion (WebAuthn L3 §7.2), and the counter."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from tests.cast import Answer, Caller, signed_in
from tests.twofactor.holder import ask, log_in, pending
from tests.twofactor.webauthn.authenticator import Authenticator, Lies, b64, unb64
from tests.twofactor.webauthn.holder import KeyHolder, prove, register, send, with_passkey
from twofactor.models import Challenge, Factor, Passkey

pytestmark = pytest.mark.django_db


def asked() -> Answer:
    """Return the challenge of a new login."""
    return ask(pending(log_in()))


def assert_refused(answer: Answer) -> None:
    assert (answer.status, answer.code) == (401, "invalid_code"), answer.body


def test_a_login_is_finished_with_the_passkey(key_holder: KeyHolder) -> None:
    login = log_in()
    assert login.body["status"] == "mfa_required"
    assert [row["method"] for row in login.body["methods"]] == ["webauthn"]
    answer = prove(ask(pending(login)), key_holder.key)
    assert answer.status == 200, answer.body
    who = Caller(answer.body["access_token"]).get("/v1/whoami").body
    assert (who["aal"], sorted(who["amr"])) == (2, ["hwk", "mfa", "pwd"])


def test_a_correct_answer_resets_the_count_of_wrong_ones(key_holder: KeyHolder) -> None:
    assert_refused(prove(asked(), key_holder.key, Lies(signature=b"wrong")))
    assert Factor.objects.get().failures == 1
    assert prove(asked(), key_holder.key).status == 200
    assert Factor.objects.get().failures == 0


def test_the_options_name_the_users_passkeys(key_holder: KeyHolder) -> None:
    answer = asked()
    options = answer.body["request_options"]
    assert options["rpId"] == "app.example.com"
    assert options["userVerification"] == "preferred"
    assert [row["id"] for row in options["allowCredentials"]] == [key_holder.key.credential_id]
    assert len(unb64(options["challenge"])) == 32
    assert answer.body["method"] == "webauthn"


def test_a_repeated_request_gives_the_same_options(key_holder: KeyHolder) -> None:
    caller = pending(log_in())
    assert ask(caller).body == ask(caller).body


def test_a_step_up_raises_the_session(key_holder: KeyHolder) -> None:
    caller = signed_in(key_holder.user)
    assert caller.get("/v1/whoami").body["aal"] == 1
    answer = prove(ask(caller), key_holder.key)
    assert (answer.status, answer.body["status"]) == (200, "verified")
    assert caller.get("/v1/whoami").body["aal"] == 2


def test_each_of_several_passkeys_is_accepted(key_holder: KeyHolder) -> None:
    second = Authenticator()
    assert register(key_holder.caller, second).status == 200
    for key in (key_holder.key, second):
        assert prove(asked(), key).status == 200


def test_counter_and_last_use_are_kept(key_holder: KeyHolder) -> None:
    prove(asked(), key_holder.key)
    row = key_holder.passkey
    assert row.sign_count == key_holder.key.sign_count == 1
    assert row.last_used_at is not None


def test_a_passkey_that_does_not_count_works_again_and_again(alice: User) -> None:
    holder = with_passkey(alice, Authenticator(step=0, is_backup_eligible=True))
    assert [prove(asked(), holder.key).status for _ in range(3)] == [200] * 3


def test_user_verification_is_not_required_of_a_second_factor(alice: User) -> None:
    holder = with_passkey(alice, Authenticator(is_user_verified=False))
    assert prove(asked(), holder.key).status == 200
    assert not holder.passkey.is_user_verified


def test_user_verification_is_noted_once_it_was_shown(alice: User) -> None:
    holder = with_passkey(alice, Authenticator(is_user_verified=False))
    prove(asked(), holder.key, Lies(user_verified=True))
    assert holder.passkey.is_user_verified
    prove(asked(), holder.key)
    assert holder.passkey.is_user_verified


def test_the_user_handle_may_be_left_out(key_holder: KeyHolder) -> None:
    assert prove(asked(), key_holder.key, Lies(is_handle_left_out=True)).status == 200


def test_a_wrong_rp_is_refused(key_holder: KeyHolder) -> None:
    assert_refused(prove(asked(), key_holder.key, Lies(rp_id="evil.example")))


def test_a_wrong_origin_is_refused(key_holder: KeyHolder) -> None:
    for origin in ("https://evil.example", "https://other.example.org", ""):
        assert_refused(prove(asked(), key_holder.key, Lies(origin=origin)))


def test_a_framed_page_is_refused(key_holder: KeyHolder) -> None:
    assert_refused(prove(asked(), key_holder.key, Lies(cross_origin=True)))
    assert_refused(prove(asked(), key_holder.key, Lies(top_origin="https://evil.example")))


def test_a_wrong_challenge_is_refused(key_holder: KeyHolder) -> None:
    assert_refused(prove(asked(), key_holder.key, Lies(challenge=os.urandom(32))))


def test_another_challenges_answer_is_refused(key_holder: KeyHolder) -> None:
    first, second = asked(), asked()
    assert_refused(send(second, key_holder.key.get(first.body["request_options"])))


def test_a_registration_is_not_an_assertion(key_holder: KeyHolder) -> None:
    assert_refused(prove(asked(), key_holder.key, Lies(type="webauthn.create")))


def test_an_assertion_that_carries_a_key_is_malformed(key_holder: KeyHolder) -> None:
    # An id of zeros, which the check of the CBOR behind it takes for numbers.
    answer = prove(asked(), key_holder.key, Lies(is_attested=True, attested_id=bytes(32)))
    assert (answer.status, answer.code) == (400, "malformed_credential")


def test_without_the_users_presence_it_is_refused(key_holder: KeyHolder) -> None:
    assert_refused(prove(asked(), key_holder.key, Lies(user_present=False)))


def test_a_wrong_signature_is_refused(key_holder: KeyHolder) -> None:
    for signature in (b"", b"x", os.urandom(70)):
        assert_refused(prove(asked(), key_holder.key, Lies(signature=signature)))


def test_another_key_under_the_same_id_is_refused(key_holder: KeyHolder) -> None:
    forged = Authenticator(raw_id=key_holder.key.raw_id, handle=key_holder.key.handle)
    assert_refused(prove(asked(), forged))


def test_another_users_passkey_is_refused(key_holder: KeyHolder, bob: User, charlie: User) -> None:
    for user in (bob, charlie):
        theirs = with_passkey(user).key
        assert_refused(prove(asked(), theirs))
        assert_refused(prove(asked(), theirs, Lies(user_handle=key_holder.user.pk.bytes)))


def test_another_users_handle_is_refused(key_holder: KeyHolder, bob: User) -> None:
    for handle in (bob.pk.bytes, b"", b"x"):
        assert_refused(prove(asked(), key_holder.key, Lies(user_handle=handle)))


def test_backup_eligibility_never_changes(key_holder: KeyHolder) -> None:
    assert_refused(prove(asked(), key_holder.key, Lies(backup_eligible=True)))
    assert_refused(prove(asked(), key_holder.key, Lies(backup_eligible=False, backed_up=True)))


def test_a_passkey_registered_after_the_question_was_not_asked_for(key_holder: KeyHolder) -> None:
    challenge = asked()
    second = Authenticator()
    register(key_holder.caller, second)
    assert_refused(prove(challenge, second))


def test_a_removed_passkey_is_refused(key_holder: KeyHolder) -> None:
    challenge = asked()
    assert register(key_holder.caller, Authenticator()).status == 200
    Passkey.objects.filter(credential_id=key_holder.key.raw_id).delete()
    assert_refused(prove(challenge, key_holder.key))


def test_a_passkey_of_an_origin_that_is_no_longer_allowed_is_refused(
    key_holder: KeyHolder, settings: Settings
) -> None:
    challenge = asked()
    settings.TWOFACTOR = replace(
        settings.TWOFACTOR, webauthn_origins=("https://other.example.org",)
    )
    assert_refused(prove(challenge, key_holder.key))
    answer = ask(pending(log_in()))
    assert (answer.status, answer.code) == (503, "channel_unavailable")


def test_a_replay_is_refused(key_holder: KeyHolder) -> None:
    challenge = asked()
    credential = key_holder.key.get(challenge.body["request_options"])
    assert send(challenge, credential).status == 200
    assert send(challenge, credential).code == "challenge_gone"
    assert_refused(send(asked(), credential))


@pytest.mark.django_db(transaction=True)
def test_one_assertion_sent_twice_concurrently_succeeds_once(alice: User) -> None:
    holder = with_passkey(alice)
    challenge = asked()
    credential = holder.key.get(challenge.body["request_options"])

    def once(_: int) -> int:
        try:
            return send(challenge, credential).status
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(once, range(6))) == [200, *[410] * 5]


def test_a_counter_that_goes_back_is_refused_and_audited(key_holder: KeyHolder) -> None:
    assert prove(asked(), key_holder.key, Lies(sign_count=9)).status == 200
    for count in (9, 8, 0):
        assert_refused(prove(asked(), key_holder.key, Lies(sign_count=count)))
    assert key_holder.passkey.sign_count == 9
    events = AuditEvent.objects.filter(tag="api:passkey:sign_count_regression")
    assert [event.data["sign_count"] for event in events.order_by("id")] == [9, 8, 0]
    assert {(e.organization_id, e.actor_id, e.outcome) for e in events} == {
        (key_holder.user.organization_id, key_holder.user.pk, "refused")
    }
    # Where the attempt came from is what an investigation asks first.
    assert {event.address for event in events} == {"127.0.0.1"}
    assert all(event.request_id for event in events)
    assert prove(asked(), key_holder.key, Lies(sign_count=10)).status == 200


def test_an_attacker_cannot_trigger_the_alarm_of_the_counter(key_holder: KeyHolder) -> None:
    prove(asked(), key_holder.key, Lies(sign_count=9))
    assert_refused(prove(asked(), key_holder.key, Lies(sign_count=1, signature=b"forged")))
    assert not AuditEvent.objects.filter(tag="api:passkey:sign_count_regression").exists()


def test_wrong_assertions_are_counted_and_malformed_ones_are_not(key_holder: KeyHolder) -> None:
    challenge = asked()
    for body in ({}, {"type": "public-key"}, {"response": 7}):
        answer = send(challenge, body)
        assert (answer.status, answer.code) == (400, "malformed_credential")
    assert Challenge.objects.get().attempts_left == 5
    for _ in range(5):
        assert_refused(prove(challenge, key_holder.key, Lies(signature=b"x")))
    assert prove(challenge, key_holder.key).code == "challenge_gone"
    assert Factor.objects.get().failures == 5


def test_a_challenge_ends_after_ten_minutes(key_holder: KeyHolder) -> None:
    challenge = asked()
    with time_machine.travel(timezone.now() + timedelta(minutes=10, seconds=1)):
        assert prove(challenge, key_holder.key).code == "challenge_gone"


def test_a_passkey_under_another_rp_id_is_asked_for_there(alice: User, settings: Settings) -> None:
    holder = with_passkey(alice)
    settings.TWOFACTOR = replace(settings.TWOFACTOR, webauthn_rp_id="example.com")
    challenge = asked()
    assert challenge.body["request_options"]["rpId"] == "app.example.com"
    assert prove(challenge, holder.key).status == 200
    assert b64(bytes(holder.passkey.credential_id)) == holder.key.credential_id
