"""The end of a recovery of the password: a new one, and no session."""

from datetime import datetime

from django.conf import settings
from django.db import transaction

from accounts import audit, passwords, takeover
from platform_site.lib.principals import PlatformRequest
from recovery import aftermath, challenges, channels, rows
from recovery.challenges import Given
from recovery.errors import RecoveryGone
from recovery.models import Recovery
from recovery.reset_tokens import Pointer
from recovery.rows import Holder
from twofactor.errors import CodeRejected


def set_password(
    request: PlatformRequest, pointer: Pointer, password: str, given: Given, *, now: datetime
) -> None:
    """Set a new password, once; all sessions and trusted devices end, every address is told.

    given: the proof of a second factor, where the account has one.
    Raises InvalidRequest (400) for a weak password, HashingBusy (503), RecoveryGone (410), what
    challenges.is_proven raises, CodeRejected (401, counted).
    """
    user = rows.peek(pointer, now=now).user
    if user is None:
        raise RecoveryGone
    context = (user.email, user.organization.name, settings.SERVICE_NAME)
    passwords.validate(password, context=context)
    # Before the locks: a hash takes long.
    encoded = passwords.hash_password(password)
    with transaction.atomic():
        recovery = rows.lock_by_pointer(pointer, now=now)
        holder = rows.lock_holder(recovery)
        method = ""
        if holder.held.proper:
            method = challenges.is_proven(request, recovery, holder.held, given, now=now)
        is_proven = bool(method) or not holder.held.proper
        if is_proven:
            if recovery.channel == "email" and holder.user.email_verified_at is None:
                _take_from_stranger(request, holder, now)
            _apply(recovery, holder, encoded, now)
            audit.record_user(
                request,
                "api:recovery:complete",
                holder.user,
                recovery=str(recovery.pk),
                purpose=recovery.purpose,
                method=recovery.method,
                second_factor=method,
            )
    # Raised outside of the transaction, so that the count stays.
    if not is_proven:
        raise CodeRejected


def _apply(recovery: Recovery, holder: Holder, encoded: str, now: datetime) -> None:
    user = holder.user
    rows.end(recovery, reason="completed", now=now)
    user.password = encoded
    user.save(update_fields=["password"])
    aftermath.end_access(user, reason="recovery", now=now)
    channels.tell(user, holder.held, "recovery_completed", purpose="a new password was set")


def _take_from_stranger(request: PlatformRequest, holder: Holder, now: datetime) -> None:
    """Note that the mailbox is proven now; whoever signed up may have been somebody else.

    A second factor stays and was just proven: recovery never removes one at once.
    """
    has_factors = bool(holder.held.proper)
    takeover.strip_unproven(holder.user, request=request, now=now, keep_factors=has_factors)
