"""The parts of the brain that the internal API uses."""

from typing import Protocol
from uuid import UUID

from edgecache.brain.access.platform_keys import PlatformKeys
from edgecache.brain.access.signed_links import LinkKeys
from edgecache.brain.conf.brain import BrainSettings
from edgecache.brain.core.values import BucketInfo
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.directory.buckets import Buckets
from edgecache.brain.directory.hosts import Hosts
from edgecache.brain.directory.purges import Purges
from edgecache.brain.directory.versions import Directory
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.http_caching.cache_keys import Target
from edgecache.brain.metering.meters import Meters
from edgecache.brain.metering.operator_networks import OperatorNetworks
from edgecache.brain.metering.statistics import Statistics
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.repair import Repair
from edgecache.brain.objects.object_cache import ObjectCache
from edgecache.brain.origins.catalog import Catalog
from edgecache.brain.stores.readiness import Readiness


class InternalApiDependencies(Protocol):
    """What a handler of the platform's calls may use."""

    async def warm(self, bucket: BucketInfo, target: Target) -> str:
        """Fetch what browsers get of a URL; return an error code, "" on success."""
        ...

    settings: BrainSettings
    brain_id: UUID
    platform_keys: PlatformKeys
    link_keys: LinkKeys
    database: BrainDatabase
    readiness: Readiness
    coherence: Coherence
    directory: Directory
    buckets: Buckets
    hosts: Hosts
    catalog: Catalog
    data_directory: DataDirectory
    objects: ObjectCache
    purges: Purges
    nodes: KnownNodes
    repair: Repair
    networks: OperatorNetworks
    statistics: Statistics
    meters: Meters
