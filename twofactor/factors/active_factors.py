"""Active factors: their status, removal and default."""

from datetime import datetime
from typing import Any

from django.db import transaction

from accounts import notices
from accounts.models import User
from audit import trail
from common.principals import PlatformRequest, Principal
from oauth import sign_in_methods
from twofactor.audit_tags import TwoFactorTag
from twofactor.backup_codes import enrolment as backup_codes
from twofactor.errors import FactorNotAllowed, MethodNotEnabled, NoSecondFactor, RequiredByPolicy
from twofactor.factors import holdings
from twofactor.factors.contract import FactorType
from twofactor.factors.enrolments import refuse_forbidden, user_of
from twofactor.models import Factor
from twofactor.trusted_devices import devices


def status_of(principal: Principal) -> dict[str, Any]:
    """Return the published status fields."""
    user_holdings = holdings.holdings_of(principal.own_id)
    return {
        "enabled": bool(user_holdings.proper),
        "required": user_holdings.policy.mfa_required or user_holdings.must_enrol,
        "enabled_methods": user_holdings.enabled,
        "default_method": user_holdings.default_method,
        "phone_verified": "sms" in user_holdings.factors,
        "backup_codes_remaining": user_holdings.codes_left,
    }


def disable(request: PlatformRequest, principal: Principal, factor: FactorType) -> None:
    """Remove a method; removing the last proper factor also deletes the backup codes.

    Raises MethodNotEnabled (409), RequiredByPolicy (409) for the last one that satisfies the
    policy, LastLoginMethod (409) for passkeys of a user without another sign-in method.
    """
    user, method = user_of(principal), factor.name
    with transaction.atomic():
        user_holdings = holdings.holdings_of(user.pk, lock=True)
        if method not in user_holdings.factors:
            raise MethodNotEnabled
        left = [name for name in user_holdings.proper if name != method]
        counted = [name for name in left if name in user_holdings.policy.mfa_allowed_methods]
        if user_holdings.policy.mfa_required and method != "backup_codes" and not counted:
            raise RequiredByPolicy
        mine = Factor.objects.filter(user=user)
        with sign_in_methods.keep_one(user.pk):
            (mine.filter(method=method) if left else mine).delete()
        devices.delete_all(user.pk)
        trail.record_request(request, TwoFactorTag.FACTOR_DELETE, method=method)
        notices.notify(user, "factor_removed", method=factor.label)


def prefer(request: PlatformRequest, principal: Principal, method: str) -> None:
    """Make a method the default.

    Raises MethodNotEnabled (409), FactorNotAllowed (403).
    """
    refuse_forbidden(user_of(principal), method)
    with transaction.atomic():
        rows = Factor.objects.select_for_update().filter(user_id=principal.user_id)
        if not rows.filter(method=method).exists():
            raise MethodNotEnabled
        rows.exclude(method=method).update(is_default=False)
        rows.filter(method=method).update(is_default=True)
        trail.record_request(request, TwoFactorTag.FACTOR_PREFER, method=method)


def new_backup_codes(request: PlatformRequest, principal: Principal, *, now: datetime) -> list[str]:
    """Replace every earlier backup code by ten new ones.

    Raises NoSecondFactor (409) for a user without one, FactorNotAllowed (403).
    """
    user = user_of(principal)
    with transaction.atomic():
        user_holdings = holdings.holdings_of(user.pk, lock=True)
        if not user_holdings.proper:
            raise NoSecondFactor
        if "backup_codes" not in user_holdings.policy.mfa_allowed_methods:
            raise FactorNotAllowed
        codes = backup_codes.generate(user, now=now)
        trail.record_request(request, TwoFactorTag.BACKUP_CODES_CREATE)
        notices.notify(user, "backup_codes_regenerated")
    return codes


def reset(user: User) -> int:
    """Delete every factor and trusted device of a user; return the number of factors.

    For an admin's reset and for recovery, which add the audit event and notify the user.
    """
    mine = Factor.objects.filter(user=user)
    number = mine.count()
    mine.delete()
    devices.delete_all(user.pk)
    return number
