"""Sends a delivery's bytes to the client: all of them correct, or the connection is cut.

If a worker fails, stalls or sends wrong bytes, the next one continues from the same block, then the
brain's own copy or the origin; the client sees one response. Without another source the connection
is cut: every client treats a short body as an error.

One in 64 of the reads that need no worker is served by a worker nevertheless (a spot check): that
checks the workers' bytes, and lets them know what is read often.
"""

import hashlib
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Final
from uuid import UUID

from awscrt import checksums as crt

from edgecache.brain.core.blocks import BLOCK_BYTES, BlockCheck, Blocks
from edgecache.brain.core.errors import OriginChanged, OriginError, OriginFailed, ServiceStopped
from edgecache.brain.core.values import BucketInfo, EnvironmentKey, Span
from edgecache.brain.delivery.integrity import BlockChecks, WrongBytes
from edgecache.brain.delivery.local_files import OwnFiles
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.delivery.worker_reads import WorkerReads
from edgecache.brain.directory.versions import Directory
from edgecache.brain.metering.meters import Meters
from edgecache.http.exchange import Exchange
from edgecache.http.files import FileBody
from edgecache.http.outgoing import RequestFailed
from edgecache.http.response_head import HeaderPairs
from edgecache.http.scope import TrustedProxies
from edgecache.runtime.bounded_cache import BoundedCache
from edgecache.runtime.hot_cache import HotCache

# Sent in one piece, and checked before: another source can still replace wrong bytes.
SMALL_BYTES: Final = 2**18

# How often what is to be delivered is chosen anew, where it is overwritten or purged meanwhile.
READ_ATTEMPTS: Final = 4

# Yields the bytes of a span from the brain's own copy or the origin, all of them correct.
Fallback = Callable[[Span], AsyncIterator[bytes]]

SPOT_CHECK_SHARE: Final = 1 / 64
SPOT_CHECK_INTERVAL_S: Final = 0.1
MAX_CHECK_TIMES: Final = 10_000


class SpotChecks:
    """Chooses reads at random, each blob at most once in SPOT_CHECK_INTERVAL_S."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds."""
        self._clock = clock
        self._checked_at: BoundedCache[bytes, float] = BoundedCache(MAX_CHECK_TIMES)

    def is_due(self, sha256: bytes) -> bool:
        """True if this read of a blob is a spot check."""
        if random.random() >= SPOT_CHECK_SHARE:  # noqa: S311 - a sample
            return False
        now = self._clock()
        checked_at = self._checked_at.get(sha256)
        if checked_at is not None and now - checked_at < SPOT_CHECK_INTERVAL_S:
            return False
        self._checked_at.put(sha256, now)
        return True


class _Response:
    """The client's side of a delivery. The head is sent with the first byte, when one has come."""

    def __init__(self, delivery: DeliveryPlan, exchange: Exchange) -> None:
        self.node_id: UUID | None = None
        self.first_byte_s = 0.0
        self.sent_bytes = 0
        self._delivery = delivery
        self._exchange = exchange

    async def send(self, data: bytes) -> None:
        """Send a piece. Raises ClientGone."""
        if not self._exchange.is_answered:
            self._note_first_byte()
            headers = self._delivery.headers_with_length()
            self._exchange.response_stream(self._delivery.status, headers)
        if data:
            self.sent_bytes += len(data)
            await self._exchange.send_bytes(data)

    def send_all(self, body: bytes) -> None:
        """Send the whole body."""
        self._note_first_byte()
        self._exchange.response_bytes(self._delivery.status, self._delivery.headers, body)

    def _note_first_byte(self) -> None:
        self.first_byte_s = time.perf_counter() - self._exchange.began


class _Gathered:
    """Takes the bytes of a delivery in place of a client."""

    def __init__(self) -> None:
        self.node_id: UUID | None = None
        self.sent_bytes = 0
        self.pieces: list[bytes] = []

    async def send(self, data: bytes) -> None:
        self.sent_bytes += len(data)
        self.pieces.append(data)

    def send_all(self, body: bytes) -> None:
        self.pieces.append(body)


_Taker = _Response | _Gathered


class Streamer:
    """Sends deliveries, from memory, from files, from workers or from the origin."""

    def __init__(
        self,
        directory: Directory,
        worker_reads: WorkerReads,
        meters: Meters,
        own_files: OwnFiles,
        proxies: TrustedProxies,
        *,
        on_read: Callable[[DeliveryPlan], None],
    ) -> None:
        """on_read: called with each delivery of bytes, however they are sent."""
        self._own_files = own_files
        self._proxies = proxies
        self.hot = HotCache()
        self._directory = directory
        self._worker_reads = worker_reads
        self._meters = meters
        self._on_read = on_read
        self._spot_checks = SpotChecks()

    async def deliver(self, delivery: DeliveryPlan, exchange: Exchange, fallback: Fallback) -> None:
        """Respond to a request.

        fallback: used when no worker sends the bytes. Raises BrainError where nothing was sent yet,
        or too little (the connection must be cut then); ClientGone.
        """
        if delivery.span.length == 0:
            exchange.response_empty(delivery.status, delivery.headers_with_length())
            self.count_empty(delivery.tenant, delivery.bucket_id, exchange, is_hit=delivery.is_hit)
            return
        self._on_read(delivery)
        if not self._must_ask_worker(delivery):
            if self._sent_from_memory(delivery, exchange):
                return
            body = await self._own_files.open(delivery)
            if body is not None:
                await self._send_file(delivery, exchange, body)
                return
        response = _Response(delivery, exchange)
        send = self._send_small if delivery.span.length <= SMALL_BYTES else self._send_large
        try:
            await send(delivery, response, fallback, exchange.began)
        except OriginError as exc:
            if exchange.is_answered or not await self._worker_reads.is_withheld(delivery):
                raise
            raise ServiceStopped from exc
        finally:
            if exchange.sent_bytes:
                seconds = response.first_byte_s
                self._record(delivery, response.node_id, exchange, seconds)

    async def whole(self, delivery: DeliveryPlan, fallback: Fallback, began: float) -> bytes:
        """Return the bytes of a delivery, which are few. Raises as ``deliver`` does."""
        known = self.hot.get(delivery.sha256)
        if known is not None:
            return known
        gathered = _Gathered()
        send = self._send_small if delivery.span.length <= SMALL_BYTES else self._send_large
        await send(delivery, gathered, fallback, began)
        return b"".join(gathered.pieces)

    async def deliver_compressed(
        self, delivery: DeliveryPlan, body: bytes, exchange: Exchange
    ) -> None:
        """Respond with what was made of a delivery's bytes.

        A worker that would be asked for these is asked nevertheless: its operator is paid for reads
        from it. Raises as ``deliver`` does.
        """
        self._on_read(delivery)
        gathered = _Gathered()
        if self._must_ask_worker(delivery):
            await self._sent_by_workers(delivery, gathered, exchange.began)
        seconds = time.perf_counter() - exchange.began
        exchange.response_bytes(delivery.status, delivery.headers, body)
        self._record(delivery, gathered.node_id, exchange, seconds)

    def is_in_memory(self, delivery: DeliveryPlan) -> bool:
        return delivery.sha256 in self.hot

    async def pass_through(
        self,
        bucket: BucketInfo,
        exchange: Exchange,
        head: tuple[int, HeaderPairs],
        body: AsyncIterator[bytes],
        *,
        is_hit: bool = False,
    ) -> None:
        """Respond with bytes that are not checked, as they come: an origin's, or remembered ones.

        head: status and headers. Raises ClientGone, and what the body raises.
        """
        exchange.response_stream(*head)
        first_byte_s = time.perf_counter() - exchange.began
        try:
            async for piece in body:
                await exchange.send_bytes(piece)
        finally:
            self._meters.record(
                bucket.tenant,
                bucket.id,
                None,
                is_hit=is_hit,
                bytes_served=exchange.sent_bytes,
                seconds=first_byte_s,
            )

    def count_empty(
        self, tenant: EnvironmentKey, bucket_id: int, exchange: Exchange, *, is_hit: bool
    ) -> None:
        """Count an answer without an object's bytes: a 304, to a HEAD, or of an empty object."""
        seconds = time.perf_counter() - exchange.began
        self._meters.record(tenant, bucket_id, None, is_hit=is_hit, bytes_served=0, seconds=seconds)

    async def check_for(self, delivery: DeliveryPlan) -> BlockChecks:
        """Return how a delivery's blocks are checked.

        With SHA-256 if a node does not belong to the platform, otherwise with a CRC, which finds
        accidental damage. Raises DatabaseUnavailable, OriginChanged.
        """
        span, size, sha256 = delivery.span, delivery.size, delivery.sha256
        is_trusted = not (delivery.is_verified or self._worker_reads.is_foreign(delivery))
        if size <= BLOCK_BYTES:
            crc32 = delivery.crc32 if is_trusted else None
            return BlockChecks(_only_block(sha256, crc32), BLOCK_BYTES, span, size)
        manifest = await self._directory.manifest(sha256)
        if manifest is None:
            raise OriginChanged
        blocks = Blocks(manifest.chunks, size)
        matches = blocks.has_crc32c if is_trusted else blocks.has_sha256
        return BlockChecks(matches, blocks.block_bytes, span, size)

    def _must_ask_worker(self, delivery: DeliveryPlan) -> bool:
        # The operators of foreign nodes are paid for reads from them.
        is_foreign = self._worker_reads.is_foreign(delivery)
        return is_foreign or self._spot_checks.is_due(delivery.sha256)

    def _sent_from_memory(self, delivery: DeliveryPlan, exchange: Exchange) -> bool:
        blob = self.hot.get(delivery.sha256)
        if blob is None:
            return False
        start, length = delivery.span
        body = blob if length == delivery.size else blob[start : start + length]
        seconds = time.perf_counter() - exchange.began
        exchange.response_bytes(delivery.status, delivery.headers, body)
        self._record(delivery, None, exchange, seconds)
        return True

    async def _send_file(self, delivery: DeliveryPlan, exchange: Exchange, body: FileBody) -> None:
        first_byte_s = time.perf_counter() - exchange.began
        try:
            await exchange.response_file(delivery.status, delivery.headers, body)
        finally:
            self._record(delivery, None, exchange, first_byte_s)

    async def _send_small(
        self, delivery: DeliveryPlan, response: _Taker, fallback: Fallback, started: float
    ) -> None:
        for source in delivery.sources:
            check = await self.check_for(delivery)
            try:
                body = await self._worker_reads.whole(delivery, source, check, started)
            except RequestFailed as failure:
                self._worker_reads.note_failure(delivery, source, failure)
            except WrongBytes:
                self._worker_reads.note_wrong_bytes(delivery, source.node_id)
            else:
                response.node_id = source.node_id
                response.send_all(body)
                self._offer(delivery, body)
                return
        body = b"".join([piece async for piece in fallback(delivery.span)])
        response.send_all(body)
        self._offer(delivery, body)

    def _offer(self, delivery: DeliveryPlan, body: bytes) -> None:
        if delivery.is_whole and not self._worker_reads.is_foreign(delivery):
            organization_id = delivery.tenant.organization_id
            self.hot.offer(delivery.sha256, body, organization_id=organization_id)

    async def _send_large(
        self, delivery: DeliveryPlan, response: _Taker, fallback: Fallback, started: float
    ) -> None:
        if delivery.sources and await self._sent_by_workers(delivery, response, started):
            return
        start, length = delivery.span
        rest = Span(start + response.sent_bytes, length - response.sent_bytes)
        async for piece in fallback(rest):
            await response.send(piece)
        if response.sent_bytes != length:
            raise OriginFailed

    async def _sent_by_workers(
        self, delivery: DeliveryPlan, response: _Taker, started: float
    ) -> bool:
        """Send a large delivery from workers; False if the last one has failed, too."""
        check = await self.check_for(delivery)
        for source in delivery.sources:
            try:
                has_begun = response.sent_bytes > 0
                pieces = self._worker_reads.pieces(
                    delivery, source, check, started, has_begun=has_begun
                )
                async with aclosing(pieces):
                    async for data in pieces:
                        response.node_id = source.node_id
                        await response.send(data)
            except RequestFailed as failure:
                self._worker_reads.note_failure(delivery, source, failure)
            except WrongBytes:
                self._worker_reads.note_wrong_bytes(delivery, source.node_id)
            else:
                return True
            # A worker that failed is not paid for bytes from others.
            response.node_id = None
            check.change_source()
        return False

    def _record(
        self,
        delivery: DeliveryPlan,
        node_id: UUID | None,
        exchange: Exchange,
        seconds: float,
    ) -> None:
        self._meters.record(
            delivery.tenant,
            delivery.bucket_id,
            node_id,
            is_hit=delivery.is_hit,
            bytes_served=exchange.sent_bytes,
            seconds=seconds,
            client="" if node_id is None else self._proxies.client_of(exchange.scope),
        )


def _only_block(sha256: bytes, crc32: int | None) -> BlockCheck:
    """Return the check of a blob of one block. crc32: used for it, unless it is None."""
    if crc32 is None:
        return lambda _, block: hashlib.sha256(block).digest() == sha256
    return lambda _, block: bool(crt.crc32(block) == crc32)
