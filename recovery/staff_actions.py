"""Staff's actions on users."""

from typing import Final

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from common.admin.actions import ConfirmedAction, StaffAction
from organizations import staff_access
from recovery import channels
from recovery.audit_tags import RecoveryTag
from recovery.steps import access_end
from twofactor.audit_tags import TwoFactorTag
from twofactor.factors import active_factors, holdings
from twofactor.models import Factor


def unlock(confirmed: ConfirmedAction, user: User) -> bool:
    """Reset the counts of wrong passwords and codes, so that the user can try again immediately."""
    with transaction.atomic():
        had_passwords, codes = forget_failures(user)
        if had_passwords or codes:
            staff_access.note(confirmed, RecoveryTag.ADMIN_USER_UNLOCK, user, factors=codes)
    return had_passwords or bool(codes)


def forget_failures(user: User) -> tuple[bool, int]:
    """Reset the counts; return if there were wrong passwords, and the factors with wrong codes."""
    had_passwords = staff_access.unlock_password(user)
    mine = Factor.objects.filter(user=user)
    return had_passwords, mine.filter(failures__gt=0).update(failures=0, blocked_until=None)


def reset_factors(confirmed: ConfirmedAction, user: User) -> bool:
    """Delete every second factor and end the sessions, like an organization's admin.

    Raises Conflict for one's own account.
    """
    staff_access.refuse_oneself(confirmed, user)
    with transaction.atomic():
        user_holdings = holdings.holdings_of(user.pk, lock=True)
        if not user_holdings.factors:
            return False
        channels.notify(
            user, user_holdings, "factors_reset", by=staff_access.BY, reason=confirmed.reason
        )
        number = active_factors.reset(user)
        access_end.end_access(user, reason="factors_reset", now=timezone.now())
        staff_access.note(confirmed, TwoFactorTag.ADMIN_MEMBER_RESET_FACTORS, user, factors=number)
    return True


USER_ACTIONS: Final = (
    StaffAction(
        "disable",
        "Disable",
        "These users are signed out everywhere and cannot sign in. They are notified by mail.",
        staff_access.disable,
        is_harmful=True,
    ),
    StaffAction(
        "enable",
        "Enable",
        "These users may sign in again. They are notified by mail.",
        staff_access.enable,
    ),
    StaffAction(
        "unlock",
        "Unlock",
        "The counts of wrong passwords and codes are reset: these users can try again.",
        unlock,
    ),
    StaffAction(
        "end_sessions",
        "End sessions",
        "These users are signed out everywhere, and their trusted devices are deleted.",
        staff_access.end_sessions,
        is_harmful=True,
    ),
    StaffAction(
        "reset_factors",
        "Reset second factors",
        "All second factors of these users are removed: prove first who asks for it. They are "
        "notified by mail and signed out everywhere. Their passwords stay.",
        reset_factors,
        is_harmful=True,
    ),
)
