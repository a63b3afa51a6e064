"""Stores on this machine: folders, buckets of another brain's object API, and local servers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from edgecache.brain.conf.stores import StoreSettings
from edgecache.brain.stores import stored_blobs
from tests.edgecache.brain.brains import Brain, Rows, running
from tests.edgecache.brain.s3_origin import ACCESS, SECRET, GoogleOrigin
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect

# Stores for bodies of any size, and all stores.
COMPLETE = ("file", "s3")
KINDS = (*COMPLETE, "gs")


@pytest.fixture(autouse=True)
def no_small_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every body in the store, so that tests need no long ones."""
    monkeypatch.setattr(stored_blobs, "SMALL_BYTES", -1)


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


@pytest.fixture
async def gs_store() -> AsyncIterator[StoreSettings]:
    """Return a store at Google Cloud Storage: a local server."""
    async with GoogleOrigin(takes_ranges=True, listed_at="") as server:
        yield StoreSettings(
            url="gs://store/some/prefix",
            endpoint=server.url,
            access_key=ACCESS,
            secret_key=SECRET,
        )
        assert server.wrong == []


@pytest.fixture
def chosen(request: pytest.FixtureRequest) -> StoreSettings:
    """Return the settings of a store of each kind that the test is for."""
    name = {"file": "folder_store"}.get(request.param, f"{request.param}_store")
    settings: StoreSettings = request.getfixturevalue(name)
    return settings


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of drivers with each kind; what is above them with those that take all bodies."""
    if "chosen" in metafunc.fixturenames:
        kinds = KINDS if metafunc.module.__name__.endswith("test_drivers") else COMPLETE
        metafunc.parametrize("chosen", kinds, indirect=True)


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
