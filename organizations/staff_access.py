"""Actions of the platform's staff on accounts of all organizations."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from accounts import account_lifecycle, notices
from accounts.models import User
from accounts.sessions import sessions
from audit import trail
from audit.tags import AuditTag
from common import rate_limits
from common.admin.actions import ConfirmedAction
from common.emails import folded
from common.errors import Conflict
from organizations import created
from organizations.audit_tags import OrganizationTag
from organizations.members import event_data
from outbox.webhooks import events

BY = "platform staff"


def disable(confirmed: ConfirmedAction, user: User) -> bool:
    """Disable a user, even the last admin of an organization; every session ends.

    Raises Conflict for one's own account.
    """
    refuse_oneself(confirmed, user)
    with transaction.atomic():
        is_changed = set_active(user, is_active=False, by=BY, now=timezone.now())
        if is_changed:
            note(confirmed, OrganizationTag.ADMIN_USER_DISABLE, user)
    return is_changed


def enable(confirmed: ConfirmedAction, user: User) -> bool:
    """Enable a user who was disabled."""
    with transaction.atomic():
        is_changed = set_active(user, is_active=True, by=BY, now=timezone.now())
        if is_changed:
            note(confirmed, OrganizationTag.ADMIN_USER_ENABLE, user)
    return is_changed


def set_active(user: User, *, is_active: bool, by: str, now: datetime) -> bool:
    """Enable or disable a user, even the last admin of an organization; True if that is a change.

    Disabling ends the user's sessions, trusted devices, API keys, and open invitations. The user
    gets a mail, and the organization's webhooks an event; the caller adds the audit event in the
    same transaction. by: the name of the acting person, for the mail.
    """
    rows = User.objects.select_for_update(no_key=True)
    row = rows.get(pk=user.pk)
    if row.is_active == is_active:
        return False
    row.is_active = is_active
    row.save(update_fields=["is_active"])
    if not is_active:
        sessions.end_all_of_user(row.pk, reason="disabled", now=now)
        created.end_credentials(row, reason="creator_disabled", now=now)
        account_lifecycle.run_hooks("trust_ended", row.pk)
    notices.notify(row, "account_enabled" if is_active else "account_disabled", by=by)
    events.emit(row.organization_id, "member.changed", event_data(row))
    return True


def end_sessions(confirmed: ConfirmedAction, user: User) -> bool:
    """End every session of a user and delete the trusted devices; the password stays.

    Staff's sessions of the admin end as well; their number is not known.
    """
    with transaction.atomic():
        ended = sessions.end_all_of_user(user.pk, reason="staff", now=timezone.now())
        account_lifecycle.run_hooks("trust_ended", user.pk)
        is_change = bool(ended) or user.is_staff
        if is_change:
            note(confirmed, OrganizationTag.ADMIN_SESSION_DELETE, user, ended=ended)
    return is_change


def unlock_password(user: User) -> bool:
    """Reset the counters of wrong passwords of a user's address; True if there were any."""
    account = folded(user.email)
    of_login = rate_limits.reset("login", account)
    of_admin = rate_limits.reset("admin login", account)
    return of_login or of_admin


def note(confirmed: ConfirmedAction, tag: AuditTag, user: User, **data: object) -> None:
    """Record an action of staff on a user in the audit trail, with the reason."""
    trail.record_staff(
        confirmed.request,
        tag,
        organization_id=user.organization_id,
        member=str(user.pk),
        email=user.email,
        reason=confirmed.reason,
        **data,
    )


def refuse_oneself(confirmed: ConfirmedAction, user: User) -> None:
    """Raise Conflict if the user is the acting member of staff."""
    if user.pk == confirmed.request.user.pk:
        raise Conflict("Another member of staff has to do this to your account.")
