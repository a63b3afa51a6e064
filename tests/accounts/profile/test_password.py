"""A change of password: proven by the present one; all of the account's sessions end."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import transaction
from django.test import RequestFactory
from django.utils import timezone
from pytest_django import Settings

from accounts import passwords
from accounts.errors import InvalidCredentials
from accounts.models import Session, User
from accounts.sessions.sessions import RequestSource
from accounts.signin import credentials, signin
from accounts.signin.signin import SignInAttempt, SignInMethod
from audit.models import AuditEvent
from environments.models import Organization
from tests import inbox
from tests.cast import PASSWORD, Answer, Caller, member, signed_in
from tests.parallel import at_once
from tests.twofactor.holder import with_totp
from twofactor.models import PendingSignIn, TrustedDevice
from twofactor.trusted_devices import devices

pytestmark = pytest.mark.django_db
PATH = "/v1/auth/password"
NEW = "another horse altogether"
SOURCE = RequestSource("127.0.0.1", "test")


@pytest.fixture
def alice(home: Organization) -> User:
    return member(home, "alice@example.com", password=PASSWORD)


def change(caller: Caller, current: str = PASSWORD, new: str = NEW, **more: Any) -> Answer:
    return caller.post(PATH, {"current_password": current, "password": new, **more})


def log_in(password: str) -> Answer:
    body = {"email": "alice@example.com", "password": password}
    return Caller().post("/v1/auth/login", body)


def test_the_new_password_counts_and_the_old_one_does_not(alice: User) -> None:
    caller = signed_in(alice)
    answer = change(caller)
    assert (answer.status, answer.body) == (200, {"ended": 0})
    assert log_in(PASSWORD).code == "invalid_credentials"
    assert log_in(NEW).status == 200
    assert caller.get("/v1/whoami").status == 200


def test_all_other_sessions_and_trusted_devices_end(alice: User) -> None:
    caller, others = signed_in(alice), [signed_in(alice) for _ in range(2)]
    devices.trust(alice, "phone", now=timezone.now())
    assert change(caller).body == {"ended": 2}
    assert {other.get("/v1/whoami").code for other in others} == {"session_revoked"}
    assert {other.refresh().code for other in others} == {"session_revoked"}
    assert not TrustedDevice.objects.exists()


def test_other_sessions_may_be_kept(alice: User) -> None:
    caller, other = signed_in(alice), signed_in(alice)
    devices.trust(alice, "phone", now=timezone.now())
    assert change(caller, end_other_sessions=False).body == {"ended": 0}
    assert other.get("/v1/whoami").status == 200
    assert not TrustedDevice.objects.exists()


def test_a_new_password_is_notified_and_audited(alice: User) -> None:
    change(signed_in(alice))
    (mail,) = inbox.messages("mail", "password_changed")
    assert mail["to"] == "alice@example.com"
    assert mail["context"]["address"] == "127.0.0.1"
    event = AuditEvent.objects.get(tag="api:password:update")
    assert PASSWORD not in str(vars(event))
    assert NEW not in str(vars(event)) + str(mail)


def test_a_wrong_present_password_changes_nothing(alice: User) -> None:
    caller, other = signed_in(alice), signed_in(alice)
    answer = change(caller, "wrong password")
    assert (answer.status, answer.code) == (401, "invalid_credentials")
    assert not inbox.messages()
    assert log_in(PASSWORD).status == 200
    assert other.get("/v1/whoami").status == 200
    event = AuditEvent.objects.get(tag="api:password:update")
    assert (event.outcome, event.actor_id) == ("refused", alice.pk)


def test_guesses_at_the_present_password_are_the_logins_guesses(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.credentials.LOGINS_PER_ACCOUNT", 3)
    caller = signed_in(alice)
    for _ in range(3):
        change(caller, "wrong password")
    assert change(caller).code == "invalid_credentials"


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"password": NEW}, "current_password", "required"),
        ({"current_password": PASSWORD}, "password", "required"),
        ({"current_password": PASSWORD, "password": "short"}, "password", "password_too_short"),
        (
            {"current_password": PASSWORD, "password": "alice@example.com"},
            "password",
            "password_too_similar",
        ),
    ],
)
def test_a_missing_or_weak_field_is_named(
    alice: User, body: dict[str, Any], field: str, code: str
) -> None:
    answer = signed_in(alice).post(PATH, body)
    assert answer.status == 400
    assert [(row["field"], row["code"]) for row in answer.body["errors"]] == [(field, code)]


def test_a_recent_proof_is_required(alice: User) -> None:
    caller = signed_in(alice)
    Session.objects.update(auth_time=timezone.now() - timedelta(minutes=16))
    answer = change(caller)
    assert (answer.status, answer.code) == (403, "step_up_required")
    assert log_in(PASSWORD).status == 200


def test_where_a_factor_is_active_the_password_alone_does_not_do(alice: User) -> None:
    with_totp(alice)
    answer = change(signed_in(alice))
    assert answer.code == "step_up_required"
    assert answer.body["proof"] == "second_factor"


def test_an_account_without_a_password_gets_its_first_one(home: Organization) -> None:
    dora = member(home, "dora@example.com", role="reader")
    caller = signed_in(dora)
    assert caller.get(PATH).body == {"has_password": False}
    assert caller.post(PATH, {"password": NEW}).status == 200
    assert caller.get(PATH).body == {"has_password": True}
    login = {"email": "dora@example.com", "password": NEW}
    assert Caller().post("/v1/auth/login", login).status == 200


def test_a_pending_sign_in_ends_with_the_password_that_began_it(alice: User) -> None:
    holder = with_totp(alice)
    pending = log_in(PASSWORD).body["mfa_token"]
    caller = signed_in(alice)
    Session.objects.update(mfa_time=timezone.now())
    assert change(caller).status == 200
    assert Caller(pending).get("/v1/auth/2fa/challenge").code == "token_expired"
    assert holder.code()


def test_a_password_proven_before_its_change_opens_no_session_after_it(alice: User) -> None:
    """The race of a thief: the old password is checked, then changed, then a session opened."""
    proven = credentials.verify(alice.email, PASSWORD, source=SOURCE, now=timezone.now())
    assert change(signed_in(alice)).status == 200
    request = RequestFactory().post("/v1/auth/login")
    place = signin.environment_for(proven, "")
    attempt = SignInAttempt(
        proven, place, method=SignInMethod.PASSWORD, amr=["pwd"], now=timezone.now()
    )
    before = Session.objects.count()
    with pytest.raises(InvalidCredentials), transaction.atomic():
        signin.finish(request, attempt)  # type: ignore[arg-type]  # all that it reads is there
    assert Session.objects.count() == before


def test_a_password_proven_before_its_change_starts_no_second_factor_after_it(alice: User) -> None:
    with_totp(alice)
    proven = credentials.verify(alice.email, PASSWORD, source=SOURCE, now=timezone.now())
    caller = signed_in(alice)
    Session.objects.update(mfa_time=timezone.now())
    assert change(caller).status == 200
    request = RequestFactory().post("/v1/auth/login")
    attempt = SignInAttempt(
        proven,
        signin.environment_for(proven, ""),
        method=SignInMethod.PASSWORD,
        amr=["pwd"],
        now=timezone.now(),
    )
    with pytest.raises(InvalidCredentials):
        signin.finish(request, attempt)  # type: ignore[arg-type]  # all that it reads is there


def test_a_rehash_never_puts_an_old_password_back(alice: User) -> None:
    """A sign-in that updates the hash while the password is changed must not win."""
    stale = User.objects.get(pk=alice.pk)
    assert change(signed_in(alice)).status == 200
    with (
        patch.object(passwords.TunedArgon2Hasher, "time_cost", 3),
        pytest.raises(InvalidCredentials),
    ):
        passwords.upgrade(stale, PASSWORD)
    assert log_in(PASSWORD).code == "invalid_credentials"
    assert log_in(NEW).status == 200


def test_two_concurrent_sign_ins_that_update_the_hash_both_succeed(alice: User) -> None:
    first, second = (User.objects.get(pk=alice.pk) for _ in range(2))
    with patch.object(passwords.TunedArgon2Hasher, "time_cost", 3):
        for user in (first, second):
            passwords.upgrade(user, PASSWORD)
    kept = User.objects.get(pk=alice.pk).password
    assert "t=3" in kept
    assert first.password == second.password == kept


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_changes_leave_the_password_of_one(alice: User) -> None:
    callers = [signed_in(alice), signed_in(alice)]
    answers = at_once(
        lambda: change(callers[0], new="the first of the two"),
        lambda: change(callers[1], new="the second of the two"),
    )
    won = [
        new
        for new, answer in zip(
            ("the first of the two", "the second of the two"), answers, strict=True
        )
        if answer.status == 200
    ]
    assert len(won) == 1
    assert log_in(won[0]).status == 200
    assert log_in(PASSWORD).code == "invalid_credentials"


@pytest.mark.django_db(transaction=True)
def test_no_sign_in_at_the_same_moment_survives_with_the_old_password(alice: User) -> None:
    caller = signed_in(alice)
    answers = at_once(lambda: change(caller), *(lambda: log_in(PASSWORD) for _ in range(3)))
    assert answers[0].status == 200
    for answer in answers[1:]:
        assert answer.status in {200, 401}
        if answer.status == 200:
            assert Caller().holding(answer).get("/v1/whoami").code == "session_revoked"


def test_a_development_token_has_no_password(alice: User, settings: Settings) -> None:
    from accounts.tokens import development

    settings.ACCOUNTS = replace(
        settings.ACCOUNTS, dev_org_id=alice.organization_id, dev_secret="x" * 40
    )
    caller = Caller(development.token_for(alice.organization_id))
    assert change(caller).code == "permission_denied"
    assert not PendingSignIn.objects.exists()
