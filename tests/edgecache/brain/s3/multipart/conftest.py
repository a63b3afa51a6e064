"""The tenant of the tests of multipart uploads."""

import pytest

from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster, Keys


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)
