"""Order of the workers that hold an object: nearest first, then least loaded."""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from edgecache.brain.nodes.health import NodeStatistics
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.regions import RegionMap

# Differences smaller than a step do not count.
DISTANCE_STEP_KM: Final = 100.0
LATENCY_STEP_S: Final = 0.005
LOAD_STEP: Final = 0.25


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
