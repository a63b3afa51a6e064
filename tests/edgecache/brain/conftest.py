"""Brains on a real database, and origins that are real servers on loopback."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from edgecache.brain.values import BucketInfo
from tests.edgecache.brain.brains import Brain, Rows, running
from tests.edgecache.brain.http_origin import HttpOrigin
from tests.edgecache.databases import brain_database
from tests.table_cleanup import empty

TABLES = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'brain\\_%%'"


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
async def bucket(brain: Brain, origin: HttpOrigin) -> BucketInfo:
    """Return a bucket with the HTTP origin."""
    return await brain.origin_bucket("http", {"url": origin.url})


@pytest.fixture
async def strict(rows: Rows, tmp_path: Path) -> AsyncIterator[Brain]:
    """Return a brain with production's egress rules."""
    async with running(rows.url, tmp_path / "strict", allows_private=False) as brain:
        yield brain
