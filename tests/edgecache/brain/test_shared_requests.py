"""One tenant's requests wait for a slow origin; another tenant reads, writes and forwards."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from cryptography.fernet import Fernet

from tests.edgecache.brain.cdn.conftest import (
    Asked,
    CdnBucket,
    Origin,
    OriginAnswer,
    cdn_bucket_for,
)
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster, until
from tests.edgecache.databases import brain_database

pytestmark = pytest.mark.slow

RUNNING = 24
FORWARDS = 15
# A machine's own limits would take thousands of clients to fill.
NARROW = f"""
import runpy
from edgecache.runtime import resource_limits
resource_limits.connections_allowed = lambda: {RUNNING}
from edgecache.brain.cdn import forwarding
forwarding.FORWARDS = {FORWARDS}
runpy.run_module("edgecache.brain", run_name="__main__")
"""


class NarrowCluster(Cluster):
    """A brain with few places for running and for forwarded requests."""

    def _spawn(self, log: str, command: list[str], environment: dict[str, str]) -> None:
        super()._spawn(log, ["-c", NARROW], environment)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return the brain."""
    with brain_database() as url:
        folder = tmp_path_factory.mktemp("narrow")
        cluster = NarrowCluster(
            folder,
            url,
            Fernet.generate_key().decode(),
            variables={"ZBRAIN_FILLS": "1000"},
            workers=0,
        )
        try:
            yield cluster.start()
        finally:
            cluster.end()


@pytest.fixture
def origins() -> Iterator[tuple[Origin, Origin]]:
    """Return two origins."""
    both = Origin(), Origin()
    yield both
    for each in both:
        each.shutdown()
        each.server_close()


@pytest.mark.parametrize(("method", "most"), [("GET", RUNNING // 2), ("POST", FORWARDS // 4)])
def test_requests_at_a_slow_origin_leave_places_to_another_organization(
    narrow: Cluster, origins: tuple[Origin, Origin], method: str, most: int
) -> None:
    slow, quick = origins
    gate = threading.Event()

    def hold(_asked: Asked) -> None:
        gate.wait(20)

    slow.meanwhile = hold
    greedy = cdn_bucket_for(narrow, slow)
    modest = cdn_bucket_for(narrow, quick)
    for bucket in (greedy, modest):
        bucket.switch(forwards_writes=True)
    with ExitStack() as stack:
        assert 0 < fill(greedy, method, stack) <= most

        work(modest)
        gate.set()


def fill(bucket: CdnBucket, method: str, stack: ExitStack) -> int:
    """Send requests until one is refused; return how many wait at the origin."""
    for count in range(RUNNING):
        client = stack.enter_context(
            socket.create_connection(("127.0.0.1", bucket.cluster.port), timeout=20)
        )
        line = f"{method} /p/{bucket.public_name}/{count} HTTP/1.1"
        client.sendall(f"{line}\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
        if not waits_at_origin(bucket.origin, client, count):
            assert client.recv(100).startswith(b"HTTP/1.1 503 ")
            return count
    raise AssertionError("no request was refused")


def waits_at_origin(origin: Origin, client: socket.socket, count: int) -> bool:
    """Return whether a request reached the origin, after others, before it was answered."""
    until(lambda: len(origin.asked) > count or bool(select.select([client], [], [], 0)[0]))
    return len(origin.asked) > count


def work(bucket: CdnBucket) -> None:
    """Read and write at an origin, and in the platform's own store."""
    bucket.respond("/k", "max-age=600", b"read")
    assert bucket.get("/k").body == b"read"
    bucket.origin.said["POST /k"] = OriginAnswer(201)
    assert bucket.send("POST", "/k", b"x").status == 201
    keys = bucket.cluster.tenant()
    bucket.cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "docs"})
    signer = Signer(keys, bucket.cluster.url)
    assert signer.send("PUT", "/docs/k", b"x").status == 200
    assert signer.send("GET", "/docs/k").body == b"x"
