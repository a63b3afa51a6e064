"""Verification of mailed codes: six digits, bound to their challenge."""

from datetime import datetime

from common.crypto import decrypt, encrypt
from common.emails import folded
from twofactor import sent_codes
from twofactor.email.enrolment import hint_of, send
from twofactor.factors.contract import Question
from twofactor.models import Factor
from twofactor.sent_codes import CodeOwner
from twofactor.stored_secrets import one_time_code


def begin(factor: Factor, challenge_id: str, *, now: datetime) -> Question:
    """Mail a code to the account's verified address, else to the factor's address.

    Raises SendingTooOften (429).
    """
    address = _update_address(factor)
    owner = CodeOwner(factor.organization_id, factor.user_id)
    sent_codes.check_rate_limit("email", address, owner, now=now)
    code = one_time_code()
    send(address, code, purpose="to sign in", owner=owner, now=now)
    kept = sent_codes.challenge_digest(factor, challenge_id, code)
    return Question(secret=kept, hint=factor.hint, delivery="queued")


def _update_address(factor: Factor) -> str:
    """Update the factor's address to the account's verified address, and return it."""
    kept, own = decrypt(factor.secret), factor.user.email
    if factor.user.email_verified_at is None or folded(kept) == folded(own):
        return kept
    factor.secret, factor.hint = encrypt(own), hint_of(own)
    factor.save(update_fields=["secret", "hint"])
    return own


check = sent_codes.check
