"""A node's health: by the age of its heartbeat, and by the requests this brain sent to it."""

from enum import StrEnum
from typing import Final

SUSPECT_AFTER: Final = 2
OFFLINE_AFTER: Final = 4
# A heartbeat that is a little late is not missed.
LATENESS: Final = 0.5

FAILURES_TO_AVOID: Final = 3
FIRST_REST_S: Final = 1.0
LONGEST_REST_S: Final = 30.0
LATENCY_WEIGHT: Final = 0.2


class Health(StrEnum):
    """The health of an approved node; for all others the status is shown."""

    ONLINE = "online"
    SUSPECT = "suspect"
    OFFLINE = "offline"


def by_heartbeat(age_s: float | None, *, interval_s: float) -> Health:
    """Return the health by heartbeat: suspect after two missed ones, offline after four.

    age_s: None when there never was one.
    """
    if age_s is None or age_s >= offline_after_s(interval_s):
        return Health.OFFLINE
    if age_s > (SUSPECT_AFTER + LATENESS) * interval_s:
        return Health.SUSPECT
    return Health.ONLINE


def offline_after_s(interval_s: float) -> float:
    """Return the seconds without a heartbeat after which a node is offline."""
    return (OFFLINE_AFTER + LATENESS) * interval_s


class NodeStatistics:
    """This brain's experience with a node: failures in a row, latency, running requests.

    After three failures in a row the node is avoided, each time twice as long; then one request
    tries it again.
    """

    __slots__ = ("failures", "latency_s", "rests_until", "running")

    def __init__(self) -> None:
        """Start without failures."""
        self.failures = 0
        self.latency_s = 0.0
        self.rests_until = 0.0
        self.running = 0

    def succeeded(self, seconds: float) -> None:
        """Record a response and its time to the first byte."""
        self.failures = 0
        self.rests_until = 0.0
        old = self.latency_s or seconds
        self.latency_s = old + LATENCY_WEIGHT * (seconds - old)

    def failed(self, *, now: float) -> None:
        """Record a failed connection, timeout or broken response. now: monotonic seconds."""
        self.failures += 1
        beyond = self.failures - FAILURES_TO_AVOID
        if beyond >= 0:
            self.rests_until = now + min(FIRST_REST_S * 2.0**beyond, LONGEST_REST_S)

    def may_be_asked(self, *, now: float) -> bool:
        """True if the node is not being avoided."""
        return now >= self.rests_until
