"""A second factor proven on the way through a recovery, never over the recovery's own channel.

Twofactor's challenges end in a session; these end in nothing but a yes, given inside of the
transaction that needs it. The proofs and the throttle of each factor are twofactor's own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import F

from accounts.audit import audit
from platform_site.lib.crypto import decrypt, encrypt
from platform_site.lib.ids import capability_id
from platform_site.lib.principals import PlatformRequest
from recovery import recoveries, reset_tokens
from recovery.errors import NoIndependentFactor, RecoveryChallengeRequired, RecoveryGone
from recovery.models import Purpose, Recovery, RecoveryChallenge
from twofactor.challenges.challenges import COOL_DOWN, LIFE, Answer, begin, proof_of
from twofactor.errors import ChallengeGone, MethodNotEnabled
from twofactor.factors import holdings, throttle
from twofactor.factors.holdings import Holdings
from twofactor.models import Factor
from twofactor.stored_secrets import digest, seal, unseal

# What replaces the password where the second factor is what was lost.
FIRST_FACTORS: Final = ("webauthn",)


@dataclass(frozen=True, slots=True)
class Given:
    """What a caller answers to which challenge; no id for none."""

    challenge_id: str
    answer: Answer


def offered(recovery: Recovery, held: Holdings) -> list[str]:
    """Give the methods that count for a recovery, in the order they are offered."""
    independent = [method for method in held.askable if method != recovery.channel]
    if recovery.purpose == Purpose.SECOND_FACTOR:
        return [method for method in independent if method in FIRST_FACTORS]
    return independent if held.proper else []


def spelled(names: Sequence[str]) -> list[str]:
    """Give methods as challenges spell them."""
    return [holdings.spelled_in_challenges(name) for name in names]


def create(reset_token: str, wanted: str, *, now: datetime) -> dict[str, Any]:
    """Give a challenge for a recovery; asked again within 30 seconds it is the same one.

    wanted: a method as challenges spell it, empty for the first that is offered.
    Raises RecoveryGone (410), NoIndependentFactor and MethodNotEnabled (409), FactorSlowed and
    SendingTooOften (429), FactorWornOut (403), ChannelUnavailable (503).
    """
    pointer = reset_tokens.read(reset_token, now=now)
    with transaction.atomic():
        recovery = recoveries.lock_by_pointer(pointer, now=now)
        holder = recoveries.lock_holder(recovery)
        if recovery.proven_at is not None:
            raise RecoveryGone
        factor = _choose(recovery, holder.held, wanted)
        throttle.refuse_slowed(factor, now)
        latest = _latest(recovery, factor)
        if latest is not None and latest.is_open(now):
            if now < latest.created_at + COOL_DOWN:
                challenge_id = decrypt(latest.public_id)
                return _describe(recovery, holder.held, latest, challenge_id=challenge_id)
            latest.delete()
        challenge_id = capability_id()
        others = offered(recovery, holder.held)
        challenge = _begin(recovery, factor, challenge_id, others=others, now=now)
        return _describe(recovery, holder.held, challenge, challenge_id=challenge_id)


def _choose(recovery: Recovery, held: Holdings, wanted: str) -> Factor:
    names = offered(recovery, held)
    if not names:
        raise NoIndependentFactor
    method = holdings.from_challenge_spelling(wanted) or names[0]
    if method not in names:
        raise MethodNotEnabled("This method does not count for this recovery.")
    return held.factors[method]


def _latest(recovery: Recovery, factor: Factor) -> RecoveryChallenge | None:
    mine = RecoveryChallenge.unscoped.filter(  # unscoped: by a locked row
        recovery=recovery, factor=factor
    )
    found: RecoveryChallenge | None = mine.order_by("-created_at").first()
    return found


def _begin(
    recovery: Recovery,
    factor: Factor,
    challenge_id: str,
    *,
    others: Iterable[str],
    now: datetime,
) -> RecoveryChallenge:
    begun = begin(factor, challenge_id, others=others, now=now)
    kept: dict[str, Any] = {"secret": begun.secret, "hint": begun.hint, "delivery": begun.delivery}
    if begun.request_options is not None:
        kept["request_options"] = begun.request_options
    challenge = RecoveryChallenge(
        digest=_digest(challenge_id),
        public_id=encrypt(challenge_id),
        organization_id=factor.organization_id,
        recovery=recovery,
        factor=factor,
        secret=seal(kept),
        created_at=now,
        expires_at=now + LIFE,
    )
    challenge.save(force_insert=True)
    return challenge


def _digest(challenge_id: str) -> str:
    return digest("recovery challenge", challenge_id)


def _describe(
    recovery: Recovery, held: Holdings, challenge: RecoveryChallenge, *, challenge_id: str
) -> dict[str, Any]:
    kept = unseal(challenge.secret)
    answer: dict[str, Any] = {
        "challenge_id": challenge_id,
        "method": holdings.spelled_in_challenges(challenge.factor.method),
        "methods": spelled(offered(recovery, held)),
        "expires_at": int(challenge.expires_at.timestamp()),
        "attempts_left": challenge.attempts_left,
        "delivery_hint": kept["hint"],
    }
    if kept["delivery"]:
        answer["delivery"] = kept["delivery"]
    if "request_options" in kept:
        answer["request_options"] = kept["request_options"]
    return answer


def is_proven(
    request: PlatformRequest, recovery: Recovery, held: Holdings, given: Given, *, now: datetime
) -> str:
    """Give the method that was proven, '' for a wrong answer, which is counted.

    Call inside the transaction that holds the locks; raise CodeRejected once it is through.
    Raises RecoveryChallengeRequired (403) and NoIndependentFactor (409) for no answer,
    ChallengeGone (410: unknown, expired, used, missed five times, another recovery's),
    MalformedCode (400, not counted), FactorSlowed (429), FactorWornOut (403).
    """
    names = offered(recovery, held)
    if not names:
        raise NoIndependentFactor
    if not given.challenge_id:
        raise RecoveryChallengeRequired(extra={"methods": spelled(names)})
    challenge = _lock(recovery, given.challenge_id, now)
    factor = next((held.factors[name] for name in names if _is_of(challenge, held, name)), None)
    if factor is None:
        raise ChallengeGone
    throttle.refuse_slowed(factor, now)
    secret = unseal(challenge.secret)["secret"]
    proof = proof_of(factor.method)
    if proof.check(
        factor, secret, given.answer, challenge_id=given.challenge_id, request=request, now=now
    ):
        challenge.delete()
        return factor.method
    throttle.count(factor, now)
    mine = RecoveryChallenge.unscoped.filter(pk=challenge.pk)  # unscoped: the row just locked
    mine.update(attempts_left=F("attempts_left") - 1)
    audit.record_user(
        request,
        "api:challenge:verify",
        factor.user,
        outcome="refused",
        method=factor.method,
        purpose="recovery",
    )
    return ""


def _is_of(challenge: RecoveryChallenge, held: Holdings, name: str) -> bool:
    return held.factors[name].pk == challenge.factor_id


def _lock(recovery: Recovery, challenge_id: str, now: datetime) -> RecoveryChallenge:
    rows = RecoveryChallenge.unscoped.select_for_update()  # unscoped: by a capability
    found: RecoveryChallenge | None = rows.filter(
        pk=_digest(challenge_id), recovery=recovery
    ).first()
    if found is None or not found.is_open(now):
        raise ChallengeGone
    return found
