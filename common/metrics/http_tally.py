"""Counts of one web process's responses since they were last stored, per ten minutes."""

import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

SLOT_S: Final = 600
# Upper bounds in milliseconds; a last bucket counts longer requests. Each bound is 20 to 50 % above
# the previous one, which is the error of a chart's percentile.
BOUNDS_MS: Final = (
    1,
    1.5,
    2,
    3,
    4,
    5,
    6,
    8,
    10,
    12,
    15,
    20,
    25,
    30,
    40,
    50,
    60,
    80,
    100,
    120,
    150,
    200,
    250,
    300,
    400,
    500,
    600,
    800,
    1000,
    1500,
    2000,
    3000,
    5000,
    10_000,
    20_000,
    30_000,
    60_000,
)
SERVER_ERRORS: Final = 500
# Maximum slots that wait to be stored: one day, which is what the dashboard shows.
MAX_SLOTS: Final = 144


@dataclass(slots=True)
class TallySlot:
    """Ten minutes. errors: responses with status 500 and above. counts: requests by BOUNDS_MS."""

    requests: int = 0
    errors: int = 0
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))


class Tally:
    """Counts of all threads of a process, in memory until they are taken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[int, TallySlot] = {}

    def count(self, status: int, elapsed_s: Sequence[float]) -> None:
        """Count requests with one status by their durations."""
        begins_s = int(time.time()) // SLOT_S * SLOT_S
        places = [bisect_left(BOUNDS_MS, each * 1000) for each in elapsed_s]
        with self._lock:
            slot = self._slots.setdefault(begins_s, TallySlot())
            slot.requests += len(places)
            if status >= SERVER_ERRORS:
                slot.errors += len(places)
            for place in places:
                slot.counts[place] += 1

    def take(self) -> dict[int, TallySlot]:
        """Return the slots by their start (Unix seconds), and reset the counts."""
        with self._lock:
            taken, self._slots = self._slots, {}
            return taken

    def put_back(self, taken: dict[int, TallySlot]) -> None:
        """Add counts that could not be stored; of too many slots the newest are kept."""
        with self._lock:
            for begins_s in sorted(taken)[-MAX_SLOTS:]:
                old, new = taken[begins_s], self._slots.setdefault(begins_s, TallySlot())
                new.requests += old.requests
                new.errors += old.errors
                new.counts = [sum(pair) for pair in zip(new.counts, old.counts, strict=True)]


TALLY: Final = Tally()
