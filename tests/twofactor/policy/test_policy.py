"""The organization's policy: set by admins, held everywhere, on sessions that live already, too."""

from datetime import timedelta
from typing import Any

import pyotp
import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from environments.models import MFA_METHODS, Organization
from tests import inbox
from tests.cast import PASSWORD, Answer, Caller, member, signed_in
from tests.twofactor.holder import Holder, ask, log_in, pending, reply, set_up

pytestmark = pytest.mark.django_db
POLICY = "/v1/auth/2fa/policy"


def put(caller: Caller, **changes: Any) -> Answer:
    return caller.call("PUT", POLICY, changes)


def enrol(caller: Caller) -> tuple[Holder, Answer]:
    begun = set_up(caller)
    assert begun.status == 200, begun.body
    holder = Holder(User(), caller, begun.body["secret"])
    body = {"secret_id": begun.body["secret_id"], "code": holder.code()}
    return holder, caller.post("/v1/auth/2fa/totp/verify", body)


def test_every_member_can_read_the_policy(bob: User) -> None:
    assert signed_in(bob).get(POLICY).body == {
        "required": False,
        "allowed_methods": list(MFA_METHODS),
        "grace_period_days": 7,
        "grace_ends_at": None,
        "recovery_questions": False,
        "updated_at": None,
        "updated_by": None,
    }


def test_only_admins_can_change_the_policy(bob: User) -> None:
    for role in ["reader", "operator"]:
        User.objects.filter(pk=bob.pk).update(roles=[role])
        assert put(signed_in(bob), required=True).code == "permission_denied"


def test_a_change_is_answered_and_audited(alice: User) -> None:
    answer = put(signed_in(alice), required=True, grace_period_days=3)
    assert answer.body["required"] is True
    assert answer.body["updated_by"] == str(alice.pk)
    assert answer.body["grace_ends_at"] == answer.body["updated_at"] + 3 * 86400
    event = AuditEvent.objects.get(tag="api:policy:update")
    assert event.data == {"required": True, "grace_period_days": 3}


def test_security_questions_are_off_until_an_admin_turns_them_on(alice: User) -> None:
    caller = signed_in(alice)
    path = "/v1/auth/recovery/questions"
    off = caller.get(path)
    assert put(caller, recovery_questions=True).body["recovery_questions"] is True
    assert caller.get(path).status == 200
    assert off.body != caller.get(path).body


@pytest.mark.parametrize(
    "changes",
    [
        {"allowed_methods": ["carrier_pigeon"]},
        {"allowed_methods": []},
        {"grace_period_days": -1},
        {"required": "perhaps"},
        {"grace": 3},
    ],
)
def test_invalid_fields_are_named(alice: User, changes: dict[str, Any]) -> None:
    assert put(signed_in(alice), **changes).code == "invalid_request"


def test_a_login_within_the_grace_period_warns(alice: User) -> None:
    put(signed_in(alice), required=True)
    warnings = log_in().body["warnings"]
    assert [warning["code"] for warning in warnings] == ["mfa_enrollment_due"]
    assert warnings[0]["deadline"] > timezone.now().timestamp()


def test_a_login_after_the_grace_period_requires_enrolment_before_a_session(alice: User) -> None:
    put(signed_in(alice), required=True)
    with time_machine.travel(timezone.now() + timedelta(days=8)):
        answer = log_in()
        assert answer.body["status"] == "mfa_enrollment_required"
        assert "access_token" not in answer.body
        caller = pending(answer)
        assert ask(caller).code == "token_invalid"
        _, done = enrol(caller)
        assert done.status == 200
        assert len(done.body["backup_codes"]) == 10
        assert done.body["environment"]["id"] == "live"
        who = Caller(done.body["access_token"]).get("/v1/whoami").body
        assert who["aal"] == 2


def test_after_the_grace_period_open_sessions_are_restricted(alice: User, bob: User) -> None:
    put(signed_in(alice), required=True)
    caller = signed_in(bob)
    assert caller.get("/v1/environments").status == 200
    with time_machine.travel(timezone.now() + timedelta(days=7, minutes=1)):
        caller = caller.holding(signed_in_again(bob))
        answer = caller.get("/v1/environments")
        assert (answer.status, answer.code) == (403, "second_factor_due")
        # What helps to get one stays open, and getting one opens the rest.
        assert caller.get("/v1/auth/2fa/status").status == 200
        _, done = enrol(caller)
        assert done.status == 200
        assert caller.get("/v1/environments").status == 200


def signed_in_again(user: User) -> Answer:
    """Refresh a session of the user's that was opened before the grace was over."""
    with time_machine.travel(timezone.now() - timedelta(minutes=5)):
        early = signed_in(user)
    return early.refresh()


def test_a_new_member_has_the_whole_grace_period(alice: User, home: Organization) -> None:
    put(signed_in(alice), required=True)
    with time_machine.travel(timezone.now() + timedelta(days=6)):
        member(home, "late@example.com", role="reader", password=PASSWORD)
    with time_machine.travel(timezone.now() + timedelta(days=8)):
        assert log_in("late@example.com").body["status"] == "authenticated"


def test_a_forbidden_method_cannot_be_set_up(alice: User, settings: Settings) -> None:
    settings.SMS_BACKEND = "file"
    caller = signed_in(alice)
    put(caller, allowed_methods=["webauthn", "backup_codes"])
    for path, body in [
        ("totp/setup", {}),
        ("email/setup", {}),
        ("sms/setup", {"phone_number": "+4915123456789"}),
    ]:
        answer = caller.post(f"/v1/auth/2fa/{path}", body)
        assert (answer.status, answer.code) == (403, "method_not_allowed_by_policy")


def begin(caller: Caller, method: str) -> tuple[str, dict[str, str]]:
    """Begin to set a method up; give where it is finished, and with what."""
    sent = {"phone_number": "+4915123456789"} if method == "sms" else {}
    begun = caller.post(f"/v1/auth/2fa/{method}/setup", sent).body
    if method == "totp":
        code = pyotp.TOTP(begun["secret"]).at(timezone.now())
        return "/v1/auth/2fa/totp/verify", {"secret_id": begun["secret_id"], "code": code}
    code = inbox.sms_code() if method == "sms" else inbox.email_code()
    body = {"verification_id": begun["verification_id"], "code": code}
    return f"/v1/auth/2fa/{method}/verify", body


@pytest.mark.parametrize("method", ["totp", "sms", "email"])
def test_an_enrolment_of_a_method_forbidden_in_the_meantime_cannot_be_finished(
    alice: User, settings: Settings, method: str
) -> None:
    settings.SMS_BACKEND = "file"
    caller = signed_in(alice)
    path, body = begin(caller, method)
    put(caller, allowed_methods=["webauthn"])
    answer = caller.post(path, body)
    assert (answer.status, answer.code) == (403, "method_not_allowed_by_policy")
    assert caller.get("/v1/auth/2fa/status").body["enabled"] is False


def test_forbidden_backup_codes_are_neither_issued_nor_accepted(holder: Holder) -> None:
    put(holder.caller, allowed_methods=["totp"])
    for answer in [
        holder.caller.post("/v1/auth/2fa/backup-codes", None),
        ask(pending(log_in()), "backup_code"),
    ]:
        assert (answer.status, answer.code) == (403, "method_not_allowed_by_policy")


def test_a_forbidden_method_is_neither_preferred_nor_offered_first(holder: Holder) -> None:
    path, body = begin(holder.caller, "email")
    assert holder.caller.post(path, body).status == 200
    assert holder.caller.get("/v1/auth/2fa/status").body["default_method"] == "totp"
    put(holder.caller, allowed_methods=["email"])
    answer = holder.caller.call("PUT", "/v1/auth/2fa/default", {"method": "totp"})
    assert (answer.status, answer.code) == (403, "method_not_allowed_by_policy")
    assert holder.caller.get("/v1/auth/2fa/status").body["default_method"] == "email"
    begun = log_in()
    assert begun.body["methods"] == [
        {"method": "email", "label": "E-mail a•••@example.com", "default": True}
    ]
    assert ask(pending(begun)).body["method"] == "email"


def test_a_forbidden_method_is_refused_where_another_is_held(holder: Holder) -> None:
    begun = holder.caller.post("/v1/auth/2fa/email/setup").body
    body = {"verification_id": begun["verification_id"], "code": inbox.email_code()}
    holder.caller.post("/v1/auth/2fa/email/verify", body)
    open_one = ask(pending(log_in()), "totp")
    put(holder.caller, allowed_methods=["email"])
    assert ask(pending(log_in()), "totp").code == "method_not_allowed_by_policy"
    # Also one that was open when the policy changed.
    assert reply(open_one, holder.code()).code == "method_not_allowed_by_policy"


def test_a_factor_that_is_no_longer_allowed_leads_to_enrolment_only(holder: Holder) -> None:
    """Neither the password alone nor the old factor opens the account; both only lead to set-up."""
    put(holder.caller, allowed_methods=["email"], required=True, grace_period_days=1)
    with time_machine.travel(timezone.now() + timedelta(days=2)):
        answer = log_in()
        assert answer.body["status"] == "mfa_required"
        done = reply(ask(pending(answer)), holder.code())
        assert done.body["status"] == "mfa_enrollment_required"
        assert "access_token" not in done.body
        caller = pending(done)
        begun = caller.post("/v1/auth/2fa/email/setup").body
        body = {"verification_id": begun["verification_id"], "code": inbox.email_code()}
        through = caller.post("/v1/auth/2fa/email/verify", body)
        assert Caller(through.body["access_token"]).get("/v1/environments").status == 200


def test_an_admin_cannot_lock_everyone_out(alice: User) -> None:
    caller = signed_in(alice)
    answer = put(caller, required=True, grace_period_days=0)
    assert (answer.status, answer.code) == (409, "policy_locks_out")
    assert put(caller, required=True, allowed_methods=["backup_codes"]).code == "policy_locks_out"
    assert caller.get(POLICY).body["required"] is False


def test_a_policy_without_grace_period_applies_immediately(holder: Holder, bob: User) -> None:
    caller = signed_in(bob)
    assert put(holder.caller, required=True, grace_period_days=0).status == 200
    assert caller.get("/v1/environments").code == "second_factor_due"
    assert holder.caller.get("/v1/environments").status == 200


def test_the_last_factor_cannot_be_removed_while_one_is_required(holder: Holder) -> None:
    put(holder.caller, required=True)
    answer = holder.caller.call("DELETE", "/v1/auth/2fa/method/totp")
    assert (answer.status, answer.code) == (409, "required_by_policy")
    assert holder.caller.call("DELETE", "/v1/auth/2fa/method/backup_codes").status == 204


def test_compliance_reports_the_callers_state(alice: User, bob: User) -> None:
    put(signed_in(alice), required=True)
    answer = signed_in(bob).get("/v1/auth/2fa/compliance")
    assert answer.body == {
        "compliant": False,
        "required": True,
        "enabled_methods": [],
        "allowed_methods": list(MFA_METHODS),
        "grace_ends_at": answer.body["grace_ends_at"],
        "days_left": 7,
        "reasons": ["no_second_factor"],
    }


def test_admins_see_the_members_that_do_not_comply(holder: Holder, bob: User) -> None:
    put(holder.caller, required=True)
    path = "/v1/auth/2fa/compliance?scope=organization"
    body = holder.caller.get(path).body
    assert (body["members"], body["compliant_members"]) == (2, 1)
    assert body["missing"] == [{"user_id": str(bob.pk), "email": "bob@example.com"}]
    assert signed_in(bob).get(path).code == "permission_denied"
    assert signed_in(bob).get("/v1/auth/2fa/compliance?scope=world").status == 400


def test_a_preview_names_who_would_be_restricted_and_saves_nothing(alice: User, bob: User) -> None:
    caller = signed_in(alice)
    enrol(caller)
    before = caller.get(POLICY).body
    answer = caller.post(f"{POLICY}/preview", {"required": True, "grace_period_days": 0})
    assert answer.status == 200
    assert answer.body["policy"]["required"] is True
    (bobs,) = answer.body["affected"]
    assert (bobs["email"], bobs["at_once"]) == (bob.email, True)
    later = caller.post(f"{POLICY}/preview", {"required": True, "grace_period_days": 5}).body
    ends = later["policy"]["grace_ends_at"]
    assert [row["restricted_from"] for row in later["affected"]] == [ends]
    assert caller.get(POLICY).body == before
    assert not AuditEvent.objects.filter(tag="api:policy:update").exists()


def test_a_preview_refuses_what_the_change_would_and_names_no_one_without_a_requirement(
    alice: User, bob: User
) -> None:
    caller = signed_in(alice)
    path = f"{POLICY}/preview"
    assert caller.post(path, {"required": True, "grace_period_days": 0}).code == "policy_locks_out"
    assert caller.post(path, {"requird": True}).code == "invalid_request"
    assert caller.post(path, {"allowed_methods": ["totp"]}).body["affected_members"] == 0
    assert signed_in(bob).post(path, {}).code == "permission_denied"
