"""The numbers of connections of each process of a server, shared between the processes.

The kernel gives a new connection to the process that wakes first, so that eight keep-alive
connections often belong to one process while another core is idle.
"""

import mmap
import struct
from typing import Final

SLOT: Final = struct.Struct("q")
# The values of a slot without a process, or whose process no longer accepts; and of one whose
# process does not accept yet.
CLOSED: Final = -1
STARTING: Final = -2


class ConnectionCounts:
    """One number for each process, in shared memory.

    While a process runs, only it writes its slot, so no lock is needed that a killed process could
    leave behind.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._shared = mmap.mmap(-1, slots * SLOT.size)
        for slot in range(slots):
            self.set(slot, CLOSED)

    def set(self, slot: int, count: int) -> None:
        """Publish a process's count, or CLOSED."""
        SLOT.pack_into(self._shared, slot * SLOT.size, count)

    def take_slot(self) -> int:
        """Take a free slot for the next process; only called by the parent.

        Without a free one the last slot is shared: balancing is then less exact.
        """
        counts = self._all()
        slot = counts.index(CLOSED) if CLOSED in counts else self._slots - 1
        self.set(slot, STARTING)
        return slot

    def is_open(self, slot: int) -> bool:
        """True if the slot's process accepts connections."""
        return self._all()[slot] >= 0

    def is_above_another(self, slot: int) -> bool:
        """True if another process has fewer connections."""
        counts = self._all()
        return any(0 <= count < counts[slot] for count in counts)

    def _all(self) -> list[int]:
        return [count for (count,) in SLOT.iter_unpack(self._shared[: self._slots * SLOT.size])]
