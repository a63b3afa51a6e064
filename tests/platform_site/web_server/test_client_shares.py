"""No client's address takes all of what clients hold of a web server."""

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from platform_site.web_server.framing import forwarded_for
from tests.platform_site.web_server.server import Server, running
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# Loopback addresses beside the one that a proxy of this machine would have.
GREEDY, OTHER = "127.0.0.2", "127.0.0.3"
LARGE = 3_000_000


def _head(size: int, *, extra: str = "") -> bytes:
    return f"POST /size HTTP/1.1\r\nHost: local\r\n{extra}Content-Length: {size}\r\n\r\n".encode()


@contextmanager
def _sent(
    server: Server, pieces: list[bytes], *, address: str = GREEDY
) -> Iterator[list[socket.socket]]:
    """Send each piece on a connection of its own, one after the other."""
    with ExitStack() as stack:
        socks = []
        for piece in pieces:
            sock = stack.enter_context(
                socket.create_connection(
                    ("127.0.0.1", server.port), timeout=10, source_address=(address, 0)
                )
            )
            sock.sendall(piece)
            socks.append(sock)
        yield socks


def _answer(server: Server, request: bytes, *, address: str = OTHER) -> str:
    """Return the body of an answer, or the status line of a refusal."""
    with _sent(server, [request], address=address) as (sock,):
        answer = b""
        while not (b"\r\n\r\n" in answer and len(answer.partition(b"\r\n\r\n")[2]) > 0):
            piece = sock.recv(1000)
            if not piece:
                break
            answer += piece
    head, _, body = answer.decode().partition("\r\n\r\n")
    return body or head.partition("\r\n")[0]


def _refused(socks: list[socket.socket]) -> int:
    """Return how many connections have been refused."""
    readable, _, _ = select.select(socks, [], [], 0)
    count = 0
    for sock in readable:
        try:
            answer = sock.recv(12, socket.MSG_PEEK)
        except OSError:
            answer = b""
        count += answer in {b"", b"HTTP/1.1 503"}
    return count


def _is_open(sock: socket.socket) -> bool:
    return not _refused([sock])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return a server of one process with eight places for large bodies."""
    with running(WORKERS="1", THREADS="64", RECEIVING_LIMIT_BYTES="4000000") as made:
        yield made


@pytest.mark.parametrize("extra", ["", "Expect: 100-continue\r\n"])
def test_one_address_leaves_places_of_large_bodies_to_others(server: Server, extra: str) -> None:
    with _sent(server, [_head(LARGE, extra=extra) + b"{"] * 8) as socks:
        wait_until(lambda: _refused(socks) >= 4)

        assert _answer(server, _head(LARGE) + b"x" * LARGE) == str(LARGE)
        # It came beside those that still hold places.
        assert _refused(socks) < len(socks)


def test_one_address_leaves_memory_of_incomplete_bodies_to_others(server: Server) -> None:
    size = 1_000_000
    with _sent(server, [_head(size) + b"x" * (size - 1)] * 5) as socks:
        wait_until(lambda: _refused(socks) >= 3)

        with _sent(server, [_head(size) + b"x" * (size - 1)], address=OTHER) as (sock,):
            assert _is_open(sock)
            sock.sendall(b"x")
            assert sock.recv(15) == b"HTTP/1.1 200 OK"
        assert _refused(socks) == 3
    # What was held is returned: the same works as often as one likes.
    for _ in range(6):
        assert _answer(server, _head(size) + b"x" * size, address=GREEDY) == str(size)


@pytest.mark.parametrize("beginning", [b"", b"GET / HTTP/1.1\r\nHost: lo"])
def test_one_address_leaves_connections_to_others(beginning: bytes) -> None:
    with (
        running(WORKERS="1", CONNECTIONS="20", THREADS="4") as server,
        _sent(server, [beginning] * 30) as socks,
    ):
        assert _answer(server, b"GET / HTTP/1.1\r\nHost: local\r\n\r\n")
        wait_until(lambda: _refused(socks) == 20)
        # Idle ones make room for new ones; those that send a request do not.
        assert beginning or _is_open(socks[-1])


def test_an_idle_connection_makes_room_when_there_are_too_many() -> None:
    with running(WORKERS="1", CONNECTIONS="20", THREADS="4") as server, ExitStack() as stack:
        # Without a share of their own, as a proxy's on this machine.
        socks = stack.enter_context(_sent(server, [b""] * 30, address="127.0.0.1"))

        assert _answer(server, b"GET / HTTP/1.1\r\nHost: local\r\n\r\n")
        wait_until(lambda: _refused(socks) >= 10)
        assert _is_open(socks[-1])


def test_a_body_that_trickles_does_not_keep_its_thread() -> None:
    with (
        running(WORKERS="1", RECEIVE_S="0.1") as server,
        _sent(server, [_head(LARGE, extra="Expect: 100-continue\r\n")]) as (sock,),
    ):
        assert b"100 Continue" in sock.recv(100)
        sock.settimeout(0.02)
        assert _is_closed_while_bytes_arrive(sock)


def _is_closed_while_bytes_arrive(sock: socket.socket) -> bool:
    for _ in range(500):
        try:
            sock.sendall(b"x")
            if sock.recv(100) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.parametrize("proxies", ["0", "1"])
def test_clients_that_do_not_take_their_answers_leave_threads_to_others(proxies: str) -> None:
    def request_for(address: str, path: str) -> bytes:
        head = f"GET {path} HTTP/1.1\r\nHost: local\r\nX-Forwarded-For: {address}\r\n\r\n"
        return head.encode()

    # Behind a proxy all connections are from its address.
    other = GREEDY if proxies == "1" else OTHER
    with (
        running(WORKERS="1", THREADS="8", ZTRUSTED_PROXY_COUNT=proxies) as server,
        _sent(server, [request_for("192.0.2.1", "/large")] * 12) as socks,
    ):
        wait_until(lambda: _answered(socks) >= 4)

        assert _answer(server, request_for("192.0.2.2", "/"), address=other)
        assert _answered(socks) == 4


def _answered(socks: list[socket.socket]) -> int:
    return len(select.select(socks, [], [], 0)[0])


def test_behind_a_proxy_the_address_that_it_names_has_the_share() -> None:
    def sent_for(address: str) -> bytes:
        return _head(LARGE, extra=f"X-Forwarded-For: 192.0.2.9, {address}\r\n")

    with (
        running(WORKERS="1", THREADS="64", CONNECTIONS="20", ZTRUSTED_PROXY_COUNT="1") as server,
        _sent(server, [sent_for("2001:db8::1") + b"{"] * 8) as socks,
    ):
        wait_until(lambda: _refused(socks) >= 4)

        # Another one of the same /64, and another one.
        assert "503" in _answer(server, sent_for("2001:db8::2") + b"{", address=GREEDY)
        body = sent_for("2001:db8:0:1::1") + b"x" * LARGE
        assert _answer(server, body, address=GREEDY) == str(LARGE)
        # The proxy's connections are not counted.
        with _sent(server, [b"GET / HTTP/1.1\r\nHost: lo"] * 12) as beside:
            assert _answer(server, b"GET / HTTP/1.1\r\nHost: local\r\n\r\n", address=GREEDY)
            assert _refused(beside) == 0


def test_the_lines_of_a_forwarding_header_are_joined() -> None:
    head = b"GET / HTTP/1.1\r\nX-Forwarded-For: a, b\r\nHost: x\r\nx-forwarded-FOR:c\r\n\r\n{"
    assert forwarded_for(head).replace(" ", "") == "a,b,c"
    assert forwarded_for(b"GET / HTTP/1.1\r\n\r\nX-Forwarded-For: body\r\n\r\n") == ""
