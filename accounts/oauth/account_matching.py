"""Whose account a proven identity signs in to: its own, one to be made, or nobody's.

Identity is (provider, subject). An e-mail address finds an account only to keep two people apart:

- an account whose address is proven stays its owner's: who comes has to sign in to it and link;
- one whose address nobody has proven may have been made by a stranger, waiting for the owner to
  come: all that lets the stranger in goes before the owner gets it;
- an address that the provider has not verified, or made itself (Apple's relay), finds nobody.

Source: A. Sudhodanan, A. Paverd: Pre-hijacked accounts (USENIX Security 2022).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth.hashers import make_password

from accounts import account_reclaim, limits
from accounts.audit import audit
from accounts.errors import EmailTaken, TooManyAttempts
from accounts.models import User
from accounts.oauth import identities, organization_matching
from accounts.oauth.errors import (
    EmailMissing,
    EmailUnverified,
    LinkRequired,
)
from accounts.oauth.models import Identity
from accounts.oauth.providers.profile import Profile
from accounts.signin import credentials, signup
from environments import environments
from platform_site.lib.addresses import client_address, network_of
from platform_site.lib.principals import PlatformRequest

WINDOW: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Arrived:
    """Who it is; is_reclaimed: somebody may have been in the account before its owner."""

    user: User
    is_reclaimed: bool = False


class Turned(Exception):
    """Who has arrived is turned away from an account, which the audit trail should name."""

    def __init__(self, user: User) -> None:
        super().__init__(str(user.pk))
        self.user = user


class AccountThere(Turned):
    """The address has an account whose owner has proven it."""


class AccountDisabled(Turned):
    """The account is disabled."""


def refuse_unwritable(profile: Profile) -> None:
    """Refuse a newcomer without an address that could be the account's.

    Raises EmailMissing, EmailUnverified (403).
    """
    if identities.find(profile) is not None:
        return
    if not profile.email:
        raise EmailMissing
    if not profile.is_verified:
        raise EmailUnverified


def arrive(request: PlatformRequest, profile: Profile, *, now: datetime) -> Arrived:
    """Give the user that a proven identity signs in to; call inside a transaction.

    Raises AccountThere where it has to be linked first, AccountDisabled, EmailMissing,
    EmailUnverified (403), EmailTaken (409), TooManyAttempts (429), and IntegrityError where
    somebody else was faster: then a second try finds what is there.
    """
    # In this order: the address of an account made just now by the same person in another tab is
    # seen together with its identity, or not yet.
    local = credentials.find(profile.email)
    identity = identities.find(profile)
    if identity is not None:
        return Arrived(_known(identity, profile, now=now))
    refuse_unwritable(profile)
    if local is None:
        return Arrived(_newcomer(request, profile, now=now))
    if profile.is_private_email:
        raise EmailTaken
    was_used = local.last_login is not None
    return Arrived(_owner(request, local, profile, now=now), is_reclaimed=was_used)


def _known(identity: Identity, profile: Profile, *, now: datetime) -> User:
    user = lock(identity.user)
    if not user.is_active:
        raise AccountDisabled(user)
    identities.note_use(identity, profile, now=now)
    return user


def _owner(request: PlatformRequest, local: User, profile: Profile, *, now: datetime) -> User:
    """Give an account that nobody has proven to its mailbox's owner."""
    user = lock(local)
    if not user.is_active:
        raise AccountDisabled(user)
    # Staff are made by an operator, who knows who they are.
    if user.email_verified_at is not None or user.is_staff:
        raise AccountThere(user)
    account_reclaim.strip_unproven(user, request=request, now=now)
    user = lock(user)
    identities.attach(request, user, profile, now=now)
    return user


def _newcomer(request: PlatformRequest, profile: Profile, *, now: datetime) -> User:
    home = organization_matching.organization_for(profile)
    if home is None:
        _count(request, now)
        name = profile.name or profile.email.partition("@")[0]
        home = organization_matching.Home(environments.create_organization(name), roles=["admin"])
        tag = "api:organization:create"
    else:
        tag = "api:member:create"
    # No password at all: one can be set by recovery, which proves the mailbox.
    user = signup.add_user(
        home.organization, signup.canonical(profile.email), make_password(None), roles=home.roles
    )
    user.email_verified_at = now
    user.save(update_fields=["email_verified_at"])
    audit.record_user(request, tag, user, provider=profile.provider)
    identities.attach(request, user, profile, now=now)
    return user


def _count(request: PlatformRequest, now: datetime) -> None:
    network = network_of(client_address(request))
    limit = settings.LIMIT_SIGNUPS_PER_HOUR
    wait_s = limits.take("signup", network, limit=limit, window=WINDOW, now=now)
    if wait_s:
        raise TooManyAttempts(retry_after_s=wait_s)


def lock(user: User) -> User:
    """Give a user as it is now, and hold it so until the transaction ends."""
    rows = User.unscoped.select_for_update(  # unscoped: who is signing in
        no_key=True, of=("self",)
    ).select_related("organization", "last_environment")
    found: User = rows.get(pk=user.pk)
    return found


def link_required(provider: str, link_token: str, expires_at: datetime) -> LinkRequired:
    """Give the conflict, with what links the two once its owner has signed in."""
    return LinkRequired(
        "Sign in to it, and link the two: then either way leads in.",
        extra={
            "provider": provider,
            "link_token": link_token,
            "link_expires_at": int(expires_at.timestamp()),
        },
    )
