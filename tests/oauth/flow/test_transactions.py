"""OAuth transactions: start, state, browser binding, callback, redirect URLs."""

import re
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from oauth import tasks
from oauth.models import Identity, OAuthGrant, OAuthTransaction
from tests.cast import Caller
from tests.oauth.conftest import BASE, configure
from tests.oauth.fake_providers.google import GoogleServer
from tests.oauth.fake_providers.server import CLIENT_SECRET, FakeResponse, Fault
from tests.oauth.support import APP, Browser, OAuthFlow


def test_the_configured_providers_are_listed(google: GoogleServer) -> None:
    answer = Caller().get("/v1/auth/oauth/providers")
    start_url = f"{BASE}/v1/auth/oauth/google/start"
    expected = {"name": "google", "title": "Google", "start_url": start_url}
    assert answer.body == {"providers": [expected]}


@pytest.mark.parametrize("provider", ["google", "github", "apple", "nobody", "GOOGLE"])
def test_a_provider_that_is_not_configured_is_not_found(db: None, provider: str) -> None:
    assert Caller().get("/v1/auth/oauth/providers").body == {"providers": []}
    flow = OAuthFlow(provider)
    for answer in (
        flow.start(),
        flow.start(redirect_to="https://evil.example"),
        Browser().get(f"/v1/auth/oauth/{provider}/callback?code=x&state=y"),
        Browser().post_form(f"/v1/auth/oauth/{provider}/callback", {"code": "x", "state": "y"}),
    ):
        assert (answer.status, answer.code) == (404, "provider_not_configured")


@pytest.mark.parametrize(
    "redirect_to",
    [
        "https://evil.example/done",
        f"{APP}/",
        f"{APP}?next=https://evil.example",
        f"{APP}#x",
        f"{APP}@evil.example",
        "https://app.example.com",
        "https://APP.example.com/done",
        "http://app.example.com/done",
        "https://app.example.com/./done",
        "https://app.example.com\\@evil.example/done",
        "//app.example.com/done",
        "/done",
        "javascript:alert(1)",
        " ",
    ],
)
def test_a_redirect_to_an_unknown_url_is_refused(google: GoogleServer, redirect_to: str) -> None:
    answer = OAuthFlow("google").start(redirect_to=redirect_to)
    assert (answer.status, answer.code) == (400, "redirect_not_allowed")
    assert "Location" not in answer.headers
    assert not OAuthTransaction.objects.exists()


def test_without_a_redirect_url_the_browser_returns_to_the_console(google: GoogleServer) -> None:
    flow = OAuthFlow("google", redirect_to="")
    answer = flow.round_trip()
    assert answer.headers["Location"].startswith(f"{BASE}/console/sign-in?code=")


def test_a_native_app_is_reached_by_its_own_scheme(
    google: GoogleServer, settings: Settings
) -> None:
    settings.OAUTH = replace(settings.OAUTH, redirects=("com.example.app:/done?kind=oauth",))
    flow = OAuthFlow("google", redirect_to="com.example.app:/done?kind=oauth")
    location = flow.round_trip().headers["Location"]
    assert location.startswith("com.example.app:/done?kind=oauth&code=")


@pytest.mark.parametrize(
    "changed",
    [
        {"code_challenge": ""},
        {"code_challenge": "short"},
        {"code_challenge": "x" * 44},
        {"code_challenge": "x" * 42 + "="},
        {"code_challenge": "x" * 43 + "\n"},
        {"code_challenge_method": "plain"},
        {"state": "x" * 513},
        {"colour": "red"},
    ],
    ids=str,
)
def test_a_start_without_a_valid_challenge_is_refused(
    google: GoogleServer, changed: dict[str, str]
) -> None:
    answer = OAuthFlow("google").start(**changed)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert not OAuthTransaction.objects.exists()


def test_a_parameter_given_twice_is_refused(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    path = f"/v1/auth/oauth/google/start?code_challenge={'x' * 43}&code_challenge={'y' * 43}"
    assert flow.browser.get(path).code == "invalid_request"
    location = flow.start().headers["Location"]
    sent = flow.at_provider(location).headers["Location"]
    answer = flow.browser.get(f"{sent}&code=another")
    assert (answer.status, answer.code) == (400, "invalid_request")


def test_the_browser_cookie_is_hidden_from_scripts_and_other_hosts(
    google: GoogleServer,
) -> None:
    answer = OAuthFlow("google").start()
    [morsel] = answer.raw.cookies.values()
    assert morsel.key.startswith("__Host-")
    assert morsel["secure"]
    assert morsel["httponly"]
    assert (morsel["path"], morsel["domain"], morsel["samesite"]) == ("/", "", "Lax")
    assert morsel["max-age"] == 600
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"


def test_no_secret_of_a_transaction_is_stored_in_plain_text(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    query = dict(parse_qsl(urlsplit(flow.start().headers["Location"]).query))
    row = str(OAuthTransaction.objects.values().get())
    for secret in (query["state"], query["nonce"], *flow.browser.cookies.values()):
        assert secret not in row


def test_a_callback_in_another_browser_is_refused_without_a_redirect(google: GoogleServer) -> None:
    """Login CSRF: a victim must not be signed in to the attacker's account."""
    thief = OAuthFlow("google")
    sent = thief.at_provider(thief.start().headers["Location"]).headers["Location"]
    victim = OAuthFlow("google")
    victim.start()
    for browser in (Browser(), victim.browser):
        answer = browser.get(sent)
        assert (answer.status, answer.code) == (400, "oauth_state_invalid")
        assert "Location" not in answer.headers
    assert AuditEvent.objects.filter(data__error="oauth_state_invalid").count() == 2
    assert not google.calls("/token")
    # The thief's own transaction is not used up by it.
    assert "code=" in thief.browser.get(sent).headers["Location"]


@pytest.mark.parametrize("state", ["", "unknown", "x" * 5000, "%00", "☃"])
def test_an_unknown_state_is_refused(google: GoogleServer, state: str) -> None:
    flow = OAuthFlow("google")
    flow.start()
    answer = flow.browser.get(f"/v1/auth/oauth/google/callback?code=x&state={state}")
    assert (answer.status, answer.code) == (400, "oauth_state_invalid")


def test_the_state_of_another_provider_is_refused(google: GoogleServer) -> None:
    """Mix-up attack: a state is valid for the callback of its own provider only."""
    flow = OAuthFlow("google")
    sent = flow.at_provider(flow.start().headers["Location"]).headers["Location"]
    OAuthTransaction.objects.update(provider="github")
    assert flow.browser.get(sent).code == "oauth_state_invalid"


def test_the_response_of_another_issuer_is_refused(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    sent = flow.at_provider(flow.start().headers["Location"]).headers["Location"]
    answer = flow.browser.get(f"{sent}&iss=https%3A%2F%2Fevil.example")
    assert flow.returned(answer)["error"] == "identity_invalid"
    assert not google.calls("/token")


def test_the_response_of_the_right_issuer_is_accepted(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    sent = flow.at_provider(flow.start().headers["Location"]).headers["Location"]
    assert "code" in flow.returned(flow.browser.get(f"{sent}&iss={google.url}"))


def test_a_transaction_accepts_one_callback(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    sent = flow.at_provider(flow.start().headers["Location"])
    assert "code" in flow.returned(flow.back(sent))
    assert flow.returned(flow.back(sent))["error"] == "oauth_state_used"
    assert len(google.calls("/token")) == 1
    assert OAuthGrant.objects.count() == 1


def test_a_transaction_expires_after_ten_minutes(google: GoogleServer) -> None:
    now = timezone.now()
    with time_machine.travel(now, tick=False) as clock:
        flow, late = OAuthFlow("google"), OAuthFlow("google")
        sent = flow.at_provider(flow.start().headers["Location"])
        sent_late = late.at_provider(late.start().headers["Location"])
        clock.move_to(now + timedelta(minutes=9, seconds=59))
        google.claims = {"iat": int(now.timestamp()) + 599, "exp": int(now.timestamp()) + 4000}
        assert "code" in flow.returned(flow.back(sent))
        clock.move_to(now + timedelta(minutes=10))
        assert late.returned(late.back(sent_late))["error"] == "oauth_state_used"


def test_two_tabs_can_sign_in_in_parallel(google: GoogleServer) -> None:
    browser = Browser()
    left, right = OAuthFlow("google", browser), OAuthFlow("google", browser)
    sent_left = left.at_provider(left.start().headers["Location"])
    sent_right = right.at_provider(right.start().headers["Location"])
    assert "code" in left.returned(left.back(sent_left))
    assert "code" in right.returned(right.back(sent_right))


@pytest.mark.parametrize(
    ("at_google", "code"),
    [
        ("access_denied", "access_denied"),
        ("server_error", "provider_unavailable"),
        ("temporarily_unavailable", "provider_unavailable"),
        ("invalid_scope", "provider_error"),
        ("<script>", "provider_error"),
    ],
)
def test_errors_of_the_provider_are_mapped_to_our_codes(
    google: GoogleServer, at_google: str, code: str
) -> None:
    google.refuses = at_google
    flow = OAuthFlow("google")
    values = flow.returned(flow.round_trip())
    assert values["error"] == code
    assert at_google == code or at_google not in str(values)
    assert AuditEvent.objects.get().data["error"] == code
    assert not User.objects.exists()


def test_a_callback_without_a_code_is_refused(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    query = dict(parse_qsl(urlsplit(flow.start().headers["Location"]).query))
    answer = flow.browser.get(f"/v1/auth/oauth/google/callback?state={query['state']}")
    assert flow.returned(answer)["error"] == "provider_error"


def test_a_code_that_the_provider_refuses_does_not_sign_in(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    sent = flow.at_provider(flow.start().headers["Location"]).headers["Location"]
    tampered = re.sub("code=[^&]+", "code=guessed", sent)
    assert flow.returned(flow.browser.get(tampered))["error"] == "provider_error"
    assert not Identity.objects.exists()


def test_a_head_request_starts_and_completes_nothing(google: GoogleServer) -> None:
    flow = OAuthFlow("google")
    sent = flow.at_provider(flow.start().headers["Location"]).headers["Location"]
    for url in (sent, f"/v1/auth/oauth/google/start?code_challenge={'x' * 43}"):
        assert flow.browser._send("HEAD", url).status == 405
    assert OAuthTransaction.objects.count() == 1
    assert "code" in flow.returned(flow.browser.get(sent))


def test_a_form_post_is_accepted_only_from_a_provider_that_uses_it(google: GoogleServer) -> None:
    answer = Browser().post_form("/v1/auth/oauth/google/callback", {"code": "x", "state": "y"})
    assert (answer.status, answer.code) == (405, "method_not_allowed")


def test_starts_and_callbacks_are_rate_limited_by_address(
    google: GoogleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oauth.flow.flow_state.STARTS_PER_ADDRESS", 3)
    flow = OAuthFlow("google")
    for _ in range(2):
        assert flow.start().status == 302
    assert flow.browser.get("/v1/auth/oauth/google/callback?state=x").status == 400
    for answer in (
        flow.start(),
        flow.browser.get("/v1/auth/oauth/google/callback?state=x"),
    ):
        assert (answer.status, answer.code) == (429, "too_many_attempts")
        assert int(answer.headers["Retry-After"]) > 0
    assert OAuthTransaction.objects.count() == 2


def test_expired_transactions_and_grants_are_deleted(google: GoogleServer) -> None:
    OAuthFlow("google").code()
    tasks.delete_expired(0)
    assert (OAuthTransaction.objects.count(), OAuthGrant.objects.count()) == (1, 1)
    with time_machine.travel(timezone.now() + timedelta(minutes=11)):
        tasks.delete_expired(0)
    assert (OAuthTransaction.objects.count(), OAuthGrant.objects.count()) == (0, 0)


def test_a_provider_turned_off_during_a_transaction_is_not_found(
    google: GoogleServer, settings: Settings
) -> None:
    flow = OAuthFlow("google")
    sent = flow.at_provider(flow.start().headers["Location"])
    settings.OAUTH = replace(settings.OAUTH, providers={})
    assert flow.back(sent).code == "provider_not_configured"
    configure(settings, "google", google)
    assert "code" in flow.returned(flow.back(sent))


def test_text_of_the_provider_is_not_passed_on(google: GoogleServer) -> None:
    google.faults["/token"] = Fault(
        FakeResponse(
            400, {"error": "invalid_request", "error_description": "secret of the provider's"}
        )
    )
    flow = OAuthFlow("google")
    values = flow.returned(flow.round_trip())
    assert values["error"] == "provider_error"
    assert "secret" not in str(values)


def test_no_secret_of_a_sign_in_is_logged(
    google: GoogleServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    flow = OAuthFlow("google")
    code = flow.code()
    answer = flow.exchange(code)
    google.faults["/token"] = Fault(FakeResponse(400, {"error": "invalid_client"}))
    assert OAuthFlow("google").error() == "provider_error"
    out, err = capfd.readouterr()
    logged = caplog.text + out + err
    assert "external_sign_in_failed" in logged
    exchanged = google.calls("/token")[0].form
    for secret in (
        code,
        flow.verifier,
        CLIENT_SECRET,
        exchanged["code"],
        exchanged["code_verifier"],
        *google.tokens,
        *flow.browser.cookies.values(),
        answer.body["access_token"],
        google.person.sub,
    ):
        assert secret not in logged
