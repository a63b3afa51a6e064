"""The methods there are, and which of them a user holds: one query."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from accounts.models import User
from environments.models import MFA_METHODS, Organization
from twofactor.models import BackupCode, Factor

METHODS: Final = MFA_METHODS
# In challenges the interface spells the method in the singular.
CHALLENGE_NAMES: Final = {"backup_codes": "backup_code"}
LABELS: Final = {
    "totp": "Authenticator app",
    "sms": "Text message",
    "email": "E-mail",
    "webauthn": "Passkey",
    "backup_codes": "Backup code",
}
# What RFC 8176 calls them, for the `amr` claim.
AMR: Final = {
    "totp": "otp",
    "sms": "sms",
    "email": "otp",
    "webauthn": "hwk",
    "backup_codes": "otp",
}


def spelled_in_challenges(method: str) -> str:
    """Give the method as challenges spell it."""
    return CHALLENGE_NAMES.get(method, method)


def from_challenge_spelling(name: str) -> str:
    """Give the method that a challenge's parameter means; unknown names stay as they are."""
    return next((method for method, short in CHALLENGE_NAMES.items() if short == name), name)


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a user holds, beside what the organization allows.

    factors: by method, in the order they are offered. codes_left: unused backup codes.
    """

    factors: dict[str, Factor]
    codes_left: int
    policy: Organization
    member_since: datetime

    @property
    def enabled(self) -> list[str]:
        """Every active method, allowed or not; backup codes alone are no second factor."""
        return list(self.factors)

    @property
    def proper(self) -> list[str]:
        """The methods that make a second factor: all but backup codes."""
        return [method for method in self.factors if method != "backup_codes"]

    @property
    def allowed(self) -> list[str]:
        """The enabled methods that the policy allows and that can be asked for now."""
        return [
            method
            for method in self.factors
            if method in self.policy.mfa_allowed_methods
            and (method != "backup_codes" or self.codes_left)
        ]

    @property
    def askable(self) -> list[str]:
        """What a challenge may ask: the allowed methods, or where none is left, any that is held.

        The second case leads no further than to enrolling an allowed one: without it a tightened
        policy would leave a member with the password alone to enrol with.
        """
        if any(method != "backup_codes" for method in self.allowed):
            return self.allowed
        return [method for method in self.factors if method != "backup_codes" or self.codes_left]

    @property
    def default_method(self) -> str | None:
        """The method to offer first; None while there is no second factor."""
        chosen = [method for method, factor in self.factors.items() if factor.is_default]
        offered = [*chosen, *self.proper]
        return offered[0] if offered else None


def holdings_of(user_id: UUID, *, lock: bool = False) -> Holdings:
    """Read a user's factors and policy: one query, and another one where there are no factors.

    lock: hold the factors until the transaction ends.
    """
    codes = (
        BackupCode.objects.filter(factor=OuterRef("pk"), used_at=None)
        .order_by()
        .values("factor")
        .annotate(number=Count("pk"))
        .values("number")
    )
    mine = Factor.unscoped.filter(user_id=user_id)  # unscoped: by the user's own key
    if lock:
        mine = mine.select_for_update(of=("self",))
    rows: list[Any] = list(
        mine.select_related("organization", "user").annotate(
            codes_left=Coalesce(Subquery(codes), 0)
        )
    )
    if not rows:
        user = User.unscoped.select_related("organization").get(pk=user_id)  # unscoped: own key
        return Holdings({}, 0, user.organization, user.created_at)
    by_method = {row.method: row for row in rows}
    ordered = {method: by_method[method] for method in METHODS if method in by_method}
    left = sum(row.codes_left for row in rows if row.method == "backup_codes")
    first = rows[0]
    return Holdings(ordered, left, first.organization, first.user.created_at)


def has_proper_factor(user_id: UUID) -> bool:
    """Say whether the user has a second factor: one query."""
    rows = Factor.unscoped.filter(user_id=user_id)  # unscoped: by the user's own key
    return bool(rows.filter(~Q(method="backup_codes")).exists())
