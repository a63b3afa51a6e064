"""What the brain answers from memory, and what it asks of the worker that is paid for it."""

import hashlib
from unittest.mock import AsyncMock, Mock
from uuid import uuid4

import pytest

from edgecache.brain.delivery import spot_checks
from edgecache.brain.delivery.delivery import Delivery, Source, Span, Tenant
from edgecache.brain.delivery.spot_checks import APART_S, Samples
from edgecache.brain.delivery.streaming import Mover

BLOB = b"often" * 100
SHA256 = hashlib.sha256(BLOB).digest()


async def from_memory(*, owner: int | None, start: int = 0, length: int = len(BLOB)) -> bytes:
    """Give what is answered, without asking, of a blob that was read twice. owner: of its node."""
    gateway = Mock(may_move=lambda *_: False)
    nodes = Mock(get=lambda _id: Mock(organization_id=owner))
    mover = Mover(Mock(), nodes, Mock(), Mock(), gateway, on_read=Mock())
    mover._small = AsyncMock()  # type: ignore[method-assign] # it stands for a worker
    for _ in range(2):
        mover._hot.offer(SHA256, BLOB)
    delivery = Delivery(
        tenant=Tenant(1, 1),
        bucket_id=1,
        key="k",
        generation=1,
        sha256=SHA256,
        size=len(BLOB),
        span=Span(start, length),
        status=200,
        headers=[],
        sources=(Source(uuid4(), "http://127.0.0.1:1"),),
    )
    exchange = Mock(began=0.0, sent_bytes=0)
    without = await mover.deliver(delivery, exchange, Mock())
    if without is None:
        mover._small.assert_awaited_once()
        return b""
    mover._small.assert_not_awaited()
    body: bytes = exchange.response_bytes.call_args.args[2]
    return body


async def test_the_platforms_own_nodes_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spot_checks, "SHARE", 0.0)

    assert await from_memory(owner=None) == BLOB
    assert await from_memory(owner=None, start=3, length=9) == BLOB[3:12]


async def test_a_strangers_node_is_asked_for_what_it_is_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spot_checks, "SHARE", 0.0)

    assert await from_memory(owner=7) == b""


async def test_some_reads_go_to_a_worker_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spot_checks, "SHARE", 1.0)

    assert await from_memory(owner=None) == b""


def test_a_draw_holds_for_the_next_delivery_of_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    drawing = Samples(lambda: now)
    monkeypatch.setattr(spot_checks, "SHARE", 1.0)
    assert drawing.draw(b"a")
    monkeypatch.setattr(spot_checks, "SHARE", 0.0)
    assert not drawing.take(b"b")
    assert drawing.take(b"a")
    assert not drawing.take(b"a")


def test_the_same_bytes_are_a_sample_ten_times_a_second_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spot_checks, "SHARE", 1.0)
    monkeypatch.setattr(spot_checks, "REMEMBERED", 3)
    now = 100.0
    drawing = Samples(lambda: now)
    assert [drawing.take(b"a") for _ in range(5)] == [True, False, False, False, False]
    assert drawing.take(b"b")
    now += 2 * APART_S
    assert [drawing.take(b"a") for _ in range(3)] == [True, False, False]
    # Of ever new ones only so many are remembered.
    assert all(drawing.take(bytes([number])) for number in range(10))
    assert len(drawing._last) <= 3


def test_one_in_so_many_is_a_sample() -> None:
    clock = iter(range(10**6))
    drawing = Samples(lambda: float(next(clock)))
    count = sum(drawing.take(b"a") for _ in range(64_000))
    # Seven standard deviations around a thousand.
    assert 780 < count < 1220
