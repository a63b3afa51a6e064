"""Calls to a provider that is slow, broken, endless or redirects: they end soon."""

import time

import pytest
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from oauth.models import OAuthGrant
from oauth.providers import http
from tests.oauth.conftest import configure
from tests.oauth.fake_providers.google import GoogleServer
from tests.oauth.fake_providers.server import FakeResponse, Fault
from tests.oauth.support import OAuthFlow

AWAY = "provider_unavailable"
BROKEN = "provider_error"


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a short timeout."""
    monkeypatch.setattr("oauth.providers.http.TIMEOUT_S", 0.6)


@pytest.mark.parametrize("path", ["/token", "/oauth2/v3/certs"])
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(is_silent=True), AWAY),
        (Fault(drips=True), AWAY),
        (Fault(is_endless=True), AWAY),
        (Fault(FakeResponse(500, {"error": "server_error"})), AWAY),
        (Fault(FakeResponse(503, b"<html>")), AWAY),
        (Fault(FakeResponse(429, {}, {"Retry-After": "60"})), AWAY),
        (Fault(FakeResponse(404, b"")), BROKEN),
        (Fault(FakeResponse(200, b"<html>")), BROKEN),
        (Fault(FakeResponse(200, [])), BROKEN),
        (Fault(FakeResponse(200, None)), BROKEN),
    ],
    ids=[
        "silent",
        "drips",
        "endless",
        "500",
        "503",
        "429",
        "404",
        "html",
        "list",
        "empty",
    ],
)
def test_an_unavailable_provider_is_distinguished_from_one_that_refuses(
    google: GoogleServer, path: str, fault: Fault, code: str
) -> None:
    google.faults[path] = fault
    started = time.monotonic()
    found = OAuthFlow("google").error()
    # With broken keys no token can be verified.
    assert found == ("identity_invalid" if code == BROKEN and "certs" in path else code)
    assert time.monotonic() - started < 20
    assert not User.objects.exists()
    assert not OAuthGrant.objects.exists()
    assert AuditEvent.objects.get().data["error"] == found


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(google: GoogleServer, status: int) -> None:
    elsewhere = f"{google.url}/elsewhere"
    google.faults["/token"] = Fault(FakeResponse(status, {}, {"Location": elsewhere}))
    assert OAuthFlow("google").error() == BROKEN
    # A followed redirect would send the code and our secret to another server.
    assert not google.calls("/elsewhere")


def test_a_provider_that_cannot_be_reached_is_unavailable(
    google: GoogleServer, settings: Settings
) -> None:
    flow = OAuthFlow("google")
    sent = flow.at_provider(flow.start().headers["Location"])
    configure(settings, "google", google, base_url="http://127.0.0.1:1")
    assert flow.returned(flow.back(sent))["error"] == AWAY


def test_a_later_attempt_succeeds(google: GoogleServer) -> None:
    google.faults["/token"] = Fault(FakeResponse(503, {}))
    assert OAuthFlow("google").error() == AWAY
    google.faults.clear()
    assert OAuthFlow("google").sign_in().status == 200


def test_a_response_may_be_as_long_as_the_limit(
    google: GoogleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oauth.providers.http.TIMEOUT_S", 10)
    google.faults["/x"] = Fault(FakeResponse(200, b"x" * http.MAX_BYTES))
    assert len(http.send("GET", f"{google.url}/x").content) == http.MAX_BYTES
    google.faults["/x"] = Fault(FakeResponse(200, b"x" * (http.MAX_BYTES + 1)))
    with pytest.raises(http.ResponseTooLong):
        http.send("GET", f"{google.url}/x")
