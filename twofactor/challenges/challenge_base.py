"""The common part of all challenges: those of sign-ins, step-ups and recoveries.

A challenge is a request to prove one factor: it is valid for ten minutes, five attempts and one
correct answer; an answer to another challenge is wrong. The caller decides what a correct answer
leads to.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import F
from prometheus_client import Counter

from audit import trail
from common.crypto import decrypt, encrypt
from common.ids import capability_id
from common.principals import PlatformRequest
from twofactor import registry
from twofactor.audit_tags import TwoFactorTag
from twofactor.errors import ChannelUnavailable
from twofactor.factors import throttle
from twofactor.factors.contract import CHALLENGE_LIFE, ChallengeAnswer, Question
from twofactor.models import ChallengeModel, Factor
from twofactor.stored_secrets import digest, seal, unseal

# Within this time a repeated request returns the open challenge, and sends nothing again.
COOL_DOWN: Final = timedelta(seconds=30)
ANSWERS: Final = Counter(
    "zonal_second_factor_answers_total",
    "Answers to challenges, by factor, purpose (login, step_up, recovery) and whether right.",
    ["method", "purpose", "outcome"],
)


def digest_of(model: type[ChallengeModel], challenge_id: str) -> str:
    """Return the primary key of the challenge with an id; it differs between models."""
    return digest(model.DIGEST_PURPOSE, challenge_id)


def id_to_repeat(latest: ChallengeModel | None, now: datetime) -> str:
    """Return the id of a challenge that was opened recently; '' if a new one is needed."""
    if latest is None or not latest.is_open(now) or now >= latest.created_at + COOL_DOWN:
        return ""
    return decrypt(latest.public_id)


def open_challenge(
    challenge: ChallengeModel, factor: Factor, *, others: Iterable[str], now: datetime
) -> str:
    """Open a challenge: complete a new row, save it and return its id, a capability.

    others: the user's other methods. Raises ChannelUnavailable (503) naming them, SendingTooOften
    (429).
    """
    challenge_id = capability_id()
    question = _ask(factor, challenge_id, others, now)
    kept: dict[str, Any] = {
        "secret": question.secret,
        "hint": question.hint,
        "delivery": question.delivery,
    }
    if question.request_options is not None:
        kept["request_options"] = question.request_options
    challenge.digest = digest_of(type(challenge), challenge_id)
    challenge.public_id = encrypt(challenge_id)
    challenge.organization_id = factor.organization_id
    challenge.factor = factor
    challenge.secret = seal(kept)
    challenge.created_at, challenge.expires_at = now, now + CHALLENGE_LIFE
    challenge.save(force_insert=True)
    return challenge_id


def _ask(factor: Factor, challenge_id: str, others: Iterable[str], now: datetime) -> Question:
    try:
        return registry.factor_of(factor.method).proof.begin(factor, challenge_id, now=now)
    except ChannelUnavailable as exc:
        names = registry.challenge_names(name for name in others if name != factor.method)
        raise ChannelUnavailable(exc.detail, extra={"methods": names}) from exc


def describe(
    challenge: ChallengeModel, factor: Factor, challenge_id: str, *, offered: Sequence[str]
) -> dict[str, Any]:
    """Return the fields of ChallengeSerializer. offered: the methods that can be used."""
    kept = unseal(challenge.secret)
    answer: dict[str, Any] = {
        "challenge_id": challenge_id,
        "method": registry.factor_of(factor.method).type.challenge_name,
        "methods": registry.challenge_names(offered),
        "expires_at": int(challenge.expires_at.timestamp()),
        "attempts_left": challenge.attempts_left,
        "delivery_hint": kept["hint"],
    }
    if kept["delivery"]:
        answer["delivery"] = kept["delivery"]
    if "request_options" in kept:
        answer["request_options"] = kept["request_options"]
    return answer


def is_right(
    request: PlatformRequest,
    challenge: ChallengeModel,
    answer: ChallengeAnswer,
    *,
    challenge_id: str,
    purpose: str,
    now: datetime,
) -> bool:
    """True if an answer proves the challenge's factor; a wrong one is counted and audited.

    Call inside the transaction that holds the locks of challenge and factor, and raise CodeRejected
    after it, so that the attempt stays counted. A correct answer does not use the challenge up.
    Raises FactorSlowed (429) and FactorWornOut (403) before the check, MalformedCode (400, not
    counted).
    """
    factor = challenge.factor
    throttle.refuse_throttled(factor, now)
    proof = registry.factor_of(factor.method).proof
    secret = unseal(challenge.secret)["secret"]
    if proof.check(factor, secret, answer, challenge_id=challenge_id, request=request, now=now):
        ANSWERS.labels(factor.method, purpose, "right").inc()
        return True
    ANSWERS.labels(factor.method, purpose, "wrong").inc()
    throttle.count(factor, now)
    mine = type(challenge).objects.filter(pk=challenge.pk)
    mine.update(attempts_left=F("attempts_left") - 1)
    trail.record_user(
        request,
        TwoFactorTag.CHALLENGE_VERIFY,
        factor.user,
        outcome="refused",
        method=factor.method,
        purpose=purpose,
    )
    return False
