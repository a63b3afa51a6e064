"""Running and waiting SQL requests of each organization, shared by all web processes.

The processes share memory with a row for each of them. A row is written by its own process, and by
the parent after that process has ended. So no lock is needed, and a process that is killed cannot
leave one locked. The price: two processes that start a request within the same microseconds can
exceed a limit.
"""

import copy
import mmap
import os
import select
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

ORGANIZATION: Final = struct.Struct("Q")
TIME: Final = struct.Struct("d")
ENTRY: Final = struct.Struct("Qd")
# Marks a free entry: primary keys of organizations begin at 1.
NONE: Final = ORGANIZATION.pack(0)
# Wakeups that a process reads in one call.
MAX_WAKEUPS_PER_READ: Final = 256
# Ids are stored multiplied by this odd number, modulo 2**64, which is reversible. Small ids are
# mostly zero bytes, as free entries are; without the multiplication a search would be six times
# slower, because it would compare each free entry with the id byte by byte.
SPREAD: Final = 0x9E3779B97F4A7C15
SPREAD_INVERSE: Final = pow(SPREAD, -1, 2**64)


class OrganizationTimes:
    """A table of entries, ``width`` in each row: an organization and a time (time.monotonic())."""

    def __init__(self, rows: int, width: int) -> None:
        self._row_bytes = width * ENTRY.size
        self._shared = mmap.mmap(-1, rows * self._row_bytes)

    def add(self, row: int, organization_id: int, time: float) -> int | None:
        """Write a free entry of a row; return its position, None if the row is full."""
        first = row * self._row_bytes
        position = next(self._positions(NONE, first, first + self._row_bytes), None)
        if position is not None:
            self._write(position, organization_id, time)
        return position

    def put_first(self, row: int, organization_id: int, time: float) -> None:
        """Write a row's first entry; an entry of another organization moves to the second one."""
        first = row * self._row_bytes
        second = first + ENTRY.size
        former = self._shared[first:second]
        if not former.startswith(_written(organization_id)):
            self._shared[second : second + ENTRY.size] = former
        self._write(first, organization_id, time)

    def remove(self, position: int | None) -> None:
        """Free an entry, if it was written."""
        if position is None:
            return
        self._shared[position : position + ORGANIZATION.size] = NONE

    def clear(self, row: int) -> None:
        """Free all entries of a row."""
        first = row * self._row_bytes
        self._shared[first : first + self._row_bytes] = bytes(self._row_bytes)

    def of(self, organization_id: int) -> list[tuple[int, float]]:
        """Return the row and the time of each of an organization's entries."""
        found = self._positions(_written(organization_id), 0, len(self._shared))
        return [(at // self._row_bytes, self._time(at)) for at in found]

    def entries(self) -> list[tuple[int, int, float]]:
        """Return the organization, the row and the time of each entry."""
        width = self._row_bytes // ENTRY.size
        return [
            (written * SPREAD_INVERSE % 2**64, index // width, time)
            for index, (written, time) in enumerate(ENTRY.iter_unpack(self._shared[:]))
            if written
        ]

    def has_another(self, organization_id: int, *, since: float) -> bool:
        """True if another organization has an entry with a later time."""
        (own,) = ORGANIZATION.unpack(_written(organization_id))
        return any(
            time > since and written not in {own, 0}
            for written, time in ENTRY.iter_unpack(self._shared[:])
        )

    def _write(self, position: int, organization_id: int, time: float) -> None:
        # The time first: a process that finds the organization then reads the right time.
        TIME.pack_into(self._shared, position + ORGANIZATION.size, time)
        self._shared[position : position + ORGANIZATION.size] = _written(organization_id)

    def _time(self, position: int) -> float:
        return float(TIME.unpack_from(self._shared, position + ORGANIZATION.size)[0])

    def _positions(self, organization: bytes, start: int, end: int) -> Iterator[int]:
        shared = self._shared[:]
        position = shared.find(organization, start, end)
        while position >= 0:
            if position % ENTRY.size == 0:
                yield position
            position = shared.find(organization, position + 1, end)


def _written(organization_id: int) -> bytes:
    return ORGANIZATION.pack(organization_id * SPREAD % 2**64)


class SharedCounts:
    """The tables of all processes, and a pipe for each process.

    running: an entry for each running request, with the time from which its age is counted: its
    beginning, or SHORT_S earlier if it counts in all processes from its beginning.
    waiting: an entry for each waiting request, with the time at which it began to wait.
    served: the two organizations that each process served last, and when.
    row: the row of this process.
    """

    def __init__(self, processes: int, requests: int) -> None:
        """Create tables for this many processes, each with at most this many requests."""
        self.row = 0
        self.running = OrganizationTimes(processes, requests)
        self.waiting = OrganizationTimes(processes, requests)
        self.served = OrganizationTimes(processes, 2)
        # Pipes carry organization ids. An id is written by one call, so it is never read in parts.
        self._wakeup_pipes = [os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) for _ in range(processes)]

    def in_row(self, row: int) -> "SharedCounts":
        """Return the same tables for the process of another row."""
        other = copy.copy(self)
        other.row = row
        return other

    def wake_another(self, organization_id: int) -> bool:
        """Wake the other process in which an organization has waited the longest.

        Returns False if it waits in no other process.
        """
        waiting = [(at, row) for row, at in self.waiting.of(organization_id) if row != self.row]
        if waiting:
            # Only one process: each process that is woken takes a slot.
            self._wake(min(waiting)[1], organization_id)
        return bool(waiting)

    def wake(self) -> None:
        """Wake this process."""
        self._wake(self.row, 0)

    def wait_for_wakeup(self, timeout_s: float | None) -> list[int]:
        """Wait for a wakeup or the timeout; return the organizations whose slots were freed."""
        pipe = self._wakeup_pipes[self.row][0]
        ready = select.poll()
        ready.register(pipe, select.POLLIN)
        ready.poll(None if timeout_s is None else timeout_s * 1000)
        with suppress(BlockingIOError):
            written = os.read(pipe, MAX_WAKEUPS_PER_READ * ORGANIZATION.size)
            return [organization_id for (organization_id,) in ORGANIZATION.iter_unpack(written)]
        return []

    def _wake(self, row: int, organization_id: int) -> None:
        # The pipe of a hanging process fills up. It polls by itself when it continues.
        with suppress(BlockingIOError):
            os.write(self._wakeup_pipes[row][1], ORGANIZATION.pack(organization_id))

    def clear(self, row: int) -> None:
        """Free the entries of a process that has ended."""
        for table in (self.running, self.waiting, self.served):
            table.clear(row)


class _Current:
    """The counts of this process; ``share`` replaces them by counts for several processes."""

    counts = SharedCounts(1, 256)


def share(processes: int, requests: int) -> SharedCounts:
    """Create the counts for processes that are forked from now on, and return them."""
    _Current.counts = SharedCounts(processes, requests)
    return _Current.counts


def current() -> SharedCounts:
    """Return the counts of this process."""
    return _Current.counts
