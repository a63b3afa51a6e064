"""Placement: which workers hold an object, and in which order they are asked for it.

Holders are chosen by weighted rendezvous hashing with bounded load. Every brain computes the same
result from the same nodes, and an added or removed node moves only its own share. Sources: Thaler &
Ravishankar, "Using name-based mappings to increase hit rates" (1998); Schindelhauer & Schomaker,
"Weighted distributed hash tables" (2005), the logarithm; Mirrokni, Thorup & Zadimoghaddam,
"Consistent hashing with bounded loads" (2018), the bound.
"""

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from edgecache.brain.nodes.health import NodeStatistics
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.regions import RegionMap

BOUND: Final = 1.25
# Below this fill no node counts as overloaded: on an empty cluster the average means nothing.
UNBOUNDED_SHARE: Final = 0.05
HASH_BITS: Final = 64

# Differences smaller than a step do not count.
DISTANCE_STEP_KM: Final = 100.0
LATENCY_STEP_S: Final = 0.005
LOAD_STEP: Final = 0.25


def choose(
    sha256: bytes,
    candidates: Iterable[NodeRow],
    copies: int,
    *,
    held_by: Collection[UUID] = (),
) -> list[NodeRow]:
    """Return the nodes for further replicas, best first.

    copies: wanted in total.
    held_by: nodes that already have one. They count, and the new nodes should differ from them in
    operator and region.

    Overloaded nodes come last but are not excluded: compared with a large empty node, all others
    may count as overloaded.
    """
    known = list(candidates)
    holders = [row for row in known if row.id in held_by]
    bounded = within_bound(known)
    within = {row.id for row in bounded}
    others = [row for row in known if row.id not in within and row.capacity_bytes > 0]
    chosen: list[NodeRow] = []
    for rows in (bounded, others):
        free = [row for row in rows if row.id not in held_by]
        ranked = sorted(free, key=lambda row: _score(sha256, row), reverse=True)
        while ranked and len(holders) + len(chosen) < copies:
            best = _most_different(ranked, [*holders, *chosen])
            ranked.remove(best)
            chosen.append(best)
    return chosen


def within_bound(candidates: Sequence[NodeRow]) -> list[NodeRow]:
    """Return the nodes filled at most 1.25 times the average; all if none would be left."""
    capacity = sum(row.capacity_bytes for row in candidates)
    used = sum(row.used_bytes for row in candidates)
    average = used / capacity if capacity else 0.0
    limit = max(average * BOUND, UNBOUNDED_SHARE)
    return [row for row in candidates if _used_share(row) <= limit] or list(candidates)


def order(
    rows: Iterable[NodeRow],
    statistics: Mapping[UUID, NodeStatistics],
    region: str,
    region_map: RegionMap,
) -> list[NodeRow]:
    """Sort by distance from the client's region, then latency and load, then running requests.

    statistics: this brain's. The load is as reported by the node.
    """

    def far(row: NodeRow) -> tuple[int, int, int, int]:
        measured = statistics[row.id]
        return (
            int(region_map.distance_km(region, row.region) / DISTANCE_STEP_KM),
            int(measured.latency_s / LATENCY_STEP_S),
            int(row.load / LOAD_STEP),
            measured.running,
        )

    return sorted(rows, key=far)


def _used_share(row: NodeRow) -> float:
    """Return the used share of a node's capacity."""
    return row.used_bytes / row.capacity_bytes if row.capacity_bytes > 0 else 1.0


def _score(sha256: bytes, row: NodeRow) -> float:
    """Return a node's rendezvous score for an object."""
    digest = hashlib.blake2b(sha256, key=row.id.bytes, digest_size=HASH_BITS // 8).digest()
    # In (0, 1), without both ends: the logarithm is undefined or zero there.
    share = (int.from_bytes(digest, "big") + 0.5) / 2**HASH_BITS
    return -row.capacity_bytes / math.log(min(share, math.nextafter(1.0, 0.0)))


def _most_different(ranked: Sequence[NodeRow], holders: Sequence[NodeRow]) -> NodeRow:
    """Return the best-ranked of those that share the fewest operators and regions with holders."""
    operators = {row.organization_id for row in holders}
    regions = {row.region for row in holders}
    return min(ranked, key=lambda row: (row.organization_id in operators) + (row.region in regions))
