"""Clients that open a connection for each request, while a server ends or is replaced."""

import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from tests.waiting import wait_until

CLIENTS = 8
TIMEOUT_S = 30


@dataclass
class NewConnections:
    """outcomes: of each connection its status, ``refused``, or how else it has ended."""

    outcomes: list[str] = field(default_factory=list)

    @property
    def seen(self) -> Counter[str]:
        """Return how many connections had each outcome."""
        return Counter(self.outcomes)

    def go_on(self, requests: int = 200) -> None:
        """Wait for this many further responses."""
        goal = self.seen["200"] + requests
        wait_until(lambda: self.seen["200"] >= goal, timeout_s=TIMEOUT_S)

    @property
    def lost(self) -> dict[str, int]:
        """Return the connections that were neither answered nor refused."""
        clean = {"200", "refused", "503"}
        return {what: many for what, many in self.seen.items() if what not in clean}


@contextmanager
def new_connections(path: str, ports: Sequence[int]) -> Iterator[NewConnections]:
    """Have clients ask a server until it refuses, then the next one, and so on.

    path: answered with 200, or with 503 while a process drains.
    """
    made, over = NewConnections(), threading.Event()

    def client() -> None:
        for port in ports:
            while not over.is_set():
                outcome = _ask(path, port)
                made.outcomes.append(outcome)
                if outcome == "refused":
                    break

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _ask(path: str, port: int) -> str:
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with closing(socket.socket()) as sock:
        sock.settimeout(TIMEOUT_S)
        try:
            sock.connect(("127.0.0.1", port))
            sock.sendall(request.encode())
            answer = b"".join(iter(lambda: sock.recv(4096), b""))
        except ConnectionRefusedError:
            return "refused"
        except OSError as error:
            return repr(error)
    return answer[9:12].decode() or "closed"
