"""Registering a passkey: allowed places, one's own name, five minutes, one answer."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from environments.models import Organization
from outbox.models import Delivery
from tests.cast import Caller, signed_in
from tests.twofactor.holder import log_in, pending
from tests.twofactor.webauthn.authenticator import ORIGIN, Authenticator, Lies, b64, unb64
from tests.twofactor.webauthn.holder import KeyHolder, finish, register, start, with_passkey
from twofactor.models import Enrolment, Factor, Passkey
from twofactor.webauthn import enrolment

pytestmark = pytest.mark.django_db


def test_a_registered_passkey_answers_with_the_published_fields(alice: User) -> None:
    key = Authenticator()
    answer = register(signed_in(alice), key, credential_name="Blue key")
    assert answer.status == 200
    assert set(answer.body) == {"credential_id", "name", "created_at"}
    assert answer.body["credential_id"] == b64(key.raw_id)
    assert answer.body["name"] == "Blue key"
    assert abs(answer.body["created_at"] - timezone.now().timestamp()) < 60
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_authenticators_data_is_stored_with_the_passkey(alice: User) -> None:
    key = Authenticator(is_backup_eligible=True, sign_count=7)
    row = with_passkey(alice, key).passkey
    assert (row.rp_id, row.sign_count, row.name) == ("app.example.com", 7, "Passkey")
    assert row.is_backup_eligible
    assert row.is_user_verified
    assert row.transports == ["internal", "usb"]
    assert AuditEvent.objects.filter(tag="api:passkey:create").count() == 1
    assert Delivery.objects.get().template == "factor_added"


def test_a_passkey_without_user_verification_is_recorded_as_such(alice: User) -> None:
    assert not with_passkey(alice, Authenticator(is_user_verified=False)).passkey.is_user_verified


def test_registering_raises_the_session(key_holder: KeyHolder) -> None:
    who = key_holder.caller.get("/v1/whoami").body
    assert (who["aal"], who["amr"]) == (2, ["hwk", "mfa", "pwd"])
    status = key_holder.caller.get("/v1/auth/2fa/status").body
    assert (status["enabled_methods"], status["default_method"]) == (["webauthn"], "webauthn")


def test_the_options_name_the_place_and_the_user_without_an_address_in_the_handle(
    alice: User,
) -> None:
    body = {
        "rp_origin": ORIGIN,
        "rp_id": "app.example.com",
        "rp_name": "My app",
        "user_email": "Alice@Example.com",
        "display_name": "Alice A.",
    }
    options = start(signed_in(alice), **body).body["creation_options"]
    assert options["rp"] == {"id": "app.example.com", "name": "My app"}
    assert unb64(options["user"]["id"]) == alice.pk.bytes
    assert options["user"]["name"] == "alice@example.com"
    assert options["user"]["displayName"] == "Alice A."
    assert [row["alg"] for row in options["pubKeyCredParams"]] == [-7, -8, -257]
    assert options["authenticatorSelection"] == {
        "residentKey": "preferred",
        "requireResidentKey": False,
        "userVerification": "preferred",
    }
    assert options["attestation"] == "none"
    assert options["timeout"] == 300_000
    assert len(unb64(options["challenge"])) == 32


def test_every_field_has_a_default(alice: User) -> None:
    options = start(signed_in(alice)).body["creation_options"]
    assert options["rp"] == {"id": "app.example.com", "name": "Zonal"}
    assert options["user"]["displayName"] == "alice@example.com"


@pytest.mark.parametrize(
    ("body", "rp_id"),
    [
        ({"rp_id": "example.com"}, "example.com"),
        ({"rp_id": "example.com", "rp_origin": ORIGIN}, "example.com"),
        ({"rp_origin": "https://example.com"}, "example.com"),
        ({"rp_origin": f"{ORIGIN}/"}, "app.example.com"),
        ({"rp_origin": "https://other.example.org"}, "other.example.org"),
    ],
)
def test_a_listed_host_or_a_listed_parent_of_it_is_an_rp_id(
    alice: User, body: dict[str, str], rp_id: str
) -> None:
    assert start(signed_in(alice), **body).body["creation_options"]["rp"]["id"] == rp_id


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"rp_origin": "https://evil.example"}, "rp_origin"),
        ({"rp_origin": "http://app.example.com"}, "rp_origin"),
        ({"rp_origin": "https://app.example.com.evil.example"}, "rp_origin"),
        ({"rp_origin": "nonsense"}, "rp_origin"),
        ({"rp_id": "evil.example"}, "rp_id"),
        ({"rp_id": "com"}, "rp_id"),
        ({"rp_id": "ple.com"}, "rp_id"),
        ({"rp_id": "other.example.org", "rp_origin": ORIGIN}, "rp_id"),
        ({"rp_id": "app.example.com", "rp_origin": "https://example.com"}, "rp_id"),
        ({"rp_id": "example.com", "rp_origin": "https://notexample.com"}, "rp_id"),
        ({"user_email": "bob@example.com"}, "user_email"),
        ({"user_email": "alice@example.com.evil.example"}, "user_email"),
    ],
)
def test_an_origin_or_rp_id_that_is_not_allowed_is_named_in_a_400(
    alice: User, body: dict[str, str], field: str
) -> None:
    answer = start(signed_in(alice), **body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert [error["field"] for error in answer.body["errors"]] == [field]
    assert not Enrolment.objects.exists()


def test_without_an_origin_there_are_no_passkeys(alice: User, settings: Settings) -> None:
    settings.TWOFACTOR = replace(settings.TWOFACTOR, webauthn_origins=())
    answer = start(signed_in(alice))
    assert (answer.status, answer.code) == (503, "channel_unavailable")


def test_the_configured_rp_id_is_the_default(alice: User, settings: Settings) -> None:
    settings.TWOFACTOR = replace(
        settings.TWOFACTOR, webauthn_origins=(ORIGIN,), webauthn_rp_id="example.com"
    )
    caller = signed_in(alice)
    assert start(caller).body["creation_options"]["rp"]["id"] == "example.com"
    assert register(caller, Authenticator()).status == 200


def test_a_named_origin_is_the_only_one_that_counts(alice: User) -> None:
    caller = signed_in(alice)
    begun = start(caller, rp_id="example.com", rp_origin=ORIGIN)
    elsewhere = Authenticator(origin="https://example.com")
    assert finish(caller, begun, elsewhere.create(begun.body["creation_options"])).status == 400
    begun = start(caller, rp_id="example.com")
    assert finish(caller, begun, elsewhere.create(begun.body["creation_options"])).status == 200


def test_a_session_ends_after_five_minutes(alice: User) -> None:
    caller = signed_in(alice)
    first, second = start(caller), start(caller)
    now = timezone.now()
    with time_machine.travel(now + timedelta(minutes=5, seconds=5)):
        late = finish(caller, first, Authenticator().create(first.body["creation_options"]))
    assert (late.status, late.code) == (410, "enrolment_gone")
    with time_machine.travel(now + timedelta(minutes=4, seconds=50)):
        key = Authenticator()
        assert finish(caller, second, key.create(second.body["creation_options"])).status == 200


def test_a_registration_session_accepts_one_answer(alice: User) -> None:
    caller = signed_in(alice)
    for lies, status in [(Lies(), 200), (Lies(origin="https://evil.example"), 400)]:
        begun = start(caller)
        options = begun.body["creation_options"]
        assert finish(caller, begun, Authenticator().create(options, lies)).status == status
        again = finish(caller, begun, Authenticator().create(options))
        assert again.code == "enrolment_gone"
    assert Passkey.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_answers_register_one_passkey(alice: User) -> None:
    caller = signed_in(alice)
    begun = start(caller)

    def once(_: int) -> int:
        try:
            credential = Authenticator().create(begun.body["creation_options"])
            return finish(caller, begun, credential).status
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(once, range(6)))
    # 403: let in before the first one was through and asked for a proof after it, which is due now.
    assert statuses[0] == 200
    assert set(statuses[1:]) <= {403, 410}
    assert Passkey.objects.count() == 1


def test_another_users_session_looks_like_an_unknown_one(
    alice: User, bob: User, charlie: User
) -> None:
    begun = start(signed_in(alice))
    credential = Authenticator().create(begun.body["creation_options"])
    for user in (bob, charlie):
        assert finish(signed_in(user), begun, credential).code == "enrolment_gone"
    assert finish(signed_in(alice), begun, credential).status == 200


def test_the_same_passkey_is_registered_once_over_all_users(
    key_holder: KeyHolder, bob: User, charlie: User
) -> None:
    for caller in (key_holder.caller, signed_in(bob), signed_in(charlie)):
        answer = register(caller, key_holder.key)
        assert (answer.status, answer.code) == (409, "credential_taken")
    assert Passkey.objects.count() == 1
    assert Factor.objects.count() == 1


def test_registered_passkeys_are_excluded_in_the_options(key_holder: KeyHolder) -> None:
    options = start(key_holder.caller).body["creation_options"]
    assert options["excludeCredentials"] == [
        {
            "id": key_holder.key.credential_id,
            "type": "public-key",
            "transports": ["internal", "usb"],
        }
    ]


def test_a_second_passkey_takes_a_recent_proof_of_the_first(key_holder: KeyHolder) -> None:
    answer = start(signed_in(key_holder.user))
    assert (answer.status, answer.code) == (403, "step_up_required")
    assert register(key_holder.caller, Authenticator()).status == 200
    assert Factor.objects.count() == 1
    assert Passkey.objects.count() == 2


def test_a_user_holds_twenty_passkeys_at_most(
    key_holder: KeyHolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert enrolment.MAX_PASSKEYS == 20
    monkeypatch.setattr(enrolment, "MAX_PASSKEYS", 2)
    begun = [start(key_holder.caller) for _ in range(2)]
    made = [Authenticator().create(answer.body["creation_options"]) for answer in begun]
    answers = [
        finish(key_holder.caller, answer, credential)
        for answer, credential in zip(begun, made, strict=True)
    ]
    assert [answer.status for answer in answers] == [200, 409]
    for refused in (answers[1], start(key_holder.caller)):
        assert (refused.status, refused.code) == (409, "too_many_passkeys")
    assert Passkey.objects.count() == 2


def test_a_forbidden_method_is_neither_begun_nor_finished(alice: User) -> None:
    caller = signed_in(alice)
    begun = start(caller)
    Organization.objects.update(mfa_allowed_methods=["totp"])
    credential = Authenticator().create(begun.body["creation_options"])
    for answer in (start(caller), finish(caller, begun, credential)):
        assert (answer.status, answer.code) == (403, "method_not_allowed_by_policy")


def test_a_sign_in_that_waits_for_a_factor_gets_its_tokens(alice: User) -> None:
    Organization.objects.update(
        mfa_required=True,
        mfa_grace_period_days=0,
        mfa_required_since=timezone.now() - timedelta(days=1),
    )
    login = log_in()
    assert login.body["status"] == "mfa_enrollment_required"
    answer = register(pending(login), Authenticator())
    assert answer.status == 200, answer.body
    assert {"credential_id", "access_token", "refresh_token", "environment"} <= set(answer.body)
    who = Caller(answer.body["access_token"]).get("/v1/whoami").body
    assert (who["aal"], sorted(who["amr"])) == (2, ["hwk", "mfa", "pwd"])


def test_a_sign_in_that_waits_for_a_challenge_registers_nothing(key_holder: KeyHolder) -> None:
    answer = start(pending(log_in()))
    assert (answer.status, answer.code) == (401, "token_invalid")


def test_a_long_body_is_413(alice: User) -> None:
    caller = signed_in(alice)
    credential: dict[str, Any] = {"padding": "x" * 50_000}
    answer = finish(caller, start(caller), credential)
    assert (answer.status, answer.code) == (413, "payload_too_large")
