"""Processes that accept from one socket share its connections."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from edgecache.http.server import acceptor as acceptors
from edgecache.http.server.acceptor import Acceptor, Balance
from tests.edgecache.http.support import run


class Counts:
    """Two processes' connections; each process sees the other's."""

    def __init__(self) -> None:
        self.of = [0, 0]


class Side(Balance):
    """One process: its acceptor counts what it accepts."""

    def __init__(self, counts: Counts, place: int) -> None:
        self._counts, self._place = counts, place
        self.accepted: list[socket.socket] = []

    def connect(self, accepted: socket.socket, _address: object) -> None:
        """Keep a connection open."""
        self.accepted.append(accepted)
        self.set(len(self.accepted))

    def set(self, count: int) -> None:
        """Publish the count."""
        self._counts.of[self._place] = count

    def close(self) -> None:
        """Publish that this side accepts no more."""
        self.set(-1)

    def is_above_another(self) -> bool:
        """True if the other side has fewer."""
        own, other = self._counts.of[self._place], self._counts.of[1 - self._place]
        return 0 <= other < own


@contextlib.asynccontextmanager
async def accepting(*sides: Side) -> AsyncIterator[int]:
    """Accept for these sides from one socket; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening, contextlib.ExitStack() as stack:
        # Each with a file of its own, as in processes: a loop watches a file for one reader.
        own = [stack.enter_context(listening.dup()) for _ in sides]
        running = [
            Acceptor(sock, side.connect, side) for sock, side in zip(own, sides, strict=True)
        ]
        try:
            yield listening.getsockname()[1]
        finally:
            for each in running:
                each.close()
            for sock in [sock for side in sides for sock in side.accepted]:
                sock.close()


async def connect(port: int, stack: contextlib.ExitStack) -> None:
    """Open a connection that stays."""
    client = stack.enter_context(socket.socket())
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))


async def all_accepted(*sides: Side, count: int) -> None:
    """Wait until this many connections were accepted."""
    async with asyncio.timeout(10):
        while sum(len(side.accepted) for side in sides) < count:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.001)


def test_two_processes_get_as_many_connections_each() -> None:
    async def main() -> None:
        counts = Counts()
        sides = Side(counts, 0), Side(counts, 1)
        with contextlib.ExitStack() as stack:
            async with accepting(*sides) as port:
                for _ in range(40):
                    await connect(port, stack)
                await all_accepted(*sides, count=40)
                assert [len(side.accepted) for side in sides] == [20, 20]

    run(main())


def test_a_process_that_hangs_keeps_no_connection_from_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    async def main() -> None:
        nonlocal looks
        counts = Counts()
        # The other one never accepts, and has fewer.
        side = Side(counts, 0)
        side.set(5)

        def is_above_another() -> bool:
            nonlocal looks
            looks += 1
            return True

        monkeypatch.setattr(side, "is_above_another", is_above_another)
        with contextlib.ExitStack() as stack:
            async with accepting(side) as port:
                await connect(port, stack)
                await all_accepted(side, count=1)
                assert looks > 1
                # From now on this one does not ask for a while.
                looks = 0
                for _ in range(20):
                    await connect(port, stack)
                await all_accepted(side, count=21)
                assert looks == 0

    monkeypatch.setattr(acceptors, "DISTRUST_S", 60.0)
    run(main())


def test_a_process_without_open_files_goes_on_when_it_has_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Exhausted(socket.socket):
        failures = 2

        def accept(self) -> tuple[socket.socket, object]:
            if self.failures:
                self.failures -= 1
                raise OSError(24, "Too many open files")
            return super().accept()

    async def main() -> None:
        side = Side(Counts(), 0)
        with contextlib.ExitStack() as stack, Exhausted() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            running = Acceptor(listening, side.connect, side)
            await connect(listening.getsockname()[1], stack)
            await all_accepted(side, count=1)
            running.close()
            assert listening.failures == 0
            side.accepted[0].close()

    monkeypatch.setattr(acceptors, "EXHAUSTED_S", 0.01)
    run(main())
