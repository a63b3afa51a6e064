"""What one web process answered to each organization since it was last written down, by hour."""

import threading
import time
from dataclasses import dataclass
from typing import Final

HOUR_S: Final = 3600
CLIENT_ERRORS: Final = 400
SERVER_ERRORS: Final = 500
# Organizations and hours that wait to be written: some megabytes. More than these only wait while
# the database is unreachable; what comes to others by then is not counted.
MAX_ENTRIES: Final = 20_000

# An organization, and the hour's beginning in Unix seconds.
Key = tuple[int, int]


@dataclass(slots=True)
class Answers:
    """Answers of one hour. refused: of 400 to 499; failed: of 500 and above."""

    requests: int = 0
    refused: int = 0
    failed: int = 0


class OrganizationTally:
    """Counts of all threads of a process; memory for at most MAX_ENTRIES."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Key, Answers] = {}

    def count(self, organization_id: int, status: int, number: int = 1) -> None:
        """Count a number of answers of one status."""
        key = (organization_id, int(time.time()) // HOUR_S * HOUR_S)
        answers = Answers(requests=number)
        if status >= SERVER_ERRORS:
            answers.failed = number
        elif status >= CLIENT_ERRORS:
            answers.refused = number
        with self._lock:
            self._add(key, answers)

    def take(self) -> dict[Key, Answers]:
        """Return the counts, and begin anew."""
        with self._lock:
            taken, self._entries = self._entries, {}
            return taken

    def put_back(self, taken: dict[Key, Answers]) -> None:
        """Count again what could not be written."""
        with self._lock:
            for key, answers in taken.items():
                self._add(key, answers)

    def _add(self, key: Key, more: Answers) -> None:
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= MAX_ENTRIES:
                return
            entry = self._entries[key] = Answers()
        entry.requests += more.requests
        entry.refused += more.refused
        entry.failed += more.failed


ORGANIZATIONS: Final = OrganizationTally()
