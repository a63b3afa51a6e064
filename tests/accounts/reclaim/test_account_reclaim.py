"""Pre-hijacking: an account made with a victim's address, before the victim comes.

The attacks by their names in the literature (Sudhodanan, Paverd: Pre-hijacked accounts, USENIX
Security 2022). The victim proves the mailbox by recovery here; tests/accounts/oauth has the
providers.
"""

import pytest
from django.test import RequestFactory
from django.utils import timezone

from accounts.models import AuditEvent, Invitation, MailboxProof, Session, User
from accounts.reclaim import account_reclaim
from recovery.models import SecurityAnswer
from tests import inbox
from tests.accounts.invitations.support import accept, invited
from tests.accounts.profile.support import begin_change, mailed_code, signed_up, user_of, verify
from tests.accounts.webhooks.support import added
from tests.cast import PASSWORD, Caller, member, signed_in
from tests.recovery.support import complete, proven
from tests.twofactor.holder import with_totp
from twofactor.models import Enrolment, Factor, TrustedDevice
from twofactor.trusted_devices import devices

pytestmark = pytest.mark.django_db
VICTIM = "victim@example.com"
ATTACKERS = "attacker@evil.example"
NEW_PASSWORD = "only the victim knows"


@pytest.fixture
def co_admin() -> User:
    """Return another admin of an organization that the attacker has signed up."""
    signed_up(VICTIM)
    return member(user_of(VICTIM).organization, "dora@example.com")


def owner_comes() -> Caller:
    """Let the victim prove the mailbox and set a password of their own."""
    assert complete(proven(user_of(VICTIM)), password=NEW_PASSWORD).status == 204
    body = {"email": VICTIM, "password": NEW_PASSWORD}
    return Caller().holding(Caller().post("/v1/auth/login", body))


def test_after_a_reclaim_the_attackers_password_is_refused() -> None:
    signed_up(VICTIM)
    owner = owner_comes()
    body = {"email": VICTIM, "password": PASSWORD}
    assert Caller().post("/v1/auth/login", body).code == "invalid_credentials"
    assert owner.get("/v1/whoami").body["email_verified"] is True


def test_unexpired_session_ends() -> None:
    attacker = signed_up(VICTIM)
    body = {"refresh_token": attacker.refresh_token, "environment": "sandbox", "keep_current": True}
    second = attacker.holding(attacker.post("/v1/auth/switch", body))
    owner_comes()
    for session in (attacker, second):
        assert session.get("/v1/whoami").code == "session_revoked"
        assert session.refresh().code == "session_revoked"


def test_what_an_attacker_added_before_a_reclaim_is_removed() -> None:
    """An identifier of the attacker's own: a set-up begun, a device, an answer, an accomplice."""
    attacker = signed_up(VICTIM)
    user = user_of(VICTIM)
    attacker.post("/v1/auth/2fa/totp/setup", {})
    devices.trust(user, "Attacker's laptop", now=timezone.now())
    SecurityAnswer(
        organization_id=user.organization_id,
        user=user,
        question="dream_job",
        encoded="-",
        created_at=timezone.now(),
    ).save()
    accomplice = invited(user, "accomplice@evil.example", roles=["admin"])
    owner_comes()
    assert not Enrolment.unscoped.filter(used_at=None).exists()
    assert not TrustedDevice.unscoped.exists()
    assert not SecurityAnswer.unscoped.exists()
    assert accept(accomplice).code == "invitation_gone"


def test_events_go_no_longer_to_a_webhook_of_the_attackers(co_admin: User) -> None:
    attacker = user_of(VICTIM)
    added(attacker, "https://evil.example/", "session.new_device")
    kept = added(co_admin, "https://hooks.example.com/")
    owner = owner_comes()
    assert [row["id"] for row in owner.get("/v1/webhooks").body["results"]] == [kept["id"]]
    assert AuditEvent.objects.get(tag="api:user:strip").data["webhooks"] == 1


def test_no_user_joins_by_a_domain_that_the_attacker_claimed(co_admin: User) -> None:
    claim = {"domain": "evil.example", "role": "operator"}
    assert signed_in(user_of(VICTIM)).post("/v1/domains", claim).status == 201
    signed_in(co_admin).post("/v1/domains", {"domain": "example.com"})
    owner = owner_comes()
    assert [row["domain"] for row in owner.get("/v1/domains").body["results"]] == ["example.com"]


def test_a_deletion_that_the_attacker_requested_is_cancelled(co_admin: User) -> None:
    organization = user_of(VICTIM).organization
    body = {"name": organization.name}
    assert signed_in(user_of(VICTIM)).post("/v1/organization/deletion", body).status == 201
    owner = owner_comes()
    assert owner.get("/v1/organization").body["deletion_due_at"] is None
    assert "organization_deletion_cancelled" in inbox.notices_to(co_admin.email)
    assert AuditEvent.objects.get(tag="api:user:strip").data["deletion_cancelled"] is True


def test_a_deletion_that_another_admin_requested_goes_on(co_admin: User) -> None:
    body = {"name": co_admin.organization.name}
    assert signed_in(co_admin).post("/v1/organization/deletion", body).status == 201
    assert owner_comes().get("/v1/organization").body["deletion_due_at"] is not None


def test_unexpired_email_change_dies() -> None:
    attacker = signed_up(VICTIM)
    assert begin_change(attacker, ATTACKERS).status == 202
    code = mailed_code(ATTACKERS)
    owner = owner_comes()
    # Even the owner, led to type it, changes nothing by it.
    assert verify(owner, code).code == "email_code_gone"
    assert verify(attacker, code).code == "session_revoked"
    assert not MailboxProof.unscoped.exists()
    assert user_of(VICTIM).email == VICTIM


def test_a_victim_cannot_be_led_to_prove_the_attackers_account(charlie: User) -> None:
    """The code in the victim's mailbox counts in the attacker's session alone."""
    signed_up(VICTIM)
    code = mailed_code(VICTIM)
    assert Caller().post("/v1/auth/email/verify", {"code": code}).status == 401
    assert verify(signed_in(charlie), code).status == 410
    assert user_of(VICTIM).email_verified_at is None


def test_the_organization_and_its_data_stay_with_the_account() -> None:
    attacker = signed_up(VICTIM)
    attacker.post("/v1/environments", {"id": "stage"})
    before = user_of(VICTIM)
    owner = owner_comes()
    after = user_of(VICTIM)
    assert (after.pk, after.organization_id, after.roles) == (
        before.pk,
        before.organization_id,
        before.roles,
    )
    names = [row["id"] for row in owner.get("/v1/environments").body["results"]]
    assert "stage" in names


def test_an_account_that_was_proven_is_not_stripped() -> None:
    caller = signed_up(VICTIM)
    verify(caller, mailed_code(VICTIM))
    user = user_of(VICTIM)
    kept = invited(user, "friend@example.com")
    assert complete(proven(user), password=NEW_PASSWORD).status == 204
    assert accept(kept).status == 201
    assert not AuditEvent.objects.filter(tag="api:user:strip").exists()
    request = RequestFactory().post("/")
    with pytest.raises(ValueError, match="proven before"):
        account_reclaim.reset_unverified_account(user, request=request, now=timezone.now())  # type: ignore[arg-type]  # unread


def test_every_credential_ends_when_an_account_is_stripped(alice: User) -> None:
    invited(alice, "friend@example.com")
    holder = with_totp(alice)
    devices.trust(alice, "phone", now=timezone.now())
    caller = signed_in(alice)
    user = user_of(alice.email)
    request = RequestFactory().post("/")
    account_reclaim.reset_unverified_account(user, request=request, now=timezone.now())  # type: ignore[arg-type]  # anonymous
    after = user_of(alice.email)
    assert not after.has_usable_password()
    assert after.email_verified_at is not None
    assert caller.get("/v1/whoami").code == "session_revoked"
    assert not Session.unscoped.filter(user=alice, ended_at=None).exists()
    assert not Factor.unscoped.filter(user=alice).exists()
    assert not TrustedDevice.unscoped.exists()
    assert not Invitation.unscoped.filter(revoked_at=None).exists()
    event = AuditEvent.objects.get(tag="api:user:strip")
    assert event.data["factors"] is True
    assert holder.backup_codes[0] not in str(vars(event))


def test_a_factor_that_was_just_proven_stays(alice: User) -> None:
    """Recovery never bypasses the second factor, and never removes one immediately."""
    with_totp(alice)
    assert complete(proven(alice)).code == "recovery_challenge_required"
    assert Factor.unscoped.filter(user=alice).exists()
    assert inbox.notices_to(alice.email).count("recovery_completed") == 0
