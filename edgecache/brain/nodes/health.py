"""A node's health: by its heartbeat, by the requests this brain sent to it, and by its bytes."""

from collections import OrderedDict
from enum import StrEnum
from typing import Final

SUSPECT_AFTER: Final = 2
OFFLINE_AFTER: Final = 4
# A heartbeat that is a little late is not missed.
LATENESS: Final = 0.5

FAILURES_TO_AVOID: Final = 3
INITIAL_BACKOFF_S: Final = 1.0
MAX_BACKOFF_S: Final = 30.0
LATENCY_WEIGHT: Final = 0.2

# A single bad file is treated as disk corruption. If too many files of a platform node are bad, an
# alarm is raised and other nodes are preferred; an operator's node is quarantined, because it may
# alter files on purpose.
CHECKS_KEPT: Final = 1000
CHECKS_S: Final = 3600.0
OWN_MIN_CHECKS: Final = 20
OWN_SHARE: Final = 0.05
OPERATOR_MIN_BAD: Final = 3
OPERATOR_SHARE: Final = 0.005


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


def is_too_much(bad: int, checked: int) -> bool:
    """True if this many wrong blobs among those checked quarantine an operator's node."""
    return bad >= max(OPERATOR_MIN_BAD, OPERATOR_SHARE * checked)


class IntegrityChecks:
    """What this brain found when it checked a node's bytes: the last blobs of an hour."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        # When the check was made, and whether the bytes were right; a bad blob stays one.
        self._found: OrderedDict[bytes, tuple[float, bool]] = OrderedDict()

    def add(self, sha256: bytes, *, is_right: bool, now: float) -> None:
        """Record a check. now: monotonic seconds."""
        _, was_right = self._found.pop(sha256, (now, True))
        self._found[sha256] = (now, is_right and was_right)
        if len(self._found) > CHECKS_KEPT:
            self._found.popitem(last=False)

    def count(self, now: float) -> tuple[int, int]:
        """Return the number of blobs that were wrong, and of all."""
        while self._found and next(iter(self._found.values()))[0] < now - CHECKS_S:
            self._found.popitem(last=False)
        return sum(not is_right for _, is_right in self._found.values()), len(self._found)

    def is_corrupt(self, now: float, *, is_own: bool) -> bool:
        """True if too large a share was wrong. is_own: it is a node of the platform."""
        bad, checked = self.count(now)
        if is_own:
            return checked >= OWN_MIN_CHECKS and bad >= OWN_SHARE * checked
        return is_too_much(bad, checked)

    def clear(self) -> None:
        self._found.clear()


class NodeStatistics:
    """This brain's experience with a node: failures in a row, latency, running requests.

    After three failures in a row the node is avoided, each time for twice as long; then one request
    tries it again.
    """

    __slots__ = ("backoff_until", "checks", "failures", "is_corrupt", "latency_s", "running")

    def __init__(self) -> None:
        """Start without failures."""
        self.failures = 0
        self.checks = IntegrityChecks()
        # As of the last wrong bytes.
        self.is_corrupt = False
        self.latency_s = 0.0
        self.backoff_until = 0.0
        self.running = 0

    def succeeded(self, seconds: float) -> None:
        """Record a response and its time to the first byte."""
        self.failures = 0
        self.backoff_until = 0.0
        old = self.latency_s or seconds
        self.latency_s = old + LATENCY_WEIGHT * (seconds - old)

    def failed(self, *, now: float) -> None:
        """Record a failed connection, timeout or broken response. now: monotonic seconds.

        Requests that were under way when the node came to be avoided are no further failures.
        """
        if now < self.backoff_until:
            return
        self.failures += 1
        beyond = self.failures - FAILURES_TO_AVOID
        if beyond >= 0:
            self.backoff_until = now + min(INITIAL_BACKOFF_S * 2.0**beyond, MAX_BACKOFF_S)

    def may_be_asked(self, *, now: float) -> bool:
        """True if the node is not being avoided."""
        return now >= self.backoff_until
