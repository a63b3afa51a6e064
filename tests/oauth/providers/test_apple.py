"""Apple: client secret, form post, relay addresses, and the name that is sent once."""

import time
from typing import Any

import pytest
from pytest_django import Settings

from accounts.models import User
from oauth.models import Identity
from tests.cast import PASSWORD, Caller, member, organization
from tests.oauth.conftest import configure
from tests.oauth.fake_providers.apple import AppleServer
from tests.oauth.support import Browser, OAuthFlow, read_form

CALLBACK = "/v1/auth/oauth/apple/callback"
FORM = "application/x-www-form-urlencoded"
RELAY = "x7k2m9@privaterelay.appleid.com"


def test_the_client_secret_is_signed_with_the_key_and_short_lived(apple: AppleServer) -> None:
    OAuthFlow("apple").sign_in()
    [claims] = apple.client_secrets
    assert claims["exp"] - claims["iat"] == 300
    assert abs(claims["iat"] - time.time()) < 60
    assert claims["aud"] == "https://appleid.apple.com"


def test_a_configured_client_secret_is_sent_unchanged(
    apple: AppleServer, settings: Settings
) -> None:
    configure(settings, "apple", apple, client_secret="made-elsewhere-0123456789")
    assert OAuthFlow("apple").error() == "provider_error"
    assert apple.calls("/auth/token")[0].form["client_secret"] == "made-elsewhere-0123456789"


def test_a_client_id_in_the_form_is_ignored(apple: AppleServer) -> None:
    """social-core would sign a client secret for the client id in the form."""
    flow = OAuthFlow("apple")
    sent = flow.at_provider(flow.start().headers["Location"])
    action, fields = read_form(sent.text)
    answer = flow.browser.post_form(action, fields | {"client_id": "evil"})
    assert "code" in flow.returned(answer)
    assert apple.client_secrets[0]["sub"] == "zonal-client"


def test_the_cookie_is_sent_with_apples_form(apple: AppleServer) -> None:
    [morsel] = OAuthFlow("apple").start().raw.cookies.values()
    assert morsel["samesite"] == "None"
    assert morsel["secure"]
    assert morsel["httponly"]
    assert morsel.key.startswith("__Host-")


def test_the_form_has_to_come_by_post(apple: AppleServer) -> None:
    answer = Browser().get(f"{CALLBACK}?code=x&state=y")
    assert (answer.status, answer.code) == (405, "method_not_allowed")


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        ("state=x&state=y", FORM, "invalid_request"),
        ("x" * 40_000, FORM, "payload_too_large"),
        ("&".join(f"a{n}=1" for n in range(50)), FORM, "invalid_request"),
        ("state=%ff", FORM, "invalid_request"),
        ("state=ü", FORM, "invalid_request"),
        ("{}", "application/json", "unsupported_media_type"),
        ("", FORM, "oauth_state_invalid"),
    ],
)
def test_a_malformed_form_is_refused(
    apple: AppleServer, content: str, kind: str, code: str
) -> None:
    answer = Browser()._send("POST", CALLBACK, content, kind)
    assert answer.code == code


def test_a_relay_address_is_stored_as_a_contact(apple: AppleServer) -> None:
    apple.person.email, apple.person.is_private = RELAY, True
    who = Caller().holding(OAuthFlow("apple").sign_in()).get("/v1/whoami").body
    assert who["email"] == RELAY
    identity = Identity.objects.get()
    assert (identity.email, identity.is_private_email) == (RELAY, True)


def test_a_relay_address_matches_no_account(apple: AppleServer) -> None:
    """Even if a local account has it: a relay address identifies no one."""
    squatter = member(organization(), RELAY, password=PASSWORD)
    apple.person.email = RELAY
    for is_private in (True, False):
        apple.person.is_private = is_private
        answer = OAuthFlow("apple").sign_in()
        assert (answer.status, answer.code) == (409, "email_taken")
        assert "link_token" not in answer.body
    assert User.objects.get() == squatter
    assert squatter.check_password(PASSWORD)


@pytest.mark.parametrize("verified", [True, "true"])
def test_apples_booleans_may_be_strings(apple: AppleServer, verified: Any) -> None:
    apple.person.email_verified = verified
    assert OAuthFlow("apple").sign_in().status == 200


@pytest.mark.parametrize("verified", [False, "false", None, 1, "True"])
def test_an_address_that_apple_has_not_verified_is_refused(
    apple: AppleServer, verified: Any
) -> None:
    apple.person.email_verified = verified
    assert OAuthFlow("apple").error() == "email_unverified"


def test_the_name_is_stored_at_the_first_sign_in(apple: AppleServer) -> None:
    OAuthFlow("apple").sign_in()
    apple.person.first_name = "Somebody"
    OAuthFlow("apple").sign_in()
    assert Identity.objects.get().name == "Dora Lake"


def test_a_name_sent_later_is_ignored(apple: AppleServer) -> None:
    OAuthFlow("apple").sign_in()
    apple.user = '{"name": {"firstName": "Somebody", "lastName": "Else"}}'
    OAuthFlow("apple").sign_in()
    assert Identity.objects.get().name == "Dora Lake"


@pytest.mark.parametrize(
    "user",
    [
        "",
        "null",
        "[]",
        "{",
        '{"name": null}',
        '{"name": {"firstName": 7}}',
        "[" * 5000,
        '{"name": {"firstName": "\\u0000\\n", "lastName": "\\u202e"}}',
    ],
)
def test_a_malformed_name_is_ignored(apple: AppleServer, user: str) -> None:
    apple.user = user
    assert OAuthFlow("apple").sign_in().status == 200
    assert Identity.objects.get().name == ""


def test_an_address_in_the_form_is_ignored(apple: AppleServer) -> None:
    """The form is not signed: anyone could make the browser send another address."""
    member(organization(), "victim@example.com", password=PASSWORD)
    apple.person.email = None
    apple.user = '{"email": "victim@example.com", "name": {"firstName": "Eve"}}'
    assert OAuthFlow("apple").error() == "email_missing"


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"iss": "https://evil.example"},
        {"aud": "another"},
        {"at_hash": "x"},
        {"exp": 1},
        {"sub": None},
    ],
    ids=str,
)
def test_apples_id_token_is_verified_like_any_other(
    apple: AppleServer, claims: dict[str, Any]
) -> None:
    apple.claims = claims
    assert OAuthFlow("apple").error() == "identity_invalid"
    assert not User.objects.exists()
