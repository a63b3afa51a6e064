"""nginx sends the file of a worker on its own machine that the brain names (X-Accel-Redirect).

nginx authenticates itself to the brain by a token derived from the brain's secret, and lists the
stores that it may read, with their folders. Without a valid token all of these headers are ignored.
Everything that nginx cannot do is streamed by the brain: bytes of a bucket with verified reads,
ranges, conditions, headers that nginx does not pass on, objects that no listed store holds, and
files that are not verified in their present state.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import quote, unquote
from uuid import UUID

from edgecache.brain.core.caches import Memo
from edgecache.brain.core.values import WorkerSource
from edgecache.brain.delivery.local_files import LocalFiles
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.http.addresses import FORWARDED_FOR, IpNetwork, client_behind
from edgecache.http.scope import HttpScope
from edgecache.protocol.names import OBJECTS, object_file

TOKEN_HEADER: Final = "x-zonal-gateway"  # noqa: S105 - a header's name
CLIENT_HEADER: Final = "x-zonal-client"
STORES_HEADER: Final = "x-zonal-stores"
STORE_PATH: Final = "/.zonal-store"
PURPOSE: Final = b"zonal edge cache: gateway, 1"
# nginx would apply these to the file itself.
JUDGED_BY_NGINX: Final = frozenset(
    ("range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
)

# nginx keeps these headers of the brain's response when it follows X-Accel-Redirect.
KEPT_BY_NGINX: Final = frozenset(
    ("accept-ranges", "cache-control", "content-disposition", "content-type", "expires")
)
# Its configuration makes it pass on these.
PASSED_ON: Final = (
    "access-control-allow-credentials",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "content-encoding",
    "content-language",
    "etag",
    "last-modified",
    "vary",
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc32c",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-sha1",
    "x-amz-checksum-sha256",
    "x-amz-checksum-type",
    "x-amz-mp-parts-count",
    "x-amz-request-id",
    "x-amz-tagging-count",
)
_SENDABLE: Final = KEPT_BY_NGINX | frozenset(PASSED_ON)


def token_of(secret: str) -> str:
    """Derive the token by which nginx authenticates itself."""
    return hmac.new(secret.encode(), PURPOSE, hashlib.sha256).hexdigest()


def store_name(node_id: UUID) -> str:
    """Return the name of a worker's store in nginx's configuration."""
    return f"zonal_{node_id.hex}"


def store_entry(node_id: UUID, folder: Path) -> str:
    """Return what nginx says of a store: its name and the folder of its worker."""
    return f"{store_name(node_id)}={quote(str(folder))}"


@lru_cache(maxsize=64)
def _folders(text: str) -> Mapping[str, str]:
    """Return the folders of the stores that nginx lists, by name."""
    entries = (entry.partition("=") for entry in text.split())
    return MappingProxyType({name: unquote(folder) for name, _, folder in entries if folder})


# A node's id is one object for as long as its row is.
_store_name: Final = Memo(store_name)


class NginxOffload:
    """Decides what an nginx in front of the brain may send itself."""

    def __init__(self, secrets: Sequence[str], trusted_edges: Sequence[IpNetwork] = ()) -> None:
        """secrets: the brain's current secret and the previous ones.

        trusted_edges: proxies whose X-Forwarded-For counts.
        """
        self.files = LocalFiles()
        self._trusted_edges = trusted_edges
        self._tokens = [token_of(secret).encode() for secret in secrets]

    def is_used(self, scope: HttpScope) -> bool:
        """True if the request came through an nginx that knows the token."""
        token = scope.headers.get(TOKEN_HEADER).encode("latin-1")
        return bool(token) and any(hmac.compare_digest(token, each) for each in self._tokens)

    def client_of(self, scope: HttpScope) -> str:
        """Return the client's address, behind an nginx with the token and trusted edges."""
        forwarded = scope.headers.get_all(FORWARDED_FOR) if self._trusted_edges else ()
        return client_behind(self.peer_of(scope), forwarded, self._trusted_edges)

    def peer_of(self, scope: HttpScope) -> str:
        """Return the address that the last connection from outside came from: an edge's, perhaps.

        It is the peer's, or the one that an nginx with the token reports.
        """
        if self.is_used(scope):
            return scope.headers.get(CLIENT_HEADER) or scope.client_address
        return scope.client_address

    def stores(self, scope: HttpScope) -> str:
        """Return the stores that nginx may send this response from, as it lists them."""
        stores = scope.headers.get(STORES_HEADER)
        if not stores or not self.is_used(scope) or not JUDGED_BY_NGINX.isdisjoint(scope.headers):
            return ""
        return stores

    def source(self, delivery: DeliveryPlan, scope: HttpScope) -> WorkerSource | None:
        """Return the worker whose file nginx may send for a delivery, or None."""
        stores = self.stores(scope)
        if not stores or delivery.is_verified or delivery.status != 200 or not delivery.is_whole:
            return None
        if not _SENDABLE.issuperset([name for name, _ in delivery.headers]):
            return None
        folders, name = _folders(stores), object_file(delivery.sha256)
        for each in delivery.sources:
            folder = folders.get(_store_name(each.node_id))
            if folder is None:
                continue
            if self.files.is_verified(delivery.sha256, f"{folder}/{OBJECTS}/{name}"):
                return each
        return None


def headers_for_file(delivery: DeliveryPlan, source: WorkerSource) -> list[tuple[str, str]]:
    """Return the headers that make nginx send the file of a worker."""
    uri = f"{STORE_PATH}/{_store_name(source.node_id)}/{object_file(delivery.sha256)}"
    return [*delivery.headers, ("x-accel-redirect", uri)]
