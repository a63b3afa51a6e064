"""Members of an organization: changing their roles, labels and access, and removing them.

Locks are taken in one order, here and at sign-in: organization, user, sessions. Labels are free
text of the organization, limited in number and length.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from accounts import account_lifecycle, notices
from accounts.models import User
from accounts.organization_admins import able_admins
from accounts.sessions import sessions
from common.errors import InvalidRequest
from common.names import RULE, is_one_line
from common.permissions import ROLES
from environments.models import Organization
from organizations import created, invitations, removals
from organizations.errors import LastAdmin, MemberNotFound
from outbox.webhooks import events

MAX_LABELS: Final = 50
MAX_LABEL_CHARS: Final = 100


@dataclass(frozen=True, slots=True)
class MemberChanges:
    """Changes of a member; None leaves a value unchanged."""

    roles: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    disabled: bool | None = None


def find(organization_id: int, user_id: str) -> User:
    """Return a member. Raises MemberNotFound (404), also for another organization's."""
    rows = User.objects.filter(organization_id=organization_id)
    found: User | None = rows.filter(pk=_key(user_id)).first()
    if found is None:
        raise MemberNotFound
    return found


def change(
    organization_id: int,
    user_id: str,
    changes: MemberChanges,
    *,
    by: str,
    now: datetime,
    said: str = "",
    check: Callable[[User], object] | None = None,
) -> tuple[User, dict[str, Any]]:
    """Change a member; return it and the changes, as ``{field: new value}``.

    Takes effect on the member's next request. Call inside a transaction.
    by: the name of the person who makes the change, said: ``created.summary``, both for the mail to
    the member; said only if it is no admin afterwards. check: called with the locked member before
    the change, and may refuse it. Raises MemberNotFound (404), LastAdmin (409), and InvalidRequest
    (400) if the member would have no role.
    """
    _lock_organization(organization_id)
    member = _lock(organization_id, user_id)
    if check is not None:
        check(member)
    was_admin = _is_acting_admin(member)
    changed = _apply(member, changes)
    if was_admin and not _is_acting_admin(member):
        _require_an_admin(member)
    if not changed:
        return member, changed
    member.save(update_fields=["roles", "labels", "is_active"])
    has_ended = not created.is_admin(member)
    if has_ended:
        reason = "creator_demoted" if member.is_active else "creator_disabled"
        created.end_credentials(member, reason=reason, now=now)
    if changed.get("disabled"):
        sessions.end_all_of_user(member.pk, reason="disabled", now=now)
        account_lifecycle.run_hooks("trust_ended", member.pk)
    _notify(member, changed, by, said if has_ended else "")
    if {"roles", "disabled"} & changed.keys():
        events.emit(organization_id, "member.changed", event_data(member))
    return member, changed


def remove(organization_id: int, user_id: str, *, by: str, now: datetime, said: str = "") -> User:
    """Delete a member with its sessions, devices and factors; its address can be used again.

    by, said: as in ``change``; by is '' for a member who leaves. A member whom another person
    removes comes back by an invitation only, by no domain or group of a provider. Call inside a
    transaction. Raises MemberNotFound (404), LastAdmin (409).
    """
    _lock_organization(organization_id)
    # Higher layers delete their rows first, in their own lock order.
    account_lifecycle.run_hooks("user_removed", find(organization_id, user_id).pk)
    member = _lock(organization_id, user_id)
    if _is_acting_admin(member):
        _require_an_admin(member)
    if by:
        removals.remember(member, now=now)
    invitations.revoke_created_by(member, now=now)
    notices.notify(member, "account_removed", by=by, created=said)
    gone = User(pk=member.pk, email=member.email, organization_id=member.organization_id)
    member.delete()
    data = {"user_id": str(gone.pk), "email": gone.email}
    events.emit(organization_id, "member.removed", data)
    return gone


def acting_roles(member: User) -> list[str]:
    """Return the effective roles: those given by an admin and those derived from a provider."""
    return [role for role in ROLES if role in {*member.roles, *member.derived_roles}]


def event_data(member: User) -> dict[str, Any]:
    """Return a member's data for webhook events."""
    return {
        "user_id": str(member.pk),
        "email": member.email,
        "roles": acting_roles(member),
        "disabled": not member.is_active,
    }


def label_faults(labels: Sequence[str]) -> Iterator[str]:
    """Return a sentence for each error in a member's labels."""
    if len(labels) > MAX_LABELS:
        yield f"At most {MAX_LABELS} labels."
    if any(not 0 < len(label.strip()) <= MAX_LABEL_CHARS for label in labels):
        yield f"A label has 1 to {MAX_LABEL_CHARS} characters."
    if not all(is_one_line(label) for label in labels):
        yield RULE


def _key(user_id: str) -> UUID:
    try:
        return UUID(user_id)
    except ValueError:
        raise MemberNotFound from None


def _lock_organization(organization_id: int) -> None:
    # Serializes changes of admins; sign-ins and new rows do not wait for this lock.
    rows = Organization.objects.select_for_update(no_key=True)
    rows.only("pk").get(pk=organization_id)


def _lock(organization_id: int, user_id: str) -> User:
    rows = User.objects.filter(organization_id=organization_id).select_for_update(no_key=True)
    found: User | None = rows.filter(pk=_key(user_id)).first()
    if found is None:
        raise MemberNotFound
    return found


def _is_acting_admin(member: User) -> bool:
    # Only roles given by an admin: a derived role can end at any time at the provider.
    return member.is_active and "admin" in member.roles


def _require_an_admin(member: User) -> None:
    """Refuse the change if no other member could act as admin; the organization is locked.

    Raises LastAdmin.
    """
    if not able_admins(member.organization_id).exclude(pk=member.pk).exists():
        raise LastAdmin


def _apply(member: User, changes: MemberChanges) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if changes.roles is not None:
        roles = [role for role in ROLES if role in changes.roles]
        if not roles and not member.derived_roles:
            raise InvalidRequest.for_field("roles", "At least one role.", code="empty")
        if roles != member.roles:
            member.roles = changed["roles"] = roles
    if changes.labels is not None and list(changes.labels) != member.labels:
        member.labels = changed["labels"] = list(changes.labels)
    if changes.disabled is not None and member.is_active == changes.disabled:
        member.is_active = not changes.disabled
        changed["disabled"] = changes.disabled
    return changed


def _notify(member: User, changed: dict[str, Any], by: str, said: str) -> None:
    """Mail the member the changes that affect its access, which labels do not."""
    if "roles" in changed:
        roles = ", ".join(acting_roles(member))
        notices.notify(member, "roles_changed", roles=roles, by=by, created=said)
    if "disabled" in changed:
        if changed["disabled"]:
            notices.notify(member, "account_disabled", by=by, created=said)
        else:
            notices.notify(member, "account_enabled", by=by)
