"""The bounded cache of distances between regions."""

import pytest

from edgecache.brain.nodes import regions
from edgecache.brain.nodes.regions import UNKNOWN_KM, RegionMap


def test_invented_regions_do_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(regions, "DISTANCES_KEPT", 10)
    atlas = RegionMap({})
    near = atlas.distance_km("eu-central", "us-east")

    for number in range(100, 200):
        assert atlas.distance_km(f"us-east-{number}", "eu-central") == near
        assert atlas.distance_km(f"nowhere{number}", "eu-central") == UNKNOWN_KM

    assert len(atlas._distances) <= 10
