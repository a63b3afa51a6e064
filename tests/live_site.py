"""A live server of Django's whose requests for objects reach a real brain."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from edgecache.api import client as brain_client
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.pg import pool
from tests.edgecache.cluster import Cluster


@contextmanager
def over_a_brain(live_server: LiveServer, cluster: Cluster, settings: Settings) -> Iterator[str]:
    """Connect both and yield the server's URL."""
    url = f"http://127.0.0.1:{cluster.internal_port}"
    settings.CACHE = replace(
        settings.CACHE, brain_url=url, s3_url=cluster.url, secret=cluster.secret, is_enabled=True
    )
    brain_client._sessions.clear()
    yield str(live_server.url)
    brain_client._sessions.clear()
    PLACEMENT_CACHE.clear()
    pool.CONNECTION_POOL.clear()
