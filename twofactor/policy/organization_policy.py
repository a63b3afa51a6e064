"""The organization's policy on second factors: its members read it, its admins change it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from accounts.models import User
from accounts.organization_admins import able_admins
from common.principals import Principal
from environments import models
from environments.models import MFA_METHODS, Organization
from twofactor import registry
from twofactor.errors import PolicyLocksOut
from twofactor.factors.holdings import holdings_of
from twofactor.models import Factor
from twofactor.trusted_devices import devices

# Maximum members that a preview lists; it counts all of them.
PREVIEW_MEMBERS: Final = 200


def describe(organization: Organization, *, member_since: datetime | None = None) -> dict[str, Any]:
    """Return the published fields; members who join later have a later deadline."""
    ends = None
    if organization.mfa_required and organization.mfa_required_since is not None:
        ends = models.second_factor_deadline(
            organization.mfa_required_since,
            organization.mfa_grace_period_days,
            member_since=member_since or organization.mfa_required_since,
        )
    updated = organization.mfa_updated_at
    return {
        "required": organization.mfa_required,
        "allowed_methods": list(organization.mfa_allowed_methods),
        "grace_period_days": organization.mfa_grace_period_days,
        "grace_ends_at": int(ends.timestamp()) if ends else None,
        "recovery_questions": organization.recovery_questions_enabled,
        "updated_at": int(updated.timestamp()) if updated else None,
        "updated_by": organization.mfa_updated_by,
    }


def update(
    principal: Principal,
    changes: Mapping[str, Any],
    *,
    now: datetime,
    check: Callable[[Mapping[str, Any]], object],
) -> Organization:
    """Change the policy; it applies to existing sessions, and trusted devices are deleted.

    changes: of ``required``, ``allowed_methods``, ``grace_period_days``, ``recovery_questions``.
    check: called with the present policy, locked, before the change, and may refuse it.
    Raises PolicyLocksOut (409) if no admin could satisfy the new policy after its grace period.
    """
    with transaction.atomic():
        rows = Organization.objects.select_for_update()
        organization = rows.get(pk=principal.organization_id)
        check(describe(organization))
        _apply(organization, changes, now)
        organization.mfa_updated_at, organization.mfa_updated_by = now, principal.user_id
        organization.save()
        devices.delete_all_within(organization.pk)
    return organization


def preview(organization_id: int, changes: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return the effect of ``update``, without saving anything.

    Raises PolicyLocksOut (409) like ``update``.
    """
    organization = Organization.objects.get(pk=organization_id)
    _apply(organization, changes, now)
    affected = _without_allowed_factor(organization).order_by("created_at", "email")
    count = affected.count() if organization.mfa_required else 0
    listed = affected[:PREVIEW_MEMBERS] if count else []
    return {
        "policy": describe(organization),
        "affected_members": count,
        "affected": [_effect(organization, user, now) for user in listed],
        "trusted_devices": devices.count_within(organization_id),
    }


def _effect(organization: Organization, user: User, now: datetime) -> dict[str, Any]:
    """Return from when a member without an allowed factor can only set one up."""
    ends = models.second_factor_deadline(
        organization.mfa_required_since,
        organization.mfa_grace_period_days,
        member_since=user.created_at,
    )
    return {
        "user_id": user.pk,
        "email": user.email or None,
        "restricted_from": int(max(ends, now).timestamp()),
        "at_once": ends <= now,
    }


def _apply(organization: Organization, changes: Mapping[str, Any], now: datetime) -> None:
    """Set the changed fields of a policy, unsaved. Raises PolicyLocksOut."""
    was_required = organization.mfa_required
    organization.mfa_required = changes.get("required", was_required)
    wanted = changes.get("allowed_methods", organization.mfa_allowed_methods)
    organization.mfa_allowed_methods = [method for method in MFA_METHODS if method in wanted]
    organization.mfa_grace_period_days = changes.get(
        "grace_period_days", organization.mfa_grace_period_days
    )
    organization.recovery_questions_enabled = changes.get(
        "recovery_questions", organization.recovery_questions_enabled
    )
    if organization.mfa_required and not was_required:
        organization.mfa_required_since = now
    _refuse_lock_out(organization, now)


def _refuse_lock_out(organization: Organization, now: datetime) -> None:
    """Raise PolicyLocksOut unless an admin has an allowed factor, or time to set one up."""
    if not organization.mfa_required:
        return
    usable = [name for name in organization.mfa_allowed_methods if _is_usable(name)]
    if not usable:
        raise PolicyLocksOut(
            "Allow at least one method other than backup codes that can be set up here."
        )
    admins = able_admins(organization.pk)
    latest = admins.aggregate(joined=Max("created_at"))["joined"] or now
    ends = models.second_factor_deadline(
        organization.mfa_required_since,
        organization.mfa_grace_period_days,
        member_since=latest,
    )
    holders = Factor.objects.filter(
        organization_id=organization.pk, user__in=admins, method__in=usable
    )
    if ends <= now and not holders.exists():
        raise PolicyLocksOut(
            "Where no grace is left, one admin needs an allowed factor before it is required."
        )


def _is_usable(method: str) -> bool:
    """True if a method is a second factor by itself and is available in this installation."""
    factor = registry.factor_of(method)
    return factor.type.is_second_factor and factor.enrolment.is_available()


def compliance_of(user_id: UUID, *, now: datetime) -> dict[str, Any]:
    """Return whether a member satisfies the policy; if not, why, and until when it has time."""
    user_holdings = holdings_of(user_id)
    policy = describe(user_holdings.policy, member_since=user_holdings.member_since)
    proper = [method for method in user_holdings.allowed if method != "backup_codes"]
    reasons = []
    if user_holdings.policy.mfa_required and not user_holdings.proper:
        reasons.append("no_second_factor")
    elif user_holdings.policy.mfa_required and not proper:
        reasons.append("no_allowed_method")
    ends = policy["grace_ends_at"]
    days = max(0, -(-(ends - int(now.timestamp())) // 86400)) if ends and reasons else None
    return {
        "compliant": not reasons,
        "required": user_holdings.policy.mfa_required,
        "enabled_methods": user_holdings.enabled,
        "allowed_methods": policy["allowed_methods"],
        "grace_ends_at": ends,
        "days_left": days,
        "reasons": reasons,
    }


def compliance_of_organization(organization_id: int) -> dict[str, Any]:
    """Count the members who satisfy the policy and name those who do not."""
    organization = Organization.objects.get(pk=organization_id)
    members = User.objects.filter(organization_id=organization_id, is_active=True)
    missing = _without_allowed_factor(organization).order_by("email")
    total = members.count()
    rows = [{"user_id": user.pk, "email": user.email or None} for user in missing]
    policy = describe(organization)
    return {
        "required": organization.mfa_required,
        "allowed_methods": policy["allowed_methods"],
        "grace_ends_at": policy["grace_ends_at"],
        "members": total,
        "compliant_members": total - len(rows),
        "missing": rows,
    }


def _without_allowed_factor(organization: Organization) -> QuerySet[User]:
    """Return the members who hold no second factor that the policy allows."""
    proper = [method for method in organization.mfa_allowed_methods if method != "backup_codes"]
    members = User.objects.filter(organization_id=organization.pk, is_active=True)
    holders = members.filter(Q(factors__method__in=proper))
    without: QuerySet[User] = members.exclude(pk__in=holders.values("pk"))
    return without
