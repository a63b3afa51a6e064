"""A tenant fills the pools of both brains of a machine; another one works through each of them."""

import asyncio
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

import pytest

from edgecache.brain.s3.bodies import XML_LIMIT_BYTES
from tests.edgecache.brain.http_origin import HttpOrigin
from tests.edgecache.brain.s3.raw import UNSIGNED, Signer
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.new_cluster import new_cluster
from tests.processes import connections_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

MIB = 2**20
GREEDY = 60
LARGE = bytes(8 * MIB)
# What it sends, on connections of its own: method, target, length of a body that does not come.
FILLS = {
    "requests to a slow origin": ("GET", "/docs/{}", 0),
    "large responses that are not read": ("GET", "/own/large", 0),
    "bodies of XML": ("POST", "/own?delete=", XML_LIMIT_BYTES),
    "bodies of objects": ("PUT", "/own/{}", 2 * MIB),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return two brains with the same ports and small pools."""
    pools = {"ZBRAIN_FILLS": "40", "ZBRAIN_STAGING_MIB": "64"}
    with new_cluster(tmp_path_factory, workers=1, brains=2, **pools) as made:
        yield made


@pytest.fixture
def silent() -> Iterator[str]:
    """Return the URL of an origin that takes requests and answers none."""
    with socket.create_server(("127.0.0.1", 0), backlog=4 * GREEDY) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def tenant_at(cluster: Cluster, origin_url: str) -> Keys:
    """Return a new tenant with two buckets: ``docs`` at an origin, and ``own`` without one."""
    keys = cluster.tenant()
    described = {"name": "o", "kind": "http", "config": {"url": origin_url}}
    origin = cluster.call("POST", f"/v1/origins?{keys.scope}", described)
    for bucket in ({"name": "docs", "origin_id": origin["id"]}, {"name": "own"}):
        cluster.call("POST", f"/v1/buckets?{keys.scope}", bucket)
    return keys


def fill(cluster: Cluster, keys: Keys, kind: str, stack: ExitStack) -> list[socket.socket]:
    """Begin a tenant's requests in both brains."""
    method, target, length = FILLS[kind]
    clients = []
    for number in range(GREEDY):
        path = target.format(number)
        headers = Signer(keys, cluster.url).sign(method, path, payload=UNSIGNED)
        headers |= {"content-length": str(length)} if length else {}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {it}" for name, it in headers.items())]
        client = stack.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", cluster.port))
        client.setblocking(False)
        # As much as the kernel takes: a body that is refused is read no further.
        client.send("\r\n".join([*lines, "", ""]).encode() + bytes(length // 2))
        clients.append(client)
    pids = cluster.brain_processes()
    wait_until(lambda: all(connections_of(pid, cluster.port) > 2 for pid in pids))
    return clients


def answered(clients: list[socket.socket]) -> int:
    """Return how many have got an answer, or the begin of one."""
    return len(select.select(clients, [], [], 0)[0])


def work(cluster: Cluster, keys: Keys, numbers: Iterator[int]) -> None:
    """Write, read, list and delete, each through a connection of its own, in both brains."""
    signer = Signer(keys, cluster.url)
    for number in (next(numbers) for _ in range(4)):
        for method, target, body, status in (
            ("PUT", f"/own/{number}", b"x" * 200_000, 200),
            ("GET", f"/own/{number}", b"", 200),
            ("GET", f"/docs/{number}", b"", 200),
            ("GET", "/own", b"", 200),
            ("DELETE", f"/own/{number}", b"", 204),
        ):
            answer = signer.send(method, target, body)
            assert answer.status == status, (method, target, answer.body)


@pytest.mark.parametrize("kind", FILLS)
async def test_what_one_tenant_takes_of_both_brains_leaves_another_its_share(
    cluster: Cluster, silent: str, kind: str
) -> None:
    numbers = count()
    async with HttpOrigin({f"/{n}": b"quick" for n in range(20)}) as origin:
        greedy, modest = tenant_at(cluster, silent), tenant_at(cluster, origin.url)
        if kind == "large responses that are not read":
            Signer(greedy, cluster.url).send("PUT", "/own/large", LARGE)
        await asyncio.to_thread(work, cluster, modest, numbers)
        with ExitStack() as stack:
            clients = await asyncio.to_thread(fill, cluster, greedy, kind, stack)
            # Refused where the pool is too small for all, begun where it is not.
            await asyncio.to_thread(wait_until, lambda: answered(clients))

            await asyncio.to_thread(work, cluster, modest, numbers)
