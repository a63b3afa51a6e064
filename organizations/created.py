"""What a member created for the organization: what ends with the admin role, and what stays.

Credentials end with their creator's right to create them; what others depend on stays.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from accounts import account_lifecycle
from accounts.api_keys import api_keys
from accounts.models import ApiKey, User
from common.scoping import across_environments
from organizations import invitations
from organizations.models import Invitation
from outbox.models import WebhookEndpoint

LISTED_IN_MAIL: Final = 20
KINDS: Final = {
    "access_key": "access key",
    "api_key": "API key",
    "invitation": "invitation of",
    "node": "node",
    "origin": "origin",
    "webhook": "webhook",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One thing. environment: its id, None for what belongs to the whole organization."""

    kind: str
    id: str
    name: str
    environment: str | None = None


@dataclass(frozen=True, slots=True)
class Created:
    """What ends when its creator is no admin any more, and what stays.

    is_complete: False while the cache does not answer, so that its part is missing here. Access
    keys then end when it answers again.
    """

    ends: Sequence[Item] = field(default=())
    stays: Sequence[Item] = field(default=())
    is_complete: bool = True


NOTHING: Final = Created()
# What a member created in higher apps, which append theirs in ``AppConfig.ready()``. They may call
# the cache, so no transaction.
SOURCES: Final[list[Callable[[User], Created]]] = []


def of_admin(member: User, *, now: datetime) -> Created:
    """Return what a member created and what is still in force; calls the cache, so no transaction.

    Nothing for a member who is no admin: all of it has ended, or is managed by the admins.
    """
    if not is_admin(member):
        return NOTHING
    parts = [_own(member, now), *(source(member) for source in SOURCES)]
    return Created(
        [item for part in parts for item in part.ends],
        [item for part in parts for item in part.stays],
        all(part.is_complete for part in parts),
    )


def is_admin(member: User) -> bool:
    """True if the member acts as admin, by a given or a derived role."""
    return member.is_active and "admin" in (*member.roles, *member.derived_roles)


def end_credentials(member: User, *, reason: str, now: datetime) -> None:
    """End what only an admin may create: open invitations, API keys and S3 access keys.

    Call in the transaction in which the member stops being an admin. reason: of ``ApiKey``.
    """
    # A former admin must not return with an invitation that they have sent themselves.
    invitations.revoke_created_by(member, now=now)
    api_keys.revoke_created_by(member, reason=reason, now=now)
    account_lifecycle.run_hooks("admin_ended", member.pk)


def summary(created: Created) -> str:
    """Return sentences about it for a mail; '' if there is nothing."""
    parts = (
        ("This has ended with it", created.ends),
        ("This stays with the organization", created.stays),
    )
    said = [f"{start}: {_listed(items)}." for start, items in parts if items]
    if not created.is_complete:
        said.append("S3 access keys that you created end as well.")
    return " ".join(said)


def _own(member: User, now: datetime) -> Created:
    keys = across_environments(ApiKey).filter(
        organization_id=member.organization_id, creator=member, revoked_at=None, expires_at__gt=now
    )
    invited = Invitation.objects.filter(
        organization_id=member.organization_id,
        invited_by=member,
        accepted_at=None,
        revoked_at=None,
        expires_at__gt=now,
    )
    hooks = WebhookEndpoint.objects.filter(
        organization_id=member.organization_id, creator_id=member.pk
    )
    return Created(
        [
            *(
                Item("api_key", str(key.pk), key.name, key.environment.slug)
                for key in keys.select_related("environment").order_by("created_at")
            ),
            *(Item("invitation", str(each.pk), each.email) for each in invited.order_by("pk")),
        ],
        [Item("webhook", str(each.pk), each.label) for each in hooks.order_by("pk")],
    )


def _listed(items: Sequence[Item]) -> str:
    shown = [f"{KINDS[item.kind]} {item.name or item.id}" for item in items]
    more = len(shown) - LISTED_IN_MAIL
    return ", ".join(shown[:LISTED_IN_MAIL]) + (f" and {more} more" if more > 0 else "")
