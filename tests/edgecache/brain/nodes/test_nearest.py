"""The choice of a holder: nearest, then fastest, then least loaded."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from edgecache.brain.nodes.health import NodeStatistics
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.nodes.placement import order
from edgecache.brain.nodes.regions import COORDINATES, RegionMap, great_circle_km
from tests.edgecache.brain.nodes.rows import node

ATLAS = RegionMap({"home": (48.1, 11.6)})


def holder(
    number: int, region: str, *, load: float = 0.0, latency_s: float = 0.0, running: int = 0
) -> tuple[NodeRow, NodeStatistics]:
    """Return a node and what the brain has measured of it."""
    statistics = NodeStatistics()
    statistics.latency_s, statistics.running = latency_s, running
    return node(number, region=region, load=load), statistics


def nearest_first(holders: Sequence[tuple[NodeRow, NodeStatistics]], region: str) -> list[NodeRow]:
    """Return the nodes in the order in which a client is sent to them."""
    statistics = {row.id: measured for row, measured in holders}
    return order([row for row, _ in holders], statistics, region, ATLAS)


def test_distances_are_great_circle_distances() -> None:
    frankfurt, new_york = (50.1, 8.7), (40.7, -74.0)
    assert abs(great_circle_km(frankfurt, new_york) - 6200) < 60
    assert great_circle_km(frankfurt, frankfurt) == 0.0


@pytest.mark.parametrize(
    ("client", "nearest"),
    [("eu-west", "eu-central"), ("us-west", "us-east"), ("home", "eu-central")],
)
def test_the_nearest_region_is_chosen(client: str, nearest: str) -> None:
    rows = [holder(1, "us-east"), holder(2, "eu-central"), holder(3, "ap-southeast")]
    assert nearest_first(rows, client)[0].region == nearest


def test_a_region_without_coordinates_is_last() -> None:
    rows = [holder(1, "atlantis"), holder(2, "ap-southeast")]
    assert [row.region for row in nearest_first(rows, "eu-central")] == ["ap-southeast", "atlantis"]


def test_a_region_without_coordinates_is_near_itself() -> None:
    rows = [holder(1, "eu-central"), holder(2, "atlantis")]
    assert nearest_first(rows, "atlantis")[0].region == "atlantis"


def test_a_numbered_region_has_the_coordinates_of_its_base_region() -> None:
    assert ATLAS.distance_km("us-east-1", "us-east") == 0.0
    assert ATLAS.distance_km("us-east-2", "us-east") > 100


def test_among_equally_near_nodes_the_fastest_is_chosen() -> None:
    rows = [holder(1, "eu-central", latency_s=0.2), holder(2, "eu-central", latency_s=0.01)]
    assert nearest_first(rows, "eu-central")[0].id == UUID(int=2)


def test_among_equally_fast_nodes_the_least_loaded_is_chosen() -> None:
    rows = [holder(1, "eu-central", load=0.9), holder(2, "eu-central", load=0.1)]
    assert nearest_first(rows, "eu-central")[0].id == UUID(int=2)


def test_among_equally_loaded_nodes_the_one_with_the_fewest_requests_is_chosen() -> None:
    rows = [holder(1, "eu-central", running=7), holder(2, "eu-central", running=2)]
    assert nearest_first(rows, "eu-central")[0].id == UUID(int=2)


def test_every_region_has_coordinates_on_the_globe() -> None:
    for latitude, longitude in COORDINATES.values():
        assert -90 <= latitude <= 90
        assert -180 <= longitude <= 180


def test_the_region_nearest_to_a_point_is_found() -> None:
    assert ATLAS.nearest_to((52.5, 13.4)) in {"eu-central", "eu-east"}
    assert ATLAS.nearest_to((-34.0, 151.0)) in {"ap-southeast-2", "au-east"}
