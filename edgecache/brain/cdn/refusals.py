"""Responses of the cache's own: what it answers when there is none of an origin, and why.

Every error has a word, its ``cause``, in Cache-Status and in the log (docs/cache.md has the list).
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from edgecache.brain.cdn import cache_status
from edgecache.brain.cdn.conditional_requests import ConditionFailed
from edgecache.brain.core.errors import (
    BrainError,
    KeyRefused,
    KeyTooLong,
    LinkRefused,
    NoSuchBucket,
    OriginError,
    OriginMissing,
    OriginRangeRefused,
    OriginReadOnly,
    OriginTimeout,
    ServiceStopped,
    Unavailable,
)
from edgecache.http.exchange import BodyTimeout, Exchange
from edgecache.http.response_head import HeaderPairs

METHODS: Final = ("GET", "HEAD")
# The first one that fits.
STATUSES: Final = (
    (OriginMissing, HTTPStatus.NOT_FOUND),
    (NoSuchBucket, HTTPStatus.NOT_FOUND),
    (LinkRefused, HTTPStatus.FORBIDDEN),
    (KeyTooLong, HTTPStatus.REQUEST_URI_TOO_LONG),
    (KeyRefused, HTTPStatus.BAD_REQUEST),
    (OriginReadOnly, HTTPStatus.METHOD_NOT_ALLOWED),
    (OriginRangeRefused, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE),
    (OriginTimeout, HTTPStatus.GATEWAY_TIMEOUT),
    (OriginError, HTTPStatus.BAD_GATEWAY),
    (ServiceStopped, HTTPStatus.PAYMENT_REQUIRED),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)
FAILURES: Final = frozenset(
    {HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT, HTTPStatus.LOOP_DETECTED}
)
HEADERS: Final[dict[HTTPStatus, HeaderPairs]] = {
    HTTPStatus.METHOD_NOT_ALLOWED: [("allow", ", ".join(METHODS))],
    HTTPStatus.SERVICE_UNAVAILABLE: [("retry-after", "1")],
}
# Of an error that nothing expects.
UNEXPECTED: Final = "internal-error"


class Refused(Exception):
    """A request that the cache does not carry out.

    cause: the word for it. said: its Cache-Status, where it is another one than of a refusal.
    """

    def __init__(self, status: HTTPStatus, cause: str, *, said: str = "") -> None:
        super().__init__(cause)
        self.status = status
        self.cause = cause
        self.cache_status = said


@dataclass(frozen=True, slots=True)
class Refusal:
    """A response of the cache's own. sentence: of its body; '' for the status's phrase."""

    status: HTTPStatus
    cause: str = ""
    headers: HeaderPairs = ()
    sentence: str = ""

    @property
    def is_failure(self) -> bool:
        """True if the bucket's owner should know: its origin, or the way there, has failed."""
        if self.cause == "too-many-connections":
            return True
        return self.status in FAILURES and self.cause != "only-if-cached"


def refusal_of(exc: Exception) -> Refusal:
    """Return the response to a request that ended with an error."""
    if isinstance(exc, Refused):
        return Refusal(exc.status, exc.cause)
    if isinstance(exc, ConditionFailed):
        return Refusal(exc.status, headers=exc.headers)
    if isinstance(exc, BodyTimeout):
        return Refusal(HTTPStatus.REQUEST_TIMEOUT, "body-timeout")
    status = next((status for kind, status in STATUSES if isinstance(exc, kind)), None)
    if status is None or not isinstance(exc, BrainError):
        return Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, UNEXPECTED)
    cause = "" if isinstance(exc, OriginMissing) else exc.cause
    sentence = exc.detail if isinstance(exc, KeyRefused | LinkRefused | ServiceStopped) else ""
    return Refusal(status, cause, HEADERS.get(status, ()), sentence)


def is_of_origin(exc: Exception) -> bool:
    """True if the origin was asked, and failed."""
    own = OriginMissing | OriginReadOnly
    return isinstance(exc, OriginError) and not isinstance(exc, own)


def send(exchange: Exchange, exc: Exception, refusal: Refusal) -> None:
    """Send a response of the cache's own as a short text."""
    said = exc.cache_status if isinstance(exc, ConditionFailed | Refused) else ""
    pairs = [
        ("content-type", "text/plain; charset=utf-8"),
        ("cache-control", "no-store"),
        ("cache-status", said or cache_status.refused(refusal.cause, why=_why(exchange, exc))),
        *refusal.headers,
    ]
    status = refusal.status
    text = f"{status.value} {refusal.sentence or status.phrase}\n"
    exchange.response_str(status, pairs, text)


def _why(exchange: Exchange, exc: Exception) -> str:
    """Return why the origin was asked, '' if it was not."""
    if not is_of_origin(exc):
        return ""
    if exchange.scope.method not in METHODS:
        return "method"
    return "stale" if isinstance(exc, OriginError) and exc.is_revalidation else "uri-miss"
