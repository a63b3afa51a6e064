"""Signing up by a mailed link: the mailbox is proven before there is an account."""

import ipaddress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from accounts import tasks
from accounts.models import SignupLink, User
from environments.models import Organization
from tests import inbox
from tests.accounts.profile.support import mailed_code, signed_up, user_of, verify
from tests.cast import Answer, Caller
from tests.parallel import at_once
from tests.twofactor.holder import with_totp
from twofactor.models import Factor

pytestmark = pytest.mark.django_db
VICTIM = "victim@example.com"
NEW_PASSWORD = "only the victim knows"


def request_link(email: str = VICTIM) -> Answer:
    return Caller().post("/v1/auth/signup/link", {"email": email})


def mailed_token(email: str = VICTIM) -> str:
    mails = [mail for mail in inbox.messages("mail", "signup_link") if mail["to"] == email]
    return inbox.secret_of(mails[-1])


def complete(token: str, password: str = NEW_PASSWORD, **more: Any) -> Answer:
    body = {"token": token, "password": password, **more}
    return Caller().post("/v1/auth/signup/complete", body)


def linked(email: str = VICTIM) -> str:
    """Return the token of a link just mailed."""
    assert request_link(email).status == 202
    return mailed_token(email)


def test_a_link_leads_to_an_account_with_a_verified_address() -> None:
    answer = complete(linked(), organization="Victim & Co")
    assert answer.status == 201
    assert (answer.body["status"], answer.body["email_verified"]) == ("authenticated", True)
    assert answer.headers["Cache-Control"] == "no-store"
    who = Caller().holding(answer).get("/v1/whoami").body
    assert (who["email"], who["organization"], who["roles"]) == (VICTIM, "Victim & Co", ["admin"])


def test_requesting_a_link_makes_no_account() -> None:
    request_link()
    assert not User.objects.exists()
    assert not Organization.objects.exists()


def test_every_address_gets_the_same_answer(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(email_verified_at=timezone.now())
    signed_up(VICTIM)
    with time_machine.travel(timezone.now(), tick=False):
        answers = [request_link(email) for email in (alice.email, VICTIM, "free@example.com")]
    assert {answer.status for answer in answers} == {202}
    assert len({str(answer.body) for answer in answers}) == 1
    assert SignupLink.objects.count() == 3
    # Only the mailbox learns that there is an account.
    assert inbox.notices_to(alice.email) == ["email_change_conflict"]
    assert inbox.notices_to(VICTIM)[-1] == "signup_link"


def test_a_link_mailed_before_the_verification_cannot_take_the_address() -> None:
    token = linked()
    caller = signed_up(VICTIM)
    with_totp(user_of(VICTIM))
    verify(caller, mailed_code(VICTIM))
    answer = complete(token)
    assert (answer.status, answer.code) == (409, "email_taken")
    assert caller.get("/v1/whoami").body["email"] == VICTIM


def test_staff_keep_their_address() -> None:
    signed_up(VICTIM)
    User.objects.filter(email=VICTIM).update(is_staff=True)
    request_link()
    assert inbox.notices_to(VICTIM)[-1] == "email_change_conflict"


def test_a_link_works_once() -> None:
    token = linked()
    assert complete(token).status == 201
    again = complete(token, "another password of hers")
    assert (again.status, again.code) == (410, "signup_link_gone")


def test_a_link_works_for_a_day() -> None:
    token = linked()
    with time_machine.travel(timezone.now() + timedelta(hours=24)):
        answer = complete(token)
        assert (answer.status, answer.code) == (410, "signup_link_gone")
        tasks.forget_expired(timestamp=0)
    assert not SignupLink.objects.exists()


def test_an_unknown_token_is_refused() -> None:
    assert complete("x" * 43).code == "signup_link_gone"
    assert complete("").status == 400


def test_a_weak_password_leaves_the_link_as_it_is() -> None:
    token = linked()
    assert complete(token, "short").status == 400
    assert complete(token, VICTIM).status == 400
    assert complete(token).status == 201


def test_only_the_digest_of_a_token_is_kept() -> None:
    token = linked()
    assert token not in str(SignupLink.objects.values())


def test_links_are_limited_for_each_receiver_and_network(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signup_links.links.LINKS_PER_RECEIVER", 2)
    assert [request_link().status for _ in range(2)] == [202, 202]
    answer = request_link(VICTIM.upper())
    assert (answer.status, answer.code) == (429, "mailed_too_often")
    settings.ACCOUNTS = replace(settings.ACCOUNTS, signups_per_hour=3)
    answer = request_link("another@example.com")
    assert (answer.status, answer.code) == (429, "too_many_attempts")


def test_an_attacker_does_not_use_up_an_addresses_links_from_one_network(
    settings: Settings,
) -> None:
    settings.TRUSTED_PROXIES = (ipaddress.ip_network("127.0.0.0/8"),)
    body = {"email": VICTIM}
    stranger = Caller(headers={"X_FORWARDED_FOR": "203.0.113.7"})
    answers = [stranger.post("/v1/auth/signup/link", body) for _ in range(7)]
    assert [answer.status for answer in answers] == [202] * 5 + [429] * 2
    assert answers[-1].code == "mailed_too_often"
    owner = Caller(headers={"X_FORWARDED_FOR": "198.51.100.7"})
    assert owner.post("/v1/auth/signup/link", body).status == 202


def test_tries_are_limited_for_each_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.signup_links.links.TRIES_PER_ADDRESS", 2)
    codes = [complete("x" * 43).code for _ in range(3)]
    assert codes == ["signup_link_gone", "signup_link_gone", "too_many_attempts"]


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_links_open_one_account() -> None:
    signed_up(VICTIM)
    holder = with_totp(user_of(VICTIM))
    tokens = [linked(), linked()]
    answers = at_once(*(lambda token=token: complete(token) for token in tokens * 2))
    assert sum(answer.status == 201 for answer in answers) == 1
    assert {answer.status for answer in answers} <= {201, 409, 410}
    assert User.objects.count() == 2
    assert Factor.objects.filter(user=holder.user, method="totp").exists()
