"""The admin's sign-in with a passkey refuses malformed bodies as the API does."""

import json
from typing import Any

import pytest
from django.test import Client

from tests.twofactor.webauthn.authenticator import Authenticator, b64

pytestmark = pytest.mark.django_db
CREDENTIAL = Authenticator().get({"challenge": b64(b"any"), "rpId": "localhost"})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 5000,
        {"challenge_id": "x"},
        {"challenge_id": "x", "credential": "y"},
        {"challenge_id": "\ud800", "credential": CREDENTIAL},
        {"challenge_id": "x", "next": "\udfff", "credential": CREDENTIAL},
    ],
)
def test_a_malformed_body_is_400(body: Any) -> None:
    sent = body if isinstance(body, bytes) else json.dumps(body)
    answer = Client(raise_request_exception=False).post(
        "/admin/login/passkey/finish/", sent, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
