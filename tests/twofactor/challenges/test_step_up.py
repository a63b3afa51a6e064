"""What is dangerous takes a recent proof: the second factor, or without one the sign-in."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEvent
from tests.cast import PASSWORD, Caller, signed_in
from tests.rules.routes import api_routes
from tests.twofactor.holder import Holder, ask, reply

pytestmark = pytest.mark.django_db
LATER = timedelta(minutes=15, seconds=1)
DANGEROUS: list[tuple[str, str, Any]] = [
    ("POST", "/v1/auth/2fa/totp/setup", {}),
    ("DELETE", "/v1/auth/2fa/method/totp", None),
    ("POST", "/v1/auth/2fa/backup-codes", None),
    ("PUT", "/v1/auth/2fa/policy", {"required": False}),
    ("DELETE", "/v1/environments/sandbox", None),
]


@pytest.mark.parametrize(("method", "path", "body"), DANGEROUS)
def test_a_password_alone_is_not_enough_where_there_is_a_factor(
    holder: Holder, method: str, path: str, body: Any
) -> None:
    answer = signed_in(holder.user).call(method, path, body)
    assert (answer.status, answer.code) == (403, "step_up_required")
    assert answer.body["proof"] == "second_factor"
    header = answer.headers["WWW-Authenticate"]
    assert 'error="insufficient_user_authentication"' in header
    assert 'acr_values="aal2"' in header


@pytest.mark.parametrize(("method", "path", "body"), DANGEROUS)
def test_a_proof_lasts_fifteen_minutes(holder: Holder, method: str, path: str, body: Any) -> None:
    with time_machine.travel(timezone.now() + LATER):
        caller = holder.caller.holding(holder.caller.refresh())
        assert caller.call(method, path, body).code == "step_up_required"
        assert reply(ask(caller), holder.code()).status == 200
        assert caller.call(method, path, body).status != 403


def test_without_a_factor_the_sign_in_counts_and_then_the_password(alice: User) -> None:
    caller = signed_in(alice)
    assert caller.call("PUT", "/v1/auth/2fa/policy", {}).status == 200
    with time_machine.travel(timezone.now() + LATER):
        caller = caller.holding(caller.refresh())
        answer = caller.call("PUT", "/v1/auth/2fa/policy", {})
        assert (answer.status, answer.body["proof"]) == (403, "password")
        path = "/v1/auth/reauthenticate"
        assert caller.post(path, {"password": "wrong password"}).code == "invalid_credentials"
        event = AuditEvent.objects.get(tag="api:session:reauthenticate")
        assert (event.outcome, event.actor_id) == ("refused", alice.pk)
        assert caller.post(path, {"password": PASSWORD}).status == 204
        assert caller.call("PUT", "/v1/auth/2fa/policy", {}).status == 200


def test_the_password_does_not_stand_for_the_factor(holder: Holder) -> None:
    caller = signed_in(holder.user)
    assert caller.post("/v1/auth/reauthenticate", {"password": PASSWORD}).status == 204
    assert caller.post("/v1/auth/2fa/backup-codes").code == "step_up_required"


def test_refresh_and_switch_never_move_the_proof(holder: Holder) -> None:
    with time_machine.travel(timezone.now() + LATER):
        caller = holder.caller
        body = {"refresh_token": caller.refresh_token, "environment": "sandbox"}
        moved = caller.holding(Caller().post("/v1/auth/switch", body))
        assert moved.get("/v1/whoami").body["aal"] == 2
        assert moved.post("/v1/auth/2fa/backup-codes").code == "step_up_required"


def test_a_backup_code_counts_as_proof(holder: Holder) -> None:
    caller = signed_in(holder.user)
    assert reply(ask(caller, "backup_code"), holder.backup_codes[0]).status == 200
    assert caller.post("/v1/auth/2fa/backup-codes").status == 200


def test_operations_that_require_a_recent_proof_ask_for_it() -> None:
    """The dangerous actions of the design that have a route; the list only grows."""
    asked = {
        f"{method} {route.path}"
        for route in api_routes()
        for method in route.methods
        if route.access_of(method).is_fresh
    }
    assert asked >= {
        "POST v1/auth/2fa/totp/setup",
        "POST v1/auth/2fa/totp/verify",
        "POST v1/auth/2fa/sms/setup",
        "POST v1/auth/2fa/sms/verify",
        "POST v1/auth/2fa/email/setup",
        "POST v1/auth/2fa/email/verify",
        "DELETE v1/auth/2fa/method/<str:method>",
        "PUT v1/auth/2fa/default",
        "POST v1/auth/2fa/backup-codes",
        "PUT v1/auth/2fa/policy",
        "DELETE v1/environments/<str:environment_id>",
        "POST v1/auth/2fa/webauthn/register",
        "POST v1/auth/2fa/webauthn/register/finish",
        "DELETE v1/auth/2fa/webauthn/credentials/<str:credential_id>",
        "POST v1/auth/password",
        "POST v1/auth/email/change",
        "POST v1/auth/oauth/<str:provider>/link",
        "DELETE v1/auth/identities/<str:identity_id>",
        "PATCH v1/members/<str:user_id>",
        "DELETE v1/members/<str:user_id>",
        "POST v1/members/<str:user_id>/factors/reset",
        "POST v1/invitations",
        "DELETE v1/invitations/<str:invitation_id>",
        "POST v1/domains",
        "GET v1/auth/recovery/questions",
        "PUT v1/auth/recovery/questions",
        "POST v1/cache/access-keys",
        "DELETE v1/cache/access-keys/<str:access_key_id>",
    }
