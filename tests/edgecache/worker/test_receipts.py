"""Receipts: one per ticket that a client used, for the bytes it received, until accepted."""

import os
import socket
import sqlite3
from threading import Event
from uuid import uuid4

import pytest

from edgecache.protocol.fields import Answer
from edgecache.protocol.names import TICKET_HEADER, object_path
from edgecache.protocol.tickets import decode
from tests.edgecache.worker.brain import CLIENT
from tests.edgecache.worker.running import Worker, name

pytestmark = pytest.mark.slow

CONTENT = os.urandom(8_000_000)


@pytest.fixture
def holder(worker: Worker) -> Worker:
    """Return a worker that holds CONTENT."""
    assert worker.put(CONTENT).status == 201
    return worker


def settle(worker: Worker) -> None:
    """Let all tickets expire by the brain's clock."""
    worker.brain.signer.skew_s += 60


def wait_for_count(worker: Worker, count: int) -> None:
    """Wait until this many receipts were sent and the worker has deleted them."""
    worker.brain.wait_for(lambda: len(worker.brain.receipts) >= count)
    assert len(worker.brain.receipts) == count
    with sqlite3.connect(worker.store / "inventory.sqlite3") as db:
        worker.wait_until(lambda: db.execute("SELECT COUNT(*) FROM receipts").fetchone() == (0,))
    db.close()


def test_a_direct_read_creates_one_receipt_when_its_ticket_expires(holder: Worker) -> None:
    ticket = holder.direct_ticket(CONTENT)
    assert holder.show(ticket, CONTENT).body == CONTENT
    holder.brain.wait_for_beat()
    assert holder.brain.receipts == []
    settle(holder)
    wait_for_count(holder, 1)
    (line,) = holder.brain.receipts
    assert (line.ticket, line.bytes_served) == (ticket, len(CONTENT))
    assert abs(line.served_at + 60 - holder.brain.signer.now()) < 15
    assert holder.metric("receipts_accepted_total") == 1


def test_reads_by_the_brain_or_a_worker_create_no_receipt(holder: Worker) -> None:
    direct = holder.direct_ticket(CONTENT)
    holder.get(CONTENT)
    holder.get(CONTENT, method="HEAD", client_prefix=CLIENT)
    holder.show(direct, CONTENT, {"Range": "bytes=0-0"})
    settle(holder)
    wait_for_count(holder, 1)
    assert holder.brain.receipts[0].bytes_served == 1


def test_a_reused_ticket_counts_once_and_at_most_its_cap(
    holder: Worker,
) -> None:
    ticket = holder.direct_ticket(CONTENT)
    for _ in range(3):
        assert holder.show(ticket, CONTENT).status == 200
    settle(holder)
    wait_for_count(holder, 1)
    assert holder.brain.receipts[0].bytes_served == len(CONTENT)


def test_ranges_read_with_one_ticket_are_added_up(holder: Worker) -> None:
    ticket = holder.direct_ticket(CONTENT)
    for start in range(0, 500_000, 100_000):
        answer = holder.show(ticket, CONTENT, {"Range": f"bytes={start}-{start + 99_999}"})
        assert answer.body == CONTENT[start : start + 100_000]
    settle(holder)
    wait_for_count(holder, 1)
    assert holder.brain.receipts[0].bytes_served == 500_000


def test_a_ticket_is_refused_after_four_times_its_bytes(holder: Worker) -> None:
    ticket = holder.direct_ticket(CONTENT)
    assert [holder.show(ticket, CONTENT).status for _ in range(5)] == [200] * 4 + [403]
    assert holder.show(ticket, CONTENT, {"Range": "bytes=0-0"}).status == 403
    assert holder.show(holder.direct_ticket(CONTENT), CONTENT).status == 200


def test_a_receipt_counts_what_the_socket_took_of_a_response_that_was_cut(holder: Worker) -> None:
    ticket = holder.direct_ticket(CONTENT)
    head = (
        f"GET {object_path(name(CONTENT))} HTTP/1.1\r\nHost: w\r\n{TICKET_HEADER}: {ticket}\r\n\r\n"
    )
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    client.connect(("127.0.0.1", holder.port))
    client.sendall(head.encode())
    taken = 0
    while taken < 1_000_000:
        taken += len(client.recv(65_536))
    client.close()
    holder.wait_until(lambda: holder.metric("direct_answers") == 0)
    settle(holder)
    wait_for_count(holder, 1)
    assert 900_000 < holder.brain.receipts[0].bytes_served < len(CONTENT)


def test_a_ticket_in_use_has_no_receipt_before_its_response_ended(holder: Worker) -> None:
    ticket = holder.direct_ticket(CONTENT)
    head = (
        f"GET {object_path(name(CONTENT))} HTTP/1.1\r\nHost: w\r\n{TICKET_HEADER}: {ticket}\r\n\r\n"
    )
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        client.connect(("127.0.0.1", holder.port))
        client.sendall(head.encode())
        client.recv(1000)
        settle(holder)
        for _ in range(10):
            holder.brain.wait_for_beat()
        assert holder.brain.receipts == []
        taken = 1000
        while taken < len(CONTENT):
            taken += len(client.recv(1 << 20))
    wait_for_count(holder, 1)
    assert holder.brain.receipts[0].bytes_served == len(CONTENT)


def test_receipts_survive_a_killed_worker_and_an_unavailable_brain(holder: Worker) -> None:
    brain = holder.brain
    tickets = {holder.direct_ticket(CONTENT) for _ in range(5)}
    for ticket in tickets:
        holder.show(ticket, CONTENT)
    with sqlite3.connect(holder.store / "inventory.sqlite3") as db:
        query = "SELECT COUNT(*) FROM receipts WHERE served = cap"
        holder.wait_until(lambda: db.execute(query).fetchone() == (5,))
    db.close()
    brain.http_status = 503
    settle(holder)
    holder.kill()
    brain.http_status = 200
    holder.start()
    wait_for_count(holder, 5)
    assert {line.ticket for line in brain.receipts} == tickets


def test_an_unanswered_batch_is_sent_again_unchanged(holder: Worker) -> None:
    brain = holder.brain
    ticket = holder.direct_ticket(CONTENT)
    holder.show(ticket, CONTENT)
    holder.wait_until(lambda: holder.metric("direct_bytes_total") == len(CONTENT))
    answered = brain.answer
    lost: list[str] = []

    def lose_the_first_answer(
        method: str, path: str, body: bytes
    ) -> tuple[int, Answer | dict[str, str]]:
        found = answered(method, path, body)
        if path.endswith("/receipts") and not lost:
            lost.append(path)
            return 503, {}
        return found

    brain.answer = lose_the_first_answer  # type: ignore[method-assign] # a brain that fails late
    settle(holder)
    wait_for_count(holder, 2)
    assert brain.receipts[0] == brain.receipts[1]


def test_receipts_that_were_not_refused_themselves_are_sent_again(holder: Worker) -> None:
    refused = holder.direct_ticket(CONTENT, id=(ticket_id := uuid4()))
    good = [holder.direct_ticket(CONTENT) for _ in range(2)]
    holder.brain.refused[ticket_id] = "receipt_exceeds_the_ticket"
    for ticket in (good[0], refused, good[1]):
        holder.show(ticket, CONTENT)
    holder.wait_until(lambda: written(holder) == 3)
    settle(holder)
    holder.wait_until(lambda: holder.metric("receipts_accepted_total") == 2)
    assert holder.metric("receipts_refused_total") == 1
    holder.wait_until(lambda: written(holder) == 0)
    batches = holder.brain.batches
    assert [refused in batch for batch in batches].count(True) == 1
    accepted = [ticket for batch in batches if refused not in batch for ticket in batch]
    assert sorted(accepted) == sorted(good)


def test_receipts_of_two_hours_are_sent_apart(holder: Worker) -> None:
    brain, answered, is_open = holder.brain, holder.brain.answer, Event()

    def answer(method: str, path: str, body: bytes) -> tuple[int, Answer | dict[str, str]]:
        is_refused = path.endswith("/receipts") and not is_open.is_set()
        return (503, {}) if is_refused else answered(method, path, body)

    brain.answer = answer  # type: ignore[method-assign] # takes no receipts for a while
    tickets = []
    for _ in range(2):
        tickets.append(holder.direct_ticket(CONTENT))
        assert holder.show(tickets[-1], CONTENT).status == 200
        holder.wait_until(lambda: written(holder) == len(tickets))
        brain.signer.skew_s += 3600
        brain.wait_for_beat()
    is_open.set()
    wait_for_count(holder, 2)
    assert brain.batches == [[ticket] for ticket in tickets]


def written(worker: Worker) -> int:
    """Return how many receipts of whole reads are on the worker's disk."""
    with sqlite3.connect(worker.store / "inventory.sqlite3") as db:
        (count,) = db.execute("SELECT COUNT(*) FROM receipts WHERE served = cap").fetchone()
    db.close()
    return int(count)


def test_a_refused_receipt_is_dropped_and_logged(holder: Worker) -> None:
    ticket = holder.direct_ticket(CONTENT, id=(ticket_id := uuid4()))
    holder.brain.refused[ticket_id] = "ticket_counted_already"
    holder.show(ticket, CONTENT)
    settle(holder)
    wait_for_count(holder, 1)
    holder.wait_until(lambda: "ticket_counted_already" in holder.log)
    assert holder.metric("receipts_refused_total") == 1
    assert str(decode(ticket).ticket.id) in holder.log
