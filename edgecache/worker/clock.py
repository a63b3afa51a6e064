"""The brain's clock, as a worker knows it: ticket times use it, not the local clock."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SAMPLES: Final = 8
# A slower answer says too little about its time, and is used only if there is no other.
MAX_ROUND_TRIP_S: Final = 5.0


def uptime() -> float:
    """Return seconds since some point in the past, including time in which the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of the brain's clock. offset_s: added to the uptime."""

    offset_s: float
    round_trip_s: float


class BrainClock:
    """Estimates the brain's clock from its answers to heartbeats.

    The fastest of the last few answers is used: the error is at most half its round trip. Errors
    and adjustments of this machine's clock make no difference.
    """

    def __init__(self, tick: Callable[[], float] = uptime) -> None:
        """tick: a monotonic clock."""
        self._tick = tick
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)
        self._offset_s: float | None = None

    @property
    def is_known(self) -> bool:
        """True if the brain ever answered."""
        return self._offset_s is not None

    def tick(self) -> float:
        """Return the time that ``learn`` wants: when a heartbeat was sent, and answered."""
        return self._tick()

    def learn(self, brain_now: float, *, sent: float, received: float) -> None:
        """Take the time that the brain sent (Unix seconds) between two ``tick``s."""
        sample = Sample(brain_now - (sent + received) / 2, received - sent)
        if self._samples and sample.round_trip_s > MAX_ROUND_TRIP_S:
            return
        best = self._best()
        if best is not None and abs(sample.offset_s - best.offset_s) > _doubt(sample, best):
            # The brain's clock was set, or another brain answers: what was learnt is void.
            self._samples.clear()
        self._samples.append(sample)
        best = self._best()
        self._offset_s = best.offset_s if best else None

    def now(self) -> float:
        """Return the brain's Unix seconds. Raises LookupError before the first answer."""
        if self._offset_s is None:
            raise LookupError("the brain's clock is not known yet")
        return self._tick() + self._offset_s

    def _best(self) -> Sample | None:
        return min(self._samples, key=lambda sample: sample.round_trip_s, default=None)


def _doubt(one: Sample, other: Sample) -> float:
    return (one.round_trip_s + other.round_trip_s) / 2 + 0.5
