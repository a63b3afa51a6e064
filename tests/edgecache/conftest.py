"""Tenants of the shared brain, and their S3 clients."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.edgecache.cluster import Cluster, Keys

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
