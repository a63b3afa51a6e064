"""What is alike at every provider: new user, returning user, link, conflict, unlink."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import AuditEvent, Identity, OAuthGrant, User
from environments.models import Organization
from tests.accounts.oauth.fake_providers.server import Fault, ProviderServer
from tests.accounts.oauth.flow import OAuthFlow
from tests.cast import PASSWORD, Caller, member, organization, signed_in
from tests.twofactor.holder import with_totp

SUBJECTS = {
    "google": "110169484474386276334",
    "github": "583231",
    "discord": "80351110224678912",
    "apple": "001234.5b3a3bdf9c0b4f049c1471cae1cd1d8d.0001",
}
# Where the browser goes, and what is asked of mapped groups alone.
UNASKED = ("authorize", "v2/auth", "*")


@dataclass
class There:
    """A provider, and its name."""

    name: str
    server: ProviderServer

    def flow(self) -> OAuthFlow:
        """Begin a flow."""
        return OAuthFlow(self.name)


@pytest.fixture(params=sorted(SUBJECTS))
def there(request: pytest.FixtureRequest, db: None) -> There:
    """Return each provider."""
    server: Any = request.getfixturevalue(request.param)
    return There(request.param, server)


def assert_refused(code: str) -> None:
    """Hold a refusal to having made nothing, and to standing in the audit trail."""
    assert not User.unscoped.exists()
    assert not OAuthGrant.objects.exists()
    event = AuditEvent.objects.order_by("-id")[0]
    assert (event.outcome, event.data["error"]) == ("refused", code)


def test_a_new_user_signs_in(there: There) -> None:
    answer = there.flow().sign_in()
    assert answer.body["status"] == "authenticated"
    who = Caller().holding(answer).get("/v1/whoami").body
    assert (who["email"], who["organization"]) == ("dora@example.com", "Dora Lake")
    identity = Identity.unscoped.get()
    assert (identity.provider, identity.subject) == (there.name, SUBJECTS[there.name])
    assert identity.name == "Dora Lake"


def test_a_returning_user_signs_in_again(there: There) -> None:
    first = Caller().holding(there.flow().sign_in()).get("/v1/whoami").body
    again = Caller().holding(there.flow().sign_in()).get("/v1/whoami").body
    assert again["user_id"] == first["user_id"]
    assert again["session_id"] != first["session_id"]
    assert (User.unscoped.count(), Identity.unscoped.count()) == (1, 1)


def test_an_account_is_linked_and_unlinked(there: There) -> None:
    user = member(organization(), "erin@example.com", password=PASSWORD)
    caller = signed_in(user)
    linked = there.flow().link(caller).body
    assert linked["status"] == "linked"
    who = Caller().holding(there.flow().sign_in()).get("/v1/whoami").body
    assert who["email"] == "erin@example.com"
    path = f"/v1/auth/identities/{linked['identity']['id']}"
    assert caller.call("DELETE", path).status == 204
    who = Caller().holding(there.flow().sign_in()).get("/v1/whoami").body
    assert who["email"] == "dora@example.com"


def test_the_owner_resolves_a_conflict(there: There) -> None:
    user = member(organization(), "dora@example.com", password=PASSWORD)
    User.unscoped.update(email_verified_at=timezone.now())
    refused = there.flow().sign_in()
    assert refused.code == "link_required"
    body = {"link_token": refused.body["link_token"]}
    path = f"/v1/auth/oauth/{there.name}/link"
    assert signed_in(user).post(path, body).body["status"] == "linked"
    who = Caller().holding(there.flow().sign_in()).get("/v1/whoami").body
    assert who["user_id"] == str(user.pk)


def test_an_unverified_account_is_given_to_the_owner_of_the_mailbox(there: There) -> None:
    member(organization(), "dora@example.com", password=PASSWORD)
    assert there.flow().sign_in().body["status"] == "authenticated"
    login = {"email": "dora@example.com", "password": PASSWORD}
    assert Caller().post("/v1/auth/login", login).status == 401


def test_a_cancelled_sign_in_creates_no_account(there: There) -> None:
    cancelled = {"apple": "user_cancelled_authorize"}
    there.server.refuses = cancelled.get(there.name, "access_denied")
    assert there.flow().error() == "access_denied"
    assert_refused("access_denied")


def test_a_callback_in_another_browser_is_refused(there: There) -> None:
    thief, victim = there.flow(), there.flow()
    sent = thief.at_provider(thief.start().headers["Location"])
    victim.start()
    answer = victim.back(sent)
    assert (answer.status, answer.code) == (400, "oauth_state_invalid")
    assert_refused("oauth_state_invalid")


def test_a_callback_works_once(there: There) -> None:
    flow = there.flow()
    sent = flow.at_provider(flow.start().headers["Location"])
    assert "code" in flow.returned(flow.back(sent))
    assert flow.returned(flow.back(sent))["error"] == "oauth_state_used"
    assert OAuthGrant.objects.count() == 1


def test_a_silent_provider_ends_in_a_timeout(there: There, settings: Settings) -> None:
    settings.OAUTH = replace(settings.OAUTH, timeout_s=0.3)
    asked = [path for path in there.server.routes() if not path.endswith(UNASKED)]
    assert asked
    for path in asked:
        there.server.faults = {path: Fault(is_silent=True)}
        assert there.flow().error() == "provider_unavailable", path
        assert_refused("provider_unavailable")


def test_the_only_sign_in_method_cannot_be_unlinked(there: There) -> None:
    caller = Caller().holding(there.flow().sign_in())
    path = f"/v1/auth/identities/{Identity.unscoped.get().pk}"
    answer = caller.call("DELETE", path)
    assert (answer.status, answer.code) == (409, "last_login_method")
    assert there.flow().sign_in().body["status"] == "authenticated"


def test_an_active_second_factor_is_required(there: There) -> None:
    there.flow().sign_in()
    with_totp(User.unscoped.get())
    answer = there.flow().sign_in()
    assert answer.body["status"] == "mfa_required"
    assert "access_token" not in answer.body
    assert Caller(answer.body["mfa_token"]).get("/v1/whoami").status == 401


def test_a_second_factor_required_by_policy_is_set_up_first(there: There) -> None:
    there.flow().sign_in()
    Organization.objects.update(mfa_required=True, mfa_grace_period_days=0)
    answer = there.flow().sign_in()
    assert answer.body["status"] == "mfa_enrollment_required"
    assert "access_token" not in answer.body


def test_the_same_subject_at_another_provider_is_another_user(there: There) -> None:
    there.flow().sign_in()
    Identity.unscoped.update(provider="google" if there.name != "google" else "github")
    assert there.flow().sign_in().code == "link_required"


def test_pkce_is_used_where_the_provider_supports_it(there: There) -> None:
    there.flow().sign_in()
    [asked] = [each for each in there.server.asked if each.path.endswith(("authorize", "v2/auth"))]
    if there.name == "apple":
        assert "nonce" in asked.query
    else:
        assert asked.query["code_challenge_method"] == "S256"
        exchanged = next(each for each in there.server.asked if "code_verifier" in each.form)
        assert len(exchanged.form["code_verifier"]) >= 43


def test_a_wrong_client_secret_is_reported_as_a_provider_error(
    there: There, settings: Settings
) -> None:
    provider = settings.OAUTH.providers[there.name]
    wrong = replace(provider, client_secret="not the secret at all", private_key="")
    settings.OAUTH = replace(settings.OAUTH, providers={there.name: wrong})
    assert there.flow().error() == "provider_error"
