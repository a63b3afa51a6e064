"""A user's active methods, and what the organization allows."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, Subquery

from accounts.models import User
from environments.models import MFA_METHODS, Organization
from twofactor.models import BackupCode, EnrolmentDue, Factor

_CODES_LEFT: Final = Subquery(
    BackupCode.objects.filter(factor=OuterRef("pk"), used_at=None)
    .values("factor")
    .annotate(number=Count("pk"))
    .values("number")
)


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
    """Read a user's factors and policy: two queries.

    lock: lock the factors until the transaction ends.
    Raises User.DoesNotExist.
    """
    rows = Factor.objects.filter(user_id=user_id).annotate(codes_left=_CODES_LEFT)
    if lock:
        # Always locked in this order, to avoid deadlocks.
        rows = rows.order_by("pk").select_for_update(of=("self",))
    by_method = {factor.method: factor for factor in rows}
    due = EnrolmentDue.objects.filter(pk=OuterRef("pk"))
    users = User.objects.select_related("organization").annotate(must_enrol=Exists(due))
    user = users.get(pk=user_id)
    for factor in by_method.values():
        factor.user, factor.organization = user, user.organization
    ordered = {method: by_method[method] for method in MFA_METHODS if method in by_method}
    codes = by_method.get("backup_codes")
    codes_left = (codes and codes.codes_left) or 0
    return Holdings(ordered, codes_left, user.organization, user.created_at, user.must_enrol)


def has_proper_factor(user_id: UUID) -> bool:
    """True if the user has a second factor; one query."""
    rows = Factor.objects.filter(user_id=user_id)
    return bool(rows.filter(~Q(method="backup_codes")).exists())
