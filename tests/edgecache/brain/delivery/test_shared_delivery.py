"""What reads share when bytes are sent: connections to workers, threads, verifications."""

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from unittest.mock import Mock
from uuid import UUID, uuid4

import pytest

from edgecache.brain.core.blocks import BLOCK_BYTES
from edgecache.brain.core.errors import Overloaded
from edgecache.brain.core.share_key import use_share_of_organization
from edgecache.brain.core.values import EnvironmentKey, Span, WorkerSource
from edgecache.brain.delivery import local_files
from edgecache.brain.delivery.integrity import BlockChecks
from edgecache.brain.delivery.local_files import MIN_SENDFILE_BYTES, LocalFiles, OwnFiles
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.delivery.worker_reads import WorkerReads
from edgecache.brain.nodes import client as node_client
from edgecache.brain.nodes.client import WorkerClient
from edgecache.brain.nodes.health import NodeStatistics
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.tickets import TicketSigner
from edgecache.http.client import ServerAddress
from edgecache.http.files import FileBody
from edgecache.runtime.threads import FairThreads
from edgecache.runtime.verified_files import VerifiedFiles, state_of
from tests.edgecache.brain.brains import until
from tests.edgecache.brain.http_origin import Asked, HttpOrigin

GREEDY, MODEST = 1, 2
SIZE = 2**20
PLACES = 12


class OneNode(KnownNodes):
    """A registry with one node."""

    def __init__(self, node_id: UUID, url: str) -> None:
        super().__init__(Mock(), Mock(), Mock(), interval_s=10, guards_operators=False)
        self._statistics = {node_id: NodeStatistics()}
        self._url = url

    def address(self, node_id: UUID) -> ServerAddress | None:
        return ServerAddress(self._url)


def delivery_of(body: bytes, node_id: UUID | None = None) -> DeliveryPlan:
    """Return a delivery of a whole body."""
    return DeliveryPlan(
        tenant=EnvironmentKey(1, 2),
        bucket_id=3,
        sha256=hashlib.sha256(body).digest(),
        size=len(body),
        span=Span(0, len(body)),
        status=200,
        headers=[],
        sources=(WorkerSource(node_id, "http://127.0.0.1:1"),) if node_id else (),
    )


class SlowReads:
    """Reads of a large object by a client that takes nothing after the first bytes."""

    def __init__(self, url: str, client: WorkerClient) -> None:
        self.node_id = uuid4()
        self.nodes = OneNode(self.node_id, url)
        self._client = client
        signer = TicketSigner("a secret of more than thirty-two characters")
        self._reads = WorkerReads(Mock(), self.nodes, signer, client)

    async def begin(self, stack: AsyncExitStack, organization_id: int) -> bytes:
        """Begin one; return its first bytes."""
        delivery = delivery_of(bytes(SIZE), self.node_id)

        async def first() -> bytes:
            use_share_of_organization(organization_id)
            pieces = self._reads.pieces(
                delivery,
                delivery.sources[0],
                BlockChecks(lambda *_: True, BLOCK_BYTES, delivery.span, SIZE),
                time.perf_counter(),
                has_begun=False,
            )
            piece = await anext(pieces)
            stack.push_async_callback(pieces.aclose)
            return piece

        return await asyncio.create_task(first())


@pytest.fixture
async def slow(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlowReads]:
    """Return slow reads from a worker, over few connections."""
    monkeypatch.setattr(node_client, "WAIT_S", 0.01)

    async def answer(asked: Asked) -> None:
        await asked.answer(bytes(SIZE))

    client = WorkerClient(PLACES)
    async with HttpOrigin(handler=answer) as worker:
        yield SlowReads(worker.url, client)
        await client.stop()


async def test_slow_readers_leave_connections_to_workers_and_blame_no_node(
    slow: SlowReads,
) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(PLACES // 2):
            assert await slow.begin(stack, GREEDY)
        for _ in range(4):
            with pytest.raises(Overloaded):
                await slow.begin(stack, GREEDY)

        assert await slow.begin(stack, MODEST)
        assert slow.nodes.statistics(slow.node_id).failures == 0
        assert slow.nodes.statistics(slow.node_id).running == PLACES // 2 + 1


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Return what a thread waits for; it is opened at the end."""
    event = threading.Event()
    yield event
    event.set()


class Folder:
    """The brain's copies, as the data directory names them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.threads = FairThreads(1, "files")

    def copy_of(self, sha256: bytes) -> Path:
        return self.root / sha256.hex()


async def test_large_files_are_sent_in_turn(tmp_path: Path, gate: threading.Event) -> None:
    body = os.urandom(MIN_SENDFILE_BYTES + 1)
    delivery = delivery_of(body)
    path = tmp_path / delivery.sha256.hex()
    path.write_bytes(body)
    files = LocalFiles()
    files._verified = Mock(knows=lambda *_: True)
    own, order = OwnFiles(Folder(tmp_path), files), list[int]()  # type: ignore[arg-type] # enough of it

    def turn(organization_id: int) -> None:
        gate.wait(20)
        order.append(organization_id)

    async def opened(organization_id: int) -> FileBody:
        use_share_of_organization(organization_id)
        file = await own.open(delivery)
        assert file is not None
        return file

    bodies = [(n, await asyncio.create_task(opened(n))) for n in [GREEDY] * 30 + [MODEST] * 2]
    sending = [asyncio.create_task(file.in_thread(turn, n)) for n, file in bodies]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*sending)
    for _, file in bodies:
        file.close()

    assert order[:6].count(MODEST) == 2


@pytest.fixture
async def verifying(
    monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> AsyncIterator[LocalFiles]:
    """Return files; the verification of those called ``large…`` waits at the gate."""
    verify = VerifiedFiles.verify_path

    def held(files: VerifiedFiles, sha256: bytes, path: str) -> object:
        if Path(path).name.startswith("large"):
            gate.wait(20)
        return verify(files, sha256, path)

    monkeypatch.setattr(VerifiedFiles, "verify_path", held)
    monkeypatch.setattr(local_files, "is_settled", lambda *_, **__: True)
    monkeypatch.setattr("edgecache.runtime.verified_files.SETTLED_NS", 0)
    files = LocalFiles()
    yield files
    gate.set()
    await files.stop()


async def test_files_of_one_organization_do_not_delay_the_verification_of_another_s(
    tmp_path: Path, verifying: LocalFiles, gate: threading.Event
) -> None:
    sha256 = hashlib.sha256(b"bytes").digest()
    large = [tmp_path / f"large{n}" for n in range(3)]
    for path in (*large, tmp_path / "small"):
        path.write_bytes(b"bytes")

    async def ask(organization_id: int, path: Path) -> bool:
        use_share_of_organization(organization_id)
        return verifying.knows(sha256, str(path), state_of(str(path)))

    async def asked(organization_id: int, path: Path) -> bool:
        return await asyncio.create_task(ask(organization_id, path))

    for path in large:
        assert not await asked(GREEDY, path)
    small = tmp_path / "small"
    assert not await asked(MODEST, small)
    await until(lambda: verifying._verified.knows(sha256, state_of(str(small))))
    assert not await asked(GREEDY, large[0])

    # Others of the organization are verified when they are read again.
    gate.set()
    await until(lambda: not len(verifying._tasks))
    assert not await asked(GREEDY, large[-1])
    await until(lambda: verifying._verified.knows(sha256, state_of(str(large[-1]))))
