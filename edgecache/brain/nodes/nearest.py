"""Order of the workers that hold an object: nearest first, then least loaded."""

from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from edgecache.brain.nodes.regions import RegionMap

# Differences smaller than a step do not count.
DISTANCE_STEP_KM: Final = 100.0
LATENCY_STEP_S: Final = 0.005
LOAD_STEP: Final = 0.25


class Holder(NamedTuple):
    """A node that holds the bytes.

    latency_s: measured by this brain, 0 before the first request. load: as reported by the node.
    running: this brain's requests to it at this moment.
    """

    node_id: UUID
    endpoint: str
    region: str
    latency_s: float
    load: float
    running: int


def order(holders: Iterable[Holder], region: str, region_map: RegionMap) -> list[Holder]:
    """Sort by distance from the client's region, then measured latency, then load."""

    def far(row: Holder) -> tuple[int, int, int, int]:
        return (
            int(region_map.distance_km(region, row.region) / DISTANCE_STEP_KM),
            int(row.latency_s / LATENCY_STEP_S),
            int(row.load / LOAD_STEP),
            row.running,
        )

    return sorted(holders, key=far)
