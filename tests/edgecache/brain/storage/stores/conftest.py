"""Stores on this machine: folders, and buckets of another brain's object API."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from edgecache.brain.storage.stores.settings import StoreSettings
from tests.edgecache.brain.brains import Brain, Rows, running
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect

KINDS = ("file", "s3")


@pytest.fixture
def s3_store(bare_cluster: Cluster) -> Iterator[StoreSettings]:
    """Return an S3 store: a bucket of another brain."""
    keys = bare_cluster.tenant()
    client = connect(keys, bare_cluster.url)
    client.create_bucket(Bucket="managed")
    yield StoreSettings(
        url="s3://managed/some/prefix",
        endpoint=bare_cluster.url,
        access_key=keys.access_key,
        secret_key=keys.secret_key,
    )
    client.close()


@pytest.fixture
def folder_store(tmp_path: Path) -> StoreSettings:
    """Return a store in a folder."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    return StoreSettings(url=f"file://{folder}")


@pytest.fixture(params=KINDS)
def chosen(request: pytest.FixtureRequest) -> StoreSettings:
    """Return the settings of a store of each kind."""
    name = {"file": "folder_store", "s3": "s3_store"}[request.param]
    settings: StoreSettings = request.getfixturevalue(name)
    return settings


@pytest.fixture
async def stored(rows: Rows, tmp_path: Path, chosen: StoreSettings) -> AsyncIterator[Brain]:
    """Return a brain on a store of each kind."""
    async with running(rows.url, tmp_path / "brain", stores=[chosen]) as brain:
        yield brain


@pytest.fixture
async def peer(
    stored: Brain, rows: Rows, tmp_path: Path, chosen: StoreSettings
) -> AsyncIterator[Brain]:
    """Return a second brain on the same store, with a folder of its own."""
    async with running(rows.url, tmp_path / "peer", stores=[chosen]) as brain:
        await asyncio.gather(*(each.coherence.wait_until_current(5) for each in (stored, brain)))
        yield brain
