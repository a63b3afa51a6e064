"""Which reads earn their node operator something: reads of its own do not.

An operator could read others' objects through its own nodes to be paid for that. So reads from its
own networks earn nothing: those from which its nodes connect or where they are reached, and those
of its members' recent sessions, which the platform sends. Reads from other networks earn up to a
limit for each client's network, bucket, node and hour. Reads that are reported hours later earn
nothing, nor do those of more networks, buckets and nodes than a brain counts. Reads above the limit
are charged like those that the platform serves itself.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from edgecache.brain.conf.operators import CreditLimits
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.metering.hourly_counts import HOUR_S, HOURS_KEPT, HourlyCounts
from edgecache.brain.metering.operator_networks import OperatorNetworks
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.http.addresses import NETWORKS_KEPT, prefix_of

# An address on the brain's own machine does not identify a client; on the Internet there is none.
THIS_MACHINE: Final = "127.0.0.0/24"


class CreditableReads:
    """Decides for one brain which reads through operators' nodes are credited."""

    def __init__(
        self,
        nodes: KnownNodes,
        networks: OperatorNetworks,
        limits: CreditLimits,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._nodes = nodes
        self._networks = networks
        self._limits = limits
        self._clock = clock
        self._counts = HourlyCounts()

    def is_creditable(
        self,
        tenant: EnvironmentKey,
        bucket_id: int,
        node_id: UUID,
        client: str,
        size: int,
        served_at: float,
    ) -> bool:
        """Count a read; return True if its node's operator is credited.

        client: an address, or a network as in tickets. served_at: Unix seconds.
        """
        node = self._nodes.get(node_id)
        if node is None or node.organization_id in {None, tenant.organization_id}:
            # These earn nothing.
            return True
        hour, now_hour = int(served_at) // HOUR_S, int(self._clock()) // HOUR_S
        if hour <= now_hour - HOURS_KEPT:
            return False
        operator = int(node.organization_id or 0)
        prefix = prefix_of(client)
        is_known = prefix and prefix != THIS_MACHINE
        if is_known and self._is_own(operator, node.endpoint, prefix):
            return False
        key = (operator, bucket_id, node_id.hex, prefix)
        counted = self._counts.add(key, size, hour=hour, now_hour=now_hour)
        if counted is None:
            return False
        hits, sizes = counted
        return hits <= self._limits.hits and sizes <= self._limits.limit_bytes

    def _is_own(self, operator: int, endpoint: str, prefix: str) -> bool:
        return prefix in self._networks.of(operator) or prefix == _endpoint_prefix(endpoint)


def prefixes_of(texts: Sequence[str]) -> set[str]:
    """Return the networks of addresses; other texts are ignored."""
    return {prefix for prefix in map(prefix_of, texts) if prefix}


@lru_cache(NETWORKS_KEPT)
def _endpoint_prefix(endpoint: str) -> str:
    return prefix_of(urlsplit(endpoint).hostname or "")
