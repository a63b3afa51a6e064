"""Every provider: new user, returning user, link, conflict, unlink."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from environments.models import Organization
from oauth.models import Identity, OAuthGrant
from tests.cast import PASSWORD, Caller, member, organization, signed_in
from tests.oauth.fake_providers.server import Fault, ProviderServer
from tests.oauth.support import OAuthFlow
from tests.twofactor.holder import with_totp

SUBJECTS = {
    "google": "110169484474386276334",
    "github": "583231",
    "discord": "80351110224678912",
    "apple": "001234.5b3a3bdf9c0b4f049c1471cae1cd1d8d.0001",
}
# Pages of the browser, and calls that only mapped groups cause.
UNUSED = ("authorize", "v2/auth", "*")


@dataclass
class ProviderCase:
    """A provider, and its name."""

    name: str
    server: ProviderServer

    def flow(self) -> OAuthFlow:
        """Start a flow."""
        return OAuthFlow(self.name)


@pytest.fixture(params=sorted(SUBJECTS))
def case(request: pytest.FixtureRequest, db: None) -> ProviderCase:
    """Return each provider."""
    server: Any = request.getfixturevalue(request.param)
    return ProviderCase(request.param, server)


def assert_refused(code: str) -> None:
    """Assert that a refusal created nothing and is in the audit trail."""
    assert not User.objects.exists()
    assert not OAuthGrant.objects.exists()
    event = AuditEvent.objects.order_by("-id")[0]
    assert (event.outcome, event.data["error"]) == ("refused", code)


def test_a_new_user_signs_in(case: ProviderCase) -> None:
    answer = case.flow().sign_in()
    assert answer.body["status"] == "authenticated"
    who = Caller().holding(answer).get("/v1/whoami").body
    assert (who["email"], who["organization"]) == ("dora@example.com", "Dora Lake")
    identity = Identity.objects.get()
    assert (identity.provider, identity.subject) == (case.name, SUBJECTS[case.name])
    assert identity.name == "Dora Lake"


def test_a_returning_user_signs_in_again(case: ProviderCase) -> None:
    first = Caller().holding(case.flow().sign_in()).get("/v1/whoami").body
    again = Caller().holding(case.flow().sign_in()).get("/v1/whoami").body
    assert again["user_id"] == first["user_id"]
    assert again["session_id"] != first["session_id"]
    assert (User.objects.count(), Identity.objects.count()) == (1, 1)


def test_an_account_is_linked_and_unlinked(case: ProviderCase) -> None:
    user = member(organization(), "erin@example.com", password=PASSWORD)
    caller = signed_in(user)
    linked = case.flow().link(caller).body
    assert linked["status"] == "linked"
    who = Caller().holding(case.flow().sign_in()).get("/v1/whoami").body
    assert who["email"] == "erin@example.com"
    path = f"/v1/auth/identities/{linked['identity']['id']}"
    assert caller.call("DELETE", path).status == 204
    who = Caller().holding(case.flow().sign_in()).get("/v1/whoami").body
    assert who["email"] == "dora@example.com"


def test_the_owner_resolves_a_conflict(case: ProviderCase) -> None:
    user = member(organization(), "dora@example.com", password=PASSWORD)
    User.objects.update(email_verified_at=timezone.now())
    refused = case.flow().sign_in()
    assert refused.code == "link_required"
    body = {"link_token": refused.body["link_token"]}
    path = f"/v1/auth/oauth/{case.name}/link"
    assert signed_in(user).post(path, body).body["status"] == "linked"
    who = Caller().holding(case.flow().sign_in()).get("/v1/whoami").body
    assert who["user_id"] == str(user.pk)


def test_the_address_of_an_unverified_account_moves_to_the_owner(case: ProviderCase) -> None:
    other = member(organization(), "dora@example.com", password=PASSWORD)
    who = Caller().holding(case.flow().sign_in()).get("/v1/whoami").body
    assert who["email"] == "dora@example.com"
    assert who["org_id"] != other.organization_id
    login = {"email": "dora@example.com", "password": PASSWORD}
    assert Caller().post("/v1/auth/login", login).status == 401


def test_a_cancelled_sign_in_creates_no_account(case: ProviderCase) -> None:
    cancelled = {"apple": "user_cancelled_authorize"}
    case.server.refuses = cancelled.get(case.name, "access_denied")
    assert case.flow().error() == "access_denied"
    assert_refused("access_denied")


def test_a_callback_in_another_browser_is_refused(case: ProviderCase) -> None:
    thief, victim = case.flow(), case.flow()
    sent = thief.at_provider(thief.start().headers["Location"])
    victim.start()
    answer = victim.back(sent)
    assert (answer.status, answer.code) == (400, "oauth_state_invalid")
    assert_refused("oauth_state_invalid")


def test_a_callback_works_once(case: ProviderCase) -> None:
    flow = case.flow()
    sent = flow.at_provider(flow.start().headers["Location"])
    assert "code" in flow.returned(flow.back(sent))
    assert flow.returned(flow.back(sent))["error"] == "oauth_state_used"
    assert OAuthGrant.objects.count() == 1


def test_a_silent_provider_ends_in_a_timeout(
    case: ProviderCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oauth.providers.http.TIMEOUT_S", 0.6)
    paths = [path for path in case.server.routes() if not path.endswith(UNUSED)]
    assert paths
    for path in paths:
        case.server.faults = {path: Fault(is_silent=True)}
        assert case.flow().error() == "provider_unavailable", path
        assert_refused("provider_unavailable")


def test_the_only_sign_in_method_cannot_be_unlinked(case: ProviderCase) -> None:
    caller = Caller().holding(case.flow().sign_in())
    path = f"/v1/auth/identities/{Identity.objects.get().pk}"
    answer = caller.call("DELETE", path)
    assert (answer.status, answer.code) == (409, "last_login_method")
    assert case.flow().sign_in().body["status"] == "authenticated"


def test_an_active_second_factor_is_required(case: ProviderCase) -> None:
    case.flow().sign_in()
    with_totp(User.objects.get())
    answer = case.flow().sign_in()
    assert answer.body["status"] == "mfa_required"
    assert "access_token" not in answer.body
    assert Caller(answer.body["mfa_token"]).get("/v1/whoami").status == 401


def test_a_second_factor_required_by_policy_is_set_up_first(case: ProviderCase) -> None:
    case.flow().sign_in()
    Organization.objects.update(mfa_required=True, mfa_grace_period_days=0)
    answer = case.flow().sign_in()
    assert answer.body["status"] == "mfa_enrollment_required"
    assert "access_token" not in answer.body


def test_the_same_subject_at_another_provider_is_another_user(case: ProviderCase) -> None:
    case.flow().sign_in()
    Identity.objects.update(provider="google" if case.name != "google" else "github")
    assert case.flow().sign_in().code == "link_required"


def test_pkce_is_used_where_the_provider_supports_it(case: ProviderCase) -> None:
    case.flow().sign_in()
    [request] = [
        each for each in case.server.requests if each.path.endswith(("authorize", "v2/auth"))
    ]
    if case.name == "apple":
        assert "nonce" in request.query
    else:
        assert request.query["code_challenge_method"] == "S256"
        exchanged = next(each for each in case.server.requests if "code_verifier" in each.form)
        assert len(exchanged.form["code_verifier"]) >= 43


def test_a_wrong_client_secret_is_reported_as_a_provider_error(
    case: ProviderCase, settings: Settings
) -> None:
    provider = settings.OAUTH.providers[case.name]
    wrong = replace(provider, client_secret="not the secret at all", private_key="")
    settings.OAUTH = replace(settings.OAUTH, providers={case.name: wrong})
    assert case.flow().error() == "provider_error"
