"""A crowd of one organization waits for a slow origin, with the limits of this machine."""

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from edgecache.runtime import resource_limits
from edgecache.runtime.resource_limits import connections_allowed, files_allowed
from tests.edgecache.brain.brains import until
from tests.edgecache.brain.http_origin import Asked, Gate, HttpOrigin
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.new_cluster import new_cluster

WAITING = 1000
# Fewer connect together than fit into an origin's backlog.
CONCURRENT = 50
# Memory of the brain for each; about 50 were measured.
WAITER_KIB = 256


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a brain in its own process, with the default limits."""
    # Each request has two ends in this process.
    assert files_allowed() > 3 * WAITING
    with new_cluster(tmp_path_factory, workers=0) as cluster:
        yield cluster


@pytest.fixture
async def slow() -> AsyncIterator[tuple[HttpOrigin, Gate]]:
    """Return an origin that answers each path with itself when the gate is opened."""
    gate = Gate()

    async def held(asked: Asked) -> None:
        await gate.wait()
        await asked.answer(asked.path.encode())

    async with HttpOrigin(handler=held) as origin:
        yield origin, gate
        gate.opened.set()


def bucket_at(cluster: Cluster, origin: HttpOrigin) -> Keys:
    """Return a new organization; its bucket ``docs`` has the origin."""
    keys = cluster.tenant()
    described = {"name": "o", "kind": "http", "config": {"url": origin.url}}
    made = cluster.call("POST", f"/v1/origins?{keys.scope}", described)
    bucket = {"name": "docs", "origin_id": made["id"]}
    cluster.call("POST", f"/v1/buckets?{keys.scope}", bucket)
    return keys


async def get(cluster: Cluster, keys: Keys, key: str) -> tuple[int, bytes]:
    """GET an object on a connection of its own; return the status and the body."""
    headers = Signer(keys, cluster.url).sign("GET", f"/docs/{key}") | {"connection": "close"}
    lines = [f"GET /docs/{key} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    reader, writer = await asyncio.open_connection("127.0.0.1", cluster.port)
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        return int(head.split()[1]), body
    finally:
        writer.close()


async def crowd(
    cluster: Cluster, keys: Keys, origin: HttpOrigin
) -> list[asyncio.Task[tuple[int, bytes]]]:
    """Ask for distinct keys until this many requests wait at the origin."""
    asking: list[asyncio.Task[tuple[int, bytes]]] = []

    def has_asked() -> bool:
        # On a slow machine a fetch may have asked twice.
        return len({asked.path for asked in origin.asked}) == len(asking)

    while len(asking) < WAITING:
        more = range(len(asking), len(asking) + CONCURRENT)
        asking.extend(asyncio.create_task(get(cluster, keys, f"{n}")) for n in more)
        await until(lambda: has_asked() or any(task.done() for task in asking))
        assert not [task.result() for task in asking if task.done()]
    return asking


def memory_kib(cluster: Cluster) -> float:
    """Return the memory that the brain's only process takes."""
    (pid,) = cluster.brain_processes()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024


@pytest.mark.slow
async def test_a_thousand_wait_at_little_cost_while_another_organization_is_served(
    lone: Cluster, slow: tuple[HttpOrigin, Gate]
) -> None:
    origin, gate = slow
    async with HttpOrigin({f"/{n}": b"quick" for n in range(20)}) as other:
        greedy, modest = bucket_at(lone, origin), bucket_at(lone, other)
        assert await get(lone, modest, "0") == (200, b"quick")
        before = memory_kib(lone)

        asking = await crowd(lone, greedy, origin)

        for n in range(1, 20):
            assert await get(lone, modest, f"{n}") == (200, b"quick")
        assert (memory_kib(lone) - before) / WAITING < WAITER_KIB
        assert not any(task.done() for task in asking)
    gate.opened.set()
    assert await asyncio.gather(*asking) == [(200, b"/%d" % n) for n in range(WAITING)]


@pytest.mark.parametrize(
    ("files", "memory_gib", "clients"),
    [(65_536, 16, 16_384), (65_536, 8, 8192), (20_000, 8, 8000), (65_536, 2, 2048), (1024, 8, 409)],
)
def test_the_limits_fit_the_machine(
    monkeypatch: pytest.MonkeyPatch, files: int, memory_gib: int, clients: int
) -> None:
    memory = memory_gib * 2**30
    monkeypatch.setattr(resource_limits, "files_allowed", lambda: files)
    monkeypatch.setattr(resource_limits, "memory_bytes", lambda: memory)
    assert connections_allowed.__wrapped__() == clients
    # Half of them may ask an origin, which takes a connection and two files.
    assert clients + 3 * (clients // 2) <= files
    assert clients * resource_limits.CONNECTION_BYTES <= memory
