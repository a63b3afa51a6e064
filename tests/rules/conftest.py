"""A real brain behind the cache's routes, one per test process."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pytest_django import Settings

from edgecache.api import client
from tests.edgecache.cluster import Cluster


@pytest.fixture(autouse=True)
def cache(cluster: Cluster, settings: Settings) -> Iterator[None]:
    """Connect the platform to the brain."""
    url = f"http://127.0.0.1:{cluster.internal_port}"
    settings.CACHE = replace(settings.CACHE, brain_url=url, secret=cluster.secret, is_enabled=True)
    client._sessions.clear()
    client.breaker.succeeded()
    yield
    client._sessions.clear()
    client.breaker.succeeded()
