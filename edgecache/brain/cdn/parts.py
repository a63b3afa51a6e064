"""The parts of the brain that the CDN uses."""

from typing import Protocol

from edgecache.brain.delivery.streaming import Streamer
from edgecache.brain.directory.directory import Directory
from edgecache.brain.fetch.object_cache import ObjectCache
from edgecache.brain.nodes.client_region import Locator
from edgecache.brain.nodes.registry import KnownNodes
from edgecache.brain.origins.registry import Origins
from edgecache.brain.storage.disk.staging import DataDirectory
from edgecache.runtime.shares import Shares


class CdnDependencies(Protocol):
    """What serving plain HTTP uses. running: places for running requests."""

    directory: Directory
    staging: DataDirectory
    origins: Origins
    objects: ObjectCache
    nodes: KnownNodes
    locator: Locator
    streamer: Streamer
    running: Shares
