"""Roles derived from memberships at a provider, stored separately from those given by an admin.

``User.roles`` is set by admins and never changed here; ``User.derived_roles`` is computed from the
identities' memberships and the configured mappings, and nothing else writes it. Both are effective.
"""

from datetime import datetime

from django.conf import settings

from accounts.models import User
from audit import trail
from common.permissions import ROLES
from common.principals import PlatformRequest
from oauth.audit_tags import OAuthTag
from oauth.models import Identity
from oauth.providers.conf import RoleMapping
from oauth.providers.profile import Memberships
from organizations import created
from organizations.members import event_data
from outbox.webhooks import events


def mappings_of(identity: Identity) -> tuple[RoleMapping, ...]:
    """Return the mappings that may give an identity's user a role: those of its organization."""
    provider = settings.OAUTH.providers.get(identity.provider)
    if provider is None:
        return ()
    mine = identity.organization_id
    return tuple(row for row in provider.mappings if row.organization_id == mine)


def update(
    request: PlatformRequest | None,
    identity: Identity,
    memberships: Memberships | None,
    *,
    now: datetime,
) -> None:
    """Store a provider's memberships and derive roles; the user's row is locked.

    memberships: None if the provider was not asked, which changes nothing.
    """
    if memberships is not None:
        mine = {row.group for row in mappings_of(identity)}
        held = memberships.merged_with(identity.memberships)
        identity.memberships = [group for group in held if group in mine]
        identity.synced_at = now
        if not memberships.unknown:
            identity.confirmed_at = now
        identity.save(update_fields=["memberships", "synced_at", "confirmed_at"])
    recompute(request, identity.user, reason=identity.provider, now=now)


def recompute(request: PlatformRequest | None, user: User, *, reason: str, now: datetime) -> None:
    """Derive a user's roles again; a change takes effect on the next request, and is audited.

    reason: the provider, or another cause. The user's row is locked.
    """
    mine = Identity.objects.filter(organization_id=user.organization_id, user=user)
    held = {
        row.role
        for identity in mine
        for row in mappings_of(identity)
        if row.group in identity.memberships
    }
    derived = [role for role in ROLES if role in held]
    before = list(user.derived_roles)
    if derived == before:
        return
    user.derived_roles = derived
    user.save(update_fields=["derived_roles"])
    if "admin" in before and "admin" not in (*user.roles, *derived):
        created.end_credentials(user, reason="creator_demoted", now=now)
    events.emit(user.organization_id, "member.changed", event_data(user))
    trail.add(
        request,
        OAuthTag.SYNC_MEMBER_UPDATE,
        organization_id=user.organization_id,
        data={
            "member": str(user.pk),
            "email": user.email,
            "because": reason,
            "derived_roles": derived,
            "before": before,
        },
    )
