"""Verification of texted codes: six digits, bound to their challenge."""

from datetime import datetime

from common.crypto import decrypt
from outbox.messages import queue
from twofactor import sent_codes
from twofactor.errors import ChannelUnavailable
from twofactor.factors.contract import Question
from twofactor.models import Factor
from twofactor.sent_codes import CodeOwner
from twofactor.sms.enrolment import is_of_allowed_country, message, refuse_unconfigured
from twofactor.stored_secrets import one_time_code


def begin(factor: Factor, challenge_id: str, *, now: datetime) -> Question:
    """Send a code to the number. Raises ChannelUnavailable (503), SendingTooOften (429)."""
    refuse_unconfigured()
    number = decrypt(factor.secret)
    if not is_of_allowed_country(number):
        raise ChannelUnavailable("No codes are sent to numbers of this country.")
    owner = CodeOwner(factor.organization_id, factor.user_id)
    sent_codes.check_rate_limit("sms", number, owner, now=now)
    code = one_time_code()
    queue.send_sms(
        number,
        message(code),
        organization_id=factor.organization_id,
        user_id=factor.user_id,
        expires_at=now + sent_codes.LIFE,
    )
    kept = sent_codes.challenge_digest(factor, challenge_id, code)
    return Question(secret=kept, hint=factor.hint, delivery="queued")


check = sent_codes.check
