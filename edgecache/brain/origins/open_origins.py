"""The drivers of origins, with their open connections."""

import ssl
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Final

import orjson
import structlog
from cryptography.fernet import InvalidToken

from common.crypto import decrypt
from common.egress import Network
from edgecache.brain.aws.sigv4.signing import OriginCredentials
from edgecache.brain.core.errors import OriginFailed
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.coherent_cache import CoherentCache
from edgecache.brain.db.database import BrainDatabase, Row
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.origins.config import OriginConfig
from edgecache.brain.origins.connections import (
    CONNECT_TIMEOUT_S,
    STALL_TIMEOUT_S,
    OriginConnections,
)
from edgecache.brain.origins.driver import Driver
from edgecache.brain.origins.guard import Guard
from edgecache.brain.origins.http import HttpDriver
from edgecache.brain.origins.s3 import S3Driver, google_location, location_of
from edgecache.http.client import HttpClient, ServerAddress
from edgecache.protocol.resources import OriginOptions

log = structlog.get_logger(__name__)

ORIGINS_KEPT: Final = 256
IDLE_CONNECTIONS: Final = 16
OPTIONS: Final = OriginOptions.__struct_fields__
ORIGIN: Final = (
    "SELECT id, organization_id, kind, config, secret, {options} FROM brain_origin WHERE id = %s"
).replace("{options}", ", ".join(OPTIONS))

# Returns the driver for one prefix within the origin.
Opener = Callable[[str], Driver]


@dataclass(frozen=True, slots=True)
class OpenOrigin:
    """An origin that is in use.

    row: its configuration in the database.
    """

    row: Row
    opener: Opener


class Origins:
    """The origins of one brain; organizations share no connections.

    allows_private: allow private addresses, and S3 without TLS, for development and tests.
    refused: networks that are refused in addition to the built-in ones.
    trust: a PEM file of additional certificate authorities.
    stall_timeout_s: how long an origin may be silent, instead of its own timeouts.
    """

    def __init__(
        self,
        database: BrainDatabase,
        coherence: Coherence,
        data_directory: DataDirectory,
        *,
        allows_private: bool,
        refused: Sequence[Network] = (),
        trust: Path | None = None,
        stall_timeout_s: float | None = None,
    ) -> None:
        self._stall_timeout_s = stall_timeout_s
        self._database = database
        self._data_directory = data_directory
        self._guard = Guard(allows_private=allows_private, refused=refused)
        self._client = HttpClient(
            connect_timeout_s=CONNECT_TIMEOUT_S,
            stall_s=stall_timeout_s or STALL_TIMEOUT_S,
            resolve=self._resolve,
            trust=_trusting("" if trust is None else trust.read_text(encoding="ascii")),
            idle_limit=IDLE_CONNECTIONS,
        )
        self._rows: CoherentCache[int, Row] = CoherentCache(
            coherence, "origin", row_of=lambda row: row.id
        )
        self._open: OrderedDict[int, OpenOrigin] = OrderedDict()
        coherence.subscribe("origin", self._close)
        coherence.on_loss(self._on_loss)

    async def stop(self) -> None:
        """Close every connection."""
        self._on_loss()
        await self._client.stop()

    async def driver(self, bucket: BucketInfo) -> Driver:
        """Return the driver of a bucket's origin.

        Raises OriginFailed for a secret that cannot be read, DatabaseUnavailable.
        """
        if bucket.origin_id is None:
            raise OriginFailed("The bucket has no external origin.")
        row = self._rows.known(bucket.origin_id) or await self._read(bucket.origin_id)
        opened = self._open.get(bucket.origin_id)
        if opened is None or opened.row != row:
            self._close(bucket.origin_id)
            opened = self._open[bucket.origin_id] = self._opened(row, bucket.origin_id)
            if len(self._open) > ORIGINS_KEPT:
                self._close(next(iter(self._open)))
        else:
            self._open.move_to_end(bucket.origin_id)
        return opened.opener(bucket.origin_prefix)

    async def _read(self, origin_id: int) -> Row:
        # Together: a crowd's first requests for an origin must not queue for the database.
        row = await self._rows.get(origin_id, lambda: self._database.one(ORIGIN, [origin_id]))
        if row is None:
            raise OriginFailed("The bucket's origin is not there any more.", cause="origin-deleted")
        return row

    def _opened(self, row: Row, origin_id: int) -> OpenOrigin:
        try:
            secret = orjson.loads(decrypt(row.secret)) if row.secret else {}
        except InvalidToken:
            log.error("origin_secret_unreadable", origin_id=origin_id)  # noqa: TRY400 - no trace
            raise OriginFailed(
                "The origin's credentials cannot be read.", cause="credentials-unreadable"
            ) from None
        config = OriginConfig(row.kind, row.config, secret)
        options = OriginOptions(**{name: getattr(row, name) for name in OPTIONS})
        connections = OriginConnections.of(self._client, row.organization_id, options)
        if self._stall_timeout_s is not None:
            connections = replace(connections, options=None)
        if config.kind == "http":
            return OpenOrigin(row, partial(_http, connections, config, options.host))
        return OpenOrigin(row, partial(_s3, connections, config, self._data_directory))

    async def _resolve(self, server: ServerAddress, host: str, port: int) -> list[str]:
        return await self._guard.resolve(host, port, owner=server.owner)

    def _close(self, origin_id: int) -> None:
        self._open.pop(origin_id, None)

    def _on_loss(self) -> None:
        self._open.clear()


def _http(
    connections: OriginConnections, config: OriginConfig, host: str, prefix: str
) -> HttpDriver:
    authorization = config.secret.get("authorization", "")
    url = config.config["url"]
    return HttpDriver(connections, url, prefix=prefix, authorization=authorization, host=host)


def _s3(
    connections: OriginConnections, config: OriginConfig, data_directory: DataDirectory, prefix: str
) -> S3Driver:
    secret = config.secret
    credentials = None
    if secret:
        credentials = OriginCredentials(
            secret["access_key_id"], secret["secret_access_key"], secret.get("session_token", "")
        )
    location_for = google_location if config.kind == "gcs" else location_of
    return S3Driver(connections, location_for(config.config, prefix), credentials, data_directory)


@cache
def _trusting(pem: str) -> ssl.SSLContext:
    """Return a context that trusts the machine's authorities, and those of the PEM text.

    Made once: reading the machine's takes tens of milliseconds, which block the event loop.
    """
    context = ssl.create_default_context()
    if pem:
        context.load_verify_locations(cadata=pem)
    return context
