"""Linking and unlinking identities."""

from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Session, User
from audit.models import AuditEvent
from environments.models import Organization
from oauth import account_matching
from oauth.models import Identity, OAuthTransaction
from tests.cast import PASSWORD, Caller, member, organization, signed_in
from tests.inbox import notices_to
from tests.oauth.conftest import BASE
from tests.oauth.fake_providers.google import GooglePerson, GoogleServer
from tests.oauth.support import Browser, OAuthFlow
from tests.parallel import at_once
from tests.twofactor.holder import with_totp
from tests.twofactor.webauthn.authenticator import Authenticator
from tests.twofactor.webauthn.holder import with_passkey

IDENTITIES = "/v1/auth/identities"


def test_a_linked_account_signs_in_regardless_of_its_address(
    google: GoogleServer, alice: User
) -> None:
    google.person.email, google.person.email_verified = "", False
    answer = OAuthFlow("google").link(signed_in(alice))
    assert (answer.status, answer.body["status"]) == (200, "linked")
    who = Caller().holding(OAuthFlow("google").sign_in()).get("/v1/whoami").body
    assert who["user_id"] == str(alice.pk)
    assert "identity_linked" in notices_to(alice.email)


def test_several_accounts_are_linked_and_listed(google: GoogleServer, alice: User) -> None:
    caller = signed_in(alice)
    OAuthFlow("google").link(caller)
    google.person = GooglePerson(sub="2", email="work@example.org", name="Dora at work")
    OAuthFlow("google").link(caller)
    listed = caller.get(IDENTITIES).body["results"]
    assert [row["email"] for row in listed] == ["work@example.org", "dora@example.com"]
    assert set(listed[0]) == {
        "id",
        "provider",
        "title",
        "email",
        "is_private_email",
        "username",
        "name",
        "created_at",
        "last_used_at",
    }
    assert isinstance(listed[0]["created_at"], int)
    assert listed[0]["title"] == "Google"


def test_linking_again_changes_nothing(google: GoogleServer, alice: User) -> None:
    caller = signed_in(alice)
    for _ in range(2):
        assert OAuthFlow("google").link(caller).body["status"] == "linked"
    assert Identity.objects.count() == 1
    assert notices_to(alice.email).count("identity_linked") == 1


def test_an_identity_of_another_user_is_not_linked(
    google: GoogleServer, alice: User, charlie: User
) -> None:
    OAuthFlow("google").link(signed_in(charlie))
    answer = OAuthFlow("google").link(signed_in(alice))
    assert (answer.status, answer.code) == (409, "identity_taken")
    assert Identity.objects.get().user_id == charlie.pk
    assert "charlie" not in str(answer.body)
    event = AuditEvent.objects.get(outcome="refused")
    assert (event.tag, event.actor_id) == ("api:identity:create", alice.pk)


def test_only_the_session_that_started_a_link_can_complete_it(
    google: GoogleServer, alice: User, charlie: User
) -> None:
    """A victim who is led through an attacker's link must not be linked to it."""
    for other in (signed_in(charlie), signed_in(alice)):
        flow = OAuthFlow("google")
        code = flow.link_code(signed_in(alice))
        answer = flow.exchange(code, other)
        assert (answer.status, answer.code) == (403, "link_foreign_session")
    assert not Identity.objects.exists()


def test_an_account_unlinked_during_its_sign_in_stays_unlinked(
    google: GoogleServer, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = signed_in(alice)
    google.person = GooglePerson(sub="2", email="work@example.org")
    OAuthFlow("google").link(caller)
    google.person = GooglePerson()
    linked = OAuthFlow("google").link(caller).body["identity"]["id"]
    flow = OAuthFlow("google")
    code = flow.code()
    lock = account_matching.lock

    def unlink_first(user: User) -> User:
        monkeypatch.setattr(account_matching, "lock", lock)
        assert caller.call("DELETE", f"{IDENTITIES}/{linked}").status == 204
        return lock(user)

    monkeypatch.setattr(account_matching, "lock", unlink_first)
    stranger = Caller().holding(flow.exchange(code))
    assert stranger.get("/v1/whoami").body["email"] == "dora@example.com"
    left = caller.get(IDENTITIES).body["results"]
    assert [row["email"] for row in left] == ["work@example.org"]


def test_a_link_does_not_sign_in(google: GoogleServer, alice: User) -> None:
    caller = signed_in(alice)
    flow = OAuthFlow("google")
    code = flow.link_code(caller)
    anonymous = flow.exchange(code)
    assert (anonymous.status, anonymous.code) == (401, "not_authenticated")
    # A client that has to refresh its token first finds the code unused.
    assert flow.exchange(code, Caller("stale")).code == "token_invalid"
    assert flow.exchange(code, caller).body["status"] == "linked"
    assert not Session.objects.exclude(user=alice).exists()


def test_a_session_that_has_ended_cannot_complete_a_link(google: GoogleServer, alice: User) -> None:
    caller = signed_in(alice)
    flow = OAuthFlow("google")
    code = flow.link_code(caller)
    caller.post("/v1/auth/logout", {"refresh_token": caller.refresh_token})
    assert flow.exchange(code, caller).code == "session_revoked"
    assert not Identity.objects.exists()


def test_linking_requires_a_recent_proof(google: GoogleServer, alice: User) -> None:
    caller = signed_in(alice)
    earlier = timezone.now() - timedelta(minutes=16)
    Session.objects.update(auth_time=earlier)
    answer = caller.post("/v1/auth/oauth/google/link", OAuthFlow("google").query)
    assert (answer.status, answer.code) == (403, "step_up_required")
    assert not OAuthTransaction.objects.exists()
    answer = caller.call("DELETE", f"{IDENTITIES}/00000000-0000-7000-8000-000000000000")
    assert answer.code == "step_up_required"


def test_linking_requires_the_second_factor_if_there_is_one(
    google: GoogleServer, alice: User
) -> None:
    with_totp(alice)
    answer = signed_in(alice).post("/v1/auth/oauth/google/link", OAuthFlow("google").query)
    assert (answer.status, answer.code) == (403, "step_up_required")


def test_the_start_url_of_a_link_works_in_one_browser_for_ten_minutes(
    google: GoogleServer, alice: User
) -> None:
    caller = signed_in(alice)
    flow = OAuthFlow("google")
    now = timezone.now()
    with time_machine.travel(now, tick=False) as clock:
        begun = caller.post("/v1/auth/oauth/google/link", flow.query).body
        assert begun["expires_at"] == int(now.timestamp()) + 600
        assert begun["start_url"].startswith(f"{BASE}/v1/auth/oauth/google/start?ticket=")
        assert flow.browser.get(begun["start_url"]).status == 302
        again = Browser().get(begun["start_url"])
        assert (again.status, again.code) == (410, "oauth_code_gone")
        late = caller.post("/v1/auth/oauth/google/link", flow.query).body
        clock.move_to(now + timedelta(minutes=10))
        assert Browser().get(late["start_url"]).code == "oauth_code_gone"
    ticket = begun["start_url"].partition("ticket=")[2]
    assert ticket not in str(list(OAuthTransaction.objects.values()))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"state": "x"},
        {"link_token": "x", "code_challenge": "y" * 43},
        {"code_challenge": "short"},
        {"link_token": ""},
    ],
    ids=str,
)
def test_a_link_request_has_either_a_challenge_or_a_link_token(
    google: GoogleServer, alice: User, body: dict[str, str]
) -> None:
    answer = signed_in(alice).post("/v1/auth/oauth/google/link", body)
    assert (answer.status, answer.code) == (400, "invalid_request")


def test_a_link_returns_to_allowed_urls_only(google: GoogleServer, alice: User) -> None:
    query = OAuthFlow("google", redirect_to="https://evil.example").query
    answer = signed_in(alice).post("/v1/auth/oauth/google/link", query)
    assert (answer.status, answer.code) == (400, "redirect_not_allowed")


def test_starting_links_is_rate_limited_like_sign_ins(
    google: GoogleServer, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oauth.flow.flow_state.STARTS_PER_ADDRESS", 2)
    caller = signed_in(alice)
    begun = [caller.post("/v1/auth/oauth/google/link", OAuthFlow("google").query) for _ in range(3)]
    assert [answer.status for answer in begun] == [200, 200, 429]
    assert begun[-1].code == "too_many_attempts"
    assert OAuthTransaction.objects.count() == 2


# --- unlinking


def linked(user: User) -> str:
    """Link Google to a user; return the identity's id."""
    return str(OAuthFlow("google").link(signed_in(user)).body["identity"]["id"])


def test_an_unlinked_account_no_longer_signs_in(google: GoogleServer, home: Organization) -> None:
    user = member(home, "erin@example.com", password=PASSWORD)
    identity = linked(user)
    answer = signed_in(user).call("DELETE", f"{IDENTITIES}/{identity}")
    assert answer.status == 204
    assert signed_in(user).get(IDENTITIES).body["results"] == []
    assert Caller().holding(OAuthFlow("google").sign_in()).get("/v1/whoami").body["email"] == (
        "dora@example.com"
    )
    assert "identity_unlinked" in notices_to("erin@example.com")
    event = AuditEvent.objects.get(tag="api:identity:delete")
    assert (event.actor_id, event.data["subject"]) == (user.pk, google.person.sub)


def test_the_last_sign_in_method_cannot_be_unlinked(google: GoogleServer) -> None:
    caller = Caller().holding(OAuthFlow("google").sign_in())
    [identity] = caller.get(IDENTITIES).body["results"]
    answer = caller.call("DELETE", f"{IDENTITIES}/{identity['id']}")
    assert (answer.status, answer.code) == (409, "last_login_method")
    assert OAuthFlow("google").sign_in().status == 200
    assert "identity_unlinked" not in notices_to("dora@example.com")


def test_another_identity_counts_as_a_sign_in_method_if_its_provider_is_configured(
    google: GoogleServer, settings: Settings
) -> None:
    caller = Caller().holding(OAuthFlow("google").sign_in())
    google.person = GooglePerson(sub="2")
    OAuthFlow("google").link(caller)
    second, first = caller.get(IDENTITIES).body["results"]
    Identity.objects.filter(pk=second["id"]).update(provider="github")
    assert caller.call("DELETE", f"{IDENTITIES}/{first['id']}").code == "last_login_method"
    settings.OAUTH = replace(
        settings.OAUTH,
        providers=settings.OAUTH.providers | {"github": settings.OAUTH.providers["google"]},
    )
    assert caller.call("DELETE", f"{IDENTITIES}/{first['id']}").status == 204


def test_a_passkey_counts_as_a_sign_in_method(google: GoogleServer) -> None:
    caller = Caller().holding(OAuthFlow("google").sign_in())
    [identity] = caller.get(IDENTITIES).body["results"]
    holder = with_passkey(User.objects.get(), Authenticator(origin="http://localhost:8000"))
    # The passkey that was just registered is a recent proof.
    assert holder.caller.call("DELETE", f"{IDENTITIES}/{identity['id']}").status == 204


def test_a_user_cannot_unlink_an_identity_of_another_user(
    google: GoogleServer, home: Organization, alice: User
) -> None:
    bob = member(home, "bob@example.com", password=PASSWORD)
    identity = linked(bob)
    for name in (identity, "nonsense", "%00"):
        answer = signed_in(alice).call("DELETE", f"{IDENTITIES}/{name}")
        assert (answer.status, answer.code) == (404, "not_found")
    assert Identity.objects.get().user_id == bob.pk
    assert signed_in(alice).get(IDENTITIES).body["results"] == []


@pytest.mark.django_db(transaction=True)
def test_of_two_identities_unlinked_in_parallel_one_remains(google: GoogleServer) -> None:
    caller = Caller().holding(OAuthFlow("google").sign_in())
    google.person = GooglePerson(sub="2")
    OAuthFlow("google").link(caller)
    paths = [f"{IDENTITIES}/{row['id']}" for row in caller.get(IDENTITIES).body["results"]]
    answers = at_once(*(lambda path=path: caller.call("DELETE", path) for path in paths))
    assert sorted(answer.status for answer in answers) == [204, 409]
    assert Identity.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_account_linked_by_two_users_in_parallel_belongs_to_one(google: GoogleServer) -> None:
    home = organization()
    callers = [signed_in(member(home, f"user{number}@example.com")) for number in range(2)]
    flows = [OAuthFlow("google") for _ in callers]
    codes = [flow.link_code(by) for flow, by in zip(flows, callers, strict=True)]
    actions = zip(flows, codes, callers, strict=True)
    answers = at_once(
        *(lambda action=action: action[0].exchange(action[1], action[2]) for action in actions)
    )
    assert sorted(answer.status for answer in answers) == [200, 409]
    assert Identity.objects.count() == 1
