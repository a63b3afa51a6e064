"""The brain's requests to workers: read a blob, store one, prove an endpoint."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from common import tracing
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.http.client import (
    RUNNING_LIMIT,
    ConnectionShareExhausted,
    HttpClient,
    ServerAddress,
    request_head,
)
from edgecache.http.outgoing import OutgoingConnection, RequestFailed, ResponseHead
from edgecache.protocol.batches import BATCH_PATH
from edgecache.protocol.names import NONCE_PARAMETER, PROVE_PATH, TICKET_HEADER, object_path
from edgecache.runtime.fair_shares import Shares
from edgecache.runtime.resource_limits import connections_allowed

CONNECT_TIMEOUT_S: Final = 2.0
# After this time without a byte the next source is asked.
STALL_S: Final = 4.0
ANSWER_TIMEOUT_S: Final = 15.0
# The slowest acceptable worker; the timeout of a store grows with its size accordingly.
MIN_BYTES_PER_S: Final = 512 * 1024
BODY_LIMIT_BYTES: Final = 16_384
PIECE_BYTES: Final = 2**20
# One in this many of a brain's clients may read from workers concurrently, each with up to 256 KiB
# in memory.
CLIENTS_A_REQUEST: Final = 4
WAIT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class BlobPart:
    """Bytes of a blob. size: of the whole blob."""

    sha256: bytes
    start: int
    length: int
    size: int

    def range_header(self) -> dict[str, str]:
        """Return the header that asks for them; none for the whole blob."""
        if self.length == self.size:
            return {}
        return {"range": f"bytes={self.start}-{self.start + self.length - 1}"}

    def check(self, head: ResponseHead) -> int:
        """Return the body's length. Raises RequestFailed unless these bytes follow a head."""
        status = head.status
        is_whole = self.length == self.size
        if status != (200 if is_whole else 206):
            raise RequestFailed("refused", status=status)
        length = head.field(b"content-length")
        if head.field(b"transfer-encoding") or length != b"%d" % self.length:
            raise RequestFailed("wrong_length", status=status)
        span = b"bytes %d-%d/%d" % (self.start, self.start + self.length - 1, self.size)
        if not is_whole and head.field(b"content-range") != span:
            raise RequestFailed("wrong_range", status=status)
        return self.length


class WorkerClient(HttpClient):
    """The brain's connections to all workers."""

    def __init__(self, limit: int = 0) -> None:
        """limit: of concurrent requests; 0 chooses by the machine's memory and open files."""
        limit = limit or max(RUNNING_LIMIT, connections_allowed() // CLIENTS_A_REQUEST)
        self.permits = Shares(limit, refusal=ConnectionShareExhausted, wait_s=WAIT_S)
        super().__init__(
            connect_timeout_s=CONNECT_TIMEOUT_S,
            stall_s=STALL_S,
            running=self.permits,
            share_key=SHARE_KEY.get,
        )

    async def read(
        self,
        address: ServerAddress,
        part: BlobPart,
        *,
        ticket: str,
        waits_for_all: bool,
        has_no_timeout: bool = False,
    ) -> OutgoingConnection:
        """Request bytes of a blob; return the connection when the response's head has arrived.

        waits_for_all: wait for the body, too, which is small.
        has_no_timeout: wait for a permit without a limit.

        The caller must ``release`` the connection. Raises RequestFailed.
        """
        with tracing.span("worker read", "client"):
            fields = {TICKET_HEADER: ticket, **part.range_header(), **tracing.headers()}
            request = request_head(address, "GET", object_path(part.sha256), fields)
            return await self.request(
                address,
                request,
                part.check,
                waits_for_all=waits_for_all,
                has_no_timeout=has_no_timeout,
            )

    async def store(
        self, address: ServerAddress, sha256: bytes, path: Path, *, size: int, ticket: str
    ) -> None:
        """Upload a file to a worker under its hash; the worker checks it before it accepts.

        Raises RequestFailed; status 507 when the worker is full.
        """
        head = request_head(
            address, "PUT", object_path(sha256), {TICKET_HEADER: ticket}, length=size
        )
        try:
            file = path.open("rb")
        except OSError as exc:
            raise RequestFailed("file_gone") from exc
        with file:
            response = await self.fetch(
                address,
                head,
                body=_pieces(file),
                limit_bytes=BODY_LIMIT_BYTES,
                timeout_s=ANSWER_TIMEOUT_S + size / MIN_BYTES_PER_S,
            )
        if response.status not in {200, 201}:
            raise RequestFailed("store_refused", status=response.status)

    async def store_batch(self, address: ServerAddress, message: bytes, *, ticket: str) -> None:
        """Send small blobs to a worker in one message (``batches``); it takes all or none.

        Raises RequestFailed.
        """
        head = request_head(
            address, "POST", BATCH_PATH, {TICKET_HEADER: ticket}, length=len(message)
        )
        response = await self.fetch(
            address, head + message, limit_bytes=BODY_LIMIT_BYTES, timeout_s=ANSWER_TIMEOUT_S
        )
        if response.status not in {200, 201}:
            raise RequestFailed("store_refused", status=response.status)

    async def prove(self, address: ServerAddress, nonce: str) -> bytes:
        """Return an endpoint's response to a nonce. Raises RequestFailed."""
        target = f"{PROVE_PATH}?{NONCE_PARAMETER}={nonce}"
        response = await self.fetch(
            address,
            request_head(address, "GET", target, {}),
            limit_bytes=BODY_LIMIT_BYTES,
            timeout_s=ANSWER_TIMEOUT_S,
        )
        if response.status != 200:
            raise RequestFailed("proof_refused", status=response.status)
        return response.body


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
        yield piece
