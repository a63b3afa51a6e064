"""Readers that know the oldest version which they may get of an object."""

import http.client
import itertools
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from tests.edgecache.cluster import Cluster
from tests.waiting import wait_until

DIGITS: Final = 10
TIMEOUT_S: Final = 20.0
PATIENCE_S: Final = 90.0
NO_ANSWER: Final = 0


@dataclass
class Watched:
    """An object whose body is the number of its version, repeated.

    headers: of a request for it, by the URL of a brain or balancer.
    write: makes a body the current one, through a brain, and returns when it is acknowledged.
    begun, acknowledged: numbers of versions; no other object has their bytes. changes: how many.
    """

    kind: str
    target: str
    headers: Mapping[str, Mapping[str, str]]
    write: Callable[[bytes, Cluster], None]
    digits: int = 100
    begun: int = field(default_factory=lambda: secrets.randbelow(10**DIGITS // 2))
    acknowledged: int = 0
    changes: int = 0

    def change(self, through: Cluster) -> None:
        """Write the next version. One thread at a time."""
        self.begun += 1
        number = self.begun
        self.write(self.body, through)
        self.acknowledged = number
        self.changes += 1

    @property
    def body(self) -> bytes:
        """Return the newest version's body."""
        return b"%0*d" % (DIGITS, self.begun) * self.digits

    def number_of(self, body: bytes) -> int:
        """Return the version of a body, which must be whole."""
        number = body[:DIGITS]
        assert body == number * self.digits, f"{self.target} is torn"
        return int(number)


@dataclass(frozen=True)
class Read:
    """One read. began, ended: ``monotonic``. status: NO_ANSWER for a connection that ended.

    version: of its body. acknowledged: the version that was, when it began.
    """

    watched: Watched
    url: str
    began: float
    ended: float
    status: int
    version: int
    acknowledged: int

    @property
    def is_stale(self) -> bool:
        """True if it began after a newer version had been acknowledged."""
        return self.status == http.HTTPStatus.OK and self.version < self.acknowledged


class Readers:
    """Clients that read objects at all URLs in turn, until they are stopped."""

    def __init__(
        self,
        watched: Sequence[Watched],
        urls: Sequence[str],
        *,
        count: int = 4,
        pause_s: float = 0.0,
    ) -> None:
        """pause_s: of each reader after a read."""
        self.reads: list[Read] = []
        self.count = count
        self._pause_s = pause_s
        self._is_over = threading.Event()
        self._faults: list[BaseException] = []
        pairs = list(itertools.product(watched, urls))
        self._threads = [
            threading.Thread(
                target=self._read_all,
                args=(pairs[number % len(pairs) :] + pairs[: number % len(pairs)],),
            )
            for number in range(count)
        ]

    def __enter__(self) -> "Readers":
        """Start."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Stop, and wait."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        assert self._faults == []

    @property
    def stale(self) -> list[Read]:
        """Return the stale reads."""
        return [read for read in self.reads if read.is_stale]

    def of(self, *urls: str) -> list[Read]:
        """Return the reads at some URLs."""
        return [read for read in self.reads if read.url in urls]

    def wait_for(self, count: int) -> None:
        """Wait until this many more reads have ended."""
        wanted = len(self.reads) + count
        wait_until(lambda: self._faults or len(self.reads) >= wanted, timeout_s=PATIENCE_S)

    def _read_all(self, pairs: Sequence[tuple[Watched, str]]) -> None:
        connections = {url: _connection(url) for _, url in pairs}
        try:
            for watched, url in itertools.cycle(pairs):
                if self._is_over.wait(self._pause_s):
                    break
                self.reads.append(_read(watched, url, connections[url]))
        except BaseException as fault:  # noqa: BLE001 - whatever it was, the test fails
            self._faults.append(fault)
        for each in connections.values():
            each.close()


def failed(reads: Iterable[Read]) -> list[Read]:
    """Return the reads without the object."""
    return [read for read in reads if read.status != http.HTTPStatus.OK]


def _connection(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)


def _read(watched: Watched, url: str, connection: http.client.HTTPConnection) -> Read:
    acknowledged, began, version = watched.acknowledged, time.monotonic(), 0
    try:
        connection.request("GET", watched.target, headers=dict(watched.headers[url]))
        response = connection.getresponse()
        status, body = response.status, response.read()
        if status == http.HTTPStatus.OK:
            version = watched.number_of(body)
    except (OSError, http.client.HTTPException):
        connection.close()
        status = NO_ANSWER
    return Read(watched, url, began, time.monotonic(), status, version, acknowledged)
