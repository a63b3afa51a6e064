"""nginx as the mover: it fetches from the worker what the brain has decided (X-Accel-Redirect).

It knows itself to the brain by a token derived from the brain's secret, and only then is it
answered so: what a client sends of these headers counts for nothing. What nginx cannot do goes
the built-in way: bytes that must be checked, headers it has no list of, workers it does not know.

What a worker on nginx's own machine holds need not even be fetched: nginx says whose stores it may
read, and sends those files itself.
"""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from edgecache.brain.delivery.delivery import Delivery, Source, Span
from edgecache.brain.memo import Memo
from edgecache.http.scope import Scope
from edgecache.protocol.names import TICKET_PARAMETER, object_file, object_path

TOKEN_HEADER: Final = "x-zonal-gateway"  # noqa: S105 - a header's name
CLIENT_HEADER: Final = "x-zonal-client"
MOVER_HEADER: Final = "x-zonal-mover"
RANGE_HEADER: Final = "x-zonal-range"
STORES_HEADER: Final = "x-zonal-stores"
INTERNAL_PATH: Final = "/.zonal-worker"
STORE_PATH: Final = "/.zonal-store"
PURPOSE: Final = b"zonal edge cache: gateway, 1"
# What would make nginx judge by itself how a file is to be sent.
OF_FILES: Final = frozenset(
    ("range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
)

# nginx keeps these of the brain's answer by itself when it follows X-Accel-Redirect.
KEPT: Final = frozenset(
    ("accept-ranges", "cache-control", "content-disposition", "content-type", "expires")
)
# And these because its configuration says so.
CARRIED: Final = (
    "content-encoding",
    "content-language",
    "etag",
    "last-modified",
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc32c",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-sha1",
    "x-amz-checksum-sha256",
    "x-amz-checksum-type",
    "x-amz-mp-parts-count",
    "x-amz-request-id",
)
# The worker says it itself.
OF_THE_WORKER: Final = frozenset(("content-range",))
_SPEAKABLE: Final = KEPT | OF_THE_WORKER | frozenset(CARRIED)


def token_of(secret: str) -> str:
    """Derive what nginx says to be believed."""
    return hmac.new(secret.encode(), PURPOSE, hashlib.sha256).hexdigest()


def upstream_name(node_id: UUID) -> str:
    """Name a worker in nginx's configuration."""
    return f"zonal_{node_id.hex}"


# A node's id is one object for as long as its row is.
_upstream_name: Final = Memo(upstream_name)


class Gateway:
    """What the brain knows of nginx before it."""

    def __init__(self, secrets: Sequence[str]) -> None:
        """secrets: the current one and those before it."""
        self._tokens = [token_of(secret).encode() for secret in secrets]

    def is_before(self, scope: Scope) -> bool:
        """Tell whether a request came through nginx."""
        given = scope.headers.get(TOKEN_HEADER)
        return bool(given) and self.knows(given.encode("latin-1"))

    def knows(self, said: bytes) -> bool:
        """Tell whether this is what nginx says to be believed."""
        # A loop, as a generator takes longer than the comparison.
        for token in self._tokens:  # noqa: SIM110 - see above
            if hmac.compare_digest(said, token):
                return True
        return False

    def client_of(self, scope: Scope) -> str:
        """Give the client's address: the peer's, or what nginx says it is."""
        if self.is_before(scope):
            return scope.headers.get(CLIENT_HEADER) or scope.client_address
        return scope.client_address

    def may_move(self, delivery: Delivery, scope: Scope) -> bool:
        """Tell whether nginx is there and able to carry this out."""
        return (
            bool(delivery.sources)
            and not delivery.is_verified
            and self.is_before(scope)
            and not scope.headers.get(MOVER_HEADER)
            and _SPEAKABLE.issuperset([name for name, _ in delivery.headers])
        )


def readable_store(delivery: Delivery, scope: Scope) -> Source | None:
    """Give the worker whose file nginx may send as it is, None when there is none.

    Call it where ``may_move`` said yes: the header is believed.
    """
    stores = scope.headers.get(STORES_HEADER)
    is_whole = delivery.status == 200 and delivery.span == Span(0, delivery.size)
    if not stores or not is_whole or not OF_FILES.isdisjoint(scope.headers):
        return None
    for source in delivery.sources:
        # The names are of one length, so that none is a part of another.
        if _upstream_name(source.node_id) in stores:
            return source
    return None


def headers_for_file(delivery: Delivery, source: Source) -> list[tuple[str, str]]:
    """Give the headers that make nginx send the file of a worker beside it."""
    file = object_file(delivery.sha256)
    uri = f"{STORE_PATH}/{_upstream_name(source.node_id)}/{file}"
    return [*delivery.headers, ("x-accel-redirect", uri)]


def headers_for(delivery: Delivery, source: Source, ticket: str) -> list[tuple[str, str]]:
    """Give the headers that make nginx fetch the bytes."""
    uri = (
        f"{INTERNAL_PATH}/{_upstream_name(source.node_id)}{object_path(delivery.sha256)}"
        f"?{TICKET_PARAMETER}={ticket}"
    )
    headers = [pair for pair in delivery.headers if pair[0] not in OF_THE_WORKER]
    headers.append(("x-accel-redirect", uri))
    span = delivery.span
    if (span.start, span.length) != (0, delivery.size):
        headers.append((RANGE_HEADER, f"bytes={span.start}-{span.start + span.length - 1}"))
    return headers


def host_and_port(endpoint: str) -> str:
    """Give what an upstream's ``server`` line takes."""
    return urlsplit(endpoint).netloc
