"""PUT and DELETE: only bytes that match their hash are stored, also with concurrent requests."""

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
    """Send the raw bytes of a request."""
    client = socket.create_connection(("127.0.0.1", worker.port), timeout=30)
    client.sendall(head.replace("\n", "\r\n").encode() + b"\r\n" + body)
    if close:
        client.shutdown(socket.SHUT_WR)
    return client


def put_head(worker: Worker, content: bytes, length: int | None = None) -> str:
    """Return the head of a valid PUT request."""
    ticket = worker.brain.signer.ticket(content, kind=TicketKind.STORE)
    return (
        f"PUT {object_path(name(content))} HTTP/1.1\nHost: worker\n{TICKET_HEADER}: {ticket}\n"
        f"Content-Length: {len(content) if length is None else length}\n"
    )


def test_a_put_returns_201_and_a_second_one_200(worker: Worker) -> None:
    assert worker.put(CONTENT).status == 201
    assert worker.put(CONTENT).status == 200
    assert worker.get(CONTENT).body == CONTENT
    assert worker.file(CONTENT).read_bytes() == CONTENT
    assert worker.incoming() == []


def test_bytes_that_do_not_match_their_hash_are_never_stored(worker: Worker) -> None:
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


def test_a_truncated_object_is_refused(worker: Worker) -> None:
    ticket = worker.brain.signer.ticket(CONTENT, kind=TicketKind.STORE)
    path = object_path(name(CONTENT))
    assert worker.request("PUT", path, CONTENT[:-1], {TICKET_HEADER: ticket}).status == 422
    assert worker.get(CONTENT).status == 404


def test_a_body_over_the_ticket_s_cap_is_refused(worker: Worker) -> None:
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


def test_an_interrupted_upload_leaves_nothing(worker: Worker) -> None:
    client = send(worker, put_head(worker, CONTENT), CONTENT[:2_000_000])
    worker.wait_until(lambda: worker.incoming() and worker.incoming()[0].stat().st_size > 0)
    client.close()
    worker.wait_until(lambda: worker.incoming() == [])
    assert worker.get(CONTENT).status == 404
    assert worker.put(CONTENT).status == 201


def test_a_client_that_still_sends_gets_the_early_response(worker: Worker) -> None:
    content = os.urandom(10_000_000)
    assert worker.put(content).status == 201
    for _ in range(10):
        assert worker.put(content).status == 200


def test_a_client_that_expects_100_continue_gets_a_response_before_sending(worker: Worker) -> None:
    head = put_head(worker, CONTENT) + "Expect: 100-continue\n"
    with send(worker, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(CONTENT)
        assert client.recv(100).startswith(b"HTTP/1.1 201 ")
    with send(worker, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")


def test_concurrent_puts_of_one_blob_store_one_object(worker: Worker) -> None:
    with ThreadPoolExecutor(12) as pool:
        statuses = sorted(pool.map(lambda _: worker.put(CONTENT).status, range(12)))
    assert set(statuses) <= {200, 201}
    assert statuses.count(201) == 1
    assert worker.get(CONTENT).body == CONTENT
    assert worker.metric("objects") == 1
    assert worker.incoming() == []


def test_concurrent_puts_of_correct_and_wrong_bytes_store_the_correct_ones(worker: Worker) -> None:
    wrong = altered(CONTENT)
    path = object_path(name(CONTENT))

    def put(body: bytes) -> int:
        ticket = worker.brain.signer.ticket(CONTENT, kind=TicketKind.STORE)
        return worker.request("PUT", path, body, {TICKET_HEADER: ticket}).status

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, [wrong, CONTENT] * 6))
    assert worker.get(CONTENT).body == CONTENT
    assert worker.metric("objects") == 1


def test_an_object_larger_than_the_budget_is_refused(worker: Worker) -> None:
    sha256 = hashlib.sha256(b"huge").digest()
    ticket = worker.brain.signer.ticket(sha256=sha256, length=1 << 40, kind=TicketKind.STORE)
    head = (
        f"PUT {object_path(sha256)} HTTP/1.1\nHost: worker\n{TICKET_HEADER}: {ticket}\n"
        f"Content-Length: {1 << 40}\n"
    )
    with send(worker, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 507 ")
    assert worker.metric("evictions") == 0


def test_a_deleted_object_is_reported_at_once_and_readable_until_its_lease_ends(
    worker: Worker,
) -> None:
    worker.put(CONTENT)
    worker.brain.wait_for(lambda: name(CONTENT) in worker.brain.held())
    assert worker.delete(CONTENT).status == 204
    worker.brain.wait_for(lambda: name(CONTENT) not in worker.brain.held())
    assert worker.get(CONTENT).body == CONTENT
    assert worker.delete(CONTENT).status == 204
    assert worker.delete(b"never there").status == 204


def test_a_put_revokes_a_deletion(worker: Worker) -> None:
    worker.put(CONTENT)
    worker.delete(CONTENT)
    worker.brain.wait_for(lambda: name(CONTENT) not in worker.brain.held())
    assert worker.put(CONTENT).status == 200
    worker.brain.wait_for(lambda: name(CONTENT) in worker.brain.held())


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_an_object_of_any_size_is_read_back(lasting: Worker, size: int) -> None:
    content = os.urandom(size)
    assert lasting.put(content).status == 201
    assert lasting.get(content).body == content


def test_reads_continue_during_writes(worker: Worker) -> None:
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
