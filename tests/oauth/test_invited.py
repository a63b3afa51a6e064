"""An invited person who comes by an identity provider joins the organization, if they want to."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from accounts.models import User
from environments.models import Organization
from oauth.models import Domain, Identity
from organizations.models import Invitation
from tests import inbox
from tests.cast import (
    PASSWORD,
    Answer,
    Caller,
    member,
    organization,
    signed_in,
    with_proven_address,
)
from tests.oauth.fake_providers.google import GoogleServer
from tests.oauth.support import OAuthFlow

pytestmark = pytest.mark.django_db

TOKEN = "/v1/auth/oauth/token"
DORA = "dora@example.com"


@pytest.fixture
def invitation(google: GoogleServer, alice: User) -> Invitation:
    """Return the invitation of Dora, who has an account at Google and none here."""
    with_proven_address(alice)
    body = {"email": "Dora@example.com", "roles": ["operator"], "labels": ["sales"]}
    assert signed_in(alice).post("/v1/invitations", body).status == 202
    found: Invitation = Invitation.objects.get()
    return found


def exchange(flow: OAuthFlow, code: str, **choice: Any) -> Answer:
    body = {"code": code, "code_verifier": flow.verifier, **choice}
    return Caller().post(TOKEN, body)


def undecided() -> tuple[OAuthFlow, Answer]:
    """Sign in with Google without a choice."""
    flow = OAuthFlow("google")
    answer = flow.sign_in()
    assert (answer.status, answer.code) == (409, "invitation_open"), answer.body
    return flow, answer


def who(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer.body
    found: dict[str, Any] = Caller().holding(answer).get("/v1/whoami").body
    return found


def test_a_new_user_is_asked_and_joins(alice: User, invitation: Invitation) -> None:
    flow, answer = undecided()
    assert answer.body["invitations"] == [
        {
            "id": str(invitation.pk),
            "organization": alice.organization.name,
            "roles": ["operator"],
            "invited_by": alice.email,
        }
    ]
    assert not User.objects.filter(email__iexact=DORA).exists()
    code = answer.body["join_code"]
    joined = who(exchange(flow, code, invitation_id=str(invitation.pk)))
    assert (joined["org_id"], joined["roles"]) == (alice.organization_id, ["operator"])
    assert (joined["labels"], joined["email_verified"]) == (["sales"], True)
    assert Invitation.objects.get().accepted_at is not None
    assert Organization.objects.count() == 1
    # The next sign-in asks nothing.
    assert who(OAuthFlow("google").sign_in())["org_id"] == alice.organization_id


def test_the_page_of_the_invitation_has_chosen_already(alice: User, invitation: Invitation) -> None:
    token = inbox.messages("mail", "invitation")[-1]["context"]["link"].partition("token=")[2]
    offer = Caller().post("/v1/invitations/preview", {"token": token})
    assert offer.body["id"] == str(invitation.pk)
    flow = OAuthFlow("google")
    joined = who(exchange(flow, flow.code(), invitation_id=offer.body["id"]))
    assert joined["org_id"] == alice.organization_id
    answer = Caller().post("/v1/invitations/accept", {"token": token, "password": PASSWORD})
    assert answer.code == "invitation_gone"


def test_a_new_user_goes_on_without_the_invitation(alice: User, invitation: Invitation) -> None:
    flow, answer = undecided()
    own = who(exchange(flow, answer.body["join_code"], invitation_id=None))
    assert (own["org_id"] == alice.organization_id, own["roles"]) == (False, ["admin"])
    assert Invitation.objects.get().accepted_at is None


def test_the_code_to_decide_with_works_once_with_the_verifier_and_for_ten_minutes(
    invitation: Invitation,
) -> None:
    flow, answer = undecided()
    body = {"invitation_id": str(invitation.pk)}
    stranger = replace(flow, verifier="x" * 43)
    code = answer.body["join_code"]
    assert exchange(stranger, code, **body).code == "oauth_code_gone"
    assert exchange(flow, code, **body).code == "oauth_code_gone"
    flow, answer = undecided()
    later = timezone.now() + timedelta(minutes=10, seconds=1)
    with time_machine.travel(later):
        assert exchange(flow, answer.body["join_code"], **body).code == "oauth_code_gone"
    assert not Identity.objects.exists()


@pytest.mark.parametrize("ending", ["revoked_at", "accepted_at", "expires_at"])
def test_an_invitation_that_is_over_is_neither_asked_about_nor_accepted(
    invitation: Invitation, ending: str
) -> None:
    flow, answer = undecided()
    Invitation.objects.update(**{ending: timezone.now()})
    gone = exchange(flow, answer.body["join_code"], invitation_id=str(invitation.pk))
    assert (gone.status, gone.code) == (410, "invitation_gone")
    assert not User.objects.filter(email__iexact=DORA).exists()
    assert who(OAuthFlow("google").sign_in())["roles"] == ["admin"]


def test_another_persons_invitation_is_not_accepted(
    alice: User, charlie: User, invitation: Invitation
) -> None:
    with_proven_address(charlie)
    body = {"email": "other@example.com", "roles": ["admin"]}
    assert signed_in(charlie).post("/v1/invitations", body).status == 202
    other = Invitation.objects.get(email="other@example.com")
    flow = OAuthFlow("google")
    answer = exchange(flow, flow.code(), invitation_id=str(other.pk))
    assert (answer.status, answer.code) == (410, "invitation_gone")
    assert Invitation.objects.get(pk=other.pk).accepted_at is None


def test_who_has_an_account_at_the_provider_here_accepts_no_invitation(
    google: GoogleServer, alice: User
) -> None:
    who(OAuthFlow("google").sign_in())
    with_proven_address(alice)
    body = {"email": DORA, "roles": ["admin"]}
    signed_in(alice).post("/v1/invitations", body)
    flow = OAuthFlow("google")
    answer = exchange(flow, flow.code(), invitation_id=str(Invitation.objects.get().pk))
    assert (answer.status, answer.code) == (409, "email_taken")
    assert who(OAuthFlow("google").sign_in())["org_id"] != alice.organization_id


def test_an_address_that_was_never_verified_moves_into_the_inviting_organization(
    google: GoogleServer, alice: User, invitation: Invitation
) -> None:
    member(organization("Squatter's"), DORA, password=PASSWORD)
    flow, answer = undecided()
    assert User.objects.filter(email=DORA).exists()
    moved = exchange(flow, answer.body["join_code"], invitation_id=str(invitation.pk))
    assert who(moved)["org_id"] == alice.organization_id
    assert moved.body["warnings"] == [{"code": "address_moved"}]


def test_who_joins_by_a_domain_gets_the_roles_of_its_invitation(
    google: GoogleServer, alice: User, invitation: Invitation
) -> None:
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
    joined = who(OAuthFlow("google").sign_in())
    assert (joined["org_id"], joined["roles"]) == (alice.organization_id, ["operator", "reader"])
    assert Invitation.objects.get().accepted_at is not None
