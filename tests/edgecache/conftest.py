"""Tenants of the shared brain, and their S3 clients; Ceph as the store of `make test-store`."""

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.edgecache.ceph.rados import ACCESS_KEY, SECRET_KEY, Rados, missing
from tests.edgecache.cluster import Cluster, Keys

# Set by `make test-store`: it takes packages that are not everywhere.
HAS_CEPH = bool(os.environ.get("TEST_STORE"))
ROOT = Path(__file__).resolve().parents[2]


def connect(keys: Keys, url: str, **options: Any) -> Any:
    """Return a boto3 client without retries."""
    return boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        region_name="us-east-1",
        # Without this boto3 presigns with version 2, which AWS itself refuses in newer regions.
        config=Config(
            signature_version="s3v4",
            retries={"total_max_attempts": 1},
            read_timeout=30,
            **options,
        ),
    )


@pytest.fixture
def keys(cluster: Cluster) -> Keys:
    """Return a new tenant."""
    return cluster.tenant()


@pytest.fixture
def s3(cluster: Cluster, keys: Keys) -> Iterator[Any]:
    """Return the tenant's boto3 client."""
    client = connect(keys, cluster.url)
    yield client
    client.close()


@pytest.fixture
def bucket(s3: Any) -> str:
    """Return a bucket of the tenant."""
    s3.create_bucket(Bucket="docs")
    return "docs"


@contextmanager
def running_rados() -> Iterator[Rados]:
    """Run a cluster of Ceph while the block runs."""
    assert not missing(), f"install {missing()}"
    # Ceph's sockets have paths of at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="rados") as folder:
        cluster = Rados(Path(folder))
        try:
            yield cluster.start()
        finally:
            cluster.stop()


def store_on(rados: Rados) -> dict[str, str]:
    """Create a bucket of the gateway; return the settings of brains."""
    name = f"b{secrets.token_hex(8)}"
    client = connect(Keys(0, 0, ACCESS_KEY, SECRET_KEY), rados.url)
    client.create_bucket(Bucket=name)
    client.close()
    return {
        "ZBRAIN_STORE_URL": f"s3://{ACCESS_KEY}@{name}/zonal?endpoint={rados.url}",
        "ZBRAIN_STORE_SECRET_KEY": SECRET_KEY,
    }


@pytest.fixture(scope="session")
def rados() -> Iterator[Rados]:
    """Return a running cluster of Ceph."""
    with running_rados() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def new_store(rados: Rados) -> Callable[[], dict[str, str]]:
    """Return a function that creates a bucket of the gateway; it returns the settings of brains."""
    return partial(store_on, rados)


@pytest.fixture(scope="session")
def shared_store(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the settings of the shared brain's store: none but by `make test-store`."""
    if not HAS_CEPH:
        return {}
    settings: dict[str, str] = request.getfixturevalue("new_store")()
    return settings
