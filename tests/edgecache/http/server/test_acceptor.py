"""A server without open files accepts again when it has some."""

import asyncio
import contextlib
import socket

import pytest

from edgecache.http.server import acceptor as acceptors
from edgecache.http.server.acceptor import Acceptor
from tests.edgecache.http.support import run


class Exhausted(socket.socket):
    """A socket that cannot accept twice."""

    failures = 2

    def accept(self) -> tuple[socket.socket, object]:
        """Accept, or fail as where a process has too many open files."""
        if self.failures:
            self.failures -= 1
            raise OSError(24, "Too many open files")
        return super().accept()


def test_a_process_without_open_files_goes_on_when_it_has_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acceptors, "EXHAUSTED_S", 0.01)

    async def main() -> None:
        accepted = asyncio.get_running_loop().create_future()
        with contextlib.ExitStack() as stack:
            listening = stack.enter_context(Exhausted())
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            running = Acceptor(listening, lambda sock, _address: accepted.set_result(sock))
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, listening.getsockname())
            async with asyncio.timeout(10):
                stack.enter_context(await accepted)
            running.close()
            assert listening.failures == 0

    run(main())
