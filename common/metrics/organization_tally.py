"""Counts of one web process's responses per organization since they were last stored, by hour."""

import threading
import time
from dataclasses import dataclass
from typing import Final

HOUR_S: Final = 3600
CLIENT_ERRORS: Final = 400
SERVER_ERRORS: Final = 500
# Maximum entries that wait to be stored: some megabytes. There are more only while the database is
# unreachable; further ones are not counted.
MAX_ENTRIES: Final = 20_000

# An organization, and the start of the hour in Unix seconds.
Key = tuple[int, int]


@dataclass(slots=True)
class Answers:
    """Responses of one hour. refused: with status 400 to 499; failed: with 500 and above."""

    requests: int = 0
    refused: int = 0
    failed: int = 0


class OrganizationTally:
    """Counts of all threads of a process; at most MAX_ENTRIES."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Key, Answers] = {}

    def count(self, organization_id: int, status: int, number: int = 1) -> None:
        """Count a number of responses with one status."""
        key = (organization_id, int(time.time()) // HOUR_S * HOUR_S)
        answers = Answers(requests=number)
        if status >= SERVER_ERRORS:
            answers.failed = number
        elif status >= CLIENT_ERRORS:
            answers.refused = number
        with self._lock:
            self._add(key, answers)

    def take(self) -> dict[Key, Answers]:
        """Return the counts and reset them."""
        with self._lock:
            taken, self._entries = self._entries, {}
            return taken

    def put_back(self, taken: dict[Key, Answers]) -> None:
        """Add counts that could not be stored."""
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
