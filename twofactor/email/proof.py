"""E-mails as proof: six digits, bound to their challenge."""

from datetime import datetime

from platform_site.lib.crypto import decrypt
from twofactor import sending, throttle
from twofactor.capabilities import one_time_code
from twofactor.challenges import Answer, Begun
from twofactor.email.enrolment import send
from twofactor.models import Factor
from twofactor.sending import Owner


def begin(factor: Factor, challenge_id: str, *, now: datetime) -> Begun:
    """Mail a code to the address that was proven when the factor was set up.

    Raises SendingTooOften (429).
    """
    address = decrypt(factor.secret)
    sending.refuse_flood("email", address, factor.organization_id, now=now)
    code = one_time_code()
    owner = Owner(factor.organization_id, factor.user_id)
    send(address, code, purpose="to sign in", owner=owner, now=now)
    kept = sending.code_digest(challenge_id, code)
    return Begun(secret=kept, hint=factor.hint, delivery="queued")


def check(factor: Factor, secret: str, answer: Answer, *, challenge_id: str, now: datetime) -> bool:
    """Compare the code with the one that was mailed for this challenge.

    Raises MalformedCode.
    """
    if not sending.is_right(challenge_id, secret, answer.code):
        return False
    throttle.forgive(factor, now)
    return True
