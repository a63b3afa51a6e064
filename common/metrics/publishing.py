"""Metrics of a process that are published once a second, and not by each request.

A value of prometheus_client takes a lock, asks for the process id and writes to a mapped file: a
dozen of them cost a short SQL request 3 % of its processor time. A request only stores its
observations, which are counted together with those of many others. A killed process loses the
observations of at most a second.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from prometheus_client import Histogram

EVERY_S: Final = 1.0
# Maximum waiting observations; the thread that adds one more counts them all.
MAX_WAITING: Final = 10_000

Observation = TypeVar("Observation")
Publisher = Callable[[], None]

_publishers: list[Publisher] = []


class ObservationBatch(Generic[Observation]):
    """Observations of all threads of a process, counted together at the next ``publish``.

    count: gets them in order; several threads may call it concurrently.
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
        # Observations added in the meantime are left for the next time, so that this loop ends.
        for _ in range(len(self._waiting)):
            try:
                yield self._waiting.popleft()
            except IndexError:
                # Another thread publishes concurrently.
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
    """Register a function that ``publish`` calls and that updates values of metrics."""
    _publishers.append(publisher)


def publish() -> None:
    """Publish all observations of this process so far."""
    for publisher in _publishers:
        publisher()
