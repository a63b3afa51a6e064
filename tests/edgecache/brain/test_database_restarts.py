"""PostgreSQL restarts during operations."""

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from common.machine.folders import make_folders, make_runtime_dir
from common.machine.postgres_programs import find_binaries
from edgecache.brain.core.errors import DatabaseUnavailable
from operations.embedded.postgres.cluster import CONTROL, LocalCluster
from operations.embedded.supervisor import processes_in
from tests.database_client import DatabaseClient
from tests.edgecache.brain.brains import ALICE, Brain, running, until
from tests.edgecache.databases import fill, template
from tests.operations.embedded.support import start
from tests.table_cleanup import empty

pytestmark = pytest.mark.slow

WRITERS = 6


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Return a separate, durable PostgreSQL cluster for these tests."""
    folders = make_folders(tmp_path_factory.mktemp("restarts") / "var")
    binaries = find_binaries({}, make_runtime_dir(folders.data_dir), production=False)
    own = LocalCluster(CONTROL, folders, binaries)
    try:
        start(own)
        fill(own.url, template("brain_template", "brain"))
        own.stop()
        yield own
    finally:
        own.stop()
        own.release()
        shutil.rmtree(folders.clusters_dir, ignore_errors=True)


@pytest.fixture
def cluster(made: LocalCluster) -> Iterator[LocalCluster]:
    """Return the running cluster, empty. A server ends with the thread that started it."""
    start(made)
    empty(DatabaseClient(made.url), ("brain_bucket", "brain_blob", "brain_braininstance"))
    yield made
    made.stop()


def restart(cluster: LocalCluster, *, is_killed: bool) -> None:
    """Stop the server and start it again."""
    if is_killed:
        for server in processes_in(cluster.data, program="postgres"):
            # Some end by themselves when the first one is gone.
            with suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)
    cluster.stop()
    start(cluster)


@pytest.mark.parametrize("is_killed", [False, True])
async def test_acknowledged_writes_survive_a_restart(
    cluster: LocalCluster, tmp_path: Path, is_killed: bool
) -> None:
    async with running(cluster.url, tmp_path / "brain") as brain:
        bucket = await brain.bucket()
        acknowledged = dict.fromkeys(range(WRITERS), 0)
        attempted = dict.fromkeys(range(WRITERS), 0)
        is_over = asyncio.Event()

        async def write(number: int) -> None:
            while not is_over.is_set():
                attempted[number] += 1
                try:
                    await brain.put(bucket, f"k{number}", b"%d" % attempted[number])
                except DatabaseUnavailable:
                    await asyncio.sleep(0.05)
                else:
                    acknowledged[number] = attempted[number]

        writing = [asyncio.create_task(write(number)) for number in range(WRITERS)]
        await until(lambda: min(acknowledged.values()) >= 5)
        await asyncio.to_thread(restart, cluster, is_killed=is_killed)
        goal = max(acknowledged.values()) + 5
        await until(lambda: min(acknowledged.values()) >= goal)
        is_over.set()
        await asyncio.gather(*writing)

        assert await brain.coherence.wait_until_current(10)
        await every_key_is_right(brain, acknowledged, attempted)
        brain.directory.index.clear()
        await every_key_is_right(brain, acknowledged, attempted)


async def every_key_is_right(
    brain: Brain, acknowledged: dict[int, int], attempted: dict[int, int]
) -> None:
    """Check all keys: each has the last acknowledged write or a later attempted one."""
    bucket = (await brain.buckets.list(ALICE))[0]
    for number, least in acknowledged.items():
        assert least <= int(await brain.get(bucket, f"k{number}")) <= attempted[number]


async def test_the_cache_is_cleared_when_the_listener_is_lost(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    async with running(cluster.url, tmp_path / "brain") as brain:
        bucket = await brain.bucket()
        await brain.put(bucket, "k", b"x")
        await brain.get(bucket, "k")
        await asyncio.to_thread(cluster.stop)
        await until(lambda: not brain.coherence.is_current)

        assert len(brain.directory.index) == 0
        with pytest.raises(DatabaseUnavailable):
            await brain.objects.open(bucket, "k")
        await asyncio.to_thread(start, cluster)
        assert await brain.coherence.wait_until_current(15)
        assert await brain.get(bucket, "k") == b"x"
