"""Versions of what the API returns: a response's ETag, and the If-Match of a change (RFC 9110).

A version consists of the values that a change can set: a member's sign-in or the progress of a copy
does not change it. It has a digest for each value, so that a comparison names those that differ.
"""

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

from common.errors import ChangedSinceRead, FieldError, InvalidRequest

HEADER: Final = "If-Match"
# A change on one of these conditions must not be made without it.
CONDITIONS: Final = (HEADER, "If-None-Match", "If-Unmodified-Since")
ANY: Final = "*"
WEAK: Final = "W/"
# RFC 9110 §8.8.3, as a list with empty elements (§5.6.1.2).
ENTITY_TAGS: Final = re.compile(r'(?:(?:W/)?"[^\x00-\x20"\x7f]*"(?:[ \t]*,[ \t,]*|\Z))+')
ENTITY_TAG: Final = re.compile(r'(?:W/)?"[^"]*"')
# 2**48 attempts for two values of the same digest.
DIGEST_BYTES: Final = 12
DIGEST_CHARS: Final = 2 * DIGEST_BYTES
# A longer value is not repeated in a problem document.
MAX_SHOWN_CHARS: Final = 200


def etag_of(values: Mapping[str, Any]) -> str:
    """Return the strong ETag of values that JSON can hold."""
    return f'"{"".join(_digests(values).values())}"'


def require_match(given: str, values: Mapping[str, Any]) -> bool:
    """Compare the header If-Match with the present values; return False for ``*``, which any match.

    Raises ChangedSinceRead (409), which names the values that differ; InvalidRequest (400) for a
    malformed header, and for a weak ETag, which never matches (§13.1.1).
    """
    text = given.strip(" \t,")
    if text == ANY:
        return False
    if not ENTITY_TAGS.fullmatch(text):
        message = "An ETag in double quotes, as a response has it, or *."
        raise InvalidRequest.for_field(HEADER, message, code="malformed")
    tags = ENTITY_TAG.findall(text)
    if any(tag.startswith(WEAK) for tag in tags):
        message = "A weak ETag never matches. Read the resource again, and send its ETag."
        raise InvalidRequest.for_field(HEADER, message, code="weak")
    if etag_of(values) not in tags:
        raise _changed(tags[-1].strip('"'), values)
    return True


def _digests(values: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: blake2b(
            orjson.dumps([name, values[name]], default=str), digest_size=DIGEST_BYTES
        ).hexdigest()
        for name in sorted(values)
    }


def _changed(read: str, values: Mapping[str, Any]) -> ChangedSinceRead:
    """Return the error, with the values that differ from the version that was read."""
    if len(read) != DIGEST_CHARS * len(values):
        return ChangedSinceRead("This ETag is of no version of it. Read it again.")
    changed = [
        FieldError(name, "changed", _sentence(values[name]))
        for index, (name, digest) in enumerate(_digests(values).items())
        if digest != read[index * DIGEST_CHARS :][:DIGEST_CHARS]
    ]
    return ChangedSinceRead("Read it again, and repeat your change.", fields=changed)


def _sentence(value: Any) -> str:
    text = orjson.dumps(value, default=str).decode()
    return f"It is now {text}." if len(text) <= MAX_SHOWN_CHARS else "It has another value now."
