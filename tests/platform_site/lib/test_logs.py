"""Secrets never appear in a log line."""

import logging

import pytest

from accounts.models import User
from platform_site.lib.logs import REDACTED, redact
from tests.cast import PASSWORD, Caller, signed_in

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


def test_values_with_a_secrets_name_are_blanked() -> None:
    event = {"event": "x", "password": "p", "refresh_token": "t", "api_key": "k", "route": "r"}
    assert redact(None, "info", event) == {
        "event": "x",
        "password": REDACTED,
        "refresh_token": REDACTED,
        "api_key": REDACTED,
        "route": "r",
    }


def test_secrets_inside_text_are_blanked() -> None:
    text = f"tried {JWT} and zonal_dev_{'0a' * 32} at postgresql://zonal:hunter2@db/zonal"
    event = redact(None, "info", {"event": text})["event"]
    for secret in [JWT, "0a0a", "hunter2"]:
        assert secret not in event
    assert "tried" in event


def test_a_requests_secrets_are_not_logged(alice: User, caplog: pytest.LogCaptureFixture) -> None:
    caller = signed_in(alice)
    with caplog.at_level(logging.DEBUG):
        Caller().post("/v1/auth/login", {"email": "alice@example.com", "password": PASSWORD})
        caller.refresh()
        caller.get("/v1/whoami")
    for secret in [PASSWORD, caller.access_token, caller.refresh_token]:
        assert secret not in caplog.text
