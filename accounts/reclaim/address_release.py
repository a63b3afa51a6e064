"""Release of an unverified address to the person who proves its mailbox, without the account.

Anybody can sign up with another person's address, and leave members, keys, webhooks and data in the
organization for its owner to find (A. Sudhodanan, A. Paverd: Pre-hijacked accounts, USENIX Security
2022). The address is therefore transferred, and never the account: the owner of the mailbox gets an
account of their own. The other account keeps its data and factors, has no address, and its sessions
may only add and verify another one. If that does not happen, it is deleted after 30 days.

A verified address is never released, nor is the address of staff, whom an administrator knows. An
account that an operator has prepared, and nobody has used, waits for the owner of its mailbox.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.db import transaction

from accounts import account_lifecycle, notices
from accounts.audit_tags import AccountTag
from accounts.errors import EmailTaken
from accounts.models import MailboxProof, User
from accounts.organization_admins import able_admins
from accounts.signin import credentials, signup
from accounts.signin.signin import SignInAttempt
from audit import trail
from common.emails import folded
from common.principals import PlatformRequest
from common.scoping import unscoped, within_organization
from environments import environments
from environments.models import Organization
from outbox.webhooks import events

KEEP: Final = timedelta(days=30)

log = structlog.get_logger(__name__)


def is_releasable(user: User) -> bool:
    """True if the address may be released to the person who verifies its mailbox."""
    return bool(user.email) and user.email_verified_at is None and not user.is_staff


def is_prepared(user: User) -> bool:
    """True if an operator has created the account for the owner of the mailbox, who has not come.

    It has no password and never had a session, so that no other person has left anything in it.
    """
    is_unused = user.last_login is None and not user.has_usable_password()
    return is_unused and user.is_active and is_releasable(user)


def is_free_for(holder: User, home: Organization | None) -> bool:
    """True if an account does not keep its address from one that an operator creates in home.

    One that an operator has prepared keeps it: no other person has used the address there.
    """
    is_member = home is not None and holder.organization_id == home.pk
    is_waiting = is_prepared(holder)
    return is_releasable(holder) and not is_member and not is_waiting


@unscoped("an address has one account among all organizations")
def lock_holder(email: str) -> User | None:
    """Lock the account that has an address; None without one, or if it loses it meanwhile.

    Call inside a transaction.
    """
    found = credentials.find(email)
    if found is None:
        return None
    rows = User.objects.select_for_update(no_key=True, of=("self",)).select_related(
        "organization", "last_environment"
    )
    holder: User | None = rows.filter(pk=found.pk).first()
    return holder if holder is not None and folded(holder.email) == folded(email) else None


def take(email: str, *, taker: User | None = None, now: datetime) -> bool:
    """Release an address from the account that never verified it; True if there was one.

    Call in the transaction that gives the address to the person who has proven the mailbox.
    taker: an existing account that will have it. Raises EmailTaken (409) if the address of another
    account is verified, or belongs to staff.
    """
    holder = lock_holder(email)
    if holder is None or (taker is not None and holder.pk == taker.pk):
        return False
    if not is_releasable(holder):
        raise EmailTaken
    release(holder, now=now)
    return True


def release(user: User, *, now: datetime) -> str:
    """Remove the address from an account and return it; the account and its sessions continue.

    Call inside a transaction, with the user's row locked. Pending recoveries, e-mail codes and
    changes of address end, because they are bound to the address. S3 access keys end: the account
    must not create any more. Its API keys are refused while it has no address.
    Raises ValueError for an address that is verified or belongs to staff.
    """
    if not is_releasable(user):
        raise ValueError("The address must not be released.")
    address: str = user.email
    user.email, user.address_released_at = "", now
    user.save(update_fields=["email", "address_released_at"])
    with within_organization(user.organization_id):
        MailboxProof.objects.filter(pk=user.pk).delete()
        account_lifecycle.run_hooks("admin_ended", user.pk)
    # Without the request: the organization must not learn the address of the mailbox's owner.
    trail.add(
        None,
        AccountTag.EMAIL_RELEASE,
        organization_id=user.organization_id,
        actor_id=user.pk,
        actor=str(user),
    )
    return address


def replace(
    request: PlatformRequest, user: User, encoded_password: str, *, name: str = "", now: datetime
) -> User:
    """Release the address of an account and open a new account with it; return the new user.

    name: of the new organization; '' derives it from the address. Call inside a transaction, with
    the old user's row locked.
    """
    address = release(user, now=now)
    made = signup.create_account(request, address, encoded_password, name=name)
    made.email_verified_at = now
    made.save(update_fields=["email_verified_at"])
    notify(made)
    return made


def note_move(attempt: SignInAttempt) -> None:
    """Warn the user who signs in with a new account that another account lost the address."""
    attempt.warnings.append({"code": "address_moved"})
    notify(attempt.user)


def notify(user: User) -> None:
    """Mail the new owner of an address what became of the account that had it."""
    notices.notify(user, "address_moved", days=KEEP.days)


def delete_expired(*, now: datetime) -> int:
    """Delete the accounts that have had no address for 30 days; return their number."""
    cutoff = now - KEEP
    rows = User.objects.filter(address_released_at__lte=cutoff)
    found = list(rows.values_list("pk", "organization_id"))
    deleted = 0
    for user_id, home in found:
        with within_organization(home):
            deleted += _delete(user_id, home, cutoff, now=now)
    return deleted


def _delete(user_id: UUID, organization_id: int, cutoff: datetime, *, now: datetime) -> bool:
    with transaction.atomic():
        Organization.objects.select_for_update(no_key=True).only("pk").get(pk=organization_id)
        others = User.objects.exclude(pk=user_id)
        # Other expired accounts of the organization are deleted with it.
        staying = others.exclude(address_released_at__lte=cutoff)
        if staying.exists() and not able_admins(organization_id).exists():
            # The other members could no longer be managed. The account has no address, so it can
            # wait.
            log.warning("account_without_address_is_last_admin", organization=organization_id)
            return False
        account_lifecycle.run_hooks("user_removed", user_id)
        rows = User.objects.select_for_update()
        user = rows.filter(pk=user_id, address_released_at__lte=cutoff).first()
        if user is None:
            # It got an address while this waited for the locks.
            transaction.set_rollback(True)
            return False
        if not others.exists():
            environments.close_organization(organization_id, now=now)
        trail.add(
            None, AccountTag.SYSTEM_MEMBER_DELETE, organization_id=organization_id, actor=str(user)
        )
        user.delete()
        events.emit(organization_id, "member.removed", {"user_id": str(user_id), "email": ""})
    return True
