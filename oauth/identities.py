"""Identities: found by the provider's own id, attached to a user, updated, removed."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from accounts import notices
from accounts.models import User
from audit import trail
from common.crypto import encrypt
from common.errors import NotFound
from common.principals import PlatformRequest, Principal
from oauth import sign_in_methods
from oauth.audit_tags import OAuthTag
from oauth.errors import IdentityTaken, LastLoginMethod
from oauth.memberships import derived_roles
from oauth.models import Identity
from oauth.providers.profile import Profile, ProviderTokens
from oauth.providers.social_core import OAuthStorage


def find(profile: Profile) -> Identity | None:
    """Return the identity of a profile, matched by provider and subject."""
    return OAuthStorage.user.get_social_auth(profile.provider, profile.subject)


def text_of(provider: str, subject: str) -> str:
    """Return an identity as a text, by which a removed member is recognized."""
    return f"{provider} {subject}"


def texts_of(user_id: UUID) -> list[str]:
    """Return the identities of a user as texts."""
    rows = Identity.objects.filter(user_id=user_id).values_list("provider", "subject")
    return [text_of(provider, subject) for provider, subject in rows]


def attach(request: PlatformRequest, user: User, profile: Profile, *, now: datetime) -> Identity:
    """Let an identity sign a user in from now on; the user's row is locked.

    The user is notified by mail. Linking an identity again changes nothing.
    Raises IdentityTaken (409) if it belongs to another user.
    """
    identity = find(profile)
    if identity is not None:
        if identity.user_id != user.pk:
            raise IdentityTaken
        note_use(identity, profile, now=now)
        return identity
    identity = Identity(
        user=user,
        organization_id=user.organization_id,
        provider=profile.provider,
        subject=profile.subject,
        # At the first sign-in only: Apple sends it once, and elsewhere changes do not matter.
        name=profile.name,
        created_at=now,
    )
    _update(identity, profile, now=now)
    try:
        with transaction.atomic():
            identity.save(force_insert=True)
    except IntegrityError as exc:
        raise IdentityTaken from exc
    trail.record_user(request, OAuthTag.IDENTITY_CREATE, user, **_about(identity))
    notices.notify(user, "identity_linked", provider=identity.get_provider_display())
    derived_roles.update(request, identity, profile.memberships, now=now)
    return identity


def note_use(identity: Identity, profile: Profile, *, now: datetime) -> None:
    """Store what a provider sent at a sign-in; the user's row is locked."""
    _update(identity, profile, now=now)
    identity.save()
    derived_roles.update(None, identity, profile.memberships, now=now)


def _update(identity: Identity, profile: Profile, *, now: datetime) -> None:
    identity.email = profile.email
    identity.is_private_email = profile.is_private_email
    identity.username = profile.username
    identity.last_used_at = now
    if profile.credentials is not None and derived_roles.mappings_of(identity):
        identity.credentials = encrypt_credentials(profile.credentials)


def encrypt_credentials(credentials: ProviderTokens) -> str:
    """Return a provider's tokens as the row stores them."""
    return encrypt(
        json.dumps([credentials.access_token, credentials.refresh_token, credentials.expires_at])
    )


def remove(
    request: PlatformRequest, principal: Principal, identity_id: str, *, now: datetime
) -> None:
    """Unlink one of the caller's identities and remove the roles derived from it.

    Raises NotFound (404), LastLoginMethod (409).
    """
    with transaction.atomic():
        user = User.locked(principal.own_id)
        identity = _mine(user, identity_id)
        identity.delete()
        if not sign_in_methods.can_sign_in(user):
            raise LastLoginMethod
        trail.record_request(request, OAuthTag.IDENTITY_DELETE, **_about(identity))
        notices.notify(user, "identity_unlinked", provider=identity.get_provider_display())
        derived_roles.recompute(request, user, reason=identity.provider, now=now)


def _mine(user: User, identity_id: str) -> Identity:
    try:
        key = UUID(identity_id)
    except ValueError:
        raise NotFound from None
    mine = Identity.objects.filter(organization_id=user.organization_id)
    found: Identity | None = mine.filter(pk=key, user=user).first()
    if found is None:
        raise NotFound
    return found


def _about(identity: Identity) -> dict[str, Any]:
    return {
        "identity": str(identity.pk),
        "provider": identity.provider,
        "subject": identity.subject,
    }
