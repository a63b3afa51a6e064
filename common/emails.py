"""E-mail addresses: validated, compared and masked; phone numbers masked.

A masked recipient is recognizable to its owner only.
"""

from email.errors import HeaderParseError
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail.message import sanitize_address
from django.core.validators import validate_email
from rest_framework import serializers

MAX_EMAIL_CHARS: Final = 254
MAX_LOCAL_CHARS: Final = 64


def is_address(text: str) -> bool:
    """True if a text is an e-mail address, spelled as it is mailed to, that fits its column."""
    try:
        validate_email(text)
    except ValidationError:
        return False
    return len(text) <= MAX_EMAIL_CHARS and is_mailed_as_written(text)


def is_mailed_as_written(address: str) -> bool:
    """True if mail to a valid address goes to the mailbox that is written, and to no other.

    Otherwise one mailbox would have any number of spellings, each with its own account and limits.
    """
    local, _, domain = address.rpartition("@")
    return _has_plain_domain(domain) and _has_plain_local_part(local, address)


def _has_plain_domain(domain: str) -> bool:
    """True if mail goes to the domain that is written.

    Mail is sent to the ASCII form of a domain. Fullwidth letters, soft hyphens and the like vanish
    in it, and ``ß`` becomes ``ss``, another owner's domain. An IP address in brackets could be one
    of the mail relay's own network, and ``localhost`` is the relay itself.
    """
    if settings.IS_PRODUCTION and domain.lower() == "localhost":
        return False
    return domain.isascii() and not domain.startswith("[")


def _has_plain_local_part(local: str, address: str) -> bool:
    """True if the mail library sends to the local part that is written.

    The library decodes encoded words (RFC 2047), which an address must not contain, to another
    address or to a line break, and omits quotation marks that are not needed.
    Source of the length: RFC 5321 §4.5.3.1.1.
    """
    is_plain = local.isascii() and local.isprintable() and '"' not in local
    if not is_plain or len(local) > MAX_LOCAL_CHARS:
        return False
    try:
        return sanitize_address(address, "utf-8") == address
    except (ValueError, LookupError, HeaderParseError):
        return False


class AddressField(serializers.EmailField):
    """An address that mail will be sent to."""

    default_error_messages = {
        "domain": "The domain in letters, digits and dashes; write others in its xn-- form.",
        "local_part": f"At most {MAX_LOCAL_CHARS} characters before the @, without quotation marks "
        "and encoded words.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_EMAIL_CHARS, **options)

    def to_internal_value(self, data: Any) -> str:
        """Return the address. Raises ValidationError: codes ``domain``, ``local_part``."""
        text: str = super().to_internal_value(data)
        local, at, domain = text.rpartition("@")
        # What is no address at all has its own error.
        if at and not _has_plain_domain(domain):
            self.fail("domain")
        if at and not _has_plain_local_part(local, text):
            self.fail("local_part")
        return text


def folded(email: str) -> str:
    """Return an address for comparing and rate limits: trimmed, A to Z in lower case.

    Other letters are unchanged: by Unicode's rules a dotless i and a long s have the capitals of
    ``i`` and ``s``, so that the mailboxes of two people would count as one (a domain with a dotless
    i is another domain), and each spelling would give an attacker another counter.
    """
    return email.strip().encode(errors="replace").lower().decode()


def mask_email(address: str) -> str:
    """Return ``a***@example.com``, no longer than an address."""
    local, _, domain = address.rpartition("@")
    # Masking lengthens a local part of one character by three; a very long domain is cut.
    return f"{local[:1]}***@{domain}"[:MAX_EMAIL_CHARS]


def mask_phone(number: str) -> str:
    """Return ``***78``: the last two digits."""
    return f"***{number[-2:]}"
