"""Passwords: Argon2id, one hash per check, few concurrently."""

import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from django.contrib.auth.hashers import Argon2PasswordHasher, check_password, make_password
from django.contrib.auth.password_validation import CommonPasswordValidator
from django.core.exceptions import ValidationError

from accounts.errors import HashingBusy, InvalidCredentials
from accounts.models import User
from common.errors import InvalidRequest
from common.fair_limiter import FairLimiter
from common.web import client_presence

MIN_CHARS: Final = 8
MAX_CHARS: Final = 256
# In one process.
CONCURRENT_HASHES: Final = 2
# Longer waits would only queue requests whose clients have given up.
WAIT_S: Final = 5.0
# Requests that wait to compute a hash in one process; further ones are refused.
HASHING_QUEUE: Final = 8

log = structlog.get_logger(__name__)
_slots = threading.BoundedSemaphore(CONCURRENT_HASHES)
# Of the requests that compute or wait, one organization, or one network of anonymous clients, has
# about half at most: otherwise it could keep all others from signing in, for example by changing
# its own password all the time.
_hashing_slots = FairLimiter(CONCURRENT_HASHES + HASHING_QUEUE)
_common = CommonPasswordValidator()


class TunedArgon2Hasher(Argon2PasswordHasher):
    """Argon2id with OWASP's cost; a changed cost is applied at the next correct password.

    Source: OWASP Password Storage Cheat Sheet, "Argon2id".
    """

    time_cost = 2
    # KiB
    memory_cost = 19_456
    parallelism = 1


@contextmanager
def _slot() -> Iterator[None]:
    """Wait for a slot: each hash takes ~19 MiB and a core, so a burst must queue.

    The queue is limited as well, because each waiting request holds a thread of the web server.
    """
    client = client_presence.share_key()
    if not _hashing_slots.try_take(client):
        raise HashingBusy(retry_after_s=1)
    try:
        if not _slots.acquire(timeout=WAIT_S):
            raise HashingBusy(retry_after_s=1)
        try:
            yield
        finally:
            _slots.release()
    finally:
        _hashing_slots.give_back(client)


def normalize(password: str) -> str:
    """Return the NFC form, so that a password is the same from every keyboard."""
    return unicodedata.normalize("NFC", password)


def hash_password(password: str) -> str:
    """Return the encoded Argon2id hash. Raises HashingBusy (503)."""
    with _slot():
        return make_password(normalize(password))


def is_right(user: User | None, password: str) -> bool:
    """Check a password with exactly one Argon2 computation, also without a user.

    Raises HashingBusy (503).
    """
    text = normalize(password)
    with _slot():
        if user is None or not user.has_usable_password():
            make_password(text)
            return False
        return check_password(text, user.password)


def upgrade(user: User, password: str) -> None:
    """Update the hash after a correct password if the parameters have changed.

    Raises InvalidCredentials if the password was changed in the meantime, HashingBusy (503).
    """
    hasher = TunedArgon2Hasher()
    if hasher.must_update(user.password):
        encoded = hash_password(password)
        same = User.objects.filter(pk=user.pk, password=user.password)
        # A password that was changed in the meantime must not be overwritten.
        if not same.update(password=encoded):
            user.refresh_from_db(fields=["password"])
            if not is_right(user, password):
                raise InvalidCredentials
            return
        user.password = encoded
        log.info("password_rehashed", user_id=str(user.pk))


def validate(password: str, *, context: tuple[str, ...], field: str = "password") -> None:
    """Refuse a password that is too short, too long, common, or consists of context words.

    context: words that an attacker would try first (address, organization). No composition rules
    (NIST SP 800-63B-4 §3.1.1.2).
    Raises InvalidRequest naming ``field``.
    """
    text = normalize(password)
    if len(text) < MIN_CHARS:
        message = f"At least {MIN_CHARS} characters."
        raise InvalidRequest.for_field(field, message, code="password_too_short")
    if len(text) > MAX_CHARS:
        message = f"At most {MAX_CHARS} characters."
        raise InvalidRequest.for_field(field, message, code="password_too_long")
    try:
        _common.validate(text)
    except ValidationError as exc:
        message = "This password is among the most common ones."
        raise InvalidRequest.for_field(field, message, code="password_too_common") from exc
    if _is_made_of(text.casefold(), context):
        message = "This password consists of your own names."
        raise InvalidRequest.for_field(field, message, code="password_too_similar")


def _is_made_of(text: str, context: tuple[str, ...]) -> bool:
    words = {word for phrase in context for word in _words(phrase)}
    rest = text
    for word in sorted(words, key=len, reverse=True):
        rest = rest.replace(word, "")
    # Only the characters besides the context words have to be guessed.
    return rest != text and len(rest) < MIN_CHARS // 2


def _words(phrase: str) -> Iterator[str]:
    folded = phrase.casefold()
    parts = "".join(char if char.isalnum() else " " for char in folded).split()
    yield from (part for part in (folded, *parts) if len(part) >= MIN_CHARS // 2)
