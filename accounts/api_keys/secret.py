"""The text of an API key: ``zk_live_`` or ``zk_test_``, 256 random bits, a checksum.

The prefix and the checksum let a scanner of source code recognize a leaked key with certainty, and
allow to reject a mistyped one without a query.
"""

import hashlib
import re
import secrets
import string
import zlib
from typing import Final

MARK: Final = "zk_"
ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
# 62 to the power of 43 exceeds 2 to the power of 256.
BODY_CHARS: Final = 43
CHECKSUM_CHARS: Final = 6
HINT_CHARS: Final = 4
SHAPE: Final = re.compile(
    rf"(zk_(?:live|test)_[0-9A-Za-z]{{{BODY_CHARS}}})([0-9A-Za-z]{{{CHECKSUM_CHARS}}})"
)


def new(environment_id: str) -> str:
    """Return a new key; its prefix distinguishes keys of ``live`` from all others."""
    prefix = f"{MARK}{'live' if environment_id == 'live' else 'test'}_"
    body = prefix + _base62(secrets.randbits(256), BODY_CHARS)
    return body + _checksum(body)


def is_well_formed(key: str) -> bool:
    """True if the checksum fits."""
    found = SHAPE.fullmatch(key)
    return found is not None and _checksum(found[1]) == found[2]


def digest(key: str) -> str:
    """Return the digest that is stored; 256 random bits need no slow hash."""
    return hashlib.sha256(key.encode()).hexdigest()


def hint(key: str) -> str:
    """Return the last random characters, for people to recognize a key by."""
    return key[-CHECKSUM_CHARS - HINT_CHARS : -CHECKSUM_CHARS]


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), CHECKSUM_CHARS)


def _base62(number: int, chars: int) -> str:
    digits = []
    for _ in range(chars):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
