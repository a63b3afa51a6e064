"""The parts of the brain that the object API uses."""

from typing import Protocol

from edgecache.brain.access.platform_keys import PlatformKeys
from edgecache.brain.conf.brain import BrainSettings
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.delivery.response_cache import ResponseCache
from edgecache.brain.delivery.streaming import Streamer
from edgecache.brain.directory.buckets import Buckets
from edgecache.brain.directory.hosts import Hosts
from edgecache.brain.directory.versions import Directory
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.metering.meters import Meters
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.regions import Locator
from edgecache.brain.nodes.tickets import TicketSigner
from edgecache.brain.objects.object_cache import ObjectCache
from edgecache.brain.stores.readiness import Readiness
from edgecache.brain.stores.upload_parts import UploadParts
from edgecache.brain.upkeep.access_logs import AccessLogs
from edgecache.brain.upkeep.lifecycle_rules import ExpiryRules
from edgecache.http.scope import TrustedProxies
from edgecache.runtime.fair_shares import Shares


class S3Dependencies(Protocol):
    """What an operation uses.

    running: permits for running requests.
    """

    settings: BrainSettings
    platform_keys: PlatformKeys
    database: BrainDatabase
    readiness: Readiness
    coherence: Coherence
    directory: Directory
    buckets: Buckets
    expiry_rules: ExpiryRules
    access_logs: AccessLogs
    hosts: Hosts
    data_directory: DataDirectory
    upload_parts: UploadParts
    objects: ObjectCache
    nodes: KnownNodes
    locator: Locator
    tickets: TicketSigner
    meters: Meters
    streamer: Streamer
    proxies: TrustedProxies
    responses: ResponseCache
    running: Shares
