"""What organizations share on a worker: its threads, and its open receipts."""

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock
from uuid import uuid4

import pytest

from edgecache.protocol.tickets import Ticket, TicketKind
from edgecache.worker import node as nodes
from edgecache.worker import receipts
from edgecache.worker.node import SHARE_KEY, CacheWorker
from edgecache.worker.receipts import TicketUse, TicketUses, TooManyTickets
from edgecache.worker.serving import reads

GREEDY, MODEST = (1, 10), (2, 20)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Return what a thread waits for; it is opened at the end."""
    event = threading.Event()
    yield event
    event.set()


def node() -> CacheWorker:
    """Return a worker with threads only."""
    return CacheWorker(*(Mock() for _ in range(8)))


async def test_a_worker_s_disk_is_used_in_turn(
    monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    monkeypatch.setattr(nodes, "FILE_THREADS", 1)
    one, order = node(), list[int]()

    def note(organization_id: int) -> None:
        gate.wait(20)
        order.append(organization_id)

    async def use(share_key: tuple[int, int]) -> None:
        SHARE_KEY.set(share_key)
        await one.run_on_disk(note, share_key[0])

    using = [asyncio.create_task(use(share_key)) for share_key in [GREEDY] * 40 + [MODEST] * 2]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*using)
    one.threads.stop()

    assert order[:6].count(MODEST[0]) == 2


async def test_an_organization_verifies_one_file_at_a_time(gate: threading.Event) -> None:
    one = node()

    def verify(sha256: bytes) -> bytes:
        if sha256.startswith(b"large"):
            gate.wait(20)
        return sha256

    one.store.files.verify = verify  # type: ignore[method-assign, assignment] # states do not matter
    large = [asyncio.create_task(one.verify(b"large%d" % n, GREEDY)) for n in range(5)]
    await asyncio.sleep(0)

    assert await asyncio.wait_for(one.verify(b"small", MODEST), 20)

    assert not any(task.done() for task in large)
    gate.set()
    await asyncio.gather(*large)
    one.threads.stop()


def ticket(share_key: tuple[int, int]) -> Ticket:
    """Return a client's ticket."""
    return Ticket(
        id=uuid4(),
        node_id=uuid4(),
        organization_id=share_key[0],
        environment_pk=1,
        bucket_id=share_key[1],
        sha256=bytes(32),
        start=0,
        length=10,
        kind=TicketKind.READ,
        client_prefix="203.0.113.0/24",
        issued_at=0,
        expires_at=30,
        key_id="k",
    )


async def test_a_worker_s_files_are_sent_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    monkeypatch.setattr(nodes, "FILE_THREADS", 1)
    (tmp_path / "file").write_bytes(b"0123456789")
    one, order = node(), list[int]()
    one.store.files.open = lambda _: os.open(tmp_path / "file", os.O_RDONLY)  # type: ignore[method-assign, assignment] # the only file

    def turn(organization_id: int) -> None:
        gate.wait(20)
        order.append(organization_id)

    sending = []
    for share_key in [GREEDY] * 30 + [MODEST] * 2:
        shown = ticket(share_key)
        read = reads._Read(Mock(), shown, "text", shown.sha256, 0, 10, 10)
        body, _ = reads._open(one, read)
        sending.append((body, asyncio.create_task(body.in_thread(turn, share_key[0]))))
    await asyncio.sleep(0)
    gate.set()
    for body, task in sending:
        await task
        body.close()
    one.threads.stop()

    assert order[:6].count(MODEST[0]) == 2


def test_open_receipts_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "OPEN_LIMIT", 30)
    open_now = TicketUses(Mock(receipt=lambda _id: None))

    def begin() -> TicketUse:
        return open_now.begin(ticket(GREEDY), "text", 10, now=0)

    uses = [begin() for _ in range(30)]
    with pytest.raises(TooManyTickets):
        begin()

    # A written receipt of a read that is over makes room, one of a running read does not.
    open_now.written(open_now.unwritten())
    with pytest.raises(TooManyTickets):
        begin()
    for use in uses[10:]:
        open_now.end(use, 10)
    open_now.written(open_now.unwritten())
    assert begin().running == 1
