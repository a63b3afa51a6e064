"""Invitations to an organization, accepted with a token that is mailed to the address.

Only the mailbox's owner learns whether an address has an account: the response to the admin, the
row and the sending of a mail are the same in both cases, and only the mail's text differs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts import mailed_secrets
from accounts.errors import SessionRevoked
from accounts.models import User
from accounts.reclaim import address_release
from accounts.signin import credentials
from common import rate_limits
from common.scoping import within_organization
from environments.models import Organization
from organizations import removals
from organizations.errors import (
    AlreadyMember,
    InvitationGone,
    InvitationNotFound,
    InvitingTooOften,
    TooManyInvitations,
)
from organizations.models import Invitation
from outbox.messages import queue
from outbox.messages.templates import console_link

PER_ORGANIZATION_A_DAY: Final = 200
# Unanswered ones of one organization.
MAX_OPEN: Final = 1_000
LIFE: Final = timedelta(days=7)
DAY: Final = timedelta(days=1)
# From one organization to one address: enough to repeat lost mails, too few to be a nuisance.
PER_ADDRESS_A_DAY: Final = 5
# From all organizations to one address: anyone can create organizations.
TO_ADDRESS_A_DAY: Final = 50
# From an organization whose inviter has not verified an address: to begin with, too few for spam.
UNVERIFIED_A_DAY: Final = 10
# Ended invitations stay listed this long.
KEEP_ENDED: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Offer:
    """The content of an invitation. email: in its stored form (signup.canonical)."""

    email: str
    roles: Sequence[str]
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Inviter:
    """Who invites.

    user_id: None for an operator. name: shown in the mail; '' for none, as for an address that is
    not verified: someone else who signed up with it would invite in its owner's name.
    """

    user_id: UUID | None = None
    name: str = ""


def check_rate_limit(organization_id: int, email: str, *, is_verified: bool, now: datetime) -> None:
    """Count one invitation against the daily caps; an operator's are not counted.

    is_verified: the inviter's address is. Raises InvitingTooOften (429).
    """
    per_day = PER_ORGANIZATION_A_DAY
    # The address's own limit is checked last, so that refused invitations do not use it up.
    caps = (
        (f"{organization_id} {email.casefold()}", PER_ADDRESS_A_DAY),
        (str(organization_id), per_day if is_verified else min(per_day, UNVERIFIED_A_DAY)),
        (f"to {email.casefold()}", TO_ADDRESS_A_DAY),
    )
    for subject, cap in caps:
        rate_limits.enforce(
            "invitation", subject, limit=cap, window=DAY, error=InvitingTooOften, now=now
        )


def refuse_member(organization_id: int, email: str) -> None:
    """Raise AlreadyMember (409) for the address of a member, which could not accept an invitation.

    The organization knows its members. One that an operator has prepared accepts an invitation.
    """
    owner = credentials.find(email)
    if owner is None or owner.organization_id != organization_id:
        return
    if not address_release.is_prepared(owner):
        raise AlreadyMember


def invite(organization_id: int, offer: Offer, *, inviter: Inviter, now: datetime) -> Invitation:
    """Invite an address; an open invitation to it is replaced, and its token no longer works.

    Raises TooManyInvitations (409), SessionRevoked (401) if the inviter has just been disabled or
    is no admin any more.
    """
    with transaction.atomic():
        organization = _lock_organization(organization_id)
        _lock_inviter(organization_id, inviter)
        _open_invitations(organization_id).filter(email__iexact=offer.email).update(revoked_at=now)
        _check_limit(organization_id, now)
        removals.forget(organization_id, offer.email)
        owner = credentials.find(offer.email)
        invitation, token = _save(organization, offer, inviter, now)
        # An account that never verified the address loses it when the invitation is accepted.
        if owner is not None and not address_release.is_releasable(owner):
            _mail_conflict(invitation, inviter, owner)
        else:
            _mail(invitation, token, inviter)
    return invitation


def invite_member(member: User, *, inviter: Inviter, now: datetime) -> Invitation:
    """Invite the owner of an account that was created in advance, without a password."""
    offer = Offer(member.email, member.roles, member.labels)
    with transaction.atomic():
        organization = _lock_organization(member.organization_id)
        _open_invitations(organization.pk).filter(email__iexact=offer.email).update(revoked_at=now)
        invitation, token = _save(organization, offer, inviter, now, member=member)
        _mail(invitation, token, inviter)
    return invitation


def _lock_organization(organization_id: int) -> Organization:
    # Serializes invitations of an organization, so that the limit also holds under concurrency.
    return Organization.objects.select_for_update(no_key=True).get(pk=organization_id)


def _lock_inviter(organization_id: int, inviter: Inviter) -> None:
    """Lock the inviter: disabling or demoting a member revokes the invitations that exist then."""
    if inviter.user_id is None:
        return
    users = User.objects.filter(organization_id=organization_id).select_for_update(no_key=True)
    user: User | None = users.filter(pk=inviter.user_id, is_active=True).first()
    if user is None or "admin" not in (*user.roles, *user.derived_roles):
        raise SessionRevoked


def _check_limit(organization_id: int, now: datetime) -> None:
    pending = _open_invitations(organization_id).filter(expires_at__gt=now)
    if pending.count() >= MAX_OPEN:
        raise TooManyInvitations("Revoke some, or wait until they are accepted.")


def _open_invitations(organization_id: int) -> QuerySet[Invitation]:
    return Invitation.objects.filter(
        organization_id=organization_id, accepted_at=None, revoked_at=None
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
    """Return the digest of a token."""
    return mailed_secrets.token_digest("invitation", token)


def _mail(invitation: Invitation, token: str, inviter: Inviter) -> None:
    queue.send_mail(
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


def _mail_conflict(invitation: Invitation, inviter: Inviter, owner: User) -> None:
    queue.send_mail(
        invitation.email,
        "invitation_conflict",
        {
            "organization": invitation.organization.name,
            "by": inviter.name,
            "link": console_link("sign-in"),
        },
        # The mail prints the number of the recipient's organization, for recovery.
        organization_id=owner.organization_id,
        expires_at=invitation.expires_at,
    )


def open_for(token: str, *, now: datetime, lock: bool = False) -> Invitation:
    """Return the pending invitation of a token, with its organization.

    lock: lock the row until the transaction ends.
    Raises InvitationGone (410) if it is unknown, expired, accepted, revoked or replaced.
    """
    rows = Invitation.objects.select_related("organization", "invited_by")
    if lock:
        rows = rows.select_for_update(of=("self",))
    found: Invitation | None = rows.filter(digest=digest(token)).first()
    if found is None or found.state(now) != "pending":
        raise InvitationGone
    return found


def revoke(organization_id: int, invitation_id: str, *, now: datetime) -> Invitation:
    """Revoke an open invitation; its token no longer works.

    Call inside a transaction. Raises InvitationNotFound (404).
    """
    try:
        key = UUID(invitation_id)
    except ValueError:
        raise InvitationNotFound from None
    found: Invitation | None = (
        _open_invitations(organization_id).select_for_update().filter(pk=key).first()
    )
    if found is None:
        raise InvitationNotFound
    found.revoked_at = now
    found.save(update_fields=["revoked_at"])
    return found


def revoke_created_by(inviter: User, *, now: datetime) -> int:
    """Revoke the open invitations that a user sent; return their number."""
    return (
        _open_invitations(inviter.organization_id).filter(invited_by=inviter).update(revoked_at=now)
    )


def end_for_member(user_id: UUID) -> None:
    """End the open invitation of a member's address: it counts as accepted.

    Call it in the transaction in which the address becomes that of a member who needs none, having
    a password or a proven mailbox. The invitation of a prepared member leads in until then.
    """
    member = User.objects.get(pk=user_id)
    with within_organization(member.organization_id):
        rows = _open_invitations(member.organization_id).filter(email__iexact=member.email)
        # One that is locked is being accepted, which locks the member after it.
        keys = [row.pk for row in rows.select_for_update(skip_locked=True)]
        Invitation.objects.filter(pk__in=keys).update(accepted_at=timezone.now())


def delete_old(*, now: datetime) -> int:
    """Delete invitations that ended long ago; return their number."""
    old = Invitation.objects.filter(expires_at__lt=now - KEEP_ENDED)
    deleted: int = old.delete()[0]
    return deleted
