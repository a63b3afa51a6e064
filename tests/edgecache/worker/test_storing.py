"""PUT and DELETE: only bytes that hash to their name are kept, however many come at once."""

import hashlib
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from edgecache.protocol.names import TICKET_HEADER, object_path
from edgecache.protocol.tickets import TicketKind
from tests.edgecache.worker.running import Worker, altered, name

CONTENT = os.urandom(3_000_000)


def send(worker: Worker, head: str, body: bytes = b"", *, close: bool = False) -> socket.socket:
    """Send raw bytes of a request."""
    client = socket.create_connection(("127.0.0.1", worker.port), timeout=30)
    client.sendall(head.replace("\n", "\r\n").encode() + b"\r\n" + body)
    if close:
        client.shutdown(socket.SHUT_WR)
    return client


def put_head(worker: Worker, content: bytes, length: int | None = None) -> str:
    """Return the head of a right PUT."""
    ticket = worker.brain.signer.ticket(content, kind=TicketKind.STORE)
    return (
        f"PUT {object_path(name(content))} HTTP/1.1\nHost: worker\n{TICKET_HEADER}: {ticket}\n"
        f"Content-Length: {len(content) if length is None else length}\n"
    )


def test_storing_says_created_then_held(worker: Worker) -> None:
    assert worker.put(CONTENT).status == 201
    assert worker.put(CONTENT).status == 200
    assert worker.get(CONTENT).body == CONTENT
    assert worker.file(CONTENT).read_bytes() == CONTENT
    assert worker.incoming() == []


def test_wrong_bytes_are_never_kept(worker: Worker) -> None:
    ticket = worker.brain.signer.ticket(CONTENT, kind=TicketKind.STORE)
    answer = worker.request(
        "PUT", object_path(name(CONTENT)), altered(CONTENT), {TICKET_HEADER: ticket}
    )
    assert answer.status == 422
    assert b"wrong_bytes" in answer.body
    assert not worker.file(CONTENT).exists()
    assert worker.incoming() == []
    assert worker.get(CONTENT).status == 404
    assert worker.metric("used_bytes") == 0


def test_a_truncated_object_is_wrong_too(worker: Worker) -> None:
    ticket = worker.brain.signer.ticket(CONTENT, kind=TicketKind.STORE)
    path = object_path(name(CONTENT))
    assert worker.request("PUT", path, CONTENT[:-1], {TICKET_HEADER: ticket}).status == 422
    assert worker.get(CONTENT).status == 404


def test_more_than_the_cap_is_refused(worker: Worker) -> None:
    assert worker.put(CONTENT, length=len(CONTENT) - 1).status == 403
    assert worker.put(CONTENT, length=len(CONTENT) + 1).status == 201


def test_a_body_without_a_length_is_refused(worker: Worker) -> None:
    head = put_head(worker, CONTENT).rsplit("Content-Length", 1)[0]
    with send(worker, head + "Transfer-Encoding: chunked\n", b"3\r\nabc\r\n0\r\n\r\n") as client:
        assert client.recv(100).startswith(b"HTTP/1.1 411 ")
    for wrong in ("-1", "1x", "9" * 30, "1, 1"):
        with send(worker, head + f"Content-Length: {wrong}\n", b"") as client:
            assert client.recv(100)[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 403"}
    assert worker.incoming() == []


def test_a_sender_that_breaks_off_leaves_nothing(worker: Worker) -> None:
    client = send(worker, put_head(worker, CONTENT), CONTENT[:2_000_000])
    worker.wait_until(lambda: worker.incoming() and worker.incoming()[0].stat().st_size > 0)
    client.close()
    worker.wait_until(lambda: worker.incoming() == [])
    assert worker.get(CONTENT).status == 404
    assert worker.put(CONTENT).status == 201


def test_who_sends_in_vain_still_hears_the_answer(worker: Worker) -> None:
    content = os.urandom(10_000_000)
    assert worker.put(content).status == 201
    for _ in range(10):
        assert worker.put(content).status == 200


def test_who_asks_before_sending_is_told_at_once(worker: Worker) -> None:
    head = put_head(worker, CONTENT) + "Expect: 100-continue\n"
    with send(worker, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(CONTENT)
        assert client.recv(100).startswith(b"HTTP/1.1 201 ")
    with send(worker, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")


def test_many_at_once_with_one_name_are_one_object(worker: Worker) -> None:
    with ThreadPoolExecutor(12) as pool:
        statuses = sorted(pool.map(lambda _: worker.put(CONTENT).status, range(12)))
    assert set(statuses) <= {200, 201}
    assert statuses.count(201) == 1
    assert worker.get(CONTENT).body == CONTENT
    assert worker.metric("objects") == 1
    assert worker.incoming() == []


def test_right_and_wrong_bytes_at_once_leave_the_right_ones(worker: Worker) -> None:
    wrong = altered(CONTENT)
    path = object_path(name(CONTENT))

    def put(body: bytes) -> int:
        ticket = worker.brain.signer.ticket(CONTENT, kind=TicketKind.STORE)
        return worker.request("PUT", path, body, {TICKET_HEADER: ticket}).status

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, [wrong, CONTENT] * 6))
    assert worker.get(CONTENT).body == CONTENT
    assert worker.metric("objects") == 1


def test_more_than_all_the_room_is_refused(worker: Worker) -> None:
    sha256 = hashlib.sha256(b"huge").digest()
    ticket = worker.brain.signer.ticket(sha256=sha256, length=1 << 40, kind=TicketKind.STORE)
    head = (
        f"PUT {object_path(sha256)} HTTP/1.1\nHost: worker\n{TICKET_HEADER}: {ticket}\n"
        f"Content-Length: {1 << 40}\n"
    )
    with send(worker, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 507 ")
    assert worker.metric("evictions") == 0


def test_a_deleted_object_is_told_at_once_and_read_until_its_lease_is_over(worker: Worker) -> None:
    worker.put(CONTENT)
    worker.brain.wait_for(lambda: name(CONTENT) in worker.brain.held())
    assert worker.delete(CONTENT).status == 204
    worker.brain.wait_for(lambda: name(CONTENT) not in worker.brain.held())
    assert worker.get(CONTENT).body == CONTENT
    assert worker.delete(CONTENT).status == 204
    assert worker.delete(b"never there").status == 204


def test_a_put_takes_a_deletion_back(worker: Worker) -> None:
    worker.put(CONTENT)
    worker.delete(CONTENT)
    worker.brain.wait_for(lambda: name(CONTENT) not in worker.brain.held())
    assert worker.put(CONTENT).status == 200
    worker.brain.wait_for(lambda: name(CONTENT) in worker.brain.held())


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_every_size_comes_back(lasting: Worker, size: int) -> None:
    content = os.urandom(size)
    assert lasting.put(content).status == 201
    assert lasting.get(content).body == content


def test_reads_go_on_while_objects_come(worker: Worker) -> None:
    worker.put(CONTENT)
    others = [os.urandom(200_000) for _ in range(20)]
    wrong: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            answer = worker.get(CONTENT)
            if answer.body != CONTENT:
                wrong.append(answer.status)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda content: worker.put(content).status, others))
    stop.set()
    for reader in readers:
        reader.join()
    assert statuses == [201] * 20
    assert wrong == []
