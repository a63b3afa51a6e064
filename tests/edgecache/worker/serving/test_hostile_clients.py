"""Clients that stall, flood or send too much cost little and do not affect other clients."""

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgecache.protocol.names import TICKET_HEADER, object_path
from edgecache.protocol.tickets import TicketKind
from tests.edgecache.worker.running import Worker, name, unmeasured

pytestmark = pytest.mark.slow

CONTENT = os.urandom(200_000)
MIB = 1 << 20


def memory(worker: Worker, kind: str = "Pss") -> int:
    """Return a worker's memory in bytes."""
    assert worker.process is not None
    for line in Path(f"/proc/{worker.process.pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(kind)


def open_files(worker: Worker) -> int:
    """Return the number of files that a worker has open."""
    assert worker.process is not None
    return len(list(Path(f"/proc/{worker.process.pid}/fd").iterdir()))


def connect(worker: Worker) -> socket.socket:
    """Open a connection."""
    return socket.create_connection(("127.0.0.1", worker.port), timeout=60)


def head(worker: Worker, method: str, *, content: bytes = CONTENT, length: int = 0) -> bytes:
    """Return the head of a valid read request."""
    ticket = worker.brain.signer.ticket(content)
    lines = f"{method} {object_path(name(content))} HTTP/1.1\r\nHost: w\r\n"
    return f"{lines}{TICKET_HEADER}: {ticket}\r\nContent-Length: {length}\r\n\r\n".encode()


def test_an_idle_worker_uses_little_memory(workers: Callable[..., Worker]) -> None:
    assert memory(workers(environment=unmeasured()).start()) <= 40 * MIB


@pytest.fixture
def strict(workers: Callable[..., Worker]) -> Worker:
    """Return a worker with short client time limits."""
    worker = workers("--client-timeout", "1", capacity="1GiB").start()
    worker.put(CONTENT)
    return worker


def test_slow_request_heads_do_not_delay_others_and_are_disconnected(strict: Worker) -> None:
    worker = strict
    slow = [connect(worker) for _ in range(200)]
    for client in slow:
        client.sendall(b"GET / HTTP/1.1\r\nHos")
    began = time.monotonic()
    assert worker.get(CONTENT).body == CONTENT
    for client in slow:
        while client.recv(1000):
            pass
        client.close()
    assert time.monotonic() - began < 14


def test_idle_connections_are_closed(strict: Worker) -> None:
    with connect(strict) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: w\r\n\r\n")
        assert client.recv(10_000).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        assert client.recv(1000) == b""
        assert time.monotonic() - began < 14


def test_a_stalled_body_is_refused_and_leaves_nothing(strict: Worker) -> None:
    content = os.urandom(3 * MIB)
    ticket = strict.brain.signer.ticket(content, kind=TicketKind.STORE)
    lines = f"PUT {object_path(name(content))} HTTP/1.1\r\nHost: w\r\n{TICKET_HEADER}: {ticket}\r\n"
    with connect(strict) as client:
        client.sendall(f"{lines}Content-Length: {len(content)}\r\n\r\n".encode())
        client.sendall(content[: 2 * MIB])
        assert client.recv(1000).startswith(b"HTTP/1.1 408 ")
    assert strict.incoming() == []
    assert strict.get(content).status == 404


def test_a_client_that_does_not_read_is_disconnected(strict: Worker) -> None:
    content = os.urandom(MIB) * 50
    strict.put(content)
    files = open_files(strict)
    with connect(strict) as client:
        client.sendall(head(strict, "GET", content=content))
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        strict.wait_until(lambda: open_files(strict) > files)
        strict.wait_until(lambda: open_files(strict) <= files)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: w\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: w\r\nX: " + b"a" * 60_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: w\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + b"\x00" * 200 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_oversized_and_malformed_request_heads_are_refused(lasting: Worker, sent: bytes) -> None:
    with connect(lasting) as client:
        try:
            client.sendall(sent)
            answer = client.recv(1000)
        except ConnectionError:
            answer = b""
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert lasting.health() == 200


def test_an_unexpected_body_is_not_read_into_memory(workers: Callable[..., Worker]) -> None:
    worker = workers(environment=unmeasured()).start()
    worker.put(CONTENT)
    before = memory(worker)
    piece = b"x" * MIB
    with connect(worker) as client:
        client.sendall(head(worker, "GET", length=1 << 30))
        sent = 0
        client.settimeout(2)
        try:
            while sent < 300:
                client.sendall(piece)
                sent += 1
        except OSError:
            pass
        assert memory(worker) - before < 20 * MIB
    assert worker.get(CONTENT).body == CONTENT


def test_a_large_upload_is_not_buffered_in_memory(workers: Callable[..., Worker]) -> None:
    worker = workers(capacity="1GiB", environment=unmeasured()).start()
    content = os.urandom(MIB) * 80
    before = memory(worker, "Private_Dirty")
    assert worker.put(content).status == 201
    assert memory(worker, "Private_Dirty") - before < 24 * MIB


def test_a_client_that_does_not_read_uses_little_memory(workers: Callable[..., Worker]) -> None:
    worker = workers(capacity="1GiB", environment=unmeasured()).start()
    content = os.urandom(MIB) * 40
    worker.put(content)
    before = memory(worker, "Private_Dirty")
    clients = [connect(worker) for _ in range(20)]
    ticket = worker.brain.signer.ticket(content)
    for client in clients:
        lines = f"GET {object_path(name(content))} HTTP/1.1\r\nHost: w\r\n"
        client.sendall(f"{lines}{TICKET_HEADER}: {ticket}\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 200")
    assert worker.get(content).body == content
    assert memory(worker, "Private_Dirty") - before < 40 * MIB
    for client in clients:
        client.close()


def test_thousands_of_small_requests_leak_no_memory_or_files(
    workers: Callable[..., Worker],
) -> None:
    worker = workers(environment=unmeasured()).start()
    small = b"small"
    worker.put(small)

    def run(count: int) -> None:
        with connect(worker) as client:
            for number in range(count):
                ticket = (
                    worker.direct_ticket(small) if number % 2 else worker.brain.signer.ticket(small)
                )
                lines = f"GET {object_path(name(small))} HTTP/1.1\r\nHost: w\r\n"
                client.sendall(f"{lines}{TICKET_HEADER}: {ticket}\r\n\r\n".encode())
                answer = b""
                while not answer.endswith(small):
                    answer += (piece := client.recv(10_000))
                    assert piece
                assert answer.startswith(b"HTTP/1.1 200")

    def settle() -> None:
        worker.wait_until(lambda: worker.metric("direct_answers") == 0)
        worker.wait_until(lambda: worker.metric("tickets_in_use") == 0)

    # The first requests fill the bounded caches: verified tickets and database pages.
    run(6000)
    settle()
    before, files = memory(worker, "Private_Dirty"), open_files(worker)
    run(4000)
    settle()
    # A leaked ticket, or its text, would be larger: 4,000 of a KiB and more.
    assert memory(worker, "Private_Dirty") - before < 3.5 * MIB
    assert open_files(worker) - files <= 4


def test_connections_over_the_limit_wait(workers: Callable[..., Worker]) -> None:
    worker = workers("--max-connections", "8").start()
    worker.put(CONTENT)
    holding = [connect(worker) for _ in range(12)]
    for client in holding[:6]:
        client.close()
    assert worker.get(CONTENT).body == CONTENT
    for client in holding[6:]:
        client.close()
