"""Verification of ID tokens; an invalid one creates nothing."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from accounts.models import User
from audit.models import AuditEvent
from oauth.models import Identity, OAuthGrant
from tests.oauth.fake_providers import keys
from tests.oauth.fake_providers.google import GoogleServer
from tests.oauth.fake_providers.server import CLIENT_ID, FakeResponse, Fault
from tests.oauth.support import OAuthFlow

# Whole hours, so that all test processes generate the same test names.
HOUR_AGO = int(time.time()) // 3600 * 3600 - 3600
IN_AN_HOUR = HOUR_AGO + 3 * 3600


def refused() -> None:
    """Assert that Google's flow is refused, creates nothing and is in the audit trail."""
    assert OAuthFlow("google").error() == "identity_invalid"
    assert not User.objects.exists()
    assert not Identity.objects.exists()
    assert not OAuthGrant.objects.exists()
    assert AuditEvent.objects.get().data["error"] == "identity_invalid"


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "another-client"},
        {"aud": None},
        {"aud": [CLIENT_ID, "another-client"], "azp": None},
        {"azp": "another-client"},
        {"nonce": "another-visit"},
        {"nonce": None},
        {"nonce": ""},
        {"exp": HOUR_AGO},
        {"exp": None},
        {"iat": HOUR_AGO},
        {"iat": None},
        {"nbf": IN_AN_HOUR},
        {"sub": None},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
    ],
    ids=str,
)
def test_an_invalid_claim_is_refused(google: GoogleServer, claims: dict[str, Any]) -> None:
    google.claims = claims
    refused()


def test_a_signature_of_an_unlisted_key_is_refused(google: GoogleServer) -> None:
    google.signs_with, google.kid = "stranger", "google-1"
    refused()


def test_keys_are_fetched_again_for_an_unknown_key_which_is_then_refused(
    google: GoogleServer,
) -> None:
    google.signs_with = "stranger"
    refused()
    assert len(google.calls("/oauth2/v3/certs")) == 2


def unsigned(claims: dict[str, Any]) -> str:
    """Return a token without a signature (alg none)."""
    return jwt.encode(claims, "", algorithm="none", headers={"kid": "google-1"})


def by_public_key(claims: dict[str, Any]) -> str:
    """Return a token whose HMAC key is the public RSA key, which is public."""
    public = keys.rsa_key("google-1").public_key()
    pem = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )

    def part(value: bytes) -> bytes:
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    head = part(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "google-1"}).encode())
    signed = head + b"." + part(json.dumps(claims).encode())
    # By hand: PyJWT refuses to use a public key for HMAC.
    return (signed + b"." + part(hmac.new(pem, signed, hashlib.sha256).digest())).decode()


def changed(claims: dict[str, Any]) -> str:
    """Return a token whose claims were changed after signing."""
    honest = keys.sign(claims, "google-1")
    head, _, signature = honest.split(".")
    body = base64.urlsafe_b64encode(json.dumps(claims | {"sub": "victim"}).encode())
    return f"{head}.{body.decode().rstrip('=')}.{signature}"


@pytest.mark.parametrize(
    "forge",
    [unsigned, by_public_key, changed, lambda claims: "garbage", lambda claims: "a.b.c"],
)
def test_a_forged_token_is_refused(
    google: GoogleServer, forge: Callable[[dict[str, Any]], str]
) -> None:
    flow = OAuthFlow("google")
    location = flow.start().headers["Location"]
    sent = flow.at_provider(location)
    nonce = google.calls("/o/oauth2/v2/auth")[0].query["nonce"]
    now = int(time.time())
    claims = {
        "iss": google.url,
        "aud": CLIENT_ID,
        "sub": "1",
        "email": "dora@example.com",
        "email_verified": True,
        "nonce": nonce,
        "iat": now,
        "exp": now + 60,
    }
    body = {"access_token": "x", "token_type": "Bearer", "id_token": forge(claims)}
    google.faults["/token"] = Fault(FakeResponse(body=body))
    assert flow.returned(flow.back(sent))["error"] == "identity_invalid"
    assert not User.objects.exists()


@pytest.mark.parametrize("token", [None, "", 7, ["a.b.c"]])
def test_a_response_without_an_id_token_is_refused(google: GoogleServer, token: object) -> None:
    google.faults["/token"] = Fault(FakeResponse(body={"access_token": "x", "id_token": token}))
    refused()


def test_a_provider_can_rotate_its_keys(google: GoogleServer) -> None:
    assert OAuthFlow("google").sign_in().status == 200
    google.rotate("google-2")
    assert OAuthFlow("google").sign_in().status == 200
    # The retired key is no longer accepted.
    google.signs_with = "google-1"
    assert OAuthFlow("google").error() == "identity_invalid"


def test_keys_are_cached(google: GoogleServer) -> None:
    for _ in range(3):
        assert OAuthFlow("google").sign_in().status == 200
    assert len(google.calls("/oauth2/v3/certs")) == 1


@pytest.mark.parametrize(
    "keys_", [{"keys": "none"}, {"keys": [7]}, {}, [], {"keys": [{"kid": "google-1", "kty": "?"}]}]
)
def test_malformed_keys_are_refused(google: GoogleServer, keys_: object) -> None:
    google.faults["/oauth2/v3/certs"] = Fault(FakeResponse(body=keys_))
    refused()


@pytest.mark.parametrize("subject", ["", " ", "\x00", "ü", "x" * 256])
def test_a_malformed_subject_is_refused(google: GoogleServer, subject: str) -> None:
    google.claims = {"sub": subject}
    assert OAuthFlow("google").error() == "provider_error"
    assert not User.objects.exists()
