"""Challenges: a request to prove one factor, for a sign-in (login) or a session (step-up)."""

from datetime import datetime
from typing import Any

from django.db import transaction

from accounts import notices
from accounts.models import Session
from accounts.sessions.sessions import SessionTokens
from accounts.signin.signin import SignInAttempt, SignInMethod, StageResponse, finish
from audit import trail
from common.principals import PlatformRequest, Principal
from twofactor import registry
from twofactor.audit_tags import TwoFactorTag
from twofactor.challenges import challenge_base
from twofactor.challenges.assurance import ASSURANCE_FIELDS, raise_assurance
from twofactor.errors import (
    ChallengeGone,
    CodeRejected,
    FactorNotAllowed,
    MethodNotEnabled,
    NoSecondFactor,
)
from twofactor.factors import holdings, throttle
from twofactor.factors.contract import ChallengeAnswer, FactorType
from twofactor.factors.holdings import Holdings
from twofactor.models import Challenge, Factor
from twofactor.sign_in import pending
from twofactor.trusted_devices import devices


def _choose(user_holdings: Holdings, wanted: str) -> Factor:
    """Return the factor to prove: the requested one, else the default.

    Raises NoSecondFactor, MethodNotEnabled (409), FactorNotAllowed (403).
    """
    if not user_holdings.proper:
        raise NoSecondFactor
    method = registry.name_in_challenges(wanted) or user_holdings.default_method or ""
    if method not in user_holdings.factors:
        raise MethodNotEnabled
    if method not in user_holdings.askable:
        raise FactorNotAllowed
    return user_holdings.factors[method]


def create(principal: Principal, wanted: str, *, now: datetime) -> dict[str, Any]:
    """Return a challenge for a pending sign-in or, for step-up, for a session.

    wanted: a method's name in challenges, '' for the default.
    Raises NoSecondFactor, MethodNotEnabled, FactorNotAllowed, FactorSlowed, FactorWornOut,
    ChannelUnavailable, SendingTooOften.
    """
    with transaction.atomic():
        # The factors are locked, so that two concurrent requests send one code.
        user_holdings = holdings.holdings_of(principal.own_id, lock=True)
        factor = _choose(user_holdings, wanted)
        throttle.refuse_throttled(factor, now)
        latest = _latest(principal, factor)
        if latest is not None:
            repeated = challenge_base.id_to_repeat(latest, now)
            if repeated:
                return challenge_base.describe(
                    latest, factor, repeated, offered=user_holdings.askable
                )
            _expire(latest, now)
        challenge = Challenge(
            user_id=principal.own_id,
            pending_id=principal.pending_id,
            session_id=principal.session_id,
        )
        challenge_id = challenge_base.open_challenge(
            challenge, factor, others=user_holdings.askable, now=now
        )
    return challenge_base.describe(challenge, factor, challenge_id, offered=user_holdings.askable)


def _latest(principal: Principal, factor: Factor) -> Challenge | None:
    rows = Challenge.objects.filter(
        factor=factor, pending_id=principal.pending_id, session_id=principal.session_id
    )
    found: Challenge | None = rows.order_by("-created_at").first()
    return found


def _expire(latest: Challenge, now: datetime) -> None:
    if latest.is_open(now):
        Challenge.objects.filter(pk=latest.pk).update(expires_at=now)


def verify(
    request: PlatformRequest, challenge_id: str, answer: ChallengeAnswer, *, now: datetime
) -> SessionTokens | StageResponse | Session:
    """Exchange a correct answer for a session (login), or raise the session's assurance (step-up).

    A challenge works once. Raises MalformedCode (400, not counted), CodeRejected (401, counted),
    ChallengeGone (410: unknown, expired, used, failed five times, or of another session),
    FactorSlowed (429), FactorWornOut and FactorNotAllowed (403).
    """
    with transaction.atomic():
        challenge = _lock(challenge_id, now)
        _refuse_foreign(request, challenge)
        throttle.refuse_throttled(challenge.factor, now)
        is_allowed = _is_allowed_or_refuse(challenge)
        purpose = "login" if challenge.session_id is None else "step_up"
        if challenge_base.is_right(
            request, challenge, answer, challenge_id=challenge_id, purpose=purpose, now=now
        ):
            return _complete(request, challenge, answer, is_allowed=is_allowed, now=now)
    # Raised outside the transaction, so that the attempt stays counted.
    raise CodeRejected


def _lock(challenge_id: str, now: datetime) -> Challenge:
    """Return an open challenge with its factor and user; challenge and factor are locked.

    Raises ChallengeGone.
    """
    found: Challenge | None = (
        # Factors are always locked before challenges, so that there are no deadlocks; PostgreSQL
        # locks in the order that is written here.
        Challenge.objects.select_for_update(of=("factor", "self"))
        .select_related("factor", "user__organization")
        .filter(pk=challenge_base.digest_of(Challenge, challenge_id))
        .first()
    )
    if found is None or not found.is_open(now) or not found.user.is_active:
        raise ChallengeGone
    found.factor.user = found.user
    return found


def _refuse_foreign(request: PlatformRequest, challenge: Challenge) -> None:
    """Raise ChallengeGone for a bearer token that does not belong to the challenge."""
    principal = request.principal
    if request.principal_error is not None:
        raise ChallengeGone
    if principal is None:
        return
    fits = (
        principal.user_id == challenge.user_id
        and principal.session_id == challenge.session_id
        and principal.pending_id == challenge.pending_id
    )
    if not fits:
        raise ChallengeGone


def _is_allowed_or_refuse(challenge: Challenge) -> bool:
    """True if the policy allows the method; False if it allows none of the user's methods.

    Without an allowed method the sign-in only leads to enrolling one.
    Raises FactorNotAllowed if it allows another method of the user.
    """
    if challenge.factor.method in challenge.user.organization.mfa_allowed_methods:
        return True
    if challenge.factor.method not in holdings.holdings_of(challenge.user_id).askable:
        raise FactorNotAllowed
    return False


def _complete(
    request: PlatformRequest,
    challenge: Challenge,
    answer: ChallengeAnswer,
    *,
    is_allowed: bool,
    now: datetime,
) -> SessionTokens | StageResponse | Session:
    challenge.used_at = now
    challenge.save(update_fields=["used_at"])
    if challenge.session_id is not None:
        # Locked, so that a name that another request removes from `amr` is not written again.
        rows = Session.objects.select_for_update(no_key=True)
        session: Session = rows.get(pk=challenge.session_id)
        if not session.is_live(now):
            raise ChallengeGone
        raise_assurance(session, _type_of(challenge), now=now)
        session.save(update_fields=ASSURANCE_FIELDS)
        return session
    return _sign_in(request, challenge, answer, is_allowed=is_allowed, now=now)


def _sign_in(
    request: PlatformRequest,
    challenge: Challenge,
    answer: ChallengeAnswer,
    *,
    is_allowed: bool,
    now: datetime,
) -> SessionTokens | StageResponse:
    waiting = pending.use_up(challenge.pending_id, now=now)
    factor = _type_of(challenge)
    attempt = SignInAttempt(
        challenge.user,
        waiting.environment,
        method=SignInMethod.SECOND_FACTOR,
        amr=[*waiting.amr, factor.amr, "mfa"],
        now=now,
        mfa_method=factor.name,
        mfa_is_allowed=is_allowed,
    )
    if answer.trust_device and is_allowed:
        device = devices.trust(challenge.user, answer.device_name, now=now)
        attempt.extra["device_token"] = devices.token_for(device)
        trail.record_user(
            request, TwoFactorTag.TRUSTED_DEVICE_CREATE, challenge.user, device=str(device.id)
        )
        notices.notify(challenge.user, "trusted_device_added", device=device.name)
    return finish(request, attempt)


def _type_of(challenge: Challenge) -> FactorType:
    return registry.factor_of(challenge.factor.method).type
