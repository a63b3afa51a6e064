"""Tokens: one algorithm, one type, one audience each; everything else is 401 (RFC 8725)."""

import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import jwt
import pytest
import time_machine
from django.conf import settings as django_settings
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Session, User
from accounts.tokens import session_tokens
from tests.cast import Caller, signed_in

pytestmark = pytest.mark.django_db


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return jwt.get_unverified_header(token), jwt.decode(token, options={"verify_signature": False})


def forge(
    token: str,
    *,
    key: str = "",
    header: dict[str, Any] | None = None,
    claims: dict[str, Any] | None = None,
    without: str = "",
) -> str:
    old_header, old_claims = parts(token)
    payload = {k: v for k, v in (old_claims | (claims or {})).items() if k != without}
    headers = old_header | (header or {})
    algorithm = headers.pop("alg")
    if algorithm == "none":
        return jwt.encode(payload, "", algorithm="none", headers=headers)
    return jwt.encode(
        payload,
        key or django_settings.ACCOUNTS.access_keys[0],
        algorithm=algorithm,
        headers=headers,
    )


def refused(token: str) -> str:
    answer = Caller(token).get("/v1/whoami")
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    return answer.code


def test_claims_and_headers_are_the_published_ones(alice: User) -> None:
    caller = signed_in(alice)
    header, claims = parts(caller.access_token)
    assert (header["alg"], header["typ"], len(header["kid"])) == ("HS256", "at+jwt", 16)
    session = Session.objects.get()
    assert claims["sid"] == str(session.id)
    assert claims["sub"] == str(alice.pk)
    assert claims["org"] == alice.organization_id
    assert (claims["env"], claims["amr"], claims["acr"]) == ("live", ["pwd"], "aal1")
    assert claims["exp"] - claims["iat"] == 900
    header, claims = parts(caller.refresh_token)
    assert header["typ"] == "rt+jwt"
    assert claims["exp"] - claims["iat"] == 604800
    assert not {"org", "env", "amr", "acr"} & set(claims)


def test_an_unchanged_token_is_accepted(alice: User) -> None:
    # Holds the helper of the tests below to account: its signature is right.
    assert Caller(forge(signed_in(alice).access_token)).get("/v1/whoami").status == 200


def test_algorithm_none_and_swapped_algorithms_are_refused(alice: User) -> None:
    token = signed_in(alice).access_token
    for algorithm in ["none", "HS384", "HS512"]:
        assert refused(forge(token, header={"alg": algorithm})) == "token_invalid"
    _, body, signature = token.split(".")
    for name in ["None", "NONE", "nOnE", "RS256", "ES256"]:
        header = base64.urlsafe_b64encode(
            json.dumps(parts(token)[0] | {"alg": name}).encode()
        ).rstrip(b"=")
        assert refused(f"{header.decode()}.{body}.") == "token_invalid"
        assert refused(f"{header.decode()}.{body}.{signature}") == "token_invalid"


def test_a_key_of_the_attackers_is_refused(alice: User) -> None:
    token = signed_in(alice).access_token
    key = "x" * 48
    assert refused(forge(token, key=key)) == "token_invalid"
    assert refused(forge(token, key=key, header={"kid": "0" * 16})) == "token_invalid"
    assert refused(forge(token, header={"kid": "../../dev/null"})) == "token_invalid"
    assert refused(forge(token, header={"jku": "http://127.0.0.1/keys"}, key=key)) == (
        "token_invalid"
    )


def test_a_refresh_token_is_not_an_access_token_and_the_reverse(alice: User) -> None:
    caller = signed_in(alice)
    assert refused(caller.refresh_token) == "token_invalid"
    swapped = Caller(refresh_token=caller.access_token)
    assert swapped.refresh().code == "token_invalid"
    body = {"refresh_token": caller.access_token, "environment": "sandbox"}
    assert swapped.post("/v1/auth/switch", body).code == "token_invalid"
    # Even signed with the right key, the type in the header has to be right.
    as_access = forge(caller.refresh_token, header={"typ": "at+jwt"})
    assert refused(as_access) == "token_invalid"


@pytest.mark.parametrize("claim", session_tokens.REQUIRED)
def test_no_claim_can_be_left_out(alice: User, claim: str) -> None:
    assert refused(forge(signed_in(alice).access_token, without=claim)) == "token_invalid"


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "zonal:refresh"},
        {"iss": "elsewhere"},
        {"sid": "not-a-uuid"},
        {"sid": None},
        {"sid": ["x"]},
        {"gen": "one"},
        {"gen": None},
        {"exp": "tomorrow"},
        {"nbf": 9999999999},
    ],
)
def test_wrong_claims_are_refused(alice: User, claims: dict[str, Any]) -> None:
    assert refused(forge(signed_in(alice).access_token, claims=claims)) == "token_invalid"


def test_another_users_session_is_refused(alice: User, bob: User) -> None:
    token = signed_in(alice).access_token
    assert refused(forge(token, claims={"sub": str(bob.pk)})) == "session_revoked"


def test_the_row_overrides_the_claims_of_a_token(alice: User, charlie: User) -> None:
    token = forge(
        signed_in(alice).access_token,
        claims={"org": charlie.organization_id, "env": "sandbox", "acr": "aal2"},
    )
    who = Caller(token).get("/v1/whoami").body
    assert (who["org_id"], who["environment"]["id"], who["aal"]) == (
        alice.organization_id,
        "live",
        1,
    )


def test_an_expired_access_token_has_its_own_error_code(alice: User) -> None:
    caller = signed_in(alice)
    with time_machine.travel(timezone.now() + timedelta(seconds=901)):
        assert refused(caller.access_token) == "token_expired"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "Token x", "Bearer é"])
def test_malformed_headers_are_401(db: None, header: str) -> None:
    answer = Caller().get("/v1/whoami", AUTHORIZATION=header)
    assert answer.status == 401


def test_no_header_is_401_without_an_error_in_the_challenge(db: None) -> None:
    answer = Caller().get("/v1/whoami")
    assert (answer.status, answer.code) == (401, "not_authenticated")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="zonal"'


def test_a_changed_key_signs_no_user_out(alice: User, settings: Settings) -> None:
    caller = signed_in(alice)
    settings.ACCOUNTS = replace(
        settings.ACCOUNTS,
        access_keys=("n" * 48, *settings.ACCOUNTS.access_keys),
        refresh_keys=("m" * 48, *settings.ACCOUNTS.refresh_keys),
    )
    assert caller.get("/v1/whoami").status == 200
    new = caller.holding(caller.refresh())
    assert parts(new.access_token)[0]["kid"] != parts(caller.access_token)[0]["kid"]
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_keys=settings.ACCOUNTS.access_keys[:1])
    assert caller.get("/v1/whoami").code == "token_invalid"
    assert new.get("/v1/whoami").status == 200


def test_a_cached_token_is_refused_after_its_key_or_name_is_gone(
    alice: User, settings: Settings
) -> None:
    caller = signed_in(alice)
    assert caller.get("/v1/whoami").status == 200
    keys = settings.ACCOUNTS.access_keys
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_keys=("n" * 48,))
    assert refused(caller.access_token) == "token_invalid"
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_keys=keys)
    settings.SERVICE_NAME = "another"
    assert refused(caller.access_token) == "token_invalid"


def test_a_token_that_was_verified_still_expires(alice: User) -> None:
    caller = signed_in(alice)
    assert caller.get("/v1/whoami").status == 200
    with time_machine.travel(timezone.now() + timedelta(seconds=901)):
        assert refused(caller.access_token) == "token_expired"


def test_a_verified_token_cannot_be_changed(alice: User) -> None:
    token = signed_in(alice).access_token
    assert Caller(token).get("/v1/whoami").status == 200
    head, claims, signature = token.split(".")
    for changed in (
        f"{head}.{claims}.",
        f"{head}.{claims}.{signature[:-4]}AAAA",
        f"{head}.{claims[:-4]}AAAA.{signature}",
        f"{head}.{claims}.{signature}.{signature}",
    ):
        assert refused(changed) == "token_invalid", changed


def test_a_refused_token_is_not_cached(alice: User) -> None:
    session_tokens._read_access.cache_clear()
    forged = forge(signed_in(alice).access_token, key="x" * 48)
    for _ in range(3):
        assert refused(forged) == "token_invalid"
    assert session_tokens._read_access.cache_info().currsize == 0


def test_a_stale_header_does_not_break_a_login_or_a_refresh(alice: User) -> None:
    caller = signed_in(alice)
    stale = Caller("garbage", caller.refresh_token)
    assert stale.refresh().status == 200
    body = {"email": "nobody@example.com", "password": "whatever it is"}
    assert stale.post("/v1/auth/login", body).code == "invalid_credentials"
