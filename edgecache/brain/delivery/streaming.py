"""The mover: carries a Delivery out, byte for byte right or not at all.

A worker that fails, stalls, dies in the middle or lies is followed by the next one, then by the
brain's own copy or the origin, at the byte where it broke; the client sees one answer. What
cannot be helped any more cuts the connection: a body that is short is an error to every client.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Final, NamedTuple
from uuid import UUID

import structlog

from edgecache.brain.delivery.delivery import Delivery, Source, Span
from edgecache.brain.delivery.integrity import (
    Check,
    Chunked,
    Crc32,
    Digest,
    Passing,
    Sha256,
    Whole,
    WrongBytes,
)
from edgecache.brain.delivery.nginx_offload import (
    Gateway,
    headers_for,
    headers_for_file,
    readable_store,
)
from edgecache.brain.delivery.response import Outcome, WayOut, with_length
from edgecache.brain.delivery.spot_checks import Samples
from edgecache.brain.delivery.worker_pool import Asked, WorkerConnection, WorkerPool
from edgecache.brain.directory.directory import Directory
from edgecache.brain.errors import DatabaseAway, OriginFailed
from edgecache.brain.metering.meters import Meters
from edgecache.brain.nodes.client import Address, NodeFailed
from edgecache.brain.nodes.health import Conduct
from edgecache.brain.nodes.registry import Nodes
from edgecache.brain.nodes.tickets import Leave, TicketSigner
from edgecache.brain.values import CHUNK_BYTES, BucketInfo
from edgecache.http.exchange import Exchange
from edgecache.http.heads import HeaderPairs
from edgecache.protocol.hot import OBJECT_LIMIT_BYTES, Hot

log = structlog.get_logger(__name__)

# Answered in one piece, and checked before: another source can still put it right.
SMALL_BYTES: Final = 2**18
# Of what trusted nodes serve, the share that is checked against SHA-256: ranges at the cost of
# whole MiBs. The rest of whole blobs is checked against CRC-32, ranges of small ones always.
CHECKED_SHARE: Final = 1 / 16

# Gives bytes of the version when no worker does.
Own = Callable[[Span], AsyncIterator[bytes]]


class Without(NamedTuple):
    """How it is done without asking a worker. beside: whose file nginx sends, else from memory."""

    beside: Source | None


class Mover:
    """Moves bytes from workers to clients within this process."""

    def __init__(
        self,
        directory: Directory,
        nodes: Nodes,
        tickets: TicketSigner,
        meters: Meters,
        gateway: Gateway,
        *,
        on_read: Callable[[Delivery], None],
    ) -> None:
        """on_read: called with each delivery of a body."""
        self._directory = directory
        self._nodes = nodes
        self._tickets = tickets
        self._meters = meters
        self.gateway = gateway
        self.on_read = on_read
        self.samples = Samples()
        self._hot = Hot()
        self._pool = WorkerPool()
        self._background: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Begin."""
        self._pool.start()

    async def stop(self) -> None:
        """Close the connections."""
        await self._pool.stop()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    async def deliver(self, delivery: Delivery, exchange: Exchange, own: Own) -> Without | None:
        """Answer an exchange; tell how, where it was done without a worker.

        own: the last resort. Raises BrainError where nothing was answered yet, or too little
        (the connection is to be cut then); ClientGone.
        """
        if not delivery.sends_body or delivery.span.length == 0:
            exchange.response_empty(delivery.status, with_length(delivery))
            return None
        self.on_read(delivery)
        # What a stranger's machine holds comes from there: its operator is paid for that.
        asks = self._has_stranger(delivery) or self.samples.take(delivery.sha256)
        if not asks and self.gateway.may_move(delivery, exchange.scope):
            return self._hand_over(delivery, exchange)
        outcome = Outcome(exchange.began)
        try:
            if not asks and self._from_memory(delivery, exchange, outcome):
                return Without(None)
            if delivery.span.length <= SMALL_BYTES:
                await self._small(delivery, exchange, own, outcome)
            else:
                await self._long(delivery, exchange, own, outcome)
        finally:
            if exchange.sent_bytes:
                self._meters.record(
                    delivery.tenant,
                    delivery.bucket_id,
                    outcome.node_id,
                    is_hit=delivery.is_hit,
                    bytes_served=exchange.sent_bytes,
                    seconds=outcome.first_byte_s,
                )
        return None

    async def pass_on(
        self,
        bucket: BucketInfo,
        exchange: Exchange,
        head: tuple[int, HeaderPairs],
        body: AsyncIterator[bytes],
    ) -> None:
        """Answer with what an origin says, as it comes: counted as a miss, and not checked.

        head: status and header fields. Raises ClientGone, and as the body does.
        """
        stream = exchange.response_stream(*head)
        began = time.perf_counter() - exchange.began
        try:
            async for piece in body:
                await stream.send_bytes(piece)
        finally:
            self._meters.record(
                bucket.tenant,
                bucket.id,
                None,
                is_hit=False,
                bytes_served=exchange.sent_bytes,
                seconds=began,
            )

    async def check_of(self, delivery: Delivery) -> Check:
        """Decide how a delivery's bytes are checked; a stranger's machine is never believed.

        Raises DatabaseAway.
        """
        span, size = delivery.span, delivery.size
        is_checked = (
            delivery.is_verified
            or self._has_stranger(delivery)
            or (bool(delivery.sources) and random.random() < CHECKED_SHARE)  # noqa: S311 - a sample
        )
        if delivery.is_whole and (size <= CHUNK_BYTES or not delivery.is_verified):
            return Whole(_digest_of(delivery, is_checked=is_checked), size)
        # Of a small blob all is read for a part of it, so that the part can be checked.
        if (is_checked or size <= OBJECT_LIMIT_BYTES) and delivery.sha256:
            if size <= CHUNK_BYTES:
                return Chunked(delivery.sha256, span, size)
            manifest = await self._directory.manifest(delivery.sha256)
            if manifest is not None:
                return Chunked(manifest.chunks, span, size)
        return Passing(span)

    async def _small(
        self, delivery: Delivery, exchange: Exchange, own: Own, outcome: Outcome
    ) -> None:
        for source in delivery.sources:
            check = await self.check_of(delivery)
            try:
                body = await self._gather(delivery, source, check, outcome.began)
            except NodeFailed as failure:
                self.blame(delivery, source, failure)
            except WrongBytes:
                self._accuse(delivery, {source.node_id})
            else:
                outcome.node_id = source.node_id
                outcome.first_byte_s = time.perf_counter() - outcome.began
                exchange.response_bytes(delivery.status, delivery.headers, body)
                if delivery.is_whole and not self._has_stranger(delivery):
                    self._hot.offer(delivery.sha256, body)
                return
        check = await self.check_of(delivery)
        wanted = Span(check.position, check.end - check.position)
        pieces = [self._right(check, piece) async for piece in own(wanted)]
        if check.position != check.end:
            raise OriginFailed
        outcome.first_byte_s = time.perf_counter() - outcome.began
        exchange.response_bytes(delivery.status, delivery.headers, b"".join(pieces))

    def in_memory(self, sha256: bytes) -> bytes | None:
        """Give a small blob that is in memory here: a hash's bytes never change."""
        return self._hot.get(sha256)

    def _from_memory(self, delivery: Delivery, exchange: Exchange, outcome: Outcome) -> bool:
        whole = self.in_memory(delivery.sha256)
        if whole is None:
            return False
        start, length = delivery.span
        ready = whole if length == delivery.size else whole[start : start + length]
        outcome.first_byte_s = time.perf_counter() - outcome.began
        exchange.response_bytes(delivery.status, delivery.headers, ready)
        return True

    async def _gather(
        self, delivery: Delivery, source: Source, check: Check, began: float
    ) -> bytes:
        """Give a small span whole. Raises NodeFailed, WrongBytes."""
        address, connection, conduct = await self._ask(
            delivery, source, check, began, waits_for_all=True
        )
        try:
            body = check.take(connection.all_of_it())
            if check.position != check.end:
                raise WrongBytes(has_leaked=False)
            return body
        finally:
            conduct.running -= 1
            self._pool.release(address, connection)

    async def _long(
        self, delivery: Delivery, exchange: Exchange, own: Own, outcome: Outcome
    ) -> None:
        check = await self.check_of(delivery)
        way_out = WayOut(delivery, exchange, outcome)
        givers: set[UUID] = set()
        for source in delivery.sources:
            try:
                moving = self._from_worker(delivery, source, check, outcome.began)
                async with aclosing(moving):
                    async for data in moving:
                        givers.add(source.node_id)
                        outcome.node_id = source.node_id
                        await way_out.send(data)
            except NodeFailed as failure:
                self.blame(delivery, source, failure)
                check.restart()
            except WrongBytes as wrong:
                self._accuse(delivery, givers | {source.node_id})
                if wrong.has_leaked:
                    raise OriginFailed from wrong
                check.start_over()
            else:
                return
        async for piece in own(Span(check.position, check.end - check.position)):
            await way_out.send(self._right(check, piece))
        if check.position != check.end:
            raise OriginFailed

    async def _from_worker(
        self, delivery: Delivery, source: Source, check: Check, began: float
    ) -> AsyncGenerator[bytes]:
        """Give what a worker sends, as far as the check lets it through.

        Raises NodeFailed, WrongBytes.
        """
        address, connection, conduct = await self._ask(delivery, source, check, began)
        try:
            while check.position < check.end:
                data = check.take(await connection.piece())
                if data:
                    yield data
        finally:
            conduct.running -= 1
            self._pool.release(address, connection)

    async def _ask(
        self,
        delivery: Delivery,
        source: Source,
        check: Check,
        began: float,
        *,
        waits_for_all: bool = False,
    ) -> tuple[Address, WorkerConnection, Conduct]:
        """Ask a worker for what the check wants next. Raises NodeFailed."""
        address = self._nodes.address(source.node_id)
        if address is None:
            raise NodeFailed("gone")
        conduct = self._nodes.conduct(source.node_id)
        conduct.running += 1
        try:
            connection = await self._pool.ask(
                address,
                delivery.sha256,
                Asked(Span(check.position, check.end - check.position), delivery.size),
                ticket=self.ticket(delivery, source),
                waits_for_all=waits_for_all,
            )
        except BaseException:
            conduct.running -= 1
            raise
        self._nodes.succeeded(source.node_id, time.perf_counter() - began)
        return address, connection, conduct

    def _right(self, check: Check, piece: bytes) -> bytes:
        try:
            return check.take(piece)
        except WrongBytes as wrong:
            log.exception("own_bytes_wrong")
            raise OriginFailed from wrong

    def _accuse(self, delivery: Delivery, givers: set[UUID]) -> None:
        """Bar the node that gave wrong bytes; of several, nobody can tell which one did."""
        if len(givers) == 1:
            self._nodes.lied(next(iter(givers)), delivery.sha256)
            return
        for node_id in givers:
            self._nodes.failed(node_id, "wrong_bytes_among_several")

    def ticket(self, delivery: Delivery, source: Source) -> str:
        """Give a ticket with which this process reads the blob from a worker."""
        leave = Leave(delivery.tenant, delivery.bucket_id, delivery.sha256, delivery.size)
        return self._tickets.for_own_read(source.node_id, leave, now=time.time())

    def _has_stranger(self, delivery: Delivery) -> bool:
        for source in delivery.sources:
            row = self._nodes.get(source.node_id)
            if row is None or row.organization_id is not None:
                return True
        return False

    def _hand_over(self, delivery: Delivery, exchange: Exchange) -> Without | None:
        """Have nginx send the bytes, of a file beside it or from a worker."""
        beside = readable_store(delivery, exchange.scope)
        if beside is not None:
            headers = headers_for_file(delivery, beside)
        else:
            source = delivery.sources[0]
            headers = headers_for(delivery, source, self.ticket(delivery, source))
        exchange.response_empty(delivery.status, headers)
        # How far nginx gets is not heard of, so all of it counts.
        self._meters.record(
            delivery.tenant,
            delivery.bucket_id,
            (beside or delivery.sources[0]).node_id,
            is_hit=delivery.is_hit,
            bytes_served=delivery.span.length,
            seconds=time.perf_counter() - exchange.began,
        )
        return None if beside is None else Without(beside)

    def blame(self, delivery: Delivery, source: Source, failure: NodeFailed) -> None:
        """Note what a worker did not do; one that says it has not got the bytes is believed."""
        if failure.status == 404:
            self._in_background(self._forget(delivery.sha256, source.node_id))
            return
        self._nodes.failed(source.node_id, failure.reason)

    async def _forget(self, sha256: bytes, node_id: UUID) -> None:
        try:
            await self._directory.drop_location(sha256, node_id)
        except DatabaseAway:
            log.warning("location_not_dropped", node_id=str(node_id))

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _digest_of(delivery: Delivery, *, is_checked: bool) -> Digest:
    if is_checked or delivery.crc32 is None or not delivery.sources:
        return Sha256(delivery.sha256)
    return Crc32(delivery.crc32)
