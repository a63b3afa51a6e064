"""What the processes of one brain know of each other: memory that they share.

Each process writes its own part alone, so that no lock is needed, and none can be left behind by a
process that is killed. The part outlives its process: the next one in the same place goes on with
what it finds there.
"""

import mmap
import struct
import zlib
from typing import Any, Final

import orjson

PORTS: Final = ("internal", "workers", "objects")
COUNT: Final = struct.Struct("q")
# Before a report: its checksum and length.
HEAD: Final = struct.Struct("II")
REPORT_AT: Final = COUNT.size * len(PORTS)
PART_BYTES: Final = 256 * 1024
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

    def write_report(self, place: int, report: Any) -> None:
        """Publish what a process reports. Raises ValueError if it is too long."""
        body = orjson.dumps(report)
        if REPORT_AT + HEAD.size + len(body) > PART_BYTES:
            raise ValueError("A report is longer than its place.")
        start = place * PART_BYTES + REPORT_AT
        HEAD.pack_into(self._bytes, start, zlib.crc32(body), len(body))
        self._bytes[start + HEAD.size : start + HEAD.size + len(body)] = body

    def read_report(self, place: int) -> Any:
        """Return a process's report; None if there is none, or it is just being written."""
        start = place * PART_BYTES + REPORT_AT
        checksum, length = HEAD.unpack_from(self._bytes, start)
        body = self._bytes[start + HEAD.size : start + HEAD.size + length]
        if not length or zlib.crc32(body) != checksum:
            return None
        return orjson.loads(body)


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


def _count_at(place: int, port: str) -> int:
    return place * PART_BYTES + PORTS.index(port) * COUNT.size
