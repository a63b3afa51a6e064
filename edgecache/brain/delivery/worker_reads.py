"""Reads of blobs from workers; what they do wrong counts against their health."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

import structlog

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import DatabaseUnavailable, Overloaded
from edgecache.brain.core.values import WorkerSource
from edgecache.brain.delivery.integrity import BlockChecks, WrongBytes
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.directory.versions import Directory
from edgecache.brain.nodes.client import STALL_S, BlobPart, WorkerClient
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.replica_plan import request_check
from edgecache.brain.nodes.tickets import TicketGrant, TicketSigner
from edgecache.http.client import ConnectionShareExhausted
from edgecache.http.outgoing import OutgoingConnection, RequestFailed

log = structlog.get_logger(__name__)

# A node that sends less is replaced in the middle of a read, as one that sends nothing.
SLOWEST_BYTES_PER_S: Final = 64 << 10
# The pace is measured anew after so many: a fast beginning earns no pause.
PACE_BYTES: Final = 256 << 10


class WorkerReads:
    def __init__(
        self, directory: Directory, nodes: KnownNodes, tickets: TicketSigner, client: WorkerClient
    ) -> None:
        self._directory = directory
        self._nodes = nodes
        self._tickets = tickets
        self._client = client
        self._background = BackgroundTasks()

    async def stop(self) -> None:
        """Cancel what runs in the background."""
        await self._background.stop()

    async def whole(
        self, delivery: DeliveryPlan, source: WorkerSource, check: BlockChecks, started: float
    ) -> bytes:
        """Return all bytes that the check wants, which are few.

        started: ``time.perf_counter`` when the client's request came. Raises RequestFailed,
        WrongBytes, Overloaded.
        """
        async with self._request(
            delivery, source, check, started, waits_for_body=True
        ) as connection:
            body = check.accept(connection.whole_body())
            if check.position != check.end:
                raise WrongBytes
            self._nodes.record_right_bytes(source.node_id, delivery.sha256)
            return body

    async def pieces(
        self,
        delivery: DeliveryPlan,
        source: WorkerSource,
        check: BlockChecks,
        started: float,
        *,
        has_begun: bool,
    ) -> AsyncGenerator[bytes]:
        """Yield a worker's bytes that pass the check.

        has_begun: a part of the response was sent, so that it would be cut short if no slot is
        free.

        Raises RequestFailed, WrongBytes, Overloaded.
        """
        async with self._request(
            delivery, source, check, started, waits_for_body=False, has_no_timeout=has_begun
        ) as connection:
            waited_s, received_bytes = 0.0, 0
            while check.position < check.end:
                asked_at = time.perf_counter()
                piece = await connection.piece()
                # The client may take its time: only what the node takes counts.
                waited_s += time.perf_counter() - asked_at
                received_bytes += len(piece)
                if waited_s > STALL_S + received_bytes / SLOWEST_BYTES_PER_S:
                    raise RequestFailed("too_slow")
                if received_bytes >= PACE_BYTES:
                    waited_s, received_bytes = 0.0, 0
                data = check.accept(piece)
                if data:
                    yield data
            self._nodes.record_right_bytes(source.node_id, delivery.sha256)

    def is_foreign(self, delivery: DeliveryPlan) -> bool:
        """True if a source is not the platform's own: it is paid for reads, and never trusted."""
        for source in delivery.sources:
            row = self._nodes.get(source.node_id)
            if row is None or row.organization_id is not None:
                return True
        return False

    async def is_withheld(self, delivery: DeliveryPlan) -> bool:
        """True if other operators' nodes hold the bytes, and do not serve this organization now.

        Raises DatabaseUnavailable.
        """
        owner = delivery.tenant.organization_id
        if owner not in self._nodes.stopped:
            return False
        holders = map(self._nodes.get, await self._directory.locations(delivery.sha256))
        return any(row is not None and not row.may_hold(owner, is_public=False) for row in holders)

    def note_failure(
        self, delivery: DeliveryPlan, source: WorkerSource, failure: RequestFailed
    ) -> None:
        """Record that a worker did not send the bytes; a 404 means that it does not hold them."""
        if failure.status == 404:
            self._background.add(self._drop_location(delivery.sha256, source.node_id))
            return
        self._nodes.failed(source.node_id, failure.reason)

    def note_wrong_bytes(self, delivery: DeliveryPlan, node_id: UUID) -> None:
        """Have a wrong copy replaced."""
        self._nodes.record_wrong_bytes(node_id, delivery.sha256)

    @asynccontextmanager
    async def _request(
        self,
        delivery: DeliveryPlan,
        source: WorkerSource,
        check: BlockChecks,
        started: float,
        *,
        waits_for_body: bool,
        has_no_timeout: bool = False,
    ) -> AsyncGenerator[OutgoingConnection]:
        """Request what the check wants next; yield the connection once the response's head came.

        Raises RequestFailed, Overloaded.
        """
        address = self._nodes.address(source.node_id)
        if address is None:
            raise RequestFailed("gone")
        statistics = self._nodes.statistics(source.node_id)
        statistics.running += 1
        try:
            length = check.end - check.position
            try:
                connection = await self._client.read(
                    address,
                    BlobPart(delivery.sha256, check.position, length, delivery.size),
                    ticket=self._ticket(delivery, source),
                    waits_for_all=waits_for_body,
                    has_no_timeout=has_no_timeout,
                )
            except ConnectionShareExhausted:
                # No other node and no origin should be asked instead.
                raise Overloaded from None
            first_byte_s = time.perf_counter() - started
            try:
                yield connection
                # Only now: a node that never gets further than the head fails again and again.
                self._nodes.succeeded(source.node_id, first_byte_s)
            finally:
                self._client.release(address, connection)
        finally:
            statistics.running -= 1

    def _ticket(self, delivery: DeliveryPlan, source: WorkerSource) -> str:
        grant = TicketGrant(delivery.tenant, delivery.bucket_id, delivery.sha256, delivery.size)
        return self._tickets.for_own_read(source.node_id, grant, now=time.time())

    async def _drop_location(self, sha256: bytes, node_id: UUID) -> None:
        try:
            await self._directory.drop_location(sha256, node_id)
            # The file was lost or altered: it is made again.
            async with self._directory.coherence.transaction(wait_for_acks=False) as change:
                request_check(change, [sha256])
        except DatabaseUnavailable:
            log.warning("location_not_dropped", node_id=str(node_id))
