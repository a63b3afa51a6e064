"""The wiring of a brain: makes its parts, and hands each API the parts that it uses."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from edgecache.brain.audits.audits import Audits
from edgecache.brain.audits.reading import Reader
from edgecache.brain.cdn.app import CdnApi
from edgecache.brain.cdn.parts import CdnParts
from edgecache.brain.conf import BrainSettings, Listener
from edgecache.brain.database import Database
from edgecache.brain.delivery.nginx_offload import NginxOffload
from edgecache.brain.delivery.own_files import OwnFiles
from edgecache.brain.delivery.response_cache import ResponseCache
from edgecache.brain.delivery.streaming import Streamer
from edgecache.brain.delivery.worker_reads import WorkerReads
from edgecache.brain.directory.buckets import Buckets
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.directory.directory import Directory
from edgecache.brain.directory.hosts import Hosts
from edgecache.brain.directory.purges import Purges
from edgecache.brain.errors import Overloaded
from edgecache.brain.fetch.object_cache import ObjectCache
from edgecache.brain.internal_api.app import internal_api
from edgecache.brain.internal_api.parts import InternalApiParts
from edgecache.brain.metering.meters import Meters
from edgecache.brain.metering.operator_networks import OperatorNetworks
from edgecache.brain.metering.own_reads import OwnReads
from edgecache.brain.metering.statistics import Statistics
from edgecache.brain.nodes.client import WorkerClient
from edgecache.brain.nodes.client_region import Locator
from edgecache.brain.nodes.endpoint_proofs import EndpointProofs
from edgecache.brain.nodes.hot_objects import HotObjects
from edgecache.brain.nodes.regions import RegionMap
from edgecache.brain.nodes.registry import Nodes
from edgecache.brain.nodes.repair import Repair
from edgecache.brain.nodes.replica_plan import ReplicaCounts
from edgecache.brain.nodes.replication import Replication
from edgecache.brain.nodes.tickets import TicketSigner
from edgecache.brain.origins.catalog import Catalog
from edgecache.brain.origins.registry import Origins
from edgecache.brain.process.listeners import Listeners, as_node, as_platform, port_server
from edgecache.brain.process.process import BrainProcess, Part
from edgecache.brain.process.upkeep import Upkeep
from edgecache.brain.s3.api import ObjectApi
from edgecache.brain.s3.auth.platform_keys import PlatformKeys
from edgecache.brain.s3.parts import XML_BYTES, XML_SPARE, S3Parts
from edgecache.brain.siblings.place import Place
from edgecache.brain.siblings.reports import Siblings
from edgecache.brain.siblings.shared_memory import PortBalance
from edgecache.brain.storage.garbage_collection import GarbageCollector
from edgecache.brain.storage.parts import Parts
from edgecache.brain.storage.parts_limit import PartsLimit
from edgecache.brain.storage.staging import Staging
from edgecache.brain.storage.stores.managed import ManagedStore
from edgecache.brain.storage.stores.registry import Stores
from edgecache.brain.workers_api.app import workers_api
from edgecache.brain.workers_api.parts import WorkersApiParts
from edgecache.http.exchange import App
from edgecache.http.machine import connections_allowed
from edgecache.http.server.server import Server
from edgecache.http.shares import Shares
from edgecache.http.turns import LoopTurns
from platform_site.lib.ids import uuid7


@dataclass(frozen=True, slots=True)
class _Core:
    """What every other part builds on."""

    brain_id: UUID
    database: Database
    coherence: Coherence
    directory: Directory
    staging: Staging
    stores: Stores
    parts: Parts
    running: Shares
    platform_keys: PlatformKeys


@dataclass(frozen=True, slots=True)
class _Cluster:
    """What knows of nodes."""

    nodes: Nodes
    locator: Locator
    tickets: TicketSigner
    replication: Replication
    repair: Repair
    hot_objects: HotObjects
    proofs: EndpointProofs
    audits: Audits
    networks: OperatorNetworks
    own_reads: OwnReads
    meters: Meters
    statistics: Statistics
    worker_client: WorkerClient
    worker_reads: WorkerReads
    streamer: Streamer


@dataclass(frozen=True, slots=True)
class _Objects:
    """What reads, writes and removes objects."""

    origins: Origins
    managed: ManagedStore
    objects: ObjectCache
    purges: Purges
    garbage_collector: GarbageCollector
    buckets: Buckets
    hosts: Hosts


def assemble(settings: BrainSettings, place: Place) -> BrainProcess:
    """Make one process of a brain of its parts; nothing is opened yet."""
    settings = replace(settings, processes=settings.processes.of_one())
    core = _core(settings)
    cluster = _cluster(settings, core)
    objects = _objects(settings, core, cluster)
    cdn = CdnApi(_cdn_parts(core, cluster, objects))
    siblings = Siblings(
        place,
        core.coherence,
        core.staging,
        cluster.meters,
        objects.garbage_collector.count_parts,
    )
    s3 = ObjectApi(_s3_parts(settings, core, cluster, objects), cdn=cdn)
    internal = internal_api(_internal_api_parts(settings, core, cluster, objects, siblings))
    workers = workers_api(_workers_api_parts(settings, core, cluster))
    return BrainProcess(
        _parts(core, cluster, objects, cdn, siblings),
        _listeners(settings, place, s3, internal, workers),
    )


def _core(settings: BrainSettings) -> _Core:
    brain_id = uuid7()
    database = Database(settings.database_url, max_connections=settings.processes.connections)
    coherence = Coherence(database, brain_id)
    directory = Directory(database, coherence, index_bytes=settings.processes.index_bytes)
    staging = Staging(settings.data_dir, limit_bytes=settings.staging_bytes)
    stores = Stores(database, coherence, settings.stores)
    parts = Parts(staging, stores, PartsLimit(database, settings.uploads))
    # Of the object API's clients; an organization may have half of them at work.
    running = Shares(connections_allowed(), refusal=Overloaded)
    return _Core(
        brain_id,
        database,
        coherence,
        directory,
        staging,
        stores,
        parts,
        running,
        PlatformKeys((settings.secret, *settings.previous_secrets)),
    )


def _cluster(settings: BrainSettings, core: _Core) -> _Cluster:
    database, coherence = core.database, core.coherence
    region_map = RegionMap(settings.geography.coordinates)
    nodes = _nodes(settings, core, region_map)
    tickets = TicketSigner(settings.secret, settings.previous_secrets)
    copies = ReplicaCounts(settings.replicas, max(settings.hot_replicas, settings.replicas))
    worker_client = WorkerClient()
    replication = Replication(
        core.directory, core.staging, nodes, tickets, worker_client, copies=copies
    )
    repair = Repair(database, coherence, nodes, replication, brain_id=core.brain_id)
    hot_objects = HotObjects(database, repair, processes=settings.processes.count)
    networks = OperatorNetworks(database)
    own_reads = OwnReads(nodes, networks, settings.credit_limits)
    meters = Meters(database, core.brain_id, is_creditable=own_reads.is_creditable)
    worker_reads = WorkerReads(core.directory, nodes, tickets, worker_client)
    return _Cluster(
        nodes=nodes,
        locator=Locator(settings.geography, region_map),
        tickets=tickets,
        replication=replication,
        repair=repair,
        hot_objects=hot_objects,
        proofs=EndpointProofs(coherence, nodes, worker_client),
        audits=_audits(settings, core, nodes, tickets, worker_client),
        networks=networks,
        own_reads=own_reads,
        meters=meters,
        statistics=Statistics(database, nodes, meters),
        worker_client=worker_client,
        worker_reads=worker_reads,
        streamer=_streamer(settings, core, worker_reads, meters, hot_objects),
    )


def _nodes(settings: BrainSettings, core: _Core, region_map: RegionMap) -> Nodes:
    return Nodes(
        core.database,
        core.coherence,
        region_map,
        interval_s=settings.heartbeat_s,
        guards_operators=settings.is_production,
        failed_share=settings.audits.failed_share,
    )


def _audits(
    settings: BrainSettings,
    core: _Core,
    nodes: Nodes,
    tickets: TicketSigner,
    worker_client: WorkerClient,
) -> Audits:
    reader = Reader(tickets, worker_client, settings.audits.vantages)
    return Audits(core.database, core.directory, nodes, reader, settings.audits)


def _streamer(
    settings: BrainSettings,
    core: _Core,
    worker_reads: WorkerReads,
    meters: Meters,
    hot_objects: HotObjects,
) -> Streamer:
    offload = NginxOffload((settings.secret, *settings.previous_secrets))
    own_files = OwnFiles(core.staging, offload.files)
    return Streamer(
        core.directory, worker_reads, meters, offload, own_files, on_read=hot_objects.read
    )


def _objects(settings: BrainSettings, core: _Core, cluster: _Cluster) -> _Objects:
    database, coherence, staging = core.database, core.coherence, core.staging
    allows_private = not settings.is_production
    origins = Origins(database, coherence, staging, allows_private=allows_private)
    managed = ManagedStore(database, staging, core.stores, on_restored=cluster.replication.stored)
    objects = ObjectCache(
        database,
        core.directory,
        staging,
        origins,
        managed,
        brain_id=core.brain_id,
        # One for each client: more could hardly wait.
        limit=settings.processes.fills or connections_allowed(),
        on_stored=cluster.replication.stored,
    )
    purges = Purges(database, coherence)
    return _Objects(
        origins=origins,
        managed=managed,
        objects=objects,
        purges=purges,
        garbage_collector=GarbageCollector(
            database, coherence, staging, purges, objects.writes, core.stores
        ),
        buckets=Buckets(database, coherence, staging),
        hosts=Hosts(database, coherence, settings.s3_domains),
    )


def _parts(
    core: _Core, cluster: _Cluster, objects: _Objects, cdn: CdnApi, siblings: Siblings
) -> tuple[Part, ...]:
    return (
        core.staging,
        core.database,
        core.coherence,
        core.stores,
        objects.origins,
        cluster.nodes,
        cluster.meters,
        cluster.worker_client,
        cluster.worker_reads,
        cluster.streamer.offload.files,
        objects.purges,
        objects.managed,
        objects.objects,
        cluster.replication,
        cluster.repair,
        cluster.hot_objects,
        cluster.proofs,
        cluster.audits,
        cluster.networks,
        objects.garbage_collector,
        Upkeep(core.database, cluster.statistics),
        siblings,
        cdn,
    )


def _listeners(
    settings: BrainSettings, place: Place, s3: ObjectApi, internal: App, workers: App
) -> Listeners:
    tls = (settings.tls_cert, settings.tls_key)
    turns = LoopTurns()

    def served(app: App, name: str, listener: Listener, **options: Any) -> Server:
        balance = PortBalance(place.memory.counts(name), place.number)
        return port_server(app, listener, turns, balance=balance, **options)

    return Listeners(
        {
            "internal": served(internal, "internal", settings.internal, payer=as_platform),
            "workers": served(workers, "workers", settings.workers, payer=as_node, tls=tls),
            "objects": served(s3, "objects", settings.s3, payer=s3.payers.of),
        }
    )


def _internal_api_parts(
    settings: BrainSettings,
    core: _Core,
    cluster: _Cluster,
    objects: _Objects,
    siblings: Siblings,
) -> InternalApiParts:
    allows_private = not settings.is_production
    return InternalApiParts(
        brain_id=core.brain_id,
        secrets=(settings.secret, *settings.previous_secrets),
        workers_url=settings.workers_url,
        is_production=settings.is_production,
        platform_keys=core.platform_keys,
        database=core.database,
        coherence=core.coherence,
        directory=core.directory,
        buckets=objects.buckets,
        hosts=objects.hosts,
        catalog=Catalog(core.database, core.coherence, allows_private=allows_private),
        staging=core.staging,
        objects=objects.objects,
        purges=objects.purges,
        nodes=cluster.nodes,
        repair=cluster.repair,
        networks=cluster.networks,
        statistics=cluster.statistics,
        siblings=siblings,
    )


def _workers_api_parts(settings: BrainSettings, core: _Core, cluster: _Cluster) -> WorkersApiParts:
    return WorkersApiParts(
        brain_id=core.brain_id,
        is_production=settings.is_production,
        replicas=settings.replicas,
        database=core.database,
        coherence=core.coherence,
        nodes=cluster.nodes,
        tickets=cluster.tickets,
        proofs=cluster.proofs,
        networks=cluster.networks,
        own_reads=cluster.own_reads,
    )


def _s3_parts(
    settings: BrainSettings, core: _Core, cluster: _Cluster, objects: _Objects
) -> S3Parts:
    return S3Parts(
        running=core.running,
        xml_bytes=Shares(XML_BYTES, refusal=Overloaded, spare=XML_SPARE),
        s3_domains=settings.s3_domains,
        platform_keys=core.platform_keys,
        database=core.database,
        coherence=core.coherence,
        directory=core.directory,
        buckets=objects.buckets,
        hosts=objects.hosts,
        staging=core.staging,
        upload_parts=core.parts,
        objects=objects.objects,
        nodes=cluster.nodes,
        locator=cluster.locator,
        tickets=cluster.tickets,
        meters=cluster.meters,
        streamer=cluster.streamer,
        responses=ResponseCache(core.directory, cluster.nodes, objects.objects),
    )


def _cdn_parts(core: _Core, cluster: _Cluster, objects: _Objects) -> CdnParts:
    return CdnParts(
        running=core.running,
        directory=core.directory,
        staging=core.staging,
        origins=objects.origins,
        objects=objects.objects,
        nodes=cluster.nodes,
        locator=cluster.locator,
        streamer=cluster.streamer,
    )
