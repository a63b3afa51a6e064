"""A member whom an admin removed is let in again by an invitation, and by no rule of a provider."""

from dataclasses import replace

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from oauth.models import Domain
from organizations.models import Invitation, RemovedMember
from tests.cast import Answer, Caller, signed_in, with_proven_address
from tests.oauth.fake_providers.google import GoogleServer
from tests.oauth.support import OAuthFlow

pytestmark = pytest.mark.django_db

DORA = "dora@example.com"


@pytest.fixture
def joined(google: GoogleServer, alice: User) -> User:
    """Return Dora, who has joined by the organization's domain."""
    with_proven_address(alice)
    google.person = replace(google.person, hd="example.com")
    now = timezone.now()
    Domain.objects.create(
        organization=alice.organization,
        domain="example.com",
        role="reader",
        token="x",
        created_at=now,
        verified_at=now,
        seen_at=now,
    )
    return user_of(OAuthFlow("google").sign_in())


def user_of(answer: Answer) -> User:
    assert answer.status == 200, answer.body
    found = Caller().holding(answer).get("/v1/whoami").body
    user: User = User.objects.get(pk=found["user_id"])
    return user


def remove(admin: User, user: User) -> None:
    assert signed_in(admin).call("DELETE", f"/v1/members/{user.pk}").status == 200


def test_a_removed_member_does_not_come_back_by_the_domain(alice: User, joined: User) -> None:
    assert joined.organization_id == alice.organization_id
    remove(alice, joined)
    again = user_of(OAuthFlow("google").sign_in())
    assert (again.organization_id == alice.organization_id, again.roles) == (False, ["admin"])


@pytest.mark.parametrize("kept", ["email", "sub"])
def test_a_removed_member_is_recognized_by_address_and_by_account(
    google: GoogleServer, alice: User, joined: User, kept: str
) -> None:
    remove(alice, joined)
    other = {"email": "dora.lake@example.com", "sub": "another account"}
    other.pop(kept)
    google.person = replace(google.person, **other)
    assert user_of(OAuthFlow("google").sign_in()).organization_id != alice.organization_id


def test_others_of_the_domain_still_join(google: GoogleServer, alice: User, joined: User) -> None:
    remove(alice, joined)
    google.person = replace(google.person, email="bob@example.com", sub="bob")
    assert user_of(OAuthFlow("google").sign_in()).organization_id == alice.organization_id


def test_a_member_who_left_by_itself_may_come_back(alice: User, joined: User) -> None:
    left = signed_in(joined).call("DELETE", f"/v1/members/{joined.pk}")
    assert left.status == 200
    assert not RemovedMember.objects.exists()
    assert user_of(OAuthFlow("google").sign_in()).organization_id == alice.organization_id


def test_an_invitation_ends_the_memory_of_a_removal(alice: User, joined: User) -> None:
    remove(alice, joined)
    body = {"email": "Dora@Example.com", "roles": ["operator"]}
    assert signed_in(alice).post("/v1/invitations", body).status == 202
    again = user_of(OAuthFlow("google").sign_in())
    assert again.organization_id == alice.organization_id
    assert again.roles == ["operator", "reader"]
    assert Invitation.objects.get().accepted_at is not None
    assert not RemovedMember.objects.exists()


def test_the_memory_of_a_removal_names_nobody(alice: User, joined: User) -> None:
    remove(alice, joined)
    (row,) = RemovedMember.objects.values()
    assert row["organization_id"] == alice.organization_id
    assert DORA not in str(row)
    assert len(row["digests"]) == 2


def test_a_removal_in_one_organization_is_none_in_another(
    alice: User, charlie: User, joined: User, settings: Settings
) -> None:
    remove(alice, joined)
    Domain.objects.update(organization=charlie.organization)
    assert user_of(OAuthFlow("google").sign_in()).organization_id == charlie.organization_id
