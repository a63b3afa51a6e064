"""Whether a node can be asked: what its heartbeats say, and what its answers were like."""

from enum import StrEnum
from typing import Final

SUSPECT_AFTER: Final = 2
OFFLINE_AFTER: Final = 4
# A heartbeat that is on its way is not missed yet.
LATENESS: Final = 0.5

FAILURES_TO_AVOID: Final = 3
FIRST_REST_S: Final = 1.0
LONGEST_REST_S: Final = 30.0
LATENCY_WEIGHT: Final = 0.2


class Health(StrEnum):
    """What is reckoned of a node that was approved; the others have their status instead."""

    ONLINE = "online"
    SUSPECT = "suspect"
    OFFLINE = "offline"


def by_heartbeat(age_s: float | None, *, interval_s: float) -> Health:
    """Judge by the age of the last heartbeat: suspect after two missed ones, offline after four.

    age_s: None when there never was one.
    """
    if age_s is None or age_s >= offline_after_s(interval_s):
        return Health.OFFLINE
    if age_s > (SUSPECT_AFTER + LATENESS) * interval_s:
        return Health.SUSPECT
    return Health.ONLINE


def offline_after_s(interval_s: float) -> float:
    """Give the silence after which a node is offline."""
    return (OFFLINE_AFTER + LATENESS) * interval_s


class NodeStatistics:
    """What this brain saw of a node's answers: failures in a row, latency, what runs now.

    After three failures in a row the node rests, each time twice as long; then one request tries.
    """

    __slots__ = ("failures", "latency_s", "rests_until", "running")

    def __init__(self) -> None:
        """Begin without a prejudice."""
        self.failures = 0
        self.latency_s = 0.0
        self.rests_until = 0.0
        self.running = 0

    def succeeded(self, seconds: float) -> None:
        """Note an answer and its time to the first byte."""
        self.failures = 0
        self.rests_until = 0.0
        old = self.latency_s or seconds
        self.latency_s = old + LATENCY_WEIGHT * (seconds - old)

    def failed(self, *, now: float) -> None:
        """Note a refused connection, a time-out, a broken answer. now: monotonic seconds."""
        self.failures += 1
        beyond = self.failures - FAILURES_TO_AVOID
        if beyond >= 0:
            self.rests_until = now + min(FIRST_REST_S * 2.0**beyond, LONGEST_REST_S)

    def may_be_asked(self, *, now: float) -> bool:
        """Say whether it is not resting."""
        return now >= self.rests_until
