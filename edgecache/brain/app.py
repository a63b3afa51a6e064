"""One brain: everything a request handler may use, and its life from start to stop."""

import asyncio
import gc
import signal
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import structlog

from edgecache.brain.cdn.app import PullApi
from edgecache.brain.conf import BrainSettings
from edgecache.brain.database import Database
from edgecache.brain.delivery.nginx_offload import Gateway
from edgecache.brain.delivery.streaming import Mover
from edgecache.brain.directory.buckets import Buckets
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.directory.directory import Directory
from edgecache.brain.directory.hosts import Hosts
from edgecache.brain.directory.purges import Purges
from edgecache.brain.fetch.objects import Fills
from edgecache.brain.internal_api.app import internal_api
from edgecache.brain.listeners import Listeners, Served, granian
from edgecache.brain.metering.meters import Meters
from edgecache.brain.metering.statistics import Statistics
from edgecache.brain.nodes.client_region import Locator
from edgecache.brain.nodes.endpoint_proofs import Proofs
from edgecache.brain.nodes.hot_objects import Heat
from edgecache.brain.nodes.regions import Atlas
from edgecache.brain.nodes.registry import Nodes
from edgecache.brain.nodes.repair import Healing
from edgecache.brain.nodes.replica_plan import Copies
from edgecache.brain.nodes.replication import Replication
from edgecache.brain.nodes.tickets import TicketSigner
from edgecache.brain.origins.catalog import Catalog
from edgecache.brain.origins.registry import Origins
from edgecache.brain.s3.api import ObjectApi
from edgecache.brain.storage.garbage_collection import Collector
from edgecache.brain.storage.staging import Staging
from edgecache.brain.upkeep import Upkeep
from edgecache.brain.workers_api.app import workers_api
from edgecache.http.server import Server
from platform_site.lib.ids import uuid7

log = structlog.get_logger(__name__)

STOP_PATIENCE_S: Final = 12.0
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True, kw_only=True)
class Brain:
    """The parts of one process, made by ``assemble``."""

    id: UUID
    settings: BrainSettings
    database: Database
    coherence: Coherence
    directory: Directory
    buckets: Buckets
    hosts: Hosts
    staging: Staging
    origins: Origins
    fills: Fills
    catalog: Catalog
    purges: Purges
    collector: Collector
    nodes: Nodes
    locator: Locator
    tickets: TicketSigner
    meters: Meters
    statistics: Statistics
    mover: Mover
    replication: Replication
    healing: Healing
    heat: Heat
    proofs: Proofs
    upkeep: Upkeep
    _listeners: Listeners | None = field(default=None, repr=False)
    _pull: PullApi | None = field(default=None, repr=False)

    async def start(self) -> None:
        """Bring the parts up in the order of their needs, the ports last.

        Raises PortTakenError.
        """
        await self.staging.start()
        await self.database.open()
        await self.coherence.start()
        await self.origins.start()
        await self.nodes.start()
        await self.meters.start()
        await self.mover.start()
        self.fills.on_kept = self.replication.kept
        self.mover.on_read = self.heat.read
        await self.replication.start()
        await self.healing.start()
        await self.collector.start()
        await self.upkeep.start()
        self._listeners = Listeners(self._served())
        await self._listeners.start()
        log.info(
            "brain_started",
            brain_id=str(self.id),
            internal=self.settings.internal.port,
            objects=self.settings.s3.port,
            workers=self.settings.workers.port,
        )

    async def stop(self) -> None:
        """Accept nothing more, finish what runs, write down what was counted, end the lease."""
        if self._listeners is not None:
            await self._listeners.stop(patience_s=STOP_PATIENCE_S)
        if self._pull is not None:
            await self._pull.stop()
        await self.upkeep.stop()
        await self.collector.stop()
        await self.proofs.stop()
        await self.heat.stop()
        await self.healing.stop()
        await self.replication.stop()
        await self.fills.stop()
        await self.purges.stop()
        await self.mover.stop()
        await self.meters.stop()
        await self.nodes.stop()
        await self.origins.stop()
        await self.coherence.stop()
        await self.database.close()
        await self.staging.stop()
        log.info("brain_stopped", brain_id=str(self.id))

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT; the exit status, 1 when a part failed."""
        loop = asyncio.get_running_loop()
        halt = asyncio.Event()
        for signum in STOP_SIGNALS:
            loop.add_signal_handler(signum, halt.set)
        try:
            return await self._serve(halt)
        finally:
            await self.stop()

    async def _serve(self, halt: asyncio.Event) -> int:
        await self.start()
        # What was made by now stays; the collector need not walk it again and again.
        gc.collect()
        gc.freeze()
        halting = asyncio.create_task(halt.wait())
        failing = asyncio.create_task(self._wait_for_failure())
        await asyncio.wait({halting, failing}, return_when=asyncio.FIRST_COMPLETED)
        has_failed = not halting.done()
        for task in (halting, failing):
            task.cancel()
        return 1 if has_failed else 0

    async def _wait_for_failure(self) -> None:
        if self._listeners is not None:
            await self._listeners.wait_for_failure()
            log.error("brain_listener_failed")

    def _served(self) -> list[Served]:
        settings = self.settings
        self._pull = PullApi(self)
        api = ObjectApi(self, pull=self._pull)
        objects = Server(
            api,
            address=settings.s3.address,
            port=settings.s3.port,
            path=settings.s3_socket,
            at_once=api.standing.answer,
        )
        tls = (settings.tls_cert, settings.tls_key)
        return [
            granian(internal_api(self), settings.internal),
            granian(workers_api(self), settings.workers, tls=tls),
            Served(settings.s3, objects),
        ]


@dataclass(frozen=True, slots=True)
class _Core:
    """The parts that know of objects; the others know of nodes."""

    id: UUID
    database: Database
    coherence: Coherence
    directory: Directory
    staging: Staging
    origins: Origins
    fills: Fills
    purges: Purges


def assemble(settings: BrainSettings) -> Brain:
    """Make a brain out of its parts; nothing is opened yet."""
    core = _core(settings)
    database, coherence = core.database, core.coherence
    atlas = Atlas(settings.geography.coordinates)
    nodes = _nodes(settings, core, atlas)
    tickets = TicketSigner(settings.secret, settings.previous_secrets)
    meters = Meters(database, core.id)
    statistics = Statistics(database, nodes, meters)
    copies = Copies(settings.replicas, max(settings.hot_replicas, settings.replicas))
    replication = Replication(core.directory, core.staging, nodes, tickets, copies=copies)
    healing = Healing(database, coherence, nodes, replication, brain_id=core.id)
    return Brain(
        **{name: getattr(core, name) for name in core.__slots__},
        settings=settings,
        buckets=Buckets(database, coherence),
        hosts=Hosts(database, coherence, settings.s3_domains),
        catalog=Catalog(database, coherence, allows_private=not settings.is_production),
        collector=Collector(database, coherence, core.staging, core.purges, core.fills.writes),
        nodes=nodes,
        locator=Locator(settings.geography, atlas),
        tickets=tickets,
        meters=meters,
        statistics=statistics,
        mover=Mover(
            core.directory,
            nodes,
            tickets,
            meters,
            Gateway((settings.secret, *settings.previous_secrets)),
        ),
        replication=replication,
        healing=healing,
        heat=Heat(database, healing),
        proofs=Proofs(coherence, nodes),
        upkeep=Upkeep(database, statistics),
    )


def _nodes(settings: BrainSettings, core: _Core, atlas: Atlas) -> Nodes:
    return Nodes(
        core.database,
        core.coherence,
        atlas,
        interval_s=settings.heartbeat_s,
        guards_strangers=settings.is_production,
    )


def _core(settings: BrainSettings) -> _Core:
    brain_id = uuid7()
    database = Database(settings.database_url, max_connections=settings.connections)
    coherence = Coherence(database, brain_id)
    directory = Directory(database, coherence, index_bytes=settings.index_bytes)
    staging = Staging(settings.data_dir, limit_bytes=settings.staging_bytes)
    origins = Origins(database, coherence, staging, allows_private=not settings.is_production)
    return _Core(
        id=brain_id,
        database=database,
        coherence=coherence,
        directory=directory,
        staging=staging,
        origins=origins,
        fills=Fills(database, directory, staging, origins, brain_id=brain_id, limit=settings.fills),
        purges=Purges(database, coherence),
    )
