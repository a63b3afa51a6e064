"""Exchanging a sent token for a reset token."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from audit import trail
from common.principals import PlatformRequest
from recovery import recovery_rows
from recovery.audit_tags import RecoveryTag
from recovery.errors import RecoveryTokenRejected
from recovery.models import Purpose, Recovery
from recovery.recovery_rows import Holder
from recovery.steps import challenges
from recovery.tokens import channel_tokens, reset_tokens
from twofactor import registry
from twofactor.stored_secrets import is_same

RESET_LIFE: Final = timedelta(minutes=10)


def verify(
    request: PlatformRequest, recovery_id: str, token: str, *, now: datetime
) -> dict[str, Any]:
    """Return the fields of RecoveryVerifiedSerializer; a token works once.

    next: ``password``, which opens a new account where that is offered; ``password_and_challenge``,
    with a second factor from ``methods``; ``first_factor`` (purpose second_factor), a password or
    one of ``methods``.
    Raises MalformedRecoveryToken (400, not counted), RecoveryTokenRejected (401, counted: five
    attempts), RecoveryGone (410) if it is unknown, expired, used, failed too often or replaced.
    """
    token = channel_tokens.canonical(token)
    with transaction.atomic():
        recovery = recovery_rows.lock_by_capability(recovery_id, now=now)
        # Without an account nothing was sent, and '' matches no digest.
        if is_same(recovery.token, channel_tokens.token_digest(recovery, token)):
            return _accept(request, recovery, recovery_rows.lock_holder(recovery), now)
        recovery.attempts_left -= 1
        recovery.save(update_fields=["attempts_left"])
        # Also recorded without an account, so that both cases take the same time.
        trail.add(
            request,
            RecoveryTag.RECOVERY_VERIFY,
            outcome="refused",
            organization_id=recovery.organization_id,
            actor_id=recovery.user_id,
            data={"recovery": str(recovery.pk)},
        )
    # Raised outside the transaction, so that the attempt stays counted.
    raise RecoveryTokenRejected


def _accept(
    request: PlatformRequest, recovery: Recovery, holder: Holder, now: datetime
) -> dict[str, Any]:
    recovery.verified_at = now
    recovery.reset_expires_at = now + RESET_LIFE
    recovery.generation += 1
    recovery.save(update_fields=["verified_at", "reset_expires_at", "generation"])
    trail.record_user(request, RecoveryTag.RECOVERY_VERIFY, holder.user, recovery=str(recovery.pk))
    return {
        "reset_token": reset_tokens.token_for(
            recovery, issued_at=now, expires_at=recovery.reset_expires_at
        ),
        "expires_at": int(recovery.reset_expires_at.timestamp()),
        "next": _next(recovery, holder),
        "methods": registry.challenge_names(challenges.offered(recovery, holder.holdings)),
        "new_account_offered": recovery_rows.is_new_account_offered(recovery, holder),
    }


def _next(recovery: Recovery, holder: Holder) -> str:
    if recovery.purpose == Purpose.SECOND_FACTOR:
        return "first_factor"
    return "password_and_challenge" if holder.holdings.proper else "password"
