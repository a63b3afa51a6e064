"""A change of address: proven first; the present address is notified and can cancel."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import passwords
from accounts.models import MailboxProof, Session, User
from audit.models import AuditEvent
from environments.models import Organization
from outbox.models import Delivery
from tests import inbox
from tests.accounts.profile.support import (
    NEW,
    PATH,
    begin_change,
    cancel_token,
    mailed_code,
    verify,
)
from tests.cast import PASSWORD, Caller, member, signed_in, with_proven_address
from tests.parallel import at_once
from tests.queries import statements
from tests.twofactor.holder import with_totp

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(home: Organization) -> User:
    user = member(home, "alice@example.com", password=PASSWORD)
    User.objects.filter(pk=user.pk).update(email_verified_at=timezone.now())
    return user


def test_the_address_changes_when_the_new_one_is_proven(alice: User) -> None:
    caller = signed_in(alice)
    answer = begin_change(caller, "Alice@NEW.example")
    assert answer.status == 202
    assert answer.body["email"] == "alice@example.com"
    assert answer.body["pending_email"] == "Alice@new.example"
    assert caller.get("/v1/whoami").body["email"] == "alice@example.com"
    done = verify(caller, mailed_code("Alice@new.example"))
    assert done.body == {
        "email": "Alice@new.example",
        "email_verified": True,
        "pending_email": None,
        "code_expires_at": None,
    }
    login = {"email": "alice@new.example", "password": PASSWORD}
    assert Caller().post("/v1/auth/login", login).status == 200
    login["email"] = "alice@example.com"
    assert Caller().post("/v1/auth/login", login).code == "invalid_credentials"


def test_the_present_address_is_notified_and_the_new_one_masked(alice: User) -> None:
    caller = signed_in(alice)
    begin_change(caller)
    assert inbox.notices_to("alice@example.com") == ["email_change_started"]
    (notice,) = inbox.messages("mail", "email_change_started")
    assert notice["context"]["new"] == "a***@new.example"
    assert NEW not in str(notice)
    verify(caller, mailed_code(NEW))
    assert inbox.notices_to("alice@example.com") == ["email_change_started", "email_changed"]
    tags = AuditEvent.objects.filter(tag__startswith="api:email").values_list("tag", "data")
    assert list(tags) == [
        ("api:email:begin_change", {"to": NEW}),
        ("api:email:update", {"before": "alice@example.com", "after": NEW}),
    ]


def test_the_present_address_cancels_without_signing_in(alice: User) -> None:
    caller = signed_in(alice)
    begin_change(caller)
    body = {"token": cancel_token()}
    assert Caller().get(f"{PATH}/cancel").status == 405
    assert Caller().post(f"{PATH}/cancel", body).status == 204
    assert verify(caller, mailed_code(NEW)).code == "email_code_gone"
    assert Caller().post(f"{PATH}/cancel", body).code == "email_change_gone"
    assert caller.get(PATH).body["pending_email"] is None


def test_a_cancel_token_ends_its_own_change_and_no_other(alice: User, charlie: User) -> None:
    begin_change(signed_in(alice))
    old = cancel_token()
    begin_change(signed_in(alice), "alice@newer.example")
    begin_change(signed_in(charlie), "charlie@new.example")
    for token in (old, "x", "x" * 43):
        answer = Caller().post(f"{PATH}/cancel", {"token": token})
        assert (answer.status, answer.code) == (410, "email_change_gone")
    assert MailboxProof.objects.count() == 2


def test_a_user_cancels_a_pending_change(alice: User) -> None:
    caller = signed_in(alice)
    begin_change(caller)
    assert caller.call("DELETE", f"{PATH}/change").status == 204
    assert verify(caller, mailed_code(NEW)).code == "email_code_gone"
    assert caller.call("DELETE", f"{PATH}/change").code == "email_change_gone"


def test_a_second_change_replaces_the_first(alice: User) -> None:
    caller = signed_in(alice)
    begin_change(caller)
    first = mailed_code(NEW)
    begin_change(caller, "alice@newer.example")
    assert verify(caller, first).code == "email_code_rejected"
    assert verify(caller, mailed_code("alice@newer.example")).status == 200


def test_a_change_of_address_reveals_no_account(alice: User, charlie: User) -> None:
    with_proven_address(charlie)
    caller = signed_in(alice)
    caller.get(PATH)
    free, costs = [], []
    for email in (NEW, "charlie@example.org"):
        with CaptureQueriesContext(connection) as queries:
            answer = begin_change(caller, email)
        costs.append(statements(queries))
        free.append({**answer.body, "pending_email": "", "code_expires_at": 0})
        MailboxProof.objects.all().delete()
        assert answer.status == 202
    assert free[0] == free[1]
    assert costs[0] == costs[1]
    mailed = [(mail["to"], mail["template"]) for mail in inbox.messages("mail")]
    assert ("charlie@example.org", "email_change_conflict") in mailed
    assert ("charlie@example.org", "email_verification") not in mailed


def test_an_address_with_an_account_cannot_be_proven(alice: User, charlie: User) -> None:
    with_proven_address(charlie)
    caller = signed_in(alice)
    begin_change(caller, "charlie@example.org")
    (conflict,) = inbox.messages("mail", "email_change_conflict")
    mailed_to = Delivery.objects.get(template="email_change_conflict")
    assert mailed_to.organization_id == charlie.organization_id
    assert "code" not in conflict["context"]
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert caller.post(f"{PATH}/resend").status == 202
    assert len(inbox.messages("mail", "email_change_conflict")) == 2
    assert caller.get("/v1/whoami").body["email"] == "alice@example.com"


def test_an_account_that_took_the_address_in_the_meantime_keeps_it(
    alice: User, charlie: User
) -> None:
    with_proven_address(charlie)
    caller = signed_in(alice)
    begin_change(caller)
    User.objects.filter(pk=charlie.pk).update(email=NEW.upper())
    answer = verify(caller, mailed_code(NEW))
    assert (answer.status, answer.code) == (409, "email_taken")
    assert caller.get("/v1/whoami").body["email"] == "alice@example.com"


def test_the_same_address_is_refused_but_another_letter_case_is_accepted(alice: User) -> None:
    caller = signed_in(alice)
    answer = begin_change(caller, "alice@EXAMPLE.com")
    assert (answer.status, answer.body["errors"][0]["code"]) == (400, "unchanged")
    assert begin_change(caller, "Alice@example.com").status == 202
    assert verify(caller, mailed_code("Alice@example.com")).body["email"] == "Alice@example.com"


def test_a_new_code_is_mailed_for_the_same_address_in_another_letter_case(alice: User) -> None:
    caller = signed_in(alice)
    begin_change(caller, "ALICE@example.com")
    with time_machine.travel(timezone.now() + timedelta(seconds=90)):
        assert caller.post(f"{PATH}/resend").status == 202
        assert verify(caller, mailed_code("ALICE@example.com")).body["email"] == "ALICE@example.com"


@pytest.mark.parametrize("email", ["nonsense", "", "a@example.com\nBcc: b@example.com", None])
def test_a_wrong_address_is_named(alice: User, email: Any) -> None:
    answer = signed_in(alice).post(f"{PATH}/change", {"email": email})
    assert answer.status == 400
    assert answer.body["errors"][0]["field"] == "email"
    assert not inbox.messages()


def test_a_recent_proof_is_required(alice: User) -> None:
    caller = signed_in(alice)
    Session.objects.update(auth_time=timezone.now() - timedelta(minutes=16))
    assert begin_change(caller).code == "step_up_required"
    with_totp(alice)
    assert begin_change(signed_in(alice)).code == "step_up_required"
    assert not MailboxProof.objects.exists()


def test_a_change_dies_with_the_password(alice: User) -> None:
    caller = signed_in(alice)
    begin_change(caller)
    body = {"current_password": PASSWORD, "password": "another horse altogether"}
    assert caller.post("/v1/auth/password", body).status == 200
    assert caller.get(PATH).body["pending_email"] is None
    assert verify(caller, mailed_code(NEW)).code == "email_code_gone"
    answer = Caller().post(f"{PATH}/cancel", {"token": cancel_token()})
    assert answer.code == "email_change_gone"


def test_a_pending_change_ends_with_any_change_of_password(alice: User) -> None:
    caller = signed_in(alice)
    begin_change(caller)
    encoded = passwords.hash_password("by an operator, say")
    User.objects.filter(pk=alice.pk).update(password=encoded)
    assert verify(caller, mailed_code(NEW)).code == "email_code_gone"


def test_a_change_expires(alice: User) -> None:
    begin_change(signed_in(alice))
    with time_machine.travel(timezone.now() + timedelta(days=1, seconds=1)):
        caller = signed_in(alice)
        assert caller.get(PATH).body["pending_email"] is None
        assert verify(caller, mailed_code(NEW)).code == "email_code_gone"
        answer = Caller().post(f"{PATH}/cancel", {"token": cancel_token()})
        assert answer.code == "email_change_gone"


def test_a_code_is_bound_to_its_user_and_its_address(alice: User, charlie: User) -> None:
    begin_change(signed_in(alice))
    code = mailed_code(NEW)
    begin_change(signed_in(charlie), "charlie@new.example")
    assert verify(signed_in(charlie), code).code == "email_code_rejected"
    assert User.objects.get(pk=charlie.pk).email == "charlie@example.org"


def test_a_mailbox_is_not_flooded_by_another_users_changes(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.mailbox_proofs.SENDS_PER_RECEIVER", 2)
    for user in (alice, charlie):
        assert begin_change(signed_in(user)).status == 202
    answer = begin_change(signed_in(alice))
    assert (answer.status, answer.code) == (429, "mailed_too_often")


def test_an_unproven_account_proves_the_new_address_instead(home: Organization) -> None:
    dora = member(home, "typo@example.com", role="reader", password=PASSWORD)
    caller = signed_in(dora)
    begin_change(caller, "dora@example.com")
    answer = verify(caller, mailed_code("dora@example.com"))
    assert (answer.body["email"], answer.body["email_verified"]) == ("dora@example.com", True)


@pytest.mark.django_db(transaction=True)
def test_one_code_given_twice_concurrently_changes_the_address_once(alice: User) -> None:
    caller = signed_in(alice)
    begin_change(caller)
    code = mailed_code(NEW)
    answers = at_once(*(lambda: verify(caller, code) for _ in range(3)))
    assert sorted(answer.status for answer in answers) == [200, 410, 410]
    assert inbox.notices_to("alice@example.com").count("email_changed") == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_users_verifying_one_address_concurrently_one_gets_it(
    alice: User, charlie: User
) -> None:
    callers, codes = [signed_in(alice), signed_in(charlie)], []
    for caller in callers:
        begin_change(caller)
        codes.append(mailed_code(NEW))
    answers = at_once(lambda: verify(callers[0], codes[0]), lambda: verify(callers[1], codes[1]))
    assert sorted(answer.status for answer in answers) == [200, 409]
    assert User.objects.filter(email=NEW).count() == 1
