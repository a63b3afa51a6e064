"""Secrets never appear in a log line."""

import io
import json
import logging

import pytest
import structlog

from accounts.models import User
from common.logs import REDACTED, line_logger, redact
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
    text = f"tried {JWT}, zk_live_{'0a' * 24}b and zonal_dev_{'0a' * 32} at postgresql://zonal:hunter2@db/zonal"
    event = redact(None, "info", {"event": text})["event"]
    for secret in [JWT, "0a0a", "hunter2"]:
        assert secret not in event
    assert "tried" in event


@pytest.mark.parametrize("mark", ["=", "%3D", "%3d", "%253D"])
def test_signatures_inside_urls_are_blanked(mark: str) -> None:
    text = f"no route to https://a/?X-Amz-Signature{mark}0a/b+c%2Fd&x=1 (Signature wrong)"
    event = redact(None, "info", {"event": text})["event"]
    assert event == f"no route to https://a/?X-Amz-Signature{REDACTED}&x=1 (Signature wrong)"


def test_a_requests_secrets_are_not_logged(
    alice: User, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caller = signed_in(alice)
    with caplog.at_level(logging.DEBUG):
        Caller().post("/v1/auth/login", {"email": "alice@example.com", "password": PASSWORD})
        caller.refresh()
        caller.get("/v1/whoami")
    for secret in [PASSWORD, caller.access_token, caller.refresh_token]:
        assert secret not in caplog.text + capfd.readouterr().err


def test_a_line_logger_redacts_and_keeps_to_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(written))
    quiet, log = line_logger("zonal.x", "json", "error"), line_logger("zonal.x", "json", "info")
    with structlog.contextvars.bound_contextvars(request_id="r1"):
        quiet.info("request")
        log.info("request", path=f"/{JWT}", token="t")
    line = json.loads(written.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "request",
        "level": "info",
        "logger": "zonal.x",
        "path": f"/{REDACTED}",
        "request_id": "r1",
        "token": REDACTED,
    }
