"""How many connections each process of a server has, readable by all of them.

The kernel hands a new connection to whichever process wakes first, so that eight kept-alive ones
often all belong to one process while another core is idle.
"""

import mmap
import struct
from typing import Final

SLOT: Final = struct.Struct("q")
# The slot of no process, or of one that accepts no more; that of one which does not accept yet.
CLOSED: Final = -1
STARTING: Final = -2


class ConnectionCounts:
    """One number for each process, in memory that they share.

    Only a slot's own process writes it while that lives, so that no lock is needed, and none can be
    left behind by a process that is killed.
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
        """Take a slot that no process has, for the next one; only the parent does.

        Without one the last is shared: connections are then left to others less exactly.
        """
        counts = self._all()
        slot = counts.index(CLOSED) if CLOSED in counts else self._slots - 1
        self.set(slot, STARTING)
        return slot

    def is_open(self, slot: int) -> bool:
        """True if a process accepts connections in a slot."""
        return self._all()[slot] >= 0

    def is_above_another(self, slot: int) -> bool:
        """True if another process has fewer connections."""
        counts = self._all()
        return any(0 <= count < counts[slot] for count in counts)

    def _all(self) -> list[int]:
        return [count for (count,) in SLOT.iter_unpack(self._shared[: self._slots * SLOT.size])]
