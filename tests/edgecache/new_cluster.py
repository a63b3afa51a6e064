"""A brain with workers and a database of their own."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cryptography.fernet import Fernet

from tests.edgecache.cluster import Cluster
from tests.edgecache.databases import brain_database


@contextmanager
def new_cluster(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    workers: int = 2,
    brains: int = 1,
    **variables: str,
) -> Iterator[Cluster]:
    """Start a cluster; stop it when the block ends. variables: of its environment."""
    with brain_database() as url:
        secret_key = Fernet.generate_key().decode()
        folder = tmp_path_factory.mktemp("cluster")
        beside = {
            "ZBRAIN_S3_DOMAINS": "S3.Own.Example., brain",
            "ZCACHE_BRAIN_S3_URL": "https://objects.own.example",
            **variables,
        }
        running = Cluster(folder, url, secret_key, variables=beside, workers=workers, brains=brains)
        try:
            yield running.start()
        finally:
            running.end()
