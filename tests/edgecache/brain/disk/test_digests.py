"""Digests of bodies, whole and in pieces."""

import pytest

from edgecache.brain.core.blocks import BLOCK_BYTES
from edgecache.brain.disk.digests import Digests, manifest_of


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1])
def test_digests_of_bytes_at_hand_equal_those_of_a_stream(size: int) -> None:
    digests, data = Digests(), b"x" * size

    digests.update(data)

    assert manifest_of(data) == digests.manifest()
