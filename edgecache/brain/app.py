"""The wiring of a brain: makes its parts, which each API gets as what it declares."""

from typing import Any

from django.conf import settings as django_settings

from common.ids import uuid7
from edgecache.brain.access.platform_keys import PlatformKeys
from edgecache.brain.access.signed_links import LinkKeys
from edgecache.brain.audits.node_checks import NodeChecker
from edgecache.brain.audits.rounds import Audits
from edgecache.brain.cdn.app import CdnApi
from edgecache.brain.conf.brain import BrainSettings, Listener
from edgecache.brain.core.errors import Overloaded
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.delivery.compression import Compression
from edgecache.brain.delivery.hot_objects import HotObjects
from edgecache.brain.delivery.local_files import LocalFiles, OwnFiles
from edgecache.brain.delivery.response_cache import ResponseCache
from edgecache.brain.delivery.streaming import Streamer
from edgecache.brain.delivery.worker_reads import WorkerReads
from edgecache.brain.directory.buckets import Buckets
from edgecache.brain.directory.hosts import Hosts
from edgecache.brain.directory.purges import Purges
from edgecache.brain.directory.versions import Directory
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.internal_api.app import internal_api, metrics_api
from edgecache.brain.metering.creditable_reads import CreditableReads
from edgecache.brain.metering.meters import Meters
from edgecache.brain.metering.operator_networks import OperatorNetworks
from edgecache.brain.metering.statistics import Statistics
from edgecache.brain.nodes.client import WorkerClient
from edgecache.brain.nodes.endpoints import EndpointProofs
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.regions import Locator, RegionMap
from edgecache.brain.nodes.repair import Repair
from edgecache.brain.nodes.replica_plan import HOT_REPLICAS, ReplicaCounts
from edgecache.brain.nodes.replication import Replication
from edgecache.brain.nodes.tickets import TicketSigner
from edgecache.brain.objects.object_cache import ObjectCache
from edgecache.brain.origins.catalog import Catalog
from edgecache.brain.origins.open_origins import Origins
from edgecache.brain.process.listeners import Listeners, as_node, as_platform, port_server
from edgecache.brain.process.serving import BrainProcess, ProcessPart
from edgecache.brain.process.sockets import metrics_listener
from edgecache.brain.s3.access_log_lines import line_of_missing
from edgecache.brain.s3.api import ObjectApi
from edgecache.brain.stores.managed import LocalBodies, ManagedStore
from edgecache.brain.stores.reachable_stores import Stores
from edgecache.brain.stores.readiness import Readiness
from edgecache.brain.stores.upload_parts import UploadParts
from edgecache.brain.stores.upload_parts_limit import UploadPartsLimit
from edgecache.brain.upkeep.access_logs import AccessLogs
from edgecache.brain.upkeep.garbage_collection import GarbageCollector
from edgecache.brain.upkeep.hourly import Upkeep
from edgecache.brain.upkeep.lifecycle import Lifecycle
from edgecache.brain.upkeep.lifecycle_rules import ExpiryRules
from edgecache.brain.workers_api.app import workers_api
from edgecache.http.exchange import App
from edgecache.http.scope import TrustedProxies
from edgecache.http.server.http_server import HttpServer
from edgecache.runtime.fair_shares import Shares
from edgecache.runtime.resource_limits import connections_allowed
from edgecache.runtime.turns import LoopTurns


class Wiring:
    """The parts of a brain. Each API declares which of them it uses."""

    def __init__(self, settings: BrainSettings) -> None:
        """Make the parts; nothing is opened yet."""
        self.settings = settings
        self._make_storage()
        self._make_nodes()
        self._make_reads()
        self._make_objects()

    def _make_storage(self) -> None:
        settings = self.settings
        self.brain_id = uuid7()
        self.platform_keys = PlatformKeys(settings.secrets)
        self.link_keys = LinkKeys(settings.secrets)
        self.database = BrainDatabase(
            settings.database_url, max_connections=settings.processes.connections
        )
        self.coherence = Coherence(self.database, self.brain_id)
        self.directory = Directory(
            self.database, self.coherence, index_bytes=settings.processes.index_bytes
        )
        self.data_directory = DataDirectory(
            settings.data_dir, limit_bytes=settings.staging_bytes, brains=settings.processes.count
        )
        self.stores = Stores(
            self.database,
            self.coherence,
            settings.data_dir,
            settings.stores,
            threads=self.data_directory.threads,
        )
        limit = UploadPartsLimit(self.database)
        self.readiness = Readiness(self.database, self.stores)
        self.upload_parts = UploadParts(self.database, self.data_directory, self.stores, limit)
        self.local_bodies = LocalBodies(self.database, self.data_directory, self.stores)

    def _make_nodes(self) -> None:
        settings = self.settings
        region_map = RegionMap(settings.geography.coordinates)
        self.proxies = TrustedProxies(django_settings.TRUSTED_PROXIES)
        self.locator = Locator(settings.geography, region_map, self.proxies)
        self.tickets = TicketSigner(settings.secret, settings.secrets[1:])
        self.worker_client = WorkerClient()
        self.nodes = KnownNodes(
            self.database,
            self.coherence,
            region_map,
            interval_s=settings.heartbeat_s,
            guards_operators=settings.is_production,
        )
        self.replication = Replication(
            self.directory,
            self.local_bodies,
            self.nodes,
            self.tickets,
            self.worker_client,
            copies=ReplicaCounts(settings.replicas, max(HOT_REPLICAS, settings.replicas)),
        )
        self.repair = Repair(
            self.database, self.coherence, self.nodes, self.replication, brain_id=self.brain_id
        )
        self.proofs = EndpointProofs(self.coherence, self.nodes, self.worker_client)
        checker = NodeChecker(self.tickets, self.worker_client, settings.audits.vantages)
        self.audits = Audits(self.database, self.directory, self.nodes, checker, settings.audits)
        self.networks = OperatorNetworks(self.database)
        limits = settings.credit_limits
        self.creditable_reads = CreditableReads(self.nodes, self.networks, limits)

    def _make_reads(self) -> None:
        self.hot_objects = HotObjects(
            self.database, self.repair, processes=self.settings.processes.count
        )
        self.meters = Meters(
            self.database, self.brain_id, is_creditable=self.creditable_reads.is_creditable
        )
        self.statistics = Statistics(self.database, self.nodes, self.meters)
        self.worker_reads = WorkerReads(
            self.directory, self.nodes, self.tickets, self.worker_client
        )
        self.local_files = LocalFiles()
        self.streamer = Streamer(
            self.directory,
            self.worker_reads,
            self.meters,
            OwnFiles(self.local_bodies, self.local_files),
            self.proxies,
            on_read=self.hot_objects.read,
        )
        self.compression = Compression(self.streamer, self.data_directory.threads)

    def _make_objects(self) -> None:
        settings, database, coherence = self.settings, self.database, self.coherence
        allows_private = not settings.is_production
        self.catalog = Catalog(database, coherence, allows_private=allows_private)
        self.origins = Origins(
            database, coherence, self.data_directory, allows_private=allows_private
        )
        self.managed = ManagedStore(
            database, self.data_directory, self.stores, on_restored=self.replication.stored
        )
        self.objects = ObjectCache(
            database,
            self.directory,
            self.data_directory,
            self.origins,
            self.managed,
            brain_id=self.brain_id,
            # One for each client: more could hardly wait.
            # Up to three files each: the connection, and the body that is written and read.
            limit=settings.processes.fills or connections_allowed() // 2,
            on_stored=self.replication.stored,
            may_replicate=self.replication.is_possible,
        )
        self.responses = ResponseCache(self.directory, self.nodes, self.objects)
        self.purges = Purges(database, coherence, settings.s3_domains)
        self.garbage_collector = GarbageCollector(
            database,
            coherence,
            self.data_directory,
            self.purges,
            self.objects.writes,
            self.stores,
        )
        self.buckets = Buckets(database, coherence)
        self.expiry_rules = ExpiryRules(database)
        self.lifecycle = Lifecycle(database, coherence, self.brain_id)
        self.access_logs = AccessLogs(
            self.objects,
            self.directory,
            self.data_directory,
            self.meters,
            self.brain_id,
            line_of_missing=line_of_missing,
        )
        self.hosts = Hosts(database, coherence, settings.s3_domains)
        # Running requests of the object API's clients.
        self.running = Shares(connections_allowed(), refusal=Overloaded)
        self.cdn = CdnApi(self)
        self.warm = self.cdn.warm


def assemble(settings: BrainSettings) -> BrainProcess:
    """Make a brain of its parts; nothing is opened yet. settings: of all brains of the machine."""
    wiring = Wiring(settings.of_one())
    listeners = _listeners(wiring, ObjectApi(wiring, wiring.cdn))
    return BrainProcess(_started(wiring), listeners, on_end=wiring.readiness.end)


def _started(wiring: Wiring) -> tuple[ProcessPart, ...]:
    """Return the parts in the order of their start, which is reversed for the stop."""
    return (
        wiring.data_directory,
        wiring.database,
        wiring.coherence,
        wiring.stores,
        wiring.origins,
        wiring.nodes,
        wiring.meters,
        wiring.worker_client,
        wiring.worker_reads,
        wiring.local_files,
        wiring.purges,
        wiring.managed,
        wiring.objects,
        wiring.replication,
        wiring.repair,
        wiring.hot_objects,
        wiring.proofs,
        wiring.audits,
        wiring.networks,
        wiring.garbage_collector,
        wiring.lifecycle,
        wiring.access_logs,
        Upkeep(wiring.database, wiring.statistics, wiring.lifecycle, wiring.access_logs),
        wiring.cdn,
    )


def _listeners(wiring: Wiring, s3: ObjectApi) -> Listeners:
    settings = wiring.settings
    tls = (settings.tls_cert, settings.tls_key)
    internal, workers = internal_api(wiring), workers_api(wiring)
    turns = LoopTurns()

    def served(app: App, listener: Listener, **options: Any) -> HttpServer:
        return port_server(app, listener, turns, **options)

    servers = {
        "internal": served(internal, settings.internal, share_key=as_platform),
        "workers": served(workers, settings.workers, share_key=as_node, tls=tls),
        "objects": served(s3, settings.s3, share_key=s3.share_keys.of),
    }
    if settings.metrics_port:
        listener = metrics_listener(settings)
        servers["metrics"] = served(metrics_api(wiring), listener, share_key=as_platform)
    return Listeners(servers)
