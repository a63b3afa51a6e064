"""What the processes of one brain know of each other: memory that they share.

Each process writes its own part alone, so that no lock is needed, and none can be left behind by a
process that is killed. The part outlives its process: the next one in the same place goes on with
what it finds there.
"""

import mmap
import struct
import time
from typing import Any, Final

import orjson

NS: Final = 1e9
PORTS: Final = ("internal", "workers", "objects")
COUNT: Final = struct.Struct("q")
# After the counts: when the process was last seen at work.
SEEN_AT: Final = COUNT.size * len(PORTS)
# Which of two reports is the last one that is whole.
LAST_AT: Final = SEEN_AT + COUNT.size
# Before a report: its length.
HEAD: Final = struct.Struct("q")
REPORTS_AT: Final = LAST_AT + COUNT.size
REPORT_BYTES: Final = 128 * 1024
PART_BYTES: Final = REPORTS_AT + 2 * REPORT_BYTES
# The count of a process that accepts no connections, or does not yet.
CLOSED: Final = -1


class SharedMemory:
    """A part for each process. Made before they are forked."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._bytes = mmap.mmap(-1, processes * PART_BYTES)
        for place in range(processes):
            self.close(place)

    def close(self, place: int) -> None:
        """Publish that a process accepts no connections."""
        for port in PORTS:
            self.set_count(place, port, CLOSED)

    def set_count(self, place: int, port: str, count: int) -> None:
        """Publish how many connections of a port a process has, or CLOSED."""
        COUNT.pack_into(self._bytes, _count_at(place, port), count)

    def is_serving(self, place: int) -> bool:
        """True if there is a process that accepts connections."""
        return CLOSED not in (self.counts(port)[place] for port in PORTS)

    def counts(self, port: str) -> list[int]:
        """Return the connections of each process."""
        return [
            COUNT.unpack_from(self._bytes, _count_at(place, port))[0]
            for place in range(self.processes)
        ]

    def note_seen(self, place: int) -> None:
        """Note that a process is at work now."""
        COUNT.pack_into(self._bytes, place * PART_BYTES + SEEN_AT, time.monotonic_ns())

    def forget_seen(self, place: int) -> None:
        """Wait for a new process to be at work, however long it takes to start."""
        COUNT.pack_into(self._bytes, place * PART_BYTES + SEEN_AT, 0)

    def silent_s(self, place: int) -> float:
        """Return for how long a process has not been at work; 0 if it has not begun."""
        (seen,) = COUNT.unpack_from(self._bytes, place * PART_BYTES + SEEN_AT)
        return (time.monotonic_ns() - seen) / NS if seen else 0.0

    def write_report(self, place: int, report: Any) -> None:
        """Publish what a process reports. Raises ValueError if it is too long.

        A process that is killed meanwhile leaves its former report.
        """
        body = orjson.dumps(report)
        if HEAD.size + len(body) > REPORT_BYTES:
            raise ValueError("A report is longer than its place.")
        last_at = place * PART_BYTES + LAST_AT
        next_one = 1 - COUNT.unpack_from(self._bytes, last_at)[0]
        start = _report_at(place, next_one)
        HEAD.pack_into(self._bytes, start, len(body))
        self._bytes[start + HEAD.size : start + HEAD.size + len(body)] = body
        COUNT.pack_into(self._bytes, last_at, next_one)

    def read_report(self, place: int) -> Any:
        """Return a process's last report; None if there is none, or it was just replaced twice."""
        (last,) = COUNT.unpack_from(self._bytes, place * PART_BYTES + LAST_AT)
        start = _report_at(place, last)
        (length,) = HEAD.unpack_from(self._bytes, start)
        body = self._bytes[start + HEAD.size : start + HEAD.size + length]
        try:
            return orjson.loads(body) if length else None
        except orjson.JSONDecodeError:
            return None


class PortBalance:
    """The connections of a port, over all processes (``edgecache.http.acceptor.Balance``)."""

    def __init__(self, memory: SharedMemory, place: int, port: str) -> None:
        """place: of this process."""
        self._memory = memory
        self._place = place
        self._port = port

    def set(self, count: int) -> None:
        """Publish this process's."""
        self._memory.set_count(self._place, self._port, count)

    def close(self) -> None:
        """Publish that this process accepts no more."""
        self.set(CLOSED)

    def is_above_another(self) -> bool:
        """True if another process has fewer."""
        counts = self._memory.counts(self._port)
        return any(0 <= count < counts[self._place] for count in counts)


def _report_at(place: int, number: int) -> int:
    return place * PART_BYTES + REPORTS_AT + number * REPORT_BYTES


def _count_at(place: int, port: str) -> int:
    return place * PART_BYTES + PORTS.index(port) * COUNT.size
