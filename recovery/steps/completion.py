"""Completing a recovery of the password: sets a new one, and opens no session."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from accounts import notices, passwords
from accounts.models import User
from accounts.reclaim import address_release
from audit import trail
from common.errors import InvalidRequest
from common.principals import PlatformRequest
from organizations import invitations, staff_access
from recovery import channels, recovery_rows
from recovery.audit_tags import RecoveryTag
from recovery.errors import NoIndependentFactor, RecoveryChallengeRequired, RecoveryGone
from recovery.models import Recovery
from recovery.recovery_rows import Holder
from recovery.steps import access_end, challenges
from recovery.steps.challenges import FactorProof
from recovery.tokens.reset_tokens import ResetPointer
from twofactor.errors import CodeRejected


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """The request that completes a recovery: a new password, with a proof or with a new account.

    given: the proof of a second factor, if the account has one. new_account: the caller wants a new
    account with the address instead of the one with the second factor.
    """

    password: str
    given: FactorProof
    new_account: bool = False


def set_password(
    request: PlatformRequest, pointer: ResetPointer, choice: CompletionRequest, *, now: datetime
) -> None:
    """Set a new password, once; end all sessions and trusted devices, and notify every address.

    Raises InvalidRequest (400) for a weak password or a new account that was not offered,
    HashingBusy (503), RecoveryGone (410), CodeRejected (401, counted), and the errors of
    challenges.is_proven.
    """
    user = recovery_rows.peek(pointer, now=now).user
    if user is None:
        raise RecoveryGone
    context = (user.email, user.organization.name, settings.SERVICE_NAME)
    passwords.validate(choice.password, context=context)
    # Before taking locks, because hashing is slow.
    encoded = passwords.hash_password(choice.password)
    with transaction.atomic():
        recovery = recovery_rows.lock_by_pointer(pointer, now=now)
        holder = recovery_rows.lock_holder(recovery)
        if choice.new_account or recovery_rows.needs_new_account(recovery, holder):
            _open_new_account(request, recovery, holder, encoded, now)
            return
        method = ""
        if holder.holdings.proper:
            method = _prove_factor(request, recovery, holder, choice.given, now)
        is_proven = bool(method) or not holder.holdings.proper
        if is_proven:
            _apply(recovery, holder, encoded, now)
            _record(request, recovery, holder.user, second_factor=method)
    # Raised outside the transaction, so that the attempt stays counted.
    if not is_proven:
        raise CodeRejected


def _prove_factor(
    request: PlatformRequest, recovery: Recovery, holder: Holder, given: FactorProof, now: datetime
) -> str:
    try:
        return challenges.is_proven(request, recovery, holder.holdings, given, now=now)
    except (RecoveryChallengeRequired, NoIndependentFactor) as exc:
        exc.extra["new_account_offered"] = recovery_rows.is_new_account_offered(recovery, holder)
        raise


def _open_new_account(
    request: PlatformRequest, recovery: Recovery, holder: Holder, encoded: str, now: datetime
) -> None:
    """Open a new account; the one that never verified the address only loses it."""
    if not recovery_rows.is_new_account_offered(recovery, holder):
        raise InvalidRequest.for_field("new_account", "Not for this account.", code="not_offered")
    recovery_rows.end(recovery, reason="address_released", now=now)
    user = address_release.replace(request, holder.user, encoded, now=now)
    staff_access.unlock_password(user)
    purpose = "you have a new account with your address, in a new organization"
    notices.notify(user, "recovery_completed", purpose=purpose)
    _record(request, recovery, user, new_account=True)


def _record(request: PlatformRequest, recovery: Recovery, user: User, **data: Any) -> None:
    trail.record_user(
        request,
        RecoveryTag.RECOVERY_COMPLETE,
        user,
        recovery=str(recovery.pk),
        purpose=recovery.purpose,
        method=recovery.method,
        **data,
    )


def _apply(recovery: Recovery, holder: Holder, encoded: str, now: datetime) -> None:
    user = holder.user
    recovery_rows.end(recovery, reason="completed", now=now)
    user.password = encoded
    if recovery.channel == "email":
        user.email_verified_at = user.email_verified_at or now
    user.save(update_fields=["password", "email_verified_at"])
    invitations.end_for_member(user.pk)
    staff_access.unlock_password(user)
    access_end.end_access(user, reason="recovery", now=now)
    purpose = f"a new password was set, and {access_end.ENDED}"
    channels.notify(user, holder.holdings, "recovery_completed", purpose=purpose)
