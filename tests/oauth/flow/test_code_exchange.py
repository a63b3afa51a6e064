"""The exchange of the one-time code: once, by the client, through the login stages."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Session, User
from audit.models import AuditEvent
from environments.models import Organization
from oauth.models import Identity, OAuthGrant
from tests.cast import Answer, Caller
from tests.oauth.fake_providers.google import GooglePerson, GoogleServer
from tests.oauth.support import OAuthFlow
from tests.twofactor.holder import with_totp


def test_a_code_is_exchanged_once(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    code = flow.code()
    assert flow.exchange(code).status == 200
    again = flow.exchange(code)
    assert (again.status, again.code) == (410, "oauth_code_gone")
    assert Session.objects.count() == 1


@pytest.mark.parametrize("verifier", ["x" * 43, "", "short", "x" * 129, "ü" * 43, "x" * 200])
def test_a_wrong_verifier_is_refused_and_uses_the_code_up(
    google: GoogleServer, verifier: str
) -> None:
    flow = OAuthFlow("google")
    code = flow.code()
    stolen = flow.exchange(code, code_verifier=verifier)
    if verifier == "":
        assert stolen.code == "invalid_request"
        return
    assert (stolen.status, stolen.code) == (410, "oauth_code_gone")
    assert flow.exchange(code).code == "oauth_code_gone"
    assert not User.objects.exists()


def test_a_code_expires_after_a_minute(google: GoogleServer) -> None:
    now = timezone.now()
    with time_machine.travel(now, tick=False) as clock:
        flow, late = OAuthFlow("google"), OAuthFlow("google")
        code, late_code = flow.code(), late.code()
        clock.move_to(now + timedelta(seconds=59))
        assert flow.exchange(code).status == 200
        clock.move_to(now + timedelta(seconds=60))
        assert late.exchange(late_code).code == "oauth_code_gone"


def test_codes_and_profiles_are_not_stored_in_plain_text(google: GoogleServer) -> None:
    code = OAuthFlow("google").code()
    row = str(OAuthGrant.objects.values().get())
    assert code not in row
    assert google.person.email not in row
    assert google.person.sub not in row


@pytest.mark.parametrize("body", [{}, {"code": "x"}, {"code": 7, "code_verifier": []}])
def test_an_exchange_without_code_or_verifier_is_malformed(
    db: None, body: dict[str, object]
) -> None:
    answer = Caller().post("/v1/auth/oauth/token", body)
    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize("code", ["unknown", "x" * 200, "\x00", "☃"])
def test_an_unknown_code_is_refused(db: None, code: str) -> None:
    body = {"code": code, "code_verifier": "x" * 43}
    answer = Caller().post("/v1/auth/oauth/token", body)
    assert (answer.status, answer.code) in {(410, "oauth_code_gone"), (400, "invalid_request")}


def test_a_stale_authorization_header_does_not_break_a_sign_in(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    assert flow.exchange(flow.code(), Caller("stale")).status == 200


def test_a_sign_in_opens_the_requested_environment(google: GoogleServer) -> None:
    answer = OAuthFlow("google", environment="sandbox").sign_in()
    assert answer.body["environment"]["id"] == "sandbox"
    # It is then the last used environment.
    assert OAuthFlow("google").sign_in().body["environment"]["id"] == "sandbox"


def test_an_unknown_environment_neither_uses_the_code_up_nor_creates_a_user(
    google: GoogleServer,
) -> None:
    flow = OAuthFlow("google", environment="nowhere")
    code = flow.code()
    assert flow.exchange(code).code == "environment_not_found"
    assert not User.objects.exists()
    assert not Organization.objects.exists()
    OAuthGrant.objects.update(environment="live")
    assert flow.exchange(code).status == 200


def test_a_disabled_user_cannot_sign_in(google: GoogleServer) -> None:
    OAuthFlow("google").sign_in()
    User.objects.update(is_active=False)
    answer = OAuthFlow("google").sign_in()
    assert (answer.status, answer.code) == (401, "identity_refused")
    assert "access_token" not in answer.body
    event = AuditEvent.objects.order_by("-id")[0]
    assert (event.outcome, event.data["error"]) == ("refused", "identity_refused")
    assert event.actor == "dora@example.com"


def test_a_second_factor_is_required(google: GoogleServer) -> None:
    OAuthFlow("google").sign_in()
    with_totp(User.objects.get())
    answer = OAuthFlow("google").sign_in()
    assert answer.body["status"] == "mfa_required"
    assert "access_token" not in answer.body
    waiting = Caller(answer.body["mfa_token"])
    assert waiting.get("/v1/whoami").status == 401
    assert waiting.get("/v1/auth/2fa/challenge?method=totp").status == 200


def test_the_policy_makes_a_user_set_up_a_second_factor(
    google: GoogleServer, settings: Settings
) -> None:
    OAuthFlow("google").sign_in()
    Organization.objects.update(mfa_required=True, mfa_grace_period_days=0)
    answer = OAuthFlow("google").sign_in()
    assert answer.body["status"] == "mfa_enrollment_required"
    assert "access_token" not in answer.body


def test_a_sign_in_is_recorded_in_the_audit_trail(google: GoogleServer) -> None:
    OAuthFlow("google").sign_in()
    events = {event.tag: event for event in AuditEvent.objects.all()}
    assert set(events) == {
        "api:organization:create",
        "api:identity:create",
        "api:session:create",
    }
    assert events["api:session:create"].data["method"] == "external"
    assert events["api:identity:create"].data["subject"] == google.person.sub


def test_new_organizations_count_as_sign_ups(google: GoogleServer, settings: Settings) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, signups_per_hour=1)
    assert OAuthFlow("google").sign_in().status == 200
    google.person = GooglePerson(sub="2", email="other@example.com")
    answer = OAuthFlow("google").sign_in()
    assert (answer.status, answer.code) == (429, "too_many_attempts")
    assert User.objects.count() == 1
    # The limit does not apply to users with an account.
    google.person = GooglePerson()
    assert OAuthFlow("google").sign_in().status == 200


def test_without_a_name_the_address_names_the_organization(google: GoogleServer) -> None:
    google.person.name = ""
    OAuthFlow("google").sign_in()
    assert Organization.objects.get().name == "dora"


def test_a_new_user_has_no_password_until_one_is_set(google: GoogleServer) -> None:
    OAuthFlow("google").sign_in()
    assert not User.objects.get().has_usable_password()
    for password in ("", "!", secrets.token_urlsafe(8)):
        body = {"email": "dora@example.com", "password": password}
        assert Caller().post("/v1/auth/login", body).status in {400, 401}


def together(flows: list[tuple[OAuthFlow, str]]) -> list[Answer]:
    """Exchange codes in parallel."""

    def one(given: tuple[OAuthFlow, str]) -> Answer:
        flow, code = given
        try:
            return flow.exchange(code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(flows)) as pool:
        return list(pool.map(one, flows))


@pytest.mark.django_db(transaction=True)
def test_only_one_of_parallel_exchanges_of_a_code_signs_in(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    code = flow.code()
    answers = together([(flow, code)] * 6)
    assert sorted(answer.status for answer in answers) == [200] + [410] * 5
    assert Session.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_parallel_first_sign_ins_create_one_user(google: GoogleServer) -> None:
    flows = [OAuthFlow("google") for _ in range(6)]
    answers = together([(flow, flow.code()) for flow in flows])
    assert [answer.status for answer in answers] == [200] * 6
    assert (User.objects.count(), Identity.objects.count()) == (1, 1)
    assert Organization.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_only_one_of_parallel_callbacks_gets_a_code(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    sent = flow.at_provider(flow.start().headers["Location"])

    def one(_: int) -> dict[str, str]:
        try:
            return flow.returned(flow.back(sent))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        returned = list(pool.map(one, range(6)))
    assert sum("code" in values for values in returned) == 1
    assert [each["error"] for each in returned if "error" in each] == ["oauth_state_used"] * 5
    assert len(google.calls("/token")) == 1
