"""Validating and comparing e-mail addresses."""

from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from rest_framework import serializers

MAX_EMAIL_CHARS: Final = 254


def is_address(text: str) -> bool:
    """True if a text is an e-mail address, spelled as it is mailed to, that fits its column."""
    try:
        validate_email(text)
    except ValidationError:
        return False
    return len(text) <= MAX_EMAIL_CHARS and is_mailed_as_written(text)


def is_mailed_as_written(address: str) -> bool:
    """True if mail to an address goes to the domain that is written.

    Mail is sent to the ASCII form of a domain. Fullwidth letters, soft hyphens and the like vanish
    in it, so that one mailbox would have any number of spellings, each with its own account and
    limits; and ``ß`` becomes ``ss``, another owner's domain. An IP address in brackets could be one
    of the mail relay's own network. Control characters are allowed in a quoted local part only.
    """
    domain = address.rpartition("@")[2]
    return address.isascii() and address.isprintable() and not domain.startswith("[")


class AddressField(serializers.EmailField):
    """An address that mail will be sent to."""

    default_error_messages = {
        "domain": "The domain in letters, digits and dashes; write others in its xn-- form."
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_EMAIL_CHARS, **options)

    def to_internal_value(self, data: Any) -> str:
        """Return the address. Raises ValidationError, with the code ``domain``."""
        text: str = super().to_internal_value(data)
        # What is no address at all has its own error.
        if "@" in text and not is_mailed_as_written(text):
            self.fail("domain")
        return text


def folded(email: str) -> str:
    """Return an address for comparing and rate limits: trimmed, A to Z in lower case.

    Other letters are unchanged: by Unicode's rules a dotless i and a long s have the capitals of
    ``i`` and ``s``, so that the mailboxes of two people would count as one (a domain with a dotless
    i is another domain), and each spelling would give an attacker another counter.
    """
    return email.strip().encode(errors="replace").lower().decode()
