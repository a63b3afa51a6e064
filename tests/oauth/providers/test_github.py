"""GitHub: the verified primary address, organizations, teams, and failed requests."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from pytest_django import Settings

from accounts.models import User
from environments.models import Organization
from oauth.models import Identity
from oauth.providers.conf import ProviderSettings, RoleMapping
from oauth.providers.github import GitHub
from oauth.providers.social_core import TransactionStrategy
from tests.cast import Caller, organization, signed_in
from tests.oauth.conftest import configure
from tests.oauth.fake_providers.github import API, GitHubServer
from tests.oauth.fake_providers.server import FakeResponse, Fault
from tests.oauth.support import OAuthFlow


def email(address: str, *, primary: bool, verified: bool) -> dict[str, Any]:
    """Return an entry of the list of addresses."""
    return {"email": address, "primary": primary, "verified": verified, "visibility": None}


def whoami() -> dict[str, Any]:
    """Sign in with GitHub; return whoami."""
    body: dict[str, Any] = Caller().holding(OAuthFlow("github").sign_in()).get("/v1/whoami").body
    return body


@pytest.fixture
def acme(github: GitHubServer, settings: Settings) -> Organization:
    """Return an organization that GitHub's organization and teams are mapped to."""
    home = organization("Acme")
    mappings = (
        RoleMapping("acme", home.pk, "reader"),
        RoleMapping("acme/platform", home.pk, "admin"),
    )
    configure(settings, "github", github, mappings=mappings)
    return home


@pytest.mark.parametrize(
    ("emails", "code"),
    [
        ([], "email_missing"),
        ([email("dora@example.com", primary=True, verified=False)], "email_unverified"),
        # Another verified address is not the primary one.
        (
            [
                email("dora@example.com", primary=True, verified=False),
                email("old@example.com", primary=False, verified=True),
            ],
            "email_unverified",
        ),
        ([email("dora@example.com", primary=False, verified=True)], "email_missing"),
        ([{"email": 7, "primary": True, "verified": True}], "email_missing"),
        ([{"email": "dora@example.com", "primary": True, "verified": 1}], "email_unverified"),
        (["dora@example.com"], "email_missing"),
    ],
)
def test_only_the_verified_primary_address_counts(
    github: GitHubServer, emails: list[Any], code: str
) -> None:
    github.person.emails = emails
    assert OAuthFlow("github").error() == code
    assert not User.objects.exists()


def test_the_public_address_is_never_used(github: GitHubServer) -> None:
    assert whoami()["email"] == "dora@example.com"
    assert Identity.objects.get().email == "dora@example.com"


@pytest.mark.parametrize("path", [f"{API}/user", f"{API}/user/emails"])
@pytest.mark.parametrize(
    ("response", "code"),
    [
        (FakeResponse(500, {"message": "Server Error"}), "provider_unavailable"),
        (FakeResponse(401, {"message": "Bad credentials"}), "provider_error"),
        (FakeResponse(403, {"message": "API rate limit exceeded"}), "provider_error"),
        (FakeResponse(200, {"message": "nonsense"}), "provider_error"),
        (FakeResponse(200, b"<html>"), "provider_error"),
    ],
)
def test_a_failed_request_refuses_the_sign_in(
    github: GitHubServer, path: str, response: FakeResponse, code: str
) -> None:
    github.faults[path] = Fault(response)
    assert OAuthFlow("github").error() == code
    assert not User.objects.exists()


@pytest.mark.parametrize("key", [None, 0, -1, True, "583231", 1.5])
def test_a_malformed_user_id_is_refused(github: GitHubServer, key: object) -> None:
    github.faults[f"{API}/user"] = Fault(FakeResponse(body={"id": key, "login": "dora"}))
    assert OAuthFlow("github").error() == "provider_error"


def test_a_user_is_identified_by_the_id_and_not_by_the_login(
    github: GitHubServer,
) -> None:
    first = whoami()
    github.person.login = "dora-lake"
    assert whoami()["user_id"] == first["user_id"]
    assert Identity.objects.get().username == "dora-lake"
    github.person.id, github.person.login = 7, "dora"
    assert OAuthFlow("github").sign_in().code == "link_required"


def test_organizations_are_requested_only_if_a_mapping_needs_them(github: GitHubServer) -> None:
    location = OAuthFlow("github").start().headers["Location"]
    query = dict(parse_qsl(urlsplit(location).query))
    assert query["scope"] == "user:email"
    whoami()
    assert not [request for request in github.requests if "/orgs/" in request.path]
    assert Identity.objects.get().credentials == ""


def test_a_member_of_a_mapped_organization_joins_it(
    github: GitHubServer, acme: Organization
) -> None:
    github.person.organizations = {"acme": "active"}
    who = whoami()
    assert (who["org_id"], who["roles"]) == (acme.pk, ["reader"])
    user = User.objects.get()
    assert (user.roles, user.derived_roles) == ([], ["reader"])
    query = dict(github.calls("/login/oauth/authorize")[0].query)
    assert query["scope"] == "user:email read:org"


def test_a_team_gives_its_role(github: GitHubServer, acme: Organization) -> None:
    github.person.organizations = {"acme": "active"}
    github.person.teams = {"acme/platform": "active"}
    assert whoami()["roles"] == ["admin", "reader"]


@pytest.mark.parametrize("state", [{}, {"acme": "pending"}, {"other": "active"}])
def test_a_user_who_is_not_an_active_member_gets_a_new_organization(
    github: GitHubServer, acme: Organization, state: dict[str, str]
) -> None:
    github.person.organizations = state
    who = whoami()
    assert who["org_id"] != acme.pk
    assert who["roles"] == ["admin"]
    identity = Identity.objects.get()
    # Memberships without effect are not stored, nor is the token.
    assert (identity.memberships, identity.credentials) == ([], "")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(FakeResponse(500, {})),
        Fault(FakeResponse(403, {"message": "OAuth App access restrictions"})),
        Fault(FakeResponse(429, {})),
        Fault(FakeResponse(200, {"state": "?"})),
        Fault(FakeResponse(200, b"<html>")),
        Fault(is_silent=True),
    ],
)
def test_an_outage_refuses_a_new_user_instead_of_creating_an_organization(
    github: GitHubServer, acme: Organization, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new organization, created because of the outage, would remain."""
    monkeypatch.setattr("oauth.providers.http.TIMEOUT_S", 0.6)
    github.person.organizations = {"acme": "active"}
    github.faults[f"{API}/user/memberships/orgs/acme"] = fault
    answer = OAuthFlow("github").sign_in()
    assert (answer.status, answer.code) == (503, "provider_unavailable")
    assert not User.objects.exists()
    github.faults.clear()
    assert whoami()["org_id"] == acme.pk


def test_many_groups_do_not_delay_a_sign_in(
    github: GitHubServer, acme: Organization, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oauth.providers.http.TIMEOUT_S", 0.6)
    whoami()
    names = [f"group{number}" for number in range(20)]
    mappings = tuple(RoleMapping(name, acme.pk, "reader") for name in names)
    configure(settings, "github", github, mappings=mappings)
    for name in names:
        github.faults[f"{API}/user/memberships/orgs/{name}"] = Fault(is_silent=True)
    whoami()
    # Each of these waited for its timeout.
    assert len([request for request in github.requests if "/orgs/group" in request.path]) <= 3


def test_an_outage_removes_no_role(github: GitHubServer, acme: Organization) -> None:
    github.person.organizations = {"acme": "active"}
    whoami()
    github.restricted = {"acme"}
    assert whoami()["roles"] == ["reader"]
    github.restricted = set()
    github.person.organizations = {}
    assert whoami()["roles"] == []


def test_a_token_without_the_scope_does_not_deny_a_membership(
    github: GitHubServer, acme: Organization
) -> None:
    github.person.organizations = {"acme": "active"}
    whoami()
    github.grants = "user:email"
    assert whoami()["roles"] == ["reader"]


def test_a_mapping_of_another_organization_gives_no_role(
    github: GitHubServer, acme: Organization, alice: User
) -> None:
    github.person.organizations = {"acme": "active"}
    OAuthFlow("github").link(signed_in(alice))
    who = Caller().holding(OAuthFlow("github").sign_in()).get("/v1/whoami").body
    assert (who["org_id"], who["roles"]) == (alice.organization_id, ["admin"])
    identity = Identity.objects.get()
    assert (identity.memberships, identity.credentials) == ([], "")


def test_a_mapping_to_a_missing_organization_is_skipped(
    github: GitHubServer, acme: Organization
) -> None:
    github.person.organizations = {"acme": "active"}
    acme.delete()
    assert whoami()["roles"] == ["admin"]


@pytest.mark.parametrize(
    ("base_url", "authorize", "api"),
    [
        ("", "https://github.com/login/oauth/authorize", "https://api.github.com"),
        (
            "https://github.example.com",
            "https://github.example.com/login/oauth/authorize",
            "https://github.example.com/api/v3",
        ),
        (
            "https://acme.ghe.com",
            "https://acme.ghe.com/login/oauth/authorize",
            "https://api.acme.ghe.com",
        ),
    ],
)
def test_enterprise_hosts_have_their_own_endpoints(base_url: str, authorize: str, api: str) -> None:
    provider = ProviderSettings("id", "secret", base_url)
    assert GitHub.social_settings(provider)["AUTHORIZATION_URL"] == authorize
    backend = GitHub(provider, TransactionStrategy({}, session={}), "https://x/callback")
    assert backend._api == api
