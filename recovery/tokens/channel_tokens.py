"""What is sent to prove a channel: tokens by mail, digits by text message."""

import secrets
from datetime import timedelta
from typing import Final

from recovery.errors import MalformedRecoveryToken
from recovery.models import Recovery
from twofactor.stored_secrets import digest, one_time_code

# Crockford's base32, as in backup codes: survives being read aloud, and a double click takes all.
ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
MAIL_CHARS: Final = 26
SMS_DIGITS: Final = 8
# As people type them; what of it is a token is decided by ``canonical``.
MAIL_PATTERN: Final = rf"[\s-]*([0-9A-Za-z][\s-]*){{{MAIL_CHARS}}}"
SMS_PATTERN: Final = rf"[\s-]*([0-9][\s-]*){{{SMS_DIGITS}}}"
# How long a channel's token is good. NIST SP 800-63B-4 §4.2.1.2: at most 10 minutes by text.
LIVES: Final = {"email": timedelta(minutes=30), "sms": timedelta(minutes=10)}


def new_token(channel: str) -> str:
    """Return a token: 130 bits for a mail, eight digits for a text message."""
    return one_time_code(SMS_DIGITS) if channel == "sms" else long_token()


def long_token() -> str:
    """Return 130 bits as letters and digits."""
    return "".join(secrets.choice(ALPHABET) for _ in range(MAIL_CHARS))


def canonical(token: str) -> str:
    """Return a typed token in capitals, without its blanks and dashes.

    Raises MalformedRecoveryToken (400) for what is neither kind of token, without revealing which
    kind the recovery expects.
    """
    plain = "".join(token.split()).replace("-", "").upper()
    if len(plain) == SMS_DIGITS and plain.isascii() and plain.isdigit():
        return plain
    return canonical_long(token)


def canonical_long(token: str) -> str:
    """Return a typed token of the long kind. Raises MalformedRecoveryToken (400)."""
    plain = "".join(token.split()).replace("-", "").upper()
    if len(plain) != MAIL_CHARS or not set(plain) <= set(ALPHABET):
        message = "The code from the message, letters and digits."
        raise MalformedRecoveryToken.for_field("token", message, code="malformed")
    return plain


def token_digest(recovery: Recovery, token: str) -> str:
    """Return what is kept of a sent token: bound to its recovery and channel, it fits no other."""
    return digest("recovery token", recovery.pk, recovery.channel, token)


def cancel_digest(token: str) -> str:
    """Return what is kept of a cancel token."""
    return digest("recovery cancel", token)
