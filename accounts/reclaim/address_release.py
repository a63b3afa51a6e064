"""Release of an unverified address to the person who verifies its mailbox, without the account.

An account with an unverified address goes to the owner of the mailbox (account reclaim), except one
with a second factor: its owner may be another person who mistyped an address, and access to a
mailbox must not open what a second factor protects. In that case only the address is transferred.
The owner of the mailbox gets a new account in a new organization; the old account keeps its data
and factors, has no address, and its sessions may only add and verify another one. If that does not
happen, it is deleted after 30 days.

A verified address is never released, nor is the address of staff, whom an administrator knows.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.db import transaction

from accounts import account_lifecycle
from accounts.audit import audit
from accounts.audit_tags import AccountTag
from accounts.models import MailboxProof, User
from accounts.organization.admins import able_admins
from accounts.signin import signup
from accounts.webhooks import events
from environments import environments
from environments.models import Organization
from platform_site.lib.principals import PlatformRequest

KEEP: Final = timedelta(days=30)

log = structlog.get_logger(__name__)


def is_releasable(user: User) -> bool:
    """True if the address may be released to the person who verifies its mailbox."""
    return bool(user.email) and user.email_verified_at is None and not user.is_staff


def release(user: User, *, now: datetime) -> str:
    """Remove the address from an account and return it; the account and its sessions continue.

    Call inside a transaction, with the user's row locked. Pending recoveries, e-mail codes and
    changes of address end, because they are bound to the address.
    Raises ValueError for an address that is verified or belongs to staff.
    """
    if not is_releasable(user):
        raise ValueError("The address must not be released.")
    address: str = user.email
    user.email, user.address_released_at = "", now
    user.save(update_fields=["email", "address_released_at"])
    MailboxProof.unscoped.filter(pk=user.pk).delete()  # unscoped: the user's own
    # Without the request: the organization must not learn the address of the mailbox's owner.
    audit.add(
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
    return made


def delete_expired(*, now: datetime) -> int:
    """Delete the accounts that have had no address for 30 days; return their number."""
    cutoff = now - KEEP
    rows = User.unscoped.filter(address_released_at__lte=cutoff)  # unscoped: housekeeping
    found = list(rows.values_list("pk", "organization_id"))
    return sum(_delete(user_id, home, cutoff, now=now) for user_id, home in found)


def _delete(user_id: UUID, organization_id: int, cutoff: datetime, *, now: datetime) -> bool:
    with transaction.atomic():
        Organization.objects.select_for_update(no_key=True).only("pk").get(pk=organization_id)
        others = User.scoped.within_organization(organization_id).exclude(pk=user_id)
        # Other expired accounts of the organization are deleted with it.
        staying = others.exclude(address_released_at__lte=cutoff)
        if staying.exists() and not able_admins(organization_id).exists():
            # The other members could no longer be managed. The account has no address, so it can
            # wait.
            log.warning("account_without_address_is_last_admin", organization=organization_id)
            return False
        account_lifecycle.run_hooks("user_removed", user_id)
        rows = User.scoped.within_organization(organization_id).select_for_update()
        user = rows.filter(pk=user_id, address_released_at__lte=cutoff).first()
        if user is None:
            # It got an address while this waited for the locks.
            transaction.set_rollback(True)
            return False
        if not others.exists():
            environments.close_organization(organization_id, now=now)
        audit.add(
            None, AccountTag.SYSTEM_MEMBER_DELETE, organization_id=organization_id, actor=str(user)
        )
        user.delete()
        events.emit(organization_id, "member.removed", {"user_id": str(user_id), "email": ""})
    return True
