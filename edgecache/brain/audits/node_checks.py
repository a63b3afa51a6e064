"""One check: an object is read from a node as a client reads it, and compared with its digests.

A direct check has a client's ticket and sends what a common HTTP client sends. A forwarded check is
what the brain sends for any client: the node cannot tell these apart.
"""

import asyncio
import hashlib
import secrets
import socket
import time
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from common.ids import uuid7
from edgecache.brain.conf.operators import Vantage
from edgecache.brain.core.blocks import Blocks
from edgecache.brain.core.values import BlobManifest, EnvironmentKey, Span
from edgecache.brain.nodes.client import CONNECT_TIMEOUT_S, STALL_S, BlobPart, WorkerClient
from edgecache.brain.nodes.tickets import TicketGrant, TicketSigner, client_prefix
from edgecache.http.client import HttpClient, ServerAddress
from edgecache.http.outgoing import OutgoingConnection, RequestFailed
from edgecache.protocol.names import TICKET_PARAMETER, object_path
from edgecache.protocol.tickets import TicketKind

# A check reads only some blocks of a larger blob.
MAX_CHECK_BYTES: Final = 2 * 2**20
TIMEOUT_S: Final = 30.0
NOT_FOUND: Final = 404
# Reasons of failures in which bytes arrived, but too few, too many or wrong ones.
ALTERED: Final = frozenset(("wrong_length", "wrong_range", "too_long", "refused"))
SUCCESSES: Final = frozenset((200, 206))
# Headers exactly as these clients send them after a redirect.
CLIENTS: Final = (
    "{host}User-Agent: curl/8.5.0\r\nAccept: */*\r\n{range}",
    "{host}User-Agent: Go-http-client/1.1\r\n{range}Accept-Encoding: gzip\r\n",
    "{host}User-Agent: Wget/1.21.4\r\nAccept: */*\r\n{range}Connection: Keep-Alive\r\n",
    "{host}User-Agent: python-requests/2.32.3\r\nAccept: */*\r\n{range}",
)


class Path(StrEnum):
    """How bytes travel: to a client itself, or through the brain to one."""

    DIRECT = "direct"
    FORWARDED = "forwarded"


class CheckOutcome(StrEnum):
    """The result: the bytes, other bytes, a 404, or no usable response."""

    RIGHT = "right"
    WRONG = "wrong"
    MISSING = "missing"
    UNANSWERED = "unanswered"


class CheckRoute(NamedTuple):
    """How a check reaches a node. vantage: None is the brain's own, unnamed address."""

    path: Path
    vantage: Vantage | None = None


FORWARDED: Final = CheckRoute(Path.FORWARDED)


@dataclass(frozen=True, slots=True)
class CheckTarget:
    """What a check reads: part of a blob that a node should hold, and its owner."""

    node_id: UUID
    address: ServerAddress
    tenant: EnvironmentKey
    bucket_id: int
    manifest: BlobManifest
    span: Span

    @property
    def part(self) -> BlobPart:
        """Return the bytes as a request names them."""
        manifest = self.manifest
        return BlobPart(manifest.sha256, self.span.start, self.span.length, manifest.size)

    def has(self, body: bytes) -> bool:
        """True if these are the bytes."""
        manifest = self.manifest
        if len(body) != self.span.length:
            return False
        if len(body) == manifest.size:
            return hashlib.sha256(body).digest() == manifest.sha256
        blocks = Blocks(manifest.chunks, manifest.size)
        size = blocks.block_bytes
        first = self.span.start // size
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        return all(blocks.has_sha256(first + number, one) for number, one in enumerate(pieces))


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A check that is about to be made. id: its ticket's, if it has its own ticket."""

    id: UUID
    route: CheckRoute
    target: CheckTarget
    ticket: str


def span_of(manifest: BlobManifest) -> Span:
    """Return what a check reads: all of a blob, or some blocks of a large one at random."""
    if manifest.size <= MAX_CHECK_BYTES:
        return Span(0, manifest.size)
    size = Blocks(manifest.chunks, manifest.size).block_bytes
    count = MAX_CHECK_BYTES // size
    first = secrets.randbelow(-(-manifest.size // size) - count + 1)
    return Span(first * size, min(MAX_CHECK_BYTES, manifest.size - first * size))


class NodeChecker:
    """Checks nodes from several addresses."""

    def __init__(
        self, tickets: TicketSigner, client: WorkerClient, vantages: tuple[Vantage, ...]
    ) -> None:
        """client: the brain's own, for forwarded checks."""
        self._tickets = tickets
        self._client = client
        own: tuple[Vantage | None, ...] = vantages or (None,)
        self.direct = [CheckRoute(Path.DIRECT, one) for one in own]
        self._clients = {
            vantage: HttpClient(
                connect_timeout_s=CONNECT_TIMEOUT_S,
                stall_s=STALL_S,
                local=vantage.local if vantage else "",
            )
            for vantage in own
        }

    async def stop(self) -> None:
        for client in self._clients.values():
            await client.stop()

    async def prepare(self, route: CheckRoute, target: CheckTarget) -> CheckRequest:
        """Return a check with its ticket, so that it can be recorded before it is made.

        Raises RequestFailed for a node whose host name has no address.
        """
        if route.path is Path.FORWARDED:
            return CheckRequest(uuid7(), route, target, "")
        seen = route.vantage.seen if route.vantage else await _seen_by(target.address)
        blob, span = target.manifest.sha256, target.span
        grant = TicketGrant(target.tenant, target.bucket_id, blob, span.length, span.start)
        ticket = self._tickets.sign(
            TicketKind.READ,
            target.node_id,
            grant,
            now=time.time(),
            client_prefix=client_prefix(seen),
        )
        return CheckRequest(self._tickets.verify(ticket).id, route, target, ticket)

    async def check(self, request: CheckRequest) -> CheckOutcome:
        """Read, and compare."""
        target = request.target
        try:
            async with asyncio.timeout(TIMEOUT_S):
                body = await self._read(request)
        except TimeoutError:
            return CheckOutcome.UNANSWERED
        except RequestFailed as failure:
            if failure.status == NOT_FOUND:
                return CheckOutcome.MISSING
            is_altered = failure.status in SUCCESSES and failure.reason in ALTERED
            return CheckOutcome.WRONG if is_altered else CheckOutcome.UNANSWERED
        return CheckOutcome.RIGHT if target.has(body) else CheckOutcome.WRONG

    async def _read(self, request: CheckRequest) -> bytes:
        target = request.target
        if request.route.path is Path.FORWARDED:
            manifest = target.manifest
            grant = TicketGrant(target.tenant, target.bucket_id, manifest.sha256, manifest.size)
            ticket = self._tickets.for_own_read(target.node_id, grant, now=time.time())
            connection = await self._client.read(
                target.address, target.part, ticket=ticket, waits_for_all=False
            )
            return await _body(self._client, target, connection)
        client = self._clients[request.route.vantage]
        head = _client_head(target, request.ticket)
        connection = await client.request(target.address, head, target.part.check)
        return await _body(client, target, connection)


async def _body(client: HttpClient, target: CheckTarget, connection: OutgoingConnection) -> bytes:
    pieces: list[bytes] = []
    try:
        while piece := await connection.piece():
            pieces.append(piece)
    finally:
        client.release(target.address, connection)
    return b"".join(pieces)


def _client_head(target: CheckTarget, ticket: str) -> bytes:
    part = target.part
    fields = "".join(f"Range: {value}\r\n" for value in part.range_header().values())
    template = secrets.choice(CLIENTS)
    host = f"Host: {urlsplit(target.address.endpoint).netloc}\r\n"
    path = f"{object_path(part.sha256)}?{TICKET_PARAMETER}={ticket}"
    return f"GET {path} HTTP/1.1\r\n{template.format(host=host, range=fields)}\r\n".encode("ascii")


async def _seen_by(address: ServerAddress) -> str:
    """Return the address of this machine that a node sees. Raises RequestFailed."""
    parts = urlsplit(address.endpoint)
    try:
        return await asyncio.to_thread(partial(_route_to, str(parts.hostname)))
    except OSError as exc:
        raise RequestFailed("unreachable") from exc


def _route_to(host: str) -> str:
    family, _, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        # Sends nothing: connecting a datagram socket only chooses the route.
        probe.connect(address)
        return str(probe.getsockname()[0])
