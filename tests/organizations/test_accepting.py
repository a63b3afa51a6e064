"""Accepting: one account, a proven mailbox, and the same checks however one signs in."""

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Session, User
from audit.models import AuditEvent
from environments.models import Organization
from organizations.models import Invitation
from outbox.models import Delivery
from tests.cast import PASSWORD, Caller, signed_in, with_proven_address
from tests.organizations.support import DORA, PATH, accept, invite, invited, mailed_token, preview
from tests.outbox.messages.support import Mailbox, run, smtp_options, smtp_server
from tests.parallel import at_once

pytestmark = pytest.mark.django_db


def test_accepting_makes_the_account_and_signs_in(alice: User) -> None:
    token = invited(alice, roles=["operator"], labels=["sales"])
    answer = accept(token)
    assert answer.status == 201
    assert answer.body["status"] == "authenticated"
    assert answer.body["environment"] == {"id": "live", "name": "live"}
    assert answer.body["email_verified"] is True
    assert answer.headers["Cache-Control"] == "no-store"
    who = Caller().holding(answer).get("/v1/whoami").body
    assert (who["email"], who["org_id"]) == (DORA, alice.organization_id)
    assert (who["roles"], who["labels"]) == (["operator"], ["sales"])
    assert who["email_verified"] is True
    login = {"email": DORA, "password": PASSWORD}
    assert Caller().post("/v1/auth/login", login).status == 200
    state = signed_in(alice).get(PATH).body["results"][0]["state"]
    assert state == "accepted"
    event = AuditEvent.objects.get(tag="api:invitation:accept")
    assert (event.actor, event.organization_id) == (DORA, alice.organization_id)


def test_a_token_works_once(alice: User) -> None:
    token = invited(alice)
    assert accept(token).status == 201
    answer = accept(token)
    assert (answer.status, answer.code) == (410, "invitation_gone")
    assert User.objects.filter(email=DORA).count() == 1


def test_what_cannot_be_accepted_looks_the_same(alice: User) -> None:
    used = invited(alice, "used@example.com")
    accept(used)
    revoked = invited(alice, "revoked@example.com")
    row = Invitation.objects.get(email="revoked@example.com")
    signed_in(alice).call("DELETE", f"{PATH}/{row.pk}")
    replaced = invited(alice, "replaced@example.com")
    invite(alice, "replaced@example.com")
    with time_machine.travel(timezone.now() - timedelta(days=7, seconds=5)):
        expired = invited(alice, "expired@example.com")
    tokens = [used, revoked, replaced, expired, "x", "x" * 43, "ü", revoked + "x"]
    bodies = []
    for token in tokens:
        answer = accept(token)
        assert answer.status == 410
        bodies.append({key: answer.body[key] for key in answer.body if key != "request_id"})
    assert all(body == bodies[0] for body in bodies)
    assert bodies[0]["code"] == "invitation_gone"


def test_a_token_is_good_until_its_last_second(alice: User) -> None:
    now = timezone.now()
    with time_machine.travel(now, tick=False) as clock:
        token = invited(alice)
        clock.shift(timedelta(days=7, seconds=-1))
        assert preview(token).status == 200
        clock.shift(timedelta(seconds=1))
        assert preview(token).code == "invitation_gone"


def test_reading_an_invitation_does_not_use_it_up(alice: User) -> None:
    token = invited(with_proven_address(alice), roles=["reader"])
    for _ in range(3):
        answer = preview(token)
        assert answer.status == 200
    assert answer.body == {
        "id": str(Invitation.objects.get().pk),
        "email": DORA,
        "organization": "Alice's",
        "roles": ["reader"],
        "invited_by": "alice@example.com",
        "expires_at": answer.body["expires_at"],
    }
    assert answer.headers["Cache-Control"] == "no-store"
    assert accept(token).status == 201


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("short", "password_too_short"),
        ("password123", "password_too_common"),
        ("dora@example.com", "password_too_similar"),
        ("x" * 257, "password_too_long"),
    ],
)
def test_a_weak_password_leaves_the_invitation_open(alice: User, password: str, code: str) -> None:
    token = invited(alice)
    answer = accept(token, password)
    assert answer.status == 400
    assert [(row["field"], row["code"]) for row in answer.body["errors"]] == [("password", code)]
    assert accept(token).status == 201


def test_the_address_of_the_invitation_overrides_the_body(alice: User) -> None:
    body = {"token": invited(alice), "password": PASSWORD, "email": "eve@example.com"}
    answer = Caller().post(f"{PATH}/accept", body)
    assert answer.body["errors"][0] == {
        "field": "email",
        "code": "unknown",
        "message": "There is no such field.",
    }
    assert not User.objects.filter(email="eve@example.com").exists()


def test_an_account_verified_in_the_meantime_keeps_the_address(alice: User) -> None:
    token = invited(alice)
    Caller().post("/v1/auth/signup", {"email": "DORA@example.com", "password": PASSWORD})
    with_proven_address(User.objects.get(email="DORA@example.com"))
    answer = accept(token)
    assert (answer.status, answer.code) == (409, "email_taken")
    assert User.objects.filter(email__iexact=DORA).count() == 1
    assert User.objects.get(email__iexact=DORA).organization_id != alice.organization_id


def test_a_signed_in_browser_accepts_for_another_address(alice: User, charlie: User) -> None:
    answer = signed_in(charlie).post(
        f"{PATH}/accept", {"token": invited(alice), "password": PASSWORD}
    )
    assert Caller().holding(answer).get("/v1/whoami").body["email"] == DORA


def required(of: Organization, *, days: int) -> None:
    Organization.objects.filter(pk=of.pk).update(
        mfa_required=True,
        mfa_required_since=timezone.now() - timedelta(days=100),
        mfa_grace_period_days=days,
    )


def test_where_a_second_factor_is_required_it_is_set_up_first(
    home: Organization, alice: User
) -> None:
    token = invited(alice)
    required(home, days=0)
    answer = accept(token)
    assert answer.status == 201
    assert answer.body["status"] == "mfa_enrollment_required"
    assert "access_token" not in answer.body
    assert not Session.objects.filter(user__email=DORA).exists()
    # The account is there, and the invitation used up: what is left is to enrol.
    assert accept(token).code == "invitation_gone"
    pending = Caller(answer.body["mfa_token"])
    assert pending.post("/v1/auth/2fa/totp/setup", {}).status == 200
    assert pending.get("/v1/whoami").status == 401


def test_the_grace_period_begins_with_joining(home: Organization, alice: User) -> None:
    token = invited(alice)
    required(home, days=7)
    answer = accept(token)
    assert answer.body["status"] == "authenticated"
    assert answer.body["warnings"][0]["code"] == "mfa_enrollment_due"


def test_guesses_are_limited_by_address(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.signup_links.links.TRIES_PER_ADDRESS", 3)
    for _ in range(3):
        assert accept("guess").status == 410
    answer = accept("guess")
    assert (answer.status, answer.code) == (429, "too_many_attempts")


def test_a_guess_costs_no_hash(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def hashed(_: str) -> str:
        raise AssertionError("a password was hashed")

    monkeypatch.setattr("accounts.passwords.hash_password", hashed)
    assert accept("guess").status == 410


@pytest.mark.django_db(transaction=True)
def test_accepting_concurrently_creates_one_account(alice: User) -> None:
    token = invited(alice)
    answers = at_once(*(lambda: accept(token) for _ in range(4)))
    assert sorted(answer.status for answer in answers) == [201, 410, 410, 410]
    assert User.objects.filter(email=DORA).count() == 1
    assert Session.objects.filter(user__email=DORA).count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_invitations_of_one_address_accepted_concurrently_create_one_account(
    alice: User, charlie: User
) -> None:
    tokens = [invited(alice), invited(charlie)]
    answers = at_once(*(lambda token=token: accept(token) for token in tokens))
    assert sorted(answer.status for answer in answers) == [201, 409]
    assert User.objects.filter(email=DORA).count() == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_revoking_and_accepting_agree(alice: User) -> None:
    token = invited(alice)
    row, caller = Invitation.objects.get(), signed_in(alice)
    answers: Any = at_once(
        lambda: accept(token).status,
        lambda: caller.call("DELETE", f"{PATH}/{row.pk}").status,
    )
    assert tuple(answers) in {(201, 404), (410, 204)}
    assert User.objects.filter(email=DORA).exists() is (answers[0] == 201)


def test_the_mail_equals_its_template(alice: User, mailoutbox: list[Any]) -> None:
    token = invited(alice)
    run(Delivery.objects.get())
    (mail,) = mailoutbox
    assert token in mail.body
    assert token in mail.alternatives[0][0]
    assert "7 days" in mail.body
    assert token not in mail.subject
    assert mail.subject.startswith("Join Alice's")
    assert not Delivery.objects.exclude(payload="").exists()


def test_the_link_in_the_mail_that_arrives_leads_in(alice: User, settings: Settings) -> None:
    """Over SMTP, encoded and wrapped as mails are."""
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.MAIL_OPTIONS = smtp_options(port)
        assert invite(alice).status == 202
        assert run(Delivery.objects.get()).state == "sent"
    (mail,) = mailbox.mails
    assert mailbox.recipients == [DORA]
    tokens = set()
    for kind in ("plain", "html"):
        part = mail.get_body((kind,))
        assert part is not None
        tokens |= set(re.findall(r"/console/invitation#token=([\w-]+)", part.get_content()))
    (token,) = tokens
    answer = accept(token)
    assert Caller().holding(answer).get("/v1/whoami").body["email"] == DORA


def test_mailed_token_is_the_last(alice: User) -> None:
    assert invited(alice) != invited(alice) == mailed_token()
