"""Admins see which providers sign their members in."""

from django.utils import timezone

from accounts.models import User
from oauth.models import Identity
from tests.cast import signed_in
from tests.oauth.fake_providers.google import GoogleServer

PATH = "/v1/sign-in-providers"


def link(user: User, provider: str, subject: str) -> None:
    """Link an account at a provider to a user."""
    Identity.objects.create(
        organization_id=user.organization_id,
        user=user,
        provider=provider,
        subject=subject,
        created_at=timezone.now(),
    )


def test_an_admin_sees_the_providers_and_who_of_the_members_uses_them(
    google: GoogleServer, alice: User, bob: User, charlie: User
) -> None:
    for number, user in enumerate((alice, bob, charlie)):
        link(user, "google", str(number))
    link(alice, "google", "another")
    link(alice, "github", "1")
    found = signed_in(alice).get(PATH).body["providers"]
    assert [(row["name"], row["is_offered"], row["member_count"]) for row in found] == [
        ("google", True, 2),
        # Not configured any more, but still linked.
        ("github", False, 1),
    ]
    assert found[0]["members"] == sorted([alice.email, bob.email])
    assert charlie.email not in str(found)


def test_readers_do_not_see_them(google: GoogleServer, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(roles=["reader"])
    assert signed_in(bob).get(PATH).code == "permission_denied"
