"""Google's flow: new and returning users, requested scopes, and Workspace domains."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from environments.models import Organization
from oauth.models import Domain, Identity, OAuthGrant
from tests.cast import Caller, organization
from tests.oauth.conftest import BASE, configure
from tests.oauth.fake_providers.google import GooglePerson, GoogleServer
from tests.oauth.fake_providers.server import s256
from tests.oauth.support import OAuthFlow


def whoami(flow: OAuthFlow) -> dict[str, object]:
    """Sign in; return whoami."""
    body: dict[str, object] = Caller().holding(flow.sign_in()).get("/v1/whoami").body
    return body


def test_a_new_user_gets_an_organization_and_a_session(google: GoogleServer) -> None:
    answer = OAuthFlow("google").sign_in()
    assert answer.status == 200, answer.body
    assert answer.body["status"] == "authenticated"
    assert answer.body["environment"] == {"id": "live", "name": "live"}
    assert answer.headers["Cache-Control"] == "no-store"
    who = Caller().holding(answer).get("/v1/whoami").body
    assert who["email"] == "dora@example.com"
    assert who["roles"] == ["admin"]
    assert who["organization"] == "Dora Lake"
    assert (who["aal"], who["amr"]) == (1, ["fed"])
    assert User.objects.get().email_verified_at is not None
    identity = Identity.objects.get()
    assert (identity.provider, identity.subject) == ("google", google.person.sub)
    # Google is not called later, so its tokens are not stored.
    assert identity.credentials == ""


def test_a_returning_user_is_identified_by_the_subject_only(google: GoogleServer) -> None:
    first = whoami(OAuthFlow("google"))
    # The account is the same, even with another address that is not verified.
    google.person.email, google.person.email_verified = "dora@elsewhere.example", False
    again = whoami(OAuthFlow("google"))
    assert again["user_id"] == first["user_id"]
    assert again["email"] == "dora@example.com"
    assert Identity.objects.get().email == "dora@elsewhere.example"


def test_a_reassigned_address_does_not_match_the_old_account(google: GoogleServer) -> None:
    whoami(OAuthFlow("google"))
    google.person = GooglePerson(sub="999", email="dora@example.com")
    assert OAuthFlow("google").sign_in().code == "link_required"


def test_google_is_asked_for_the_profile_only(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    location = flow.start().headers["Location"]
    assert location.startswith(f"{google.url}/o/oauth2/v2/auth?")
    query = dict(parse_qsl(urlsplit(location).query))
    assert query["scope"] == "openid email profile"
    assert query["redirect_uri"] == f"{BASE}/v1/auth/oauth/google/callback"
    assert query["code_challenge_method"] == "S256"
    assert len(query["nonce"]) >= 43
    assert len(query["state"]) >= 43
    # Our verifier towards Google and the client's towards us are independent.
    assert query["code_challenge"] != s256(flow.verifier)
    assert query["state"] != flow.state


def test_the_code_is_exchanged_with_the_verifier(google: GoogleServer) -> None:
    OAuthFlow("google").sign_in()
    sent = google.calls("/token")[0].form
    challenge = google.calls("/o/oauth2/v2/auth")[0].query["code_challenge"]
    assert s256(sent["code_verifier"]) == challenge


@pytest.mark.parametrize(
    ("email", "is_verified", "code"),
    [
        ("dora@example.com", False, "email_unverified"),
        ("dora@example.com", "true", "email_unverified"),
        ("dora@example.com", None, "email_unverified"),
        ("", True, "email_missing"),
        (None, True, "email_missing"),
        ("no address", True, "email_missing"),
        # Its ASCII form is another owner's domain.
        ("dora@stra\u00dfe.example", True, "email_missing"),
        ("dora@\uff45xample.com", True, "email_missing"),
        ("d\u00f6ra@example.com", True, "email_missing"),
        ("dora@example.com\r\nBcc: all@example.com", True, "email_missing"),
        (["dora@example.com"], True, "email_missing"),
    ],
)
def test_a_new_user_needs_a_verified_address(
    google: GoogleServer, email: object, is_verified: object, code: str
) -> None:
    google.claims = {"email": email, "email_verified": is_verified}
    assert OAuthFlow("google").error() == code
    assert not User.objects.exists()
    assert not OAuthGrant.objects.exists()
    event = AuditEvent.objects.get()
    assert (event.tag, event.outcome) == ("api:session:create", "refused")
    assert event.data == {"method": "external", "provider": "google", "error": code}


def test_an_address_with_a_unicode_domain_is_stored_as_mail_is_sent_to_it(
    google: GoogleServer,
) -> None:
    google.claims = {"email": "u@B\u00fccher.example"}
    assert OAuthFlow("google").sign_in().status == 200
    assert User.objects.get().email == "u@xn--bcher-kva.example"


@pytest.mark.parametrize(
    ("hd", "is_let_in"),
    [("example.com", True), ("Example.com", True), ("example.org", False), ("", False)],
)
def test_only_the_allowed_domains_may_sign_in(
    google: GoogleServer, settings: Settings, hd: str, is_let_in: bool
) -> None:
    configure(settings, "google", google, domains=("example.com",))
    # The address is irrelevant: anyone can create a Google account with any address.
    google.person = GooglePerson(email="dora@example.com", hd=hd)
    flow = OAuthFlow("google")
    if is_let_in:
        assert flow.sign_in().status == 200
    else:
        assert flow.error() == "domain_not_allowed"
        assert not User.objects.exists()
    assert google.calls("/o/oauth2/v2/auth")[0].query["hd"] == "example.com"


def test_users_of_a_domain_that_is_no_longer_allowed_cannot_sign_in(
    google: GoogleServer, settings: Settings
) -> None:
    google.person.hd = "example.com"
    whoami(OAuthFlow("google"))
    configure(settings, "google", google, domains=("example.org",))
    assert OAuthFlow("google").error() == "domain_not_allowed"


def proven(home: Organization, domain: str = "example.com", role: str = "reader") -> None:
    """Create an organization that has proven a domain."""
    now = timezone.now()
    Domain.objects.create(
        organization=home,
        domain=domain,
        role=role,
        token="x",
        created_at=now,
        verified_at=now,
        seen_at=now,
    )


def test_a_user_of_a_proven_domain_joins_its_organization(google: GoogleServer) -> None:
    home = organization("Lakes")
    proven(home, role="operator")
    google.person.hd = "example.com"
    who = whoami(OAuthFlow("google"))
    assert (who["org_id"], who["roles"]) == (home.pk, ["operator"])
    assert Organization.objects.count() == 1


def test_the_address_alone_does_not_join_an_organization(google: GoogleServer) -> None:
    home = organization("Lakes")
    proven(home)
    google.person = GooglePerson(email="dora@example.com", hd="")
    assert whoami(OAuthFlow("google"))["org_id"] != home.pk


def test_a_claimed_domain_that_is_not_proven_has_no_effect(google: GoogleServer) -> None:
    home = organization("Lakes")
    proven(home)
    Domain.objects.update(verified_at=None)
    google.person.hd = "example.com"
    assert whoami(OAuthFlow("google"))["org_id"] != home.pk
