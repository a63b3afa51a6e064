"""Accepting an invitation; like every sign-in it ends in ``signin.finish``."""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts import notices, passwords
from accounts.errors import EmailTaken, TooManyAttempts
from accounts.models import User
from accounts.reclaim import address_release
from accounts.sessions.sessions import SessionTokens
from accounts.signin import signin, signup
from accounts.signin.signin import SignInAttempt, SignInMethod, StageResponse
from accounts.signup_links import links
from audit import trail
from common import rate_limits
from common.emails import folded
from common.principals import PlatformRequest
from common.web.addresses import client_address, subscriber_network
from environments import environments
from organizations import invitations
from organizations.audit_tags import OrganizationTag
from organizations.errors import InvitationGone
from organizations.models import Invitation

WINDOW: Final = timedelta(hours=1)


def preview(request: PlatformRequest, token: str, *, now: datetime) -> Invitation:
    """Return the invitation of a token, without using the token.

    Raises InvitationGone (410), TooManyAttempts (429).
    """
    _check_rate_limit(client_address(request), now)
    return invitations.open_for(token, now=now)


def accept(
    request: PlatformRequest, token: str, password: str, *, now: datetime
) -> SessionTokens | StageResponse:
    """Accept the invitation: create the account, whose address the mailed token has verified.

    Another account that has not verified the address loses it.
    Two concurrent calls create one account. Raises InvitationGone (410), InvalidRequest (400) for a
    weak password, EmailTaken (409) if another account has verified the address by now,
    TooManyAttempts (429).
    """
    invitation = preview(request, token, now=now)
    context = (invitation.email, invitation.organization.name, settings.SERVICE_NAME)
    passwords.validate(password, context=context)
    # Before taking locks, because hashing is slow.
    encoded = passwords.hash_password(password)
    try:
        with transaction.atomic():
            invitation = invitations.open_for(token, now=now, lock=True)
            user, is_moved = _activate_member(invitation, encoded, now)
            note_accepted(request, invitation, user, now=now)
            environment = environments.find(user.organization_id, "live")
            attempt = SignInAttempt(
                user, environment, method=SignInMethod.INVITATION, amr=["pwd"], now=now
            )
            if is_moved:
                address_release.note_move(attempt)
            return signin.finish(request, attempt)
    except IntegrityError as exc:
        # The unique index: the address was registered, or another invitation accepted,
        # concurrently.
        raise EmailTaken from exc


def open_to(email: str, *, now: datetime) -> list[Invitation]:
    """Return the invitations that a verified address may accept, locked, those first sent first.

    Call inside a transaction.
    """
    rows = Invitation.objects.filter(email__iexact=email, accepted_at=None, revoked_at=None)
    rows = rows.filter(expires_at__gt=now, organization__deletion_began_at=None)
    locked = rows.select_for_update(of=("self",)).select_related("organization", "invited_by")
    return [each for each in locked.order_by("pk") if folded(each.email) == folded(email)]


def note_accepted(
    request: PlatformRequest, invitation: Invitation, user: User, *, now: datetime
) -> None:
    """Mark an invitation, which is locked, as accepted by its new member."""
    invitation.accepted_at = now
    invitation.save(update_fields=["accepted_at"])
    trail.record_user(
        request,
        OrganizationTag.INVITATION_ACCEPT,
        user,
        invitation=str(invitation.pk),
        roles=user.roles,
    )


def _check_rate_limit(address: str, now: datetime) -> None:
    network = subscriber_network(address)
    limit = links.TRIES_PER_ADDRESS
    rate_limits.enforce(
        "invitation try", network, limit=limit, window=WINDOW, error=TooManyAttempts, now=now
    )


def _activate_member(invitation: Invitation, encoded: str, now: datetime) -> tuple[User, bool]:
    """Return the member, and whether another account lost the address."""
    holder = address_release.lock_holder(invitation.email)
    if invitation.member_id is not None or _is_of_same_organization(holder, invitation):
        return _claim_prepared_account(invitation, holder, encoded, now), False
    is_moved = address_release.take(invitation.email, now=now)
    user = signup.add_user(
        invitation.organization, invitation.email, encoded, roles=invitation.roles
    )
    user.labels, user.email_verified_at = invitation.labels, now
    user.save(update_fields=["labels", "email_verified_at"])
    return user, is_moved


def _is_of_same_organization(holder: User | None, invitation: Invitation) -> bool:
    """True for a member that an operator prepared and an admin then invited as well."""
    if holder is None or holder.organization_id != invitation.organization_id:
        return False
    return address_release.is_prepared(holder)


def _claim_prepared_account(
    invitation: Invitation, holder: User | None, encoded: str, now: datetime
) -> User:
    """Set the password of an account that was created in advance and is not in use yet."""
    is_other = invitation.member_id is not None and invitation.member_id != (holder and holder.pk)
    if holder is None or is_other or not address_release.is_prepared(holder):
        raise InvitationGone
    if invitation.member_id is None:
        holder.roles, holder.labels = invitation.roles, invitation.labels
    holder.password, holder.email_verified_at = encoded, now
    holder.save(update_fields=["password", "email_verified_at", "roles", "labels"])
    notices.notify(holder, "password_changed")
    return holder
