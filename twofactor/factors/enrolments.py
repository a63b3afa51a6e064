"""Enrolment of factors: begun, verified once, then active."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import F

from accounts import notices
from accounts.models import Session, User
from accounts.sessions import sessions
from accounts.sessions.sessions import SessionTokens
from accounts.signin.signin import SignInAttempt, SignInMethod, StageResponse, finish
from audit import trail
from common.crypto import encrypt
from common.ids import capability_id
from common.principals import PlatformRequest, Principal
from outbox.messages.templates import Notice
from twofactor.audit_tags import TwoFactorTag
from twofactor.challenges.assurance import ASSURANCE_FIELDS, raise_assurance
from twofactor.errors import CodeRejected, EnrolmentGone, FactorNotAllowed
from twofactor.factors import holdings
from twofactor.factors.contract import FactorType
from twofactor.models import Enrolment, EnrolmentDue, Factor
from twofactor.sign_in import pending
from twofactor.stored_secrets import digest, seal, unseal
from twofactor.trusted_devices import devices

LIFE: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class LockedEnrolment:
    """An enrolment that is locked for its verification."""

    row: Enrolment
    secret: dict[str, Any]


def user_of(principal: Principal) -> User:
    """Return a principal's user, with the organization."""
    users = User.objects.select_related("organization")
    user: User = users.get(pk=principal.user_id)
    return user


def refuse_forbidden(user: User, method: str) -> None:
    """Check an enrolment against the policy. Raises FactorNotAllowed (403)."""
    if method not in user.organization.mfa_allowed_methods:
        raise FactorNotAllowed


def begin(
    user: User, method: str, secret: dict[str, Any], *, now: datetime, life: timedelta = LIFE
) -> tuple[str, Enrolment]:
    """Begin an enrolment; return its id, a capability, and the row."""
    enrolment_id = capability_id()
    row = Enrolment(
        digest=digest("enrolment", enrolment_id),
        organization_id=user.organization_id,
        user=user,
        method=method,
        secret=seal(secret),
        created_at=now,
        expires_at=now + life,
    )
    row.save(force_insert=True)
    return enrolment_id, row


def lock(user: User, method: str, enrolment_id: str, *, now: datetime) -> LockedEnrolment:
    """Lock a user's enrolment for its verification; call inside a transaction.

    Raises EnrolmentGone (410) if it is unknown, another user's, expired, finished or failed too
    often.
    """
    rows = Enrolment.objects.filter(organization_id=user.organization_id).select_for_update()
    row: Enrolment | None = rows.filter(
        pk=digest("enrolment", enrolment_id), user=user, method=method, used_at=None
    ).first()
    if row is None or row.attempts_left == 0 or now >= row.expires_at:
        raise EnrolmentGone
    return LockedEnrolment(row, unseal(row.secret))


def count_failure(locked: LockedEnrolment) -> CodeRejected:
    """Count a wrong code; return the exception to raise after the caller's transaction."""
    rows = Enrolment.objects.filter(pk=locked.row.pk)
    rows.update(attempts_left=F("attempts_left") - 1)
    return CodeRejected()


def activate(
    principal: Principal,
    locked: LockedEnrolment,
    *,
    secret: str = "",
    hint: str = "",
    last_step: int = 0,
    now: datetime,
) -> tuple[Factor, bool]:
    """Activate the factor, replacing an earlier one of its method; return whether it is new.

    secret: the factor's secret, encrypted here. last_step: of TOTP, used up by this verification.
    Trusted devices are deleted. Raises EnrolmentGone (410).
    """
    _refuse_unproven(principal)
    Enrolment.objects.filter(pk=locked.row.pk).update(used_at=now)
    user, method = locked.row.user, locked.row.method
    is_first = not Factor.objects.filter(user=user).exists()
    factor, is_new = Factor.objects.update_or_create(
        user=user,
        method=method,
        defaults={
            "secret": encrypt(secret) if secret else "",
            "hint": hint,
            "last_step": last_step,
            "failures": 0,
            "blocked_until": None,
        },
        create_defaults={
            "organization_id": user.organization_id,
            "secret": encrypt(secret) if secret else "",
            "hint": hint,
            "last_step": last_step,
            "is_default": is_first,
            "created_at": now,
        },
    )
    devices.delete_all(user.pk)
    EnrolmentDue.objects.filter(pk=user.pk).delete()
    return factor, is_new


def _refuse_unproven(principal: Principal) -> None:
    """Lock the user's factors; refuse a caller that has proven none of them.

    A caller that found no factor is refused if the owner has set one up in the meantime.
    Raises EnrolmentGone (410).
    """
    holdings.holdings_of(principal.own_id, lock=True)
    # If there was no factor to lock, this waits for a request that activates one. It is locked
    # after the factors, in the lock order of challenges.
    sessions.lock_user_sessions(principal.own_id)
    if "mfa" not in principal.amr and holdings.has_proper_factor(principal.own_id):
        raise EnrolmentGone


def require(user: User, *, now: datetime) -> None:
    """Require every sign-in of a user to set a factor up, until one is active."""
    EnrolmentDue.objects.get_or_create(
        user=user, defaults={"organization_id": user.organization_id, "created_at": now}
    )


def complete(
    request: PlatformRequest,
    principal: Principal,
    user: User,
    factor: FactorType,
    *,
    is_replaced: bool,
    now: datetime,
) -> dict[str, Any]:
    """Notify the user, and raise the session's assurance or finish the pending sign-in.

    A pending sign-in gets its token pair here, so that enrolment is the last step of signing in;
    the user's other sign-ins that wait for an enrolment end. is_replaced: an earlier one of the
    method does not work any more. Raises EnrolmentGone (410) if this one
    has.
    """
    trail.record_request(request, TwoFactorTag.FACTOR_CREATE, method=factor.name)
    notice: Notice = "factor_replaced" if is_replaced else "factor_added"
    notices.notify(user, notice, method=factor.label)
    pending.end_enrolling(user.pk, except_pending=principal.pending_id)
    if principal.pending_id is None:
        # Locked, so that a name that another request removes from `amr` is not written again.
        rows = Session.objects.select_for_update(no_key=True)
        session = rows.get(pk=principal.session_id)
        raise_assurance(session, factor, now=now)
        session.save(update_fields=ASSURANCE_FIELDS)
        return {}
    waiting = pending.use_up(principal.pending_id, now=now)
    attempt = SignInAttempt(
        user,
        waiting.environment,
        method=SignInMethod.ENROLMENT,
        amr=[*waiting.amr, factor.amr, "mfa"],
        now=now,
        mfa_method=factor.name,
    )
    done: SessionTokens | StageResponse = finish(request, attempt)
    return done.answer
