"""Bodies are compressed once, as far as their organization's share of the threads goes."""

import asyncio
import hashlib
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from unittest.mock import AsyncMock, Mock
from uuid import uuid4

import pytest

from edgecache.brain.core.errors import OriginChanged
from edgecache.brain.core.share_key import SHARE_KEY
from edgecache.brain.core.values import EnvironmentKey, Span, WorkerSource
from edgecache.brain.delivery import compression, streaming
from edgecache.brain.delivery.compression import Compression
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.delivery.streaming import Streamer
from edgecache.brain.delivery.worker_reads import WorkerReads
from edgecache.runtime.threads import FairThreads

THREADS = 8


def text_of(number: int) -> bytes:
    return f"the same text {number} ".encode() * 100


def delivery_of(number: int, *, owner: int = 1, bucket_id: int = 1) -> DeliveryPlan:
    body = text_of(number)
    return DeliveryPlan(
        tenant=EnvironmentKey(owner, 1),
        bucket_id=bucket_id,
        sha256=hashlib.sha256(body).digest(),
        size=len(body),
        span=Span(0, len(body)),
        status=200,
        headers=[("content-encoding", "gzip")],
    )


class Bench:
    """Compresses texts that it has itself. reads: of their bytes."""

    def __init__(self) -> None:
        self.reads = 0
        self.nodes = Mock(get=lambda _id: Mock(organization_id=None))
        self.meters = Mock()
        worker_reads = WorkerReads(Mock(), self.nodes, Mock(), Mock())
        self.streamer = Streamer(Mock(), worker_reads, self.meters, Mock(), Mock(), on_read=Mock())
        self.threads = FairThreads(THREADS, "files")
        self.compression = Compression(self.streamer, self.threads)

    async def body(self, number: int, *, owner: int = 1, bucket_id: int = 1) -> bytes:
        """Return a text in gzip, as one client of a bucket gets it."""
        SHARE_KEY.set((owner, bucket_id, "192.0.2.0"))

        async def read(_span: Span) -> AsyncIterator[bytes]:
            self.reads += 1
            yield text_of(number)

        delivery = delivery_of(number, owner=owner, bucket_id=bucket_id)
        return await self.compression.body("gzip", delivery, read, began=0.0)


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Return what compresses."""
    made = Bench()
    yield made
    made.threads.stop()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Return what compressing in gzip waits for; ``made`` counts."""
    event = threading.Event()

    def wait(body: bytes) -> bytes:
        event.wait(20)
        return zlib.compress(body, 6, 31)

    monkeypatch.setattr(compression, "COMPRESSORS", {"gzip": Mock(side_effect=wait)})
    yield event
    event.set()


async def begun(holds: Callable[[], bool]) -> None:
    """Let others run until a condition is met."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - threads meet it
            await asyncio.sleep(0.001)


async def test_concurrent_requests_share_one_compression(
    bench: Bench, gate: threading.Event
) -> None:
    compress = compression.COMPRESSORS["gzip"]
    assert isinstance(compress, Mock)
    first = asyncio.create_task(bench.body(1))
    await begun(lambda: compress.called)
    others = [asyncio.create_task(bench.body(1)) for _ in range(50)]
    await asyncio.sleep(0)
    gate.set()
    found = {await first, *await asyncio.gather(*others)}
    assert [zlib.decompress(one, 31) for one in found] == [text_of(1)]
    assert await bench.body(1) in found
    assert (compress.call_count, bench.reads) == (1, 1)


async def test_a_request_does_not_wait_for_a_thread(bench: Bench, gate: threading.Event) -> None:
    busy = [
        bench.threads.begin((owner,), lambda: gate.wait(20)) for owner in range(2, 2 + THREADS * 2)
    ]
    assert await asyncio.wait_for(bench.body(1), 20) == b""
    gate.set()
    await asyncio.gather(*busy)
    assert zlib.decompress(await bench.body(1), 31) == text_of(1)


async def test_an_organization_with_many_texts_leaves_room_for_others(
    bench: Bench, gate: threading.Event
) -> None:
    compress = compression.COMPRESSORS["gzip"]
    assert isinstance(compress, Mock)
    flood = [asyncio.create_task(bench.body(number, bucket_id=number % 9)) for number in range(200)]
    # The others are not even read.
    await begun(lambda: compress.call_count == 2)
    await begun(lambda: sum(one.done() for one in flood) == 198)
    assert bench.reads == 2
    another = asyncio.create_task(bench.body(999, owner=2))
    await begun(lambda: compress.call_count == 3)
    gate.set()
    assert zlib.decompress(await another, 31) == text_of(999)
    assert len([one for one in await asyncio.gather(*flood) if one]) == 2


async def test_one_bucket_compresses_one_text_at_a_time(
    bench: Bench, gate: threading.Event
) -> None:
    flood = [asyncio.create_task(bench.body(number)) for number in range(20)]
    await begun(lambda: sum(one.done() for one in flood) == 19)
    gate.set()
    await asyncio.gather(*flood)
    # They get it when they are asked for again.
    assert zlib.decompress(await bench.body(5), 31) == text_of(5)


async def test_lost_bytes_are_left_to_the_delivery_of_the_plain_body(bench: Bench) -> None:
    lost = Mock(side_effect=OriginChanged)
    assert await bench.compression.body("gzip", delivery_of(1), lost, began=0.0) == b""
    assert zlib.decompress(await bench.body(1), 31) == text_of(1)


async def test_a_body_that_hardly_shrinks_is_tried_once(bench: Bench) -> None:
    delivery, noise = delivery_of(1), hashlib.shake_256(b"").digest(4000)

    async def read(_span: Span) -> AsyncIterator[bytes]:
        bench.reads += 1
        yield noise

    for _ in range(3):
        assert await bench.compression.body("gzip", delivery, read, began=0.0) == b""
    assert bench.reads == 1


@pytest.mark.parametrize("owner", [None, 7])
async def test_the_operator_of_a_foreign_node_is_paid_for_a_compressed_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, owner: int | None
) -> None:
    monkeypatch.setattr(streaming, "SPOT_CHECK_SHARE", 0.0)
    bench.nodes.get = lambda _id: Mock(organization_id=owner)
    source = WorkerSource(uuid4(), "http://127.0.0.1:1")

    async def sent(_delivery: DeliveryPlan, taker: Mock, _began: float) -> bool:
        taker.node_id = source.node_id
        return True

    ask = AsyncMock(side_effect=sent)
    monkeypatch.setattr(bench.streamer, "_sent_by_workers", ask)
    delivery = delivery_of(1)._replace(sources=(source,))
    exchange = Mock(began=0.0, sent_bytes=77)
    await bench.streamer.deliver_compressed(delivery, b"packed", exchange)

    exchange.response_bytes.assert_called_once_with(200, delivery.headers, b"packed")
    assert ask.await_count == (0 if owner is None else 1)
    (recorded,) = bench.meters.record.call_args_list
    assert recorded.args[2] == (None if owner is None else source.node_id)
    # What was handed to the socket counts.
    assert recorded.kwargs["bytes_served"] == 77
