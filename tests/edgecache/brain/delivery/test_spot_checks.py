"""Which reads the brain serves from memory, and which go to a worker."""

import hashlib
from unittest.mock import AsyncMock, Mock
from uuid import uuid4

import pytest

from edgecache.brain.core.values import EnvironmentKey, Span, WorkerSource
from edgecache.brain.delivery import streaming
from edgecache.brain.delivery.plan import DeliveryPlan
from edgecache.brain.delivery.streaming import SPOT_CHECK_INTERVAL_S, SpotChecks, Streamer
from edgecache.brain.delivery.worker_reads import WorkerReads

BLOB = b"often" * 100
SHA256 = hashlib.sha256(BLOB).digest()


async def from_memory(*, owner: int | None, start: int = 0, length: int = len(BLOB)) -> bytes:
    """Return what is served from memory of a blob that was read twice. owner: of its node."""
    own_files = Mock(open=AsyncMock(return_value=None))
    nodes = Mock(get=lambda _id: Mock(organization_id=owner))
    worker_reads = WorkerReads(Mock(), nodes, Mock(), Mock())
    streamer = Streamer(Mock(), worker_reads, Mock(), own_files, Mock(), on_read=Mock())
    streamer._send_small = AsyncMock()  # type: ignore[method-assign] # in place of a worker
    for _ in range(2):
        streamer.hot.offer(SHA256, BLOB, organization_id=1)
    delivery = DeliveryPlan(
        tenant=EnvironmentKey(1, 1),
        bucket_id=1,
        sha256=SHA256,
        size=len(BLOB),
        span=Span(start, length),
        status=200,
        headers=[],
        sources=(WorkerSource(uuid4(), "http://127.0.0.1:1"),),
    )
    exchange = Mock(began=0.0, sent_bytes=0)
    await streamer.deliver(delivery, exchange, Mock())
    if not exchange.response_bytes.called:
        streamer._send_small.assert_awaited_once()
        return b""
    streamer._send_small.assert_not_awaited()
    body: bytes = exchange.response_bytes.call_args.args[2]
    return body


async def test_a_blob_in_memory_is_served_without_asking_a_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streaming, "SPOT_CHECK_SHARE", 0.0)

    assert await from_memory(owner=None) == BLOB
    assert await from_memory(owner=None, start=3, length=9) == BLOB[3:12]


async def test_a_foreign_node_is_asked_because_it_is_paid_for_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streaming, "SPOT_CHECK_SHARE", 0.0)

    assert await from_memory(owner=7) == b""


async def test_a_spot_check_is_served_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SPOT_CHECK_SHARE", 1.0)

    assert await from_memory(owner=None) == b""


def test_a_blob_is_checked_at_most_ten_times_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streaming, "SPOT_CHECK_SHARE", 1.0)
    monkeypatch.setattr(streaming, "MAX_CHECK_TIMES", 3)
    now = 100.0
    checks = SpotChecks(lambda: now)
    assert [checks.is_due(b"a") for _ in range(5)] == [True, False, False, False, False]
    assert checks.is_due(b"b")
    now += 2 * SPOT_CHECK_INTERVAL_S
    assert [checks.is_due(b"a") for _ in range(3)] == [True, False, False]
    # The number of remembered blobs is limited.
    assert all(checks.is_due(bytes([number])) for number in range(10))
    assert len(checks._checked_at) <= 3


def test_one_read_in_64_is_a_spot_check() -> None:
    clock = iter(range(10**6))
    checks = SpotChecks(lambda: float(next(clock)))
    count = sum(checks.is_due(b"a") for _ in range(64_000))
    # Seven standard deviations around a thousand.
    assert 780 < count < 1220
