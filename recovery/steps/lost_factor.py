"""A lost second factor: two independent proofs, a delay that can be cancelled, an enrolment.

The channel of the recovery is the first proof, the password or a passkey the second. Then every
address is notified, with a token that cancels. Only after settings.RECOVERY.delay_s are the factors
removed; the token that is returned then sets up a new factor and opens nothing else.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from accounts.models import User
from accounts.sessions.sessions import request_source
from accounts.signin import credentials
from accounts.signin.signin import environment_for
from audit import trail
from common.errors import InvalidRequest
from common.principals import PlatformRequest
from outbox.messages.templates import console_link
from recovery import channels, recovery_rows
from recovery.audit_tags import RecoveryTag
from recovery.errors import RecoveryGone, RecoveryNotDue
from recovery.models import Purpose, Recovery
from recovery.recovery_rows import Holder
from recovery.steps import access_end, challenges
from recovery.steps.challenges import FactorProof
from recovery.tokens import channel_tokens, reset_tokens
from recovery.tokens.reset_tokens import ResetPointer
from twofactor import registry
from twofactor.errors import CodeRejected
from twofactor.factors import active_factors, enrolments
from twofactor.sign_in import pending

# The time to complete after the delay: long enough for a weekend.
COMPLETE_WITHIN: Final = timedelta(hours=72)


@dataclass(frozen=True, slots=True)
class FirstFactor:
    """The caller's first factor: a password or a passkey."""

    password: str
    given: FactorProof


def prove(
    request: PlatformRequest, reset_token: str, first: FirstFactor, *, now: datetime
) -> dict[str, Any]:
    """Start the delay; return the token to complete with, and from when until when it is valid.

    Raises RecoveryGone (410), InvalidCredentials (401) under the login's own limits, InvalidRequest
    (400) without a proof, CodeRejected (401, counted), and the errors of challenges.is_proven.
    """
    pointer = reset_tokens.read(reset_token, now=now)
    peeked = recovery_rows.peek(pointer, now=now)
    if peeked.purpose != Purpose.SECOND_FACTOR or peeked.proven_at or peeked.user is None:
        raise RecoveryGone
    proven = None
    if first.password:
        # Verifying may update the hash to a new cost, so the new row is compared.
        source = request_source(request)
        proven = credentials.verify(peeked.user.email, first.password, source=source, now=now)
    elif not first.given.challenge_id:
        raise InvalidRequest.for_field("password", "Send the password, or a passkey's answer.")
    with transaction.atomic():
        recovery = recovery_rows.lock_by_pointer(pointer, now=now)
        holder = _lock_holder(recovery, proven)
        if proven is not None:
            amr = "pwd"
        else:
            method = challenges.is_proven(request, recovery, holder.holdings, first.given, now=now)
            amr = registry.factor_of(method).type.amr if method else ""
        answer = _begin_delay(request, recovery, holder, amr=amr, now=now) if amr else None
    # Raised outside the transaction, so that the attempt stays counted.
    if answer is None:
        raise CodeRejected
    return answer


def _lock_holder(recovery: Recovery, proven: User | None) -> Holder:
    """Lock the user, unchanged since the recovery began or the password was verified."""
    if proven is None:
        return recovery_rows.lock_holder(recovery)
    holder = recovery_rows.lock_present_holder(recovery)
    is_same_user = proven.pk == holder.user.pk and proven.password == holder.user.password
    if not is_same_user or proven.email != holder.user.email:
        raise RecoveryGone
    return holder


def _begin_delay(
    request: PlatformRequest, recovery: Recovery, holder: Holder, *, amr: str, now: datetime
) -> dict[str, Any]:
    user, cancel = holder.user, channel_tokens.long_token()
    effective_at = now + timedelta(seconds=settings.RECOVERY.delay_s)
    expires_at = effective_at + COMPLETE_WITHIN
    recovery.proven_at, recovery.effective_at, recovery.amr = now, effective_at, [amr]
    recovery.reset_expires_at = expires_at
    recovery.generation += 1
    recovery.cancel = channel_tokens.cancel_digest(cancel)
    recovery.fingerprint = recovery_rows.fingerprint(user, holder.holdings)
    recovery.save()
    at = f"{effective_at:%Y-%m-%d %H:%M} UTC"
    channels.notify_with_cancel_link(
        user,
        holder.holdings,
        cancel,
        purpose="all second factors will be removed",
        effective_at=at,
    )
    channels.text(
        user,
        holder.holdings,
        f"Recovery of your {settings.SERVICE_NAME} account was started: its second factors are "
        f"removed at {at}. If this was not you, cancel it at {console_link(channels.CANCEL_PAGE)} "
        f"with this code: {cancel}",
    )
    trail.record_user(request, RecoveryTag.RECOVERY_PROVE, user, recovery=str(recovery.pk), amr=amr)
    return {
        "status": "delayed",
        "reset_token": reset_tokens.token_for(recovery, issued_at=now, expires_at=expires_at),
        "effective_at": int(effective_at.timestamp()),
        "expires_at": int(expires_at.timestamp()),
    }


def complete(request: PlatformRequest, pointer: ResetPointer, *, now: datetime) -> dict[str, Any]:
    """Remove every factor; return a sign-in that may only set up a new one (``mfa_token``).

    Later sign-ins must set one up too, until a factor is active.

    Raises RecoveryNotDue (409) before the delay is over, RecoveryGone (410), also if a factor was
    used or set up in the meantime: it is not lost then.
    """
    with transaction.atomic():
        recovery = recovery_rows.lock_by_pointer(pointer, now=now)
        holder = recovery_rows.lock_holder(recovery)
        if recovery.effective_at is None:
            raise RecoveryGone
        if now < recovery.effective_at:
            at = int(recovery.effective_at.timestamp())
            raise RecoveryNotDue(extra={"effective_at": at})
        if recovery.proven_at is None or _is_in_use(holder, since=recovery.proven_at):
            raise RecoveryGone
        recovery_rows.end(recovery, reason="completed", now=now)
        user, number = holder.user, _remove_factors(holder, now)
        waiting = pending.open_pending(
            user, environment_for(user, ""), use=pending.ENROL, amr=list(recovery.amr), now=now
        )
        trail.record_user(
            request,
            RecoveryTag.RECOVERY_COMPLETE,
            user,
            recovery=str(recovery.pk),
            purpose=recovery.purpose,
            method=recovery.method,
            factors=number,
        )
    allowed = user.organization.mfa_allowed_methods
    return {
        "status": "mfa_enrollment_required",
        "mfa_token": pending.token_for(waiting),
        "mfa_expires_at": int(waiting.expires_at.timestamp()),
        "allowed_methods": [method for method in allowed if method != "backup_codes"],
    }


def _remove_factors(holder: Holder, now: datetime) -> int:
    """Remove every factor; a new one is required from now on. Return their number."""
    user, purpose = holder.user, f"all second factors were removed, and {access_end.ENDED}"
    channels.notify(user, holder.holdings, "recovery_completed", purpose=purpose)
    number = active_factors.reset(user)
    enrolments.require(user, now=now)
    access_end.end_access(user, reason="recovery", now=now)
    return number


def _is_in_use(holder: Holder, *, since: datetime) -> bool:
    times = [
        at
        for factor in holder.holdings.factors.values()
        for at in (factor.created_at, factor.last_used_at)
    ]
    return any(at is not None and at > since for at in times)


def cancel(request: PlatformRequest, token: str, *, now: datetime) -> None:
    """Cancel a recovery with the token from its notices, without a session.

    Raises MalformedRecoveryToken (400), RecoveryGone (410) if it is unknown, ended or expired.
    """
    digest = channel_tokens.cancel_digest(channel_tokens.canonical_long(token))
    with transaction.atomic():
        found = Recovery.objects.select_for_update(of=("self",)).select_related("user")
        recovery = found.filter(cancel=digest, ended_at=None).first()
        if recovery is None or recovery.user is None or not _can_still_lead(recovery, now):
            raise RecoveryGone
        recovery_rows.end(recovery, reason="cancelled", now=now)
        trail.record_user(
            request, RecoveryTag.RECOVERY_CANCEL, recovery.user, recovery=str(recovery.pk)
        )


def _can_still_lead(recovery: Recovery, now: datetime) -> bool:
    return recovery.is_open(now) or recovery.is_resettable(now)
