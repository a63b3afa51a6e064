"""Databases with only the brain's tables, and brains and workers on them."""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from cryptography.fernet import Fernet

from tests.edgecache.control.support import Put, Rows
from tests.edgecache.databases import brain_database
from tests.edgecache.s3.cluster import Cluster
from tests.table_cleanup import empty

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def database_url() -> Iterator[str]:
    """Return an empty database for one test."""
    with brain_database() as url:
        yield url


@pytest.fixture
def start(database_url: str, tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Return a factory of brains with workers on the test's database."""
    running: list[Cluster] = []
    secret_keys = Fernet.generate_key().decode()

    def begin(*, workers: int = 0, **changes: Any) -> Cluster:
        folder = tmp_path / f"brain{len(running)}"
        folder.mkdir()
        cluster = Cluster(folder, database_url, secret_keys, workers=workers, **changes)
        if running:
            cluster.secret = running[0].secret
        running.append(cluster)
        return cluster.start()

    yield begin
    for cluster in reversed(running):
        cluster.stop()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a brain shared by the tests that only send requests to it."""
    with brain_database() as url:
        cluster = Cluster(
            tmp_path_factory.mktemp("shared"), url, Fernet.generate_key().decode(), workers=0
        )
        try:
            yield cluster.start()
        finally:
            cluster.stop()


@pytest.fixture(scope="session")
def shared_rows(shared: Cluster) -> Rows:
    """Return the tables of the shared brain."""
    return Rows(shared.database_url)


@pytest.fixture
def brain(shared: Cluster, shared_rows: Rows) -> Cluster:
    """Return the shared brain without nodes; tests use separate tenants."""
    empty(shared_rows, ("brain_node", "brain_usageline", "brain_measurement"))
    return shared


@pytest.fixture
def rows(brain: Cluster, shared_rows: Rows) -> Rows:
    """Return the brain's tables."""
    return shared_rows


@pytest.fixture
def put(brain: Cluster) -> Put:
    """Return a function that stores bytes for a new tenant and returns their hash."""

    def write(data: bytes = b"", *, is_public: bool = False) -> bytes:
        data = data or secrets.token_bytes(100)
        keys = brain.tenant()
        made = brain.call(
            "POST", f"/v1/buckets?{keys.scope}", {"name": "docs", "is_public": is_public}
        )
        assert made["id"]
        client = boto3.client(
            "s3",
            endpoint_url=brain.url,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 1}),
        )
        client.put_object(Bucket="docs", Key="key", Body=data)
        client.close()
        return hashlib.sha256(data).digest()

    return write
