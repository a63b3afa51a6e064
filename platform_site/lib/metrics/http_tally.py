"""What one web process answered since its numbers were last written down, by ten minutes."""

import threading
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

SLOT_S: Final = 600
# Upper ends in milliseconds; one more holds what took longer. Each is a fifth to a half above the
# one before it, which a percentile of a chart may be wrong by.
BOUNDS_MS: Final = (
    *(1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 200, 250),
    *(300, 400, 500, 600, 800, 1000, 1500, 2000, 3000, 5000, 10_000, 20_000, 30_000, 60_000),
)
SERVER_ERRORS: Final = 500
# What waits to be written at most, a day: the dashboard shows no more.
MOST_SLOTS: Final = 144


@dataclass(slots=True)
class Slot:
    """Ten minutes. errors: answers of 500 and above. counts: of requests by BOUNDS_MS."""

    requests: int = 0
    errors: int = 0
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))


class Tally:
    """Counts of all threads of a process; memory for the slots that were not taken yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[int, Slot] = {}

    def count(self, status: int, elapsed_s: float) -> None:
        """Count one request."""
        begins_s = int(time.time()) // SLOT_S * SLOT_S
        place = bisect_left(BOUNDS_MS, elapsed_s * 1000)
        with self._lock:
            slot = self._slots.get(begins_s)
            if slot is None:
                slot = self._slots[begins_s] = Slot()
            slot.requests += 1
            slot.errors += status >= SERVER_ERRORS
            slot.counts[place] += 1

    def take(self) -> dict[int, Slot]:
        """Return the slots by their beginnings (Unix seconds), and begin anew."""
        with self._lock:
            taken, self._slots = self._slots, {}
            return taken

    def put_back(self, taken: dict[int, Slot]) -> None:
        """Count again what could not be written: of many slots the newest."""
        with self._lock:
            for begins_s in sorted(taken)[-MOST_SLOTS:]:
                old, new = taken[begins_s], self._slots.setdefault(begins_s, Slot())
                new.requests += old.requests
                new.errors += old.errors
                new.counts = [sum(pair) for pair in zip(new.counts, old.counts, strict=True)]


TALLY: Final = Tally()
