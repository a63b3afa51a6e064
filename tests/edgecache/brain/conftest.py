"""Brains on a real database, in this process or in their own, and origins on loopback."""

import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from cryptography.fernet import Fernet

from edgecache.brain.core.values import BucketInfo
from tests.edgecache.brain.brains import Brain, Rows, running
from tests.edgecache.brain.http_origin import HttpOrigin
from tests.edgecache.brain.support import ClusterRows, Put
from tests.edgecache.cluster import Cluster
from tests.edgecache.databases import brain_database
from tests.edgecache.memory import memory_folder
from tests.table_cleanup import empty

TABLES = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'brain\\_%%'"


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a folder in memory: a brain makes 256 folders when it starts, and syncs them."""
    with memory_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Use asyncio's own event loop; brains in separate processes use uvloop."""
    return "asyncio"


@pytest.fixture(scope="session")
def brain_url() -> Iterator[str]:
    """Return the URL of a database with only the brain's tables."""
    with brain_database() as url:
        yield url


@pytest.fixture(scope="session")
def tables(brain_url: str) -> Rows:
    """Return the brain's tables with their rows."""
    return Rows(brain_url)


@pytest.fixture
def rows(tables: Rows) -> Rows:
    """Return the brain's tables, empty."""
    empty(tables, [name for (name,) in tables.all(TABLES)])
    return tables


@pytest.fixture
async def brain(rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Return a brain."""
    async with running(rows.url, tmp_path / "brain") as one:
        yield one


@pytest.fixture
async def other(brain: Brain, rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Return a second brain on the same database, with its own files."""
    async with running(rows.url, tmp_path / "other") as another:
        await brain.coherence.wait_until_current(5)
        yield another


@pytest.fixture
async def origin() -> AsyncIterator[HttpOrigin]:
    """Return an HTTP origin."""
    async with HttpOrigin() as server:
        yield server


@pytest.fixture
async def http_bucket(brain: Brain, origin: HttpOrigin) -> BucketInfo:
    """Return a bucket with the HTTP origin."""
    return await brain.origin_bucket("http", {"url": origin.url})


@pytest.fixture
async def strict(rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Return a brain with production's egress rules."""
    async with running(rows.url, tmp_path / "strict", allows_private=False) as brain:
        yield brain


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
        cluster.end()


@pytest.fixture(scope="session")
def shared_bare_cluster(
    tmp_path_factory: pytest.TempPathFactory, shared_store: dict[str, str]
) -> Iterator[Cluster]:
    """Return a brain shared by the tests that only send requests to it."""
    with brain_database() as url:
        cluster = Cluster(
            tmp_path_factory.mktemp("shared"),
            url,
            Fernet.generate_key().decode(),
            variables=shared_store,
            workers=0,
        )
        try:
            yield cluster.start()
        finally:
            cluster.end()


@pytest.fixture(scope="session")
def shared_cluster_rows(shared_bare_cluster: Cluster) -> ClusterRows:
    """Return the tables of the shared brain."""
    return ClusterRows(shared_bare_cluster.database_url)


@pytest.fixture
def bare_cluster(shared_bare_cluster: Cluster, shared_cluster_rows: ClusterRows) -> Cluster:
    """Return the shared brain without nodes; tests use separate tenants."""
    empty(
        shared_cluster_rows,
        ("brain_node", "brain_usagecounter", "brain_usageline", "brain_measurement"),
    )
    return shared_bare_cluster


@pytest.fixture
def cluster_rows(bare_cluster: Cluster, shared_cluster_rows: ClusterRows) -> ClusterRows:
    """Return the brain's tables."""
    return shared_cluster_rows


@pytest.fixture
def put(bare_cluster: Cluster) -> Put:
    """Return a function that stores bytes for a new tenant and returns their hash."""

    def write(data: bytes = b"", *, is_public: bool = False) -> bytes:
        data = data or secrets.token_bytes(100)
        keys = bare_cluster.tenant()
        made = bare_cluster.call(
            "POST", f"/v1/buckets?{keys.scope}", {"name": "docs", "is_public": is_public}
        )
        assert made["id"]
        client = boto3.client(
            "s3",
            endpoint_url=bare_cluster.url,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 1}),
        )
        client.put_object(Bucket="docs", Key="key", Body=data)
        client.close()
        return hashlib.sha256(data).digest()

    return write
