"""Which of the workers that hold an object shall serve it: the nearest, then the least loaded."""

from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from edgecache.brain.nodes.regions import RegionMap

# What lies within a step of each other counts as equally far, and equally fast, and equally busy.
DISTANCE_STEP_KM: Final = 100.0
LATENCY_STEP_S: Final = 0.005
LOAD_STEP: Final = 0.25


class Holder(NamedTuple):
    """A node that has the bytes.

    latency_s: measured by this brain, 0 when it has not been asked yet. load: as it said itself.
    running: requests this brain has with it at this moment.
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
