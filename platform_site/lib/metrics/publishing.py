"""Metrics of a process that are written once a second, and not by each request.

A value of prometheus_client takes a lock, asks for the process id and writes to a mapped file: a
dozen of them cost a short SQL request 3 % of its processor time. A request only leaves what it
observed, which is counted together with that of many others. What a process that is killed had not
written is lost: a second's worth.
"""

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

import structlog
from prometheus_client import Histogram

EVERY_S: Final = 1.0
# Observations that wait at most; the thread that adds one more counts them all.
MAX_WAITING: Final = 10_000

Observation = TypeVar("Observation")
Publisher = Callable[[], None]

log = structlog.get_logger(__name__)

_publishers: list[Publisher] = []


class Batch(Generic[Observation]):
    """Observations of all threads of a process, counted together at the next ``publish``.

    count: gets them in their order; several threads may call it concurrently.
    """

    def __init__(self, count: Callable[[Iterator[Observation]], None]) -> None:
        self._count = count
        self._waiting: deque[Observation] = deque()
        add_publisher(self._publish)

    def add(self, observation: Observation) -> None:
        """Add one observation; costs a fraction of a microsecond."""
        self._waiting.append(observation)
        if len(self._waiting) >= MAX_WAITING:
            self._publish()

    def _publish(self) -> None:
        if self._waiting:
            self._count(self._taken())

    def _taken(self) -> Iterator[Observation]:
        # What is added meanwhile is for the next time: this must come to an end.
        for _ in range(len(self._waiting)):
            try:
                yield self._waiting.popleft()
            except IndexError:
                # Another thread publishes too.
                return


class BatchHistogram(Histogram):
    """A histogram that takes many amounts in one call."""

    def observe_all(self, amounts: Sequence[float]) -> None:
        """Observe each of the amounts."""
        ordered = sorted(amounts)
        self._sum.inc(sum(ordered))
        counted = 0
        for bound, bucket in zip(self._upper_bounds, self._buckets, strict=True):
            up_to = bisect_right(ordered, bound)
            if up_to > counted:
                bucket.inc(up_to - counted)
            counted = up_to


def add_publisher(publisher: Publisher) -> None:
    """Have a function called at each ``publish``: it sets or adds to values of metrics."""
    _publishers.append(publisher)


def publish() -> None:
    """Write everything that this process observed so far."""
    for publisher in _publishers:
        publisher()


def keep_publishing() -> None:
    """Publish every second from now on; call it after a fork. A scrape reaches one process."""
    threading.Thread(target=_publish_forever, name="metrics", daemon=True).start()


def _publish_forever() -> None:
    while True:
        time.sleep(EVERY_S)
        try:
            publish()
        except Exception:
            # The next second's may be written again, by this thread alone.
            log.exception("metrics_not_published")
