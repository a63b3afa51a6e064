"""A new password by mail: it opens no session, ends all, and notifies every address."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from accounts.models import Session, User
from audit.models import AuditEvent
from environments.models import Organization
from recovery.models import Recovery
from tests.cast import PASSWORD, Caller, member, signed_in
from tests.recovery.support import (
    NEW_PASSWORD,
    PREFIX,
    complete,
    initiate,
    log_in,
    mailed_token,
    proven,
    sent,
    verify,
    with_factor,
)
from tests.twofactor.holder import as_typed
from twofactor.models import TrustedDevice
from twofactor.trusted_devices import devices

pytestmark = pytest.mark.django_db


def test_the_mailed_token_leads_to_a_new_password(alice: User) -> None:
    started = initiate(alice)
    assert started.status == 202
    assert set(started.body) == {"recovery_id", "expires_at"}
    verified = verify(started, mailed_token())
    assert verified.status == 200
    assert set(verified.body) == {
        "reset_token",
        "expires_at",
        "next",
        "methods",
        "new_account_offered",
    }
    assert (verified.body["next"], verified.body["methods"]) == ("password", [])
    answer = complete(verified)
    assert (answer.status, answer.body) == (204, None)
    assert log_in(alice).code == "invalid_credentials"
    assert log_in(alice, NEW_PASSWORD).body["status"] == "authenticated"


def test_completing_opens_no_session_and_ends_all_sessions_and_trusted_devices(alice: User) -> None:
    caller = signed_in(alice)
    devices.trust(alice, "Laptop", now=timezone.now())
    complete(proven(alice))
    assert caller.get("/v1/whoami").code == "session_revoked"
    assert caller.refresh().code == "session_revoked"
    assert not Session.objects.filter(ended_at=None).exists()
    assert not TrustedDevice.objects.exists()


def test_pending_sign_ins_and_enrolments_end_with_a_recovery(alice: User) -> None:
    caller = signed_in(alice)
    begun = caller.post("/v1/auth/2fa/totp/setup", {"issuer": "Zonal", "account_name": "a"})
    complete(proven(alice))
    again = signed_in(alice)
    body = {"secret_id": begun.body["secret_id"], "code": "123456"}
    assert again.post("/v1/auth/2fa/totp/verify", body).code == "enrolment_gone"


def test_every_other_address_is_notified_when_a_recovery_begins(alice: User) -> None:
    with_factor(alice, "email", "alice@elsewhere.example")
    initiate(alice)
    assert [mail["to"] for mail in sent("recovery_started")] == ["alice@elsewhere.example"]


def test_the_address_is_notified_when_a_recovery_completes(alice: User) -> None:
    complete(proven(alice))
    notices = sent("recovery_completed")
    assert [notice["to"] for notice in notices] == ["alice@example.com"]
    assert NEW_PASSWORD not in str(notices)


def test_a_completed_recovery_forgets_wrong_passwords(alice: User) -> None:
    verified = proven(alice)
    for _ in range(6):
        log_in(alice, "a wrong password")
    assert complete(verified).status == 204
    assert log_in(alice, NEW_PASSWORD).status == 200


def test_a_completed_recovery_verifies_the_address(home: Organization) -> None:
    """Of an account that an operator prepared, without a password."""
    dora = member(home, "dora@example.com")
    verified = proven(dora)
    assert verified.body["new_account_offered"] is False
    complete(verified)
    assert User.objects.get(pk=dora.pk).email_verified_at is not None
    assert log_in(dora, NEW_PASSWORD).status == 200


def test_a_token_is_read_as_people_type_it(alice: User) -> None:
    started, token = initiate(alice), mailed_token()
    assert verify(started, as_typed(token)).status == 200


def test_malformed_tokens_are_refused_with_400_and_not_counted(alice: User) -> None:
    started = initiate(alice)
    for token in ["1234567", "12345678901", "١٢٣٤٥٦٧٨", "U" * 26, "A" * 25, "x" * 64]:
        answer = verify(started, token)
        assert (answer.status, answer.code) == (400, "malformed_recovery_token"), token
    assert Recovery.objects.get().attempts_left == 5
    assert verify(started, mailed_token()).status == 200


def test_five_wrong_tokens_end_a_recovery(alice: User) -> None:
    started = initiate(alice)
    for _ in range(5):
        answer = verify(started, "0" * 26)
        assert (answer.status, answer.code) == (401, "recovery_token_rejected")
    answer = verify(started, mailed_token())
    assert (answer.status, answer.code) == (410, "recovery_gone")


def test_unknown_used_expired_and_exhausted_recoveries_get_the_same_response(alice: User) -> None:
    used, used_token = initiate(alice), mailed_token()
    verify(used, used_token)
    missed = initiate(alice)
    for _ in range(5):
        verify(missed, "0" * 26)
    old, old_token = initiate(alice), mailed_token()
    unknown = Caller().post(f"{PREFIX}/verify", {"recovery_id": "unknown", "token": used_token})
    answers = [unknown, verify(used, used_token), verify(missed, used_token)]
    with time_machine.travel(timezone.now() + timedelta(minutes=30, seconds=1)):
        answers.append(verify(old, old_token))
    bodies = [{k: v for k, v in a.body.items() if k != "request_id"} for a in answers]
    assert all(body == bodies[0] for body in bodies)
    assert (answers[0].status, bodies[0]["code"]) == (410, "recovery_gone")


def test_a_reset_token_works_once_and_for_ten_minutes(alice: User) -> None:
    first, second = proven(alice), proven(alice)
    with time_machine.travel(timezone.now() + timedelta(minutes=10, seconds=1)):
        assert complete(first).code == "recovery_gone"
    assert complete(second).status == 204
    assert complete(second).code == "recovery_gone"


def test_a_weak_password_is_refused_and_the_reset_token_stays_valid(alice: User) -> None:
    verified = proven(alice)
    for password in ["short", "password123", "alice@example.com", "Alice's"]:
        answer = complete(verified, password)
        assert (answer.status, answer.code) == (400, "invalid_request"), password
        assert answer.body["errors"][0]["field"] == "password"
    without = Caller().post(f"{PREFIX}/complete", {"reset_token": verified.body["reset_token"]})
    assert without.body["errors"][0]["field"] == "password"
    assert complete(verified).status == 204


def test_each_step_of_a_recovery_is_audited(alice: User) -> None:
    started = initiate(alice)
    verify(started, "0" * 26)
    complete(verify(started, mailed_token()))
    events = AuditEvent.objects.filter(organization_id=alice.organization_id).order_by("pk")
    assert [(event.tag, event.outcome) for event in events] == [
        ("api:recovery:create", "success"),
        ("api:recovery:verify", "refused"),
        ("api:recovery:verify", "success"),
        ("api:recovery:complete", "success"),
    ]
    assert {event.address for event in events} == {"127.0.0.1"}


@pytest.mark.django_db(transaction=True)
def test_only_one_of_parallel_completions_succeeds(alice: User) -> None:
    verified = proven(alice)

    def once(number: int) -> int:
        try:
            return complete(verified, f"{NEW_PASSWORD} {number}").status
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        statuses = sorted(pool.map(once, range(8)))
    assert statuses == [204] + [410] * 7
    assert len(sent("recovery_completed")) == 1


@pytest.mark.django_db(transaction=True)
def test_parallel_guesses_are_limited_to_five_tries(alice: User) -> None:
    started = initiate(alice)

    def once(_: int) -> int:
        try:
            return verify(started, "0" * 26).status
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(once, range(20)))
    assert (statuses.count(401), statuses.count(410)) == (5, 15)


@pytest.mark.django_db(transaction=True)
def test_parallel_verifications_of_the_right_token_return_one_reset_token(alice: User) -> None:
    started, token = initiate(alice), mailed_token()

    def once(_: int) -> int:
        try:
            return verify(started, token).status
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        statuses = sorted(pool.map(once, range(8)))
    assert statuses == [200] + [410] * 7


def test_the_old_password_works_until_a_new_one_is_set(alice: User) -> None:
    proven(alice)
    assert log_in(alice, PASSWORD).body["status"] == "authenticated"
