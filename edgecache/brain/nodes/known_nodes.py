"""The node registry: rows read every two seconds, plus this brain's own experience."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final
from uuid import UUID

import structlog

from edgecache.brain.core.background import BackgroundTasks, PeriodicTask, wait_for_wakeup
from edgecache.brain.core.errors import DatabaseUnavailable
from edgecache.brain.core.values import BucketInfo, WorkerSource
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.nodes import node_jobs, node_rows
from edgecache.brain.nodes.health import Health, NodeStatistics
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.placement import order
from edgecache.brain.nodes.regions import RegionMap
from edgecache.brain.nodes.stopped_organizations import StoppedOrganizations
from edgecache.http.client import ServerAddress

log = structlog.get_logger(__name__)

REFRESH_S: Final = 2.0
_ASKED: Final = frozenset((Health.ONLINE, Health.SUSPECT))


class KnownNodes:
    """All nodes, the ones to read from and the ones that can store more."""

    def __init__(
        self,
        database: BrainDatabase,
        coherence: Coherence,
        region_map: RegionMap,
        *,
        interval_s: float,
        guards_operators: bool,
    ) -> None:
        """interval_s: between two heartbeats of a node.

        guards_operators: connect to nodes of organizations at public addresses only.
        """
        self.interval_s = interval_s
        self._guards_operators = guards_operators
        self._database = database
        self._coherence = coherence
        self._region_map = region_map
        self._rows: dict[UUID, NodeRow] = {}
        self._statistics: dict[UUID, NodeStatistics] = {}
        self._read_at = 0.0
        self._wakeup = asyncio.Event()
        # Known rows stay in use while the database is unreachable: ages grow, so that silent nodes
        # become offline all the same.
        self._periodic = PeriodicTask(
            "nodes", self.refresh, lambda: wait_for_wakeup(self._wakeup, REFRESH_S)
        )
        self._background = BackgroundTasks()
        # Caught by this brain and not yet quarantined in the database.
        self._wrong_bytes: set[UUID] = set()
        # Copies that are about to be verified by their node.
        self._suspected: set[tuple[UUID, bytes]] = set()
        self.stopped = StoppedOrganizations(database, coherence)
        self._changes = 0

    @property
    def changes(self) -> int:
        """A number that rises with each change that may affect ``sources``."""
        return self._changes + self.stopped.changes

    async def start(self) -> None:
        """Read the rows now, then periodically."""
        self._coherence.subscribe(node_rows.TOPIC, lambda *_: self._wakeup.set())
        try:
            await self.refresh()
        except DatabaseUnavailable:
            log.warning("brain_nodes_unread")
        await self._periodic.start()

    async def stop(self) -> None:
        """Stop reading and cancel background tasks."""
        await self._periodic.stop()
        await self._background.stop()

    async def refresh(self) -> None:
        """Read the rows. Raises DatabaseUnavailable."""
        await self.stopped.refresh()
        rows = await node_rows.read_all(self._database)
        self._read_at = time.monotonic()
        self._changes += 1
        self._rows = {row.id: row for row in rows}
        self._statistics = {
            row.id: self._statistics.get(row.id) or NodeStatistics() for row in rows
        }

    def may_use_operators_nodes(self, bucket: BucketInfo) -> bool:
        """True if other operators' nodes may serve a bucket's objects to clients now."""
        return bucket.is_public and bucket.tenant.organization_id not in self.stopped

    def get(self, node_id: UUID) -> NodeRow | None:
        """Return one node, None after its removal."""
        return self._rows.get(node_id)

    def nodes(self) -> list[NodeRow]:
        """Return all nodes without those that are being removed."""
        return [row for row in self._rows.values() if row.removed_at is None]

    def nodes_including_removed(self) -> list[NodeRow]:
        """Return all nodes, including those that are being removed."""
        return list(self._rows.values())

    def health(self, row: NodeRow) -> str:
        if row.id in self._wrong_bytes:
            return "quarantined"
        return row.health(interval_s=self.interval_s, later_s=self._later_s())

    def silence_s(self, row: NodeRow) -> float:
        """Return the seconds since a node's last heartbeat; infinite before the first."""
        return math.inf if row.age_s is None else row.age_s + self._later_s()

    def address(self, node_id: UUID) -> ServerAddress | None:
        """Return a node's address, for the brain's own requests (``nodes.client``)."""
        row = self._rows.get(node_id)
        return None if row is None else self.address_of(row)

    def address_of(self, row: NodeRow) -> ServerAddress:
        is_ours = row.organization_id is None
        return ServerAddress(row.endpoint, is_guarded=self._guards_operators and not is_ours)

    def is_guarded(self, node_id: UUID) -> bool:
        """True if connections to a node must go to public addresses only, also those of workers."""
        address = self.address(node_id)
        return address is not None and address.is_guarded

    def statistics(self, node_id: UUID) -> NodeStatistics:
        return self._statistics.get(node_id) or NodeStatistics()

    def sources(
        self,
        sha256: bytes,
        holders: Iterable[UUID],
        region: str,
        *,
        organization_id: int,
        is_public: bool,
    ) -> tuple[WorkerSource, ...]:
        """Return the nodes to read a blob from, nearest first; empty if no holder is usable.

        holders: ``directory.locations``. region: the client's.

        Suspect nodes, and those that failed recently or have corrupt files, come last, because
        there may be no others.
        """
        good: list[NodeRow] = []
        poor: list[NodeRow] = []
        now = time.monotonic()
        for node_id in holders:
            row = self._rows.get(node_id)
            if row is None or not row.may_hold(organization_id, is_public=is_public):
                continue
            if self._suspected and (node_id, sha256) in self._suspected:
                continue
            health = self.health(row)
            statistics = self._statistics[node_id]
            is_well = health == Health.ONLINE and not statistics.is_corrupt
            if is_well and statistics.may_be_asked(now=now):
                good.append(row)
            elif health in _ASKED:
                poor.append(row)
        if len(good) > 1:
            good = order(good, self._statistics, region, self._region_map)
        return tuple([WorkerSource(row.id, row.endpoint) for row in (*good, *poor)])

    def candidates(self, organization_id: int, *, is_public: bool) -> list[NodeRow]:
        """Return the nodes that can store an object of this organization's bucket."""
        now = time.monotonic()
        return [
            row
            for row in self._rows.values()
            if row.status == "active"
            and row.may_hold(organization_id, is_public=is_public)
            and self.health(row) == Health.ONLINE
            and self._statistics[row.id].may_be_asked(now=now)
        ]

    def succeeded(self, node_id: UUID, seconds: float) -> None:
        """Record a node's response and its time to the first byte."""
        self.statistics(node_id).succeeded(seconds)

    def failed(self, node_id: UUID, reason: str) -> None:
        """Record a node's failure."""
        statistics = self.statistics(node_id)
        statistics.failed(now=time.monotonic())
        log.warning(
            "node_failed", node_id=str(node_id), reason=reason, in_a_row=statistics.failures
        )

    def record_right_bytes(self, node_id: UUID, sha256: bytes) -> None:
        """Record that a node's bytes were checked and right."""
        self.statistics(node_id).checks.add(sha256, is_right=True, now=time.monotonic())

    def record_wrong_bytes(self, node_id: UUID, sha256: bytes) -> None:
        """Replace one copy; quarantine an operator's node if too many of its blobs were wrong."""
        row, statistics, now = self._rows.get(node_id), self.statistics(node_id), time.monotonic()
        is_own = row is not None and row.organization_id is None
        statistics.checks.add(sha256, is_right=False, now=now)
        bad, checked = statistics.checks.count(now)
        log.error(
            "node_gave_wrong_bytes",
            node_id=str(node_id),
            sha256=sha256.hex(),
            bad_blobs=bad,
            looked_at=checked,
        )
        self.suspect_copy(node_id, sha256)
        statistics.is_corrupt = statistics.checks.is_corrupt(now, is_own=is_own)
        if not statistics.is_corrupt:
            return
        self._changes += 1
        if is_own:
            log.error("node_rots", node_id=str(node_id), bad_blobs=bad, looked_at=checked)
            return
        self.quarantine(node_id, f"wrong bytes for {bad} of {checked} blobs")

    def quarantine(self, node_id: UUID, reason: str) -> None:
        """Ask a node for nothing more, from now on, and soon in all brains."""
        self._changes += 1
        self._wrong_bytes.add(node_id)
        # Staff may approve it again; it then starts without them.
        statistics = self.statistics(node_id)
        statistics.checks.clear()
        statistics.is_corrupt = False
        self._background.add(self._quarantine(node_id, reason))

    def suspect_copy(self, node_id: UUID, sha256: bytes) -> None:
        """Use a node's copy no more, and have the node verify it."""
        if (node_id, sha256) not in self._suspected:
            self._suspected.add((node_id, sha256))
            self._changes += 1
            self._background.add(self._drop_copy(node_id, sha256))

    async def _drop_copy(self, node_id: UUID, sha256: bytes) -> None:
        await _keep_trying(partial(node_jobs.verify, self._coherence, node_id, sha256))
        # Until the announcement of that has certainly come.
        await asyncio.sleep(REFRESH_S)
        self._suspected.discard((node_id, sha256))
        self._changes += 1

    async def _quarantine(self, node_id: UUID, reason: str) -> None:
        async def quarantine() -> None:
            async with self._coherence.transaction(wait_for_acks=False) as change:
                await node_rows.set_status(change, node_id, "quarantined", reason=reason)
            await self.refresh()

        await _keep_trying(quarantine)
        self._wrong_bytes.discard(node_id)

    def _later_s(self) -> float:
        return time.monotonic() - self._read_at


async def _keep_trying(work: Callable[[], Awaitable[None]]) -> None:
    """Do something as soon as the database is there."""
    while True:
        try:
            return await work()
        except DatabaseUnavailable:
            await asyncio.sleep(REFRESH_S)
