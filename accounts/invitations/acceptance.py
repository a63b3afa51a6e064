"""Accepting an invitation; like every sign-in it ends in ``signin.finish``."""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts import passwords, rate_limits
from accounts.audit import audit
from accounts.audit_tags import AccountTag
from accounts.delivery import notices
from accounts.errors import EmailTaken, InvitationGone, TooManyAttempts
from accounts.invitations import invitations
from accounts.models import Invitation, User
from accounts.signin import signin, signup
from accounts.signin.signin import SessionTokens, SignInAttempt, SignInMethod, StageResponse
from environments import environments
from platform_site.lib.principals import PlatformRequest
from platform_site.lib.web.addresses import client_address, subscriber_network

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

    Two concurrent calls create one account. Raises InvitationGone (410), InvalidRequest (400) for a
    weak password, EmailTaken (409) if the address has an account by now, TooManyAttempts (429).
    """
    invitation = preview(request, token, now=now)
    context = (invitation.email, invitation.organization.name, settings.SERVICE_NAME)
    passwords.validate(password, context=context)
    # Before taking locks, because hashing is slow.
    encoded = passwords.hash_password(password)
    try:
        with transaction.atomic():
            invitation = invitations.open_for(token, now=now, lock=True)
            user = _activate_member(invitation, encoded, now)
            invitation.accepted_at = now
            invitation.save(update_fields=["accepted_at"])
            audit.record_user(
                request,
                AccountTag.INVITATION_ACCEPT,
                user,
                invitation=str(invitation.pk),
                roles=user.roles,
            )
            environment = environments.find(user.organization_id, "live")
            attempt = SignInAttempt(
                user, environment, method=SignInMethod.INVITATION, amr=["pwd"], now=now
            )
            return signin.finish(request, attempt)
    except IntegrityError as exc:
        # The unique index: the address was registered, or another invitation accepted,
        # concurrently.
        raise EmailTaken from exc


def _check_rate_limit(address: str, now: datetime) -> None:
    network = subscriber_network(address)
    limit = settings.ACCOUNTS.invitation_tries_per_address
    rate_limits.enforce(
        "invitation try", network, limit=limit, window=WINDOW, error=TooManyAttempts, now=now
    )


def _activate_member(invitation: Invitation, encoded: str, now: datetime) -> User:
    if invitation.member_id is not None:
        return _claim_prepared_account(invitation.member_id, encoded, now)
    user = signup.add_user(
        invitation.organization, invitation.email, encoded, roles=invitation.roles
    )
    user.labels, user.email_verified_at = invitation.labels, now
    user.save(update_fields=["labels", "email_verified_at"])
    return user


def _claim_prepared_account(member_id: object, encoded: str, now: datetime) -> User:
    """Set the password of an account that was created in advance and is not in use yet."""
    rows = User.unscoped.select_for_update(of=("self",))  # unscoped: the invitation's own
    user: User = rows.select_related("organization", "last_environment").get(pk=member_id)
    if user.has_usable_password() or user.email_verified_at is not None or not user.is_active:
        raise InvitationGone
    user.password, user.email_verified_at = encoded, now
    user.save(update_fields=["password", "email_verified_at"])
    notices.notify(user, "password_changed")
    return user
