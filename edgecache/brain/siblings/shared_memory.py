"""Memory that the processes of one brain share.

Each process writes only its own part, so there is no lock that a killed process could hold. The
part outlives its process: the next one in the same place continues with it. Only the counts of
operators' credited reads are written by all processes.
"""

import mmap
import struct
import time
from typing import Any, Final

import orjson

from edgecache.brain.metering.hourly_counts import HourlyCounts
from edgecache.http.server.acceptor import Balance

NS: Final = 1e9
# The count of a process that does not accept connections.
CLOSED: Final = -1
PORTS: Final = ("internal", "workers", "objects")
NUMBER: Final = struct.Struct("q")
# When the process's event loop last ran.
SEEN_AT: Final = 0
# Which of two reports is the last complete one.
LAST_AT: Final = SEEN_AT + NUMBER.size
# Each begins with its length.
REPORTS_AT: Final = LAST_AT + NUMBER.size
REPORT_BYTES: Final = 128 * 1024
PART_BYTES: Final = REPORTS_AT + 2 * REPORT_BYTES


class ConnectionCounts:
    """The number of connections of each process.

    The kernel gives a new connection to the process that wakes first, so that eight keep-alive
    connections often belong to one process while another core is idle.
    """

    def __init__(self, processes: int) -> None:
        self._shared = mmap.mmap(-1, processes * NUMBER.size)
        for place in range(processes):
            self.set(place, CLOSED)

    def set(self, place: int, count: int) -> None:
        """Publish a process's count, or CLOSED."""
        NUMBER.pack_into(self._shared, place * NUMBER.size, count)

    def is_open(self, place: int) -> bool:
        """True if the process accepts connections."""
        return self._all()[place] >= 0

    def is_above_another(self, place: int) -> bool:
        """True if another process has fewer connections."""
        counts = self._all()
        return any(0 <= count < counts[place] for count in counts)

    def _all(self) -> list[int]:
        return [count for (count,) in NUMBER.iter_unpack(self._shared[:])]


class SharedMemory:
    """A part for each process. Made before they are forked."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._counts = {port: ConnectionCounts(processes) for port in PORTS}
        self.credited = HourlyCounts()
        self._bytes = mmap.mmap(-1, processes * PART_BYTES)

    def counts(self, port: str) -> ConnectionCounts:
        """Return how many connections of a port each process has, by place."""
        return self._counts[port]

    def close(self, place: int) -> None:
        """Publish that a process accepts no connections."""
        for counts in self._counts.values():
            counts.set(place, CLOSED)

    def is_serving(self, place: int) -> bool:
        """True if there is a process that accepts connections."""
        return all(counts.is_open(place) for counts in self._counts.values())

    def note_seen(self, place: int) -> None:
        """Note that a process is at work now."""
        NUMBER.pack_into(self._bytes, place * PART_BYTES + SEEN_AT, time.monotonic_ns())

    def forget_seen(self, place: int) -> None:
        """Wait for a new process to be at work, however long it takes to start."""
        NUMBER.pack_into(self._bytes, place * PART_BYTES + SEEN_AT, 0)

    def silent_s(self, place: int) -> float:
        """Return for how long a process has not been at work; 0 if it has not begun."""
        (seen,) = NUMBER.unpack_from(self._bytes, place * PART_BYTES + SEEN_AT)
        return (time.monotonic_ns() - seen) / NS if seen else 0.0

    def write_report(self, place: int, report: Any) -> None:
        """Publish a process's report. Raises ValueError if it is too long.

        A process that is killed during this leaves its previous report.
        """
        body = orjson.dumps(report)
        if NUMBER.size + len(body) > REPORT_BYTES:
            raise ValueError("A report is longer than its place.")
        last_at = place * PART_BYTES + LAST_AT
        next_one = 1 - NUMBER.unpack_from(self._bytes, last_at)[0]
        start = _report_at(place, next_one)
        NUMBER.pack_into(self._bytes, start, len(body))
        self._bytes[start + NUMBER.size : start + NUMBER.size + len(body)] = body
        NUMBER.pack_into(self._bytes, last_at, next_one)

    def read_report(self, place: int) -> Any:
        """Return a process's last report; None without one, or if it was just replaced twice."""
        (last,) = NUMBER.unpack_from(self._bytes, place * PART_BYTES + LAST_AT)
        start = _report_at(place, last)
        (length,) = NUMBER.unpack_from(self._bytes, start)
        body = self._bytes[start + NUMBER.size : start + NUMBER.size + length]
        try:
            return orjson.loads(body) if length else None
        except orjson.JSONDecodeError:
            return None


class PortBalance(Balance):
    """The connections of a port, over all processes."""

    def __init__(self, counts: ConnectionCounts, place: int) -> None:
        """place: of this process."""
        self._counts = counts
        self._place = place

    def set(self, count: int) -> None:
        """Publish this process's."""
        self._counts.set(self._place, count)

    def close(self) -> None:
        """Publish that this process accepts no more."""
        self.set(CLOSED)

    def is_above_another(self) -> bool:
        """True if another process has fewer."""
        return self._counts.is_above_another(self._place)


def _report_at(place: int, number: int) -> int:
    return place * PART_BYTES + REPORTS_AT + number * REPORT_BYTES
