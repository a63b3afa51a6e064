"""An admin resets a member's factors: notified, audited, and no way into the account."""

import pytest
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEvent
from tests.cast import PASSWORD, Answer, Caller, member, signed_in
from tests.recovery.support import (
    PHONE,
    complete,
    initiate,
    log_in,
    mailed_token,
    proven,
    sent,
    verify,
    with_factor,
)
from tests.twofactor.holder import Holder, with_totp
from twofactor.models import Factor, TrustedDevice
from twofactor.trusted_devices import devices

pytestmark = pytest.mark.django_db

REASON = "Lost the phone; I called back the number we know."


def reset(caller: Caller, user: User | str, reason: str = REASON) -> Answer:
    """Ask for the reset."""
    key = user if isinstance(user, str) else user.pk
    return caller.post(f"/v1/members/{key}/factors/reset", {"reason": reason})


@pytest.fixture
def bobs(bob: User) -> Holder:
    return with_totp(bob)


def test_a_reset_deletes_the_factors_and_ends_the_sessions(alice: User, bobs: Holder) -> None:
    devices.trust(bobs.user, "Laptop", now=timezone.now())
    assert log_in(bobs.user).body["status"] == "mfa_required"
    assert reset(signed_in(alice), bobs.user).status == 204
    assert not Factor.objects.filter(user=bobs.user).exists()
    assert not TrustedDevice.objects.exists()
    assert bobs.caller.get("/v1/whoami").code == "session_revoked"
    assert log_in(bobs.user, PASSWORD).body["status"] == "authenticated"


def test_the_member_is_notified_who_reset_the_factors_and_why(alice: User, bobs: Holder) -> None:
    with_factor(bobs.user, "email", "bob@elsewhere.example")
    reset(signed_in(alice), bobs.user)
    notices = sent("factors_reset")
    assert {mail["to"] for mail in notices} == {bobs.user.email, "bob@elsewhere.example"}
    assert notices[0]["context"]["by"] == alice.email
    assert notices[0]["context"]["reason"] == REASON


def test_a_reset_is_audited_with_its_reason(alice: User, bobs: Holder) -> None:
    reset(signed_in(alice), bobs.user)
    event = AuditEvent.objects.get(tag="api:member:reset_factors")
    assert (event.actor_id, event.organization_id) == (alice.pk, alice.organization_id)
    assert event.data == {
        "member": str(bobs.user.pk),
        "email": bobs.user.email,
        "factors": 2,
        "reason": REASON,
    }


def test_a_reset_neither_reveals_nor_changes_the_password(alice: User, bobs: Holder) -> None:
    before = User.objects.get(pk=bobs.user.pk).password
    body = {"reason": REASON, "password": "chosen by the admin"}
    answer = signed_in(alice).post(f"/v1/members/{bobs.user.pk}/factors/reset", body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    answer = reset(signed_in(alice), bobs.user)
    assert answer.raw.content == b""
    assert User.objects.get(pk=bobs.user.pk).password == before


def test_an_admin_cannot_reset_their_own_factors(holder: Holder) -> None:
    answer = reset(holder.caller, holder.user)
    assert (answer.status, answer.code) == (409, "own_factors")
    assert Factor.objects.filter(user=holder.user).exists()


def test_a_reset_requires_a_recent_proof_of_the_admins_own_factor(
    holder: Holder, bobs: Holder
) -> None:
    answer = reset(signed_in(holder.user), bobs.user)
    assert (answer.status, answer.code) == (403, "step_up_required")
    assert Factor.objects.filter(user=bobs.user).exists()
    assert reset(holder.caller, bobs.user).status == 204


@pytest.mark.parametrize("role", ["operator", "reader"])
def test_only_admins_can_reset_factors(alice: User, bobs: Holder, role: str) -> None:
    other = member(alice.organization, "dora@example.com", role=role)
    answer = reset(signed_in(other), bobs.user)
    assert (answer.status, answer.code) == (403, "permission_denied")


def test_members_of_another_organization_and_unknown_members_are_not_found(
    alice: User, charlie: User
) -> None:
    with_factor(charlie, "sms", PHONE)
    caller = signed_in(alice)
    for user in (charlie, "00000000-0000-7000-8000-000000000000", "nobody"):
        answer = reset(caller, user)
        assert (answer.status, answer.code) == (404, "not_found")
    assert Factor.objects.filter(user=charlie).exists()
    assert sent("factors_reset") == []


def test_a_reset_requires_a_reason(alice: User, bobs: Holder) -> None:
    for reason in ("", "  ", "x" * 301):
        assert reset(signed_in(alice), bobs.user, reason).code == "invalid_request"
    assert Factor.objects.filter(user=bobs.user).exists()


def test_a_member_without_factors_can_be_reset(alice: User, bob: User) -> None:
    caller = signed_in(bob)
    assert reset(signed_in(alice), bob).status == 204
    assert caller.get("/v1/whoami").code == "session_revoked"


def test_a_pending_recovery_does_not_profit_from_a_reset(alice: User, bobs: Holder) -> None:
    started, token = initiate(bobs.user), mailed_token(to=bobs.user.email)
    verified = proven(bobs.user)
    reset(signed_in(alice), bobs.user)
    assert verify(started, token).code == "recovery_gone"
    assert complete(verified).code == "recovery_gone"
