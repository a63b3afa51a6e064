"""Two people with one address: who gets the account, and how its owner links."""

from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from accounts import passwords
from accounts.models import MailboxProof, Session, User
from audit.models import AuditEvent
from oauth.models import Domain, Identity, OAuthGrant
from tests.cast import PASSWORD, Answer, Caller, member, organization, signed_in
from tests.inbox import notices_to
from tests.oauth.fake_providers.google import GooglePerson, GoogleServer
from tests.oauth.support import OAuthFlow
from tests.twofactor.holder import with_totp

LINK = "/v1/auth/oauth/google/link"


@pytest.fixture
def dora(google: GoogleServer) -> User:
    """Return a user with a password and a verified address, the same as at Google."""
    user = member(organization("Lakes"), "Dora@Example.com", password=PASSWORD)
    User.objects.filter(pk=user.pk).update(email_verified_at=timezone.now())
    return user


def log_in(email: str = "dora@example.com", password: str = PASSWORD) -> Answer:
    """Log in with the password."""
    return Caller().post("/v1/auth/login", {"email": email, "password": password})


def test_an_account_with_a_verified_address_has_to_be_linked_first(dora: User) -> None:
    answer = OAuthFlow("google").sign_in()
    assert (answer.status, answer.code) == (409, "link_required")
    assert answer.body["provider"] == "google"
    assert answer.body["link_expires_at"] - timezone.now().timestamp() <= 600
    assert "access_token" not in answer.body
    assert not Session.objects.exists()
    assert not Identity.objects.exists()
    assert log_in().status == 200
    event = AuditEvent.objects.get(outcome="refused")
    assert (event.actor_id, event.data["error"]) == (dora.pk, "link_required")


def test_the_owner_signs_in_and_links(dora: User) -> None:
    token = OAuthFlow("google").sign_in().body["link_token"]
    mine = Caller().holding(log_in())
    answer = mine.post(LINK, {"link_token": token})
    assert answer.status == 200, answer.body
    assert answer.body["status"] == "linked"
    assert answer.body["identity"]["email"] == "dora@example.com"
    who = Caller().holding(OAuthFlow("google").sign_in()).get("/v1/whoami").body
    assert who["user_id"] == str(dora.pk)
    assert "identity_linked" in notices_to("Dora@Example.com")


def test_the_owner_proves_the_second_factor_before_linking(dora: User) -> None:
    holder = with_totp(dora)
    Session.objects.all().delete()
    token = OAuthFlow("google").sign_in().body["link_token"]
    begun = log_in()
    assert begun.body["status"] == "mfa_required"
    waiting = Caller(begun.body["mfa_token"])
    assert waiting.post(LINK, {"link_token": token}).status == 401
    request = waiting.get("/v1/auth/2fa/challenge?method=totp").body
    path = f"/v1/auth/2fa/challenge/{request['challenge_id']}/verify"
    mine = Caller().holding(waiting.post(path, {"code": holder.code()}))
    assert mine.post(LINK, {"link_token": token}).status == 200
    # Signing in with the linked account requires it as well.
    assert OAuthFlow("google").sign_in().body["status"] == "mfa_required"


def test_a_session_that_skipped_the_second_factor_does_not_link(dora: User) -> None:
    with_totp(dora)
    token = OAuthFlow("google").sign_in().body["link_token"]
    answer = signed_in(dora).post(LINK, {"link_token": token})
    assert (answer.status, answer.code) == (403, "step_up_required")


def test_a_link_token_works_once_and_for_the_owner_only(dora: User, charlie: User) -> None:
    token = OAuthFlow("google").sign_in().body["link_token"]
    stranger = signed_in(charlie).post(LINK, {"link_token": token})
    assert (stranger.status, stranger.code) == (403, "link_foreign_session")
    other = signed_in(dora).post("/v1/auth/oauth/github/link", {"link_token": token})
    assert other.code == "provider_not_configured"
    assert signed_in(dora).post(LINK, {"link_token": token}).status == 200
    again = signed_in(dora).post(LINK, {"link_token": token})
    assert (again.status, again.code) == (410, "oauth_code_gone")


def test_a_link_token_lasts_ten_minutes(dora: User) -> None:
    now = timezone.now()
    with time_machine.travel(now, tick=False) as clock:
        token = OAuthFlow("google").sign_in().body["link_token"]
        clock.move_to(now + timedelta(minutes=10))
        assert signed_in(dora).post(LINK, {"link_token": token}).code == "oauth_code_gone"


def test_a_link_token_cannot_be_used_to_sign_in(dora: User) -> None:
    flow = OAuthFlow("google")
    token = flow.sign_in().body["link_token"]
    assert flow.exchange(token).code == "oauth_code_gone"
    code = OAuthFlow("google").code()
    assert signed_in(dora).post(LINK, {"link_token": code}).code == "oauth_code_gone"
    assert token not in str(list(OAuthGrant.objects.values()))


# --- the five pre-hijacking attacks (USENIX Security 2022)


def squatter(email: str = "dora@example.com") -> Caller:
    """Let an attacker sign up with the victim's address, and stay signed in."""
    body = {"email": email, "password": PASSWORD, "organization": "Squat"}
    return Caller().holding(Caller().post("/v1/auth/signup", body))


def test_classic_merge_the_attackers_password_does_not_open_the_account(
    google: GoogleServer,
) -> None:
    squatter()
    answer = OAuthFlow("google").sign_in()
    assert answer.status == 200
    assert {"code": "address_moved"} in answer.body["warnings"]
    user = User.objects.get(email="dora@example.com")
    assert user.email_verified_at is not None
    assert not user.has_usable_password()
    assert log_in().status == 401


def test_unexpired_session_the_attackers_session_is_not_in_the_account(
    google: GoogleServer,
) -> None:
    stranger = squatter()
    before = stranger.get("/v1/whoami").body
    mine = Caller().holding(OAuthFlow("google").sign_in()).get("/v1/whoami").body
    assert stranger.get("/v1/whoami").code == "email_required"
    assert stranger.holding(stranger.refresh()).get("/v1/whoami").code == "email_required"
    assert mine["user_id"] != before["user_id"]
    assert mine["org_id"] != before["org_id"]


def test_trojan_identifier_the_attackers_identity_stays_with_their_account(
    google: GoogleServer,
) -> None:
    stranger = squatter()
    google.person = GooglePerson(sub="trojan", email="stranger@example.org")
    assert OAuthFlow("google").link(stranger).body["status"] == "linked"
    google.person = GooglePerson()
    answer = OAuthFlow("google").sign_in()
    assert answer.body["status"] == "authenticated"
    mine = Caller().holding(answer).get("/v1/auth/identities").body
    assert [identity.subject for identity in Identity.objects.filter(user__email="")] == ["trojan"]
    assert "stranger@example.org" not in str(mine)
    # It opens the account without an address.
    google.person = GooglePerson(sub="trojan", email="stranger@example.org")
    other = Caller().holding(OAuthFlow("google").sign_in())
    assert other.get("/v1/whoami").code == "email_required"


def test_trojan_identifier_an_account_with_a_factor_loses_its_address_only(
    google: GoogleServer,
) -> None:
    squatter()
    holder = with_totp(User.objects.get())
    answer = OAuthFlow("google").sign_in()
    assert answer.body["status"] == "authenticated"
    mine = Caller().holding(answer)
    assert mine.get("/v1/whoami").body["email"] == "dora@example.com"
    assert mine.get("/v1/whoami").body["user_id"] != str(holder.user.pk)
    assert mine.get("/v1/auth/2fa/status").body["enabled"] is False
    # Its holder, who may have mistyped an address, keeps the data, and may give another address.
    kept = User.objects.get(pk=holder.user.pk)
    assert (kept.email, kept.organization_id) == ("", holder.user.organization_id)
    assert holder.caller.get("/v1/environments").status == 403
    assert holder.caller.get("/v1/auth/2fa/status").body["enabled"] is True


def test_a_refused_sign_up_leaves_the_account_its_address(
    google: GoogleServer, settings: Settings
) -> None:
    stranger = squatter()
    settings.ACCOUNTS = replace(settings.ACCOUNTS, signups_per_hour=1)
    assert OAuthFlow("google").sign_in().code == "too_many_attempts"
    assert User.objects.get().email == "dora@example.com"
    assert stranger.get("/v1/environments").status == 200


def test_unexpired_email_change_the_attackers_pending_change_is_removed(
    google: GoogleServer,
) -> None:
    stranger = squatter()
    change = {"email": "stranger@example.org"}
    assert stranger.post("/v1/auth/email/change", change).status in {200, 202}
    assert MailboxProof.objects.filter(email="stranger@example.org").exists()
    mine = Caller().holding(OAuthFlow("google").sign_in())
    assert not MailboxProof.objects.exists()
    assert mine.get("/v1/whoami").body["email"] == "dora@example.com"


def test_non_verifying_provider_an_unverified_address_matches_no_account(
    google: GoogleServer, dora: User
) -> None:
    google.person.email_verified = False
    assert OAuthFlow("google").error() == "email_unverified"
    assert not Identity.objects.exists()
    # It does not match an unverified account either.
    User.objects.update(email_verified_at=None)
    assert OAuthFlow("google").error() == "email_unverified"
    assert log_in().status == 200


def test_a_link_that_the_attacker_started_links_to_their_own_account(google: GoogleServer) -> None:
    stranger = squatter()
    flow = OAuthFlow("google")
    google.person = GooglePerson(sub="trojan", email="stranger@example.org")
    code = flow.link_code(stranger)
    google.person = GooglePerson()
    OAuthFlow("google").sign_in()
    flow.exchange(code, stranger)
    assert not Identity.objects.filter(subject="trojan").exclude(user__email="").exists()


def test_the_owner_joins_the_organization_that_has_proven_the_domain(google: GoogleServer) -> None:
    squatter("dora@lakes.example")
    company = organization("Lakes")
    Domain.objects.create(
        organization=company,
        domain="lakes.example",
        role="operator",
        token="t",
        created_at=timezone.now(),
        verified_at=timezone.now(),
    )
    google.person = GooglePerson(email="dora@lakes.example", hd="lakes.example")
    who = Caller().holding(OAuthFlow("google").sign_in()).get("/v1/whoami").body
    assert (who["org_id"], who["roles"]) == (company.pk, ["operator"])


def test_an_account_that_was_prepared_and_never_used_is_the_owners_without_a_warning(
    google: GoogleServer,
) -> None:
    """As an operator imports users."""
    member(organization(), "dora@example.com", role="operator")
    answer = OAuthFlow("google").sign_in()
    assert answer.body["warnings"] == []
    assert Caller().holding(answer).get("/v1/whoami").body["roles"] == ["operator"]


def test_an_address_that_only_the_index_considers_equal_is_refused(
    google: GoogleServer,
) -> None:
    """A dotless i has the same capital as an i; this must not open another user's account."""
    user = member(organization(), "di@example.com", password=PASSWORD)
    google.person.email = "d\N{LATIN SMALL LETTER DOTLESS I}@example.com"
    assert OAuthFlow("google").error() == "email_missing"
    assert User.objects.get() == user
    assert log_in("di@example.com").status == 200


def test_a_staff_account_keeps_its_address(google: GoogleServer) -> None:
    user = member(organization("Operators"), "dora@example.com", password=PASSWORD)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    assert OAuthFlow("google").sign_in().code == "link_required"
    assert passwords.is_right(User.objects.get(), PASSWORD)


def test_a_disabled_account_keeps_a_verified_address(dora: User) -> None:
    User.objects.filter(pk=dora.pk).update(is_active=False)
    assert OAuthFlow("google").sign_in().code == "identity_refused"
    assert User.objects.get().email == dora.email


def test_addresses_are_compared_without_regard_to_case(dora: User, google: GoogleServer) -> None:
    google.person.email = "DORA@EXAMPLE.COM"
    assert OAuthFlow("google").sign_in().code == "link_required"
