"""TOTP codes (RFC 6238): SHA-1, 30 seconds, six digits, one step of drift, each step once."""

from base64 import b32decode
from datetime import datetime
from typing import Final

from django_otp.oath import hotp

from common.crypto import decrypt
from common.principals import PlatformRequest
from twofactor.factors import throttle
from twofactor.factors.contract import ChallengeAnswer, Question
from twofactor.models import Factor
from twofactor.one_time_codes import six_digits
from twofactor.stored_secrets import is_same

STEP_S: Final = 30
DRIFT: Final = (0, -1, 1)


def begin(factor: Factor, challenge_id: str, *, now: datetime) -> Question:
    """Prepare nothing: the app knows the code."""
    return Question()


def check(
    factor: Factor,
    secret: str,
    answer: ChallengeAnswer,
    *,
    challenge_id: str,
    request: PlatformRequest,
    now: datetime,
) -> bool:
    """Accept a code whose time step was not used before, for any purpose (RFC 6238 §5.2).

    Raises MalformedCode.
    """
    step = matching_step(decrypt(factor.secret), answer.code, now=now)
    if step is None:
        return False
    # One conditional statement, so that of two requests with the same code one succeeds.
    unused = Factor.objects.filter(pk=factor.pk, last_step__lt=step)
    return unused.update(last_step=step, **throttle.forgiven(now)) == 1


def matching_step(seed: str, code: str, *, now: datetime) -> int | None:
    """Return the time step of a code: the current one, the previous or the next; None for others.

    seed: base32. Raises MalformedCode.
    """
    digits = six_digits(code)
    key = b32decode(seed)
    current = int(now.timestamp()) // STEP_S
    found = None
    for drift in DRIFT:
        # TOTP is HOTP over the time step (RFC 6238 §4.2), here with the caller's clock.
        expected = hotp(key, current + drift)
        # No early return: the time taken must not reveal which step matched.
        if is_same(f"{expected:06d}", digits) and found is None:
            found = current + drift
    return found
