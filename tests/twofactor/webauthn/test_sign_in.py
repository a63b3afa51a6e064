"""Sign-in with a passkey: proves both factors, and reveals nothing about accounts."""

import os
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
from audit.models import AuditEvent
from environments.models import Organization
from tests.cast import PASSWORD, Answer, Caller, signed_in
from tests.twofactor.holder import ask, log_in, pending, with_totp
from tests.twofactor.webauthn.authenticator import ORIGIN, Authenticator, Lies
from tests.twofactor.webauthn.holder import (
    KeyHolder,
    begin_sign_in,
    end_sign_in,
    prove,
    register,
    sign_in,
    with_passkey,
)
from twofactor.models import PasskeyRequest
from twofactor.tasks import forget_expired_passkey_requests

pytestmark = pytest.mark.django_db


def without_id(answer: Answer) -> dict[str, Any]:
    return {key: value for key, value in answer.body.items() if key != "request_id"}


def assert_refused(answer: Answer) -> None:
    assert (answer.status, answer.code) == (401, "passkey_rejected"), answer.body


def test_a_passkey_with_user_verification_counts_as_both_factors(key_holder: KeyHolder) -> None:
    answer = sign_in(key_holder.key)
    assert answer.status == 200, answer.body
    assert answer.body["status"] == "authenticated"
    assert answer.body["environment"]["id"] == "live"
    assert answer.headers["Cache-Control"] == "no-store"
    who = Caller(answer.body["access_token"]).get("/v1/whoami").body
    assert who["email"] == "alice@example.com"
    assert (who["aal"], sorted(who["amr"])) == (2, ["hwk", "mfa", "user"])
    event = AuditEvent.objects.filter(tag="api:session:create").latest("at")
    assert (event.outcome, event.data["method"]) == ("success", "passkey")


def test_a_passkey_sign_in_counts_as_a_recent_proof(key_holder: KeyHolder) -> None:
    caller = Caller(sign_in(key_holder.key).body["access_token"])
    assert register(caller, Authenticator()).status == 200


def test_the_environment_may_be_named(key_holder: KeyHolder) -> None:
    assert sign_in(key_holder.key, environment="sandbox").body["environment"]["id"] == "sandbox"
    assert sign_in(key_holder.key).body["environment"]["id"] == "sandbox"
    assert sign_in(key_holder.key, environment="nowhere").code == "environment_not_found"


def test_the_options_are_the_same_for_known_unknown_and_no_address(key_holder: KeyHolder) -> None:
    answers = [
        begin_sign_in(),
        begin_sign_in(email="alice@example.com"),
        begin_sign_in(email="nobody@example.com"),
    ]
    for answer in answers:
        assert answer.status == 200
        assert set(answer.body) == {"challenge_id", "expires_at", "request_options"}
        options = answer.body["request_options"] | {"challenge": ""}
        assert options == {
            "challenge": "",
            "timeout": 300_000,
            "rpId": "app.example.com",
            "allowCredentials": [],
            "userVerification": "required",
        }
    assert len({len(answer.raw.content) for answer in answers}) == 1


def test_a_named_address_lets_only_that_account_in(key_holder: KeyHolder) -> None:
    for email, status in [("ALICE@example.com", 200), ("bob@example.com", 401)]:
        begun = begin_sign_in(email=email)
        credential = key_holder.key.get(begun.body["request_options"])
        assert end_sign_in(begun, credential).status == status


def test_another_rp_id_must_be_allowed(key_holder: KeyHolder) -> None:
    assert begin_sign_in(rp_id="example.com").body["request_options"]["rpId"] == "example.com"
    answer = begin_sign_in(rp_id="evil.example")
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "rp_id")


def test_a_passkey_of_another_rp_id_is_refused(key_holder: KeyHolder) -> None:
    begun = begin_sign_in(rp_id="example.com")
    assert_refused(end_sign_in(begun, key_holder.key.get(begun.body["request_options"])))


def test_all_failures_get_the_same_response(key_holder: KeyHolder, bob: User) -> None:
    key = key_holder.key
    answers = [
        sign_in(Authenticator(handle=key.handle)),
        sign_in(key, Lies(signature=b"wrong")),
        sign_in(key, Lies(user_verified=False)),
        sign_in(key, Lies(user_handle=bob.pk.bytes)),
        sign_in(key, Lies(is_handle_left_out=True)),
        sign_in(key, Lies(challenge=os.urandom(32))),
        sign_in(key, Lies(origin="https://evil.example")),
        sign_in(key, Lies(cross_origin=True)),
        sign_in(key, Lies(rp_id="evil.example")),
        sign_in(key, Lies(backup_eligible=True)),
        sign_in(key, Lies(type="webauthn.create")),
    ]
    User.objects.filter(pk=key_holder.user.pk).update(is_active=False)
    answers.append(sign_in(key))
    for answer in answers:
        assert_refused(answer)
        assert without_id(answer) == without_id(answers[0])
        assert "WWW-Authenticate" in answer.headers
    assert Session.objects.count() == 1


def test_a_refusal_is_audited(key_holder: KeyHolder) -> None:
    sign_in(key_holder.key, Lies(signature=b"wrong"))
    event = AuditEvent.objects.get(tag="api:session:create")
    assert (event.outcome, event.actor_id) == ("refused", key_holder.user.pk)


def test_user_verification_must_have_been_shown_beside_another_factor_first(alice: User) -> None:
    """WebAuthn L3 §4, uvInitialized: the first verification of a passkey vouches for nothing."""
    holder = with_passkey(alice, Authenticator(is_user_verified=False))
    holder.key.is_user_verified = True
    assert_refused(sign_in(holder.key))
    assert_refused(sign_in(holder.key))
    assert prove(ask(pending(log_in())), holder.key).status == 200
    assert sign_in(holder.key).status == 200


def test_a_start_accepts_one_answer(key_holder: KeyHolder) -> None:
    for lies, status in [(Lies(), 200), (Lies(signature=b"wrong"), 401)]:
        begun = begin_sign_in()
        options = begun.body["request_options"]
        assert end_sign_in(begun, key_holder.key.get(options, lies)).status == status
        answer = end_sign_in(begun, key_holder.key.get(options))
        assert (answer.status, answer.code) == (410, "challenge_gone")


def test_malformed_answers_leave_the_start_as_it_is(key_holder: KeyHolder) -> None:
    begun = begin_sign_in()
    answer = end_sign_in(begun, {"id": "x"})
    assert (answer.status, answer.code) == (400, "malformed_credential")
    assert end_sign_in(begun, key_holder.key.get(begun.body["request_options"])).status == 200


@pytest.mark.django_db(transaction=True)
def test_one_assertion_sent_twice_concurrently_succeeds_once(alice: User) -> None:
    key = with_passkey(alice).key
    begun = begin_sign_in()
    credential = key.get(begun.body["request_options"])

    def once(_: int) -> int:
        try:
            return end_sign_in(begun, credential).status
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(once, range(6))) == [200, *[410] * 5]


@pytest.mark.django_db(transaction=True)
def test_of_two_assertions_with_one_counter_value_one_succeeds(alice: User) -> None:
    key = with_passkey(alice).key
    starts = [begin_sign_in() for _ in range(6)]
    lies = Lies(sign_count=5)
    answers = [(begun, key.get(begun.body["request_options"], lies)) for begun in starts]

    def once(pair: tuple[Answer, Any]) -> int:
        try:
            return end_sign_in(*pair).status
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(once, answers)) == [200, *[401] * 5]
    tag = "api:passkey:sign_count_regression"
    assert AuditEvent.objects.filter(tag=tag, outcome="refused").count() == 5


def test_a_start_ends_after_five_minutes(key_holder: KeyHolder) -> None:
    begun = begin_sign_in()
    with time_machine.travel(timezone.now() + timedelta(minutes=5, seconds=1)):
        answer = end_sign_in(begun, key_holder.key.get(begun.body["request_options"]))
        assert (answer.status, answer.code) == (410, "challenge_gone")
        forget_expired_passkey_requests(0)
    assert not PasskeyRequest.objects.exists()


def test_a_counter_that_goes_back_is_refused_and_audited(key_holder: KeyHolder) -> None:
    assert sign_in(key_holder.key, Lies(sign_count=9)).status == 200
    assert_refused(sign_in(key_holder.key, Lies(sign_count=9)))
    event = AuditEvent.objects.get(tag="api:passkey:sign_count_regression")
    assert (event.actor_id, event.address) == (key_holder.user.pk, "127.0.0.1")


def test_an_account_slowed_by_guessing_still_gets_in(
    key_holder: KeyHolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.credentials.LOGINS_PER_ACCOUNT", 1)
    for _ in range(3):
        log_in(password="wrong password")
    assert log_in(password=PASSWORD).status == 401
    assert sign_in(key_holder.key).status == 200


def test_failures_from_one_address_are_limited_and_rightful_ones_are_not(
    key_holder: KeyHolder, settings: Settings
) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, logins_per_address=2)
    assert [sign_in(key_holder.key).status for _ in range(4)] == [200] * 4
    wrong = Lies(signature=b"wrong")
    statuses = [sign_in(key_holder.key, wrong).status for _ in range(3)]
    assert statuses == [401, 401, 429]
    answer = sign_in(key_holder.key)
    assert (answer.status, answer.code) == (429, "too_many_attempts")
    assert int(answer.headers["Retry-After"]) > 0


def test_starts_from_one_address_are_limited(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twofactor.webauthn.sign_in.STARTS_PER_ADDRESS", 2)
    # Within one window of the limit, which may end at any moment.
    with time_machine.travel(timezone.now(), tick=False):
        assert [begin_sign_in().status for _ in range(3)] == [200, 200, 429]
    assert PasskeyRequest.objects.count() == 2


def test_a_policy_that_requires_a_factor_is_content_with_a_passkey(key_holder: KeyHolder) -> None:
    require()
    assert sign_in(key_holder.key).body["status"] == "authenticated"


def test_a_passkey_the_policy_does_not_allow_leads_no_further_than_enrolling(
    key_holder: KeyHolder,
) -> None:
    require(mfa_allowed_methods=["totp"])
    answer = sign_in(key_holder.key)
    assert answer.body["status"] == "mfa_enrollment_required"
    assert "access_token" not in answer.body


def test_where_another_factor_is_the_allowed_one_the_passkey_is_the_first_only(
    alice: User,
) -> None:
    totp = with_totp(alice)
    key = Authenticator()
    assert register(totp.caller, key).status == 200
    Organization.objects.update(mfa_allowed_methods=["totp"])
    answer = sign_in(key)
    assert answer.body["status"] == "mfa_required"
    assert [row["method"] for row in answer.body["methods"]] == ["totp"]
    assert "access_token" not in answer.body


def test_a_removed_passkey_does_not_sign_in(key_holder: KeyHolder) -> None:
    path = f"/v1/auth/2fa/webauthn/credentials/{key_holder.key.credential_id}"
    assert key_holder.caller.call("DELETE", path).status == 204
    assert_refused(sign_in(key_holder.key))


def test_a_stale_header_does_not_prevent_the_sign_in(key_holder: KeyHolder) -> None:
    begun = begin_sign_in()
    credential = key_holder.key.get(begun.body["request_options"])
    body = {"challenge_id": begun.body["challenge_id"], "credential": credential}
    assert Caller("stale").post("/v1/auth/passkey/finish", body).status == 200
    assert key_holder.key.origin == ORIGIN


def test_a_passkeys_session_belongs_to_its_own_organization(
    key_holder: KeyHolder, charlie: User
) -> None:
    theirs = with_passkey(charlie)
    who = Caller(sign_in(theirs.key).body["access_token"]).get("/v1/whoami").body
    assert who["org_id"] == charlie.organization_id != key_holder.user.organization_id
    assert signed_in(charlie).get("/v1/auth/2fa/webauthn/credentials").status == 200


def require(**policy: Any) -> None:
    """Make Alice's organization require a second factor, without any time left."""
    Organization.objects.update(
        mfa_required=True,
        mfa_grace_period_days=0,
        mfa_required_since=timezone.now() - timedelta(days=1),
        **policy,
    )
