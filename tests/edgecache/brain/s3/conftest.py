"""The configuration of programs that use the object API."""

import os
from pathlib import Path

import pytest

from tests.edgecache.cluster import Cluster, Keys


@pytest.fixture
def environment(keys: Keys, cluster: Cluster, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a tool with the tenant's keys and no other configuration."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "AWS_ACCESS_KEY_ID": keys.access_key,
        "AWS_SECRET_ACCESS_KEY": keys.secret_key,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": cluster.url,
        "AWS_MAX_ATTEMPTS": "1",
        "S3_ENDPOINT_URL": cluster.url,
        "RCLONE_CONFIG_EDGE_TYPE": "s3",
        "RCLONE_CONFIG_EDGE_PROVIDER": "Other",
        "RCLONE_CONFIG_EDGE_ENDPOINT": cluster.url,
        "RCLONE_CONFIG_EDGE_ACCESS_KEY_ID": keys.access_key,
        "RCLONE_CONFIG_EDGE_SECRET_ACCESS_KEY": keys.secret_key,
        "RCLONE_LOW_LEVEL_RETRIES": "1",
        "RCLONE_RETRIES": "1",
        "RCLONE_CONFIG": "/dev/null",
    }
