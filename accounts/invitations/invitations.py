"""Invitations: a place in an organization, offered to a mailbox, taken with what was mailed there.

Only the mailbox's owner learns whether an address has an account: the admin's answer, the
row and the mail's way are the same in both cases, and only the mail says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from accounts import mailed_secrets, rate_limits
from accounts.delivery import outbox
from accounts.delivery.links import console_link
from accounts.errors import (
    InvitationGone,
    InvitationNotFound,
    InvitingTooOften,
    SessionRevoked,
    TooManyInvitations,
)
from accounts.models import Invitation, User
from accounts.signin import credentials
from environments.models import Organization

LIFE: Final = timedelta(days=7)
DAY: Final = timedelta(days=1)
# To one address from one organization: enough for mails that went astray, no nuisance.
PER_ADDRESS_A_DAY: Final = 5
# Ended ones stay listed this long.
KEEP_ENDED: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Offer:
    """What is offered to whom. email: as it is kept (signup.canonical)."""

    email: str
    roles: Sequence[str]
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Inviter:
    """Who invites: a user, if one does, and the name in the mail ('' for none)."""

    user_id: UUID | None = None
    name: str = ""


def check_rate_limit(organization_id: int, email: str, *, now: datetime) -> None:
    """Count one invitation against the daily caps; an operator's are not counted.

    Raises InvitingTooOften (429).
    """
    caps = (
        (f"{organization_id} {email.casefold()}", PER_ADDRESS_A_DAY),
        (str(organization_id), settings.ACCOUNTS.invitations_per_day),
    )
    for subject, cap in caps:
        rate_limits.enforce(
            "invitation", subject, limit=cap, window=DAY, error=InvitingTooOften, now=now
        )


def invite(organization_id: int, offer: Offer, *, inviter: Inviter, now: datetime) -> Invitation:
    """Offer a place; an open invitation of the address is replaced, its token void.

    Raises TooManyInvitations (409), SessionRevoked (401) for a host who was disabled or demoted
    meanwhile.
    """
    with transaction.atomic():
        organization = _lock_organization(organization_id)
        _lock_host(organization_id, host)
        _open_ones(organization_id).filter(email__iexact=offer.email).update(revoked_at=now)
        _make_room(organization_id, now)
        is_taken = credentials.find(offer.email) is not None
        invitation, token = _save(organization, offer, inviter, now)
        if is_taken:
            _mail_conflict(invitation, inviter)
        else:
            _mail(invitation, token, inviter)
    return invitation


def invite_member(member: User, *, inviter: Inviter, now: datetime) -> Invitation:
    """Offer an account that was made beforehand, without a password, to its owner."""
    offer = Offer(member.email, member.roles, member.labels)
    with transaction.atomic():
        organization = _lock_organization(member.organization_id)
        _open_ones(organization.pk).filter(email__iexact=offer.email).update(revoked_at=now)
        invitation, token = _save(organization, offer, inviter, now, member=member)
        _mail(invitation, token, inviter)
    return invitation


def _lock_organization(organization_id: int) -> Organization:
    # Two invitations of one address at once take turns, and so the cap holds, too.
    return Organization.objects.select_for_update(no_key=True).get(pk=organization_id)


def _lock_host(organization_id: int, host: Host) -> None:
    """Wait for a change of who invites: it ends the invitations that it finds, and no later one."""
    if host.user_id is None:
        return
    users = User.scoped.within_organization(organization_id).select_for_update(no_key=True)
    user: User | None = users.filter(pk=host.user_id, is_active=True).first()
    if user is None or "admin" not in (*user.roles, *user.derived_roles):
        raise SessionRevoked


def _make_room(organization_id: int, now: datetime) -> None:
    pending = _open_ones(organization_id).filter(expires_at__gt=now)
    if pending.count() >= settings.ACCOUNTS.open_invitations:
        raise TooManyInvitations("Revoke some, or wait until they are accepted.")


def _open_ones(organization_id: int) -> QuerySet[Invitation]:
    return Invitation.scoped.within_organization(organization_id).filter(
        accepted_at=None, revoked_at=None
    )


def _save(
    organization: Organization,
    offer: Offer,
    inviter: Inviter,
    now: datetime,
    *,
    member: User | None = None,
) -> tuple[Invitation, str]:
    token = mailed_secrets.new_token()
    invitation = Invitation(
        organization=organization,
        email=offer.email,
        roles=list(offer.roles),
        labels=list(offer.labels),
        digest=digest(token),
        member=member,
        invited_by_id=inviter.user_id,
        created_at=now,
        expires_at=now + LIFE,
    )
    invitation.save(force_insert=True)
    return invitation, token


def digest(token: str) -> str:
    """Return what is kept of a token."""
    return mailed_secrets.token_digest("invitation", token)


def _mail(invitation: Invitation, token: str, inviter: Inviter) -> None:
    outbox.send_mail(
        invitation.email,
        "invitation",
        {
            "organization": invitation.organization.name,
            "by": inviter.name,
            "days": LIFE.days,
            "link": console_link("invitation", token=token),
        },
        organization_id=invitation.organization_id,
        expires_at=invitation.expires_at,
    )


def _mail_conflict(invitation: Invitation, inviter: Inviter) -> None:
    outbox.send_mail(
        invitation.email,
        "invitation_conflict",
        {
            "organization": invitation.organization.name,
            "by": inviter.name,
            "link": console_link("sign-in"),
        },
        organization_id=invitation.organization_id,
        expires_at=invitation.expires_at,
    )


def open_for(token: str, *, now: datetime, lock: bool = False) -> Invitation:
    """Return the invitation that a token may still take, with its organization.

    lock: hold it until the transaction ends.
    Raises InvitationGone (410) for unknown, expired, accepted, revoked and replaced alike.
    """
    rows = Invitation.unscoped.select_related("organization", "invited_by")  # unscoped: by a token
    if lock:
        rows = rows.select_for_update(of=("self",))
    found: Invitation | None = rows.filter(digest=digest(token)).first()
    if found is None or found.state(now) != "pending":
        raise InvitationGone
    return found


def revoke(organization_id: int, invitation_id: str, *, now: datetime) -> Invitation:
    """End an invitation that was not accepted; its token is void at once.

    Call inside a transaction. Raises InvitationNotFound (404).
    """
    try:
        key = UUID(invitation_id)
    except ValueError:
        raise InvitationNotFound from None
    found: Invitation | None = (
        _open_ones(organization_id).select_for_update().filter(pk=key).first()
    )
    if found is None:
        raise InvitationNotFound
    found.revoked_at = now
    found.save(update_fields=["revoked_at"])
    return found


def revoke_created_by(inviter: User, *, now: datetime) -> int:
    """End the open invitations that a user made; return how many there were."""
    return _open_ones(inviter.organization_id).filter(invited_by=inviter).update(revoked_at=now)


def delete_old(*, now: datetime) -> int:
    """Delete invitations that ended long ago; return their number."""
    old = Invitation.unscoped.filter(expires_at__lt=now - KEEP_ENDED)  # unscoped: housekeeping
    deleted: int = old.delete()[0]
    return deleted
