"""The parts of the brain that the internal API uses."""

from typing import Protocol
from uuid import UUID

from edgecache.brain.conf import BrainSettings
from edgecache.brain.database import BrainDatabase
from edgecache.brain.directory.buckets import Buckets
from edgecache.brain.directory.coherence import Coherence
from edgecache.brain.directory.directory import Directory
from edgecache.brain.directory.hosts import Hosts
from edgecache.brain.directory.purges import Purges
from edgecache.brain.fetch.object_cache import ObjectCache
from edgecache.brain.metering.operator_networks import OperatorNetworks
from edgecache.brain.metering.statistics import Statistics
from edgecache.brain.nodes.registry import KnownNodes
from edgecache.brain.nodes.repair import Repair
from edgecache.brain.origins.catalog import Catalog
from edgecache.brain.s3.auth.platform_keys import PlatformKeys
from edgecache.brain.siblings.reports import Siblings
from edgecache.brain.storage.disk.staging import DataDirectory


class InternalApiDependencies(Protocol):
    """What a handler of the platform's calls may use."""

    settings: BrainSettings
    brain_id: UUID
    platform_keys: PlatformKeys
    database: BrainDatabase
    coherence: Coherence
    directory: Directory
    buckets: Buckets
    hosts: Hosts
    catalog: Catalog
    staging: DataDirectory
    objects: ObjectCache
    purges: Purges
    nodes: KnownNodes
    repair: Repair
    networks: OperatorNetworks
    statistics: Statistics
    siblings: Siblings
