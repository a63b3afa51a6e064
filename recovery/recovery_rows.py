"""Finding, validating, locking and ending the rows of recoveries.

Locks are always taken in this order, to avoid deadlocks: recovery, factors, user.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from accounts.models import User
from accounts.reclaim import address_release
from recovery.errors import RecoveryGone
from recovery.models import Purpose, Recovery
from recovery.tokens.reset_tokens import ResetPointer
from twofactor.factors import holdings
from twofactor.factors.holdings import Holdings
from twofactor.stored_secrets import digest, is_same


@dataclass(frozen=True, slots=True)
class Holder:
    """A recovery's user and factors, locked."""

    user: User
    holdings: Holdings


def capability_digest(recovery_id: str) -> str:
    """Return the digest of a ``recovery_id``."""
    return digest("recovery", recovery_id)


def fingerprint(user: User, user_holdings: Holdings) -> str:
    """Return a digest of password, address and factors; if one changes, the recovery is invalid."""
    factors = sorted(str(factor.pk) for factor in user_holdings.factors.values())
    return digest("recovery state", user.pk, user.password, user.email, *factors)


def lock_by_capability(recovery_id: str, *, now: datetime) -> Recovery:
    """Lock the open recovery of an id; call inside a transaction. Raises RecoveryGone."""
    rows = Recovery.objects.select_for_update()
    found: Recovery | None = rows.filter(digest=capability_digest(recovery_id)).first()
    if found is None or not found.is_open(now):
        raise RecoveryGone
    return found


def lock_by_pointer(pointer: ResetPointer, *, now: datetime) -> Recovery:
    """Lock the recovery of a reset token; call inside a transaction. Raises RecoveryGone."""
    return _pick(Recovery.objects.select_for_update(), pointer, now)


def peek(pointer: ResetPointer, *, now: datetime) -> Recovery:
    """Read the recovery of a reset token with its user, without a lock.

    Raises RecoveryGone.
    """
    rows = Recovery.objects.select_related("user__organization")
    return _pick(rows, pointer, now)


def _pick(rows: QuerySet[Recovery], pointer: ResetPointer, now: datetime) -> Recovery:
    found = rows.filter(
        pk=pointer.recovery_id, user_id=pointer.user_id, generation=pointer.generation
    ).first()
    if found is None or not found.is_resettable(now):
        raise RecoveryGone
    return found


def lock_holder(recovery: Recovery) -> Holder:
    """Lock factors and user of a locked recovery, which must not have changed since it began.

    Raises RecoveryGone if the user is disabled, or password, address or factors have changed.
    """
    holder = lock_present_holder(recovery)
    if not is_same(recovery.fingerprint, fingerprint(holder.user, holder.holdings)):
        raise RecoveryGone
    return holder


def lock_present_holder(recovery: Recovery) -> Holder:
    """Lock factors and user of a locked recovery, which may have changed.

    Raises RecoveryGone for a recovery without an account and for a disabled user.
    """
    if recovery.user_id is None:
        raise RecoveryGone
    user_holdings = holdings.holdings_of(recovery.user_id, lock=True)
    rows = User.objects.select_for_update(of=("self",))
    user: User = rows.select_related("organization", "last_environment").get(pk=recovery.user_id)
    if not user.is_active:
        raise RecoveryGone
    return Holder(user, user_holdings)


def is_new_account_offered(recovery: Recovery, holder: Holder) -> bool:
    """True if the mailbox was verified, but the account may belong to someone else."""
    is_by_mail = recovery.purpose == Purpose.PASSWORD and recovery.channel == "email"
    user = holder.user
    return (
        is_by_mail and address_release.is_releasable(user) and not address_release.is_prepared(user)
    )


def needs_new_account(recovery: Recovery, holder: Holder) -> bool:
    """True if only the mailbox can be proven, so that the account itself is not recovered."""
    return is_new_account_offered(recovery, holder) and not holder.holdings.proper


def end(recovery: Recovery, *, reason: str, now: datetime) -> None:
    """End one recovery; the caller has locked the row."""
    recovery.ended_at, recovery.end_reason = now, reason
    recovery.save(update_fields=["ended_at", "end_reason"])
