"""gunicorn's worker, seen by its clients."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from tests.new_connections import CLIENTS, new_connections
from tests.platform_site.web_server.server import Server, running
from tests.processes import has_ended
from tests.waiting import wait_until
from tests.web_process import START_S

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return a server of two processes with four threads each."""
    with running() as made:
        yield made
        made.process.send_signal(signal.SIGQUIT)
        made.process.wait(10)


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"\r\n\r\n", b"400"),
        (b"GET / HTTP/1.0\r\n\r\n", b"200"),
        (b"POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n{", b"401"),
    ],
)
def test_clients_that_stay_after_their_last_response_delay_no_one(
    server: Server, request_text: bytes, status: bytes
) -> None:
    with ExitStack() as stack:
        for _ in range(12):
            sock = stack.enter_context(
                socket.create_connection(("127.0.0.1", server.port), timeout=30)
            )
            sock.sendall(request_text)

        started = time.monotonic()
        assert server.get()
        assert server.get()
        # A loop that waits for each of the twelve takes twelve seconds.
        assert time.monotonic() - started < 8
        # It is closed all the same, and not before the response.
        response = b"".join(iter(lambda: sock.recv(1000), b""))
    assert response.split()[1] == status


@pytest.mark.parametrize("size", [0, 5, 70_000, 1_000_000, 3_000_000])
def test_a_body_arrives_whole(server: Server, size: int) -> None:
    with closing(server.connect()) as client:
        for body in (b"x" * size, iter([b"x" * size, b""]) if size else b""):
            client.request("POST", "/size", body, encode_chunked=not isinstance(body, bytes))
            assert client.getresponse().read() == str(size).encode()


def test_a_connection_carries_many_requests(server: Server) -> None:
    with closing(server.connect()) as client:
        bodies = set()
        for _ in range(50):
            client.request("GET", "/")
            bodies.add(client.getresponse().read())
    assert len(bodies) == 1


def test_pipelined_requests_are_all_answered(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sock:
        one = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        sock.sendall(one * 3 + one[:20])
        seen = b""
        while seen.count(b"200 OK") < 3:
            seen += sock.recv(4096)
        sock.sendall(one[20:])
        assert sock.recv(4096)


def test_a_server_that_ends_answers_what_has_connected() -> None:
    with running() as server, ExitStack() as stack:
        clients = [stack.enter_context(closing(server.connect())) for _ in range(6)]
        for client in clients:
            client.request("GET", "/slow")
        server.process.send_signal(signal.SIGTERM)

        assert all(client.getresponse().read() for client in clients)
        _, complaints = server.process.communicate(timeout=15)
    assert (server.process.returncode, complaints) == (0, b"")


@pytest.mark.parametrize("path", ["/", "/slow"])
def test_a_server_that_ends_resets_no_new_connection(path: str) -> None:
    """/slow: a request is running at the end, so the process lives on for a while."""
    with running() as server, closing(server.connect()) as client:
        client.request("GET", path)
        with new_connections("/", [server.port]) as clients:
            clients.go_on()
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: clients.seen["refused"] == CLIENTS)
        assert clients.lost == {}
        assert client.getresponse().read()
        assert server.process.wait(15) == 0


def test_a_reload_and_the_end_of_one_of_two_servers_lose_no_connection() -> None:
    with running() as server, running() as other:
        with new_connections("/", [server.port, other.port]) as clients:
            clients.go_on()
            server.process.send_signal(signal.SIGUSR2)
            successor = server.successor()
            # The new one imports the platform, beside the load.
            server.process.wait(START_S)
            clients.go_on()
            assert clients.seen["refused"] == 0
            os.kill(successor, signal.SIGTERM)
            wait_until(lambda: clients.seen["refused"] == CLIENTS)
            clients.go_on()
        assert clients.lost == {}
        wait_until(lambda: has_ended(successor))


def test_a_body_that_is_cut_has_no_last_chunk(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"GET /cut HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b"".join(iter(lambda: client.recv(4096), b""))
    assert b"Transfer-Encoding: chunked" in received
    assert received.endswith(b"\r\n9\r\nbeginning\r\n")
