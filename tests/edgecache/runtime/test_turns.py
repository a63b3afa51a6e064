"""Requests that organizations have begun in turn."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from unittest.mock import Mock

from edgecache.http.exchange import Exchange
from edgecache.http.scope import HttpScope
from edgecache.http.server.connection import ClientConnection
from edgecache.http.server.http_server import HttpServer
from edgecache.runtime.fair_shares import ShareKey
from edgecache.runtime.turns import BEGUN_PER_ITERATION_ALONE, LoopTurns
from tests.edgecache.http.support import run, serving

CROWD = 100
# Requests that have begun when another one arrives, and those that are begun with it.
FEW = 2 * BEGUN_PER_ITERATION_ALONE


def claimed(scope: HttpScope) -> ShareKey:
    """Return the share key that a path names: ``/organization/client``."""
    return tuple(scope.path.split("/")[1:3])


def is_idle(turns: LoopTurns) -> bool:
    """True if no request waits, and none has begun since the last poll of the network."""
    return not turns._begun and turns._waiting.is_empty


class Begun:
    """An application that notes which requests it has begun."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: HttpScope, exchange: Exchange) -> None:
        """Answer one loop later, as most do."""
        self.paths.append(scope.path)
        await asyncio.sleep(0)
        exchange.response_str(200, [], scope.path)


async def begun_of(
    *waves: Iterable[str], share_key: Callable[[HttpScope], ShareKey] = claimed
) -> list[str]:
    """Send the requests of each wave before any is read; return the order in which they begin."""
    app = Begun()
    loop = asyncio.get_running_loop()
    async with serving(app, share_key=share_key) as port:
        for wave in waves:
            with ExitStack() as stack:
                clients = [(path, await open_client(port, stack)) for path in wave]
                for path, client in clients:
                    # The loop does not run during this: it finds all of them together.
                    client.send(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                for path, client in clients:
                    said = await asyncio.wait_for(loop.sock_recv(client, 2**16), 20)
                    assert said.endswith(path.encode())
    return app.paths


async def open_client(port: int, stack: ExitStack) -> socket.socket:
    """Return a connection that the server has accepted."""
    client = stack.enter_context(socket.socket())
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
    return client


def test_a_crowd_of_one_organization_is_not_ahead_of_another() -> None:
    greedy = [f"/greedy/{client}" for client in range(CROWD)]
    begun = run(begun_of([*greedy, "/modest/client"]))

    assert begun.index("/modest/client") < FEW
    assert len(begun) == CROWD + 1


def test_the_clients_of_an_organization_take_turns() -> None:
    begun = run(begun_of([*["/greedy/crowd"] * CROWD, "/greedy/other"]))

    assert begun.index("/greedy/other") < FEW
    assert len(begun) == CROWD + 1


def test_after_requests_of_another_organization_fewer_begin_together() -> None:
    greedy = ["/greedy/client"] * CROWD
    begun = run(begun_of([*greedy, "/modest/1"], [*greedy, "/modest/2"]))

    assert begun.index("/modest/2") - (CROWD + 1) < BEGUN_PER_ITERATION_ALONE


async def test_what_leaves_the_queue_is_forgotten() -> None:
    turns, begun = LoopTurns(), list[int]()

    def share_key(number: int) -> ShareKey:
        return number % 3, "client"

    turns.take(lambda: (), lambda: begun.append(0))
    leaving = [
        turns.take(partial(share_key, number), partial(begun.append, number))
        for number in range(1, 10)
    ]
    for number in (2, 3, 5, 6, 8, 9):
        leave = leaving[number - 1]
        assert leave is not None
        leave()
    for _ in range(10):
        await asyncio.sleep(0)

    assert begun == [0, 1, 4, 7]
    assert is_idle(turns)


def test_a_request_without_a_share_key_is_answered() -> None:
    def fail(_scope: HttpScope) -> ShareKey:
        raise RuntimeError("no share key")

    begun = run(begun_of(["/a/b"] * CROWD, share_key=fail))

    assert len(begun) == CROWD


async def test_a_request_does_not_begin_after_its_client_was_cut_off() -> None:
    app, turns = Begun(), LoopTurns()
    server = HttpServer(app, address="127.0.0.1", port=0, turns=turns)
    connection = ClientConnection(server, asyncio.get_running_loop(), address=("127.0.0.1", 1))
    connection.connection_made(Mock())
    # Another request has begun, so this one waits.
    turns.take(lambda: (), lambda: None)
    connection.data_received(b"DELETE /a/b HTTP/1.1\r\nhost: x\r\n\r\n")
    connection.cut()
    for _ in range(5):
        await asyncio.sleep(0)

    assert app.paths == []
    assert is_idle(turns)


def test_a_client_that_leaves_while_its_request_waits_costs_nothing() -> None:
    app = Begun()

    async def work() -> None:
        async with serving(app, share_key=claimed) as port:
            with ExitStack() as stack:
                clients = [await open_client(port, stack) for _ in range(CROWD)]
                for client in clients:
                    client.send(b"GET /a/b HTTP/1.1\r\nhost: x\r\n\r\n")
                for client in clients[CROWD // 2 :]:
                    client.close()
                for client in clients[: CROWD // 2]:
                    said = await asyncio.get_running_loop().sock_recv(client, 2**16)
                    assert said.endswith(b"/a/b")

    run(work())
    assert len(app.paths) < CROWD
