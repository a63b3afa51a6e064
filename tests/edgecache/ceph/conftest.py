"""Ceph's RADOS gateway as the store: `make test-store` runs these tests, `make test` does not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import HAS_CEPH
from tests.edgecache.databases import brain_database

collect_ignore_glob = [] if HAS_CEPH else ["test_*.py"]


@pytest.fixture
def brains(
    tmp_path: Path, new_store: Callable[[], dict[str, str]]
) -> Iterator[Callable[..., Cluster]]:
    """Return a factory of brains on one database and store, each with a folder of its own."""
    running: list[Cluster] = []
    secret_keys, store = Fernet.generate_key().decode(), new_store()
    with brain_database() as url:

        def begin(**changes: Any) -> Cluster:
            folder = tmp_path / f"brain{len(running)}"
            folder.mkdir()
            variables = store | changes.pop("variables", {})
            cluster = Cluster(folder, url, secret_keys, variables=variables, **changes)
            if running:
                cluster.secret = running[0].secret
            running.append(cluster)
            return cluster.start()

        yield begin
        for cluster in reversed(running):
            cluster.stop()
