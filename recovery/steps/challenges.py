"""Challenges for a second factor during a recovery, never over the recovery's own channel.

They work like those of twofactor, but a correct answer opens no session: the transaction that needs
the proof continues.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from common.principals import PlatformRequest
from recovery import recovery_rows
from recovery.errors import NoIndependentFactor, RecoveryChallengeRequired, RecoveryGone
from recovery.models import Purpose, Recovery, RecoveryChallenge
from recovery.tokens import reset_tokens
from twofactor import registry
from twofactor.challenges import challenge_base
from twofactor.errors import ChallengeGone, MethodNotEnabled
from twofactor.factors import throttle
from twofactor.factors.contract import ChallengeAnswer
from twofactor.factors.holdings import Holdings
from twofactor.models import Factor

# Replaces the password if the second factor was lost.
FIRST_FACTORS: Final = ("webauthn",)


@dataclass(frozen=True, slots=True)
class FactorProof:
    """An answer to a challenge; an empty id means no answer."""

    challenge_id: str
    answer: ChallengeAnswer


def offered(recovery: Recovery, user_holdings: Holdings) -> list[str]:
    """Return the methods that a recovery accepts, in the order they are offered."""
    independent = [method for method in user_holdings.askable if method != recovery.channel]
    if recovery.purpose == Purpose.SECOND_FACTOR:
        return [method for method in independent if method in FIRST_FACTORS]
    return independent if user_holdings.proper else []


def create(reset_token: str, wanted: str, *, now: datetime) -> dict[str, Any]:
    """Return a challenge for a recovery; the same one for a repeated request within 30 seconds.

    wanted: a method's name in challenges, '' for the first one.
    Raises RecoveryGone (410), NoIndependentFactor and MethodNotEnabled (409), FactorSlowed and
    SendingTooOften (429), FactorWornOut (403), ChannelUnavailable (503).
    """
    pointer = reset_tokens.read(reset_token, now=now)
    with transaction.atomic():
        recovery = recovery_rows.lock_by_pointer(pointer, now=now)
        holder = recovery_rows.lock_holder(recovery)
        if recovery.proven_at is not None:
            raise RecoveryGone
        factor = _choose(recovery, holder.holdings, wanted)
        throttle.refuse_throttled(factor, now)
        names = offered(recovery, holder.holdings)
        latest = _latest(recovery, factor)
        if latest is not None:
            repeated = challenge_base.id_to_repeat(latest, now)
            if repeated:
                return challenge_base.describe(latest, factor, repeated, offered=names)
            if latest.is_open(now):
                latest.delete()
        challenge = RecoveryChallenge(recovery=recovery)
        challenge_id = challenge_base.open_challenge(challenge, factor, others=names, now=now)
        return challenge_base.describe(challenge, factor, challenge_id, offered=names)


def _choose(recovery: Recovery, user_holdings: Holdings, wanted: str) -> Factor:
    names = offered(recovery, user_holdings)
    if not names:
        raise NoIndependentFactor
    method = registry.name_in_challenges(wanted) or names[0]
    if method not in names:
        raise MethodNotEnabled("This method does not count for this recovery.")
    return user_holdings.factors[method]


def _latest(recovery: Recovery, factor: Factor) -> RecoveryChallenge | None:
    mine = RecoveryChallenge.objects.filter(recovery=recovery, factor=factor)
    found: RecoveryChallenge | None = mine.order_by("-created_at").first()
    return found


def is_proven(
    request: PlatformRequest,
    recovery: Recovery,
    user_holdings: Holdings,
    given: FactorProof,
    *,
    now: datetime,
) -> str:
    """Return the proven method; '' for a wrong answer, which is counted.

    Call inside the transaction that holds the locks; raise CodeRejected after it.
    Raises RecoveryChallengeRequired (403) and NoIndependentFactor (409) for no answer,
    ChallengeGone (410: unknown, expired, used, failed five times, another recovery's),
    MalformedCode (400, not counted), FactorSlowed (429), FactorWornOut (403).
    """
    names = offered(recovery, user_holdings)
    if not names:
        raise NoIndependentFactor
    if not given.challenge_id:
        raise RecoveryChallengeRequired(extra={"methods": registry.challenge_names(names)})
    challenge = _lock(recovery, given.challenge_id, now)
    factor = next(
        (user_holdings.factors[name] for name in names if _is_of(challenge, user_holdings, name)),
        None,
    )
    if factor is None:
        raise ChallengeGone
    challenge.factor = factor
    if not challenge_base.is_right(
        request,
        challenge,
        given.answer,
        challenge_id=given.challenge_id,
        purpose="recovery",
        now=now,
    ):
        return ""
    challenge.delete()
    return factor.method


def _is_of(challenge: RecoveryChallenge, user_holdings: Holdings, name: str) -> bool:
    return user_holdings.factors[name].pk == challenge.factor_id


def _lock(recovery: Recovery, challenge_id: str, now: datetime) -> RecoveryChallenge:
    rows = RecoveryChallenge.objects.select_for_update()
    found: RecoveryChallenge | None = rows.filter(
        pk=challenge_base.digest_of(RecoveryChallenge, challenge_id), recovery=recovery
    ).first()
    if found is None or not found.is_open(now):
        raise ChallengeGone
    return found
