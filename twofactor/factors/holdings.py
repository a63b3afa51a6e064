"""A user's active methods, and what the organization allows, read with one query."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Q

from accounts.models import User
from common.database import joined_rows
from common.database.joined_rows import ModelColumns
from environments.models import MFA_METHODS, Organization
from twofactor.models import Factor

_MODELS: Final = (
    ModelColumns(Factor, "f"),
    ModelColumns(
        User, "u", "id", "organization_id", "email", "email_verified_at", "is_active", "created_at"
    ),
    ModelColumns(Organization, "o"),
)
_SELECT: Final = f"""
SELECT {joined_rows.columns(_MODELS)},
    (SELECT count(*) FROM twofactor_backupcode b WHERE b.factor_id = f.id AND b.used_at IS NULL),
    EXISTS (SELECT 1 FROM twofactor_enrolmentdue d WHERE d.user_id = u.id)
FROM accounts_user u JOIN environments_organization o ON o.id = u.organization_id
"""  # noqa: S608 - column names of our own models
_READ: Final = f"""
{_SELECT} LEFT JOIN twofactor_factor f ON f.user_id = u.id WHERE u.id = %s
"""
# Always locked in this order, to avoid deadlocks.
_LOCK: Final = f"""
{_SELECT} JOIN twofactor_factor f ON f.user_id = u.id WHERE u.id = %s
ORDER BY f.id FOR UPDATE OF f
"""


@dataclass(frozen=True, slots=True)
class Holdings:
    """A user's factors, and the methods that the organization allows.

    factors: by method, in the order they are offered. codes_left: unused backup codes.
    must_enrol: lost factors were removed, so a new one is required regardless of the policy.
    """

    factors: dict[str, Factor]
    codes_left: int
    policy: Organization
    member_since: datetime
    must_enrol: bool = False

    @property
    def enabled(self) -> list[str]:
        """Every active method, allowed or not; backup codes alone are not a second factor."""
        return list(self.factors)

    @property
    def proper(self) -> list[str]:
        """The methods that are a second factor by themselves: all except backup codes."""
        return [method for method in self.factors if method != "backup_codes"]

    @property
    def allowed(self) -> list[str]:
        """The enabled methods that the policy allows and that are available now."""
        return [
            method
            for method in self.factors
            if method in self.policy.mfa_allowed_methods
            and (method != "backup_codes" or self.codes_left)
        ]

    @property
    def askable(self) -> list[str]:
        """The methods for a challenge: the allowed ones, or all active ones if none is allowed.

        In the second case the challenge only leads to enrolling an allowed method: otherwise, after
        a stricter policy, the password alone would be enough to enrol one.
        """
        if any(method != "backup_codes" for method in self.allowed):
            return self.allowed
        return [method for method in self.factors if method != "backup_codes" or self.codes_left]

    @property
    def default_method(self) -> str | None:
        """The default method: the chosen one if it can be used; None without a factor."""
        offered = [method for method in self.askable if method != "backup_codes"]
        chosen = [method for method in offered if self.factors[method].is_default]
        return next(iter([*chosen, *offered]), None)


def holdings_of(user_id: UUID, *, lock: bool = False) -> Holdings:
    """Read a user's factors and policy: one query.

    lock: lock the factors until the transaction ends.
    Raises User.DoesNotExist.
    """
    rows = _read(_LOCK, user_id) if lock else []
    # Without factors there is nothing to lock.
    rows = rows or _read(_READ, user_id)
    if not rows:
        raise User.DoesNotExist
    by_method, codes_left = {}, 0
    for factor, user, organization, left, _ in rows:
        user.organization = organization
        if factor is not None:
            factor.user, factor.organization = user, organization
            by_method[factor.method] = factor
            codes_left += left if factor.method == "backup_codes" else 0
    _, user, organization, _, must_enrol = rows[0]
    ordered = {method: by_method[method] for method in MFA_METHODS if method in by_method}
    return Holdings(ordered, codes_left, organization, user.created_at, must_enrol)


def _read(query: str, user_id: UUID) -> list[list[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(query, [user_id])
        return [joined_rows.split_row(row, _MODELS, connection) for row in cursor.fetchall()]


def has_proper_factor(user_id: UUID) -> bool:
    """True if the user has a second factor; one query."""
    rows = Factor.objects.filter(user_id=user_id)
    return bool(rows.filter(~Q(method="backup_codes")).exists())
