"""Removing and preferring methods."""

import pytest

from tests import inbox
from tests.twofactor.holder import Holder, log_in

pytestmark = pytest.mark.django_db


def add_email(holder: Holder) -> None:
    begun = holder.caller.post("/v1/auth/2fa/email/setup").body
    body = {"verification_id": begun["verification_id"], "code": inbox.email_code()}
    assert holder.caller.post("/v1/auth/2fa/email/verify", body).status == 200


def test_removing_the_last_method_removes_the_backup_codes(holder: Holder) -> None:
    assert holder.caller.call("DELETE", "/v1/auth/2fa/method/totp").status == 204
    status = holder.caller.get("/v1/auth/2fa/status").body
    assert (status["enabled"], status["enabled_methods"], status["default_method"]) == (
        False,
        [],
        None,
    )
    assert log_in().body["status"] == "authenticated"
    assert "factor_removed" in inbox.notices_to("alice@example.com")


def test_backup_codes_stay_while_another_method_is_left(holder: Holder) -> None:
    add_email(holder)
    holder.caller.call("DELETE", "/v1/auth/2fa/method/totp")
    status = holder.caller.get("/v1/auth/2fa/status").body
    assert status["enabled_methods"] == ["email", "backup_codes"]
    assert status["default_method"] == "email"


@pytest.mark.parametrize(
    ("method", "status", "code"),
    [("sms", 409, "method_not_enabled"), ("carrier_pigeon", 404, "not_found")],
)
def test_a_method_that_is_not_enabled_cannot_be_removed(
    holder: Holder, method: str, status: int, code: str
) -> None:
    answer = holder.caller.call("DELETE", f"/v1/auth/2fa/method/{method}")
    assert (answer.status, answer.code) == (status, code)


def test_the_default_can_be_chosen(holder: Holder) -> None:
    add_email(holder)
    answer = holder.caller.call("PUT", "/v1/auth/2fa/default", {"method": "email"})
    assert answer.body["default_method"] == "email"
    first = [row["method"] for row in log_in().body["methods"] if row["default"]]
    assert first == ["email"]
    answer = holder.caller.call("PUT", "/v1/auth/2fa/default", {"method": "sms"})
    assert answer.code == "method_not_enabled"
    assert holder.caller.call("PUT", "/v1/auth/2fa/default", {"method": "x"}).status == 400
