"""Decide which account a verified profile signs in to: an existing one, a new one, or none.

An identity is (provider, subject). An e-mail address is compared only to tell two people apart:

- An account with a verified address stays its owner's: the owner signs in to it and links.
- An account with an unverified address may have been created by someone else in advance. Only its
  address moves: the mailbox's owner gets a new account (``accounts.reclaim.address_release``). One
  that an operator has prepared for the mailbox's owner is theirs.
- An address that the provider has not verified, or created itself (Apple's relay), matches nothing.

A new user joins the organization of a verified domain or of a mapped group. Without these a user
with an open invitation chooses: anybody can invite anybody, so that a stranger's invitation must
not decide where a person's data goes. All others get a new organization.

Source: A. Sudhodanan, A. Paverd: Pre-hijacked accounts (USENIX Security 2022).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.contrib.auth.hashers import make_password

from accounts.audit_tags import AccountTag
from accounts.errors import EmailTaken, TooManyAttempts
from accounts.models import User
from accounts.reclaim import address_release
from accounts.signin import credentials, signup
from audit import trail
from audit.tags import AuditTag
from common import rate_limits
from common.principals import PlatformRequest
from common.web.addresses import client_address, subscriber_network
from environments import environments
from environments.models import Organization
from oauth import identities
from oauth.audit_tags import OAuthTag
from oauth.errors import EmailMissing, EmailUnverified, ProviderUnavailable
from oauth.models import Domain, Identity
from oauth.providers.profile import Memberships, Profile
from organizations import invitation_acceptance, removals
from organizations.errors import InvitationGone
from organizations.invitations import end_for_member
from organizations.models import Invitation

log = structlog.get_logger(__name__)

SIGN_UP_WINDOW: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class AccountMatch:
    """The user to sign in; is_moved: another account lost the address to this one."""

    user: User
    is_moved: bool = False


@dataclass(frozen=True, slots=True)
class InvitationChoice:
    """What a new user wants: an open invitation, none (``is_made`` without id), or to be asked."""

    invitation_id: UUID | None = None
    is_made: bool = False


class InvitationUndecided(Exception):
    """A new user has open invitations, and has not chosen yet."""

    def __init__(self, invitations: Sequence[Invitation]) -> None:
        super().__init__(len(invitations))
        self.invitations = invitations


class AccountRefused(Exception):
    """A profile may not sign in to an account; the audit trail records the account."""

    def __init__(self, user: User) -> None:
        super().__init__(str(user.pk))
        self.user = user


class AccountExists(AccountRefused):
    """The address belongs to an account that has verified it, or to staff."""


class AccountDisabled(AccountRefused):
    """The account is disabled."""


@dataclass(frozen=True, slots=True)
class OrganizationMatch:
    """An organization to join, and the roles to get there."""

    organization: Organization
    roles: list[str] = field(default_factory=list)
    invitation: Invitation | None = None


def match(
    request: PlatformRequest, profile: Profile, choice: InvitationChoice, *, now: datetime
) -> AccountMatch:
    """Return the user that a verified profile signs in to; call inside a transaction.

    Raises AccountExists if it has to be linked first, AccountDisabled, InvitationUndecided,
    InvitationGone (410), EmailMissing, EmailUnverified (403), EmailTaken (409; also for an
    invitation and a profile that has an account), TooManyAttempts (429), and IntegrityError if a
    concurrent request was faster: a second call then finds what that request created.
    """
    # In this order, so that an account that the same person creates concurrently in another tab is
    # seen together with its identity, or not at all.
    local = credentials.find(profile.email)
    identity = identities.find(profile)
    if identity is not None:
        linked = _linked_user(identity, profile, now=now)
        # If it was unlinked in the meantime, the profile signs in as one that was never linked.
        if linked is None:
            return match(request, profile, choice, now=now)
        if choice.invitation_id is not None:
            raise EmailTaken
        return AccountMatch(linked)
    require_verified_email(profile)
    # Locked before the account, in the order of an invitation that is accepted by its token.
    invitations = invitation_acceptance.open_to(profile.email, now=now)
    if local is None:
        return AccountMatch(_create_user(request, profile, choice, invitations, now=now))
    if profile.is_private_email:
        raise EmailTaken
    holder = address_release.lock_holder(profile.email)
    if holder is None:
        # It has lost the address in the meantime.
        return match(request, profile, choice, now=now)
    if address_release.is_prepared(holder):
        return AccountMatch(_claim_prepared_account(request, holder, profile, invitations, now=now))
    if address_release.is_releasable(holder):
        address_release.release(holder, now=now)
        made = _create_user(request, profile, choice, invitations, now=now)
        return AccountMatch(made, is_moved=True)
    # Staff accounts are created by an operator, who knows the person.
    raise AccountExists(holder) if holder.is_active else AccountDisabled(holder)


def require_verified_email(profile: Profile) -> None:
    """Refuse a new user without a verified address. Raises EmailMissing, EmailUnverified (403)."""
    if identities.find(profile) is not None:
        return
    if not profile.email:
        raise EmailMissing
    if not profile.is_verified:
        raise EmailUnverified


def lock(user: User) -> User:
    """Return the user's current row, locked until the transaction ends."""
    rows = User.objects.select_for_update(no_key=True, of=("self",)).select_related(
        "organization", "last_environment"
    )
    found: User = rows.get(pk=user.pk)
    return found


def _linked_user(identity: Identity, profile: Profile, *, now: datetime) -> User | None:
    """Return the locked user of an identity; None if it was unlinked before the lock."""
    try:
        user = lock(identity.user)
    except User.DoesNotExist:
        return None
    current = identities.find(profile)
    if current is None or current.pk != identity.pk:
        return None
    if not user.is_active:
        raise AccountDisabled(user)
    identities.note_use(current, profile, now=now)
    return user


def _claim_prepared_account(
    request: PlatformRequest,
    user: User,
    profile: Profile,
    invitations: Sequence[Invitation],
    *,
    now: datetime,
) -> User:
    user.email_verified_at = now
    user.save(update_fields=["email_verified_at"])
    trail.record_user(request, AccountTag.EMAIL_VERIFY, user, email=user.email)
    for invitation in invitations:
        if invitation.member_id == user.pk:
            invitation_acceptance.note_accepted(request, invitation, user, now=now)
    end_for_member(user.pk)
    identities.attach(request, user, profile, now=now)
    return user


def _create_user(
    request: PlatformRequest,
    profile: Profile,
    choice: InvitationChoice,
    invitations: Sequence[Invitation],
    *,
    now: datetime,
) -> User:
    found = _organization_for(profile, choice, invitations)
    if found is None:
        _check_rate_limit(request, now)
        name = profile.name or profile.email.partition("@")[0]
        found = OrganizationMatch(environments.create_organization(name), roles=["admin"])
        tag: AuditTag = AccountTag.ORGANIZATION_CREATE
    else:
        tag = OAuthTag.MEMBER_CREATE
    # No password: recovery, which verifies the mailbox, can set one.
    user = signup.add_user(
        found.organization, signup.canonical(profile.email), make_password(None), roles=found.roles
    )
    user.email_verified_at = now
    if found.invitation is not None:
        user.labels = found.invitation.labels
    user.save(update_fields=["email_verified_at", "labels"])
    trail.record_user(request, tag, user, provider=profile.provider)
    if found.invitation is not None:
        invitation_acceptance.note_accepted(request, found.invitation, user, now=now)
    identities.attach(request, user, profile, now=now)
    return user


def _organization_for(
    profile: Profile, choice: InvitationChoice, invitations: Sequence[Invitation]
) -> OrganizationMatch | None:
    """Return the organization that an invitation, a domain or a group names; None means a new one.

    An invitation to the organization of the domain or group is accepted as well: its roles were
    given by an admin. Raises ProviderUnavailable if the provider does not answer: an organization
    created by mistake would remain; InvitationUndecided, InvitationGone (410).
    """
    if choice.invitation_id is not None:
        chosen = [each for each in invitations if each.pk == choice.invitation_id]
        if not chosen:
            raise InvitationGone("It is over, or for another address than that of the account.")
        return OrganizationMatch(chosen[0].organization, chosen[0].roles, chosen[0])
    found = _by_domain(profile) or _by_group(profile)
    if found is None:
        if invitations and not choice.is_made:
            raise InvitationUndecided(invitations)
        return None
    for invitation in invitations:
        if invitation.organization_id == found.organization.pk:
            roles = [*dict.fromkeys([*invitation.roles, *found.roles])]
            return OrganizationMatch(found.organization, roles, invitation)
    return found


def _by_domain(profile: Profile) -> OrganizationMatch | None:
    """Match the Workspace domain, which its administrators control, not the e-mail address."""
    if not profile.domain:
        return None
    proven = Domain.objects.filter(domain=profile.domain, verified_at__isnull=False)
    found: Domain | None = proven.select_related("organization").first()
    if found is None or _is_removed(found.organization_id, profile):
        return None
    return OrganizationMatch(found.organization, [found.role])


def _is_removed(organization_id: int, profile: Profile) -> bool:
    """True if an admin removed the person from the organization, and has not invited it again."""
    identity = identities.text_of(profile.provider, profile.subject)
    return removals.is_removed(organization_id, email=profile.email, identity=identity)


def _by_group(profile: Profile) -> OrganizationMatch | None:
    memberships = profile.memberships or Memberships()
    for mapping in settings.OAUTH.providers[profile.provider].mappings:
        if mapping.group in memberships.unknown:
            raise ProviderUnavailable
        if mapping.group not in memberships.held or _is_removed(mapping.organization_id, profile):
            continue
        organization = Organization.objects.filter(pk=mapping.organization_id).first()
        if organization is not None:
            # Without roles: they are derived from the membership, and end with it.
            return OrganizationMatch(organization)
        log.warning("mapped_organization_missing", organization_id=mapping.organization_id)
    return None


def _check_rate_limit(request: PlatformRequest, now: datetime) -> None:
    network = subscriber_network(client_address(request))
    limit = settings.ACCOUNTS.signups_per_hour
    rate_limits.enforce(
        "signup", network, limit=limit, window=SIGN_UP_WINDOW, error=TooManyAttempts, now=now
    )
