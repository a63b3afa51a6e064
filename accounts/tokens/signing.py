"""Signed tokens: simplejwt's ``Token`` and ``TokenBackend`` over a ring of HMAC keys.

What differs from simplejwt, and why (RFC 8725): the header carries ``typ`` and ``kid``, and both
are checked; each type has its own audience and its required claims; times are compared with the
caller's clock; a token has only the given claims and no random ``jti``, so that equal claims give
equal bytes. Its settings, views, serializers and blacklist are not used.

Keys are rotated without signing anyone out: a previous key verifies until the date when it retires.
"""

import hashlib
import hmac
import json
import secrets
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any, ClassVar, Final, Self

import jwt
from django.conf import settings
from django.utils import timezone
from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import (
    ExpiredTokenError,
    TokenBackendError,
    TokenError,
)
from rest_framework_simplejwt.tokens import Token

from common.errors import TokenExpired, TokenInvalid

ALGORITHM: Final = "HS256"
# Longer than every token that is issued; longer ones are refused without a signature check.
MAX_CHARS: Final = 4096
CLOCKS_DIFFER_S: Final = 5
ROTATED_SETTINGS: Final = ("ZJWT_SECRET", "ZJWT_REFRESH_SECRET")
NEW_KEY_BYTES: Final = 48


@lru_cache(maxsize=32)
def key_id(key: str) -> str:
    """Return a key's public name, which reveals nothing about the key."""
    return hmac.new(key.encode(), b"kid", hashlib.sha256).hexdigest()[:16]


def header_of(token: str) -> dict[str, Any]:
    """Return a token's unverified header, {} without one; used to distinguish token types.

    PyJWT's own function parses the whole token, which the verification does later anyway.
    """
    return _decoded(token.partition(".")[0][:MAX_CHARS])


@lru_cache(maxsize=32)
def _decoded(head: str) -> dict[str, Any]:
    try:
        header = json.loads(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return {}
    return header if isinstance(header, dict) else {}


class KeyRingBackend(TokenBackend):
    """HS256 with the first key of a ring; ``typ`` and ``kid`` choose the key that verifies."""

    def __init__(
        self, typ: str, keys: Sequence[str], *, audience: str, issuer: str, required: Sequence[str]
    ) -> None:
        super().__init__(ALGORITHM, signing_key=keys[0], audience=audience, issuer=issuer)
        self.typ = typ
        self.current_key = keys[0]
        self.keys = {key_id(key): key for key in keys}
        self.required = list(required)

    def encode(self, payload: dict[str, Any]) -> str:
        """Return the signed token; equal payloads give equal bytes."""
        claims = {"iss": self.issuer, "aud": self.audience, **payload}
        headers = {"typ": self.typ, "kid": next(iter(self.keys))}
        return jwt.encode(
            claims, self.prepared_signing_key, algorithm=self.algorithm, headers=headers
        )

    def get_verifying_key(self, token: Any) -> str:
        """Return the key that the header names.

        Raises TokenBackendError for another type, and for an unknown or a retired key.
        """
        header = header_of(token)
        key = self.keys.get(str(header.get("kid")))
        if header.get("typ") != self.typ or key is None or is_retired(key):
            raise TokenBackendError("Token is invalid")
        return key

    def decode(self, token: Any, verify: bool = True) -> dict[str, Any]:
        """Return the claims of a token with a valid signature; its times are not checked.

        Raises TokenBackendError, also if ``verify`` is False: tokens are always verified.
        """
        if len(token) > MAX_CHARS:
            raise TokenBackendError("Token is invalid")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self.get_verifying_key(token),
                algorithms=[self.algorithm],
                audience=self.audience,
                issuer=self.issuer,
                options={
                    "require": self.required,
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as exc:
            raise TokenBackendError("Token is invalid") from exc
        return claims


def is_retired(key: str) -> bool:
    """True from the day on which a previous key no longer verifies."""
    day = settings.ACCOUNTS.key_retirements.get(key)
    return day is not None and timezone.now().date() >= day


@lru_cache(maxsize=32)
def _backend(
    typ: str, keys: tuple[str, ...], service: str, audience: str, required: tuple[str, ...]
) -> KeyRingBackend:
    return KeyRingBackend(
        typ, keys, audience=f"{service}:{audience}", issuer=service, required=required
    )


class SignedToken(Token):
    """A token of one type. A subclass names its type, audience, ring and required claims.

    key_ring: the name of its keys in settings.ACCOUNTS.
    """

    token_type: str
    audience: ClassVar[str]
    key_ring: ClassVar[str]
    required: ClassVar[tuple[str, ...]]

    def __init__(self, payload: dict[str, Any], *, now: datetime | None = None) -> None:
        # Does not call the base class, which reads the wall clock and adds a random `jti` and
        # times.
        self.token = None
        self.payload = payload
        self.current_time = now or timezone.now()

    @classmethod
    def get_token_backend(cls) -> KeyRingBackend:
        """Return the backend with the current configuration of keys."""
        keys: tuple[str, ...] = getattr(settings.ACCOUNTS, cls.key_ring)
        return _backend(cls.token_type, keys, settings.SERVICE_NAME, cls.audience, cls.required)

    @classmethod
    def claims_of(cls, token: str) -> dict[str, Any]:
        """Return the claims of a token with a valid signature, even if it has expired.

        Raises TokenInvalid.
        """
        try:
            return cls.get_token_backend().decode(token)
        except TokenBackendError as exc:
            raise TokenInvalid from exc

    @classmethod
    def read(cls, token: str, *, now: datetime) -> Self:
        """Return a token that is valid now.

        Raises TokenExpired for a token that was valid once, TokenInvalid for everything else.
        """
        made = cls(cls.claims_of(token), now=now)
        made.check_times()
        return made

    def check_times(self, *, allow_expired: bool = False) -> None:
        """Raise TokenExpired or TokenInvalid unless the token is valid at this time."""
        try:
            self.verify()
        except ExpiredTokenError as exc:
            if not allow_expired:
                raise TokenExpired from exc
        except TokenError as exc:
            raise TokenInvalid from exc

    def verify(self) -> None:
        """Compare the claimed times with the caller's clock.

        Raises simplejwt's TokenError, and ExpiredTokenError for an expired token.
        """
        now_s = self.current_time.timestamp()
        try:
            begins, ends = int(self.payload.get("nbf", 0)), int(self.payload["exp"])
        except (KeyError, ValueError, TypeError) as exc:
            raise TokenError("Token is invalid") from exc
        if now_s < begins - CLOCKS_DIFFER_S:
            raise TokenError("Token is not valid yet")
        if now_s >= ends:
            raise ExpiredTokenError("Token is expired")


def rotate_keys(values: Mapping[str, str], *, retires: date, today: date) -> dict[str, str]:
    """Return the settings with a new current key in each ring.

    values: of ROTATED_SETTINGS. The old key comes behind the new one, as ``key@2026-12-01``: from
    that day on (UTC) it no longer verifies. Retired keys are removed.
    """
    made = {}
    for name in ROTATED_SETTINGS:
        current, *earlier = (entry.strip() for entry in values[name].split(","))
        kept = [entry for entry in earlier if entry and not _has_retired(entry, today)]
        new = secrets.token_urlsafe(NEW_KEY_BYTES)
        made[name] = ",".join([new, f"{current}@{retires.isoformat()}", *kept])
    return made


def _has_retired(entry: str, today: date) -> bool:
    _, _, day = entry.rpartition("@")
    return "@" in entry and date.fromisoformat(day.strip()) <= today
