"""The choice of a holder: nearest, then fastest, then least loaded."""

from uuid import UUID

import pytest

from edgecache.brain.nodes.nearest import Holder, order
from edgecache.brain.nodes.regions import COORDINATES, RegionMap, great_circle_km

ATLAS = RegionMap({"home": (48.1, 11.6)})


def holder(number: int, region: str, **changes: object) -> Holder:
    """Return a node without statistics."""
    made = Holder(UUID(int=number), "http://node", region, 0.0, 0.0, 0)
    return made._replace(**changes)  # type: ignore[arg-type]  # the tests' own values


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
    assert order(rows, client, ATLAS)[0].region == nearest


def test_a_region_without_coordinates_is_last() -> None:
    rows = [holder(1, "atlantis"), holder(2, "ap-southeast")]
    assert [row.region for row in order(rows, "eu-central", ATLAS)] == ["ap-southeast", "atlantis"]


def test_a_region_without_coordinates_is_near_itself() -> None:
    rows = [holder(1, "eu-central"), holder(2, "atlantis")]
    assert order(rows, "atlantis", ATLAS)[0].region == "atlantis"


def test_a_numbered_region_has_the_coordinates_of_its_base_region() -> None:
    assert ATLAS.distance_km("us-east-1", "us-east") == 0.0
    assert ATLAS.distance_km("us-east-2", "us-east") > 100


def test_among_equally_near_nodes_the_fastest_is_chosen() -> None:
    rows = [holder(1, "eu-central", latency_s=0.2), holder(2, "eu-central", latency_s=0.01)]
    assert order(rows, "eu-central", ATLAS)[0].node_id == UUID(int=2)


def test_among_equally_fast_nodes_the_least_loaded_is_chosen() -> None:
    rows = [holder(1, "eu-central", load=0.9), holder(2, "eu-central", load=0.1)]
    assert order(rows, "eu-central", ATLAS)[0].node_id == UUID(int=2)


def test_among_equally_loaded_nodes_the_one_with_the_fewest_requests_is_chosen() -> None:
    rows = [holder(1, "eu-central", running=7), holder(2, "eu-central", running=2)]
    assert order(rows, "eu-central", ATLAS)[0].node_id == UUID(int=2)


def test_every_region_has_coordinates_on_the_globe() -> None:
    for latitude, longitude in COORDINATES.values():
        assert -90 <= latitude <= 90
        assert -180 <= longitude <= 180


def test_the_region_nearest_to_a_point_is_found() -> None:
    assert ATLAS.nearest_to((52.5, 13.4)) in {"eu-central", "eu-east"}
    assert ATLAS.nearest_to((-34.0, 151.0)) in {"ap-southeast-2", "au-east"}
