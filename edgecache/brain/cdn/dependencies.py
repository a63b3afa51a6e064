"""The parts of the brain that the CDN uses."""

from typing import Protocol

from edgecache.brain.access.signed_links import LinkKeys
from edgecache.brain.delivery.compression import Compression
from edgecache.brain.delivery.streaming import Streamer
from edgecache.brain.directory.versions import Directory
from edgecache.brain.disk.data_directory import DataDirectory
from edgecache.brain.metering.meters import Meters
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.regions import Locator
from edgecache.brain.objects.object_cache import ObjectCache
from edgecache.brain.origins.open_origins import Origins
from edgecache.http.scope import TrustedProxies
from edgecache.runtime.fair_shares import Shares


class CdnDependencies(Protocol):
    """What serving plain HTTP uses. running: places for running requests."""

    link_keys: LinkKeys
    directory: Directory
    data_directory: DataDirectory
    origins: Origins
    objects: ObjectCache
    nodes: KnownNodes
    locator: Locator
    streamer: Streamer
    compression: Compression
    meters: Meters
    proxies: TrustedProxies
    running: Shares
