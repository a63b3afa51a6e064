"""PUT and DELETE: only bytes that match their hash are stored, also with concurrent requests."""

import hashlib
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from edgecache.protocol.batches import BATCH_PATH
from edgecache.protocol.names import TICKET_HEADER, object_path
from edgecache.protocol.tickets import MAC_KEY_BYTES, TicketKind
from edgecache.worker.node import MAX_CONCURRENT_FETCHES
from tests.edgecache.worker.brain import Signer
from tests.edgecache.worker.running import Worker, altered, name


@pytest.fixture
def content() -> bytes:
    """Return bytes that no test has stored yet."""
    return os.urandom(3_000_000)


def send(worker: Worker, head: str, body: bytes = b"", *, close: bool = False) -> socket.socket:
    """Send the raw bytes of a request."""
    client = socket.create_connection(("127.0.0.1", worker.port), timeout=30)
    client.sendall(head.replace("\n", "\r\n").encode() + b"\r\n" + body)
    if close:
        client.shutdown(socket.SHUT_WR)
    return client


def put_head(worker: Worker, content: bytes, length: int | None = None, **fields: Any) -> str:
    """Return the head of a valid PUT request."""
    ticket = worker.brain.signer.ticket(content, kind=TicketKind.STORE, **fields)
    return (
        f"PUT {object_path(name(content))} HTTP/1.1\nHost: worker\n{TICKET_HEADER}: {ticket}\n"
        f"Content-Length: {len(content) if length is None else length}\n"
    )


def test_a_put_returns_201_and_a_second_one_200(lasting: Worker, content: bytes) -> None:
    assert lasting.put(content).status == 201
    assert lasting.put(content).status == 200
    assert lasting.get(content).body == content
    assert lasting.file(content).read_bytes() == content
    assert lasting.incoming() == []


def test_bytes_that_do_not_match_their_hash_are_never_stored(
    worker: Worker, content: bytes
) -> None:
    ticket = worker.brain.signer.ticket(content, kind=TicketKind.STORE)
    answer = worker.request(
        "PUT", object_path(name(content)), altered(content), {TICKET_HEADER: ticket}
    )
    assert answer.status == 422
    assert b"wrong_bytes" in answer.body
    assert not worker.file(content).exists()
    assert worker.incoming() == []
    assert worker.get(content).status == 404
    assert worker.metric("used_bytes") == 0


def test_a_truncated_object_is_refused(lasting: Worker, content: bytes) -> None:
    ticket = lasting.brain.signer.ticket(content, kind=TicketKind.STORE)
    path = object_path(name(content))
    assert lasting.request("PUT", path, content[:-1], {TICKET_HEADER: ticket}).status == 422
    assert lasting.get(content).status == 404


def test_a_body_over_the_ticket_s_cap_is_refused(lasting: Worker, content: bytes) -> None:
    assert lasting.put(content, length=len(content) - 1).status == 403
    assert lasting.put(content, length=len(content) + 1).status == 201


def test_a_body_without_a_length_is_refused(lasting: Worker, content: bytes) -> None:
    head = put_head(lasting, content).rsplit("Content-Length", 1)[0]
    with send(lasting, head + "Transfer-Encoding: chunked\n", b"3\r\nabc\r\n0\r\n\r\n") as client:
        assert client.recv(100).startswith(b"HTTP/1.1 411 ")
    for wrong in ("-1", "1x", "9" * 30, "1, 1"):
        with send(lasting, head + f"Content-Length: {wrong}\n", b"") as client:
            assert client.recv(100)[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 403"}
    assert lasting.incoming() == []


def test_an_interrupted_upload_leaves_nothing(lasting: Worker, content: bytes) -> None:
    client = send(lasting, put_head(lasting, content), content[:2_000_000])
    lasting.wait_until(lambda: lasting.incoming() and lasting.incoming()[0].stat().st_size > 0)
    client.close()
    lasting.wait_until(lambda: lasting.incoming() == [])
    assert lasting.get(content).status == 404
    assert lasting.put(content).status == 201


def test_a_client_that_still_sends_gets_the_early_response(lasting: Worker) -> None:
    content = os.urandom(10_000_000)
    assert lasting.put(content).status == 201
    for _ in range(10):
        assert lasting.put(content).status == 200


def test_a_client_that_expects_100_continue_gets_a_response_before_sending(
    lasting: Worker, content: bytes
) -> None:
    head = put_head(lasting, content) + "Expect: 100-continue\n"
    with send(lasting, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(content)
        assert client.recv(100).startswith(b"HTTP/1.1 201 ")
    with send(lasting, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")


def test_concurrent_puts_of_one_blob_store_one_object(worker: Worker, content: bytes) -> None:
    with ThreadPoolExecutor(12) as pool:
        statuses = sorted(pool.map(lambda _: worker.put(content).status, range(12)))
    assert set(statuses) <= {200, 201}
    assert statuses.count(201) == 1
    assert worker.get(content).body == content
    assert worker.metric("objects") == 1
    assert worker.incoming() == []


def test_concurrent_puts_of_correct_and_wrong_bytes_store_the_correct_ones(
    worker: Worker, content: bytes
) -> None:
    wrong = altered(content)
    path = object_path(name(content))

    def put(body: bytes) -> int:
        ticket = worker.brain.signer.ticket(content, kind=TicketKind.STORE)
        return worker.request("PUT", path, body, {TICKET_HEADER: ticket}).status

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, [wrong, content] * 6))
    assert worker.get(content).body == content
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


def test_a_deleted_object_is_reported_immediately_and_readable_until_its_lease_ends(
    lasting: Worker,
    content: bytes,
) -> None:
    lasting.put(content)
    lasting.brain.wait_for(lambda: name(content) in lasting.brain.held())
    assert lasting.delete(content).status == 204
    lasting.brain.wait_for(lambda: name(content) not in lasting.brain.held())
    assert lasting.get(content).body == content
    assert lasting.delete(content).status == 204
    assert lasting.delete(b"never there").status == 204


def test_a_put_revokes_a_deletion(lasting: Worker, content: bytes) -> None:
    lasting.put(content)
    lasting.delete(content)
    lasting.brain.wait_for(lambda: name(content) not in lasting.brain.held())
    assert lasting.put(content).status == 200
    lasting.brain.wait_for(lambda: name(content) in lasting.brain.held())


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_an_object_of_any_size_is_read_back(lasting: Worker, size: int) -> None:
    content = os.urandom(size)
    assert lasting.put(content).status == 201
    assert lasting.get(content).body == content


def test_reads_continue_during_writes(lasting: Worker, content: bytes) -> None:
    lasting.put(content)
    others = [os.urandom(200_000) for _ in range(20)]
    wrong: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            answer = lasting.get(content)
            if answer.body != content:
                wrong.append(answer.status)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda content: lasting.put(content).status, others))
    stop.set()
    for reader in readers:
        reader.join()
    assert statuses == [201] * 20
    assert wrong == []


def test_concurrent_writes_are_limited(worker: Worker) -> None:
    content = os.urandom(100)
    assert worker.put(content).status == 201
    with ExitStack() as held:
        head = put_head(worker, os.urandom(100)) + "Expect: 100-continue\n"
        for _ in range(MAX_CONCURRENT_FETCHES):
            # Their bytes do not come.
            client = held.enter_context(send(worker, head))
            assert client.recv(100).startswith(b"HTTP/1.1 100")

        assert worker.put(os.urandom(100)).status == 503
        assert worker.get(content).body == content


def test_unauthenticated_batches_take_no_place(lasting: Worker) -> None:
    forger = Signer(mac_key=os.urandom(MAC_KEY_BYTES), key=lasting.brain.signer.key)
    ticket = forger.ticket(sha256=bytes(32), length=1, kind=TicketKind.STORE_BATCH)
    head = (
        f"POST {BATCH_PATH} HTTP/1.1\nHost: worker\n{TICKET_HEADER}: {ticket}\n"
        "Content-Length: 1000\nExpect: 100-continue\n"
    )
    with send(lasting, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 403 ")
