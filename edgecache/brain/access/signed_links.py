"""Links that open objects at a bucket's public doors, even of a private bucket, until they expire.

A link is a URL with parameters: ``zonal-expires`` (Unix seconds), ``zonal-signature`` (HMAC-SHA256
in lower-case hex), and of a link to all keys that begin so ``zonal-prefix``. The key of the HMAC is
derived for each bucket from the shared secret and the number of its generation of links: a new
number ends all links of the bucket. A link names no host: it opens the same at each of them.
"""

import hmac
import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from common.crypto import keyed_digest
from edgecache.brain.core.errors import LinkRefused
from edgecache.brain.core.values import BucketInfo, has_dots
from edgecache.brain.http_caching.cache_keys import SAFE, Target, is_of_link

EXPIRES: Final = "zonal-expires"
PREFIX: Final = "zonal-prefix"
SIGNATURE: Final = "zonal-signature"
LIMIT_S: Final = 365 * 86_400
EXPIRED: Final = "link-expired"
_NUMBER: Final = re.compile("[1-9][0-9]{0,11}")
_ENCODED_SLASH: Final = re.compile("%2f|%5c", re.IGNORECASE)


class LinkClaims(NamedTuple):
    """What a URL's query says of its link. prefix: '' for a link to one key."""

    expires_at: int
    prefix: str
    signature: str


class LinkKeys:
    """Signs links, and checks them."""

    def __init__(self, secrets: Sequence[str]) -> None:
        """secrets: the shared secret, then earlier ones that are still accepted."""
        self._secrets = secrets

    def signed_query(
        self, bucket: BucketInfo, key: str, *, expires_at: int, is_prefix: bool, query: str = ""
    ) -> str:
        """Return a URL's query: its own, and the parameters of the link.

        key: or how the keys begin. query: of the one URL that is signed.
        """
        signature = _signature(self._secrets[0], bucket, key, query, expires_at, is_prefix)
        fields = {EXPIRES: str(expires_at), PREFIX: key if is_prefix else "", SIGNATURE: signature}
        own = [f"{name}={quote(value, safe=SAFE)}" for name, value in fields.items() if value]
        return "&".join([*([query] if query else []), *own])

    def check(
        self, bucket: BucketInfo, target: Target, claims: LinkClaims, *, is_http: bool, now: float
    ) -> None:
        """Check that a link opens a URL, whose query is without the link's parameters.

        is_http: an HTTP origin gets the path as it is spelled. Raises LinkRefused.
        """
        is_prefix = bool(claims.prefix)
        key = claims.prefix or target.key
        query = "" if is_prefix or bucket.origin_id is None else target.query
        matches = [
            hmac.compare_digest(
                _signature(secret, bucket, key, query, claims.expires_at, is_prefix).encode(),
                claims.signature.encode(),
            )
            for secret in self._secrets
        ]
        if not any(matches) or not target.key.startswith(key):
            raise LinkRefused
        if is_prefix and has_dots(target.key):
            raise LinkRefused
        # Where a slash may be something else than "%2F", another URL has the same key.
        if is_http and (_ENCODED_SLASH.search(target.path) if is_prefix else target.spelling):
            raise LinkRefused
        if now >= claims.expires_at:
            raise LinkRefused("The link has expired.", cause=EXPIRED)


def split(query: str) -> tuple[str, LinkClaims | None]:
    """Return a query without the parameters of a link, and these.

    Raises LinkRefused for parameters that no link has: unknown ones, two of a name, a part of them.
    """
    if not query:
        return "", None
    rest: list[str] = []
    claimed: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if not is_of_link(pair):
            rest.append(pair)
        elif name in claimed or name not in {EXPIRES, PREFIX, SIGNATURE}:
            raise LinkRefused
        else:
            claimed[name] = value
    if not claimed:
        return query, None
    expires, prefix = claimed.get(EXPIRES, ""), claimed.get(PREFIX)
    if not _NUMBER.fullmatch(expires) or not claimed.get(SIGNATURE) or prefix == "":
        raise LinkRefused
    try:
        began = unquote_to_bytes((prefix or "").encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise LinkRefused from None
    return "&".join(rest), LinkClaims(int(expires), began, claimed[SIGNATURE])


def has_link(query: str) -> bool:
    """True if a query has parameters of a link, right or wrong."""
    try:
        return split(query)[1] is not None
    except LinkRefused:
        return True


def _signature(
    secret: str, bucket: BucketInfo, key: str, query: str, expires_at: int, is_prefix: bool
) -> str:
    of_bucket = ("links of a bucket", bucket.public_name, bucket.links_generation)
    derived = keyed_digest(secret, *of_bucket).hex()
    return keyed_digest(derived, "prefix" if is_prefix else "key", key, query, expires_at).hex()
