"""Recovery tokens sent to prove a channel: letters and digits by mail, digits by text message."""

from datetime import timedelta
from typing import Final

from common import ids
from recovery.errors import MalformedRecoveryToken
from recovery.models import Recovery
from twofactor.stored_secrets import digest, one_time_code

# Without dashes, so that a double click selects all of it.
MAIL_CHARS: Final = 26
SMS_DIGITS: Final = 8
# How long a channel's token is valid. NIST SP 800-63B-4 §4.2.1.2: at most 10 minutes by text.
LIVES: Final = {"email": timedelta(minutes=30), "sms": timedelta(minutes=10)}


def new_token(channel: str) -> str:
    """Return a token: 130 bits for a mail, eight digits for a text message."""
    return one_time_code(SMS_DIGITS) if channel == "sms" else long_token()


def long_token() -> str:
    """Return 130 bits as letters and digits."""
    return ids.random_code(MAIL_CHARS)


def canonical(token: str) -> str:
    """Return a typed token as it was issued.

    Raises MalformedRecoveryToken (400) for anything else; the error does not reveal which of both
    kinds the recovery expects.
    """
    plain = ids.typed_code(token)
    if len(plain) == SMS_DIGITS and plain.isascii() and plain.isdigit():
        return plain
    return canonical_long(token)


def canonical_long(token: str) -> str:
    """Return a typed token of the long kind. Raises MalformedRecoveryToken (400)."""
    plain = ids.typed_code(token)
    if not ids.is_code(plain, length=MAIL_CHARS):
        message = "The code from the message, letters and digits."
        raise MalformedRecoveryToken.for_field("token", message, code="malformed")
    return plain


def token_digest(recovery: Recovery, token: str) -> str:
    """Return the digest of a sent token, bound to its recovery and channel."""
    return digest("recovery token", recovery.pk, recovery.channel, token)


def cancel_digest(token: str) -> str:
    """Return the digest of a cancel token."""
    return digest("recovery cancel", token)
