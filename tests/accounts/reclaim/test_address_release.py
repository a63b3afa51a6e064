"""An unverified account: its data stays, its address goes to the mailbox.

From both sides. The victim owns the mailbox and proves it; the holder has the account with the
factor, who may be an attacker or a person who mistyped an address.
"""

from datetime import datetime, timedelta

import pytest
import time_machine
from django.test import RequestFactory
from django.utils import timezone

from accounts import tasks
from accounts.models import MailboxProof, Session, User
from accounts.reclaim import address_release
from audit.models import AuditEvent
from environments.models import Environment, Organization
from tests import inbox
from tests.accounts.profile.support import begin_change, mailed_code, signed_up, user_of, verify
from tests.cast import PASSWORD, Answer, Caller, member, signed_in, with_proven_address
from tests.organizations.support import accept, invited
from tests.parallel import at_once
from tests.recovery.support import challenge, complete, initiate, mailed_token, proven
from tests.recovery.support import verify as verify_recovery
from tests.twofactor.holder import Holder, ask, reply, with_totp
from twofactor.models import Factor

pytestmark = pytest.mark.django_db
VICTIM = "victim@example.com"
OTHER = "other@example.com"
NEW_PASSWORD = "only the victim knows"


@pytest.fixture
def holder() -> Holder:
    """Return who signed up with the victim's address and switched TOTP on."""
    signed_up(VICTIM)
    return with_totp(user_of(VICTIM))


def log_in(email: str = VICTIM, password: str = NEW_PASSWORD) -> Answer:
    return Caller().post("/v1/auth/login", {"email": email, "password": password})


def take_address(user: User) -> Answer:
    return complete(proven(user), NEW_PASSWORD, new_account=True)


def stepped_up(holder: Holder) -> Caller:
    """Return the holder's session after a fresh proof of the factor."""
    Factor.objects.filter(user=holder.user, method="totp").update(last_step=0)
    assert reply(ask(holder.caller), holder.code()).status == 200
    return holder.caller


def test_the_owner_of_the_mailbox_gets_a_new_account_with_the_address(holder: Holder) -> None:
    verified = proven(holder.user)
    assert verified.body["new_account_offered"] is True
    refused = complete(verified, NEW_PASSWORD)
    assert (refused.status, refused.code) == (403, "recovery_challenge_required")
    assert refused.body["new_account_offered"] is True
    assert complete(verified, NEW_PASSWORD, new_account=True).status == 204
    answer = log_in()
    assert answer.body["status"] == "authenticated"
    who = Caller().holding(answer).get("/v1/whoami").body
    assert (who["email"], who["email_verified"], who["roles"]) == (VICTIM, True, ["admin"])
    assert who["user_id"] != str(holder.user.pk)
    assert who["org_id"] != holder.user.organization_id
    assert inbox.notices_to(VICTIM)[-1] == "recovery_completed"


def test_the_account_with_the_factor_keeps_its_data_and_factors(holder: Holder) -> None:
    holder.caller.post("/v1/environments", {"id": "stage"})
    factors = set(Factor.objects.filter(user=holder.user).values_list("pk", "secret"))
    before = User.objects.get(pk=holder.user.pk)
    assert take_address(holder.user).status == 204
    kept = User.objects.get(pk=holder.user.pk)
    assert (kept.email, kept.email_verified_at) == ("", None)
    for field in ("password", "roles", "is_active", "organization_id"):
        assert getattr(kept, field) == getattr(before, field), field
    assert set(Factor.objects.filter(user=kept).values_list("pk", "secret")) == factors
    # The owner of the mailbox sees nothing of the old organization.
    owner = Caller().holding(log_in())
    names = [row["id"] for row in owner.get("/v1/environments").body["results"]]
    assert names == ["live", "sandbox"]


def test_the_old_password_opens_neither_account(holder: Holder) -> None:
    take_address(holder.user)
    assert log_in(password=PASSWORD).code == "invalid_credentials"
    assert log_in(email="", password=PASSWORD).status in {400, 401}


def test_sessions_without_an_address_may_only_give_and_prove_another(holder: Holder) -> None:
    take_address(holder.user)
    caller = holder.caller
    for path in ("/v1/whoami", "/v1/environments", "/v1/auth/sessions", "/v1/members"):
        answer = caller.get(path)
        assert (answer.status, answer.code) == (403, "email_required"), path
    assert caller.post("/v1/sql", {"query": "SELECT 1"}).code == "email_required"
    assert caller.call("DELETE", "/v1/auth/2fa/method/totp").code == "email_required"
    assert caller.get("/v1/auth/email").body["email"] is None
    assert caller.post("/v1/auth/email/resend").code == "email_change_gone"
    stepped_up(holder)
    assert begin_change(caller, OTHER).status == 202
    assert verify(caller, mailed_code(OTHER)).body["email"] == OTHER
    who = caller.get("/v1/whoami").body
    assert (who["user_id"], who["email"]) == (str(holder.user.pk), OTHER)
    # With its address the account signs in again, under its old password and factor.
    assert log_in(OTHER, PASSWORD).body["status"] == "mfa_required"
    assert User.objects.get(pk=holder.user.pk).address_released_at is None


def test_without_a_factor_the_password_proves_who_gives_another_address() -> None:
    stranger = signed_up(VICTIM)
    user = user_of(VICTIM)
    assert complete(proven(user), NEW_PASSWORD).status == 204
    with time_machine.travel(timezone.now() + timedelta(minutes=16)):
        renewed = stranger.holding(stranger.refresh())
        answer = begin_change(renewed, OTHER)
        assert (answer.status, answer.code) == (403, "step_up_required")
        for password in ("a guess", NEW_PASSWORD):
            guessed = renewed.post("/v1/auth/reauthenticate", {"password": password})
            assert guessed.code == "invalid_credentials"
        again = renewed.post("/v1/auth/reauthenticate", {"password": PASSWORD})
        assert again.status == 204
        assert begin_change(renewed, OTHER).status == 202
        assert verify(renewed, mailed_code(OTHER)).body["email"] == OTHER
        assert renewed.get("/v1/whoami").body["user_id"] == str(user.pk)


def test_another_address_requires_a_recent_proof_of_the_factor(holder: Holder) -> None:
    take_address(holder.user)
    with time_machine.travel(timezone.now() + timedelta(minutes=16)):
        renewed = holder.caller.holding(holder.caller.refresh())
        answer = begin_change(renewed, OTHER)
    assert (answer.status, answer.code) == (403, "step_up_required")


def test_the_address_cannot_be_taken_back(holder: Holder) -> None:
    code = mailed_code(VICTIM)
    take_address(holder.user)
    assert verify(holder.caller, code).code == "email_code_gone"
    stepped_up(holder)
    # The same answer as for a free address; only the mailbox learns it.
    assert begin_change(holder.caller, VICTIM).status == 202
    assert inbox.notices_to(VICTIM)[-1] == "email_change_conflict"
    assert not MailboxProof.objects.filter(attempts_left=0).exists()
    assert user_of(VICTIM).pk != holder.user.pk


def test_a_pending_change_of_address_ends(holder: Holder) -> None:
    begin_change(stepped_up(holder), OTHER)
    code = mailed_code(OTHER)
    take_address(holder.user)
    assert verify(holder.caller, code).code == "email_code_gone"


def test_recoveries_of_the_old_account_end(holder: Holder) -> None:
    second_started, second_token = initiate(holder.user), mailed_token(to=VICTIM)
    third = proven(holder.user)
    assert take_address(holder.user).status == 204
    assert verify_recovery(second_started, second_token).code == "recovery_gone"
    assert complete(third, "yet another password", new_account=True).code == "recovery_gone"
    assert log_in().body["status"] == "authenticated"


def test_a_reset_token_opens_one_new_account(holder: Holder) -> None:
    verified = proven(holder.user)
    assert complete(verified, NEW_PASSWORD, new_account=True).status == 204
    again = complete(verified, "yet another password", new_account=True)
    assert (again.status, again.code) == (410, "recovery_gone")


def test_a_user_who_proves_mailbox_and_factor_keeps_the_account(holder: Holder) -> None:
    verified = proven(holder.user)
    begun = challenge(verified)
    proof = {"challenge_id": begun.body["challenge_id"], "code": holder.code()}
    assert complete(verified, NEW_PASSWORD, **proof).status == 204
    assert user_of(VICTIM).pk == holder.user.pk
    assert user_of(VICTIM).email_verified_at is not None
    assert User.objects.count() == 1


def test_the_code_of_the_e_mail_factor_verifies_the_address_too() -> None:
    caller = signed_up(VICTIM)
    begun = caller.post("/v1/auth/2fa/email/setup")
    assert caller.get("/v1/whoami").body["email_verified"] is False
    body = {"verification_id": begun.body["verification_id"], "code": inbox.email_code()}
    assert caller.post("/v1/auth/2fa/email/verify", body).status == 200
    assert caller.get("/v1/whoami").body["email_verified"] is True
    assert AuditEvent.objects.filter(tag="api:email:verify").exists()
    assert proven(user_of(VICTIM)).body["new_account_offered"] is False


def test_a_verified_address_never_moves(holder: Holder) -> None:
    verify(holder.caller, mailed_code(VICTIM))
    verified = proven(user_of(VICTIM))
    assert verified.body["new_account_offered"] is False
    answer = complete(verified, NEW_PASSWORD, new_account=True)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "new_account")
    assert user_of(VICTIM).pk == holder.user.pk
    with pytest.raises(ValueError, match="must not be released"):
        address_release.release(user_of(VICTIM), now=timezone.now())


def test_an_address_verified_after_the_mail_was_sent_does_not_move(holder: Holder) -> None:
    verified = proven(holder.user)
    verify(holder.caller, mailed_code(VICTIM))
    assert complete(verified, NEW_PASSWORD, new_account=True).status == 400
    assert user_of(VICTIM).pk == holder.user.pk


def test_an_accepted_invitation_has_proven_the_address(alice: User) -> None:
    answer = accept(invited(alice, VICTIM))
    assert answer.status == 201
    with_totp(user_of(VICTIM))
    assert proven(user_of(VICTIM)).body["new_account_offered"] is False


def test_staff_keep_their_address(holder: Holder) -> None:
    User.objects.filter(pk=holder.user.pk).update(is_staff=True)
    assert proven(holder.user).body["new_account_offered"] is False


def test_a_lost_second_factor_moves_no_address(holder: Holder) -> None:
    verified = proven(holder.user, purpose="second_factor")
    assert verified.body["new_account_offered"] is False


def test_a_new_account_takes_a_strong_password(holder: Holder) -> None:
    verified = proven(holder.user)
    assert complete(verified, "short", new_account=True).status == 400
    assert complete(verified, NEW_PASSWORD, new_account=True).status == 204


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_verifications_open_one_account(holder: Holder) -> None:
    first, second = proven(holder.user), proven(holder.user)

    def take(verified: Answer) -> int:
        return complete(verified, NEW_PASSWORD, new_account=True).status

    statuses = at_once(
        *(lambda verified=verified: take(verified) for verified in (first, first, second, second))
    )
    assert sorted(statuses) == [204, 410, 410, 410]
    assert User.objects.count() == 2
    assert Factor.objects.filter(user=holder.user, method="totp").exists()


@pytest.mark.django_db(transaction=True)
def test_a_code_typed_while_the_address_moves_has_one_winner(holder: Holder) -> None:
    verified, code = proven(holder.user), mailed_code(VICTIM)
    moved, typed = at_once(
        lambda: complete(verified, NEW_PASSWORD, new_account=True).status,
        lambda: verify(holder.caller, code).status,
    )
    assert (moved, typed) in {(204, 410), (204, 403), (400, 200), (410, 200)}
    owner = user_of(VICTIM)
    assert owner.email_verified_at is not None
    assert (owner.pk == holder.user.pk) == (typed == 200)


def released_at(moment: datetime, holder: Holder) -> None:
    take_address(holder.user)
    User.objects.filter(pk=holder.user.pk).update(address_released_at=moment)


def test_an_account_without_an_address_is_deleted_after_30_days(holder: Holder) -> None:
    home = holder.user.organization_id
    released_at(timezone.now() - timedelta(days=29, hours=23), holder)
    tasks.forget_expired(timestamp=0)
    assert User.objects.filter(pk=holder.user.pk).exists()
    User.objects.filter(pk=holder.user.pk).update(
        address_released_at=timezone.now() - timedelta(days=30)
    )
    tasks.forget_expired(timestamp=0)
    assert not User.objects.filter(pk=holder.user.pk).exists()
    assert not Session.objects.filter(organization_id=home).exists()
    assert not Environment.objects.filter(organization_id=home, deleted_at=None).exists()
    assert log_in().body["status"] == "authenticated"


def test_the_last_admin_of_other_members_is_not_deleted(holder: Holder) -> None:
    home = Organization.objects.get(pk=holder.user.organization_id)
    colleague = member(home, "colleague@example.com", role="reader")
    released_at(timezone.now() - timedelta(days=31), holder)
    tasks.forget_expired(timestamp=0)
    assert User.objects.filter(pk=holder.user.pk).exists()
    User.objects.filter(pk=colleague.pk).update(roles=["admin"])
    with_proven_address(colleague)
    tasks.forget_expired(timestamp=0)
    assert not User.objects.filter(pk=holder.user.pk).exists()
    assert Environment.objects.filter(organization=home, deleted_at=None).count() == 2


def test_two_admins_without_an_address_do_not_keep_each_other(holder: Holder) -> None:
    home = Organization.objects.get(pk=holder.user.organization_id)
    long_ago = timezone.now() - timedelta(days=31)
    other = member(home, "other@example.com")
    User.objects.filter(pk=other.pk).update(email="", address_released_at=long_ago)
    released_at(long_ago, holder)
    tasks.forget_expired(timestamp=0)
    assert not User.objects.filter(organization=home).exists()
    assert not Environment.objects.filter(organization=home, deleted_at=None).exists()


def test_an_account_that_gives_an_address_in_time_is_kept(holder: Holder) -> None:
    take_address(holder.user)
    begin_change(stepped_up(holder), OTHER)
    verify(holder.caller, mailed_code(OTHER))
    with time_machine.travel(timezone.now() + timedelta(days=31)):
        tasks.forget_expired(timestamp=0)
    assert User.objects.filter(pk=holder.user.pk).exists()


def test_several_accounts_may_be_without_an_address(holder: Holder) -> None:
    take_address(holder.user)
    caller = signed_up(OTHER)
    second = with_totp(user_of(OTHER))
    assert take_address(second.user).status == 204
    assert User.objects.filter(email="").count() == 2
    assert caller.get("/v1/whoami").code == "email_required"


def test_an_admin_sees_and_removes_an_account_without_an_address(holder: Holder) -> None:
    home = Organization.objects.get(pk=holder.user.organization_id)
    admin = signed_in(with_proven_address(member(home, "colleague@example.com")))
    take_address(holder.user)
    path = f"/v1/members/{holder.user.pk}"
    assert admin.get(path).body["email"] is None
    assert admin.call("DELETE", path).status == 200
    assert not User.objects.filter(pk=holder.user.pk).exists()


def test_replace_needs_an_unverified_address(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(email_verified_at=timezone.now())
    request = RequestFactory().post("/")
    with pytest.raises(ValueError, match="must not be released"):
        address_release.replace(request, user_of(alice.email), "!", now=timezone.now())  # type: ignore[arg-type]  # unread
