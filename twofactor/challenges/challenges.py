"""Challenges: one question for one factor, for a sign-in (login) or a session (step-up)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any, Final, Protocol, cast

from django.db import transaction
from django.db.models import F

from accounts.audit import audit
from accounts.delivery import notices
from accounts.models import Session
from accounts.signin.signin import Attempt, Halted, SignedIn, Way, finish
from platform_site.lib.crypto import decrypt, encrypt
from platform_site.lib.ids import capability_id
from platform_site.lib.principals import PlatformRequest, Principal
from twofactor.challenges import challenge_rows
from twofactor.errors import (
    ChallengeGone,
    ChannelUnavailable,
    CodeRejected,
    MethodNotAllowed,
    MethodNotEnabled,
    NoSecondFactor,
)
from twofactor.factors import holdings, throttle
from twofactor.factors.holdings import AMR, Holdings
from twofactor.models import Challenge, Factor
from twofactor.sign_in import pending
from twofactor.stored_secrets import digest, seal, unseal
from twofactor.trusted_devices import devices

LIFE: Final = timedelta(minutes=10)
# Within this a repeated request gets the open challenge back, so that it sends nothing again.
COOL_DOWN: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Begun:
    """What a method has set up for a challenge.

    secret: what the answer will be compared with; kept encrypted. hint: where a code went to.
    """

    secret: str = ""
    hint: str | None = None
    delivery: str | None = None
    request_options: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a caller answers: a code, or a WebAuthn credential."""

    code: str = ""
    credential: Mapping[str, Any] = field(default_factory=dict)
    trust_device: bool = False
    device_name: str = ""


class Proof(Protocol):
    """What each method's ``proof`` module gives."""

    def begin(self, factor: Factor, challenge_id: str, *, now: datetime) -> Begun:
        """Set up a question, sending what has to be sent."""

    def check(
        self,
        factor: Factor,
        secret: str,
        answer: Answer,
        *,
        challenge_id: str,
        request: PlatformRequest,
        now: datetime,
    ) -> bool:
        """Say whether the answer is right, and if so forgive the factor's wrong ones.

        request: for the audit trail. Raises MalformedCode for what cannot be an answer.
        """


def proof_of(method: str) -> Proof:
    """Give a method's proof module."""
    return cast(Proof, import_module(f"twofactor.{method}.proof"))


def _choose(held: Holdings, wanted: str) -> Factor:
    """Give the factor to ask for: the wanted one, else the default.

    Raises NoSecondFactor, MethodNotEnabled (409), MethodNotAllowed (403).
    """
    if not held.proper:
        raise NoSecondFactor
    method = holdings.from_challenge_spelling(wanted) or held.default_method or ""
    if method not in held.factors:
        raise MethodNotEnabled
    if method not in held.askable:
        raise MethodNotAllowed
    return held.factors[method]


def create(principal: Principal, wanted: str, *, now: datetime) -> dict[str, Any]:
    """Give a challenge to a pending sign-in or, for step-up, to a session.

    wanted: a method as challenges spell it, empty for the default.
    Raises NoSecondFactor, MethodNotEnabled, MethodNotAllowed, FactorSlowed, FactorWornOut,
    ChannelUnavailable, SendingTooOften.
    """
    with transaction.atomic():
        # The factors are locked, so that two requests at once send one code.
        held = holdings.holdings_of(principal.own_id, lock=True)
        factor = _choose(held, wanted)
        throttle.refuse_slowed(factor, now)
        latest = _latest(principal, factor)
        if latest is not None and latest.is_open(now):
            if now < latest.created_at + COOL_DOWN:
                return _describe(latest, factor, held, decrypt(latest.public_id))
            Challenge.unscoped.filter(pk=latest.pk).update(expires_at=now)  # unscoped: own row
        challenge_id = capability_id()
        begun = begin(factor, challenge_id, others=held.askable, now=now)
        challenge = _save(principal, factor, challenge_id, begun, now)
    return _describe(challenge, factor, held, challenge_id)


def begin(factor: Factor, challenge_id: str, *, others: Iterable[str], now: datetime) -> Begun:
    """Set a question up.

    others: what the user can be asked for instead. Raises ChannelUnavailable (503) naming them,
    SendingTooOften (429).
    """
    try:
        return proof_of(factor.method).begin(factor, challenge_id, now=now)
    except ChannelUnavailable as exc:
        names = [holdings.spelled_in_challenges(name) for name in others if name != factor.method]
        raise ChannelUnavailable(exc.detail, extra={"methods": names}) from exc


def _latest(principal: Principal, factor: Factor) -> Challenge | None:
    rows = Challenge.unscoped.filter(  # unscoped: by a factor of the principal's own
        factor=factor, pending_id=principal.pending_id, session_id=principal.session_id
    )
    found: Challenge | None = rows.order_by("-created_at").first()
    return found


def _save(
    principal: Principal, factor: Factor, challenge_id: str, begun: Begun, now: datetime
) -> Challenge:
    kept: dict[str, Any] = {"secret": begun.secret, "hint": begun.hint, "delivery": begun.delivery}
    if begun.request_options is not None:
        kept["request_options"] = begun.request_options
    challenge = Challenge(
        digest=digest("challenge", challenge_id),
        public_id=encrypt(challenge_id),
        organization_id=principal.organization_id,
        user_id=principal.own_id,
        factor=factor,
        pending_id=principal.pending_id,
        session_id=principal.session_id,
        secret=seal(kept),
        created_at=now,
        expires_at=now + LIFE,
    )
    challenge.save(force_insert=True)
    return challenge


def _describe(
    challenge: Challenge, factor: Factor, held: Holdings, challenge_id: str
) -> dict[str, Any]:
    kept = unseal(challenge.secret)
    answer: dict[str, Any] = {
        "challenge_id": challenge_id,
        "method": holdings.spelled_in_challenges(factor.method),
        "methods": [holdings.spelled_in_challenges(method) for method in held.askable],
        "expires_at": int(challenge.expires_at.timestamp()),
        "attempts_left": challenge.attempts_left,
        "delivery_hint": kept["hint"],
    }
    if kept["delivery"]:
        answer["delivery"] = kept["delivery"]
    if "request_options" in kept:
        answer["request_options"] = kept["request_options"]
    return answer


def verify(
    request: PlatformRequest, challenge_id: str, answer: Answer, *, now: datetime
) -> SignedIn | Halted | Session:
    """Exchange a right answer for a session (login), or raise the session's assurance (step-up).

    A challenge works once. Raises MalformedCode (400, not counted), CodeRejected (401, counted),
    ChallengeGone (410: unknown, expired, used, missed five times, another's alike), FactorSlowed
    (429), FactorWornOut and MethodNotAllowed (403).
    """
    with transaction.atomic():
        challenge = challenge_rows.lock(challenge_id, now=now)
        _refuse_foreign(request, challenge)
        factor = challenge.factor
        throttle.refuse_slowed(factor, now)
        is_allowed = _is_allowed(challenge)
        proof = proof_of(factor.method)
        secret = unseal(challenge.secret)["secret"]
        if proof.check(factor, secret, answer, challenge_id=challenge_id, request=request, now=now):
            return _complete(request, challenge, answer, is_allowed=is_allowed, now=now)
        throttle.count(factor, now)
        Challenge.unscoped.filter(pk=challenge.pk).update(  # unscoped: the row just locked
            attempts_left=F("attempts_left") - 1
        )
        audit.record_user(
            request,
            "api:challenge:verify",
            challenge.user,
            outcome="refused",
            method=factor.method,
            purpose="login" if challenge.session_id is None else "step_up",
        )
    # Raised outside of the transaction, so that the count stays.
    raise CodeRejected


def _refuse_foreign(request: PlatformRequest, challenge: Challenge) -> None:
    """Hold credentials that were sent to the challenge: a header is not needed, but must fit."""
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


def _is_allowed(challenge: Challenge) -> bool:
    """Say whether the policy allows the method now.

    Raises MethodNotAllowed where the user holds another one that it does allow.
    """
    if challenge.factor.method in challenge.user.organization.mfa_allowed_methods:
        return True
    if challenge.factor.method not in holdings.holdings_of(challenge.user_id).askable:
        raise MethodNotAllowed
    return False


def _complete(
    request: PlatformRequest,
    challenge: Challenge,
    answer: Answer,
    *,
    is_allowed: bool,
    now: datetime,
) -> SignedIn | Halted | Session:
    session = challenge.session
    if session is not None:
        if not session.is_live(now):
            raise ChallengeGone
        _raise(session, challenge.factor.method, now)
        challenge_rows.use_up_for_session(challenge, session, now=now)
        return session
    return _sign_in(request, challenge, answer, is_allowed=is_allowed, now=now)


def raise_assurance(session: Session, method: str, *, now: datetime) -> None:
    """Note a second factor proven in a session."""
    _raise(session, method, now)
    session.save(update_fields=["aal", "mfa_time", "mfa_method", "amr"])


def _raise(session: Session, method: str, now: datetime) -> None:
    session.aal, session.mfa_time, session.mfa_method = 2, now, method
    session.amr = sorted({*session.amr, AMR[method], "mfa"})


def _sign_in(
    request: PlatformRequest,
    challenge: Challenge,
    answer: Answer,
    *,
    is_allowed: bool,
    now: datetime,
) -> SignedIn | Halted:
    waiting = pending.use_up(challenge.pending_id, challenge=challenge.pk, now=now)
    method = challenge.factor.method
    attempt = Attempt(
        challenge.user,
        waiting.environment,
        way=Way.SECOND_FACTOR,
        amr=[*waiting.amr, AMR[method], "mfa"],
        now=now,
        mfa_method=method,
        mfa_is_allowed=is_allowed,
    )
    if answer.trust_device and is_allowed:
        device = devices.trust(challenge.user, answer.device_name, now=now)
        attempt.extra["device_token"] = devices.token_for(device)
        audit.record_user(
            request, "api:trusted_device:create", challenge.user, device=str(device.id)
        )
        notices.notify(challenge.user, "trusted_device_added", device=device.name)
    return finish(request, attempt)
